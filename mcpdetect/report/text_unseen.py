"""What the evidence could not show, in the text report: unanswered checks, losses that hide, and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcpdetect.model.observation import Loss
from mcpdetect.model.result import Limit, Result
from mcpdetect.model.text import shown
from mcpdetect.report.layout import Style, wrapped
from mcpdetect.report.text_findings import View, place_text

__all__ = ["notes_section", "unseen_section"]

_LONG = 600
_MOST_CHECKS = 4


@dataclass(slots=True)
class _Lost:
    """One limit or loss, said once however many checks it concerns."""

    what: str
    detail: str
    where: str
    file: str
    run: str
    count: int = 0
    checks: list[str] = field(default_factory=list)


def unseen_section(result: Result, views: Sequence[View], style: Style) -> list[str]:
    """Return what no verdict could be given on and why, and what may hide a fact from a check.

    Args:
        result: the result whose checks are told.
        views: its runs: itself, or the parts of an audit.
        style: width and colours.
    """
    lines: list[str] = []
    crashed = [check for check in result.checks if check.verdict == "error"]
    if crashed:
        lines.append(style.paint("CRASHED", "title"))
        for check in crashed:
            lines += wrapped(f"{shown(check.check)}: {shown(check.reason, 2 * _LONG)}", style.prose, "  ! ", "    ")
        lines += wrapped(
            "A crash is a fault of the detector, whatever the evidence holds: please report it.", style.prose, "    "
        )
    reasons: dict[str, list[str]] = {}
    for check in result.checks:
        if check.verdict == "not_observable":
            reasons.setdefault(check.reason, []).append(check.check)
    limits = _limits(views, hides=True)
    if not reasons and not limits:
        return lines
    if lines:
        lines.append("")
    lines.append(style.paint("COULD NOT BE SEEN", "title"))
    for reason, checks in reasons.items():
        own = [item for item in limits if item.checks and set(item.checks) <= set(checks)]
        limits = [item for item in limits if item not in own]
        lines += wrapped(", ".join(shown(check) for check in checks), style.prose, "  ? ", "    ")
        lines += _because(reason, own, style)
    for item in limits:
        lines += _lost(item, style)
        if item.checks:
            lines += wrapped(f"may hide a fact from {_some(item.checks)}", style.prose, "      ")
    return lines


def _because(reason: str, limits: list[_Lost], style: Style) -> list[str]:
    """The limits of checks, after the reason of their verdict where that says anything else."""
    told = any(
        reason == item.detail
        or reason.startswith(f"{item.detail} (and ")
        or reason.endswith(f": {item.detail}")
        or item.what == "not-configured"
        for item in limits
    )
    lines = [] if told else wrapped(shown(reason, 2 * _LONG), style.prose, "      ")
    for item in limits:
        bullet = "      - " if len(limits) > 1 or not told else "      "
        lines += wrapped(f"{_detail(item)}{_extent(item)}", style.prose, bullet)
    return lines


def notes_section(result: Result, views: Sequence[View], style: Style, *, verbose: bool) -> list[str]:
    """Return what stands beside the verdicts without lowering one.

    Args:
        result: the result whose checks are told.
        views: its runs: itself, or the parts of an audit.
        style: width and colours.
        verbose: list what each check is blind to even with full evidence.
    """
    lines: list[str] = []
    for note in dict.fromkeys(result.notes):
        lines += wrapped(shown(note, 2 * _LONG), style.prose, "  - ")
    told = {(item.run, item.what, item.detail) for item in _limits(views, hides=True)}
    for item in [*_limits(views, hides=False), *_losses(views)]:
        if (item.run, item.what, item.detail) not in told:
            told.add((item.run, item.what, item.detail))
            lines += _lost(item, style)
    blind = [check for check in result.checks if check.verdict == "not_detected" and check.blind_to]
    if verbose:
        for check in blind:
            for what in check.blind_to:
                lines += wrapped(f"{shown(check.check)} is blind to {shown(what, _LONG)}", style.prose, "  - ")
    elif blind:
        lines += wrapped(
            "what a check cannot see even in full evidence: -v, or mcpdetect detectors ID", style.prose, "  - "
        )
    return [style.paint("NOTES", "title"), *lines] if lines else []


def _limits(views: Sequence[View], *, hides: bool) -> list[_Lost]:
    found: dict[tuple[str, str, str, str], _Lost] = {}
    for view in views:
        for check in view.result.checks:
            for limit in check.limits:
                if limit.hides is hides:
                    new = _lost_of(limit, view)
                    item = found.setdefault((new.run, new.what, new.detail, new.file), new)
                    item.count = max(item.count, limit.count)
                    if check.check not in item.checks:
                        item.checks.append(check.check)
    return list(found.values())


def _losses(views: Sequence[View]) -> Iterable[_Lost]:
    for view in views:
        for observation in view.result.observations:
            for loss in observation.losses:
                item = _lost_of(loss, view)
                if not loss.detail.startswith(observation.source):
                    item.detail = f"{observation.source}: {loss.detail}"
                yield item


def _lost_of(loss: Limit | Loss, view: View) -> _Lost:
    where = place_text(loss.where, view.base) if loss.where else ""
    file = loss.where.file if loss.where else ""
    # What was not configured is missing in every run alike.
    run = view.result.run.id if view.many and loss.what != "not-configured" else ""
    return _Lost(loss.what, loss.detail, where, file, run, loss.count)


def _lost(item: _Lost, style: Style) -> list[str]:
    return wrapped(f"{_detail(item)}{_extent(item)}", style.prose, "  - ")


def _detail(item: _Lost) -> str:
    """The sentence, without the name of a file that the place beside it gives; without a place, with the run's name."""
    if item.file:
        return shown(item.detail.removeprefix(f"{item.file}: "), 2 * _LONG)
    return shown(f"{item.run}: {item.detail}" if item.run else item.detail, 2 * _LONG)


def _extent(item: _Lost) -> str:
    """How often and where: `` ×31 (first at trace.log:77)``."""
    times = f" ×{item.count:,}" if item.count > 1 else ""
    return f"{times} ({'first at ' if item.count > 1 else ''}{item.where})" if item.where else times


def _some(names: list[str]) -> str:
    listed = ", ".join(shown(name) for name in names[:_MOST_CHECKS])
    rest = len(names) - _MOST_CHECKS
    return f"{listed} and {rest} more checks" if rest > 1 else f"{listed} and one more check" if rest == 1 else listed
