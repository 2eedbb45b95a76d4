"""Reads the blocks of a regular log: one pass of one pattern picks the lines that matter."""

from __future__ import annotations

import re

from mcpdetect.ingest.strace.calls import UNHALVED, pattern_of
from mcpdetect.ingest.strace.core import UNFINISHED, Core
from mcpdetect.ingest.strace.express import EXPRESS
from mcpdetect.ingest.strace.header import Timekeeper
from mcpdetect.ingest.strace.lines import LineFeeder
from mcpdetect.model.kinds import CALL_KINDS
from mcpdetect.model.place import Where

__all__ = ["FastReader"]

_MARKER = " <unfinished ...>"


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
        self._blocks = 0
        self._rebuild_at = 0
        self._pattern = self._build()

    def _build(self) -> re.Pattern[str]:
        pending = self._core.pending
        followed = self._needed if "file.probe" in self._kinds else self._needed - UNHALVED
        for tid in [tid for tid, half in pending.items() if half.name not in followed]:
            del pending[tid]
        seen = frozenset(self._core.names)
        self._unseen = frozenset(CALL_KINDS.keys() - seen)
        self._rebuild_at = self._blocks * 2 + 1
        return pattern_of(self._header, self._needed | self._unseen, self._kinds, seen)

    def feed(self, block: str) -> bool:
        """Take a block; return False, with nothing done, when it needs a reader of single lines."""
        text = "\n" + block
        hits = list(self._pattern.finditer(text))
        if hits and hits[-1].lastindex is None:
            return False
        core = self._core
        recorder = core.recorder
        out = recorder.out
        file = core.file
        threads = core.world.threads
        pending = core.pending
        names = core.names
        needed = self._needed
        express = EXPRESS
        count = text.count
        times = self._times
        high = times.high
        line = self._feeder.line
        before = 0
        last = (0, 0, 0)  # of the last call read by express: its line, its events in ``out``
        for hit in hits:
            start = hit.start() + 1
            line += count("\n", before, start)
            before = start
            pid, time, name, resumed, mark, rest = hit.groups()
            if name is not None:
                names.add(name)
                if name not in needed:
                    continue
            elif resumed is not None:
                names.add(resumed)
                if resumed not in needed or (pid not in pending and resumed in UNHALVED):
                    continue
            if len(time) == 17 and time[10] == ".":
                # 1796037399.316142
                t_ns: int | None = int(time.replace(".", "")) * 1000
                if t_ns > high:  # type: ignore[operator]
                    high = t_ns  # type: ignore[assignment]
            else:
                times.reached(high)
                t_ns = times.read(time or None)
            if name is None:
                if resumed is not None:
                    core.resumed(pid, line, t_ns, resumed, rest)
                else:
                    core.exit(pid, line, t_ns, f"{mark} {rest}")
                continue
            if rest.endswith("...>"):
                if rest.endswith(_MARKER):
                    core.unfinished(pid, line, t_ns, name, rest[: -len(_MARKER)])
                    continue
                marker = UNFINISHED.search(rest)
                if marker is not None:
                    core.unfinished(pid, line, t_ns, name, rest[: marker.start()])
                    continue
            thread = threads.get(pid)
            if thread is None or not thread.first or pid in pending:
                core.whole(pid, line, t_ns, name, rest)
                continue
            where = Where(file, line)
            reader = express.get(name)
            if reader is not None:
                size = len(out)
                if reader(recorder, thread, where, t_ns, rest):
                    last = (line, size, len(out))
                    continue
            core.general(thread, where, t_ns, name, rest)
        times.reached(high)
        if last[0] > core.last_line:
            core.last_line = last[0]
            core.last = out[last[1] : last[2]]
        self._feeder.line = line + count("\n", before)
        self._blocks += 1
        if self._blocks >= self._rebuild_at and self._unseen & names:
            self._pattern = self._build()
        return True
