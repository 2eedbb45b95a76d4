"""Reads the blocks of a regular log: one pass of one pattern picks the lines that matter."""

from __future__ import annotations

from itertools import repeat

from mcpdetect.ingest.strace.core import Core
from mcpdetect.ingest.strace.header import Timekeeper, ns_of
from mcpdetect.ingest.strace.hits import GROUPS, Picker, lines_of, with_epoch
from mcpdetect.ingest.strace.lines import LineFeeder

__all__ = ["FastReader"]


class FastReader:
    """Picks the lines that matter out of blocks of a regular log.

    Args:
        header: the pattern of what stands before every call (see ``fast_header``).
        core: what takes the calls.
        times: the log's clock.
        feeder: the reader of single lines, which has read the blocks before.
        kinds: the event kinds wanted.
    """

    def __init__(self, header: str, core: Core, times: Timekeeper, feeder: LineFeeder, kinds: frozenset[str]) -> None:
        self._header = header
        # Times of -ttt are left as text until somebody asks for one.
        self._strict = with_epoch(header)
        self._file = core.file
        self._times = times
        self._feeder = feeder
        # Only a log without pids has to learn one from getpid.
        self._picker = Picker(core, feeder.needed - {"getpid"}, kinds)

    def feed(self, block: str) -> bool:
        """Take a block; return False, with nothing done, when it needs a reader of single lines."""
        picker = self._picker
        parts = None if self._strict is None else picker.split(self._strict, block)
        if parts is None:
            # With times of another form an odd line may still be a plain one.
            self._strict = None
            parts = picker.split(self._header, block)
            if parts is None:
                return False
        read = None if self._strict is not None else self._times.read
        columns = (parts[column::GROUPS] for column in range(1, GROUPS))
        lines = lines_of(parts, self._feeder.line)
        picker.take(zip(repeat(""), repeat(0), lines, *columns, repeat(self._file), strict=False), read)
        if read is None:
            self._times.reached(ns_of(picker.latest(parts) or None) or 0)
        self._feeder.line += block.count("\n") + 1
        picker.refresh()
        return True
