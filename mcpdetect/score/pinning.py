"""Pinning more of a label: limits and explanations that a check gives today, where the label says nothing of them."""

from __future__ import annotations

from collections.abc import Mapping

from mcpdetect.contract import Detector
from mcpdetect.errors import LabelError
from mcpdetect.score.corpus import Case
from mcpdetect.score.runner import as_expected, run_bundle, run_case

__all__ = ["unpinned"]


def unpinned(case: Case, detectors: Mapping[str, type[Detector]]) -> dict[tuple[str, ...], list[str]]:
    """Return what a label could pin as well: keys from its root to the list that the check gives today.

    What a label says already is never changed. A check with a known weakness is left as it is.

    Args:
        case: the case.
        detectors: the installed checks.

    Raises:
        LabelError: the case does not come out as labelled, so that nothing about it should be pinned.
        InputError: its evidence cannot be used.
    """
    outcome = run_case(case, detectors)
    if not outcome.ok:
        raise LabelError(
            "does not come out as labelled",
            file=str(case.file),
            cause="the check or the evidence changed",
            hint="run mcpdetect selftest, and mend what it names",
        )
    agreeing = {said.check for said in outcome.checks if said.agrees}
    added: dict[tuple[str, ...], list[str]] = {}
    for result in run_bundle(case.bundle, {name: detectors[name] for name in sorted(agreeing)}).checks:
        wanted, got = case.label.checks[result.check], as_expected(result)
        if wanted.limits is None and got.limits is not None:
            added["checks", result.check, "limits"] = got.limits
        if wanted.explained is None and got.explained is not None:
            added["checks", result.check, "explained"] = got.explained
    return added
