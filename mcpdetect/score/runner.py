"""The one runner of labelled cases: what a case must come to, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from mcpdetect.contract import Detector
from mcpdetect.data.baseline import load_baseline
from mcpdetect.data.inputs import load_expectations
from mcpdetect.engine.run import run_checks
from mcpdetect.errors import ConfigError, InputError
from mcpdetect.ingest.open import open_bundle
from mcpdetect.labels.model import ExpectedCheck, Truth
from mcpdetect.model.result import CheckResult, Result
from mcpdetect.model.vocabulary import LEVELS
from mcpdetect.score.corpus import Case

__all__ = ["CaseOutcome", "CheckOutcome", "State", "as_expected", "run_bundle", "run_case"]

State = Literal["passed", "failed", "weak", "came-right", "unreadable"]
"""How a case ended: as labelled; not as labelled; wrong as its ``todo`` says; right although its ``todo`` says
otherwise, which fails so that the ``todo`` leaves; or its evidence cannot be read."""


@dataclass(slots=True)
class CheckOutcome:
    """What one check must say about a case, and what it says.

    Attributes:
        check: its id.
        expected: the label's word, places sorted.
        got: the check's word in the same form, places sorted.
        reason: the check's own reason for it.
    """

    check: str
    expected: ExpectedCheck
    got: ExpectedCheck
    reason: str

    @property
    def agrees(self) -> bool:
        """Verdict, number of findings, every place, the level, limits and explanations are as labelled."""
        return self.expected == self.got


@dataclass(slots=True)
class CaseOutcome:
    """What became of one case.

    Attributes:
        corpus, case: which one.
        truth: what it is by construction, for its own check.
        file: its label.
        todo: its known weakness.
        whole: every check that the label speaks of ran.
        checks: the checks that ran and that the label speaks of, sorted by id.
        error: why its evidence could not be read, where it could not.
    """

    corpus: str
    case: str
    truth: Truth
    file: str
    todo: str | None
    whole: bool
    checks: list[CheckOutcome] = field(default_factory=list)
    error: str | None = None

    @property
    def state(self) -> State:
        """How it ended."""
        if self.error is not None:
            return "unreadable"
        agreed = all(one.agrees for one in self.checks)
        if self.todo is None:
            return "passed" if agreed else "failed"
        if not agreed:
            return "weak"
        return "came-right" if self.whole else "passed"

    @property
    def ok(self) -> bool:
        """It ended as its label foresees."""
        return self.state in ("passed", "weak")


def run_bundle(bundle: Path, detectors: Mapping[str, type[Detector]]) -> Result:
    """Run detectors over one bundle, with the secrets, expectations and approved description that it brings.

    Args:
        bundle: its folder.
        detectors: by id.

    Raises:
        InputError: the evidence cannot be used.
        ConfigError: its manifest is wrong.
    """
    source = open_bundle(bundle / "manifest.json")
    expectations = load_expectations(source.expect) if source.expect is not None else None
    baseline = load_baseline(source.baseline) if source.baseline is not None else None
    return run_checks(source, dict(detectors), secrets=source.secrets, expectations=expectations, baseline=baseline)


def as_expected(result: CheckResult) -> ExpectedCheck:
    """Return what a check said in the form in which a label says it, places sorted, as much as a label can pin."""
    return ExpectedCheck(
        verdict=result.verdict,
        findings=len(result.findings),
        places=sorted({str(place) for finding in result.findings for place in finding.where}),
        level=max((finding.level for finding in result.findings), key=LEVELS.index, default=None),
        limits=sorted({limit.what for limit in result.limits if limit.hides})
        if result.verdict == "not_observable"
        else None,
        explained=sorted({one.rule for finding in result.findings for one in finding.explanations})
        if result.verdict == "detected"
        else None,
    )


def run_case(case: Case, detectors: Mapping[str, type[Detector]]) -> CaseOutcome:
    """Run a case and compare every check that ran with the label's word for it.

    Args:
        case: the case.
        detectors: by id; those that the label does not speak of are left out.
    """
    label = case.label
    wanted = {name: kind for name, kind in sorted(detectors.items()) if name in label.checks}
    outcome = CaseOutcome(
        case.corpus, label.case, label.truth, str(case.file), label.todo, whole=len(wanted) == len(label.checks)
    )
    try:
        result = run_bundle(case.bundle, wanted)
    except (InputError, ConfigError) as error:
        outcome.error = str(error)
        return outcome
    for said in result.checks:
        expected = label.checks[said.check]
        got = as_expected(said)
        if expected.limits is None:
            got.limits = None
        if expected.explained is None:
            got.explained = None
        wanted_here = replace(expected, places=sorted(expected.places))
        outcome.checks.append(CheckOutcome(said.check, wanted_here, got, said.reason))
    return outcome
