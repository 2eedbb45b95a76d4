"""Claims: sentences fit to publish, each supported, contradicted or not claimable, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mcpdetect.data.loader import load_yaml
from mcpdetect.model.place import STRICT
from mcpdetect.model.result import CheckResult, Result
from mcpdetect.model.vocabulary import Level, Proof, level_at_least, proof_at_least

__all__ = ["Claim", "ClaimOutcome", "ClaimWord", "Claims", "claims_of", "judge", "known_claims"]

ClaimWord = Literal["supported", "contradicted", "not_claimable"]
"""What becomes of a sentence."""

_SHAPE: Any = {
    "claims": [
        {
            "id": None,
            "sentence": None,
            "checks?": [None],
            "proof?": None,
            "window?": None,
            "level?": None,
            "contradicted?": [None],
            "never?": None,
        }
    ]
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence and what it may rest on; see ``mcpdetect/data/claims.yaml``."""

    id: str
    sentence: str
    checks: tuple[str, ...] = ()
    proof: Proof = "declared"
    window: Literal["run", "audit", "denied"] = "run"
    level: Level = "info"
    contradicted: tuple[str, ...] = ()
    never: str | None = None


@dataclass(slots=True)
class ClaimOutcome:
    """What became of one sentence.

    Attributes:
        claim: its id.
        sentence: the sentence.
        outcome: the word.
        reason: why.
        checks: the checks that it rests on.
        window: what the sentence is about, in words.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    claim: str
    sentence: str
    outcome: ClaimWord
    reason: str
    checks: list[str]
    window: str


@dataclass(slots=True)
class Claims:
    """The claims about one run or audit.

    Attributes:
        run: its id.
        claims: every known sentence.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    run: str
    claims: list[ClaimOutcome] = field(default_factory=list)


def known_claims() -> list[Claim]:
    """Return the sentences that this version knows, in the order of the data file."""
    return [
        Claim(
            id=entry["id"],
            sentence=entry["sentence"],
            checks=tuple(entry.get("checks", ())),
            proof=entry.get("proof", "declared"),
            window=entry.get("window", "run"),
            level=entry.get("level", "info"),
            contradicted=tuple(entry.get("contradicted", ())),
            never=entry.get("never"),
        )
        for entry in load_yaml("claims.yaml", _SHAPE)["claims"]
    ]


def claims_of(result: Result) -> Claims:
    """Return what can be claimed about a run or audit."""
    return Claims(result.run.id, [judge(claim, result) for claim in known_claims()])


def judge(claim: Claim, result: Result) -> ClaimOutcome:
    """Return what becomes of one sentence.

    Evidence against it outweighs everything; without any, each check must have said ``not_detected`` on proof enough,
    and the runs must be of the kind that the sentence speaks of.
    """
    runs = result.parts or [result]
    outcome = ClaimOutcome(claim.id, claim.sentence, "not_claimable", "", list(claim.checks), _window(runs))
    if claim.never is not None:
        outcome.reason = claim.never
        return outcome
    said = {check.check: check for check in result.checks}
    against = [text for name in claim.checks if name in said for text in _against(claim, said[name], runs)]
    if against:
        outcome.outcome, outcome.reason = "contradicted", _joined(against)
        return outcome
    missing = [text for name in claim.checks for text in _missing(claim, name, said.get(name))]
    missing += _wrong_window(claim, runs)
    if missing:
        outcome.reason = _joined(missing)
        return outcome
    outcome.outcome = "supported"
    outcome.reason = _joined([f"{name}: {said[name].reason} ({said[name].proof})" for name in claim.checks])
    return outcome


def _against(claim: Claim, check: CheckResult, runs: Sequence[Result]) -> list[str]:
    grave = [finding for finding in check.findings if level_at_least(finding.level, claim.level)]
    told = [f"{check.check}: {finding.title}" for finding in grave[:1]]
    if len(grave) > 1:
        told[0] += f" (and {len(grave) - 1} more)"
    words = [
        limit
        for one in (check, *(part for run in runs for part in run.checks if part.check == check.check))
        for limit in one.limits
        if limit.what in claim.contradicted
    ]
    return told + ([f"{check.check}: {words[0].detail}"] if words else [])


def _missing(claim: Claim, name: str, check: CheckResult | None) -> list[str]:
    if check is None:
        return [f"{name} did not run"]
    # A finding too mild to contradict the sentence is no reason against it.
    if check.verdict == "detected":
        hiding = [limit for limit in check.limits if limit.hides]
        if hiding:
            return [f"{name}: {hiding[0].detail}"]
    elif check.verdict != "not_detected":
        return [f"{name} is {check.verdict.replace('_', ' ')}: {check.reason}"]
    if not proof_at_least(check.proof, claim.proof):
        return [f"{name} rests on what is only {check.proof}; {claim.proof} is asked for"]
    return []


def _wrong_window(claim: Claim, runs: Sequence[Result]) -> list[str]:
    modes = {run.run.mode for run in runs}
    if claim.window == "audit" and len(runs) < 2:
        return ["one run is no audit"]
    if claim.window == "audit" and "open" not in modes:
        return ["no run had an open network"]
    if claim.window == "denied" and "denied" not in modes:
        return ["no run was denied the network, so that nothing could be blocked"]
    return []


def _window(runs: Sequence[Result]) -> str:
    if len(runs) == 1:
        return f"one run, network {runs[0].run.mode}"
    return f"{len(runs)} runs, network {', '.join(run.run.mode for run in runs)}"


def _joined(parts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(parts))
