"""What the tests of the strace adapter share: a log out of text, and everything it gave in one exact text."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.strace import StraceLog
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Loss, Observation

NAME = "trace.log"


@cache
def _schema(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(EVENT_TYPES[kind])


def read(
    folder: Path, text: str | bytes, wanted: frozenset[str] | None = None, declared: Declared | None = None
) -> tuple[list[Event], Observation]:
    """Write ``text`` as a log, read it, check every event against its published schema."""
    path = folder / NAME
    path.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
    log = StraceLog(path, NAME, declared)
    events = list(log.events(wanted))
    for event in events:
        _schema(event.kind).validate_python(event, strict=True)
        assert event.where.file == NAME
    assert log.observation.counts["events"] == len(events)
    return events, log.observation


def shown(event: Event) -> str:
    """Return an event as one line that shows every field which differs from its default.

    ``file.open@4+6 call='openat' result=3 path='/etc/passwd'``: kind, place, fields in their order.
    """
    parts = [f"{event.kind}@{event.where.at}"]
    if event.where.end is not None:
        parts[0] += f"+{event.where.end}"
    for item in dataclasses.fields(event):
        value = getattr(event, item.name)
        if item.name in {"kind", "where"}:
            continue
        if item.default is not dataclasses.MISSING:
            default = item.default
        elif item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        else:
            default = None
        if value != default:
            parts.append(f"{item.name}={value!r}")
    return " ".join(parts)


def _loss(loss: Loss) -> str:
    word = "note" if loss.note else "loss"
    place = f"@{loss.where.at}" if loss.where is not None else ""
    place += f"+{loss.where.end}" if loss.where is not None and loss.where.end else ""
    touches = f" {' '.join(loss.touches)}" if loss.touches else ""
    process = f" process={loss.process}" if loss.process else ""
    return f"{word} {loss.what}{place} x{loss.count}{touches}{process}"


def script(folder: Path, text: str, wanted: frozenset[str] | None = None, declared: Declared | None = None) -> str:
    """Return all that a log gives: its events, its losses, its counts, each on a line."""
    events, observation = read(folder, text, wanted, declared)
    counts = observation.counts
    end = "complete" if observation.complete else "incomplete"
    lines = [
        *(shown(event) for event in events),
        *(_loss(loss) for loss in observation.losses),
    ]
    read_all = f"{counts['lines']} lines {counts['unparsed']} unparsed {counts['orphan-resumed']} orphans"
    lines.append(f"{read_all} {counts['exits']} exits {end} clock={observation.clock}")
    return "\n".join(["", *lines, ""])


def hiding(observation: Observation) -> set[str]:
    """Return the words of the losses that are not just notes."""
    return {loss.what for loss in observation.losses if not loss.note}
