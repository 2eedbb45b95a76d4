"""What the tests of log adapters share: a log out of text, and everything that it gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from mcpdetect.ingest.adapter import Adapter, Declared
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.wire import encode

__all__ = ["NAME", "Opener", "hiding", "losses", "notes", "read", "seconds"]

NAME = "x.log"

Opener = Callable[[Path, str | None, Declared | None], Adapter]


@cache
def _schema(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(EVENT_TYPES[kind])


def read(
    opener: Opener,
    folder: Path,
    text: str | bytes | Sequence[str],
    declared: Declared | None = None,
) -> tuple[list[Event], Observation]:
    """Write ``text`` (or lines) as a log, read it twice, check every event against its published schema."""
    path = folder / NAME
    if not isinstance(text, str | bytes):
        text = "".join(f"{line}\n" for line in text)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    adapter = opener(path, NAME, declared)
    events = list(adapter.events())
    again = list(adapter.events())
    assert events == again
    for event in events:
        assert _schema(event.kind).validate_json(encode(event)) == event
    seen = adapter.observation
    assert seen.counts["events"] == len(events)
    assert seen.counts["unparsed"] == sum(event.kind == "unparsed" for event in events)
    return events, seen


def hiding(seen: Observation) -> list[tuple[str, int]]:
    """Return word and count of the losses that may hide events."""
    return [(loss.what, loss.count) for loss in seen.losses if not loss.note]


def notes(seen: Observation) -> list[tuple[str, int]]:
    """Return word and count of the losses that hide nothing."""
    return [(loss.what, loss.count) for loss in seen.losses if loss.note]


def losses(seen: Observation, what: str) -> list[Loss]:
    """Return the losses with one word."""
    return [loss for loss in seen.losses if loss.what == what]


def seconds(number: float) -> int:
    """Return nanoseconds of a number of seconds with at most microseconds."""
    return round(number * 10**6) * 1000
