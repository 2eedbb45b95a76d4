"""Evidence files with something taken out of them, written anew together with what a manifest would then declare.

Logs of the recorder's own form are understood (``strace -ttt`` with or without ``-f``, classic pcap); another form is
left alone, since a cut that is not understood would prove nothing.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.manifest import BundleEvidence
from mcpdetect.ingest.opener import open_evidence
from mcpdetect.ingest.strace.calls import Filter
from mcpdetect.model.kinds import CALLS
from mcpdetect.model.observation import Loss

__all__ = ["Content", "content_of", "cut_strings", "cut_tail", "drop_class", "drop_packets", "drop_process", "written"]

_MOST = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one evidence file, uncompressed.

    Attributes:
        item: the file and what is declared about it.
        parts: its lines (with their ends), or its packets, or the events of a trace.
        head, tail: what stands before the first packet or event, and after the last.
    """

    item: BundleEvidence
    parts: tuple[bytes, ...]
    head: bytes = b""
    tail: bytes = b""

    @property
    def processes(self) -> list[bytes]:
        """Return the process ids of an strace log in the order in which they first speak; none where it has none."""
        found = (_LINE.match(line) for line in self.parts)
        return list(dict.fromkeys(match["pid"] for match in found if match and match["pid"]))


# 41    1796050041.117647 execve("/srv/control/direct_ip", ["/srv/control/direct_ip"], 0x7ff /* 5 vars */) = 0 <0.0001>
# 41    1796050064.192808 <... wait4 resumed>NULL, 0, NULL) = 42 <0.003742>
# 1796050041.117647 brk(NULL) = 0x15ab8000 <0.000005>
_LINE = re.compile(rb"(?:(?P<pid>[0-9]++) ++)?[0-9]++\.[0-9]++ (?:<\.\.\. )?(?P<call>\w++)?")
# The strings that strace's -s cuts: buffers and arguments, no path, address or name of a socket. One such string:
# sendto(3<TCP:[1]>, "GET / HTTP/1.1\r\n", 16, 0, NULL, 0) = 16
# a string's own escapes never hold a bare quote
_STRING = re.compile(rb'(?P<before>(?:iov_base=|[\[,] ?))"(?P<text>(?:[^"\\]|\\.)*+)"(?P<cut>\.\.\.)?')
# One byte of a string as strace writes it: \n, \0, \12, \377, \x0a, or itself
_BYTE = re.compile(rb"\\(?:x[0-9a-f]{2}|[0-7]{1,3}|.)|[^\\]", re.DOTALL)
_CUT_CALLS = frozenset(
    b"read pread64 readv preadv preadv2 write pwrite64 writev pwritev pwritev2 sendto sendmsg sendmmsg recvfrom "
    b"recvmsg recvmmsg execve execveat".split()
)
_PCAP = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}
_FILE_HEADER, _PACKET_HEADER = 24, 16


def content_of(item: BundleEvidence) -> Content | None:
    """Return a file's content in parts, None where its form is not understood.

    Args:
        item: the file.

    Raises:
        InputError: it cannot be read.
    """
    with open_evidence(item.path, item.name) as stream:
        data = stream.read_exactly(_MOST)
    lines = tuple(data.splitlines(keepends=True))
    if item.format == "trace":
        # one event a line between {"schema": ...} and {"observations": ...}; any other layout is left whole
        own = len(lines) > 1 and lines[0].endswith(b"}\n") and lines[-1].startswith(b'{"observations"')
        return Content(item, lines[1:-1], lines[0], lines[-1]) if own else None
    if item.channel == "packets":
        return _packets(item, data)
    if item.channel in ("binaries", "files"):
        return None
    if item.channel == "syscalls" and not all(_LINE.match(line) for line in lines):
        return None
    return Content(item, lines)


def _packets(item: BundleEvidence, data: bytes) -> Content | None:
    order = _PCAP.get(data[:4])
    if order is None or len(data) < _FILE_HEADER:
        return None
    at, found = _FILE_HEADER, []
    while at + _PACKET_HEADER <= len(data):
        (size,) = struct.unpack_from(f"{order}I", data, at + 8)
        found.append(data[at : at + _PACKET_HEADER + size])
        at += _PACKET_HEADER + size
    return Content(item, tuple(found), data[:_FILE_HEADER])


def written(content: Content, folder: Path) -> BundleEvidence:
    """Write a content and return it as evidence under the name of the file it came from.

    Args:
        content: the content.
        folder: where to write.
    """
    path = folder / content.item.path.name.removesuffix(".zst").removesuffix(".gz")
    path.write_bytes(content.head + b"".join(content.parts) + content.tail)
    return replace(content.item, path=path)


def _redeclared(content: Content, parts: tuple[bytes, ...], change: Callable[[Declared], Declared]) -> Content:
    return Content(replace(content.item, declared=change(content.item.declared)), parts, content.head, content.tail)


def cut_strings(content: Content, size: int) -> Content:
    """Return an strace log as ``-s size`` would have written it.

    Args:
        content: the log.
        size: most bytes of one string.
    """

    def shorter(match: re.Match[bytes]) -> bytes:
        if match["before"].startswith(b",") and match.string[: match.start()].endswith((b"AF_INET", b"AF_INET6")):
            return match[0]
        kept = _BYTE.findall(match["text"])
        if len(kept) <= size:
            return match[0]
        return match["before"] + b'"' + b"".join(kept[:size]) + b'"...'

    def line(text: bytes) -> bytes:
        found = _LINE.match(text)
        return _STRING.sub(shorter, text) if found and found["call"] in _CUT_CALLS else text

    def change(declared: Declared) -> Declared:
        options = list(declared.options or [])
        if "-s" in options[:-1]:
            options[options.index("-s") + 1] = str(size)
        else:
            options += ["-s", str(size)]
        return replace(declared, options=options)

    return _redeclared(content, tuple(map(line, content.parts)), change)


def cut_tail(content: Content, parts: int) -> Content:
    """Return a file that ends early: its recorder died, and whoever wrote the manifest knew.

    Args:
        content: the file.
        parts: how many lines or packets are left.
    """
    return _redeclared(content, content.parts[:parts], lambda old: replace(old, complete=False, end_ns=None))


def drop_process(content: Content, pid: bytes) -> Content:
    """Return an strace log that never followed one process; nothing is declared about it.

    Args:
        content: the log.
        pid: the process.
    """

    def kept(line: bytes) -> bool:
        found = _LINE.match(line)
        return not found or found["pid"] != pid

    return replace(content, parts=tuple(filter(kept, content.parts)))


def drop_class(content: Content, kind: str) -> Content:
    """Return an strace log in which no call of an event kind was traced, by its lines and by its declared options.

    Args:
        content: the log.
        kind: a key of ``mcpdetect.model.kinds.CALLS``.
    """
    gone = {name.encode() for name in CALLS[kind]}

    def kept(line: bytes) -> bool:
        found = _LINE.match(line)
        return not found or found["call"] not in gone

    def change(declared: Declared) -> Declared:
        options = list(declared.options or [])
        traced = Filter(options).calls
        if traced is None:
            return replace(declared, options=[*options, "-e", f"trace=!{','.join(sorted(CALLS[kind]))}"])
        left = sorted(traced - CALLS[kind])
        options = [
            f"trace={','.join(left) or 'none'}" if before == "-e" and option.startswith("trace=") else option
            for before, option in zip(["", *options], options, strict=False)
        ]
        return replace(declared, options=options)

    return _redeclared(content, tuple(filter(kept, content.parts)), change)


def drop_packets(content: Content, gone: Collection[int]) -> Content:
    """Return a capture from which the kernel dropped packets, with their number told.

    Args:
        content: the capture.
        gone: which packets, from 0; at least one.
    """
    left = tuple(packet for at, packet in enumerate(content.parts) if at not in gone)
    loss = Loss("dropped", f"{len(gone)} packets dropped by the kernel", len(gone))
    return _redeclared(content, left, lambda old: replace(old, losses=[*old.losses, loss]))
