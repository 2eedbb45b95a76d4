"""The findings in the text report: grouped by check, gravest first, repeated ones folded, places to open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Explanation, Finding, Result
from mcpdetect.model.text import shown
from mcpdetect.model.vocabulary import LEVELS
from mcpdetect.report.layout import Style, counted, moment, wrapped
from mcpdetect.report.words import LEVEL_ROLES

__all__ = ["View", "findings_section", "place_text"]

_MOST_FINDINGS = 12
_MOST_PLACES = 4
_LONG = 600


@dataclass(slots=True)
class View:
    """One run as the report shows it.

    Attributes:
        result: the run's result.
        base: folder put before every place, ``""`` when the names lead there as they are.
        many: the run is one of several, so that its name must be said.
        epoch: names of its evidence files whose times count from 1970.
    """

    result: Result
    base: str = ""
    many: bool = False
    epoch: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.epoch = {item.source for item in self.result.observations if item.clock == "epoch"}


@dataclass(slots=True)
class _Folded:
    """Findings that read alike; places and actors as they are shown, in order."""

    first: Finding
    view: View
    count: int = 0
    places: dict[str, None] = field(default_factory=dict)
    actors: dict[str, None] = field(default_factory=dict)
    runs: dict[str, None] = field(default_factory=dict)


def place_text(where: Where, base: str = "") -> str:
    """Return a place as it can be opened: ``runs/a/trace.log:41``."""
    return shown(f"{base}{where}")


def findings_section(result: Result, views: Sequence[View], style: Style, *, verbose: bool) -> list[str]:
    """Return the findings of every check that has some.

    Args:
        result: the result whose checks are told.
        views: its runs: itself, or the parts of an audit.
        style: width and colours.
        verbose: all findings, places and facts.
    """
    found = [check for check in result.checks if check.findings]
    found.sort(key=lambda check: (-max(LEVELS.index(finding.level) for finding in check.findings), check.check))
    lines = [style.paint("FINDINGS", "title")] if found else []
    for check in found:
        lines += _check(check, views, style, verbose=verbose)
    return lines


def _check(check: CheckResult, views: Sequence[View], style: Style, *, verbose: bool) -> list[str]:
    title = shown(check.title, _LONG)
    first, *rest = wrapped(f"{shown(check.check)}  {title}", style.prose, "", "  ")
    lines = ["", style.paint(shown(check.check), "title") + first.removeprefix(shown(check.check)), *rest]
    groups = _fold(check, views)
    listed = groups if verbose else groups[:_MOST_FINDINGS]
    for group in listed:
        lines += _finding(group, style, verbose=verbose)
    if left := groups[len(listed) :]:
        levels = ", ".join(
            f"{sum(group.count for group in left if group.first.level == level):,} {level}"
            for level in reversed(LEVELS)
            if any(group.first.level == level for group in left)
        )
        lines += ["", f"  … {counted(sum(group.count for group in left), 'more finding')} ({levels}): -v lists all"]
    return lines


def _fold(check: CheckResult, views: Sequence[View]) -> list[_Folded]:
    groups: dict[tuple[str, ...], _Folded] = {}
    for view in views:
        for own in view.result.checks:
            if own.check == check.check:
                for finding in own.findings:
                    _add(groups, finding, view)
    return sorted(groups.values(), key=lambda group: -LEVELS.index(group.first.level))


def _add(groups: dict[tuple[str, ...], _Folded], finding: Finding, view: View) -> None:
    rules = (part for rule in finding.explanations for part in (rule.rule, rule.text))
    group = groups.setdefault(
        (finding.level, finding.title, finding.reason, *rules),
        _Folded(finding, view),
    )
    group.count += 1
    group.places.update((place_text(place, view.base), None) for place in finding.where)
    if actor := _actor(finding):
        group.actors[actor] = None
    if view.many:
        group.runs[shown(view.result.run.id)] = None


def _actor(finding: Finding) -> str:
    if finding.program and finding.process:
        return f"{shown(finding.program, 200)} (pid {shown(finding.process)})"
    if finding.process:
        return f"pid {shown(finding.process)}"
    return shown(finding.program, 200) if finding.program else ""


def _finding(group: _Folded, style: Style, *, verbose: bool) -> list[str]:
    finding = group.first
    level = f"[{finding.level}]"
    times = f" ×{group.count:,}" if group.count > 1 else ""
    first, *others = wrapped(shown(finding.title, _LONG) + times, style.prose, f"  {level} ", "    ")
    lines = ["", first.replace(level, style.paint(level, LEVEL_ROLES[finding.level]), 1), *others]
    lines += wrapped(shown(finding.reason, 2 * _LONG), style.prose, "    ")
    for explanation in finding.explanations:
        lines += wrapped(_explained(explanation), style.prose, "    ordinary  ")
    if who := _who(group):
        lines += wrapped(who, style.prose, "    by        ")
    during = finding.facts.get("triggered_by")
    if isinstance(during, list):
        lines += wrapped(shown(", ".join(during), _LONG), style.prose, "    during    ")
    if group.runs:
        lines += wrapped(", ".join(group.runs), style.prose, "    in        ")
    if verbose:
        for name, value in finding.facts.items():
            text = ", ".join(value) if isinstance(value, list) else str(value)
            lines += wrapped(shown(f"{name} = {text}", _LONG), style.prose, "    fact      ")
        lines += wrapped(shown(finding.key), style.prose, "    key       ")
    places = list(group.places)
    head = "    where     "
    for place in places if verbose else places[:_MOST_PLACES]:
        lines.append(head + style.paint(place, "hint"))
        head = " " * len(head)
    if not verbose and (more := len(places) - _MOST_PLACES) > 0:
        lines.append(f"{head}… {counted(more, 'more place')}: -v lists all")
    return lines


def _who(group: _Folded) -> str:
    finding = group.first
    actors = list(group.actors)
    by = ", ".join(actors[:3]) + (f" and {len(actors) - 3:,} more" if len(actors) > 3 else "")
    if finding.t_ns is not None and finding.where and finding.where[0].file in group.view.epoch:
        at = f"{'first at ' if group.count > 1 else ''}{moment(finding.t_ns, day=False)}"
        by = f"{by}, {at}" if by else at
    return by


def _explained(explanation: Explanation) -> str:
    source = f" ({shown(explanation.source, 300)})" if explanation.source else ""
    return f"{shown(explanation.text, _LONG)} [{shown(explanation.rule)}]{source}"
