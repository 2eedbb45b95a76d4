"""A set of files written by ``strace -ff``: one a thread, the tid in the name, no pid in the lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.opener import open_evidence
from mcpdetect.ingest.strace.account import Account
from mcpdetect.ingest.strace.calls import needed_calls
from mcpdetect.ingest.strace.core import Core
from mcpdetect.ingest.strace.header import HEADER, Timekeeper, fast_header, looks_like_strace
from mcpdetect.ingest.strace.hits import Hit, Picker
from mcpdetect.ingest.strace.member import Member, SplitFile, first_key
from mcpdetect.ingest.strace.watch import Totals, describe
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation

__all__ = ["StraceFiles"]

_SUFFIX = re.compile(r"\.(\d{1,7})(?:\.gz|\.zst)?\Z", re.ASCII)
_KEEP_OPEN = 128
_HEAD = 1 << 13


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
        self._starts: list[str] = []
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
                self._starts.append("")
                self._plain.append(True)
                continue
            with open_evidence(path, name) as stream:
                head = stream.read_exactly(_HEAD).decode("latin-1")
                self._plain.append(not stream.compressed)
            some = some or looks_like_strace(head)
            self._headers.append(fast_header(head.rpartition("\n")[0] or head, pids=False))
            self._starts.append(first_key(self._headers[-1], head))
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
        needed = needed_calls(kinds)
        picker = Picker(core, needed, kinds, whole=True)
        keepers = [Timekeeper() for _ in self._paths]
        files = [SplitFile(self._member(index), picker, keepers[index], core.names) for index in range(len(keepers))]
        out = core.recorder.out
        count = 0
        if not self._timed and len(files) > 1:
            core.account.add("no-order", "without times the order between the files is unknown", note=True)
        for hits in _by_time(files) if self._timed else _by_birth(files, core):
            picker.take(hits)
            picker.refresh()
            if len(out) > 1:
                ready = out[:-1]  # a stack may still follow the last call
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
        self._observation.counts["events"] = count + len(out) + core.recorder.passed
        yield from out[:]

    def _member(self, index: int) -> Member:
        return Member(
            index,
            self._paths[index],
            self._names[index],
            self._tids[index],
            self._headers[index],
            self._starts[index],
            self._plain[index] and len(self._paths) > _KEEP_OPEN,
            self._timed,
        )


def _by_time(files: list[SplitFile]) -> Iterator[list[Hit]]:
    """Yield the lines of all files in the order of time, those of one file in its own order.

    Of every file that has begun one block is held. What comes before the first end of a block is complete.
    """
    waiting = sorted((file.bound for file in files), reverse=True)
    live: list[SplitFile] = []
    while waiting or live:
        live = [file for file in live if file.ready or file.load()]
        bound = min((file.bound for file in live), default=None)
        while waiting and (bound is None or waiting[-1] <= bound):
            file = files[waiting.pop()[1]]
            if file.load():
                live.append(file)
                bound = file.bound if bound is None else min(bound, file.bound)
        hits: list[Hit] = []
        for file in live:
            hits += file.take(bound)
        hits.sort()
        yield hits


def _by_birth(files: list[SplitFile], core: Core) -> Iterator[list[Hit]]:
    """Yield the lines of one file after another: those that nobody gave birth to first, then their children."""
    left = {file.tid: file for file in files}
    while left:
        tid = next((tid for tid in left if tid in core.world.threads), None)
        if tid is None:
            tid = min(left, key=int)
        file = left.pop(tid)
        while file.load():
            yield file.take()
