"""Bytes of a log as text that ends at a line's end, in bounded pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

__all__ = ["LINE_CAP", "Blocks", "Reopened", "Source"]

_BLOCK = 1 << 17
LINE_CAP = 1 << 20
"""Longest line that is read whole; a longer one is cut and says so."""


class Source(Protocol):
    """What ``Blocks`` reads from."""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, ``b""`` at the end."""
        ...


class Reopened:
    """A plain file that is open only while it is read: a set may have more files than a process may open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.damaged = ""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, ``b""`` at the end or when the file cannot be read any more."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                raw = file.read(size)
        except OSError as error:
            self.damaged = f"the file could not be read to its end: {error.strerror}"
            return b""
        self._at += len(raw)
        return raw


class Blocks:
    """A log as blocks of whole lines.

    Attributes:
        tail: the last line where the file does not end with a newline.
        cut_lines: lines that were longer than ``LINE_CAP``.
        size: bytes read.
    """

    def __init__(self, stream: Source, block: int = _BLOCK) -> None:
        self._stream = stream
        self._block = block
        self._carry: list[bytes] = []
        self._carried = 0
        self._skipping = False
        self._ended = False
        self.tail = ""
        self.cut_lines = 0
        self.size = 0

    def next(self) -> str | None:
        """Return the next block: lines joined by newlines, without the last newline; None at the end."""
        while not self._ended:
            raw = self._stream.read(self._block)
            if not raw:
                self._ended = True
                rest = b"".join(self._carry)
                self._carry.clear()
                self._carried = 0
                self.tail = rest.decode("latin-1")
                return None
            self.size += len(raw)
            if self._skipping:
                at = raw.find(b"\n")
                if at < 0:
                    continue
                self._skipping = False
                raw = raw[at:]
            at = raw.rfind(b"\n")
            if at < 0:
                self._carry.append(raw)
                self._carried += len(raw)
                if self._carried > LINE_CAP:
                    # keep the beginning, drop what follows up to the next newline
                    head = b"".join(self._carry)[:LINE_CAP]
                    self._carry = [head]
                    self._carried = len(head)
                    self._skipping = True
                    self.cut_lines += 1
                continue
            block = b"".join([*self._carry, raw[:at]])
            rest = raw[at + 1 :]
            self._carry = [rest] if rest else []
            self._carried = len(rest)
            return block.decode("latin-1")
        return None
