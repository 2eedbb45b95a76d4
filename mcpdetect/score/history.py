"""The history of the published numbers: what fell, with what excuse, and one row a release or run, never rewritten."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mcpdetect.data.loader import load_yaml
from mcpdetect.errors import ConfigError
from mcpdetect.model.place import STRICT
from mcpdetect.model.wire import Refused, decoder, encode
from mcpdetect.score.coverage import COVERAGE_SCHEMA, Coverage
from mcpdetect.version import VERSION

__all__ = [
    "ROW_SCHEMA",
    "Change",
    "Excuse",
    "Row",
    "append_row",
    "changes",
    "excused",
    "facts",
    "load_coverage",
    "load_excuses",
    "load_history",
]

ROW_SCHEMA = "mcpdetect.coverage-row/0"
"""Name and version of one row of the history."""

# 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b
_COMMIT = re.compile(r"[0-9a-f]{40}")
_STATUS = {"unproved": 0, "thin": 1, "proved": 2}
# Facts of which less is better.
_FEWER = ("wrong", "weak", "upper_percent", "alarms_elsewhere", "turned")


def facts(coverage: Coverage) -> dict[str, float]:
    """Return every number of a coverage by its name, such as ``egress.direct-ip labels.fires``.

    Args:
        coverage: the coverage.
    """
    found: dict[str, float] = {"corpus cases": coverage.cases}
    for name, category in coverage.categories.items():
        found[f"{name} status"] = _STATUS[category.status]
        for truth in ("fires", "silent", "blind"):
            found[f"{name} labels.{truth}"] = getattr(category.labels, truth)
            found[f"{name} variants.{truth}"] = getattr(category.variants, truth)
        for what, rate in (("detection", category.detection), ("false_alarms", category.false_alarms)):
            found[f"{name} {what}.wrong"] = rate.wrong
            found[f"{name} {what}.upper_percent"] = rate.upper_percent
    for name, check in coverage.checks.items():
        found[f"{name} status"] = _STATUS[check.status]
        for truth in ("fires", "silent", "blind"):
            found[f"{name} labels.{truth}"] = getattr(check.labels, truth)
            found[f"{name} variants.{truth}"] = getattr(check.variants, truth)
        for what, rate in (("detection", check.detection), ("false_alarms", check.false_alarms)):
            found[f"{name} {what}.wrong"] = rate.wrong
            found[f"{name} {what}.upper_percent"] = rate.upper_percent
        found[f"{name} weak"] = check.weak
        found[f"{name} alarms_elsewhere"] = check.alarms_elsewhere
        found[f"{name} ablation.turned"] = check.channels.turned
        found[f"{name} shells"] = len(check.shells)
        for axis, values in check.axes.items():
            found[f"{name} axis.{axis}"] = len(values)
        for channel, counts in check.channels.alone.items():
            for verdict, number in counts.items():
                found[f"{name} alone.{channel}.{verdict}"] = number
        if check.mutation is not None:
            planted = check.mutation.mutants
            found[f"{name} mutants.killed_percent"] = round(100 * check.mutation.killed / planted) if planted else 0
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """One number that changed.

    Attributes:
        what: its name, as in ``facts``.
        before, after: None where it did not exist.
        fall: it got worse.
    """

    what: str
    before: float | None
    after: float | None
    fall: bool

    def __str__(self) -> str:
        """Return the change as one line."""
        return f"{self.what}: {_number(self.before)} -> {_number(self.after)}{' (a fall)' if self.fall else ''}"


def _number(value: float | None) -> str:
    return "nothing" if value is None else f"{value:g}"


def changes(before: Mapping[str, float], after: Mapping[str, float]) -> list[Change]:
    """Return every number that differs, falls first.

    A number that is gone is a fall when more of it is better and it was not 0; a new one never is.

    Args:
        before: what was published, as ``facts`` returns it.
        after: what is true now.
    """
    found = []
    for what in sorted({*before, *after}):
        old, new = before.get(what), after.get(what)
        if old == new:
            continue
        fewer = what.endswith(_FEWER)
        fall = old is not None and (
            ((new is None or new < old) and old != 0) if not fewer else new is not None and new > old
        )
        found.append(Change(what, old, new, fall))
    return sorted(found, key=lambda change: (not change.fall, change.what))


@dataclass(frozen=True, slots=True)
class Excuse:
    """A fall that was meant: which number, down (or up) to what, and why."""

    what: str
    to: float
    reason: str


def load_excuses(path: Path) -> list[Excuse]:
    """Read ``coverage/exceptions.yaml``; a missing file excuses nothing.

    Raises:
        ConfigError: it is wrong, or an excuse has no reason.
    """
    if not path.exists():
        return []
    data = load_yaml(path, {"exceptions": [{"what": None, "to": None, "reason": None}]})
    found = []
    for at, one in enumerate(data["exceptions"]):
        what, to, reason = one["what"], one["to"], one["reason"]
        place = f"exceptions, number {at + 1}"
        if not isinstance(what, str) or isinstance(to, bool) or not isinstance(to, int | float | None):
            raise ConfigError("what is a name, to is a number or null", file=str(path), place=place, value=str(one))
        if not isinstance(reason, str) or len(reason.split()) < 3:
            raise ConfigError(
                "a deliberate fall needs a written reason", file=str(path), place=place, value=str(reason)
            )
        found.append(Excuse(what, -1 if to is None else to, reason))
    return found


def excused(change: Change, excuses: list[Excuse]) -> bool:
    """Return whether a fall is excused: by its name, and exactly down to where it fell (``to: null``: it is gone)."""
    after = -1 if change.after is None else change.after
    return any(one.what == change.what and one.to == after for one in excuses)


@dataclass(slots=True)
class Row:
    """One row of the history.

    Attributes:
        date: ISO date.
        commit: the commit whose tree was measured: the parent of the one that adds the row.
        version: of mcpdetect.
        facts: every number by name.
        schema: ``ROW_SCHEMA``.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    date: str
    commit: str
    version: str
    facts: dict[str, float] = field(default_factory=dict)
    schema: str = ROW_SCHEMA


def load_history(path: Path) -> list[Row]:
    """Read ``coverage/history.jsonl``, oldest first; a missing file is an empty history.

    Raises:
        ConfigError: a line is broken, two rows are of one commit, or dates run backwards. Nothing is repaired: the
            history is only ever added to.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path)) from error
    cause = "it was edited or cut; the history is only ever added to"
    hint = "restore the file from the last commit"
    if lines.pop():
        raise ConfigError("the last line has no end", file=str(path), cause=cause, hint=hint)
    read = decoder(Row)
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        place = f"line {number}"
        try:
            row = read(line)
        except Refused as error:
            raise ConfigError(
                f"is no row of the history: {error}", file=str(path), place=place, cause=cause, hint=hint
            ) from error
        if row.schema != ROW_SCHEMA:
            raise ConfigError("is a row of another version", file=str(path), place=place, value=row.schema)
        _dated(row, path, place)
        for at, other in enumerate(rows, 1):
            if other.commit == row.commit:
                raise ConfigError(
                    f"is a second row of the commit of line {at}", file=str(path), place=place, value=row.commit
                )
        if rows and row.date < rows[-1].date:
            raise ConfigError("is older than the row before it", file=str(path), place=place, value=row.date)
        rows.append(row)
    return rows


def _dated(row: Row, path: Path, place: str) -> None:
    if not _COMMIT.fullmatch(row.commit):
        raise ConfigError("a commit is 40 hexadecimal digits", file=str(path), place=place, value=row.commit)
    try:
        datetime.date.fromisoformat(row.date)
    except ValueError as error:
        raise ConfigError("is no ISO date", file=str(path), place=place, value=row.date) from error


def append_row(path: Path, coverage: Coverage, commit: str, date: str) -> Row:
    """Add a row to the history; what is there is read, and never written again.

    Args:
        path: the history.
        coverage: the numbers.
        commit: the commit that was measured.
        date: ISO date.

    Raises:
        ConfigError: the history is wrong, has that commit already, or ends after that date.
    """
    row = Row(date, commit, VERSION, facts(coverage))
    _dated(row, path, "the new row")
    rows = load_history(path)
    if any(other.commit == commit for other in rows):
        raise ConfigError("the history has a row of this commit already", file=str(path), value=commit)
    if rows and date < rows[-1].date:
        raise ConfigError("the history ends after this date", file=str(path), value=date)
    with path.open("ab") as stream:
        stream.write(encode(row) + b"\n")
    return row


def load_coverage(path: Path) -> Coverage:
    """Read a coverage document.

    Raises:
        ConfigError: it cannot be read or is none.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror}", file=str(path), hint="make it: mcpdetect coverage build"
        ) from error
    try:
        found = decoder(Coverage)(raw)
    except Refused as error:
        raise ConfigError(
            f"is no coverage: {error.problem}", file=str(path), place=error.pointer or None, value=error.value
        ) from error
    if found.schema != COVERAGE_SCHEMA:
        schema = json.dumps(found.schema)
        raise ConfigError(f"is not a coverage this version reads ({COVERAGE_SCHEMA})", file=str(path), value=schema)
    return found
