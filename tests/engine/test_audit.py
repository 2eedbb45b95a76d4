"""Runs joined: the gravest decides, every run keeps its say."""

from __future__ import annotations

import pytest
from hand_sources import where

from mcpdetect.engine.audit import join_runs
from mcpdetect.model.result import CheckResult, Explanation, Finding, Limit, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level, Proof, VerdictWord


def result(
    name: str,
    verdict: VerdictWord,
    *findings: Finding,
    mode: str = "open",
    proof: Proof = "declared",
    assurance: Proof = "declared",
) -> Result:
    check = CheckResult("test.x", 1, "X.", verdict, proof, f"because {name}", list(findings), [], 2, ["blind"])
    return Result(Run(id=name, target=["srv"], mode=mode), [check], [], assurance)


def finding(key: str, level: Level = "suspicious", line: int = 1) -> Finding:
    explained = [Explanation("r", "t", "s")] if level == "info" else []
    return Finding("test.x", "t", "r", level, [where(line)], explanations=explained, key=key)


ORDER: list[VerdictWord] = ["detected", "error", "not_observable", "not_detected"]


@pytest.mark.parametrize("first", ORDER)
@pytest.mark.parametrize("second", ORDER)
def test_the_gravest_verdict_of_any_run_is_the_audits(first: VerdictWord, second: VerdictWord) -> None:
    joined = join_runs([result("a", first), result("b", second)])
    assert joined.checks[0].verdict == ORDER[min(ORDER.index(first), ORDER.index(second))]


def test_reasons_name_the_runs_that_decided() -> None:
    joined = join_runs([result("a", "not_detected"), result("b", "not_observable"), result("c", "not_observable")])
    check = joined.checks[0]
    assert (check.reason, check.examined) == ("b: because b; c: because c", 6)


def test_one_finding_of_several_runs_is_kept_once_at_its_gravest() -> None:
    mild, grave, other = finding("k", "info", 1), finding("k", "suspicious", 2), finding("o", "info", 3)
    for runs in ([mild, grave], [grave, mild]):
        joined = join_runs([result(str(n), "detected", item, other) for n, item in enumerate(runs)])
        assert sorted((item.key, item.level, item.where[0].at) for item in joined.checks[0].findings) == [
            ("k", "suspicious", 2),
            ("o", "info", 3),
        ]


def test_a_finding_names_the_run_of_its_places_and_every_run_that_shows_it() -> None:
    mild, grave, other = finding("k", "info", 1), finding("k", "suspicious", 2), finding("o", "info", 3)
    joined = join_runs(
        [result("a", "detected", mild), result("b", "detected", grave, other), result("c", "detected", mild)]
    )
    assert [(one.key, one.where[0].at, one.facts) for one in joined.checks[0].findings] == [
        ("k", 2, {"run": "b", "runs": ["a", "b", "c"]}),
        ("o", 3, {"run": "b", "runs": ["b"]}),
    ]
    # The runs themselves stay as they were.
    assert (mild.facts, grave.facts, other.facts) == ({}, {}, {})


def test_limits_keep_their_run_and_proofs_are_the_weakest() -> None:
    one, two = result("a", "not_detected", proof="proved"), result("b", "not_observable", assurance="inferred")
    two.checks[0].limits.append(Limit("io_uring", "rings", True, where(4), 3))
    joined = join_runs([one, two], "server")
    assert joined.checks[0].limits == [Limit("io_uring", "b: rings", True, where(4), 3)]
    assert (joined.checks[0].proof, joined.assurance, joined.run.id, joined.parts) == (
        "declared",
        "inferred",
        "server",
        [one, two],
    )


def test_a_denied_run_is_said_to_prove_little_about_the_open_one() -> None:
    joined = join_runs([result("a", "not_detected"), result("b", "not_detected", mode="denied")])
    assert joined.run.mode == "open + denied"
    assert joined.notes == [
        "a run with the network denied shows attempts; that it stayed quiet says little about the open network"
    ]
    assert join_runs([result("a", "not_detected")]).notes == []


def test_notes_of_runs_keep_their_run() -> None:
    one = result("a", "not_detected")
    one.notes.append("odd")
    assert join_runs([one]).notes == ["a: odd"]


def test_an_audit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        join_runs([])
