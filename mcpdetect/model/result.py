"""What a check comes out as: verdicts, findings, explanations, limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from mcpdetect.model.observation import Observation
from mcpdetect.model.place import STRICT, Where
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level, Proof, VerdictWord

__all__ = ["RESULT_SCHEMA", "CheckResult", "Explanation", "Finding", "Limit", "Result"]

RESULT_SCHEMA = "mcpdetect.result/1"


@dataclass(slots=True)
class Explanation:
    """Why a finding may be ordinary.

    Attributes:
        rule: stable id of the explaining rule (``dotenv-upward-search``, ``documented-host``).
        text: the reason in plain words.
        source: where the habit or documentation is written down.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    rule: str
    text: str
    source: str


@dataclass(slots=True)
class Finding:
    """One detected instance.

    Attributes:
        check: id of the detector.
        title: what happened, one line; safe text, hostile names are escaped when shown, not here.
        reason: in plain words what happened and why an honest program would hardly do it, or what it may mean.
        level: after explanations.
        where: the evidence places, in order; never empty.
        process: identity of the acting process, where known.
        program: its executable or command.
        t_ns: when.
        explanations: why it may be ordinary.
        facts: machine-readable details: ``address``, ``port``, ``path``, ``outcome``, ``denial``, ``count``, ...
        key: stable across runs and versions of the same evidence content: sha256 over check and ``identity``.
        identity: what makes this finding the same one in another run (destination, path, pointer): no pids, no times.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    check: str
    title: str
    reason: str
    level: Level
    where: list[Where]
    process: str | None = None
    program: str | None = None
    t_ns: int | None = None
    explanations: list[Explanation] = field(default_factory=list)
    facts: dict[str, str | int | bool | list[str] | None] = field(default_factory=dict)
    key: str = ""
    identity: str = ""


@dataclass(slots=True)
class Limit:
    """Something that the evidence lost or could not show.

    Attributes:
        what: stable word, as in ``Loss.what``, or ``missing-channel``, ``not-watched``, ``not-configured``,
            ``weak-proof``, ``window``.
        detail: the sentence for people.
        hides: it could hide the very fact the check looks for, so the check cannot say ``not_detected``.
        where: first place in the evidence, where there is one.
        count: how often.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    what: str
    detail: str
    hides: bool = True
    where: Where | None = None
    count: int = 1


@dataclass(slots=True)
class CheckResult:
    """One check's verdict.

    Attributes:
        check, version, title: the detector's id, version and one-line claim.
        verdict: detected, not_detected, not_observable or error.
        proof: the weakest proof this verdict rests on; ``absent`` where nothing watched.
        reason: one sentence why the verdict is what it is.
        findings: for ``detected``; never empty then.
        limits: what could not be seen.
        examined: how many events the detector looked at.
        blind_to: what the check cannot see even when all goes well.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    check: str
    version: int
    title: str
    verdict: VerdictWord
    proof: Proof
    reason: str
    findings: list[Finding] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    examined: int = 0
    blind_to: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """What one trace, or one audit of several, comes out as. Every report is made from it.

    Attributes:
        run: the run.
        checks: one verdict for every check that was asked for.
        observations: what each evidence file could show.
        assurance: the least proof that ``not_detected`` had to rest on.
        schema: ``RESULT_SCHEMA``.
        generator: the program that made it.
        notes: what a reader should know beside the verdicts.
        parts: for an audit, the result of each of its runs.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    run: Run
    checks: list[CheckResult]
    observations: list[Observation]
    assurance: Proof
    schema: str = RESULT_SCHEMA
    generator: str = ""
    notes: list[str] = field(default_factory=list)
    parts: list[Result] = field(default_factory=list)
