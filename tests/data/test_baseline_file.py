"""An approved description: written, read again, and every mistake in it named."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpdetect.data.baseline import baseline_text, load_baseline
from mcpdetect.errors import ConfigError
from mcpdetect.model.inputs import BASELINE_SCHEMA, Baseline, BaselineText, BaselineTool

WHOLE = Baseline(
    runs=["open"],
    definitions=[BaselineTool("tool", "find", "ab", [BaselineText("/name", "find")])],
    hosts=["*.service.test"],
    children=["/usr/bin/git"],
    files=["/home/dev/project/*"],
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ok.json"
    path.write_text(baseline_text(WHOLE))
    WHOLE.source = str(path)
    assert load_baseline(path) == WHOLE
    WHOLE.source = ""


@pytest.mark.parametrize(
    ("data", "place", "problem"),
    [
        ([], None, f"is no description of a server ({BASELINE_SCHEMA})"),
        ({"schema": "other/1"}, None, f"is no description of a server ({BASELINE_SCHEMA})"),
        ({"schema": BASELINE_SCHEMA, "host": []}, "/host", "has a key that no description has"),
        ({"schema": BASELINE_SCHEMA, "hosts": "a"}, "/hosts", "must be a list of texts"),
        ({"schema": BASELINE_SCHEMA, "files": [1]}, "/files", "must be a list of texts"),
        ({"schema": BASELINE_SCHEMA, "definitions": {}}, "/definitions", "must be a list"),
        (
            {"schema": BASELINE_SCHEMA, "definitions": [{"part": "tool"}]},
            "/definitions/0",
            "needs part, name and digest",
        ),
        (
            {"schema": BASELINE_SCHEMA, "definitions": [{"part": "tool", "name": "a", "digest": "b", "texts": [1]}]},
            "/definitions/0/texts",
            "must be a list of pointer and text",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, data: Any, place: str | None, problem: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError) as caught:
        load_baseline(path)
    assert (caught.value.file, caught.value.place, caught.value.problem) == (str(path), place, problem)


@pytest.mark.parametrize(("raw", "problem"), [(b"\xff", "is not UTF-8"), (b'{"schema":\n', "is no JSON: ")])
def test_what_is_no_json_is_named(tmp_path: Path, raw: bytes, problem: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load_baseline(path)
    assert caught.value.problem.startswith(problem)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        load_baseline(tmp_path / "none.json")
