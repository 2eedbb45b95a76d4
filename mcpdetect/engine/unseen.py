"""What a run as a whole says about its evidence files: gaps that no single file can know of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mcpdetect.model.event import Event, ProcessStart
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.trace import Run, TraceSource

__all__ = ["GUARDS", "Watched"]

GUARDS: dict[str, str] = {
    "process.start": "a child that strace did not follow would go unnoticed",
    "kernel.notable": "calls made through io_uring, or from another namespace, would go unnoticed",
    "socket.connect": "work that is handed to a program outside the trace would go unnoticed",
}
"""Event kinds that a filtered system call trace must show before absence in it means anything: what they would tell
of are ways out of its sight."""


class Watched:
    """A run whose observations tell also what only the run as a whole shows: a ``TraceSource``.

    - A log of system calls in which the audited program never starts, where its path is declared, has a loss
      ``not-entered``: it shows another process, or all of it would count as the launcher's.
    - A log of system calls that is declared to have left out what ``GUARDS`` names has a loss ``filtered``.

    Args:
        source: the run.
    """

    def __init__(self, source: TraceSource) -> None:
        self._source = source
        self._entered = source.run.entry is None

    @property
    def run(self) -> Run:
        """The run's metadata."""
        return self._source.run

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the wanted events; starts of processes are looked at in any case."""
        if self._entered:
            yield from self._source.events(wanted)
            return
        stream = self._source.events(None if wanted is None else wanted | {"process.start"})
        for event in stream:
            if wanted is None or event.kind in wanted:
                yield event
            if isinstance(event, ProcessStart) and event.how == "exec" and event.executable == self.run.entry:
                self._entered = event.ok
                if self._entered:
                    break
        if wanted is None or "process.start" in wanted:
            yield from stream
        else:
            yield from (event for event in stream if event.kind in wanted)

    def observations(self) -> list[Observation]:
        """Return the observations with the losses that the run as a whole shows."""
        return [self._told(item) for item in self._source.observations()]

    def _told(self, item: Observation) -> Observation:
        if item.channel != "syscalls" or item.format != "strace" or item.proof not in ("declared", "proved"):
            return item
        losses = [*item.losses, *_unguarded(item)]
        if not self._entered:
            losses.append(Loss("not-entered", f"the audited program, {self.run.entry}, never starts in it"))
        return replace(item, losses=losses) if len(losses) > len(item.losses) else item


def _unguarded(item: Observation) -> Iterator[Loss]:
    for kind, why in GUARDS.items():
        left_out = any(loss.what == "filtered" and kind in loss.touches for loss in item.losses)
        if left_out or kind not in item.watches:
            yield Loss("filtered", f"{kind} was not traced in full: {why}")
