"""Names for addresses: raw stack frames told by the symbol tables of the files they lie in."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from mcpdetect.ingest.elf.image import Image, Names
from mcpdetect.ingest.elf.source import open_seekable
from mcpdetect.model.event import Frame
from mcpdetect.model.text import text_of

__all__ = ["Symbols", "resolve_frames"]

_KINDS = ("SHT_SYMTAB", "SHT_DYNSYM")


class Symbols:
    """The functions of one ELF file by place.

    Args:
        source: the file (compressed or not), or a stream of it that can seek.
        name: its name in errors; the path otherwise.

    Raises:
        UnknownFormat: it is no ELF file.
        InputError: it cannot be read, or its ELF header makes no sense.
    """

    def __init__(self, source: Path | BinaryIO, name: str | None = None) -> None:
        with open_seekable(source, name) as (stream, shown):
            image = Image(stream, shown)
            found: dict[int, tuple[int, int, Names]] = {}
            for kind in _KINDS:
                entries, names = image.symbol_table(kind) or (b"", Names(b""))
                for symbol in image.symbols(entries):
                    if symbol.defined and symbol.function and symbol.name_at:
                        known = found.get(symbol.address)
                        # Of several names of one place the first that has a size.
                        if known is None or (not known[0] and symbol.size):
                            found[symbol.address] = (symbol.size, symbol.name_at, names)
        self._segments = [
            (segment.offset, segment.size, segment.address) for segment in image.loads() if segment.executable
        ]
        self._starts = sorted(found)
        self._found = found

    def at(self, offset: int) -> tuple[str, int] | None:
        """Return the function at a frame's raw offset and the distance from its beginning, None where none is known.

        strace built with libunwind prints offsets in the file, built with libdw addresses as the file numbers them.
        Most often both are the same number; where they are not and name different functions, neither is believed.
        """
        names = {found for address in self._addresses(offset) if (found := self._function(address)) is not None}
        return names.pop() if len(names) == 1 else None

    def _addresses(self, offset: int) -> set[int]:
        found = set()
        for start, size, address in self._segments:
            if start <= offset < start + size:
                found.add(offset - start + address)
            if address <= offset < address + size:
                found.add(offset)
        return found

    def _function(self, address: int) -> tuple[str, int] | None:
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        start = self._starts[at]
        size, name_at, names = self._found[start]
        # A function written in assembly may have no size: it reaches to the next one.
        if size and address >= start + size:
            return None
        name = names.get(name_at)
        return (text_of(name), address - start) if name else None


def resolve_frames(frames: Iterable[Frame], images: Mapping[str, Symbols]) -> list[Frame]:
    """Return frames with function and offset where the file they lie in is at hand; all others as they are.

    Args:
        frames: a stack; a frame without ``symbol`` has an ``offset`` within its image.
        images: symbols by the path of the file on the machine of the run, as frames name it.
    """
    resolved = []
    for frame in frames:
        symbols = images.get(frame.image) if frame.symbol is None and frame.offset is not None else None
        found = symbols.at(frame.offset) if symbols is not None and frame.offset is not None else None
        resolved.append(frame if found is None else replace(frame, symbol=found[0], offset=found[1]))
    return resolved
