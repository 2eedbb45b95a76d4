"""Results with what changes from call to call set aside: times, durations, identifiers."""

from __future__ import annotations

import re

__all__ = ["normal_result"]

# 2026-11-30T14:05:59.123Z   14:05   1796049091   1796049091796   12.5 ms   123e4567-e89b-12d3-a456-426614174000
_VARIES = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?\b"
    r"|\b1[6-9]\d{8}(?:\d{3}|\d{6}|\d{9})?\b"
    r"|\b\d{1,9}(?:\.\d{1,9})?\s?(?:ns|us|µs|ms|s|sec|seconds|minutes)\b"
    r"|\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
)


def normal_result(text: str) -> str:
    """Return a result's text with times, dates, durations and UUIDs replaced by ``*``."""
    return _VARIES.sub("*", text)
