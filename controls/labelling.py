"""Drafting labels: the verdicts of the installed checks beside what a control is by construction.

A draft is written only where none exists, and only when the control's own check says what the control was built to
show; whoever drafts compares the places with the evidence before committing. Nothing here overwrites a label.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcpdetect
from controls.catalog import Control, Variant
from mcpdetect.labels.model import LABEL_SCHEMA, TRUTHS, ExpectedCheck
from mcpdetect.model.vocabulary import Level
from mcpdetect.score.runner import as_expected

__all__ = ["draft", "outcome"]


def outcome(bundle: Path) -> dict[str, ExpectedCheck]:
    """Return what every installed check says about a bundle, in the form a label says it, places sorted."""
    said = {one.check: as_expected(one) for one in mcpdetect.check(bundle).checks}
    return {check: replace(one, places=sorted(one.places, key=_by_number)) for check, one in said.items()}


def _by_number(place: str) -> tuple[str, int, str]:
    """Sort ``strace.log:9`` before ``strace.log:41+57``."""
    for mark in ":#@":
        name, found, number = place.rpartition(mark)
        if found:
            return name, int(number.partition("+")[0]), place
    return place, 0, place


def draft(
    control: Control,
    variant: Variant,
    corpus: Path,
    labels: Path,
    by: str,
    todo: str | None = None,
    places: Sequence[str] = (),
) -> str:
    """Write the label of one case, where there is none.

    Args:
        control: the control.
        variant: one of its variants.
        corpus: root of the bundles.
        labels: root of the labels.
        by: the reviewer's role.
        todo: why the control's own check is wrong today.
        places: what the one finding would name that the check should make; with a todo in a case that fires.

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
    if todo is None and found[subject].verdict != right:
        return f"{subject} says {found[subject].verdict}, by construction it is {right}"
    if todo is not None:
        if found[subject].verdict == right:
            return f"{subject} says {right}, as it should: nothing is to do"
        if (right == "detected") != bool(places):
            return "a case that fires needs the places that its finding would name, any other has none"
        level: Level | None = "suspicious" if places else None
        found[subject] = ExpectedCheck(right, int(bool(places)), list(places), level)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(case, variant, bundle, found, by, todo))
    return "written"


def _text(case: str, variant: Variant, bundle: Path, found: dict[str, ExpectedCheck], by: str, todo: str | None) -> str:
    manifest = (bundle / "manifest.json").read_bytes()
    data: dict[str, Any] = json.loads(manifest)
    tools = sorted({entry["tool"] for entry in data["evidence"]} | set(data["host"]["versions"].values()))
    lines = [
        f"schema: {LABEL_SCHEMA}",
        f"case: {case}",
        f"truth: {variant.truth}",
        f"why: {_quoted(variant.why)}",
        *([] if todo is None else [f"todo: {_quoted(todo)}"]),
        "checks:",
    ]
    for check, one in sorted(found.items()):
        if one.findings:
            lines += [f"  {check}:", f"    verdict: {one.verdict}", f"    findings: {one.findings}"]
            lines += [f"    level: {one.level}"]
            lines += ["    places:", *(f"      - {_quoted(place)}" for place in one.places)]
            if one.explained is not None:
                lines += [f"    explained: [{', '.join(one.explained)}]"]
        elif one.limits is not None:
            lines.append(f"  {check}: {{verdict: {one.verdict}, limits: [{', '.join(one.limits)}]}}")
        else:
            lines.append(f"  {check}: {{verdict: {one.verdict}}}")
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
