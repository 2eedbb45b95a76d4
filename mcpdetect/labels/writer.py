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

    from mcpdetect.labels.model import Label

__all__ = ["edit", "write_label"]

_WIDTH = 120


def _yaml() -> YAML:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = _WIDTH
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


def edit(path: Path, changes: Mapping[tuple[str, ...], str]) -> None:
    """Set values in a YAML file and leave comments and everything else as it is.

    Args:
        path: the file.
        changes: keys from the root to a value that exists -> its new value.

    Raises:
        LabelError: the file cannot be read, or a value does not exist.
    """
    from ruamel.yaml.error import YAMLError

    yaml = _yaml()
    try:
        data: Any = yaml.load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise LabelError("cannot be edited", file=str(path), value=str(error).splitlines()[0]) from error
    for place, value in changes.items():
        holder = data
        for key in place[:-1]:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or place[-1] not in holder:
            raise LabelError(f"has no {'.'.join(place)}", file=str(path))
        holder[place[-1]] = value
    text = io.StringIO()
    yaml.dump(data, text)
    path.write_text(text.getvalue(), "utf-8")
