"""What the commands show while they work, and the table at their end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType

import click

__all__ = ["Progress"]


class Progress:
    """Counts what became of cases by group; shows a bar where standard error is a terminal, and else none.

    Use it as a context manager around the work.

    Args:
        total: how many cases there are.
        what: a word for the bar, such as ``recording``.
        columns: the outcomes to be counted, in the order of the table.
    """

    def __init__(self, total: int, what: str, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._counts: dict[str, Counter[str]] = {}
        self._began = time.monotonic()
        self._bar = (
            click.progressbar(length=total, label=what, show_pos=True, file=sys.stderr)
            if sys.stderr.isatty() and total > 1
            else None
        )

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)

    def done(self, group: str, outcome: str, line: str, *, wrong: bool = False) -> None:
        """Count one case and print a line about it.

        Args:
            group: what it is counted under, such as its control.
            outcome: one of the columns.
            line: what to print.
            wrong: it goes to standard error.
        """
        self._counts.setdefault(group, Counter())[outcome] += 1
        if self._bar is not None:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        print(line, file=sys.stderr if wrong else sys.stdout, flush=True)
        if self._bar is not None:
            self._bar.update(1)

    def count(self, outcome: str) -> int:
        """Return how many cases came out so."""
        return sum(counts[outcome] for counts in self._counts.values())

    def table(self) -> str:
        """Return the table of outcomes by group, and how fast it went."""
        seconds = time.monotonic() - self._began
        number = sum(counts.total() for counts in self._counts.values())
        rows = [["", *self._columns]]
        rows += [[group, *self._cells(counts)] for group, counts in sorted(self._counts.items())]
        if len(self._counts) > 1:
            rows.append(["in all", *self._cells(sum(self._counts.values(), Counter()))])
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        pace = f", {60 * number / seconds:.0f} a minute" if seconds >= 1 else ""
        return "\n".join([*lines, f"{number} case{'' if number == 1 else 's'} in {seconds:.0f} s{pace}"])

    def _cells(self, counts: Counter[str]) -> list[str]:
        return [str(counts[name]) for name in self._columns]
