"""What is written is what is read, in every form, layout and compression."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from event_strategies import EVENTS, OBSERVATIONS, RUNS
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import EVENTS as SAMPLE
from trace_samples import OBSERVATIONS as SAMPLE_OBSERVATIONS
from trace_samples import RUN, Memory, document, read, text

from mcpdetect.ingest.tracefile import TraceFile, write_trace
from mcpdetect.model.event import Event, ProcessExit
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

FORMS: list[Literal["json", "jsonl"]] = ["json", "jsonl"]


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_any_trace_comes_back_equal(
    form: Literal["json", "jsonl"], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    events = data.draw(st.lists(st.one_of(*EVENTS.values()), max_size=6))
    observations = data.draw(st.lists(OBSERVATIONS, max_size=2))
    run = data.draw(RUNS)
    path = tmp_path_factory.getbasetemp() / f"trace.{form}"
    assert write_trace(path, Memory(events, observations, run), form=form) == len(events)
    assert read(path, path.read_bytes()) == (events, observations, run)
    assert read(path, path.read_bytes(), trusted=True) == (events, observations, run)


@pytest.mark.parametrize("kind", EVENTS)
@settings(max_examples=20)
@given(data=st.data())
def test_every_kind_comes_back_equal_from_any_layout(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    event = data.draw(EVENTS[kind])
    loaded = json.loads(text("json", Memory([event])))
    path = tmp_path_factory.getbasetemp() / "trace.json"
    for indent in (None, 1):
        assert read(path, json.dumps(loaded, indent=indent))[0] == [event]
        assert read(path, json.dumps(loaded, indent=indent, sort_keys=True))[0] == [event]


def test_the_document_has_one_event_a_line() -> None:
    head, array, *events, close, keyword, first, second, end = text().decode().splitlines()
    assert head.startswith('{"schema": "mcpdetect.trace/1", "generator": "mcpdetect ')
    assert json.loads(head.removesuffix(",") + "}")["run"]["id"] == "sample"
    assert array == '"events": ['
    assert [json.loads(line.removesuffix(","))["kind"] for line in events] == [event.kind for event in SAMPLE]
    assert (close, keyword, end) == ("],", '"observations": [', "]}")
    assert [json.loads(line.removesuffix(","))["channel"] for line in (first, second)] == ["syscalls", "dns"]


def test_json_lines_have_a_header_events_and_a_last_line() -> None:
    header, *events, last = (json.loads(line) for line in text("jsonl").splitlines())
    assert list(header) == ["schema", "generator", "run"]
    assert [event["kind"] for event in events] == [event.kind for event in SAMPLE]
    assert [item["source"] for item in last["observations"]] == ["strace.log", "dns.log"]
    assert list(last) == ["observations"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_compression_is_by_suffix_and_read_by_content(
    form: Literal["json", "jsonl"], suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"trace.{form}{suffix}"
    assert write_trace(path, Memory(), form=form) == 5
    moved = path.rename(tmp_path / "anything")
    assert (moved.read_bytes() == text(form)) is (suffix == "")
    trace = TraceFile(moved)
    assert (list(trace.events()), trace.observations(), trace.run) == (SAMPLE, SAMPLE_OBSERVATIONS, RUN)
    assert [item.name for item in tmp_path.iterdir()] == ["anything"]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_the_same_trace_compresses_to_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json{suffix}" for number in range(2)]
    for path in paths:
        write_trace(path, Memory(), form="json")
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("form", FORMS)
def test_a_trace_without_events_or_observations_comes_back(form: Literal["json", "jsonl"], tmp_path: Path) -> None:
    assert read(tmp_path / "t", text(form, Memory([], [], Run()))) == ([], [], Run())


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("layout", ["json", "jsonl", "pretty"])
def test_only_wanted_kinds_are_yielded(layout: str, trusted: bool, tmp_path: Path) -> None:
    path = tmp_path / "t"
    content = json.dumps(document(), indent=1).encode() if layout == "pretty" else text(layout)  # type: ignore[arg-type]
    path.write_bytes(content)
    trace = TraceFile(path, trusted=trusted)
    assert list(trace.events(frozenset({"dns.query", "process.exit"}))) == [SAMPLE[2], SAMPLE[4]]
    assert trace.observations() == SAMPLE_OBSERVATIONS


def test_keys_may_come_in_any_order(tmp_path: Path) -> None:
    loaded = document()
    for order in (["events", "observations", "run", "schema"], ["observations", "schema", "run", "events"]):
        shuffled = {key: loaded[key] for key in order}
        for indent in (None, 3):
            assert read(tmp_path / "t", json.dumps(shuffled, indent=indent)) == (SAMPLE, SAMPLE_OBSERVATIONS, RUN)


def test_a_byte_order_mark_and_line_ends_of_windows_are_read(tmp_path: Path) -> None:
    for form in FORMS:
        content = b"\xef\xbb\xbf" + text(form).replace(b"\n", b"\r\n")
        assert read(tmp_path / "t", content) == (SAMPLE, SAMPLE_OBSERVATIONS, RUN)


def test_text_that_is_no_unicode_is_written_out(tmp_path: Path) -> None:
    event = ProcessExit(Where("a\udcff.log", 1), None, 0)
    events, observations, run = read(
        tmp_path / "t", text("json", Memory([event], [Observation("dns", "\ud800", "x")], Run("\udcfe")))
    )
    assert [item.where.file for item in events] == ["a\\udcff.log"]
    assert (observations[0].source, run.id) == ("\\ud800", "\\udcfe")


def test_writing_to_an_open_file_neither_closes_nor_compresses() -> None:
    out = io.BytesIO()
    write_trace(out, Memory(), form="json")
    assert out.getvalue() == text()


def test_a_failure_while_writing_leaves_no_file(tmp_path: Path) -> None:
    class Failing(Memory):
        def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
            yield SAMPLE[0]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_trace(tmp_path / "t.json", Failing(), form="json")
    assert list(tmp_path.iterdir()) == []
