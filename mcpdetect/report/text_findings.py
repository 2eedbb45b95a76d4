"""The findings in the text report: grouped by check, gravest first, repeated ones folded, places to open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Explanation, Finding, Result
from mcpdetect.model.text import shown
from mcpdetect.model.vocabulary import LEVELS
from mcpdetect.report.layout import Style, counted, moment, wrapped
from mcpdetect.report.words import LEVEL_ROLES

__all__ = ["findings_section", "place_text"]

_MOST_FINDINGS = 12
_MOST_PLACES = 4
_LONG = 600


@dataclass(slots=True)
class _Folded:
    """Findings that read alike."""

    first: Finding
    count: int = 0
    places: list[Where] = field(default_factory=list)
    actors: list[str] = field(default_factory=list)


def place_text(where: Where, base: str = "") -> str:
    """Return a place as it can be opened: ``runs/a/trace.log:41``."""
    return shown(f"{base}{where}")


def findings_section(result: Result, style: Style, base: str, *, verbose: bool) -> list[str]:
    """Return the findings of every check that has some.

    Args:
        result: the result.
        style: width and colours.
        base: folder put before every place.
        verbose: all findings, places and facts.
    """
    epoch = {item.source for item in result.observations if item.clock == "epoch"}
    found = [check for check in result.checks if check.findings]
    found.sort(key=lambda check: (-max(LEVELS.index(finding.level) for finding in check.findings), check.check))
    lines = [style.paint("FINDINGS", "title")] if found else []
    for check in found:
        lines += _check(check, style, base, epoch, verbose=verbose)
    return lines


def _check(check: CheckResult, style: Style, base: str, epoch: set[str], *, verbose: bool) -> list[str]:
    lines = ["", style.paint(shown(check.check), "title") + f"  {shown(check.title, _LONG)}"]
    if check.reason:
        lines += wrapped(shown(check.reason, _LONG), style.width, "  ")
    groups = _fold(check.findings)
    listed = groups if verbose else groups[:_MOST_FINDINGS]
    for group in listed:
        lines += _finding(group, style, base, epoch, verbose=verbose)
    if rest := groups[len(listed) :]:
        levels = ", ".join(
            f"{sum(group.count for group in rest if group.first.level == level):,} {level}"
            for level in reversed(LEVELS)
            if any(group.first.level == level for group in rest)
        )
        lines += ["", f"  … {counted(sum(group.count for group in rest), 'more finding')} ({levels}): -v lists all"]
    return lines


def _fold(findings: Iterable[Finding]) -> list[_Folded]:
    groups: dict[tuple[str, ...], _Folded] = {}
    for finding in findings:
        key = (
            finding.level,
            finding.title,
            finding.reason,
            *(part for rule in finding.explanations for part in (rule.rule, rule.text)),
        )
        group = groups.setdefault(key, _Folded(finding))
        group.count += 1
        group.places += [place for place in finding.where if place not in group.places[-64:]]
        actor = _actor(finding)
        if actor and actor not in group.actors:
            group.actors.append(actor)
    return sorted(groups.values(), key=lambda group: -LEVELS.index(group.first.level))


def _actor(finding: Finding) -> str:
    if finding.program and finding.process:
        return f"{shown(finding.program, 200)} (pid {shown(finding.process)})"
    if finding.process:
        return f"pid {shown(finding.process)}"
    return shown(finding.program, 200) if finding.program else ""


def _finding(group: _Folded, style: Style, base: str, epoch: set[str], *, verbose: bool) -> list[str]:
    finding = group.first
    level = f"[{finding.level}] "
    times = f" ×{group.count:,}" if group.count > 1 else ""
    first, *others = wrapped(shown(finding.title, _LONG) + times, style.width, f"  {level}", "    ")
    lines = ["", first.replace(level.rstrip(), style.paint(level.rstrip(), LEVEL_ROLES[finding.level]), 1)]
    lines += others
    lines += wrapped(shown(finding.reason, 2 * _LONG), style.width, "    ")
    for explanation in finding.explanations:
        lines += wrapped(_explained(explanation), style.width, "    ordinary  ")
    by = ", ".join(group.actors[:3]) + (f" and {len(group.actors) - 3:,} more" if len(group.actors) > 3 else "")
    if finding.t_ns is not None and finding.where and finding.where[0].file in epoch:
        by = f"{by}, " if by else ""
        by += f"{'first at ' if group.count > 1 else ''}{moment(finding.t_ns, day=False)}"
    if by:
        lines += wrapped(by, style.width, "    by        ")
    if verbose:
        for name, value in finding.facts.items():
            text = ", ".join(value) if isinstance(value, list) else str(value)
            lines += wrapped(shown(f"{name} = {text}", _LONG), style.width, "    fact      ")
        lines += wrapped(shown(finding.key), style.width, "    key       ")
    places = group.places if verbose else group.places[:_MOST_PLACES]
    head = "    where     "
    for place in places:
        lines.append(head + style.paint(place_text(place, base), "hint"))
        head = " " * len(head)
    if more := len(group.places) - len(places):
        lines.append(f"{head}… {counted(more, 'more place')}: -v lists all")
    return lines


def _explained(explanation: Explanation) -> str:
    source = f" ({shown(explanation.source, 300)})" if explanation.source else ""
    return f"{shown(explanation.text, _LONG)} [{shown(explanation.rule)}]{source}"
