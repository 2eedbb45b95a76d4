"""What the tests of the strace adapter share: a log out of text, its events, its losses in short form."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.strace import StraceLog
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where

Short = tuple[str, int, str, list[str]]


def at(line: int, end: int | None = None) -> Where:
    """Return the place of a line of the log that ``read`` makes."""
    return Where("trace.log", line, end)


def read(
    folder: Path, text: str | bytes, wanted: frozenset[str] | None = None, declared: Declared | None = None
) -> tuple[list[Event], Observation]:
    """Write ``text`` as a log, read it, check every event against its published schema."""
    path = folder / "trace.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
    log = StraceLog(path, "trace.log", declared)
    events = list(log.events(wanted))
    for event in events:
        TypeAdapter(EVENT_TYPES[event.kind]).validate_python(event, strict=True)
        assert event.where.file == "trace.log"
    assert log.observation.counts["events"] == len(events)
    return events, log.observation


def losses(observation: Observation) -> list[Short]:
    """Return the losses as (what, count, first place or ``""``, touches); a note's word ends in ``?``."""
    return [
        (loss.what + ("?" if loss.note else ""), loss.count, str(loss.where or ""), loss.touches)
        for loss in observation.losses
    ]


def hiding(observation: Observation) -> set[str]:
    """Return the words of the losses that are not just notes."""
    return {loss.what for loss in observation.losses if not loss.note}


def told(observation: Observation) -> tuple[int, int, int, int, bool, str]:
    """Return lines, unparsed, orphaned halves, exits, whether complete, and the clock."""
    counts = observation.counts
    return (
        counts["lines"],
        counts["unparsed"],
        counts["orphan-resumed"],
        counts["exits"],
        observation.complete,
        observation.clock,
    )
