"""A set of files written by ``strace -ff``: one a thread, the tid in the name, no pid in the lines."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.opener import Stream, open_evidence
from mcpdetect.ingest.strace.account import Account
from mcpdetect.ingest.strace.calls import needed_calls, pattern_of
from mcpdetect.ingest.strace.core import RESUMED, UNFINISHED, Core
from mcpdetect.ingest.strace.header import HEADER, Timekeeper, fast_header, looks_like_strace
from mcpdetect.ingest.strace.reader import Blocks, Reopened
from mcpdetect.ingest.strace.watch import Totals, describe
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import CALL_KINDS, EVENT_TYPES
from mcpdetect.model.observation import Observation

__all__ = ["StraceFiles"]

_CALL = re.compile(r"([a-z_][a-z0-9_]*+)\(", re.ASCII)
_SUFFIX = re.compile(r"\.(\d{1,7})(?:\.gz|\.zst)?\Z", re.ASCII)
_KEEP_OPEN = 128
_SMALL_BLOCK = 1 << 15
_HEAD = 1 << 13

# time, number of the file, line, what it is, call name, text
_Record = tuple[int, int, int, str, str, str]


class StraceFiles:
    """The files of one ``strace -ff -o NAME``, read as one trace.

    With times the files are merged by time. Without, the order between files is unknown: each file is read whole, a
    parent's before its children's.

    Args:
        paths: the files, ``NAME.<tid>``, compressed or not.
        names: their names in places, in the same order; the paths by default.
        declared: what a manifest says.

    Raises:
        InputError: there is no file, one has no tid in its name, cannot be opened, or is no strace output.
    """

    def __init__(
        self, paths: Iterable[Path], names: Iterable[str] | None = None, declared: Declared | None = None
    ) -> None:
        self._paths = list(paths)
        self._names = list(names) if names is not None else [str(path) for path in self._paths]
        self._declared = declared
        if not self._paths:
            raise InputError("no file of a split strace log was given")
        self._tids: list[str] = []
        self._headers: list[str | None] = []
        self._timed = True
        self._plain: list[bool] = []
        some = False
        for path, name in zip(self._paths, self._names, strict=True):
            found = _SUFFIX.search(path.name)
            if found is None:
                raise UnknownFormat(
                    "has no thread id at the end of its name", file=name, cause="it was not written by strace -ff"
                )
            self._tids.append(found[1])
            if path.is_file() and path.stat().st_size == 0:
                # a thread that was killed before its first line
                self._headers.append(None)
                self._plain.append(True)
                continue
            with open_evidence(path, name) as stream:
                head = stream.read_exactly(_HEAD).decode("latin-1")
                self._plain.append(not stream.compressed)
            some = some or looks_like_strace(head)
            self._headers.append(fast_header(head.rpartition("\n")[0] or head, pids=False))
            first = HEADER.match(head)
            self._timed = self._timed and first is not None and first["time"] is not None
        if not some:
            raise UnknownFormat("is not strace output", file=self._names[0])
        source = self._names[0][: -len(self._tids[0]) - 1] if len(self._names) > 1 else self._names[0]
        self._observation = Observation("syscalls", source, "strace")

    @property
    def observation(self) -> Observation:
        """What the files can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the events of the wanted kinds (None: all), in the order of time where there are times."""
        kinds = frozenset(EVENT_TYPES) if wanted is None else wanted
        core = Core(self._observation.source, kinds, Account())
        keepers = [Timekeeper() for _ in self._paths]
        files = [_File(self, index, core, kinds, keepers[index]) for index in range(len(self._paths))]
        out = core.recorder.out
        count = 0
        records: Iterator[_Record]
        if self._timed:
            records = heapq.merge(*(file.records() for file in files))
        else:
            records = self._by_birth(files, core)
            if len(files) > 1:
                core.account.add("no-order", "without times the order between the files is unknown", note=True)
        for time, index, line, what, name, text in records:
            file = files[index]
            core.file = self._names[index]
            _apply(core, file, time if self._timed else None, line, what, name, text)
            if len(out) > 256:
                ready = out[:-1]
                del out[:-1]
                count += len(ready)
                yield from ready
                core.prune()
        times = Timekeeper(clock=keepers[0].clock)
        times.begin = min((keeper.begin for keeper in keepers if keeper.begin is not None), default=None)
        times.end = max((keeper.end for keeper in keepers if keeper.end is not None), default=None)
        if not self._timed:
            times = Timekeeper()
        totals = Totals(
            sum(file.lines for file in files),
            sum(file.size for file in files),
            sum(file.cut_lines for file in files),
            next((file.damaged for file in files if file.damaged), ""),
        )
        describe(self._observation, core, times, totals, self._declared)
        self._observation.counts["files"] = len(files)
        self._observation.counts["events"] = count + len(out)
        yield from out[:]

    def _by_birth(self, files: list[_File], core: Core) -> Iterator[_Record]:
        """Yield the files one after another: those that nobody gave birth to first, then their children."""
        left = {file.tid: file for file in files}
        while left:
            tid = next((tid for tid in left if tid in core.world.threads), None)
            if tid is None:
                tid = min(left, key=int)
            yield from left.pop(tid).records()


def _apply(core: Core, file: _File, time: int | None, line: int, what: str, name: str, text: str) -> None:
    tid = file.tid
    if what == "call":
        if name in file.needed or name.startswith("syscall_"):
            core.whole(tid, line, time, name, text)
    elif what == "unfinished":
        core.unfinished(tid, line, time, name, text)
    elif what == "resumed":
        core.resumed(tid, line, time, name, text)
    elif what == "exit":
        core.exit(tid, line, time, text)
    elif what == "frame":
        core.frame(line, text)
    elif what == "cut":
        if name:
            core.cut_tail(tid, line, time, name, text)
        core.account.add("file-truncated", "a file ends in the middle of a line", core.place(line))
    else:
        core.bad_line(line, text, "no line of strace")


class _File:
    """One file of the set, read a block at a time."""

    def __init__(self, owner: StraceFiles, index: int, core: Core, kinds: frozenset[str], times: Timekeeper) -> None:
        self.tid = owner._tids[index]
        self.needed = needed_calls(kinds)
        self.lines = 0
        self.size = 0
        self.cut_lines = 0
        self.damaged = ""
        self._path = owner._paths[index]
        self._name = owner._names[index]
        self._header = owner._headers[index]
        self._reopen = owner._plain[index] and len(owner._paths) > _KEEP_OPEN
        self._index = index
        self._core = core
        self._kinds = kinds
        self._times = times
        self._order = 0

    def records(self) -> Iterator[_Record]:
        """Yield the lines that matter."""
        if self._path.is_file() and self._path.stat().st_size == 0:
            return
        source: Reopened | Stream
        source = Reopened(self._path) if self._reopen else open_evidence(self._path, self._name)
        small = self._reopen or self._header is None
        blocks = Blocks(source, _SMALL_BLOCK) if small else Blocks(source)
        seen = frozenset(self._core.names)
        unseen = frozenset(CALL_KINDS.keys() - seen)
        pattern = (
            pattern_of(self._header, self.needed | unseen, self._kinds, seen) if self._header is not None else None
        )
        while (block := blocks.next()) is not None:
            hits = list(pattern.finditer("\n" + block)) if pattern is not None else None
            if hits is None or any(hit.lastindex is None for hit in hits):
                pattern = None
                yield from self._slow(block)
            else:
                yield from self._quick(block, hits)
        if blocks.tail:
            yield from self._tail(blocks.tail)
        self.size = blocks.size
        self.cut_lines = blocks.cut_lines
        self.damaged = source.damaged
        if isinstance(source, Stream):
            source.close()

    def _quick(self, block: str, hits: list[re.Match[str]]) -> Iterator[_Record]:
        line, before = self.lines, -1
        names = self._core.names
        for hit in hits:
            # the text of the hits begins with a newline that the block does not have
            start = hit.start()
            line += block.count("\n", max(before, 0), start) + (1 if before < 0 else 0)
            before = start
            _, time, resumed, name, mark, rest = hit.groups()
            t_ns = self._times.read(time or None) or 0
            if name is not None:
                names.add(name)
                yield self._call(t_ns, line, name, rest)
            elif resumed is not None:
                names.add(resumed)
                yield t_ns, self._index, line, "resumed", resumed, rest
            else:
                yield t_ns, self._index, line, "exit", "", f"{mark} {rest}"
        self.lines += block.count("\n") + 1

    def _call(self, t_ns: int, line: int, name: str, rest: str) -> _Record:
        marker = UNFINISHED.search(rest) if rest.endswith("...>") else None
        if marker is not None:
            return t_ns, self._index, line, "unfinished", name, rest[: marker.start()]
        return t_ns, self._index, line, "call", name, rest

    def _slow(self, block: str) -> Iterator[_Record]:
        for text in block.split("\n"):
            self.lines += 1
            yield from self._one(text)

    def _one(self, text: str) -> Iterator[_Record]:
        line = self.lines
        if text.startswith(" > "):
            yield self._times.end or 0, self._index, line, "frame", "", text
            return
        header = HEADER.match(text)
        if header is None:
            return
        rest = text[header.end() :]
        t_ns = self._times.read(header["time"], header["step1"] or header["step2"]) or 0
        match = _CALL.match(rest)
        if match is not None:
            self._core.names.add(match[1])
            if match[1] in self.needed or match[1] not in CALL_KINDS:
                yield self._call(t_ns, line, match[1], rest[match.end() :])
            return
        match = RESUMED.match(rest)
        if match is not None:
            yield t_ns, self._index, line, "resumed", match[1], rest[match.end() :]
        elif rest.startswith("+++ ") and rest.endswith(" +++"):
            yield t_ns, self._index, line, "exit", "", rest
        elif not rest.startswith(("--- ", "???(", "strace: ")):
            yield t_ns, self._index, line, "bad", "", text

    def _tail(self, text: str) -> Iterator[_Record]:
        self.lines += 1
        header = HEADER.match(text)
        rest = text[header.end() :] if header else text
        if rest.startswith("+++ ") and rest.endswith(" +++"):
            yield from self._one(text)
            return
        t_ns = (self._times.read(header["time"]) if header else None) or self._times.end or 0
        match = _CALL.match(rest)
        name = match[1] if match is not None else ""
        yield t_ns, self._index, self.lines, "cut", name, rest[match.end() :] if match is not None else rest
