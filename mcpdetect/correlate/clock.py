"""Times of two evidence files, and whether they can be compared at all."""

from __future__ import annotations

__all__ = ["comparable", "later"]

_EPOCH_NS = 10**17
"""March 1973: a time beyond it counts from 1970, one below counts from a midnight or from the start of the log."""


def comparable(one: int | None, other: int | None) -> bool:
    """Return whether two times are known and count from the same moment (strace ``-tt`` and ``-r`` do not)."""
    return one is not None and other is not None and (one > _EPOCH_NS) == (other > _EPOCH_NS)


def later(one: int | None, other: int | None, tolerance: int = 0) -> bool:
    """Return whether ``one`` is certainly later than ``other`` by more than ``tolerance`` nanoseconds."""
    return one is not None and other is not None and comparable(one, other) and one > other + tolerance
