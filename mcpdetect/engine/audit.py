"""Several runs of one server as one result: what any run showed, and what no run could."""

from __future__ import annotations

from dataclasses import replace

from mcpdetect.model.result import CheckResult, Finding, Limit, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import PROOFS, VerdictWord, level_at_least

__all__ = ["join_runs"]

# Gravest first: one run that detects decides; a run that could not look forbids the claim for the whole audit.
_ORDER: tuple[VerdictWord, ...] = ("detected", "error", "not_observable", "not_detected")


def join_runs(results: list[Result], name: str = "audit") -> Result:
    """Return one result for several runs of one server; the runs stay readable as ``parts``.

    A check is ``detected`` when any run detects it, and ``not_detected`` only when every run says so. A finding of
    several runs is kept once, as the run shows it in which it is gravest: ``facts["run"]`` names that run, whose
    evidence its places are in, and ``facts["runs"]`` all of them.

    Raises:
        ValueError: there is no run to join.
    """
    if not results:
        raise ValueError("an audit needs at least one run")
    checks: dict[str, list[tuple[Result, CheckResult]]] = {}
    for result in results:
        for check in result.checks:
            checks.setdefault(check.check, []).append((result, check))
    joined = [_join(items) for _, items in sorted(checks.items())]
    run = Run(id=name, target=results[0].run.target, mode=" + ".join(result.run.mode for result in results))
    notes = [f"{result.run.id}: {note}" for result in results for note in result.notes]
    if any(result.run.mode == "denied" for result in results):
        notes.append(
            "a run with the network denied shows attempts; that it stayed quiet says little about the open network"
        )
    weakest = min((result.assurance for result in results), key=PROOFS.index)
    return Result(run=run, checks=joined, observations=[], assurance=weakest, notes=notes, parts=results)


def _join(items: list[tuple[Result, CheckResult]]) -> CheckResult:
    verdict = min((check.verdict for _, check in items), key=_ORDER.index)
    first = items[0][1]
    deciding = [(result, check) for result, check in items if check.verdict == verdict]
    findings: dict[str, tuple[str, Finding]] = {}
    seen_in: dict[str, list[str]] = {}
    limits: list[Limit] = []
    for result, check in items:
        for finding in check.findings:
            runs = seen_in.setdefault(finding.key, [])
            if result.run.id not in runs:
                runs.append(result.run.id)
            known = findings.get(finding.key)
            if known is None or not level_at_least(known[1].level, finding.level):
                findings[finding.key] = result.run.id, finding
        limits.extend(
            Limit(limit.what, f"{result.run.id}: {limit.detail}", limit.hides, limit.where, limit.count)
            for limit in check.limits
        )
    return CheckResult(
        check=first.check,
        version=first.version,
        title=first.title,
        verdict=verdict,
        proof=min((check.proof for _, check in items), key=PROOFS.index),
        reason="; ".join(f"{result.run.id}: {check.reason}" for result, check in deciding),
        findings=[
            replace(finding, facts={**finding.facts, "run": run, "runs": list(seen_in[key])})
            for key, (run, finding) in findings.items()
        ],
        limits=limits,
        examined=sum(check.examined for _, check in items),
        blind_to=first.blind_to,
    )
