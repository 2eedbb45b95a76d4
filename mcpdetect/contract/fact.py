"""Shared facts: things that several detectors want to know and that take the whole run to learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mcpdetect.model.event import Event
from mcpdetect.model.trace import Run

__all__ = ["Fact"]


class Fact:
    """Base of every correlated fact. The engine makes one of each, feeds it before the detectors, in order of need.

    Attributes:
        kinds: event kinds fed to ``on_event``.
        only: by event kind, the text that the path of an event must hold to be of any use to it; events of that kind
            without it may never come. No kind that is not in it is thinned out.
        uses: other facts it reads; they see each event first and are handed to ``__init__`` in this order.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    only: ClassVar[Mapping[str, str]] = {}
    uses: ClassVar[tuple[type[Fact], ...]] = ()

    def __init__(self, run: Run, *uses: Fact) -> None:
        self.run = run

    def on_event(self, event: Event) -> None:
        """Learn from one event of a wanted kind."""
