"""Self-test: every labelled case against the installed checks, and which checks were shown able to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from mcpdetect.contract import Detector
from mcpdetect.labels.model import Truth
from mcpdetect.model.vocabulary import VerdictWord
from mcpdetect.score.corpus import Case
from mcpdetect.score.runner import CaseOutcome, run_case

__all__ = ["Proven", "SelfTest", "selftest"]

_TRUTH_OF: dict[VerdictWord, Truth] = {"detected": "fires", "not_detected": "silent", "not_observable": "blind"}


@dataclass(slots=True)
class Proven:
    """How often one check came out as labelled in each of the three ways."""

    fires: int = 0
    silent: int = 0
    blind: int = 0

    @property
    def missing(self) -> list[Truth]:
        """Return what no case shows of the check: that it fires, or that it stays silent.

        Being blind is not asked for: there may be no honest recording of it.
        """
        wanted: tuple[tuple[Truth, int], ...] = (("fires", self.fires), ("silent", self.silent))
        return [name for name, number in wanted if not number]


@dataclass(slots=True)
class SelfTest:
    """What a self-test came to.

    Attributes:
        corpora: names of the corpora.
        outcomes: one for every case that speaks of a chosen check.
        checks: for every chosen check, what was shown of it.
    """

    corpora: list[str]
    outcomes: list[CaseOutcome]
    checks: dict[str, Proven] = field(default_factory=dict)

    @property
    def failures(self) -> list[CaseOutcome]:
        """Return the cases that did not end as labelled."""
        return [one for one in self.outcomes if not one.ok]

    @property
    def crashed(self) -> bool:
        """A check crashed where its label says otherwise."""
        return any(said.got.verdict == "error" and not said.agrees for one in self.failures for said in one.checks)

    @property
    def unproved(self) -> dict[str, list[Truth]]:
        """Return the checks that no case shows able to fire, or to stay silent."""
        return {check: proven.missing for check, proven in self.checks.items() if proven.missing}


def selftest(
    cases: Iterable[Case],
    detectors: Mapping[str, type[Detector]],
    *,
    each: Callable[[CaseOutcome], object] | None = None,
) -> SelfTest:
    """Run every case that speaks of one of the detectors.

    Args:
        cases: of any number of corpora.
        detectors: the chosen checks by id.
        each: called after every case.
    """
    cases = list(cases)
    result = SelfTest(
        corpora=list(dict.fromkeys(case.corpus for case in cases)),
        outcomes=[],
        checks={check: Proven() for check in sorted(detectors)},
    )
    for case in cases:
        if not detectors.keys() & case.label.checks.keys():
            continue
        outcome = run_case(case, detectors)
        result.outcomes.append(outcome)
        for said in outcome.checks:
            truth = _TRUTH_OF.get(said.got.verdict)
            if said.agrees and truth is not None:
                proven = result.checks[said.check]
                setattr(proven, truth, getattr(proven, truth) + 1)
        if each is not None:
            each(outcome)
    return result
