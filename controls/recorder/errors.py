"""What can go wrong while recording."""

from __future__ import annotations

__all__ = ["RecorderError"]


class RecorderError(Exception):
    """A recording could not be made; the message says why and what to do."""
