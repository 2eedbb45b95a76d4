"""The strace adapter: one log file, all dialects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.opener import Stream, open_evidence
from mcpdetect.ingest.strace.account import Account
from mcpdetect.ingest.strace.calls import needed_calls
from mcpdetect.ingest.strace.core import Core
from mcpdetect.ingest.strace.fast import FastReader
from mcpdetect.ingest.strace.header import Timekeeper, fast_header, looks_like_strace
from mcpdetect.ingest.strace.lines import LineFeeder, unprefixed_pid
from mcpdetect.ingest.strace.reader import Blocks
from mcpdetect.ingest.strace.watch import Totals, describe
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation

__all__ = ["StraceLog"]


class StraceLog:
    """One strace log.

    Args:
        path: the file, plain, gzip or zstd.
        name: its name in places; the path's own by default.
        declared: what a manifest says.

    Raises:
        InputError: it cannot be opened, is empty, or is no strace output.
    """

    def __init__(self, path: Path, name: str | None = None, declared: Declared | None = None) -> None:
        self._path = path
        self._name = name or str(path)
        self._declared = declared
        self._opened: Stream | None = None
        stream = open_evidence(path, self._name)
        raw = stream.read_exactly(1 << 16)
        if stream.once:  # what was read of a pipe is gone, and it cannot be opened again
            stream.unread(raw)
            self._opened = stream
        else:
            stream.close()
        head = raw.decode("latin-1")
        if not looks_like_strace(head):
            stream.close()
            raise UnknownFormat(
                "is not strace output",
                file=self._name,
                value=head[:60],
                cause="another format, or a trace of another tool",
                hint="give the file written by strace -o, or convert it",
            )
        self._header = fast_header(head)
        self._alone = unprefixed_pid(head)
        self._observation = Observation("syscalls", self._name, "strace")

    @property
    def observation(self) -> Observation:
        """What the log can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the events of the wanted kinds (None: all), in the order in which calls ended."""
        kinds = frozenset(EVENT_TYPES) if wanted is None else wanted
        account = Account()
        core = Core(self._name, kinds, account)
        times = Timekeeper()
        out = core.recorder.out
        count = 0
        with self._opened or open_evidence(self._path, self._name) as stream:
            blocks = Blocks(stream)
            feeder = LineFeeder(core, times, blocks, needed_calls(kinds))
            core.world.alone = self._alone
            fast: FastReader | None = None
            first = True
            while (block := blocks.next()) is not None:
                if first or fast is None or not fast.feed(block):
                    if not first:
                        fast = None
                    feeder.feed(block)
                    if first and self._header is not None and feeder.clean:
                        fast = FastReader(self._header, core, times, feeder, kinds)
                    first = False
                core.prune()
                if out:
                    keep = core.last if feeder.framed and out[-1:] == core.last[-1:] else []
                    ready = out[: len(out) - len(keep)] if keep else out[:]
                    out[:] = keep
                    count += len(ready)
                    yield from ready
            feeder.end()
            totals = Totals(feeder.line, blocks.size, blocks.cut_lines, stream.damaged, feeder.attached)
            describe(self._observation, core, times, totals, self._declared)
        count += len(out)
        self._observation.counts["events"] = count + core.recorder.passed
        yield from out[:]
