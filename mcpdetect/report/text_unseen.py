"""What the evidence could not show, in the text report: unanswered checks, losses that hide, and notes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpdetect.model.place import Where
from mcpdetect.model.result import Result
from mcpdetect.model.text import shown
from mcpdetect.report.layout import Style, wrapped
from mcpdetect.report.text_findings import place_text

__all__ = ["notes_section", "unseen_section"]

_LONG = 600
_MOST_CHECKS = 4


@dataclass(slots=True)
class _Lost:
    """One limit or loss, said once however many checks it concerns."""

    what: str
    detail: str
    where: Where | None
    count: int = 0
    checks: list[str] = field(default_factory=list)


def unseen_section(result: Result, style: Style, base: str) -> list[str]:
    """Return what no verdict could be given on and why, and what may hide a fact from a check.

    Args:
        result: the result.
        style: width and colours.
        base: folder put before every place.
    """
    lines: list[str] = []
    crashed = [check for check in result.checks if check.verdict == "error"]
    if crashed:
        lines.append(style.paint("CRASHED", "title"))
        for check in crashed:
            lines += wrapped(f"{shown(check.check)}: {shown(check.reason, 2 * _LONG)}", style.width, "  ! ", "    ")
        lines += wrapped(
            "A crash is a fault of the detector, whatever the evidence holds: please report it.", style.width, "    "
        )
    reasons: dict[str, list[str]] = {}
    for check in result.checks:
        if check.verdict == "not_observable":
            reasons.setdefault(check.reason, []).append(check.check)
    limits = [item for item in _limits(result, hides=True) if not _told(item, reasons)]
    if not reasons and not limits:
        return lines
    if lines:
        lines.append("")
    lines.append(style.paint("COULD NOT BE SEEN", "title"))
    for reason, checks in reasons.items():
        lines += wrapped(", ".join(shown(check) for check in checks), style.width, "  ? ", "    ")
        lines += wrapped(shown(reason, 2 * _LONG), style.width, "      ")
    for item in limits:
        lines += _lost(item, style, base)
        if item.checks:
            lines += wrapped(f"may hide a fact from {_some(item.checks)}", style.width, "      ")
    return lines


def notes_section(result: Result, style: Style, base: str, *, verbose: bool) -> list[str]:
    """Return what stands beside the verdicts without lowering one.

    Args:
        result: the result.
        style: width and colours.
        base: folder put before every place.
        verbose: list what each check is blind to even with full evidence.
    """
    lines: list[str] = []
    for note in dict.fromkeys(result.notes):
        lines += wrapped(shown(note, 2 * _LONG), style.width, "  - ")
    told = {(item.what, item.detail) for item in _limits(result, hides=True)}
    for item in [*_limits(result, hides=False), *_losses(result)]:
        if (item.what, item.detail) not in told:
            told.add((item.what, item.detail))
            lines += _lost(item, style, base)
    blind = [check for check in result.checks if check.verdict == "not_detected" and check.blind_to]
    if verbose:
        for check in blind:
            for what in check.blind_to:
                lines += wrapped(f"{shown(check.check)} is blind to {shown(what, _LONG)}", style.width, "  - ")
    elif blind:
        lines += wrapped(
            "what a check cannot see even in full evidence: -v, or mcpdetect detectors ID", style.width, "  - "
        )
    return [style.paint("NOTES", "title"), *lines] if lines else []


def _limits(result: Result, *, hides: bool) -> list[_Lost]:
    found: dict[tuple[str, str, str], _Lost] = {}
    for check in result.checks:
        for limit in check.limits:
            if limit.hides is hides:
                key = (limit.what, limit.detail, limit.where.file if limit.where else "")
                item = found.setdefault(key, _Lost(limit.what, limit.detail, limit.where))
                item.count = max(item.count, limit.count)
                if check.check not in item.checks:
                    item.checks.append(check.check)
    return list(found.values())


def _losses(result: Result) -> Iterable[_Lost]:
    for observation in result.observations:
        for loss in observation.losses:
            yield _Lost(loss.what, loss.detail, loss.where, loss.count)


def _told(item: _Lost, reasons: dict[str, list[str]]) -> bool:
    """Whether the reason of every check concerned says the same already."""
    return item.where is None and all(
        any(check in checks and item.detail.rstrip(".") in reason for reason, checks in reasons.items())
        for check in item.checks
    )


def _lost(item: _Lost, style: Style, base: str) -> list[str]:
    times = f" ×{item.count:,}" if item.count > 1 else ""
    place = f" ({'first at ' if item.count > 1 else ''}{place_text(item.where, base)})" if item.where else ""
    return wrapped(f"{shown(item.what)}{times}: {shown(item.detail, 2 * _LONG)}{place}", style.width, "  - ")


def _some(names: list[str]) -> str:
    listed = ", ".join(shown(name) for name in names[:_MOST_CHECKS])
    rest = len(names) - _MOST_CHECKS
    return f"{listed} and {rest} more checks" if rest > 1 else f"{listed} and one more check" if rest == 1 else listed
