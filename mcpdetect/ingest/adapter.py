"""What every adapter is: one evidence file, opened, with an observation that grows while its events stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from mcpdetect.model.event import Event
from mcpdetect.model.observation import Loss, Observation

__all__ = ["CARRIERS", "EXCERPT", "OVERHEARD", "Adapter", "Declared"]

EXCERPT = 4096
"""Most bytes of payload an event keeps; strace's own ``-s`` in our recorder is the same."""

OVERHEARD = frozenset({"mcp.message", "mcp.tool"})
"""Kinds that a log of system calls shows as well, in what the program reads and writes on its standard streams."""

CARRIERS = frozenset({"file.read", "file.change", "socket.send", "socket.receive"})
"""Kinds whose calls carry the overheard ones: they are overheard only where these are asked for as well."""


@dataclass(slots=True)
class Declared:
    """What a manifest says about one evidence file; every part may be unknown (None)."""

    tool: str | None = None
    options: list[str] | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    complete: bool = False
    scope: str | None = None
    losses: list[Loss] = field(default_factory=list)


class Adapter(Protocol):
    """One evidence file.

    An adapter is made with ``(path, name, declared)``: the file (compressed or not), the name used in every
    ``Where``, and what a manifest says. The constructor reads enough to know the format and raises ``InputError``
    otherwise.
    """

    @property
    def observation(self) -> Observation:
        """What the file can show; complete after ``events`` was read to its end."""
        ...

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the events of the wanted kinds (None: all), every line, packet or message accounted for either way."""
        ...
