"""Writing labels: new ones, and small edits that keep every comment and the layout of the rest."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpdetect.errors import LabelError

if TYPE_CHECKING:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedSeq

    from mcpdetect.labels.model import ExpectedCheck, Label

__all__ = ["add", "add_checks", "edit", "write_label"]

_WIDTH = 120
_AS_IT_IS = 1 << 20


def _yaml(width: int = _WIDTH) -> YAML:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = width
    yaml.preserve_quotes = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def write_label(label: Label, path: Path) -> None:
    """Write a label where there is none.

    Args:
        label: the label.
        path: its file; folders are made.

    Raises:
        LabelError: the file exists. An expectation is never overwritten, so that no mistake is blessed by habit.
    """
    data = dataclasses.asdict(label)
    for check in data["checks"].values():
        if check["verdict"] != "detected":
            for key in ("findings", "places", "level"):
                del check[key]
        for key in ("limits", "explained"):
            if check[key] is None:
                del check[key]
    if data["todo"] is None:
        del data["todo"]
    text = io.StringIO()
    _yaml().dump(data, text)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text.getvalue())
    except FileExistsError as error:
        raise LabelError(
            "exists already", file=str(path), cause="the case is labelled", hint="remove the label first, or edit it"
        ) from error


def add(path: Path, values: Mapping[tuple[str, ...], list[str]]) -> None:
    """Add lists to mappings of a YAML file that do not have them; comments and everything else stay as they are.

    Args:
        path: the file.
        values: keys from the root to a list that is not there -> the list.

    Raises:
        LabelError: the file cannot be read, the list is there already, or what should hold it is not.
    """
    _change(path, values, new=True)


def add_checks(path: Path, checks: Mapping[str, ExpectedCheck]) -> None:
    """Add what further checks must say to a label, each at its place in the order of ids.

    Comments and everything else stay as they are.

    Args:
        path: the label's file.
        checks: check id to what it must say.

    Raises:
        LabelError: the file cannot be read, or speaks of one of the checks already.
    """
    from ruamel.yaml.comments import CommentedMap

    values: dict[tuple[str, ...], object] = {}
    for check, expected in checks.items():
        value = CommentedMap(verdict=expected.verdict)
        if expected.verdict == "detected":
            value.update(findings=expected.findings, level=expected.level, places=list(expected.places))
        else:
            value.fa.set_flow_style()
        for key, items in (("limits", expected.limits), ("explained", expected.explained)):
            if items is not None:
                value[key] = _flow(items)
        values["checks", check] = value
    _change(path, values, new=True, ordered=True)


def edit(path: Path, changes: Mapping[tuple[str, ...], str]) -> None:
    """Set values in a YAML file and leave comments and everything else as it is.

    Args:
        path: the file.
        changes: keys from the root to a value that exists -> its new value.

    Raises:
        LabelError: the file cannot be read, or a value does not exist.
    """
    _change(path, changes, new=False)


def _change(path: Path, changes: Mapping[tuple[str, ...], Any], *, new: bool, ordered: bool = False) -> None:
    from ruamel.yaml.error import YAMLError

    yaml = _yaml(_AS_IT_IS)  # long lines stay long
    try:
        data: Any = yaml.load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise LabelError("cannot be edited", file=str(path), value=str(error).splitlines()[0]) from error
    for place, value in changes.items():
        holder = data
        for key in place[:-1]:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or (not new and place[-1] not in holder):
            raise LabelError(f"has no {'.'.join(place if not new else place[:-1])}", file=str(path))
        if new and place[-1] in holder:
            raise LabelError(f"has {'.'.join(place)} already", file=str(path), hint="edit it, or remove it first")
        written = _flow(value) if isinstance(value, list) else value
        if ordered:
            at = sum(1 for key in holder if key < place[-1])
            holder.insert(at, place[-1], written)  # type: ignore[attr-defined]
        else:
            holder[place[-1]] = written
    text = io.StringIO()
    yaml.dump(data, text)
    path.write_text(text.getvalue(), "utf-8")


def _flow(values: list[str]) -> CommentedSeq:
    """Return a list that is written on one line."""
    from ruamel.yaml.comments import CommentedSeq

    written = CommentedSeq(values)
    written.fa.set_flow_style()
    return written
