"""Rechecking old reports: lines whose verdict no longer stands are withdrawn; nothing is ever claimed anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from mcpdetect.errors import InputError, Malformed, UnknownFormat
from mcpdetect.labels.errata import Erratum
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import STRICT
from mcpdetect.model.result import RESULT_SCHEMA, CheckResult, Result
from mcpdetect.model.vocabulary import VerdictWord

__all__ = [
    "MAX_REPORT",
    "LineWord",
    "Recheck",
    "RecheckLine",
    "read_report",
    "recheck",
]

MAX_REPORT = 256 * 1024 * 1024
"""Most bytes of one report."""

LineWord = Literal["stands", "withdrawn", "unknown"]
"""What becomes of an old verdict: no erratum speaks against it; one does; or this version does not know the check."""

_RESULTS = "mcpdetect.results/"


@dataclass(slots=True)
class RecheckLine:
    """One check of one run of an old report.

    Attributes:
        run: the run's id.
        check, version: the check and the version that gave the verdict.
        verdict: the old verdict.
        outcome: what becomes of it.
        reason: why.
        errata: ids of the errata by which it falls.
        now: the verdict of the installed version over the evidence, where that was at hand. A withdrawn line stays
            withdrawn whatever it is; this is a new verdict of its own.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    run: str
    check: str
    version: int
    verdict: VerdictWord
    outcome: LineWord
    reason: str
    errata: list[str] = field(default_factory=list)
    now: VerdictWord | None = None


@dataclass(slots=True)
class Recheck:
    """What became of one report.

    Attributes:
        report: the file.
        lines: every verdict in it.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    report: str
    lines: list[RecheckLine]

    @property
    def withdrawn(self) -> list[RecheckLine]:
        """Return the lines that fall."""
        return [line for line in self.lines if line.outcome == "withdrawn"]


def read_report(path: Path) -> list[Result]:
    """Read a JSON report of one or several runs.

    Raises:
        InputError: it cannot be read.
        UnknownFormat: it is no report, or of a version this program does not know.
        Malformed: it is damaged.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_REPORT + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path), hint="check the path") from error
    if len(data) > MAX_REPORT:
        raise InputError(f"is larger than {MAX_REPORT} bytes", file=str(path), cause="this is no report")
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Malformed(
            f"is no JSON: {error}", file=str(path), cause="it was cut, or is no JSON report", hint="give a JSON report"
        ) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == RESULT_SCHEMA:
        found = [document]
    elif isinstance(schema, str) and schema.startswith(_RESULTS) and isinstance(document.get("results"), list):
        found = document["results"]
    else:
        raise UnknownFormat(
            "is no report this version reads",
            file=str(path),
            value=str(schema)[:80],
            cause="another kind of document, or a report of a later version",
            hint="give what mcpdetect check --format json wrote",
        )
    results = []
    for number, one in enumerate(found):
        try:
            results.append(msgspec.convert(one, Result))
        except (msgspec.ValidationError, RecursionError) as error:
            raise Malformed(
                "is damaged", file=str(path), place=f"result {number + 1}", value=str(error)[:300]
            ) from error
    if not any(one.checks for result in results for one in (result, *result.parts)):
        raise Malformed("holds no verdict", file=str(path), cause="no check ran when it was written")
    return results


def recheck(
    report: str,
    results: Sequence[Result],
    errata: Sequence[Erratum],
    installed: Collection[str],
    now: Mapping[str, Result] | None = None,
) -> Recheck:
    """Return what becomes of the verdicts of an old report.

    Args:
        report: its name.
        results: what it holds.
        errata: what is known to be wrong.
        installed: ids of the installed checks.
        now: run id -> the result of the installed checks over the evidence of that run.
    """
    lines: list[RecheckLine] = []
    for result in results:
        for one in (result, *result.parts):
            lines += [_line(one, check, errata, installed, now or {}) for check in one.checks]
    return Recheck(report, lines)


def _line(
    result: Result,
    check: CheckResult,
    errata: Sequence[Erratum],
    installed: Collection[str],
    now: Mapping[str, Result],
) -> RecheckLine:
    line = RecheckLine(result.run.id, check.check, check.version, check.verdict, "stands", "")
    seen = {item.channel for item in _observed(result)}
    falls = [
        entry
        for entry in errata
        if entry.check == check.check
        and check.version in entry.versions
        and check.verdict in entry.verdicts
        and not (entry.without and seen.intersection(entry.without))
    ]
    if falls:
        line.outcome = "withdrawn"
        line.errata = [entry.id for entry in falls]
        line.reason = " ".join(entry.wrong for entry in falls)
    elif check.check not in installed:
        line.outcome = "unknown"
        line.reason = "this version has no such check, and nobody keeps its errata here"
    else:
        line.reason = f"no erratum speaks against version {check.version}"
    again = now.get(result.run.id)
    if again is not None:
        line.now = next((one.verdict for one in again.checks if one.check == check.check and _configured(one)), None)
        if line.outcome == "stands" and line.now is not None and line.now != check.verdict:
            line.outcome = "withdrawn"
            line.reason = f"over the evidence at hand the installed version says {line.now.replace('_', ' ')}"
    return line


def _configured(check: CheckResult) -> bool:
    """Return whether a check had its inputs; without them its silence says nothing about the old verdict."""
    return not any(limit.what == "not-configured" for limit in check.limits)


def _observed(result: Result) -> list[Observation]:
    return [item for one in (result, *result.parts) for item in one.observations if item.proof != "absent"]
