"""The report of a self-test, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from mcpdetect.labels.model import ExpectedCheck, Truth
from mcpdetect.model.place import STRICT
from mcpdetect.model.text import shown
from mcpdetect.report.layout import Style, columns, counted, wrapped
from mcpdetect.report.outcome import (
    EXIT_CRASH,
    EXIT_FINDING,
    EXIT_OK,
    EXIT_UNOBSERVABLE,
    EXIT_UNREADABLE,
    Outcome,
)
from mcpdetect.score.runner import CaseOutcome, CheckOutcome, State
from mcpdetect.score.selftest import SelfTest
from mcpdetect.version import GENERATOR

__all__ = [
    "SELFTEST_SCHEMA",
    "SelfTestCase",
    "SelfTestCheck",
    "SelfTestReport",
    "SelfTestSaid",
    "selftest_json",
    "selftest_outcome",
    "selftest_text",
]

SELFTEST_SCHEMA = "mcpdetect.selftest/0"
"""Name and version of the JSON form of a self-test."""

_STATES: dict[State, str] = {
    "passed": "came out as labelled",
    "weak": "wrong as their todo says",
    "failed": "failed",
    "came-right": "came right against their todo",
    "unreadable": "could not be read",
}


@dataclass(slots=True)
class SelfTestSaid:
    """What one check must say about a case (``expected``), what it said (``got``), and its reason."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    check: str
    agrees: bool
    expected: ExpectedCheck
    got: ExpectedCheck
    reason: str


@dataclass(slots=True)
class SelfTestCase:
    """One case.

    Attributes:
        corpus, case: which one.
        truth: what it is by construction.
        state: ``passed``, ``failed``, ``weak`` (wrong as its todo says), ``came-right`` (against its todo) or
            ``unreadable``.
        checks: the checks that ran.
        todo: its known weakness.
        error: why its evidence could not be read.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    corpus: str
    case: str
    truth: Truth
    state: State
    checks: list[SelfTestSaid]
    todo: str | None = None
    error: str | None = None


@dataclass(slots=True)
class SelfTestCheck:
    """How often a check came out as labelled in each way, and what no case shows of it (``missing``)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    fires: int
    silent: int
    blind: int
    missing: list[Truth]


@dataclass(slots=True)
class SelfTestReport:
    """A self-test.

    Attributes:
        corpora: the corpora.
        exit: the exit code.
        meaning: the reason for it.
        checks: by id.
        cases: all of them.
        generator: the program that made it.
        schema: ``SELFTEST_SCHEMA``.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    corpora: list[str]
    exit: int
    meaning: str
    checks: dict[str, SelfTestCheck]
    cases: list[SelfTestCase]
    generator: str = GENERATOR
    schema: str = SELFTEST_SCHEMA


def selftest_outcome(result: SelfTest) -> Outcome:
    """Return the exit code of a self-test and why.

    Unreadable evidence outranks a crash, that any other failed case, that a check which no case shows able to fire or
    to stay silent.

    Args:
        result: the self-test.
    """
    unreadable = [one for one in result.outcomes if one.state == "unreadable"]
    if unreadable:
        return Outcome(EXIT_UNREADABLE, f"{counted(len(unreadable), 'case')} could not be read")
    failed = len(result.failures)
    if result.crashed:
        return Outcome(EXIT_CRASH, "a check crashed")
    if failed:
        return Outcome(EXIT_FINDING, f"{counted(failed, 'case')} failed")
    if not result.checks:
        return Outcome(EXIT_UNOBSERVABLE, "no check is installed, so nothing was tested")
    if result.unproved:
        told = "; ".join(f"no case shows that {check} {_ways(ways)}" for check, ways in result.unproved.items())
        return Outcome(EXIT_UNOBSERVABLE, told)
    return Outcome(EXIT_OK, "every case ended as its label foresees")


def _ways(missing: list[Truth]) -> str:
    return " or ".join({"fires": "fires", "silent": "stays silent", "blind": "is blind"}[one] for one in missing)


def selftest_text(result: SelfTest, style: Style) -> str:
    """Return the report for people.

    Args:
        result: the self-test.
        style: width and colours.
    """
    lines = [style.paint(f"self-test of {', '.join(map(shown, result.corpora)) or 'nothing'}", "title"), ""]
    rows = [["check", "fires", "silent", "blind", ""]]
    for check, proven in result.checks.items():
        note = f"no case shows that it {_ways(proven.missing)}" if proven.missing else ""
        rows.append([shown(check), str(proven.fires), str(proven.silent), str(proven.blind), note])
    for at, row in enumerate(columns(rows, right=(1, 2, 3))):
        text = "  " + "".join(row).rstrip()
        lines.append(style.paint(text, "quiet") if not at else style.paint(text, "grave") if row[-1].strip() else text)
    for title, states in (("FAILED", ("unreadable", "failed", "came-right")), ("KNOWN WEAKNESSES", ("weak",))):
        told = [one for one in result.outcomes if one.state in states]
        if told:
            lines += ["", style.paint(title, "title")]
            for one in told:
                lines += _case(one, style)
    tally = Counter(one.state for one in result.outcomes)
    counts = ", ".join(f"{tally[state]} {words}" for state, words in _STATES.items() if tally[state])
    end = selftest_outcome(result)
    lines += ["", *wrapped(f"{counted(len(result.outcomes), 'case')}: {counts or 'none'}", style.prose)]
    lines += [
        style.paint(line, "quiet" if end.code == EXIT_OK else "grave")
        for line in wrapped(f"exit {end.code}: {shown(end.meaning, 600)}", style.prose)
    ]
    return style.encode("\n".join(lines) + "\n")


def _case(one: CaseOutcome, style: Style) -> list[str]:
    lines = [style.paint(f"  {shown(one.corpus)}: {shown(one.case)}", "warn") + f"  {one.truth}"]
    if one.todo is not None:
        said = "came right, so its todo must go: " if one.state == "came-right" else "todo: "
        lines += wrapped(said + shown(one.todo, 600), style.prose, "    ")
    if one.error is not None:
        for line in one.error.splitlines():
            lines += wrapped(shown(line, 600), style.prose, "    ")
    for check in one.checks:
        if not check.agrees:
            lines += [f"    {shown(check.check)}", *_difference(check, style)]
    return lines


def _difference(said: CheckOutcome, style: Style) -> list[str]:
    lines = wrapped(_word(said.expected), style.prose, "      expected  ")
    lines += wrapped(_word(said.got), style.prose, "      got       ")
    lines += wrapped(shown(said.reason, 600), style.prose, "      because   ")
    wanted, found = set(said.expected.places), set(said.got.places)
    for head, places in (("missing", wanted - found), ("extra", found - wanted)):
        if places:
            lines += wrapped(", ".join(shown(one) for one in sorted(places)), style.prose, f"      {head:<10}")
    for head, words, now in (
        ("limits", said.expected.limits, said.got.limits),
        ("explained", said.expected.explained, said.got.explained),
    ):
        if words != now:
            lines += wrapped(f"expected {_listed(words)}, got {_listed(now)}", style.prose, f"      {head:<10}")
    return lines


def _listed(words: list[str] | None) -> str:
    return ", ".join(shown(word) for word in words or []) or "nothing"


def _word(one: ExpectedCheck) -> str:
    if not one.findings:
        return one.verdict
    places = ", ".join(shown(place) for place in one.places)
    return f"{one.verdict}, {counted(one.findings, 'finding')}, level {one.level}, at {places}"


def selftest_json(result: SelfTest) -> bytes:
    """Return the report as one JSON document, indented, ending in a line break."""
    end = selftest_outcome(result)
    report = SelfTestReport(
        corpora=result.corpora,
        exit=end.code,
        meaning=end.meaning,
        checks={
            check: SelfTestCheck(proven.fires, proven.silent, proven.blind, list(proven.missing))
            for check, proven in result.checks.items()
        },
        cases=[
            SelfTestCase(
                one.corpus,
                one.case,
                one.truth,
                one.state,
                [SelfTestSaid(said.check, said.agrees, said.expected, said.got, said.reason) for said in one.checks],
                one.todo,
                one.error,
            )
            for one in result.outcomes
        ],
    )
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
