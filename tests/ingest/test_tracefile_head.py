"""What stands around the events: each mistake is an error that says where, what and what to try."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from trace_samples import EVENTS, OBSERVATIONS, RUN, Memory, document, read, text

from mcpdetect.errors import ConfigError, InputError, Malformed, UnknownFormat
from mcpdetect.ingest.tracefile import TraceFile, write_trace
from mcpdetect.model.trace import Run


def raised(path: Path, content: bytes | str) -> InputError:
    """Return the error of reading ``content``."""
    with pytest.raises(InputError) as caught:
        read(path, content)
    return caught.value


def without(*keys: str, **values: object) -> dict[str, Any]:
    """Return the sample document without keys, and with others."""
    loaded = {key: value for key, value in document().items() if key not in keys}
    loaded.update(values)
    return loaded


@pytest.mark.parametrize(
    "content", ['4211 openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3\n', "[]", "\n\n  x", b"\xff\xfe{\x00", '"a"']
)
def test_what_begins_with_no_object_is_no_trace(content: str | bytes, tmp_path: Path) -> None:
    error = raised(tmp_path / "t", content)
    assert isinstance(error, UnknownFormat)
    assert error.problem == "is no trace: it does not begin with a JSON object"
    assert error.hint == "give raw evidence with --strace, --pcap, --dns, --firewall or --mcp"


@pytest.mark.parametrize("content", ['{"t": 1, "dir": "c2s", "msg": {}}\n{"t": 2}', "{}", '{"events": []}', '{"a'])
def test_other_json_is_no_trace(content: str, tmp_path: Path) -> None:
    error = raised(tmp_path / "t", content)
    assert isinstance(error, UnknownFormat)
    assert error.problem == "is JSON, but no trace: it has no schema"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("mcpdetect.trace/2", "is a trace of version 2, this program reads mcpdetect.trace/1"),
        ("mcpdetect.trace/0", "is a trace of version 0, this program reads mcpdetect.trace/1"),
        ("mcpdetect.result/1", "is no trace"),
        (1, "is no trace"),
        (None, "is no trace"),
    ],
)
def test_another_schema_says_what_to_do(schema: object, problem: str, tmp_path: Path) -> None:
    error = raised(tmp_path / "t", json.dumps(without(schema=schema)))
    assert isinstance(error, UnknownFormat)
    assert (error.problem, error.place, error.value) == (problem, "/schema", json.dumps(schema))
    assert error.cause
    assert error.hint


@pytest.mark.parametrize(
    ("loaded", "problem", "place", "value"),
    [
        (without("run"), "has no run", None, None),
        (without(run={"id": 7}), "Expected `str`, got `int`", "line 1, /run/id", "7"),
        (without(run={"nmae": "x"}), "unknown key", "line 1, /run/nmae", '"x"'),
        (without(run=[]), "Expected `object`, got `array`", "line 1, /run", "[]"),
        (without(generator=3), "is no text", "line 1, /generator", "3"),
        (without("events"), "has no events", None, None),
        (without("observations"), "has no observations", None, None),
        (without(observations={}), "Expected `array`, got `object`", "line 1, /observations", "{}"),
        (
            without(observations=[{"channel": "sound", "source": "a", "format": "b"}]),
            "Invalid enum value 'sound'",
            "line 1, /observations/0/channel",
            '"sound"',
        ),
        (
            without(observations=[{"channel": "dns", "source": "a"}]),
            "Object missing required field `format`",
            "line 1, /observations/0",
            None,
        ),
        (without(evnts=[]), "a key that no trace has", "line 1, /evnts", None),
    ],
)
def test_a_wrong_key_beside_the_events_is_an_error(
    loaded: dict[str, Any], problem: str, place: str | None, value: str | None, tmp_path: Path
) -> None:
    error = raised(tmp_path / "t", json.dumps(loaded))
    assert isinstance(error, Malformed)
    assert (error.file, error.problem, error.place, error.value) == ("t", problem, place, value)
    assert error.hint


def test_a_wrong_observation_is_found_by_its_line(tmp_path: Path) -> None:
    content = text().replace(b'"format":"dnsmasq"', b'"format":null')
    error = raised(tmp_path / "t", content)
    assert (error.place, error.value) == ("line 9, /observations/1/format", "null")


@pytest.mark.parametrize("key", ["schema", "run", "generator", "observations", "events"])
def test_a_key_that_comes_twice_is_an_error(key: str, tmp_path: Path) -> None:
    loaded = document()
    for tail in (f', "{key}": {json.dumps(loaded[key])}}}', f', "{key}": 0}}'):
        content = json.dumps(loaded)[:-1] + tail
        error = raised(tmp_path / "t", content)
        assert error.problem == ("a key that comes twice" if key != "events" else "a key that no trace has")


def test_two_traces_in_one_file_are_an_error(tmp_path: Path) -> None:
    error = raised(tmp_path / "t", text() + text())
    assert (error.problem, error.place, error.cause) == ("goes on after its end", "line 13", "two traces in one file")
    assert raised(tmp_path / "t", text("jsonl") + text("jsonl")).problem == "goes on after its end"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"schema": "mcpdetect.trace/1" "run"', "line 1"),
        ('{"schema": "mcpdetect.trace/1",\n run: {}}', "line 2"),
        ('{"schema": "mcpdetect.trace/1",\n"run": {]}', "line 2"),
        ('{"schema": "mcpdetect.trace/1",\n"run": {"id": "a\n"}}', "line 2"),
        ('{"schema": "mcpdetect.trace/1", "run": {}, "events": [{} {}]}', "line 1"),
        ('{"schema": "mcpdetect.trace/1", "run": {}, "events": [{},\n]}', "line 2"),
        ('{"schema": "mcpdetect.trace/1", "run": {}, "events": [], \n"observations": [}]}', "line 2"),
        ('{"schema": "mcpdetect.trace/1", "run": {}, "events": 7}', "line 1"),
    ],
)
def test_what_is_no_json_is_an_error_with_its_line(content: str, place: str, tmp_path: Path) -> None:
    error = raised(tmp_path / "t", content)
    assert isinstance(error, Malformed)
    assert error.problem.startswith("is no JSON: ")
    assert error.place == place


def test_the_run_may_come_last_in_a_file_but_not_in_a_pipe(tmp_path: Path) -> None:
    loaded = document()
    content = json.dumps({key: loaded[key] for key in ("events", "observations", "schema", "run")}).encode()
    assert read(tmp_path / "t", content) == (EVENTS, OBSERVATIONS, RUN)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    with pytest.raises(Malformed, match="a pipe can be read only once"):
        TraceFile(pipe)
    writer.join()


def test_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(text(),), daemon=True)
    writer.start()
    trace = TraceFile(pipe)
    assert list(trace.events()) == EVENTS
    assert trace.observations() == OBSERVATIONS
    writer.join()


def test_events_can_be_asked_for_once(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(text())
    trace = TraceFile(path)
    assert trace.observations() == []
    assert list(trace.events()) == EVENTS
    with pytest.raises(InputError, match="were read already"):
        list(trace.events())


def test_a_run_needs_nothing_but_its_key(tmp_path: Path) -> None:
    assert read(tmp_path / "t", json.dumps(without("generator", run={})))[2] == Run()


def test_an_unwritable_path_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        write_trace(tmp_path / "missing" / "t.json", Memory(), form="json")


def test_writing_to_a_pipe_goes_straight_there(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read_back: list[bytes] = []
    reader = threading.Thread(target=lambda: read_back.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert write_trace(pipe, Memory(), form="json") == len(EVENTS)
    reader.join()
    assert read_back == [text()]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["pipe"]
