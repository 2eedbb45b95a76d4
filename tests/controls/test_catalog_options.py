"""Options and calls of a variant, as its control file gives them."""

from pathlib import Path

import pytest

from controls.catalog import Variant, load_control
from mcpdetect.errors import ConfigError

BASE = """\
plants: nothing
variants:
  one:
    truth: silent
    why: made up
    run: [/bin/true]
    axes: {runtime: sh}
    expect: {}
"""


def variant(folder: Path, more: str) -> Variant:
    folder = folder / "made/up"
    folder.mkdir(parents=True)
    (folder / "control.yaml").write_text(BASE + more)
    return load_control(folder).variants["one"]


def test_options_and_calls_are_read(tmp_path: Path) -> None:
    found = variant(
        tmp_path,
        """\
    mcp: true
    url: "http://[::1]:8000/mcp"
    binaries: true
    options: {clock: +400d, ci: true, locale: de_DE.UTF-8, timezone: Asia/Tokyo}
    calls:
      - {tool: notes, arguments: {query: hello, many: 3}, repeat: 2, pause: 0.5}
      - {tool: other}
""",
    )
    assert (found.url, found.binaries) == ("http://[::1]:8000/mcp", True)
    assert (found.clock, found.ci, found.locale, found.timezone) == ("+400d", True, "de_DE.UTF-8", "Asia/Tokyo")
    again = {"tool": "notes", "arguments": {"query": "hello", "many": 3}, "pause": 0.5}
    assert found.calls == (again, again, {"tool": "other", "arguments": {}, "pause": 0.0})


def test_without_them_a_run_is_as_ever(tmp_path: Path) -> None:
    found = variant(tmp_path, "")
    assert (found.clock, found.ci, found.locale, found.timezone) == (None, False, "C.UTF-8", None)
    assert (found.calls, found.url, found.binaries) == ((), None, False)


@pytest.mark.parametrize(
    ("more", "line", "problem"),
    [
        ("    options: {clock: tomorrow}\n", 9, "clock is a shift such as"),
        ("    options: {clock: 400}\n", 9, "clock is a shift such as"),
        ("    calls:\n      - {tool: a, repeat: 0}\n", 10, "repeat is a number from 1 to 100"),
        ("    calls:\n      - {tool: a, repeat: many}\n", 10, "repeat is a number from 1 to 100"),
        ("    calls:\n      - {tool: a, pause: 61}\n", 10, "pause is 0 to 60 seconds"),
        ("    url: http://127.0.0.1:1/mcp\n", 9, "url is http://127.0.0.1:PORT/PATH"),
        ("    mcp: true\n    url: http://example.com/mcp\n", 10, "url is http://127.0.0.1:PORT/PATH"),
    ],
)
def test_a_wrong_one_is_an_error_with_its_line(tmp_path: Path, more: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        variant(tmp_path, more)
    assert caught.value.place == f"line {line}"


@pytest.mark.parametrize(
    "more", ["    options: {speed: 3}\n", "    calls: [{arguments: {}}]\n", "    calls: [{tool: a, x: 1}]\n"]
)
def test_unknown_and_missing_keys_are_errors(tmp_path: Path, more: str) -> None:
    with pytest.raises(ConfigError):
        variant(tmp_path, more)
