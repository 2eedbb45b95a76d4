"""Verifying: record a case again and compare what the checks say with its label, places aside."""

from __future__ import annotations

from pathlib import Path

from controls.labelling import outcome
from mcpdetect.labels.model import ExpectedCheck, Label

__all__ = ["differences"]


def differences(bundle: Path, label: Label) -> list[str]:
    """Return what a new recording says otherwise than the label, one sentence a difference.

    Verdict, number of findings and gravest level count; places are of one recording alone. A label with a ``todo`` says
    that its own check is wrong today, so that one is left out.

    Args:
        bundle: the new recording.
        label: the case's label.
    """
    found = outcome(bundle)
    wrong = []
    for check, expected in label.checks.items():
        if label.todo is not None and check == label.subject:
            continue
        if check not in found:
            wrong.append(f"{check} is not installed")
        elif _short(found[check]) != _short(expected):
            wrong.append(f"{check} says {_short(found[check])}, its label {_short(expected)}")
    return wrong


def _short(one: ExpectedCheck) -> str:
    return f"{one.verdict} ({one.findings}, {one.level})" if one.findings else one.verdict
