"""Time stamps at the beginning of log lines, and the clock they make: since 1970, since boot, or none.

A stamp without a zone (``Nov 30 11:00:00``, ``30-Nov-2026 11:23:54.944``) is local time of a machine whose zone the
log does not tell. Only a declared window makes it a time: the year and the offset, in quarters of an hour, that put
the first line into the window. Without one such lines have no time.
"""

from __future__ import annotations

import re
from calendar import timegm
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from mcpdetect.ingest.adapter import Declared
from mcpdetect.model.vocabulary import Clock

__all__ = ["LogClock", "Stamp", "stamp_at"]

_SECOND = 10**9
_QUARTER = 900
_SLACK = 2 * _SECOND
# Offsets of civil time in use lie between -12:00 and +14:00.
_OFFSETS = sorted(range(-48 * 900, 57 * 900, 900), key=lambda s: (s != 0, s % 3600 != 0, s % 1800 != 0, abs(s), s))
_LATEST = 1 << 63
_MONTHS = {
    name: number
    for number, name in enumerate(
        (b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"), 1
    )
}
_MONTH = rb"Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"

# 2026-11-30T18:33:46+01:00   2026-11-30T14:20:10,284883+00:00   2026-11-30T11:21:18.000Z   2026-11-30 18:33:46
_ISO = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d++))?+(?: ?(Z|UTC|[+-]\d\d:?\d\d)(?![\w:]))?+"
)
# Nov 30 11:00:00   Nov  3 11:00:00.123456
_SYSLOG = re.compile(rb"(" + _MONTH + rb") ([ \d]\d) (\d\d):(\d\d):(\d\d)(?:\.(\d++))?+")
# 30-Nov-2026 11:23:54.944
_BIND = re.compile(rb"(\d\d)-(" + _MONTH + rb")-(\d{4}) (\d\d):(\d\d):(\d\d)(?:\.(\d++))?+")
# [Mon Nov 30 14:20:10 2026]   [Mon Nov  2 14:20:10 2026]
_CTIME = re.compile(rb"\[\w{3} (" + _MONTH + rb") ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})\]")
# [  880.640080]   [ 2240.284883 <    0.037289>]
_BOOT = re.compile(rb"\[ *+(\d{1,12})\.(\d{6})(?: <[ .\d]++>)?\]")
# [1796037684]
_EPOCH = re.compile(rb"\[(\d{9,11})\]")
# 1796041192.444589
_DECIMAL = re.compile(rb"(\d{9,11})\.(\d{1,9})(?=\s)")
# 4,1049,2240284883,-;   4,1049,2240284883,-,caller=T12;
_KMSG = re.compile(rb"\d{1,4},\d{1,20},(\d{1,18}),[^;\n]{0,100}+;")
# [Nov30 14:20]   [  +0.000171]
_HUMAN = re.compile(rb"\[(?:(?:" + _MONTH + rb") ?\d\d? \d\d:\d\d| *\+\d{1,9}\.\d{6})\]")


@dataclass(slots=True)
class Stamp:
    """One time stamp.

    Attributes:
        sort: ``epoch``: ``ns`` counts from 1970; ``boot``: from the start of the machine; ``local``: civil time of an
            unknown zone, in ``ns`` as if it were UTC; ``vague``: too little to be a time.
        ns: nanoseconds.
        yearless: a local time whose year is not known either; ``ns`` is of the year 2024, which has every day.
        end: offset of the byte after the stamp.
    """

    sort: Literal["epoch", "boot", "local", "vague"]
    ns: int
    end: int
    yearless: bool = False


def stamp_at(line: bytes, at: int = 0) -> Stamp | None:
    """Return the time stamp that begins at ``at``, None where there is none."""
    head = line[at : at + 1]
    if head == b"[":
        return _bracketed(line, at)
    if head.isdigit():
        return _numeric(line, at)
    if match := _SYSLOG.match(line, at):
        month, day, hour, minute, second, fraction = match.groups()
        return _civil((b"2024", month, day, hour, minute, second), fraction, match.end(), yearless=True)
    return None


def _bracketed(line: bytes, at: int) -> Stamp | None:
    if match := _BOOT.match(line, at):
        return Stamp("boot", int(match[1]) * _SECOND + int(match[2]) * 1000, match.end())
    if match := _EPOCH.match(line, at):
        return Stamp("epoch", int(match[1]) * _SECOND, match.end())
    if match := _CTIME.match(line, at):
        month, day, hour, minute, second, year = match.groups()
        return _civil((year, month, day, hour, minute, second), None, match.end())
    if match := _HUMAN.match(line, at):
        return Stamp("vague", 0, match.end())
    return None


def _numeric(line: bytes, at: int) -> Stamp | None:
    if match := _ISO.match(line, at):
        year, month, day, hour, minute, second, fraction, zone = match.groups()
        stamp = _civil((year, month, day, hour, minute, second), fraction, match.end())
        if stamp.sort == "local" and zone is not None:
            stamp.sort = "epoch"
            if zone not in (b"Z", b"UTC"):
                offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
                stamp.ns += (-offset if zone[:1] == b"+" else offset) * _SECOND
        return stamp
    if match := _BIND.match(line, at):
        day, month, year, hour, minute, second, fraction = match.groups()
        return _civil((year, month, day, hour, minute, second), fraction, match.end())
    if match := _DECIMAL.match(line, at):
        return Stamp("epoch", int(match[1]) * _SECOND + _nanoseconds(match[2]), match.end())
    if match := _KMSG.match(line, at):
        return Stamp("boot", int(match[1]) * 1000, match.end())
    return None


def _nanoseconds(fraction: bytes | None) -> int:
    return int(fraction[:9].ljust(9, b"0")) if fraction else 0


def _civil(
    parts: tuple[bytes, bytes, bytes, bytes, bytes, bytes], fraction: bytes | None, end: int, *, yearless: bool = False
) -> Stamp:
    """Return a local stamp of year, month (name or number), day, hour, minute, second; a vague one for no such day."""
    year, month, day, hour, minute, second = parts
    number = _MONTHS.get(month.lower()) or int(month)
    try:
        # A leap second (60) is shown as the last one of its minute.
        moment = datetime(int(year), number, int(day), int(hour), int(minute), min(int(second), 59), tzinfo=UTC)
    except ValueError:
        return Stamp("vague", 0, end)
    return Stamp("local", timegm(moment.timetuple()) * _SECOND + _nanoseconds(fraction), end, yearless)


class LogClock:
    """The clock of one log, settled by its first stamp.

    Args:
        declared: its window decides year and zone of local stamps.
        first: the first stamp of the log, None where it has none.

    Attributes:
        clock: what the times count from.
        span: least and greatest time given so far.
    """

    def __init__(self, declared: Declared, first: Stamp | None) -> None:
        self.span: tuple[int | None, int | None] = (None, None)
        self._sort = first.sort if first is not None else "vague"
        self._shift = 0
        self._years = 0
        self._last: int | None = None
        self._odd = 0
        self._anchored = ""
        if self._sort == "local" and first is not None and not self._anchor(declared, first):
            self._sort = "vague"
        clocks: dict[str, Clock] = {"epoch": "epoch", "local": "epoch", "boot": "relative"}
        self.clock: Clock = clocks.get(self._sort, "none")

    def time(self, stamp: Stamp | None) -> int | None:
        """Return a line's time in nanoseconds on the log's clock, None where it has none."""
        if self._sort == "vague":
            return None
        if stamp is None or stamp.sort != self._sort:
            self._odd += 1
            return None
        t_ns = stamp.ns + self._shift
        if stamp.yearless:
            t_ns = self._dated(stamp.ns)
        if not 0 <= t_ns < _LATEST:
            self._odd += 1
            return None
        first, last = self.span
        self.span = (t_ns if first is None else min(first, t_ns), t_ns if last is None else max(last, t_ns))
        return t_ns

    def notes(self) -> list[tuple[str, str, int]]:
        """Return word, sentence and count of what is to be said about the times."""
        said = []
        if self._anchored:
            said.append(("clock-inferred", self._anchored, 1))
        if self._odd:
            said.append(("no-clock", "lines have no time on the clock of this log", self._odd))
        return said

    def _anchor(self, declared: Declared, first: Stamp) -> bool:
        if declared.begin_ns is None or declared.end_ns is None:
            return False
        years = [0]
        if first.yearless:
            window = {_year(declared.begin_ns), _year(declared.end_ns)}
            years = sorted({year + step for year in window for step in (-1, 0, 1)}, key=lambda y: (y not in window, y))
        for offset in _OFFSETS:
            for year in years:
                t_ns = (_in_year(first.ns, year) if year else first.ns) - offset * _SECOND
                if declared.begin_ns - _SLACK <= t_ns <= declared.end_ns + _SLACK:
                    self._shift, self._years = -offset * _SECOND, year
                    sign = "-" if offset < 0 else "+"
                    zone = f"UTC{sign}{abs(offset) // 3600:02}:{abs(offset) % 3600 // 60:02}"
                    self._anchored = f"its times have no zone: {zone} puts the first line into the declared window"
                    return True
        return False

    def _dated(self, ns: int) -> int:
        """Return the time of a stamp without year: of the year that the log has reached."""
        t_ns = _in_year(ns, self._years) + self._shift
        if self._last is not None and t_ns < self._last - 180 * 86400 * _SECOND:
            self._years += 1
            t_ns = _in_year(ns, self._years) + self._shift
        self._last = t_ns
        return t_ns


def _year(ns: int) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=ns // _SECOND)).year


def _in_year(ns: int, year: int) -> int:
    """Return the same month, day and hour in another year; 29 February becomes 1 March where there is none."""
    seconds, rest = divmod(ns, _SECOND)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    try:
        moment = moment.replace(year=year)
    except ValueError:
        moment = moment.replace(year=year, month=3, day=1)
    return timegm(moment.timetuple()) * _SECOND + rest
