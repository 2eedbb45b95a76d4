"""What the tests of the gVisor adapter share: a log out of text, and everything it gave in one exact text."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import TypeAdapter
from strace_tools import _loss, shown

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.gvisor import GvisorLog
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation

NAME = "boot.txt"


@cache
def _schema(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(EVENT_TYPES[kind])


def read(
    folder: Path, text: str | bytes, wanted: frozenset[str] | None = None, declared: Declared | None = None
) -> tuple[list[Event], Observation]:
    """Write ``text`` as a log, read it, check every event against its published schema."""
    path = folder / NAME
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    log = GvisorLog(path, NAME, declared)
    events = list(log.events(wanted))
    for event in events:
        _schema(event.kind).validate_python(event, strict=True)
        assert event.where.file == NAME
    assert log.observation.counts["events"] == len(events)
    return events, log.observation


def script(folder: Path, text: str, wanted: frozenset[str] | None = None, declared: Declared | None = None) -> str:
    """Return all that a log gives: its events, its losses, its counts, each on a line; no times."""
    events, observation = read(folder, text, wanted, declared)
    for event in events:
        event.t_ns = None
    counts = observation.counts
    end = "complete" if observation.complete else "incomplete"
    read_all = f"{counts['lines']} lines {counts['unparsed']} unparsed {counts['exits']} exits {end}"
    lines = [
        *(shown(event) for event in events),
        *(_loss(loss) for loss in observation.losses),
        f"{read_all} clock={observation.clock}",
    ]
    return "\n".join(["", *lines, ""])


def lines(*calls: str, tasks: str = "   1:   1", start: float = 50.0) -> str:
    """Return lines of the tracer, each with a head; a call that is text before ``E`` or ``X`` has its own task."""
    made = []
    for number, call in enumerate(calls):
        head = f"I1130 15:16:{start + number / 1000:09.6f}   29411 strace.go:605] "
        made.append(f"{head}{call}" if call.startswith("[") else f"{head}[{tasks}] python3 {call}")
    return "".join(f"{line}\n" for line in made)
