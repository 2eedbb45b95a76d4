"""Drafting labels: the verdicts of the installed checks beside what a control is by construction.

A draft is written only where none exists, and only when the control's own check says what the control was built to
show; whoever drafts compares the places with the evidence before committing. Nothing here overwrites a label.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import mcpdetect
from controls.catalog import Control, Variant
from mcpdetect.labels.model import LABEL_SCHEMA, TRUTHS

__all__ = ["draft", "outcome"]


def outcome(bundle: Path) -> dict[str, tuple[str, int, list[str]]]:
    """Return what every installed check says about a bundle: verdict, number of findings, sorted places."""
    result = mcpdetect.check(bundle)
    return {
        one.check: (
            one.verdict,
            len(one.findings),
            sorted({str(place) for finding in one.findings for place in finding.where}, key=_by_number),
        )
        for one in result.checks
    }


def _by_number(place: str) -> tuple[str, int, str]:
    """Sort ``strace.log:9`` before ``strace.log:41+57``."""
    for mark in ":#@":
        name, found, number = place.rpartition(mark)
        if found:
            return name, int(number.partition("+")[0]), place
    return place, 0, place


def draft(control: Control, variant: Variant, corpus: Path, labels: Path, by: str) -> str:
    """Write the label of one case, where there is none.

    Args:
        control: the control.
        variant: one of its variants.
        corpus: root of the bundles.
        labels: root of the labels.
        by: the reviewer's role.

    Returns:
        ``written``, ``exists``, or why nothing was written.
    """
    case = f"{control.id}/{variant.name}"
    path = labels / "cases" / f"{case}.yaml"
    if path.exists():
        return "exists"
    bundle = corpus / case
    found = outcome(bundle)
    subject = control.id.replace("/", ".")
    right = TRUTHS[variant.truth]
    if subject not in found:
        return f"no check {subject} is installed"
    if found[subject][0] != right:
        return f"{subject} says {found[subject][0]}, by construction it is {right}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(case, variant, bundle, found, by))
    return "written"


def _text(case: str, variant: Variant, bundle: Path, found: dict[str, tuple[str, int, list[str]]], by: str) -> str:
    manifest = (bundle / "manifest.json").read_bytes()
    data: dict[str, Any] = json.loads(manifest)
    tools = sorted({entry["tool"] for entry in data["evidence"]} | set(data["host"]["versions"].values()))
    lines = [
        f"schema: {LABEL_SCHEMA}",
        f"case: {case}",
        f"truth: {variant.truth}",
        f"why: {_quoted(variant.why)}",
        "checks:",
    ]
    for check, (verdict, count, places) in sorted(found.items()):
        if count:
            lines += [f"  {check}:", f"    verdict: {verdict}", f"    findings: {count}", "    places:"]
            lines += [f"      - {_quoted(place)}" for place in places]
        else:
            lines.append(f"  {check}: {{verdict: {verdict}}}")
    lines.append("axes:")
    lines += [f"  {key}: {_quoted(value)}" for key, value in variant.axes.items()]
    lines += [
        "evidence:",
        f"  manifest.json: {hashlib.sha256(manifest).hexdigest()}",
        "provenance:",
        f"  control: {data['control']}",
        f"  tools: [{', '.join(_quoted(tool) for tool in tools)}]",
        f"  kernel: {_quoted(data['host']['kernel'])}",
        f"  recorded: {data['recorded']}",
        "reviewed:",
        f"  by: {by}",
        f"  date: {datetime.datetime.now(datetime.UTC).date().isoformat()}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return text as a YAML double-quoted scalar (JSON strings are YAML)."""
    return json.dumps(text, ensure_ascii=False)
