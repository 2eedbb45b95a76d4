"""Every text that evidence can choose, in every field of a result, made harmless in every report."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator

import pytest
from report_samples import HOSTILE, full, result

from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Explanation, Finding, Limit, Result
from mcpdetect.report.json_report import json_report
from mcpdetect.report.layout import Style
from mcpdetect.report.outcome import Unreadable, outcome
from mcpdetect.report.text import text_report

# Fields that hold a word of a closed vocabulary, which no evidence chooses.
CLOSED = {"verdict", "proof", "level", "channel", "clock", "unit", "assurance", "schema"}
ACTIVE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff]")


def places(value: object, path: str = "") -> Iterator[tuple[object, str, str]]:
    """Yield every text field below a value: its owner, its name, and its path."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, f"{path}[{index}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            here = f"{path}.{field.name}"
            texts = inner if isinstance(inner, list) else [inner]
            if texts and isinstance(texts[0], str) and field.name not in CLOSED:
                yield value, field.name, here
            else:
                yield from places(inner, here)


def poisoned(owner: object, name: str) -> None:
    old = getattr(owner, name)
    setattr(owner, name, [HOSTILE] * len(old) if isinstance(old, list) else f"{HOSTILE}{old}")


def test_a_hostile_text_in_any_field_stays_harmless_in_text_reports() -> None:
    count = len(list(places(full())))
    assert count > 60
    for index in range(count):
        done = full()
        owner, name, path = list(places(done))[index]
        poisoned(owner, name)
        for style in (Style(width=80), Style(width=160, color=True), Style(plain=True)):
            text = text_report([done], outcome([done]), style, bases=["runs/"], verbose=True)
            bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
            assert ACTIVE.search(bare) is None, path
            assert "\n VERDICT" not in bare, path
            assert "\nVERDICT" not in bare, path


def test_a_hostile_text_in_every_field_at_once() -> None:
    done = full()
    for owner, name, _ in list(places(done)):
        poisoned(owner, name)
    text = text_report([done], outcome([done]), Style(width=80), bases=[HOSTILE], verbose=True)
    assert ACTIVE.search(text) is None
    shown = "\\x1b]0;owned\\x07\\x1b[2J\\u202egpj.exe\\u2066\\x0d\\x0aVERDICT:"
    assert shown in text


def test_hostile_facts_are_escaped() -> None:
    done = result(
        CheckResult(
            "a.b",
            1,
            "t",
            "detected",
            "declared",
            "r",
            [Finding("a.b", "t", "r", "info", [Where("f", 1)], facts={HOSTILE: HOSTILE, "list": [HOSTILE], "n": None})],
        )
    )
    text = text_report([done], outcome([done]), Style(), verbose=True)
    assert ACTIVE.search(text) is None
    assert text.count("    fact      ") == 3


def test_json_of_hostile_texts_is_well_formed_utf8_and_loads() -> None:
    done = full()
    for owner, name, _ in list(places(done)):
        poisoned(owner, name)
    raw = json_report([done], [])
    assert raw.count(b"\x1b") == 0
    loaded = json.loads(raw.decode("utf-8"))
    assert loaded["run"]["id"] == HOSTILE.replace("\udc80", "\\x80") + "server-x/open"
    assert json_report([], [Unreadable(HOSTILE, HOSTILE)]).decode("utf-8").count("\\\\x80") == 2


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_a_text_of_any_length_gives_a_report_of_bounded_size(size: int) -> None:
    long = "x" * size
    done: Result = result(
        CheckResult(
            "a.b",
            1,
            long,
            "detected",
            "declared",
            long,
            [
                Finding(
                    "a.b",
                    long,
                    long,
                    "info",
                    [Where("f", 1)],
                    explanations=[Explanation("r", long, long)],
                    program=long,
                )
            ],
            [Limit("w", long)],
        )
    )
    done.notes.append(long)
    assert len(text_report([done], outcome([done]), Style())) < 12_000
