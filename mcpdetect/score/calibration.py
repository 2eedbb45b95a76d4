"""Calibration: what a sandbox that ran the probe lets each check see, and what it did to the probe's traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mcpdetect.engine.discovery import detectors
from mcpdetect.engine.observability import assess
from mcpdetect.engine.run import run_checks
from mcpdetect.errors import InputError
from mcpdetect.ingest.evidence import Evidence
from mcpdetect.ingest.probes import ProbeWatch, discover
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import STRICT
from mcpdetect.model.probe_acts import PHASES, ProbeRun
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Proof

__all__ = ["CALIBRATION_SCHEMA", "Calibration", "CheckSight", "FileSight", "calibrate"]

CALIBRATION_SCHEMA = "mcpdetect.calibration/0"
"""Name and version of the document; the number grows when a reader of the old one would misread it."""

_DENIAL = "network.blocked"


@dataclass(slots=True)
class FileSight:
    """What one evidence file showed of the probes.

    Attributes:
        observation: what it could show, by all that is known of it.
        before, after: kinds of events by which it showed each probe; empty: it did not.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    observation: Observation
    before: list[str]
    after: list[str]


@dataclass(slots=True)
class CheckSight:
    """What one check could say in this sandbox.

    Attributes:
        check: its id.
        observable: it could say ``not_detected``.
        proof: the weakest proof that would rest on.
        limits: what stands in the way, or beside it.
        requires: inputs it needs besides evidence.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    check: str
    observable: bool
    proof: Proof
    limits: list[str]
    requires: list[str]


@dataclass(slots=True)
class Calibration:
    """What a sandbox lets be seen.

    Attributes:
        run: the run that was looked at.
        probes: the probes found or declared.
        files: one for each evidence file.
        checks: one for each installed check.
        denial: how the probe's traffic was denied, one word for each way; empty where it was not, or nobody can tell.
        denial_reason: a sentence about it.
        schema: ``CALIBRATION_SCHEMA``.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    run: Run
    probes: list[ProbeRun]
    files: list[FileSight]
    checks: list[CheckSight]
    denial: list[str] = field(default_factory=list)
    denial_reason: str = ""
    schema: str = CALIBRATION_SCHEMA


def calibrate(opened: Callable[[], Evidence], nonces: Sequence[ProbeRun] = ()) -> Calibration:
    """Look at evidence in which probes ran.

    Args:
        opened: opens the evidence anew; it is read up to three times, so it must be no pipe.
        nonces: the probes, where they are known; else those that a manifest declares, else those that can be
            recognised, which only tells the truth where nothing hostile ran.

    Raises:
        InputError: the evidence cannot be read, or no probe is in it.
    """
    evidence = opened()
    entry = evidence.run.entry
    probes = list(nonces) or (evidence.probes.declared if evidence.probes is not None else [])
    if not probes:
        probes = _recognised(opened())
    evidence.probes = watch = ProbeWatch(probes, entry)
    for _ in evidence.events(None):
        pass  # the observations and the watch learn from it
    observations = evidence.observations()
    channels = [item.channel for item in observations]
    files = [
        FileSight(
            item, *(sorted(watch.shown(item, phase, alone=channels.count(item.channel) == 1)) for phase in PHASES)
        )
        for item in observations
    ]
    found = detectors()
    checks = []
    for name, kind in found.items():
        sight = assess(kind.spec, observations, "inferred")
        checks.append(
            CheckSight(
                name,
                sight.observable,
                sight.proof,
                [limit.detail for limit in sight.limits if limit.hides or not sight.observable],
                list(kind.spec.requires),
            )
        )
    result = Calibration(evidence.run, probes, files, checks)
    if _DENIAL in found:
        again = opened()
        again.probes = ProbeWatch(probes, entry, only=True)
        again.run.entry = None  # the probes are what is looked at, the target does not begin
        outcome = run_checks(again, {_DENIAL: found[_DENIAL]}, assurance="inferred").checks[0]
        modes = {str(finding.facts.get("denial") or "unknown") for finding in outcome.findings}
        result.denial = sorted(modes)
        result.denial_reason = {
            "detected": f"{len(outcome.findings)} of the probe's destinations and names were denied",
            "not_detected": "nothing denied the probe's traffic",
        }.get(outcome.verdict, outcome.reason)
    return result


def _recognised(evidence: Evidence) -> list[ProbeRun]:
    wanted = frozenset({"process.start", "dns.query"})
    found = discover(evidence.events(wanted))
    phases = [probe.phase for probe in found]
    if not found:
        raise InputError(
            "no probe is in this evidence",
            file=evidence.run.id,
            cause="it did not run, or ran outside of what was recorded",
            hint="print it with `mcpdetect probe`, run it in the sandbox before and after a program, and record again",
        )
    if len(set(phases)) != len(phases):
        raise InputError(
            "there are several probes of one phase in this evidence",
            file=evidence.run.id,
            value=", ".join(f"{probe.phase} {probe.nonce}" for probe in found),
            hint="name the two that belong together with --before and --after",
        )
    return found
