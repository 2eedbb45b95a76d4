"""The gVisor adapter: the debug log of ``runsc --strace``, read into the events that an strace log gives.

The log has every call twice: ``E`` when it begins, ``X`` when it returns. What ``sendto`` sent and where ``sendmsg``
sent it is never in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.gvisor.feed import Feeder
from mcpdetect.ingest.gvisor.record import Record, classify, looks_like_gvisor, weigh
from mcpdetect.ingest.gvisor.times import Times
from mcpdetect.ingest.opener import Stream, open_evidence
from mcpdetect.ingest.strace.account import Account
from mcpdetect.ingest.strace.calls import DERIVED
from mcpdetect.ingest.strace.core import Core
from mcpdetect.ingest.strace.reader import Blocks
from mcpdetect.ingest.strace.watch import Totals, describe
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation

__all__ = ["GvisorLog"]

_HEAD = 1 << 16


class GvisorLog:
    """One debug log of gVisor's kernel (the file whose name holds ``boot``), written with ``--strace``.

    Args:
        path: the file, plain, gzip or zstd.
        name: its name in places; the path's own by default.
        declared: what a manifest says; its window gives the times their year and zone.

    Raises:
        InputError: it cannot be opened, is empty, or is no such log.
    """

    def __init__(self, path: Path, name: str | None = None, declared: Declared | None = None) -> None:
        self._path = path
        self._name = name or str(path)
        self._declared = declared
        self._opened: Stream | None = None
        stream = open_evidence(path, self._name)
        raw = stream.read_exactly(_HEAD)
        if stream.once:
            stream.unread(raw)
            self._opened = stream
        else:
            stream.close()
        head = raw.decode("latin-1")
        if not looks_like_gvisor(head):
            stream.close()
            raise UnknownFormat(
                "is no debug log of gVisor",
                file=self._name,
                value=head[:60],
                cause="another format, or a log written with --debug-log-format=json",
                hint="give the boot log that runsc --strace --debug --debug-log=FOLDER/ wrote",
            )
        self._observation = Observation("syscalls", self._name, "gvisor")

    @property
    def observation(self) -> Observation:
        """What the log can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the events of the wanted kinds (None: all), in the order in which calls ended."""
        kinds = frozenset(EVENT_TYPES) if wanted is None else wanted
        account = Account()
        core = Core(self._name, kinds, account)
        times = Times(self._declared)
        feeder = Feeder(core, times)
        out = core.recorder.out
        count = 0
        with self._opened or open_evidence(self._path, self._name) as stream:
            blocks = Blocks(stream)
            lines = _Lines(blocks)
            for record, believed in weigh(lines.records()):
                feeder.take(record, believed=believed)
                if len(out) > 256:
                    ready = out[:]
                    out.clear()
                    count += len(ready)
                    yield from ready
                    core.prune()
            if lines.rest:
                feeder.cut(lines.rest)
            totals = Totals(lines.count, blocks.size, blocks.cut_lines, stream.damaged)
        feeder.end()
        self._describe(core, times, totals, feeder.filtered)
        count += len(out)
        self._observation.counts["events"] = count + core.recorder.passed
        yield from out[:]

    def _describe(self, core: Core, times: Times, totals: Totals, filtered: str) -> None:
        declared = self._declared
        if filtered:
            declared = replace(declared or Declared(), options=["-e", f"trace={filtered}"])
        elif declared is not None:
            declared = replace(declared, options=_options(declared.options))
        observation = self._observation
        describe(observation, core, times.keeper(), totals, declared)
        if self._declared is None:
            observation.proof = "inferred"
            observation.watches = dict.fromkeys(observation.watches, "inferred")
            observation.options = []
        else:
            observation.options = list(self._declared.options or ())
        for kind in DERIVED:
            # What sendto and recvfrom carry is never shown: names and hellos in it would be missed.
            observation.watches.pop(kind, None)


def _options(options: list[str] | None) -> list[str] | None:
    """Return runsc's filter in strace's words: ``--strace-syscalls=connect,openat``."""
    for option in options or ():
        name, _, value = option.lstrip("-").partition("=")
        if name == "strace-syscalls" and value:
            return ["-e", f"trace={value}"]
    return None if options is None else []


class _Lines:
    """The lines of a log as records; ``rest`` is a last line that no newline ends and that is not whole."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.count = 0
        self.rest = ""

    def records(self) -> Iterator[Record]:
        at = 0
        while (block := self._blocks.next()) is not None:
            for text in block.split("\n"):
                self.count += 1
                record = classify(self.count, at, text)
                at = record.end
                yield record
        tail = self._blocks.tail
        if tail:
            self.count += 1
            record = classify(self.count, at, tail)
            if record.sort == "X":
                yield record
            else:
                self.rest = tail
