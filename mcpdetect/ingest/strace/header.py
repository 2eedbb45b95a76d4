"""What stands before a call in a line of strace: pid, command name, times, call number, instruction pointer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mcpdetect.model.vocabulary import Clock

__all__ = ["EPOCH", "HEADER", "Moment", "Timekeeper", "fast_header", "looks_like_strace", "ns_of"]

EPOCH = r"[0-9]{10}\.[0-9]{6}"
"""Pattern of the time column of ``-ttt``: ``1796037399.316142``."""
Moment = int | str | None
"""A time in nanoseconds, or as written in the column of ``-ttt``: most lines' times are never asked for."""


def ns_of(moment: Moment) -> int | None:
    """Return a time in nanoseconds."""
    return int(moment.replace(".", "")) * 1000 if moment.__class__ is str else moment  # type: ignore[return-value]


_DAY_NS = 86_400 * 1_000_000_000

HEADER = re.compile(
    # [pid 18152<x\76] a(1) = 0>] connect(...     16872 connect(...     36<mcp-server-gith> 1796040404.538833 ...
    r"(?:\[pid +(?P<bracketed>\d{1,7})(?:<(?P<name1>[^<>]*+)>)?+\] ++|(?P<bare>\d{1,7})(?:<(?P<name2>[^<>]*+)>)?+ ++)?+"
    # 1796037399.316142     12:06:48.294711     12:06:48     (old -r, alone)      0.000039
    r"(?: *+(?P<time>\d++\.\d++|\d{9,12}+|\d\d:\d\d:\d\d(?:\.\d++)?+) ++)?+"
    # (+     0.000056)     +0.000039
    r"(?: *+(?:\(\+ *+(?P<step1>\d++\.\d++)\)|\+(?P<step2>\d++\.\d++)) ++)?+"
    # [  59]      [00007f8139ba9ad7]      [????????????????]
    r"(?:\[ *+\d{1,4}\] ++)?+(?:\[(?:[0-9a-f]{8,16}|\?{8,16})\] ++)?+",
    re.ASCII,
)
"""Every part is optional; named groups for pid, name and times."""


@dataclass(slots=True)
class Timekeeper:
    """Turns the time columns of a log into integer nanoseconds that never run backwards at midnight.

    Attributes:
        clock: what the times count from, ``none`` until one was seen.
        begin, end: first and last time given out.
        high: the latest of those that were read elsewhere (``reached``).
    """

    clock: Clock = "none"
    begin: int | None = None
    end: int | None = None
    _base: int = 0
    _last: int = 0
    _sum: int = field(default=0)
    high: int = 0

    def reached(self, value: int) -> None:
        """Note the latest of times that were read elsewhere from the column of ``-ttt``; 0 is none."""
        if value > self.high:
            self.high = value
            self.end = value
            if self.begin is None:
                self.begin = value
            self.clock = "epoch"

    def spans(self, first: str, last: str) -> None:
        """Note the times of a stretch of lines, both as in the column of ``-ttt``."""
        if self.begin is None:
            self.begin = ns_of(first)
        latest = ns_of(last)
        self.end = latest if self.end is None or (latest or 0) > self.end else self.end
        self.clock = "epoch"

    def read(self, time: str | None, step: str | None = None) -> int | None:
        """Return the time of one line, None when it has none.

        Args:
            time: the absolute column as written: epoch seconds, or time of day.
            step: the seconds since the line before, used only where there is no absolute column.
        """
        if time is None:
            if step is None:
                return None
            self._sum += _seconds(step)
            value = self._sum
            self.clock = "relative"
        elif ":" in time:
            value = self._of_day(time)
        elif len(time.partition(".")[0]) < 9:
            # strace -r, no other clock:      0.000039 getppid()     = 1
            self._sum += _seconds(time)
            value = self._sum
            self.clock = "relative"
        else:
            value = _seconds(time)
            self.clock = "epoch"
        if self.begin is None:
            self.begin = value
        self.end = value if self.end is None or value > self.end else self.end
        return value

    def _of_day(self, time: str) -> int:
        value = (int(time[:2]) * 3600 + int(time[3:5]) * 60) * 1_000_000_000 + _seconds(time[6:])
        if value + _DAY_NS // 2 < self._last:
            self._base += _DAY_NS
        self._last = value
        self.clock = "time-of-day"
        return self._base + value


def _seconds(text: str) -> int:
    whole, _, part = text.partition(".")
    return int(whole) * 1_000_000_000 + (int(part[:9].ljust(9, "0")) if part else 0)


def fast_header(head: str, *, pids: bool = True) -> str | None:
    """Return a pattern with two groups (pid, time) that fits every line of ``head``, None where there is none.

    Args:
        head: the beginning of a log.
        pids: lines begin with a bare pid; False for the files of ``-ff``, whose names hold it.

    Only logs written with ``-o`` and ``-f`` have a bare pid in every line; they are the ones nobody else can write
    into by accident, and the ones that are large.
    """
    for time in (r"\d++\.\d++", r"\d\d:\d\d:\d\d\.\d++", r"\d\d:\d\d:\d\d", ""):
        owner = r"(\d{1,7}+)(?:<[^<>\n]*+>)?+ ++" if pids else "()"
        pattern = f"{owner}({time}){' ' if time else ''}"
        lines = head.split("\n")[:64]
        check = re.compile(pattern + r"(?:[a-z_]|<\.\.\. |\+\+\+ |--- |\?\?\?\()", re.ASCII)
        if lines and all(check.match(line) for line in lines if line):
            return pattern
    return None


_SHAPE = re.compile(r"(?:[a-z_][a-z0-9_]*+\(|<\.\.\. \w++ resumed|\+\+\+ |--- |\?\?\?\()", re.ASCII)
_BARE_SHAPE = re.compile(
    r"(?:<\.\.\. \w++ resumed|\+\+\+ (?:exited|killed|superseded)|--- SIG|strace: Process \d++ attached"
    r"|[a-z_][a-z0-9_]*+\((?:[^\n]*\) += (?:-?\d|0x|\?)|[^\n]*<unfinished(?: #\d++)? \.\.\.>\Z))",
    re.ASCII,
)


def looks_like_strace(head: str) -> bool:
    """Return whether any line of ``head`` can only be strace's."""
    for line in head.split("\n"):
        header = HEADER.match(line)
        if header is None:
            continue
        rest = line[header.end() :]
        if (header.end() and _SHAPE.match(rest)) or _BARE_SHAPE.match(rest):
            return True
    return False
