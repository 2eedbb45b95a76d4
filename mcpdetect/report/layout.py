"""Laying out plain text: display width, wrapping, aligned columns, colours that never come from evidence."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

__all__ = ["Role", "Style", "columns", "counted", "fit", "moment", "span", "text_width", "wrapped"]

Role = Literal["title", "grave", "warn", "hint", "quiet", "ask"]

# Select Graphic Rendition parameters (ECMA-48 §8.3.117): bold, bold red, yellow, cyan, faint, magenta.
_SGR: dict[Role, str] = {
    "title": "1",
    "grave": "1;31",
    "warn": "33",
    "hint": "36",
    "quiet": "2",
    "ask": "35",
}

_PROSE = 110

# Characters of ours that a terminal without Unicode is shown in another way.
_ASCII = str.maketrans({"●": "*", "○": "-", "×": "x", "·": "-", "…": "...", "→": "->", "–": "-", "µ": "u"})


@dataclass(frozen=True, slots=True)
class Style:
    """How text is dressed.

    Attributes:
        width: columns of a table; prose is wrapped at ``prose``.
        color: ANSI colours are wanted.
        plain: the output cannot carry characters outside ASCII; every such character is written out.
    """

    width: int = 100
    color: bool = False
    plain: bool = False

    @property
    def prose(self) -> int:
        """Columns at which sentences are wrapped: longer lines are hard to read."""
        return min(self.width, _PROSE)

    def paint(self, text: str, role: Role) -> str:
        """Return ``text`` in the colour of ``role``, or as it is where no colour is wanted."""
        return f"\x1b[{_SGR[role]}m{text}\x1b[0m" if self.color and text else text

    def encode(self, text: str) -> str:
        """Return ``text`` as the output can carry it."""
        if not self.plain or text.isascii():
            return text
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def text_width(text: str) -> int:
    """Return how many terminal columns ``text`` takes (Unicode Standard Annex 11: wide and full-width take two)."""
    if text.isascii():
        return len(text)
    width = 0
    for char in text:
        if unicodedata.combining(char) == 0:
            width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width


def fit(text: str, width: int) -> str:
    """Return ``text`` cut to ``width`` columns, ending in ``…`` where something is missing."""
    if text_width(text) <= width:
        return text
    used = 1
    for index, char in enumerate(text):
        used += text_width(char)
        if used > width:
            return f"{text[:index]}…"
    return text


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Return ``text`` as lines of at most ``width`` columns; a longer word has a line of its own.

    Args:
        text: one paragraph.
        width: columns of a whole line.
        first: what the first line begins with.
        rest: what the others begin with; blanks as wide as ``first`` when None.
    """
    if rest is None:
        rest = " " * text_width(first)
    lines: list[str] = []
    line, used, empty = first, text_width(first), True
    for word in text.split(" "):
        size = text_width(word)
        if not empty and used + 1 + size > width:
            lines.append(line)
            line, used, empty = rest, text_width(rest), True
        line = line + word if empty else f"{line} {word}"
        used += size + (0 if empty else 1)
        empty = False
    lines.append(line)
    return [line.rstrip() for line in lines]


def columns(
    rows: Sequence[Sequence[str]], gap: int = 2, limits: Sequence[int] = (), right: Collection[int] = ()
) -> list[list[str]]:
    """Return ``rows`` with every cell but the last of a row padded to its column's width.

    Args:
        rows: cells; every row has the same number.
        gap: blanks between columns, part of the padding.
        limits: most columns each may take, 0 for any; a longer cell is cut.
        right: numbers of the cells set against the right edge of their column.
    """
    if not rows:
        return []
    cut = [
        [fit(cell, limits[i]) if i < len(limits) and limits[i] else cell for i, cell in enumerate(row)] for row in rows
    ]
    widths = [max(text_width(row[i]) for row in cut) for i in range(len(cut[0]))]
    last = len(widths) - 1
    laid = []
    for row in cut:
        cells = []
        for i, cell in enumerate(row):
            blanks = " " * (widths[i] - text_width(cell))
            cell = blanks + cell if i in right else cell if i == last else cell + blanks
            cells.append(cell if i == last or not widths[i] else cell + " " * gap)
        laid.append(cells)
    return laid


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return ``1 line`` or ``1,204 lines``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(t_ns: int, *, day: bool = True) -> str:
    """Return an epoch time in UTC, to the millisecond with its day, to the microsecond without.

    A time that no calendar holds (hostile evidence) is given in seconds.
    """
    seconds, rest = divmod(t_ns, 1_000_000_000)
    try:
        stamp = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s"
    if day:
        return f"{stamp:%Y-%m-%d %H:%M:%S}Z"
    return f"{stamp:%H:%M:%S}.{rest // 1000:06d}Z"


def span(length_ns: int) -> str:
    """Return a length of time as people read it: ``38 ms``, ``11.2 s``, ``4 min 10 s``, ``2 h 5 min``."""
    if length_ns < 0:
        return f"-{span(-length_ns)}"
    if length_ns < 1_000_000_000:
        return f"{length_ns / 1e6:.3g} ms"
    seconds = length_ns // 1_000_000_000
    if seconds < 60:
        return f"{length_ns / 1e9:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
