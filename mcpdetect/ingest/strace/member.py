"""One file of a set that ``strace -ff`` wrote, read a block at a time and taken a stretch at a time."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, repeat
from pathlib import Path

from mcpdetect.ingest.opener import Stream, open_evidence
from mcpdetect.ingest.strace.core import RESUMED, UNFINISHED
from mcpdetect.ingest.strace.header import EPOCH, HEADER, Moment, Timekeeper
from mcpdetect.ingest.strace.hits import GROUPS, Hit, Picker, lines_of, with_epoch
from mcpdetect.ingest.strace.reader import Blocks, Reopened
from mcpdetect.model.kinds import CALL_KINDS

__all__ = ["Member", "SplitFile", "first_key"]

_CALL = re.compile(r"([a-z_][a-z0-9_]*+)\(", re.ASCII)
_SMALL_BLOCK = 1 << 15
_TIMES = re.compile(rf"^{EPOCH}", re.ASCII | re.MULTILINE)
_TEN_DIGITS = 10**19


@dataclass(frozen=True, slots=True)
class Member:
    """What is known of a file of the set before it is read.

    Attributes:
        index: its number in the set.
        path, name, tid: the file, its name in places, its thread.
        header: what stands before every call (``fast_header``), None where that is not regular.
        start: no line of it has an earlier time than this (``first_key``).
        reopen: open it only while a block is read.
        timed: every file has times.
    """

    index: int
    path: Path
    name: str
    tid: str
    header: str | None
    start: str
    reopen: bool
    timed: bool


def first_key(header: str | None, head: str) -> str:
    """Return a time as ``SplitFile.bound`` has it that none of a file's first lines comes before, ``""`` if unknown."""
    if header is None or with_epoch(header) is None:
        return ""
    return min(_TIMES.findall(head), default="")


def _key_of(t_ns: int) -> str:
    """Return a time as text that sorts like the number, and among times of ``-ttt`` as well."""
    if t_ns >= _TEN_DIGITS:
        return f"~{t_ns:040d}"
    seconds, rest = divmod(t_ns, 1_000_000_000)
    return f"{seconds:010d}.{rest // 1000:06d}" if rest % 1000 == 0 else f"{seconds:010d}.{rest:09d}"


class SplitFile:
    """Lines of one file, in its own order.

    Attributes:
        index, tid: of the file.
        bound: time and number of the last line read so far: what comes later is sorted behind it.
        ready: lines were read and not yet taken.
        lines, size, cut_lines, damaged: totals, complete once the file is read.
    """

    def __init__(self, member: Member, picker: Picker, times: Timekeeper, names: set[str]) -> None:
        self.index = member.index
        self.tid = member.tid
        self.bound = (member.start, member.index)
        self.ready = False
        self.lines = 0
        self.size = 0
        self.cut_lines = 0
        self.damaged = ""
        self._member = member
        self._picker = picker
        self._times = times
        self._names = names
        self._strict = with_epoch(member.header) if member.header is not None else None
        self._header = member.header
        self._blocks: Blocks | None = None
        self._source: Reopened | Stream | None = None
        self._over = False
        self._last = ""
        self._at = 0
        self._keys: list[str] = []
        self._hits: list[Hit] = []

    def load(self) -> bool:
        """Read on until there is a line that matters; return False at the end of the file."""
        self._at = 0
        self._keys, self._hits = [], []
        while not self._over and not self._hits:
            blocks = self._blocks or self._open()
            if blocks is None:
                break
            block = blocks.next()
            if block is not None:
                self._read(block)
            else:
                if blocks.tail:
                    self._tail(blocks.tail)
                self._close(blocks)
        written = [hit[0] for hit in self._hits]
        # A line whose time is before that of the line above it follows that line all the same.
        self._keys = list(accumulate(written, max, initial=self._last))[1:]
        if self._keys != written:
            self._hits = [(key, *hit[1:]) for key, hit in zip(self._keys, self._hits, strict=True)]
        self.ready = bool(self._keys)
        if self.ready:
            self._last = self._keys[-1]
            self.bound = (self._last, self.index)
        return self.ready

    def take(self, bound: tuple[str, int] | None = None) -> list[Hit]:
        """Return the lines up to a time and number of a file, or all that were read."""
        at, stop = self._at, len(self._hits)
        if bound is not None:
            stop = (bisect_right if self.index <= bound[1] else bisect_left)(self._keys, bound[0], at)
        self._at = stop
        self.ready = stop < len(self._hits)
        return self._hits[at:stop]

    def _open(self) -> Blocks | None:
        member = self._member
        if member.path.is_file() and member.path.stat().st_size == 0:
            self._over = True
            return None
        self._source = Reopened(member.path) if member.reopen else open_evidence(member.path, member.name)
        small = member.reopen or member.header is None
        self._blocks = Blocks(self._source, _SMALL_BLOCK) if small else Blocks(self._source)
        return self._blocks

    def _close(self, blocks: Blocks) -> None:
        self._over = True
        self.size = blocks.size
        self.cut_lines = blocks.cut_lines
        self._blocks = None
        if self._source is not None:
            self.damaged = self._source.damaged
            if isinstance(self._source, Stream):
                self._source.close()

    def _read(self, block: str) -> None:
        parts = self._picker.split(self._strict, block) if self._strict is not None else None
        strict = parts is not None
        if parts is None and self._header is not None:
            self._strict = None
            parts = self._picker.split(self._header, block)
        if parts is None:
            self._header = None
            for text in block.split("\n"):
                self.lines += 1
                self._line(text)
            return
        lines = lines_of(parts, self.lines)
        self.lines += block.count("\n") + 1
        keys = parts[2::GROUPS]
        moments: Iterable[Moment] = keys
        if strict and keys:
            self._times.spans(keys[0], max(keys))
        elif not strict:
            read = self._times.read
            numbers = [read(time or None) or 0 for time in keys]
            moments, keys = numbers, [_key_of(t_ns) for t_ns in numbers]
        if not self._member.timed:
            moments = repeat(None)
        member = self._member
        columns = (parts[column::GROUPS] for column in range(3, GROUPS))
        self._hits = list(
            zip(keys, repeat(self.index), lines, repeat(self.tid), moments, *columns, repeat(member.name), strict=False)
        )

    def _add(self, t_ns: int, what: str, text: str) -> None:
        moment = t_ns if self._member.timed else None
        self._hits.append(
            (_key_of(t_ns), self.index, self.lines, self.tid, moment, None, None, what, text, self._member.name)
        )

    def _line(self, text: str) -> None:
        if text.startswith(" > "):
            self._add(self._times.end or 0, "frame", text)
            return
        header = HEADER.match(text)
        if header is None:
            return
        rest = text[header.end() :]
        t_ns = self._times.read(header["time"], header["step1"] or header["step2"]) or 0
        match = _CALL.match(rest)
        if match is not None:
            self._call(t_ns, match[1], rest)
            return
        match = RESUMED.match(rest)
        if match is not None:
            self._add(t_ns, "resumed", f"{match[1]}({rest[match.end() :]}")
        elif rest.startswith("+++ ") and rest.endswith(" +++"):
            self._add(t_ns, "+++", rest[4:])
        elif not rest.startswith(("--- ", "???(", "strace: ")):
            self._add(t_ns, "bad", text)

    def _call(self, t_ns: int, name: str, rest: str) -> None:
        self._names.add(name)
        matters = name in self._picker.needed
        if not matters and name in CALL_KINDS:
            return
        marker = UNFINISHED.search(rest) if rest.endswith("...>") else None
        if marker is not None:
            self._add(t_ns, "unfinished", rest[: marker.start()])
        elif matters or name.startswith("syscall_"):
            self._add(t_ns, "call", rest)

    def _tail(self, text: str) -> None:
        self.lines += 1
        header = HEADER.match(text)
        rest = text[header.end() :] if header else text
        if rest.startswith("+++ ") and rest.endswith(" +++"):
            self._line(text)
            return
        t_ns = (self._times.read(header["time"]) if header else None) or self._times.end or 0
        self._add(t_ns, "cut", rest if _CALL.match(rest) else f"({rest}")
