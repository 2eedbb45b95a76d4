"""A trace: one run, normalized. Values only; ``ingest`` makes them, ``engine`` reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from mcpdetect.model.event import Event
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import STRICT

__all__ = ["TRACE_SCHEMA", "Run", "TraceSource"]

TRACE_SCHEMA = "mcpdetect.trace/1"
"""Name and version of the trace format; the number grows when a reader of the old one would misread it."""


@dataclass(slots=True)
class Run:
    """Which run a trace is about.

    Attributes:
        id: a name for people, usually the bundle's or first file's.
        target: the command that was audited.
        mode: ``open``, ``denied`` or ``unknown``.
        denial: the denial the recorder says it set up (``output-drop``, ``no-route``, ...), its own word.
        entry: path of the executable at which the audited program begins; execs before it are the launcher's.
        started_ns, ended_ns: by the recorder's clock, epoch nanoseconds.
        resolvers: addresses of the configured DNS resolvers, where declared.
        declared: a manifest stands behind this run.
        generator: the program that wrote the trace.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    id: str = "trace"
    target: list[str] = field(default_factory=list)
    mode: str = "unknown"
    denial: str | None = None
    entry: str | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    resolvers: list[str] = field(default_factory=list)
    declared: bool = False
    generator: str = ""


class TraceSource(Protocol):
    """What the engine reads: a run whose events stream once."""

    @property
    def run(self) -> Run:
        """The run's metadata, known before the events."""
        ...

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the events of the wanted kinds (None: all), in evidence time where clocks allow it.

        ``unparsed`` and ``probe`` events come only when wanted; what they stand for is always in the observations.
        """
        ...

    def observations(self) -> list[Observation]:
        """Return what each evidence file could show; complete only after ``events`` was read to the end."""
        ...
