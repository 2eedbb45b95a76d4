"""One evidence file of a trace, written as a trace of its own: how a case keeps evidence that exists as events only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcpdetect.errors import Malformed
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.tracefile.reader import TraceFile
from mcpdetect.model.event import Event
from mcpdetect.model.observation import Observation

__all__ = ["TracePart"]


class TracePart:
    """An ``Adapter`` over a trace that is about one evidence file.

    Its observation is that of the trace: what could be seen was judged when the raw evidence was read, and a manifest
    adds nothing to it.

    Args:
        path: the trace, in either layout.
        name: its name in errors; places keep the names of the raw evidence.
        declared: not used; every adapter takes it.

    Raises:
        InputError: it is no trace.
        Malformed: it is damaged, or about more than one evidence file.
    """

    def __init__(self, path: Path, name: str, declared: Declared | None = None) -> None:
        self._path, self._name = path, name
        first = TraceFile(path, name)
        for _ in first.events(frozenset()):
            pass
        if len(first.observations()) != 1:
            raise Malformed(
                "must be about one evidence file",
                file=name,
                value=f"{len(first.observations())} observations",
                cause="a whole trace was put where one of its evidence files belongs",
            )
        self._observation = first.observations()[0]

    @property
    def observation(self) -> Observation:
        """What the evidence file could show."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the wanted events (None: all), in the order of the file."""
        yield from TraceFile(self._path, self._name).events(wanted)
