"""Runs made by hand: events and observations stated in the test."""

from __future__ import annotations

from collections.abc import Iterator

from mcpdetect.model.event import Event
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Channel, Proof

__all__ = ["HandSource", "observed", "where"]


def where(line: int, file: str = "strace.log") -> Where:
    return Where(file, line)


def observed(
    channel: Channel,
    *kinds: str,
    proof: Proof = "inferred",
    losses: list[Loss] | None = None,
    source: str = "strace.log",
    begin_ns: int | None = 0,
    end_ns: int | None = 10,
) -> Observation:
    return Observation(
        channel=channel,
        source=source,
        format="made",
        proof=proof,
        watches=dict.fromkeys(kinds, proof),
        begin_ns=begin_ns,
        end_ns=end_ns,
        complete=proof in ("declared", "proved"),
        losses=losses or [],
    )


class HandSource:
    """A run whose events and observations are given."""

    def __init__(self, events: list[Event], observations: list[Observation], run: Run | None = None) -> None:
        self._events = events
        self._observations = observations
        self._run = run or Run()
        self.asked: frozenset[str] | None = None

    @property
    def run(self) -> Run:
        return self._run

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        self.asked = wanted
        for event in self._events:
            if wanted is None or event.kind in wanted:
                yield event

    def observations(self) -> list[Observation]:
        return self._observations
