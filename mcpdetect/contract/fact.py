"""Shared facts: things that several detectors want to know and that take the whole run to learn."""

from __future__ import annotations

from typing import ClassVar

from mcpdetect.model.event import Event
from mcpdetect.model.trace import Run

__all__ = ["Fact"]


class Fact:
    """Base of every correlated fact. The engine makes one of each, feeds it before the detectors, in order of need.

    Attributes:
        kinds: event kinds fed to ``on_event``.
        uses: other facts it reads; they see each event first and are handed to ``__init__`` in this order.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[type[Fact], ...]] = ()

    def __init__(self, run: Run, *uses: Fact) -> None:
        self.run = run

    def on_event(self, event: Event) -> None:
        """Learn from one event of a wanted kind."""
