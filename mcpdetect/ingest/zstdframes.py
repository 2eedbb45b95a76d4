"""Whether a zstandard file ends where a frame does: the library reads a cut one to its end without a word."""

from __future__ import annotations

from typing import BinaryIO

__all__ = ["FrameWatch"]

# RFC 8878 §3.1.1: frame magic; §3.1.2: skippable frames 0x184D2A50..5F.
_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50
_RLE = 1
_ID_SIZES = (0, 1, 2, 4)


class FrameWatch:
    """A file read through here is followed frame by frame and block by block, without unpacking anything.

    Args:
        raw: the compressed file.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._next = "magic"
        self._have = bytearray()
        self._skip = 0
        self._checksum = False

    @property
    def whole(self) -> bool:
        """Whether what was read so far ends with a whole frame, or with something that is no frame at all."""
        return self._next == "lost" or (self._next == "magic" and not self._have and not self._skip)

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes of the file."""
        data = self._raw.read(size)
        at = 0
        while at < len(data) and self._next != "lost":
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            need = {"magic": 4, "length": 4, "descriptor": 1, "block": 3}[self._next] - len(self._have)
            self._have += data[at : at + need]
            if at + need > len(data):
                break
            at += need
            value = int.from_bytes(self._have, "little")
            self._have.clear()
            self._step(value)
        return data

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def _step(self, value: int) -> None:
        if self._next == "magic":
            skippable = value & ~0xF == _SKIPPABLE
            self._next = "descriptor" if value == _MAGIC else "length" if skippable else "lost"
        elif self._next == "length":
            self._skip, self._next = value, "magic"
        elif self._next == "descriptor":
            # §3.1.1.1.1: content size flag (2 bits), single segment, unused, reserved, checksum, dictionary id (2 bits)
            single = value >> 5 & 1
            self._checksum = bool(value >> 2 & 1)
            content = (single, 2, 4, 8)[value >> 6]
            self._skip, self._next = (1 - single) + _ID_SIZES[value & 3] + content, "block"
        else:
            # §3.1.1.2: last block, type (2 bits), size; a block of one repeated byte holds that byte alone
            last, kind, size = value & 1, value >> 1 & 3, value >> 3
            self._skip = 1 if kind == _RLE else size
            if last:
                self._skip += 4 if self._checksum else 0
                self._next = "magic"
