"""The lines of a regular log that matter, picked out of a block by one pattern, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, count, repeat
from operator import add

from mcpdetect.ingest.strace.calls import UNHALVED, conditions, pattern_of
from mcpdetect.ingest.strace.core import CLONES, MOST_PENDING, UNFINISHED, Core, Half
from mcpdetect.ingest.strace.express import EXPRESS
from mcpdetect.ingest.strace.header import EPOCH, Moment, ns_of
from mcpdetect.model.kinds import CALL_KINDS
from mcpdetect.model.place import Where

__all__ = ["GROUPS", "Hit", "Picker", "lines_of", "with_epoch"]

GROUPS = 7
"""Columns of a block that the pattern split: the text between two hits, then the groups of a hit (``pattern_of``)."""
Hit = tuple[str, int, int, str, Moment, str | None, str | None, str | None, str, str]
"""What hits of several files are sorted by (time and number of the file), line, tid, time, name of a second half, name
of a call or first half, ``+++`` or what else the line is, the rest of the line, file."""

_MARKER = " <unfinished ...>"
_MOST_IDLE = 4000  # a new pattern takes as long to build as so many hits to pass over


class Picker:
    """Picks lines and hands them to a ``Core``.

    Args:
        core: what takes the calls.
        needed: names of calls that matter.
        kinds: the event kinds wanted.
        whole: look at every line of a call that matters, whatever its arguments.

    Attributes:
        needed: names of calls that matter.
    """

    def __init__(self, core: Core, needed: frozenset[str], kinds: frozenset[str], *, whole: bool = False) -> None:
        self._core = core
        self.needed = needed
        self._kinds = kinds
        self._conditional = frozenset() if whole else frozenset(conditions(kinds))
        self._express = {name: reader for name, reader in EXPRESS.items() if name in needed}
        self._unseen: frozenset[str] = frozenset()
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._idle = 0  # hits that turned out not to matter since patterns were built
        self._idle_before = 0  # as of before the last that were taken
        self.renew()

    def renew(self) -> None:
        """Pass over lines by the names seen so far; halves of calls that do not matter are forgotten."""
        pending = self._core.pending
        followed = self.needed if "file.probe" in self._kinds else self.needed - UNHALVED
        for tid in [tid for tid, half in pending.items() if half.name not in followed]:
            del pending[tid]
        self._unseen = frozenset(CALL_KINDS.keys() - self._core.names)
        self._patterns.clear()
        self._idle = 0

    def split(self, header: str, block: str) -> list[str] | None:
        """Return the columns of a block one after another, None where a line of it is not regular."""
        pattern = self._patterns.get(header)
        if pattern is None:
            held = self._conditional - self._unseen
            pattern = pattern_of(header, self.needed | self._unseen, self._kinds, held)
            self._patterns[header] = pattern
        parts: list[str] = pattern.split("\n" + block)
        if len(parts) > 1 and parts[1 - GROUPS] is None:
            return None
        names = self._core.names
        names.update(parts[3::GROUPS])
        names.update(parts[4::GROUPS])
        names.discard(None)
        return parts

    def refresh(self) -> None:
        """Build a new pattern where that is worth it: call between blocks."""
        if self._unseen and not self._unseen.isdisjoint(self._core.names):
            fresh = self._unseen & self._core.names
            if self._idle > _MOST_IDLE or not fresh.isdisjoint(self._conditional):
                self.renew()

    def latest(self, parts: list[str]) -> str:
        """Return the latest time, as written, of the hits of a block that matter, ``""`` where none does."""
        if self._idle == self._idle_before:
            return max(parts[2::GROUPS], default="")
        needed = self.needed
        columns = zip(parts[2::GROUPS], parts[3::GROUPS], parts[4::GROUPS], strict=True)
        return max((time for time, resumed, name in columns if (resumed or name or "exit") in needed), default="")

    def take(self, hits: Iterable[Hit], read: Callable[[str | None], int | None] | None = None) -> None:
        """Take hits in the order of time.

        Args:
            hits: their times are those of ``-ttt`` as written, or nanoseconds, or None.
            read: reads times of another form.
        """
        core = self._core
        recorder = core.recorder
        out = recorder.out
        file = core.file
        threads = core.world.threads
        pending = core.pending
        needed = self.needed
        express = self._express
        self._idle_before = self._idle
        last = (0, 0, 0)  # of the last call read by express: its line, its events in ``out``
        for _, _, line, pid, moment, resumed, name, mark, rest, now in hits:
            if now is not file:
                core.file = file = now
            called = name or resumed
            reader = express.get(called)  # type: ignore[arg-type]
            if (
                reader is None
                and called is not None
                and (called not in needed or (name is None and called in UNHALVED and pid not in pending))
            ):
                self._idle += 1
                continue
            if read is not None:
                moment = read(moment or None)  # type: ignore[arg-type]
            if name is not None:
                thread = threads.get(pid)
                if rest[-4:] == "...>":
                    if rest.endswith(_MARKER):
                        rest = rest[:-17]
                    else:
                        marker = UNFINISHED.search(rest)
                        if marker is None:
                            core.whole(pid, line, ns_of(moment), name, rest)
                            continue
                        rest = rest[: marker.start()]
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
                half = pending.get(pid)
                if reader is not None and half is not None and half.name == resumed and rest[:1] != " ":
                    thread = threads.get(pid)
                    if thread is not None and thread.first and half.file == file:
                        text = half.text
                        text = text[:-2] + rest if rest[:1] == ")" and text[-2:] == ", " else text + rest
                        del pending[pid]
                        size = len(out)
                        if reader(recorder, thread, file, half.line, line, half.moment, text):
                            last = (line, size, len(out))
                        else:
                            core.general(thread, Where(file, half.line, line), half.t_ns, resumed, text)
                        continue
                core.resumed(pid, line, ns_of(moment), resumed, rest)
            elif mark == "+++":
                core.exit(pid, line, ns_of(moment), f"+++ {rest}")
            else:
                if last[0]:
                    core.last_line, core.last = last[0], out[last[1] : last[2]]
                    last = (0, 0, 0)
                self._odd(pid, line, ns_of(moment), mark, rest)
        if last[0] > core.last_line:
            core.last_line = last[0]
            core.last = out[last[1] : last[2]]

    def _odd(self, tid: str, line: int, t_ns: int | None, what: str | None, text: str) -> None:
        """Take a line of a file that is not regular: a call is written as in a log, other text as it stands."""
        core = self._core
        name, _, rest = text.partition("(")
        if what == "call":
            core.whole(tid, line, t_ns, name, rest)
        elif what == "unfinished":
            core.unfinished(tid, line, t_ns, name, rest)
        elif what == "resumed":
            core.resumed(tid, line, t_ns, name, rest)
        elif what == "frame":
            core.frame(line, text)
        elif what == "cut":
            if name:
                core.cut_tail(tid, line, t_ns, name, rest)
            core.account.add("file-truncated", "a file ends in the middle of a line", core.place(line))
        else:
            core.bad_line(line, text, "no line of strace")


def lines_of(parts: list[str], before: int) -> Iterator[int]:
    """Yield the line of each hit of a block; ``before`` lines were read before it."""
    return map(add, accumulate(map(str.count, parts[::GROUPS], repeat("\n"))), count(before + 1))


def with_epoch(header: str) -> str | None:
    """Return a header pattern whose time can only be that of ``-ttt``, None where it is another."""
    time = r"(\d++\.\d++) "
    return header.removesuffix(time) + f"({EPOCH}) " if header.endswith(time) else None
