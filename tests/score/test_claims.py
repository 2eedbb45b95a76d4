"""Claims: supported, contradicted or not claimable, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mcpdetect
from mcpdetect.cli.main import main
from mcpdetect.engine.audit import join_runs
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Limit, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level, Proof, VerdictWord
from mcpdetect.score.claims import Claim, claims_of, judge, known_claims

ROOT = Path(__file__).parents[2]
CLAIM = Claim("c", "no such thing", checks=("a.b",))


def said(
    verdict: VerdictWord, *, level: Level | None = None, proof: Proof = "declared", limit: str = ""
) -> CheckResult:
    findings = [Finding("a.b", "it was seen", "so", level, [Where("f", 1)], key="k")] if level else []
    limits = [Limit(limit, f"because of {limit}", hides=limit != "explained")] if limit else []
    return CheckResult("a.b", 1, "title", verdict, proof, "the reason", findings, limits)


def run(check: CheckResult, mode: str = "open", name: str = "r") -> Result:
    return Result(Run(name, mode=mode), [check], [], "declared")


def test_every_check_of_a_known_claim_is_installed_and_every_sentence_says_on_what_it_rests() -> None:
    claims = known_claims()
    assert [claim.id for claim in claims] == [
        "no-unexplained-egress",
        "no-external-connection",
        "no-planted-secret-read",
        "no-blocked-attempts",
        "no-exfiltration-instruction",
        "environment-not-read",
    ]
    for claim in claims:
        assert set(claim.checks) <= set(mcpdetect.installed_detectors())
        assert bool(claim.checks) != bool(claim.never)


def test_not_detected_on_proof_enough_supports_a_claim() -> None:
    told = judge(CLAIM, run(said("not_detected")))
    assert (told.outcome, told.reason) == ("supported", "a.b: the reason (declared)")
    assert told.window == "one run, network open"


def test_a_finding_contradicts_it() -> None:
    told = judge(CLAIM, run(said("detected", level="info")))
    assert (told.outcome, told.reason) == ("contradicted", "a.b: it was seen")


def test_a_finding_milder_than_the_claim_asks_for_does_not_stand_against_it() -> None:
    mild = Claim("c", "s", checks=("a.b",), level="suspicious")
    assert judge(mild, run(said("detected", level="info"))).outcome == "supported"
    told = judge(mild, run(said("detected", level="info", limit="io_uring")))
    assert (told.outcome, told.reason) == ("not_claimable", "a.b: because of io_uring")


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (said("not_observable"), "a.b is not observable: the reason"),
        (said("error"), "a.b is error: the reason"),
        (said("not_detected", proof="inferred"), "a.b rests on what is only inferred; declared is asked for"),
    ],
)
def test_what_was_not_seen_is_not_claimable(check: CheckResult, reason: str) -> None:
    told = judge(CLAIM, run(check))
    assert (told.outcome, told.reason) == ("not_claimable", reason)


def test_a_check_that_did_not_run_supports_nothing() -> None:
    told = judge(Claim("c", "s", checks=("x.y",)), run(said("not_detected")))
    assert (told.outcome, told.reason) == ("not_claimable", "x.y did not run")


def test_an_audit_needs_several_runs_and_an_open_network() -> None:
    claim = Claim("c", "s", checks=("a.b",), window="audit")
    silent = said("not_detected")
    assert judge(claim, run(silent)).reason == "one run is no audit"
    denied = join_runs([run(silent, "denied", "1"), run(silent, "denied", "2")])
    assert judge(claim, denied).reason == "no run had an open network"
    whole = join_runs([run(silent, "open", "1"), run(silent, "denied", "2")])
    told = judge(claim, whole)
    assert (told.outcome, told.window) == ("supported", "2 runs, network open, denied")


def test_nothing_can_be_blocked_without_a_denied_run() -> None:
    claim = Claim("c", "s", checks=("a.b",), window="denied")
    assert judge(claim, run(said("not_detected"))).outcome == "not_claimable"
    assert judge(claim, run(said("not_detected"), "denied")).outcome == "supported"


def test_a_documented_contact_contradicts_that_there_was_none() -> None:
    claim = Claim("c", "s", checks=("a.b",), contradicted=("explained",))
    told = judge(claim, run(said("not_detected", limit="explained")))
    assert (told.outcome, told.reason) == ("contradicted", "a.b: because of explained")


def test_evidence_against_outweighs_what_is_missing() -> None:
    claim = Claim("c", "s", checks=("a.b", "x.y"), window="audit")
    assert judge(claim, run(said("detected", level="info"))).outcome == "contradicted"


def test_the_environment_is_never_claimable_and_says_why() -> None:
    for case in ("secrets/canary-read/c-environment", "egress/direct-ip/python-named"):
        told = claims_of(mcpdetect.check(ROOT / "corpus" / case)).claims[-1]
        assert (told.claim, told.outcome) == ("environment-not-read", "not_claimable")
        assert told.reason.startswith("a process reads its own environment by looking at its memory")


def outcomes(case: str) -> dict[str, str]:
    return {claim.claim: claim.outcome for claim in claims_of(mcpdetect.check(ROOT / "corpus" / case)).claims}


def test_recorded_cases_give_the_claims_that_their_labels_give() -> None:
    assert outcomes("egress/unexplained-host/python-documented") == {
        "no-unexplained-egress": "supported",
        "no-external-connection": "contradicted",
        "no-planted-secret-read": "supported",
        "no-blocked-attempts": "not_claimable",
        "no-exfiltration-instruction": "not_claimable",
        "environment-not-read": "not_claimable",
    }
    assert outcomes("egress/direct-ip/c-tcp4")["no-unexplained-egress"] == "contradicted"
    assert outcomes("secrets/canary-read/c-io-uring")["no-planted-secret-read"] == "not_claimable"
    assert outcomes("network/blocked/c-tcp4-output-drop")["no-blocked-attempts"] == "contradicted"


def test_the_command_writes_claims_and_keeps_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    case = str(ROOT / "corpus/egress/direct-ip/c-tcp4")
    plain = main(["check", case, "--format", "json"])
    capsys.readouterr()
    assert main(["check", case, "--claims", "--format", "json"]) == plain == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "mcpdetect.claims/1"
    assert [one["run"] for one in document["runs"]] == ["egress/direct-ip/c-tcp4"]
    assert document["runs"][0]["claims"][0] == {
        "claim": "no-unexplained-egress",
        "sentence": "no unexplained egress",
        "outcome": "contradicted",
        "reason": "egress.direct-ip: Data or a connection reached 1.1.1.1:443/tcp, an address no name explains",
        "checks": ["egress.direct-ip", "egress.unexplained-host"],
        "window": "one run, network open",
    }
    assert main(["check", case, "--claims"]) == 1
    text = capsys.readouterr().out.splitlines()
    assert text[0] == "What can be claimed of egress/direct-ip/c-tcp4"
    assert text[2] == "  contradicted: no unexplained egress"
