"""What adapters of text logs share: lines of bounded length, losses counted, the observation kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mcpdetect.errors import InputError
from mcpdetect.ingest.adapter import EXCERPT, Declared
from mcpdetect.ingest.logclock import LogClock, Stamp
from mcpdetect.ingest.opener import Stream, open_evidence
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Channel, Proof

__all__ = ["MAX_LINE", "Line", "LineSource", "LossBook", "TextLog"]

MAX_LINE = 1024 * 1024
"""Longest line read; the rest of a longer one is counted as a ``line-cut`` loss."""

_HEAD = 256 * 1024
_BLOCK = 128 * 1024


class LossBook:
    """Losses of one file by word and sentence, each counted, with its first place."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Loss] = {}

    def add(
        self,
        what: str,
        detail: str,
        where: Where | None = None,
        touches: tuple[str, ...] = (),
        *,
        note: bool = False,
        count: int = 1,
    ) -> None:
        """Count one loss; ``detail`` is one of a few fixed sentences, never evidence."""
        known = self._known.get((what, detail))
        if known is None:
            self._known[what, detail] = Loss(what, detail, count, where, list(touches), note)
        else:
            known.count += count

    def losses(self) -> list[Loss]:
        """Return them in the order first met."""
        return list(self._known.values())


@dataclass(slots=True)
class Line:
    """One line of a log.

    Attributes:
        at: its 1-based number.
        data: its bytes without the line end, at most ``MAX_LINE`` of them.
        cut: it was longer.
        ended: it had a line end; only the last line of a file can lack it.
    """

    at: int
    data: bytes
    cut: bool = False
    ended: bool = True


class LineSource:
    """The lines of one evidence file; the beginning can be looked at first, in a pipe too.

    Args:
        path: the file, compressed or not.
        name: its name in every place; the path otherwise.

    Attributes:
        head: the first bytes, at most 256 KiB.
        whole: ``head`` is the whole file.
        pipe: it can be read only once.

    Raises:
        InputError: it cannot be opened or is empty.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.name = name or str(path)
        self._path = path
        self._stream: Stream | None = open_evidence(path, self.name)
        self.head = self._stream.read_exactly(_HEAD)
        self.whole = len(self.head) < _HEAD
        self.damaged = self._stream.damaged
        self.pipe = not path.is_file()
        if not self.pipe:
            self._stream.close()
            self._stream = None
        if not self.head and not self.damaged:
            raise InputError(
                "is empty",
                file=self.name,
                cause="the recorder wrote nothing before it ended",
                hint="leave the flag out to say that this evidence does not exist",
            )

    @classmethod
    def of(cls, path: Path | LineSource, name: str | None = None) -> LineSource:
        """Return ``path`` opened, or as it is where it was opened before."""
        return path if isinstance(path, LineSource) else cls(path, name)

    def first_lines(self) -> list[bytes]:
        """Return the lines of the head without their ends; one that the head cuts is left out."""
        lines = self.head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if not self.whole and len(lines) > 1:
            lines.pop()
        return [line.removesuffix(b"\r") for line in lines]

    def content(self, most: int) -> bytes:
        """Return the whole file.

        Raises:
            InputError: it is longer than ``most`` bytes, or a pipe that was read already.
        """
        parts: list[bytes] = []
        size = 0
        for block in self._blocks():
            parts.append(block)
            size += len(block)
            if size > most:
                raise InputError(f"is longer than {most} bytes, too long to be read as one document", file=self.name)
        return b"".join(parts)

    def lines(self) -> Iterator[Line]:
        """Return every line; ``damaged`` says afterwards why a compressed file ended early.

        Raises:
            InputError: a pipe is read a second time.
        """
        return _lines(self._blocks())

    def _blocks(self) -> Iterator[bytes]:
        if self.pipe and self._stream is None:
            raise InputError("was read already", file=self.name, cause="it is a pipe", hint="give a file")
        stream, block = (self._stream, self.head) if self._stream else (open_evidence(self._path, self.name), b"")
        self._stream = None
        with stream:
            block = block or stream.read(_BLOCK)
            while block:
                yield block
                block = stream.read(_BLOCK)
            self.damaged = stream.damaged


def _lines(blocks: Iterator[bytes]) -> Iterator[Line]:
    at, size = 0, 0
    parts: list[bytes] = []
    for block in blocks:
        *whole, rest = block.split(b"\n")
        for piece in whole:
            at += 1
            yield _line(at, [*parts, piece], size + len(piece), ended=True)
            parts, size = [], 0
        if size <= MAX_LINE:
            parts.append(rest)
        size += len(rest)
    if size:
        yield _line(at + 1, parts, size, ended=False)


def _line(at: int, parts: list[bytes], size: int, *, ended: bool) -> Line:
    data = b"".join(parts) if len(parts) > 1 else parts[0]
    if at == 1:
        data = data.removeprefix(b"\xef\xbb\xbf")
    return Line(at, data[:MAX_LINE].removesuffix(b"\r"), size > MAX_LINE, ended)


class TextLog:
    """Base of the adapters that read a log line by line.

    A subclass reads one line in ``_line``, says what was watched in ``_watched``, and may add to ``_finish``. ``kinds``
    are the event kinds that a lost line may have held, ``shows`` those of them whose absence means something (all of
    them where it is empty).

    Args:
        path: the file, or its source where the beginning was looked at already.
        name: its name in every place; the path otherwise.
        declared: what a manifest says about it.

    Raises:
        InputError: it cannot be opened, or is no such log.
    """

    channel: ClassVar[Channel]
    format: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    shows: ClassVar[tuple[str, ...]] = ()
    counted: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: Path | LineSource, name: str | None = None, declared: Declared | None = None) -> None:
        self._source = LineSource.of(path, name)
        self._name = self._source.name
        self._declared = declared
        self._first = self._look()
        self._begin()

    @property
    def observation(self) -> Observation:
        """What the file can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the events of the wanted kinds in the order of the lines."""
        self._begin()
        for line in self._source.lines():
            self._counts["lines"] += 1
            for event in self._read(line):
                self._counts["events"] += 1
                self._counts["unparsed"] += event.kind == "unparsed"
                if wanted is None or event.kind in wanted:
                    yield event
        for event in self._rest():
            self._counts["events"] += 1
            if wanted is None or event.kind in wanted:
                yield event
        if self._source.damaged:
            self._book.add("file-truncated", "the compressed stream broke off", None, self.kinds)
        self._end()

    def _look(self) -> Stamp | None:
        """Look at the head; return its first time stamp, or raise ``UnknownFormat``."""
        raise NotImplementedError

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        """Yield the events of one whole line, which is not empty."""
        raise NotImplementedError

    def _cut_line(self, where: Where, line: bytes) -> Iterator[Event]:
        """Yield what is certain about a line whose end is missing."""
        yield self._unparsed(where, line, "the line has no end: it may be cut", lost=False)

    def _rest(self) -> Iterator[Event]:
        """Yield the events that only the end of the file completes."""
        return iter(())

    def _watched(self) -> bool:
        """Return whether the file shows that its recorder was alive."""
        raise NotImplementedError

    def _finish(self) -> None:
        """Add losses that only the whole file shows."""

    def _begin(self) -> None:
        declared = self._declared or Declared()
        self._book = LossBook()
        self._counts = dict.fromkeys(("lines", "events", "unparsed", *self.counted), 0)
        self._clock = LogClock(declared, self._first)
        self._observation = Observation(
            channel=self.channel,
            source=self._name,
            format=self.format,
            tool=declared.tool,
            options=list(declared.options or ()),
            proof="declared" if self._declared else "inferred",
            clock=self._clock.clock,
            begin_ns=declared.begin_ns,
            end_ns=declared.end_ns,
            complete=declared.complete,
            counts=self._counts,
            losses=list(declared.losses),
            scope=declared.scope,
        )

    def _read(self, line: Line) -> Iterator[Event]:
        where = Where(self._name, line.at)
        if line.cut:
            self._book.add("line-cut", f"a line is longer than {MAX_LINE} bytes", where, self.kinds)
            yield self._unparsed(where, line.data, f"longer than {MAX_LINE} bytes", lost=False)
        elif not line.ended:
            self._book.add("file-truncated", "the last line has no line end, so it may be cut", where, self.kinds)
            yield from self._cut_line(where, line.data)
        elif line.data.strip():
            yield from self._line(where, line.data)

    def _unparsed(self, where: Where, line: bytes, reason: str, *, lost: bool = True) -> Unparsed:
        if lost:
            self._book.add("unparsed", f"a line was not understood: {reason}", where, self.kinds)
        return Unparsed(where, None, seen_in=self.channel, reason=reason, raw=line[:EXCERPT], touches=list(self.kinds))

    def _end(self) -> None:
        self._finish()
        seen = self._observation
        first, last = self._clock.span
        if self._clock.clock == "epoch" and first is not None:
            seen.begin_ns = first if seen.begin_ns is None else seen.begin_ns
            seen.end_ns = last if seen.end_ns is None else seen.end_ns
        for what, detail, count in self._clock.notes():
            self._book.add(what, detail, None, note=True, count=count)
        if self._watched():
            proof: Proof = "declared" if self._declared is not None else "inferred"
            seen.watches = dict.fromkeys(self.shows or self.kinds, proof)
        else:
            seen.proof = "absent"
        seen.losses.extend(self._book.losses())
