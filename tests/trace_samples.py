"""A small trace in memory and helpers to put it on disk and read it again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from mcpdetect.ingest.tracefile import TraceFile, write_trace
from mcpdetect.model.event import Event, FileOpen, ProcessExit, Unparsed
from mcpdetect.model.net import DnsQuery, SocketConnect
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

__all__ = ["EVENTS", "OBSERVATIONS", "RUN", "Memory", "document", "read", "text"]

RUN = Run(id="sample", target=["node", "server.js"], mode="open", declared=True)
EVENTS: list[Event] = [
    FileOpen(
        Where("strace.log", 12, 15),
        1_700_000_000_000_000_001,
        "openat",
        3,
        process="4211",
        path="/home/u/.env",
        access="read",
        flags="O_RDONLY|O_CLOEXEC",
        fd=3,
    ),
    SocketConnect(
        Where("strace.log", 16), 1_700_000_000_000_000_002, "connect", None, "ENETUNREACH", address="1.1.1.1", port=443
    ),
    DnsQuery(Where("dns.log", 1, unit="record"), None, seen_in="dns", name="example.org"),
    Unparsed(Where("strace.log", 17), None, reason="no call", raw=b"\xff\xfe?"),
    ProcessExit(Where("strace.log", 18), 1_700_000_000_000_000_003, 0, process="4211"),
]
OBSERVATIONS = [
    Observation(
        "syscalls",
        "strace.log",
        "strace",
        proof="declared",
        watches={"file.open": "declared", "socket.connect": "declared", "process.exit": "declared"},
        complete=True,
        losses=[Loss("string-cut", "2 strings are cut", 2, Where("strace.log", 3), ["data:socket.send"])],
    ),
    Observation("dns", "dns.log", "dnsmasq", watches={"dns.query": "inferred"}),
]


class Memory:
    """A ``TraceSource`` of values at hand."""

    def __init__(
        self, events: list[Event] = EVENTS, observations: list[Observation] = OBSERVATIONS, run: Run = RUN
    ) -> None:
        self.run = run
        self._events = events
        self._observations = observations

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the wanted events."""
        return (event for event in self._events if wanted is None or event.kind in wanted)

    def observations(self) -> list[Observation]:
        """Return the observations."""
        return self._observations


def text(form: Literal["json", "jsonl"] = "json", source: Memory | None = None) -> bytes:
    """Return a trace as ``write_trace`` writes it."""
    out = io.BytesIO()
    write_trace(out, source or Memory(), form=form)
    return out.getvalue()


def document() -> dict[str, Any]:
    """Return the sample trace as any JSON library loads it."""
    loaded: dict[str, Any] = json.loads(text())
    return loaded


def read(path: Path, content: bytes | str, *, trusted: bool = False) -> tuple[list[Event], list[Observation], Run]:
    """Write ``content`` to ``path`` and return what is read from it, under the name ``t``."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    trace = TraceFile(path, "t", trusted=trusted)
    return list(trace.events()), trace.observations(), trace.run
