"""Reading and writing an approved description of a server."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from mcpdetect.errors import ConfigError
from mcpdetect.model.inputs import BASELINE_SCHEMA, Baseline, BaselineText, BaselineTool

__all__ = ["MAX_BASELINE", "baseline_text", "load_baseline"]

MAX_BASELINE = 64 * 1024 * 1024
"""Most bytes of a description that are read."""

_LISTS = ("runs", "hosts", "children", "files")


def baseline_text(baseline: Baseline) -> str:
    """Return a description as JSON, one item a line where people will edit it."""
    data = dataclasses.asdict(baseline)
    del data["source"]
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def load_baseline(path: Path) -> Baseline:
    """Read a description that ``mcpdetect baseline`` wrote.

    Raises:
        ConfigError: it cannot be read, is no JSON, or is no description of this version; the error names the place.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BASELINE + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path), hint="check the path") from error
    if len(raw) > MAX_BASELINE:
        raise ConfigError(
            f"is larger than {MAX_BASELINE} bytes", file=str(path), cause="another kind of file was named"
        )
    try:
        data = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8", file=str(path), hint="write it again with mcpdetect baseline") from error
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise ConfigError(f"is no JSON: {error}", file=str(path), place=f"line {line}") from error
    return _baseline(data, path)


def _baseline(data: Any, path: Path) -> Baseline:  # noqa: ANN401
    if not isinstance(data, dict) or data.get("schema") != BASELINE_SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise ConfigError(
            f"is no description of a server ({BASELINE_SCHEMA})",
            file=str(path),
            value=str(found)[:80],
            hint="write one with mcpdetect baseline TRACE -o FILE",
        )
    known = {field.name for field in dataclasses.fields(Baseline)} - {"source"}
    for key in data.keys() - known:
        raise ConfigError("has a key that no description has", file=str(path), place=f"/{key}", value=key)
    lists: dict[str, list[str]] = {}
    for key in _LISTS:
        value = data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError("must be a list of texts", file=str(path), place=f"/{key}", value=str(value)[:80])
        lists[key] = value
    definitions = data.get("definitions", [])
    if not isinstance(definitions, list):
        raise ConfigError("must be a list", file=str(path), place="/definitions", value=str(definitions)[:80])
    tools = [_tool(item, f"/definitions/{at}", path) for at, item in enumerate(definitions)]
    return Baseline(
        source=str(path),
        runs=lists["runs"],
        definitions=tools,
        hosts=lists["hosts"],
        children=lists["children"],
        files=lists["files"],
    )


def _tool(item: Any, at: str, path: Path) -> BaselineTool:  # noqa: ANN401
    if not isinstance(item, dict) or not all(isinstance(item.get(key), str) for key in ("part", "name", "digest")):
        raise ConfigError("needs part, name and digest", file=str(path), place=at, value=str(item)[:80])
    texts = item.get("texts", [])
    if not isinstance(texts, list) or not all(
        isinstance(text, dict) and isinstance(text.get("pointer"), str) and isinstance(text.get("text"), str)
        for text in texts
    ):
        raise ConfigError("must be a list of pointer and text", file=str(path), place=f"{at}/texts")
    return BaselineTool(
        item["part"], item["name"], item["digest"], [BaselineText(text["pointer"], text["text"]) for text in texts]
    )
