"""The report of ``mcpdetect calibrate``, as text."""

from __future__ import annotations

from mcpdetect.model.text import shown
from mcpdetect.report.layout import Style, columns, wrapped
from mcpdetect.score.calibration import Calibration, CheckSight, FileSight

__all__ = ["calibration_text"]


def calibration_text(found: Calibration, style: Style) -> str:
    """Return what the sandbox lets be seen, as text.

    Args:
        found: the calibration.
        style: width and colours.
    """
    lines = [style.paint(shown(found.run.id), "title")]
    for probe in found.probes:
        lines.append(f"  probe {probe.phase:<7} {probe.nonce}")
    lines += ["", style.paint("CHANNELS", "title")]
    head = ["channel", "file", "proof", "before", "after"]
    lines += [f"  {''.join(row)}".rstrip() for row in columns([head, *(_file_row(item) for item in found.files)])]
    for item in found.files:
        lines += _shown_by(item, style)
    lines += ["", style.paint("CHECKS", "title")]
    rows = [["check", "not detected", "rests on"], *(_check_row(item) for item in found.checks)]
    lines += [f"  {''.join(row)}".rstrip() for row in columns(rows)]
    for check in found.checks:
        lines += _in_the_way(check, style)
    lines += ["", style.paint("DENIAL", "title")]
    modes = ", ".join(shown(mode) for mode in found.denial) or ("none" if "nothing" in found.denial_reason else "?")
    lines += wrapped(f"{modes}: {shown(found.denial_reason, 400)}", style.prose, "  ")
    return "\n".join(lines) + "\n"


def _file_row(item: FileSight) -> list[str]:
    one = item.observation
    return [
        one.channel,
        shown(one.source, 200),
        one.proof,
        "seen" if item.before else "-",
        "seen" if item.after else "-",
    ]


def _shown_by(item: FileSight, style: Style) -> list[str]:
    kinds = sorted({*item.before, *item.after})
    unproved = sorted(kind for kind, proof in item.observation.watches.items() if proof != "proved")
    lines = []
    if kinds:
        lines += wrapped(f"{item.observation.channel} showed {', '.join(kinds)}", style.prose, "    ")
    if unproved and item.observation.proof == "proved":
        lines += wrapped(f"{item.observation.channel} not proved for {', '.join(unproved)}", style.prose, "    ")
    for loss in item.observation.losses:
        if loss.what in ("probe-missed", "channel-died"):
            lines += wrapped(f"{item.observation.channel}: {loss.detail}", style.prose, "    ")
    return lines


def _check_row(item: CheckSight) -> list[str]:
    return [item.check, "possible" if item.observable else "not observable", item.proof]


def _in_the_way(item: CheckSight, style: Style) -> list[str]:
    lines = []
    for limit in item.limits:
        lines += wrapped(f"{item.check}: {shown(limit, 400)}", style.prose, "    ")
    if item.requires:
        lines += wrapped(f"{item.check} also needs {', '.join(item.requires)}", style.prose, "    ")
    return lines
