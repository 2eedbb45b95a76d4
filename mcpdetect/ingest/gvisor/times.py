"""The times of gVisor's log: month, day and time of day, without year and zone."""

from __future__ import annotations

from calendar import timegm
from datetime import UTC, datetime

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.logclock import LogClock, Stamp
from mcpdetect.ingest.strace.header import Timekeeper

__all__ = ["Times"]

_SECOND = 10**9


class Times:
    """Turns stamps into integer nanoseconds.

    They count from 1970 where a declared window tells the year and the zone, from the first midnight otherwise.

    Args:
        declared: what a manifest says.
    """

    def __init__(self, declared: Declared | None) -> None:
        self._declared = declared or Declared()
        self._clock: LogClock | None = None
        self._keeper = Timekeeper()
        self._days: dict[tuple[int, int], int | None] = {}

    def read(self, month: int, day: int, time: str) -> int | None:
        """Return the time of a line, ``11``, ``30``, ``15:16:50.294446``; None for no such day."""
        if (month, day) not in self._days:
            try:
                self._days[month, day] = timegm(datetime(2024, month, day, tzinfo=UTC).timetuple())
            except ValueError:
                self._days[month, day] = None
        midnight = self._days[month, day]
        hour, minute, second = int(time[:2]), int(time[3:5]), int(time[6:8])
        if midnight is None or hour > 23 or minute > 59 or second > 60:
            return None
        if self._declared.begin_ns is None or self._declared.end_ns is None:
            return self._keeper.read(time)
        ns = (midnight + hour * 3600 + minute * 60 + second) * _SECOND + int(time[9:].ljust(9, "0"))
        stamp = Stamp("local", ns, 0, yearless=True)
        if self._clock is None:
            self._clock = LogClock(self._declared, stamp)
        if self._clock.clock == "none":
            return self._keeper.read(time)
        return self._clock.time(stamp)

    def keeper(self) -> Timekeeper:
        """Return the clock and the window as the description of a log needs them."""
        if self._clock is None or self._clock.clock == "none":
            return self._keeper
        begin, end = self._clock.span
        return Timekeeper(clock=self._clock.clock, begin=begin, end=end)

    def remarks(self) -> list[tuple[str, str, int]]:
        """Return word, sentence and count of what is to be said about the times."""
        return self._clock.notes() if self._clock is not None and self._clock.clock != "none" else []
