"""What each detector declares about itself, as text and as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

from mcpdetect.contract import Detector, Spec
from mcpdetect.report.layout import Style, columns, wrapped

__all__ = ["detector_list", "detector_page", "detectors_json", "title_of"]


def title_of(detector: type[Detector]) -> str:
    """Return a detector's title: the first line of its docstring."""
    return (detector.__doc__ or detector.spec.id).strip().partition("\n")[0]


def detector_list(detectors: Mapping[str, type[Detector]], style: Style) -> str:
    """Return one line a detector: id, version, title.

    Args:
        detectors: the detectors by id.
        style: width and colours.
    """
    rows = [[name, f"v{item.spec.version}", title_of(item)] for name, item in detectors.items()]
    if not rows:
        return "no detector is installed\n"
    lines = []
    for row in columns(rows):
        first, *rest = wrapped(row[2], style.width, row[0] + row[1])
        lines += [style.paint(row[0], "title") + first.removeprefix(row[0]), *rest]
    return style.encode("\n".join(lines) + "\n")


def detector_page(detector: type[Detector], style: Style) -> str:
    """Return all that a detector declares: claim, needs, what it is blind to, inputs.

    Args:
        detector: the detector's class.
        style: width and colours.
    """
    spec = detector.spec
    lines = [f"{style.paint(spec.id, 'title')}  v{spec.version}  {title_of(detector)}", ""]
    lines += wrapped(spec.claim, style.width, "claim      ")
    head = "needs      "
    for group in spec.needs:
        ways = ", or ".join(str(need) for need in group.needs)
        lines += wrapped(f"{group.purpose}: {ways}" if group.purpose else ways, style.width, head)
        head = " " * len(head)
    head = "blind to   "
    for blind in spec.blind_to:
        lines += wrapped(blind, style.width, head)
        head = " " * len(head)
    if spec.requires:
        option = {"secrets": "--secrets", "expectations": "--expect", "baseline": "--baseline"}
        lines += wrapped(", ".join(f"{name} ({option[name]})" for name in spec.requires), style.width, "inputs     ")
    if spec.technique:
        lines.append(f"technique  {spec.technique} (MITRE ATT&CK)")
    if spec.complete_run:
        lines += wrapped("only of a recording that lasted to the end of the target", style.width, "absence    ")
    body = inspect.cleandoc(detector.__doc__ or "").partition("\n")[2].strip()
    for paragraph in body.split("\n\n") if body else []:
        lines += ["", *wrapped(" ".join(paragraph.split()), style.width)]
    return style.encode("\n".join(lines) + "\n")


def detectors_json(detectors: Mapping[str, type[Detector]]) -> bytes:
    """Return what the detectors declare as one JSON array, ending in a line break."""
    raw = msgspec.json.encode([_declared(item.spec, title_of(item)) for item in detectors.values()])
    return msgspec.json.format(raw, indent=2) + b"\n"


def _declared(spec: Spec, title: str) -> dict[str, Any]:
    return {
        "id": spec.id,
        "version": spec.version,
        "category": spec.category,
        "title": title,
        "claim": spec.claim,
        "kinds": list(spec.kinds),
        "needs": [
            {
                "purpose": group.purpose,
                "any_of": [{"channel": need.channel, "kinds": list(need.kinds)} for need in group.needs],
            }
            for group in spec.needs
        ],
        "blind_to": list(spec.blind_to),
        "requires": list(spec.requires),
        "technique": spec.technique,
        "complete_run": spec.complete_run,
    }
