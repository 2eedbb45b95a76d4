"""Do the evidence files of one run belong together? Their times must meet."""

from __future__ import annotations

from mcpdetect.errors import InputError
from mcpdetect.model.observation import Observation

__all__ = ["MAX_GAP_NS", "require_one_run"]

MAX_GAP_NS = 60 * 1_000_000_000
"""Largest gap between the windows of two files of one run. A watchdog child may talk after everything else ended, a
capture may see its first packet late; a minute is far beyond both."""


def require_one_run(observations: list[Observation]) -> None:
    """Raise when two files cannot be of the same run because their windows are further apart than ``MAX_GAP_NS``.

    Raises:
        InputError: naming both files and their windows.
    """
    timed = [
        item for item in observations if item.clock == "epoch" and item.begin_ns is not None and item.end_ns is not None
    ]
    for number, first in enumerate(timed):
        for second in timed[number + 1 :]:
            early, late = sorted((first, second), key=lambda item: item.end_ns or 0)
            gap = (late.begin_ns or 0) - (early.end_ns or 0)
            if gap > MAX_GAP_NS:
                raise InputError(
                    "evidence of two different runs: the times of these files do not meet",
                    file=late.source,
                    value=f"{early.source} ends {gap / 1e9:.0f} s before {late.source} begins",
                    cause="a stale or swapped file, or recorders whose clocks differ",
                    hint="check each file alone, or give files of the same run",
                )
