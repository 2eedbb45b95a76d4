"""How verdicts and levels are written: symbol, words, colour, order."""

from __future__ import annotations

from mcpdetect.model.vocabulary import Level, VerdictWord
from mcpdetect.report.layout import Role

__all__ = ["LEVEL_ROLES", "VERDICTS"]

VERDICTS: dict[VerdictWord, tuple[str, str, Role]] = {
    "detected": ("●", "detected", "grave"),
    "error": ("!", "error", "grave"),
    "not_observable": ("?", "not observable", "ask"),
    "not_detected": ("○", "not detected", "quiet"),
}
"""Verdict -> symbol, words and colour, in the order in which a reader wants them."""

LEVEL_ROLES: dict[Level, Role] = {"accusing": "grave", "suspicious": "warn", "info": "hint"}
"""Level of a finding -> colour."""
