"""The strict decoder says the same as pydantic's strict validation, which publishes the schema."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import pytest
from event_strategies import EVENTS, OBSERVATIONS, RUNS, TEXT
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from mcpdetect.model.event import FileOpen, FileRead
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.model.wire import Refused, decoder, encode

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXT,
    st.lists(st.integers(), max_size=2),
    st.just({}),
    st.just({"x": 1}),
)


@cache
def adapter(model: type) -> TypeAdapter[object]:
    """Return pydantic's validator of a class, made once."""
    return TypeAdapter(model)


def answers(model: type, raw: bytes) -> tuple[object, object]:
    """Return what the strict decoder and pydantic make of a text, ``None`` for a refusal."""
    try:
        ours: object = decoder(model)(raw)
    except Refused:
        ours = None
    try:
        theirs: object = adapter(model).validate_json(raw, strict=True)
    except ValidationError:
        theirs = None
    return ours, theirs


@pytest.mark.parametrize("kind", EVENTS)
@settings(max_examples=40)
@given(data=st.data())
def test_both_take_every_event_and_make_the_same_of_it(kind: str, data: st.DataObject) -> None:
    event = data.draw(EVENTS[kind])
    assert answers(EVENT_TYPES[kind], encode(event)) == (event, event)


@given(run=RUNS, observation=OBSERVATIONS)
def test_both_take_every_run_and_observation(run: Run, observation: Observation) -> None:
    assert answers(Run, encode(run)) == (run, run)
    assert answers(Observation, encode(observation)) == (observation, observation)


@pytest.mark.parametrize("kind", EVENTS)
@settings(max_examples=60)
@given(data=st.data())
def test_both_agree_about_an_event_with_one_thing_changed(kind: str, data: st.DataObject) -> None:
    loaded: dict[str, Any] = json.loads(encode(data.draw(EVENTS[kind])))
    inner = [value for value in (loaded["where"], *loaded.values()) if isinstance(value, dict)]
    victim = data.draw(st.sampled_from([loaded, *inner]))
    key = data.draw(st.sampled_from([*victim, "unheard"]))
    if data.draw(st.booleans()):
        victim[key] = data.draw(JUNK)
    else:
        victim.pop(key, None)
    ours, theirs = answers(EVENT_TYPES[kind], json.dumps(loaded).encode())
    assert ours == theirs


@given(raw=st.binary(max_size=12))
def test_bytes_are_base64_of_the_standard_alphabet(raw: bytes) -> None:
    event = FileRead(Where("a", 1), None, "read", 1, data=raw)
    assert json.loads(encode(event))["data"] == base64.b64encode(raw).decode()


@pytest.mark.parametrize("spelling", ["-_8=", "+/8", "+/8=\n", "+/8 ", "é", "a"])
def test_other_spellings_of_base64_are_refused(spelling: str) -> None:
    event = json.loads(encode(FileRead(Where("a", 1), None, "read", 1)))
    event["data"] = spelling
    with pytest.raises(Refused) as caught:
        decoder(FileRead)(json.dumps(event).encode())
    assert (caught.value.pointer, caught.value.problem) == ("/data", "Invalid base64 encoded string")


def test_a_refusal_names_pointer_problem_and_value() -> None:
    event = json.loads(encode(FileOpen(Where("a", 1), None, "open", 1)))
    event["a/b~"] = [1]
    with pytest.raises(Refused) as caught:
        decoder(FileOpen)(json.dumps(event).encode())
    error = caught.value
    assert (error.pointer, error.problem, error.value, error.cut) == ("/a~1b~0", "unknown key", "[1]", False)
    assert str(error) == "/a~1b~0: unknown key"


def test_a_text_that_ends_early_is_told_from_a_wrong_one() -> None:
    for raw, cut in ((b'{"kind":"file.open"', True), (b'{"kind":"file.open"]', False), (b"", True)):
        with pytest.raises(Refused) as caught:
            decoder(FileOpen)(raw)
        assert caught.value.cut is cut


def test_only_classes_of_the_model_have_a_decoder() -> None:
    with pytest.raises(TypeError, match="neither a class of the model nor a list of one"):
        decoder(int)
