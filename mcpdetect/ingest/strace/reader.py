"""Bytes of a log as text that ends at a line's end, in bounded pieces."""

from __future__ import annotations

from mcpdetect.ingest.opener import Stream

__all__ = ["LINE_CAP", "Blocks"]

_BLOCK = 1 << 17
LINE_CAP = 1 << 20
"""Longest line that is read whole; a longer one is cut and says so."""


class Blocks:
    """A log as blocks of whole lines.

    Attributes:
        tail: the last line where the file does not end with a newline.
        cut_lines: lines that were longer than ``LINE_CAP``.
        size: bytes read.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._carry: list[bytes] = []
        self._carried = 0
        self._skipping = False
        self.tail = ""
        self.cut_lines = 0
        self.size = 0
        self.lines_cut_at: list[int] = []

    def next(self) -> str | None:
        """Return the next block: lines joined by newlines, without the last newline; None at the end."""
        while True:
            raw = self._stream.read(_BLOCK)
            if not raw:
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
