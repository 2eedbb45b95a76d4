"""HTTP/1 requests out of the client's half of a connection (RFC 9112): request line, Host, where the next begins."""

from __future__ import annotations

import re
from typing import NamedTuple

from mcpdetect.model.text import text_of

__all__ = ["Request", "RequestReader", "may_be_request", "whole_request"]

_MOST_HEAD = 16384
_MOST_SIZE_LINE = 1024
_METHOD = re.compile(rb"[A-Z][A-Z_-]{0,23}+(?: |$)")
# GET http://host/path HTTP/1.1
_LINE = re.compile(rb"([A-Z][A-Z_-]{0,23}+) ([^ \r\n]++) HTTP/[0-9]\.[0-9]\r?$")
_HOST = re.compile(rb"\nhost:[ \t]*+([^\r\n]*+)", re.IGNORECASE)
_LENGTH = re.compile(rb"\ncontent-length:[ \t]*+([0-9]{1,18}+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\ntransfer-encoding:[^\r\n]*?chunked", re.IGNORECASE)
# 1a4;name=value
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12}+)[^\r\n]*+\r?\n")


class Request(NamedTuple):
    """One request: method, target, Host (None where there is none), and whether its head was seen to the end."""

    method: str
    target: str
    host: str | None
    whole: bool


def may_be_request(data: bytes) -> bool:
    """Return whether ``data`` may be the beginning of a request: a method, a space; or as much of that as is there."""
    return bool(data) and _METHOD.match(data) is not None


def whole_request(data: bytes) -> Request | None:
    """Return the request that ``data`` is from its first byte to its last; None where it is not, or not a plain one.

    Plain means that another request, if anything, follows it: no body, no other protocol.
    """
    end = len(data) - 3
    if data[end:] != b"\n\r\n" or end > _MOST_HEAD or data.find(b"\n\r\n") != end or b"\n\n" in data:
        return None
    lower = data.lower()
    if b"\ncontent-length:" in lower or b"\nupgrade:" in lower or b"\ntransfer-encoding:" in lower:
        return None
    request = _parse(data[: end + 1], lower, whole=True)
    return None if request is None or request.method in ("CONNECT", "PRI") else request


class RequestReader:
    """Reads requests one behind another from bytes in order.

    Args:
        first: no request came before.

    Attributes:
        over: no further request can be told: it was none, it became another protocol, or its framing broke.
        tunnel: a CONNECT was sent: what follows belongs to another protocol.
        lost: bytes were skipped in which a request could have been.
    """

    __slots__ = ("_chunked", "_first", "_head", "_looked", "_skip", "lost", "over", "tunnel")

    def __init__(self, *, first: bool = True) -> None:
        self._head = bytearray()
        self._looked = 0
        self._skip = 0
        self._chunked = False
        self._first = first
        self.over = False
        self.tunnel = False
        self.lost = False

    @property
    def pending(self) -> bool:
        """Whether the beginning of a request was seen whose head goes on."""
        return bool(self._head) and not self._chunked

    def feed(self, data: bytes) -> list[Request]:
        """Take the next bytes; return the requests whose head ends in them."""
        found: list[Request] = []
        at = 0
        while at < len(data) and not (self.over or self.tunnel):
            if self._skip:
                skipped = min(self._skip, len(data) - at)
                self._skip -= skipped
                at += skipped
            elif self._chunked:
                at = self._chunk(data, at)
            else:
                at = self._take(data, at, found)
        return found

    def resume(self) -> None:
        """Bytes are missing here; look for a request at the beginning of the next ones."""
        self.lost = True
        self._head.clear()
        self._looked = self._skip = 0
        self._chunked = False

    def close(self) -> list[Request]:
        """Return the request whose head was cut, where its first line at least is whole."""
        if self.over or self.tunnel or self._chunked or not self._head:
            return []
        head = bytes(self._head)
        request = _parse(head, head.lower(), whole=False)
        if request is None:
            self.lost = self.lost or not self._first or b"\n" not in self._head
        return [request] if request else []

    def _take(self, data: bytes, at: int, found: list[Request]) -> int:
        """Add to the head; return the offset of what is behind it."""
        head = self._head
        before = len(head)
        if not before:
            # empty lines before a request line are allowed (RFC 9112 §2.2)
            while data[at : at + 1] in (b"\r", b"\n"):
                at += 1
            # nearly always the whole head is here, with CRLF alone
            end = data.find(b"\n\r\n", at)
            if 0 <= end - at <= _MOST_HEAD and data.find(b"\n\n", at, end + 1) < 0:
                return end + 3 if self._head_is(data[at : end + 1], found) else len(data)
        head += data[at : at + _MOST_HEAD + 4 - before]
        if head and not may_be_request(bytes(head[:32])):
            self._give_up()
            return len(data)
        since = max(0, self._looked - 3)
        self._looked = len(head)
        end, width = head.find(b"\n\r\n", since), 3
        bare = head.find(b"\n\n", since)
        if bare >= 0 and (end < 0 or bare < end):
            end, width = bare, 2
        if end < 0:
            self._unfinished(found)
            return len(data)
        if not self._head_is(bytes(head[: end + 1]), found):
            return len(data)
        head.clear()
        self._looked = 0
        return at + end + width - before

    def _head_is(self, head: bytes, found: list[Request]) -> bool:
        """Read a whole head into ``found`` and prepare for what follows it; return whether it was one."""
        lower = head.lower()
        request = _parse(head, lower, whole=True)
        if request is None:
            self._give_up()
            return False
        found.append(request)
        self._frame(head, lower, request.method)
        self._first = False
        return True

    def _unfinished(self, found: list[Request]) -> None:
        """Judge a head that has no end yet: no request line, or one that never ends."""
        line_end = self._head.find(b"\n")
        if line_end >= 0 and _LINE.match(self._head, 0, line_end) is None:
            self._give_up()
        elif len(self._head) > _MOST_HEAD:
            head = bytes(self._head)
            request = _parse(head, head.lower(), whole=False)
            if request:
                found.append(request)
            self.lost = True
            self.over = True

    def _give_up(self) -> None:
        self.over = True
        self.lost = self.lost or not self._first

    def _frame(self, head: bytes, lower: bytes, method: str) -> None:
        """Find out where the body ends."""
        if method == "CONNECT":
            self.tunnel = True
            return
        # a literal is found at once; the patterns, which ignore letter case, are tried where it is there only
        if method == "PRI" or b"\nupgrade:" in lower:
            self.over = True  # HTTP/2, a WebSocket: no request lines follow
        elif b"\ntransfer-encoding:" in lower and _CHUNKED.search(head):
            self._chunked = True
        elif b"\ncontent-length:" in lower and (match := _LENGTH.search(head)):
            self._skip = int(match[1])

    def _chunk(self, data: bytes, at: int) -> int:
        """Step over one chunk, or the last one and its trailer (RFC 9112 §7.1); a size line may come in pieces."""
        head = self._head
        before = len(head)
        head += data[at : at + _MOST_SIZE_LINE - before]
        match = _CHUNK.match(head)
        if match is None:
            if len(head) >= _MOST_SIZE_LINE or b"\n" in head:
                self._give_up()
            return len(data)
        size = int(match[1], 16)
        if size:
            self._skip = size + 2
            head.clear()
            return at + match.end() - before
        end = head.find(b"\r\n\r\n", match.end() - 2)
        if end < 0:
            if len(head) >= _MOST_SIZE_LINE:
                self._give_up()
            return len(data)
        head.clear()
        self._chunked = False
        return at + end + 4 - before


def _parse(head: bytes, lower: bytes, *, whole: bool) -> Request | None:
    """Read a head, which ``lower`` is in lower case; ``whole``: all of it is there."""
    line_end = head.find(b"\n")
    if line_end < 0:
        return None
    line = _LINE.match(head, 0, line_end)
    if line is None:
        return None
    found = lower.find(b"\nhost:")
    host = _HOST.match(head, found) if found >= 0 else None
    if host is not None and not whole and host.end() == len(head):
        host = None  # cut within its value
    return Request(
        line[1].decode("ascii"), text_of(line[2][:4096]), text_of(host[1].strip()[:1024]) if host else None, whole
    )
