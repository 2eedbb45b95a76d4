"""Reads the blocks of a regular log: one pass of one pattern picks the lines that matter."""

from __future__ import annotations

import re

from mcpdetect.ingest.strace.calls import CONDITIONS, UNHALVED, pattern_of
from mcpdetect.ingest.strace.core import CLONES, MOST_PENDING, UNFINISHED, Core, Half
from mcpdetect.ingest.strace.express import EXPRESS
from mcpdetect.ingest.strace.header import EPOCH, Moment, Timekeeper, ns_of
from mcpdetect.ingest.strace.lines import LineFeeder
from mcpdetect.model.kinds import CALL_KINDS
from mcpdetect.model.place import Where

__all__ = ["FastReader"]

_MARKER = " <unfinished ...>"
_MOST_IDLE = 4000  # a new pattern takes as long to build as so many hits to pass over
_GROUPS = 7  # the text between two hits, and the groups of a hit (see ``pattern_of``)


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
        self._core = core
        self._times = times
        self._feeder = feeder
        self._kinds = kinds
        # Only a log without pids has to learn one from getpid.
        self._needed = feeder.needed - {"getpid"}
        self._express = {name: reader for name, reader in EXPRESS.items() if name in self._needed}
        self._idle = 0  # hits that turned out not to matter since the pattern was built
        # Times of -ttt are left as text until somebody asks for one.
        self._strict = _with_epoch(header)
        self._pattern = self._build()

    def _build(self) -> re.Pattern[str]:
        pending = self._core.pending
        followed = self._needed if "file.probe" in self._kinds else self._needed - UNHALVED
        for tid in [tid for tid, half in pending.items() if half.name not in followed]:
            del pending[tid]
        seen = frozenset(self._core.names)
        self._unseen = frozenset(CALL_KINDS.keys() - seen)
        self._idle = 0
        return pattern_of(self._strict or self._header, self._needed | self._unseen, self._kinds, seen)

    def feed(self, block: str) -> bool:
        """Take a block; return False, with nothing done, when it needs a reader of single lines."""
        parts = self._pattern.split("\n" + block)
        if len(parts) > 1 and parts[-1 - _GROUPS + 1] is None:
            if self._strict is None:
                return False
            # A line is odd: with times of another form it may still be a plain one.
            self._strict = None
            self._pattern = self._build()
            return self.feed(block)
        names = self._core.names
        names.update(parts[3::_GROUPS])
        names.update(parts[4::_GROUPS])
        names.discard(None)
        self._take(parts)
        self._feeder.line += block.count("\n") + 1
        if self._unseen and not self._unseen.isdisjoint(names):
            fresh = self._unseen & names
            if self._idle > _MOST_IDLE or not fresh.isdisjoint(CONDITIONS):
                self._pattern = self._build()
        return True

    def _take(self, parts: list[str]) -> None:
        """Take the hits of a block: between two of them stands what the pattern passed over."""
        core = self._core
        recorder = core.recorder
        out = recorder.out
        file = core.file
        threads = core.world.threads
        pending = core.pending
        needed = self._needed
        express = self._express
        strict = self._strict is not None
        read_time = self._times.read
        line = self._feeder.line
        top = ""  # the latest time as text
        last = (0, 0, 0)  # of the last call read by express: its line, its events in ``out``
        each = iter(parts)
        for between, pid, time, resumed, name, mark, rest in zip(*(each,) * _GROUPS, strict=False):
            line += between.count("\n") + 1 if between else 1
            called = name or resumed
            reader = express.get(called)
            if (
                reader is None
                and called is not None
                and (called not in needed or (name is None and called in UNHALVED and pid not in pending))
            ):
                self._idle += 1
                continue
            if strict:
                moment: Moment = time
                if time > top:
                    top = time
            else:
                moment = read_time(time or None)
            if name is not None:
                if rest[-4:] == "...>":
                    if rest.endswith(_MARKER):
                        rest = rest[:-17]
                    else:
                        marker = UNFINISHED.search(rest)
                        if marker is None:
                            core.whole(pid, line, ns_of(moment), name, rest)
                            continue
                        rest = rest[: marker.start()]
                    thread = threads.get(pid)
                    if (
                        thread is None
                        or not thread.first
                        or pid in pending
                        or name in CLONES
                        or len(pending) >= MOST_PENDING
                    ):
                        core.unfinished(pid, line, ns_of(moment), name, rest)
                    else:
                        pending[pid] = Half(name, rest, line, moment, None, file)
                    continue
                thread = threads.get(pid)
                if thread is None or not thread.first or pid in pending:
                    core.whole(pid, line, ns_of(moment), name, rest)
                    continue
                if reader is not None:
                    size = len(out)
                    if reader(recorder, thread, file, line, None, moment, rest):
                        last = (line, size, len(out))
                        continue
                core.general(thread, Where(file, line), ns_of(moment), name, rest)
            elif resumed is not None:
                if reader is not None and rest[:1] == ")":
                    thread = threads.get(pid)
                    half = pending.get(pid)
                    if half is not None and half.name == resumed and thread is not None and thread.first:
                        text = half.text
                        text = (text[:-2] if text[-2:] == ", " else text) + rest
                        del pending[pid]
                        size = len(out)
                        if reader(recorder, thread, file, half.line, line, half.moment, text):
                            last = (line, size, len(out))
                        else:
                            core.general(thread, Where(file, half.line, line), half.t_ns, resumed, text)
                        continue
                core.resumed(pid, line, ns_of(moment), resumed, rest)
            else:
                core.exit(pid, line, ns_of(moment), f"{mark} {rest}")
        if top:
            self._times.reached(ns_of(top) or 0)
        if last[0] > core.last_line:
            core.last_line = last[0]
            core.last = out[last[1] : last[2]]


def _with_epoch(header: str) -> str | None:
    """Return a header pattern whose time can only be that of ``-ttt``, None where it is another."""
    time = r"(\d++\.\d++) "
    return header.removesuffix(time) + f"({EPOCH}) " if header.endswith(time) else None
