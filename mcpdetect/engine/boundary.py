"""The one crash boundary: a detector's or fact's fault becomes a value, and every other check goes on."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

from mcpdetect.model.event import Event

__all__ = ["crash_text", "guarded"]

T = TypeVar("T")


def guarded(act: Callable[[T], object], argument: T) -> Exception | None:
    """Call ``act(argument)`` and return the exception it raised, None when it raised none."""
    try:
        act(argument)
    except Exception as error:  # noqa: BLE001  plug-in code may raise anything; it is reported as `error`, never lost
        return error
    return None


def crash_text(error: BaseException, event: Event | None) -> str:
    """Return what crashed, where in the code, and on which piece of evidence."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rpartition('mcpdetect/')[2]}:{frames[-1].lineno}" if frames else ""
    at = f", reading {event.where}" if event is not None else ""
    return f"{type(error).__name__}: {error}{place}{at}"
