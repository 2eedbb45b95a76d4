"""Values inside arguments: descriptors and their decorations, strings, numbers, structures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from mcpdetect.ingest.strace.grammar import DECORATION, STRING, split_arguments, unescape
from mcpdetect.model.addresses import canonical
from mcpdetect.model.text import text_of
from mcpdetect.model.vocabulary import Transport

__all__ = [
    "Decoration",
    "bytes_in",
    "decoration_of",
    "descriptor",
    "excerpt_in",
    "fields",
    "items",
    "number",
    "string_in",
    "text_in",
    "vectors",
]

# 3      3</etc/passwd>(deleted)     -1     AT_FDCWD</srv/app>     -100 /* AT_FDCWD */
_DESCRIPTOR = re.compile(
    rf"(?:(-?\d{{1,10}})|AT_FDCWD)(?:({DECORATION})(\(deleted\))?+)?+(?: /\* (\w++) \*/)?+\Z", re.ASCII
)
_STRING = re.compile(STRING + r"\Z", re.ASCII)
_NUMBER = re.compile(r"(-?(?:0x[0-9a-f]{1,16}|\d{1,20}))(?: /\*.*)?\Z", re.ASCII | re.DOTALL)
# TCP:[10.0.0.2:40->203.0.113.7:443]   UNIX-STREAM:[3->4,"/tmp/x"]   NETLINK:[ROUTE:36]   socket:[77]
_SOCKET = re.compile(r"([A-Za-z][\w-]*+):\[(.*)\]\Z", re.ASCII | re.DOTALL)
# 10.0.0.2:40->203.0.113.7:443      [::1]:53330->[::1]:45581
_PAIR = re.compile(r"(?:\[([0-9a-fA-F:.%\w]*+)\]|([0-9.]++)):(\d{1,5})", re.ASCII)
_ANONYMOUS = {"anon_inode", "net", "mnt", "pid", "uts", "ipc", "user", "cgroup", "time"}
AT_FDCWD = -100


@dataclass(slots=True, frozen=True)
class Decoration:
    """What ``-y``, ``-yy`` or ``--decode-fds`` say about a descriptor.

    Attributes:
        sort: as in ``Handle.sort``.
        path: absolute path, or the name of a pipe, memfd or anonymous inode.
        device: a character or block device (``<char 1:3>``).
        protocol: of a socket, as written (``TCPv6``).
        inode: where shown.
        remote: remote address and port, where shown; may be stale.
        local: local address and port, where shown.
    """

    sort: str
    path: str | None = None
    device: bool = False
    protocol: str = ""
    inode: str = ""
    remote: tuple[str, int] | None = None
    local: tuple[str, int] | None = None

    @property
    def transport(self) -> Transport | None:
        """How a socket's data travels, None when the protocol name does not tell."""
        name = self.protocol.upper()
        for start, transport in _TRANSPORTS:
            if name.startswith(start):
                return transport
        return None


_TRANSPORTS: tuple[tuple[str, Transport], ...] = (
    ("TCP", "tcp"),
    ("UDP", "udp"),
    ("UNIX", "unix"),
    ("NETLINK", "netlink"),
    ("RAW", "raw"),
    ("PING", "icmp"),
    ("VSOCK", "vsock"),
    ("PACKET", "packet"),
)


@lru_cache(maxsize=8192)
def decoration_of(text: str) -> Decoration:
    """Read a decoration, with its angle brackets."""
    inner = text[1:-1]
    if inner.startswith("\\x"):
        # -xx: <\x2f\x64\x65\x76\x2f\x6e\x75\x6c\x6c<char 1:3>>
        head, mark, tail = inner.partition("<")
        inner = unescape(head)
        device = bool(mark) and tail.startswith(("char", "block"))
    else:
        device = False
        if inner.endswith(">") and inner.startswith(("/", "\\")):
            # </dev/null<char 1:3>>
            inner, _, tail = inner.partition("<")
            device = tail.startswith(("char", "block"))
        if not inner.startswith(("UNIX", "unix")):
            inner = unescape(inner)
    if inner.startswith("/memfd:"):
        return Decoration("memfd", text_of(inner.encode("latin-1")))
    if inner.startswith("/"):
        return Decoration("file", text_of(inner.encode("latin-1")), device)
    match = _SOCKET.match(inner)
    if match is None:
        return Decoration("anon", text_of(inner.encode("latin-1")))
    protocol, body = match.groups()
    if protocol in {"pipe", "host"}:  # host: what gVisor calls a descriptor that its own starter gave it
        return Decoration("pipe", text_of(inner.encode("latin-1")))
    if protocol in _ANONYMOUS:
        return Decoration("anon", text_of(inner.encode("latin-1")))
    if body.isdigit():
        return Decoration("socket", protocol=protocol, inode=body)
    if protocol.upper().startswith(("UNIX", "NETLINK")):
        return Decoration("socket", protocol=protocol, inode=re.split(r"[^\d]", body, maxsplit=1)[0])
    near, _, far = body.partition("->")
    return Decoration("socket", protocol=protocol, remote=_endpoint(far), local=_endpoint(near))


def _endpoint(text: str) -> tuple[str, int] | None:
    pair = _PAIR.fullmatch(text)
    if pair is None:
        return None
    try:
        return canonical(pair[1] or pair[2]), int(pair[3])
    except ValueError:
        return None


def descriptor(text: str) -> tuple[int | None, Decoration | None]:
    """Read a descriptor argument: its number (AT_FDCWD is -100) and decoration; (None, None) when it is none."""
    match = _DESCRIPTOR.match(text)
    if match is None:
        return None, None
    digits, decoration = match[1], match[2]
    return (int(digits) if digits is not None else AT_FDCWD), (decoration_of(decoration) if decoration else None)


def bytes_in(text: str) -> tuple[bytes, bool] | None:
    """Return the bytes of a string argument and whether it is cut, None when it is no string (NULL, a pointer)."""
    if not text.startswith('"'):
        return None
    cut = text.endswith('"...')
    inner = text[1:-4] if cut else text[1:-1]
    if "\\" in inner or not text.endswith('"'):
        if not text.endswith(('"', '"...')):
            return None
        inner = unescape(inner)
    return inner.encode("latin-1"), cut


def excerpt_in(text: str, limit: int) -> tuple[bytes, bool] | None:
    """Return at most ``limit`` bytes of a string argument and whether more were cut, by strace or here."""
    if len(text) <= limit:
        return bytes_in(text)
    found = bytes_in(text if len(text) <= 4 * limit + 8 else _SPLIT_ESCAPE.sub("", text[: 4 * limit]) + '"...')
    if found is None or len(found[0]) <= limit:
        return found
    return found[0][:limit], True


# an escape at the very end of a cut text may lack its last digits
_SPLIT_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*+(\\(?:[0-7]{0,2}|x[0-9a-f]?))?\Z", re.ASCII)


@lru_cache(maxsize=8192)
def string_in(text: str) -> str | None:
    """Return a path argument as text, None when it is no string."""
    found = bytes_in(text)
    return None if found is None else text_of(found[0])


def text_in(text: str) -> tuple[str, bool] | None:
    """Return a string argument as text and whether it is cut."""
    found = bytes_in(text)
    return None if found is None else (text_of(found[0]), found[1])


def number(text: str) -> int | None:
    """Return a number argument, decimal or hexadecimal, a comment after it ignored; None when it is none."""
    match = _NUMBER.match(text)
    if match is None:
        return None
    digits = match[1]
    return int(digits, 16) if "0x" in digits else int(digits)


def fields(text: str) -> dict[str, str]:
    """Return the fields of a structure argument by name; a bare function call is found under the function's name.

    ``{sa_family=AF_INET6, inet_pton(AF_INET6, "::1", &sin6_addr)}`` has ``sa_family`` and ``inet_pton``. An empty
    result means that it is no structure.
    """
    if not (text.startswith("{") and text.endswith("}")):
        return {}
    found: dict[str, str] = {}
    for part in split_arguments(text[1:-1]) or ():
        name, equals, value = part.partition("=")
        if equals and _NAME.match(name):
            found[name] = value
        else:
            function, bracket, inner = part.partition("(")
            if bracket:
                found[function] = inner.removesuffix(")")
    return found


_NAME = re.compile(r"\w++\Z", re.ASCII)


def items(text: str) -> list[str]:
    """Return the elements of an array argument, ``...`` included; empty when it is no array."""
    if text.startswith("[") and text.endswith("]"):
        return split_arguments(text[1:-1]) or []
    return []


def vectors(text: str, limit: int) -> tuple[bytes, bool, int | None]:
    """Join an ``iovec`` array.

    Args:
        text: ``[{iov_base="x", iov_len=1}, ...]``.
        limit: most bytes to return.

    Returns:
        The bytes, whether some are missing, and the sum of the lengths (None when an element is not shown).
    """
    data = b""
    cut = False
    total: int | None = 0
    elements = items(text)
    if not elements:
        return b"", text not in {"[]", "NULL"}, 0 if text == "[]" else None
    for element in elements:
        parts = fields(element)
        size = number(parts.get("iov_len", ""))
        found = excerpt_in(parts.get("iov_base", ""), limit)
        if size is None:
            cut, total = True, None
            continue
        if total is not None:
            total += size
        if found is None:
            cut = cut or size > 0
        elif not cut and len(data) < limit:
            data += found[0]
            cut = found[1] or len(found[0]) < size
    return data[:limit], cut or len(data) > limit, total
