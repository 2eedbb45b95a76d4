"""Publication: accusing findings wait for a review; nothing else changes."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from mcpdetect.cli.main import main
from mcpdetect.labels.reviews import ReviewRecord
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level
from mcpdetect.score.publish import WITHHELD, published

ROOT = Path(__file__).parents[2]
KEY = "0123456789abcdef"


def result(level: Level, name: str = "r") -> Result:
    finding = Finding(
        "a.b",
        "evil.example was given the key",
        "it was",
        level,
        [Where("f", 3)],
        process="7",
        program="/bin/x",
        t_ns=5,
        facts={"address": "192.0.2.1", "count": 1},
        key=KEY,
        identity="evil.example",
    )
    return Result(
        Run(name), [CheckResult("a.b", 1, "t", "detected", "declared", "1 finding", [finding])], [], "declared"
    )


def record(decision: str, run: str = "r") -> dict[tuple[str, str, str], ReviewRecord]:
    made = ReviewRecord("mcpdetect.review/0", "a.b", KEY, run, "maintainer", "2026-11-30", decision, "so")  # type: ignore[arg-type]
    return {(run, "a.b", KEY): made}


def test_an_accusing_finding_without_a_review_says_only_that_it_is_there() -> None:
    given = result("accusing")
    before = copy.deepcopy(given)
    shown = published(given, {})
    assert given == before
    assert shown.checks[0].verdict == "detected"
    assert shown.checks[0].findings == [
        Finding(
            "a.b",
            WITHHELD,
            "an accusation is published once a person has looked at it",
            "accusing",
            [Where("f", 3)],
            facts={"withheld": True},
            key=KEY,
        )
    ]
    assert shown.notes == ["1 accusing finding is withheld until a person has reviewed it"]
    assert "evil.example" not in repr(shown)


@pytest.mark.parametrize("level", ["info", "suspicious"])
def test_milder_findings_are_published_as_they_are(level: Level) -> None:
    given = result(level)
    assert published(given, {}) == given


@pytest.mark.parametrize("decision", ["confirmed", "dismissed"])
def test_a_reviewed_finding_is_published_with_the_decision(decision: str) -> None:
    shown = published(result("accusing"), record(decision)).checks[0].findings[0]
    assert shown.title == "evil.example was given the key"
    assert shown.facts == {
        "address": "192.0.2.1",
        "count": 1,
        "review": decision,
        "review-by": "maintainer, 2026-11-30",
        "review-why": "so",
    }


def test_a_review_of_another_run_covers_nothing() -> None:
    assert published(result("accusing"), record("confirmed", "other")).checks[0].findings[0].title == WITHHELD


def test_an_audit_is_covered_by_a_review_of_one_of_its_runs_and_its_parts_are_held_back_too() -> None:
    one, two = result("accusing", "1"), result("accusing", "2")
    whole = result("accusing", "audit")
    whole.parts = [one, two]
    shown = published(whole, record("confirmed", "1"))
    assert shown.checks[0].findings[0].facts["review"] == "confirmed"
    assert [part.checks[0].findings[0].title == WITHHELD for part in shown.parts] == [False, True]


def test_the_command_keeps_verdicts_counts_and_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = str(ROOT / "corpus/mcp/exfil-instruction/node-mail-secrets")
    plain = main(["check", case, "--format", "json"])
    whole = json.loads(capsys.readouterr().out)
    assert main(["check", case, "--format", "json", "--publish"]) == plain == 1
    shown = json.loads(capsys.readouterr().out)
    assert [(c["check"], c["verdict"], len(c["findings"])) for c in shown["checks"]] == [
        (c["check"], c["verdict"], len(c["findings"])) for c in whole["checks"]
    ]


def test_reviews_without_publication_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = str(ROOT / "corpus/egress/direct-ip/c-tcp4")
    assert main(["check", case, "--reviews", str(tmp_path)]) == 2
    assert main(["check", case, "--claims", "--publish"]) == 2
