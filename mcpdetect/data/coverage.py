"""How well each check is proved: what the coverage of the corpus said when this version was made."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

__all__ = ["STATUSES", "status_of_check"]

STATUSES = ("unproved", "thin", "proved")
"""How far labels carry a claim, weakest first."""


@cache
def _shipped() -> dict[str, str]:
    """Return the weaker of the statuses of each check and its category."""
    data = json.loads((resources.files("mcpdetect.data") / "coverage.json").read_bytes())
    return {
        check: min(one["status"], one["category_status"], key=STATUSES.index) for check, one in data["checks"].items()
    }


def status_of_check(check: str) -> str:
    """Return ``proved``, ``thin`` or ``unproved``; a check that the corpus does not know is ``unproved``.

    Args:
        check: its id.
    """
    return _shipped().get(check, "unproved")
