"""Publication: accusing findings that nobody has reviewed are held back; what a run came out as never changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcpdetect.labels.reviews import ReviewRecord
from mcpdetect.model.result import CheckResult, Finding, Result

__all__ = ["WITHHELD", "Reviews", "published"]

WITHHELD = "withheld: nobody has reviewed this finding yet"
"""What stands in the place of a finding that is held back."""

Reviews = Mapping[tuple[str, str, str], ReviewRecord]
"""Review records by run, check and key."""


def published(result: Result, reviews: Reviews) -> Result:
    """Return a result as it may be published.

    An accusing finding without a review keeps its check, level, places and key, so that all counts stay, and loses
    everything that says what it is about. A reviewed one tells the decision.

    Args:
        result: the result; it is not changed.
        reviews: records by run, check and key.
    """
    held = 0
    checks = []
    for check in result.checks:
        shown, number = _check(check, result, reviews)
        held += number
        checks.append(shown)
    notes = list(result.notes)
    if held:
        notes.append(f"{held} accusing finding{'s are' if held > 1 else ' is'} withheld until a person has reviewed it")
    parts = [published(part, reviews) for part in result.parts]
    return replace(result, checks=checks, notes=notes, parts=parts)


def _check(check: CheckResult, result: Result, reviews: Reviews) -> tuple[CheckResult, int]:
    held = 0
    findings = []
    runs = [result.run.id, *(part.run.id for part in result.parts)]
    for finding in check.findings:
        if finding.level != "accusing":
            findings.append(finding)
            continue
        record = next((reviews[key] for run in runs if (key := (run, check.check, finding.key)) in reviews), None)
        if record is None:
            held += 1
            findings.append(_held(finding))
        else:
            findings.append(_reviewed(finding, record))
    return replace(check, findings=findings), held


def _held(finding: Finding) -> Finding:
    return Finding(
        check=finding.check,
        title=WITHHELD,
        reason="an accusation is published once a person has looked at it",
        level=finding.level,
        where=list(finding.where),
        facts={"withheld": True},
        key=finding.key,
    )


def _reviewed(finding: Finding, record: ReviewRecord) -> Finding:
    facts = dict(finding.facts)
    facts["review"] = record.decision
    facts["review-by"] = f"{record.by}, {record.date}"
    facts["review-why"] = record.why
    return replace(finding, facts=facts)
