"""Several evidence files of one run, streamed as one trace in time order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

from mcpdetect.errors import InputError
from mcpdetect.ingest.adapter import CARRIERS, OVERHEARD, Adapter
from mcpdetect.ingest.probes import PROBE_KINDS, ProbeWatch
from mcpdetect.model.event import Event
from mcpdetect.model.inputs import Secrets
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation
from mcpdetect.model.trace import Run

__all__ = ["Evidence"]


class Evidence:
    """One run made of adapters: a ``TraceSource``.

    Args:
        run: the run's metadata.
        adapters: one per evidence file.
        absent: observations of channels that a manifest declares as not recorded.

    Attributes:
        secrets: what the bundle itself says was planted.
        tag: the run's canary tag, from which a secrets file makes values.
        expect: an expectations file that belongs to the bundle.
        baseline: an approved description that belongs to the bundle.
        probes: finds the recorder's probes and judges the files by them, where any were declared.
    """

    def __init__(self, run: Run, adapters: list[Adapter], absent: list[Observation] | None = None) -> None:
        if not adapters:
            raise InputError("there is no evidence to read", file=run.id, hint="give at least one evidence file")
        self._run = run
        self._adapters = adapters
        self._absent = absent or []
        self._read = False
        self.secrets: Secrets | None = None
        self.tag: str | None = None
        self.expect: Path | None = None
        self.baseline: Path | None = None
        self.probes: ProbeWatch | None = None

    @property
    def run(self) -> Run:
        """The run's metadata."""
        return self._run

    def observations(self) -> list[Observation]:
        """Return what each file could show; complete once ``events`` was read to its end."""
        return [adapter.observation for adapter in self._adapters] + self._absent

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the wanted events of every file, merged by time where the files have a common clock.

        Files without one come first, in the order given: a log of names without times must be known before the
        connections it may explain. An event without a time of its own stays behind the one before it.

        Raises:
            InputError: the events were asked for a second time; a pipe cannot be read twice.
        """
        if self._read:
            raise InputError("the events of this run were read already", file=self._run.id, hint="open it again")
        self._read = True
        if self.probes is None:
            yield from self._merged(wanted)
            return
        yield from self.probes.events(self._merged(None if wanted is None else wanted | PROBE_KINDS), wanted)
        self.probes.judge(self.observations())

    def _merged(self, wanted: frozenset[str] | None) -> Iterator[Event]:
        timed = [item for item in self._adapters if item.observation.clock == "epoch"]
        for adapter in self._adapters:
            if adapter not in timed:
                yield from self._of(adapter, wanted)
        if len(timed) == 1:
            yield from self._of(timed[0], wanted)
        elif timed:
            streams = [_keyed(self._of(adapter, wanted), number) for number, adapter in enumerate(timed)]
            for _, _, event in heapq.merge(*streams, key=_time):
                yield event

    def _of(self, adapter: Adapter, wanted: frozenset[str] | None) -> Iterator[Event]:
        """Yield one file's events; MCP is overheard in system calls only where no transcript of it exists."""
        if adapter.observation.channel != "syscalls":
            return adapter.events(wanted)
        if any(item.observation.channel == "mcp" for item in self._adapters):
            return adapter.events((frozenset(EVENT_TYPES) if wanted is None else wanted) - OVERHEARD)
        if wanted is None or not wanted & OVERHEARD or wanted >= CARRIERS:
            return adapter.events(wanted)
        return (event for event in adapter.events(wanted | CARRIERS) if event.kind in wanted)


def _keyed(events: Iterator[Event], number: int) -> Iterator[tuple[int, int, Event]]:
    last = 0
    for event in events:
        if event.t_ns is not None:
            last = event.t_ns
        yield last, number, event


def _time(item: tuple[int, int, Event]) -> int:
    return item[0]
