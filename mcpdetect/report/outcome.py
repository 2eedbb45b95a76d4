"""What a set of results means for the caller: the exit code, and the sentence that says why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mcpdetect.model.result import CheckResult, Result
from mcpdetect.model.vocabulary import LEVELS, Level, level_at_least

__all__ = [
    "EXIT_CRASH",
    "EXIT_FINDING",
    "EXIT_OK",
    "EXIT_UNOBSERVABLE",
    "EXIT_UNREADABLE",
    "EXIT_USAGE",
    "Outcome",
    "Unreadable",
    "highest_level",
    "outcome",
]

EXIT_OK = 0
EXIT_FINDING = 1
EXIT_USAGE = 2
EXIT_UNOBSERVABLE = 3
EXIT_UNREADABLE = 4
EXIT_CRASH = 5


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A trace that could not be read.

    Attributes:
        trace: what the user asked for.
        error: the whole error text.
    """

    trace: str
    error: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit code of ``check`` and the reason for it in one clause."""

    code: int
    meaning: str


def highest_level(check: CheckResult) -> Level | None:
    """Return the gravest level among a check's findings, None without findings."""
    return max((finding.level for finding in check.findings), key=LEVELS.index, default=None)


def outcome(
    results: Sequence[Result],
    *,
    fail_on: Level = "suspicious",
    required: Collection[str] = (),
    strict: bool = False,
    unreadable: Sequence[Unreadable] = (),
) -> Outcome:
    """Return what ``results`` mean for the caller (DESIGN §9).

    Unreadable input outranks a crashed detector, that a finding, that a check which had to answer and could not.
    No check at all is no answer either.

    Args:
        results: one for every trace, or one for an audit.
        fail_on: the least level of a finding that counts.
        required: ids of checks that must be observable.
        strict: every check must be observable.
        unreadable: traces that gave no result.
    """
    checks = [check for result in results for check in result.checks]
    parts = [check for result in results for part in result.parts for check in part.checks]
    if unreadable:
        return Outcome(EXIT_UNREADABLE, f"{_listed(item.trace for item in unreadable)} could not be read")
    crashed = [check.check for check in [*checks, *parts] if check.verdict == "error"]
    if crashed:
        return Outcome(EXIT_CRASH, f"{_listed(crashed)} crashed and gave no verdict")
    findings = [finding for check in checks for finding in check.findings]
    if any(level_at_least(finding.level, fail_on) for finding in findings):
        return Outcome(EXIT_FINDING, f"a finding is {_or_graver(fail_on)}")
    if not checks:
        return Outcome(EXIT_UNOBSERVABLE, "no check ran, so nothing was examined")
    silent = [check.check for check in checks if check.verdict == "not_observable"]
    asked = {check.check for check in checks}
    missed = [check for check in silent if strict or check in required]
    missed += [check for check in required if check not in asked]
    if missed:
        return Outcome(EXIT_UNOBSERVABLE, f"{_listed(missed)} had to be observable and was not")
    meaning = f"no finding is {_or_graver(fail_on)}" if findings else "no finding"
    return Outcome(EXIT_OK, f"{meaning}, but not every check could be answered" if silent else meaning)


def _or_graver(level: Level) -> str:
    return level if level == LEVELS[-1] else f"{level} or graver"


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    if len(distinct) > 3:
        return f"{', '.join(distinct[:2])} and {len(distinct) - 2} more"
    return " and ".join([", ".join(distinct[:-1]), distinct[-1]]) if len(distinct) > 1 else distinct[0]
