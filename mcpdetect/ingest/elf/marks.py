"""Marks that compilers and packers leave in a program, and how random its bytes are."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field

from mcpdetect.ingest.elf.image import Image, Segment
from mcpdetect.model.text import text_of

__all__ = ["GoBuild", "MarkSearch", "comments", "entropy", "go_build", "packed_by_upx"]

_SAMPLE = 1 << 20
_PIECE = 1 << 14
_LEAST = 4096
_MOST_TEXT = 200

# .rodata of a Rust program: "/rustc/82e1608dfa6e0b5569232559e3d385fea5a93112/library/core/src/fmt/mod.rs"
_RUST_PATH = re.compile(rb"/rustc/([0-9a-f]{40})/")
_OVERLAP = 64

# Go, debug/buildinfo: 16-byte aligned; byte 14 the pointer size, byte 15 flags (1: big endian, 2: strings inline).
_GO_MAGIC = b"\xff Go buildinf:"
_GO_ALIGN = 16
_GO_HEAD = 32
_GO_SEARCHED = 64 * 1024
_GO_MOST = 1 << 20
# go1.22.1, go1.21.5 X:boringcrypto, devel go1.23-8c8adffd53 Tue ...
_GO_VERSION = re.compile(r"(?:devel )?go\d[\w.+-]*(?: [ -~]*)?")


@dataclass(slots=True)
class MarkSearch:
    """Searches a file that passes block by block for marks of the Rust compiler.

    Attributes:
        rustc: commits of the compilers whose library sources the program names.
    """

    rustc: set[str] = field(default_factory=set)
    _tail: bytes = b""

    def feed(self, block: bytes) -> None:
        """Take the next block."""
        window = self._tail + block
        if len(self.rustc) < 8:
            for match in _RUST_PATH.finditer(window):
                self.rustc.add(match[1].decode("ascii"))
                if len(self.rustc) >= 8:
                    break
        self._tail = window[-_OVERLAP:]


@dataclass(slots=True, frozen=True)
class GoBuild:
    """A Go program's own words: the version of its compiler and the path of its main package, where given."""

    version: str
    module: str | None


def go_build(image: Image) -> GoBuild | None:
    """Return the Go build information of a program, None where it has none; one that cannot be read is noted."""
    for start, size in _go_places(image):
        raw = image.read(start, min(size, _GO_SEARCHED))
        at = raw.find(_GO_MAGIC)
        while at >= 0 and (at + start) % _GO_ALIGN:
            at = raw.find(_GO_MAGIC, at + 1)
        if at >= 0:
            return _read_go(image, start + at)
    return None


def _go_places(image: Image) -> list[tuple[int, int]]:
    """Return where the information may lie: its section, else the beginning of the first writable segment."""
    named = [(section.offset, section.size) for section in image.sections if section.name == b".go.buildinfo"]
    writable = [(segment.offset, segment.size) for segment in image.loads() if segment.writable]
    return named[:1] + writable[:1]


def _read_go(image: Image, at: int) -> GoBuild | None:
    head = image.read(at, _GO_HEAD)
    if len(head) < _GO_HEAD:
        image.problem("the Go build information is cut")
        return None
    if head[15] & 2:
        raw = image.read(at + _GO_HEAD, _GO_MOST)
        version, used = _varint_text(raw, 0)
        modules, _ = _varint_text(raw, used)
    else:
        version, modules = _pointed_text(image, head, 16), _pointed_text(image, head, 16 + head[14])
    text = version.decode("ascii", "replace") if version else ""
    if not _GO_VERSION.fullmatch(text[:_MOST_TEXT]):
        image.problem("the Go build information cannot be read")
        return None
    # modinfo stands between two 16-byte marks; its first line is "path\tgithub.com/acme/server/cmd/server\n"
    found = re.search(rb"(?:^|\n|[^\n]{16})path\t([^\n]{1,200})\n", modules or b"")
    return GoBuild(text[:_MOST_TEXT], text_of(found[1]) if found else None)


def _varint_text(raw: bytes, at: int) -> tuple[bytes, int]:
    """Return a string with its length before it as a base-128 number (encoding/binary), and where it ends."""
    size = shift = 0
    while at < len(raw) and shift < 35:
        byte = raw[at]
        at += 1
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return raw[at : at + size], at + size
    return b"", at


def _pointed_text(image: Image, head: bytes, at: int) -> bytes:
    """Return a string as Go before 1.18 kept it: a pointer to a pointer and a length."""
    size = head[14]
    if size not in (4, 8):
        return b""
    order: str = "big" if head[15] & 1 else "little"

    def number(raw: bytes) -> int:
        return int.from_bytes(raw, "big" if order == "big" else "little")

    place = image.offset_of(number(head[at : at + size]))
    if place is None:
        return b""
    pair = image.read(place, 2 * size)
    start = image.offset_of(number(pair[:size]))
    return b"" if start is None else image.read(start, min(number(pair[size:]), _GO_MOST))


def comments(image: Image) -> list[str]:
    """Return what compilers wrote into ``.comment``, a few of the lines at most.

    ``GCC: (Debian 12.2.0-14) 12.2.0``, ``rustc version 1.75.0 (82e1608df 2023-12-21)``.
    """
    for section in image.sections:
        if section.name == b".comment":
            raw = image.read(section.offset, min(section.size, 4096))
            return [text_of(part[:_MOST_TEXT]) for part in raw.split(b"\0") if part][:16]
    return []


def packed_by_upx(image: Image) -> bool:
    """Return whether UPX packed it, by a mark where UPX puts one.

    ``l_info`` behind the program headers has ``UPX!`` at its fourth byte; a ``PackHeader`` with it ends the file
    (UPX source, src/stub/src/include/linux.h and src/packhead.cpp). The four letters elsewhere mean nothing.
    """
    return image.read(image.after_programs + 4, 4) == b"UPX!" or b"UPX!" in image.read(max(image.size - 64, 0), 64)


def entropy(image: Image, segment: Segment) -> int | None:
    """Return how random a segment is, in thousandths of a bit a byte; None where it has less than a page.

    Of a large segment, 64 pieces of 16 KiB at even distances stand for all.
    """
    size = min(segment.size, max(image.size - segment.offset, 0))
    if size < _LEAST:
        return None
    counts: Counter[int] = Counter()
    if size <= _SAMPLE:
        counts.update(image.read(segment.offset, size))
    else:
        pieces = _SAMPLE // _PIECE
        for number in range(pieces):
            counts.update(image.read(segment.offset + number * (size - _PIECE) // (pieces - 1), _PIECE))
    total = counts.total()
    if not total:
        return None
    return round(-1000 * sum(count / total * math.log2(count / total) for count in counts.values()))
