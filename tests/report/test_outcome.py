"""Exit codes: what a set of results means for the caller."""

from __future__ import annotations

import pytest
from report_samples import check, finding, result

from mcpdetect.model.result import Result
from mcpdetect.model.vocabulary import Level
from mcpdetect.report.outcome import Outcome, Unreadable, highest_level, outcome

SUSPICIOUS = check("a.found", "detected", findings=[finding(level="info"), finding(level="suspicious")])
BLIND = check("a.blind", "not_observable")
QUIET = check("a.quiet", "not_detected")
CRASH = check("a.crash", "error")


def test_nothing_found() -> None:
    assert outcome([result(QUIET)]) == Outcome(0, "no finding")


def test_unanswered_checks_are_named_even_in_success() -> None:
    assert outcome([result(QUIET, BLIND)]) == Outcome(0, "no finding, but not every check could be answered")


@pytest.mark.parametrize(
    ("fail_on", "code", "meaning"),
    [
        ("info", 1, "a finding is info or graver"),
        ("suspicious", 1, "a finding is suspicious or graver"),
        ("accusing", 0, "no finding is accusing"),
    ],
)
def test_a_finding_counts_from_the_asked_level_on(fail_on: Level, code: int, meaning: str) -> None:
    assert outcome([result(SUSPICIOUS)], fail_on=fail_on) == Outcome(code, meaning)


def test_a_named_check_must_answer() -> None:
    assert outcome([result(QUIET, BLIND)], required=["a.quiet"]).code == 0
    assert outcome([result(QUIET, BLIND)], required=["a.blind"]) == Outcome(
        3, "a.blind had to be observable and was not"
    )


def test_a_named_check_that_did_not_run_did_not_answer() -> None:
    assert outcome([result(QUIET)], required=["a.other"]) == Outcome(3, "a.other had to be observable and was not")


def test_strict_asks_every_check() -> None:
    many = [check(f"a.blind-{n}", "not_observable") for n in range(5)]
    meaning = "a.blind-0, a.blind-1 and 3 more had to be observable and was not"
    assert outcome([result(QUIET, *many)], strict=True) == Outcome(3, meaning)


def test_no_check_is_no_answer() -> None:
    assert outcome([result()]) == Outcome(3, "no check ran, so nothing was examined")


def test_a_finding_outranks_an_unanswered_check() -> None:
    assert outcome([result(SUSPICIOUS, BLIND)], strict=True).code == 1


def test_a_crash_outranks_a_finding() -> None:
    assert outcome([result(SUSPICIOUS, CRASH)]) == Outcome(5, "a.crash crashed and gave no verdict")


def test_a_crash_in_one_run_of_an_audit_is_not_hidden_by_the_joined_verdict() -> None:
    joined: Result = result(SUSPICIOUS, parts=[result(SUSPICIOUS), result(check("a.found", "error"))])
    assert outcome([joined]) == Outcome(5, "a.found crashed and gave no verdict")


def test_unreadable_input_outranks_all() -> None:
    end = outcome([result(SUSPICIOUS, CRASH)], unreadable=[Unreadable("x.log", "x.log: is empty")])
    assert end == Outcome(4, "x.log could not be read")


def test_highest_level() -> None:
    assert highest_level(QUIET) is None
    assert highest_level(SUSPICIOUS) == "suspicious"
