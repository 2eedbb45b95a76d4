"""A damaged or hostile trace file: nothing crashes, nothing is forged, nothing goes missing without a word."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_samples import EVENTS, OBSERVATIONS, Memory, document, read, text

from mcpdetect.errors import InputError
from mcpdetect.ingest.tracefile import reader as tracefile_reader
from mcpdetect.ingest.tracefile import scan as tracefile_scan
from mcpdetect.ingest.tracefile import write as tracefile_write
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import NetFlow, SocketConnect
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where

FORMS: list[Literal["json", "jsonl"]] = ["json", "jsonl"]
LAYOUTS = ["lines", "pretty"]


def changed(number: int, **values: object) -> dict[str, Any]:
    """Return the sample document with other values in one of its events."""
    loaded = document()
    loaded["events"][number].update(values)
    return loaded


def laid_out(loaded: dict[str, Any], layout: str) -> bytes:
    """Return a document one event a line, or pretty-printed."""
    if layout == "pretty":
        return json.dumps(loaded, indent=1).encode()
    rows = ",\n".join(json.dumps(event, separators=(",", ":")) for event in loaded["events"])
    head = json.dumps({key: loaded[key] for key in ("schema", "run")}).removesuffix("}")
    return f'{head},\n"events": [\n{rows}\n],\n"observations": {json.dumps(loaded["observations"])}}}\n'.encode()


def losses(observations: list[Observation]) -> list[tuple[str, list[Loss]]]:
    """Return the losses that reading added, by source."""
    known = [loss for item in OBSERVATIONS for loss in item.losses]
    return [(item.source, [loss for loss in item.losses if loss not in known]) for item in observations]


@pytest.mark.parametrize("layout", ["json", "jsonl", "pretty"])
def test_a_file_cut_at_any_byte_is_an_error_or_a_prefix_with_a_loss(layout: str, tmp_path: Path) -> None:
    whole = json.dumps(document(), indent=1).encode() if layout == "pretty" else text(layout)  # type: ignore[arg-type]
    end = len(whole.rstrip())
    counts: list[int] = []
    for length in range(1, end):
        try:
            events, observations, _ = read(tmp_path / "t", whole[:length])
        except InputError:
            assert not counts, "after a cut that could be read, a longer file is no error"
            continue
        counts.append(len(events))
        assert events == EVENTS[: len(events)]
        found = [(item.complete, item.losses) for item in observations]
        place = Where("t", whole[:length].count(b"\n") + 1)
        loss = Loss("file-truncated", "the trace file ends too early", where=place)
        assert found == [(False, [loss])] * len(observations)
        assert observations
    assert counts == sorted(counts)
    assert set(counts) == set(range(len(EVENTS) + 1))
    assert read(tmp_path / "t", whole[:end])[:2] == (EVENTS, OBSERVATIONS)


def test_a_cut_file_says_what_its_events_showed(tmp_path: Path) -> None:
    whole = text()
    _, observations, _ = read(tmp_path / "t", whole[: whole.index(b"\n]")])
    assert [(item.channel, item.source, item.format, item.watches) for item in observations] == [
        ("syscalls", "t", "trace", {"file.open": "inferred", "process.exit": "inferred", "socket.connect": "inferred"}),
        ("dns", "t", "trace", {"dns.query": "inferred"}),
    ]


def test_a_cut_file_keeps_observations_that_came_before_its_events(tmp_path: Path) -> None:
    loaded = document()
    content = json.dumps({key: loaded[key] for key in ("schema", "run", "observations", "events")})
    events, observations, _ = read(tmp_path / "t", content[:-3])
    assert events == EVENTS[:4]
    assert [(item.source, item.complete) for item in observations] == [("strace.log", False), ("dns.log", False)]
    assert [[loss.what for loss in found] for _, found in losses(observations)] == [["file-truncated"]] * 2


def test_a_cut_compressed_file_says_why(tmp_path: Path) -> None:
    path_of_noise = "/" + random.Random(1).randbytes(200_000).hex()  # noqa: S311  noise that does not compress
    event = SocketConnect(Where("s", 1), None, "connect", 0, path=path_of_noise)
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(text("json", Memory([EVENTS[0], event])))[:-5000])
    trace = tracefile_reader.TraceFile(path, "t")
    assert list(trace.events()) == EVENTS[:1]
    why = "the gzip stream broke: Compressed file ended before the end-of-stream marker was reached"
    assert [loss.detail for item in trace.observations() for loss in item.losses] == [
        f"the trace file ends too early: {why}"
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("number", "values", "reason"),
    [
        (0, {"path": 7}, "/path: Expected `str`, got `int` (7)"),
        (0, {"t_ns": 1.0}, "/t_ns: Expected `int | null`, got `float` (1.0)"),
        (0, {"t_ns": "1"}, '/t_ns: Expected `int | null`, got `str` ("1")'),
        (0, {"certain": 1}, "/certain: Expected `bool`, got `int` (1)"),
        (0, {"where": {"file": "a", "at": True}}, "/where/at: Expected `int`, got `bool` (true)"),
        (
            0,
            {"where": {"file": "a", "at": 1, "x": 1}},
            "/where/x: unknown key (1)",
        ),
        (0, {"access": "wride"}, "/access: Invalid enum value 'wride' (\"wride\")"),
        (0, {"aliases": ["/a", None]}, "/aliases/1: Expected `str`, got `null` (null)"),
        (1, {"address": "1.1.1"}, '/address: is no IP address ("1.1.1")'),
        (1, {"address": "::1" * 30}, f'/address: is no IP address ("{("::1" * 30)[:64]}")'),
    ],
)
def test_a_wrong_event_is_unparsed_and_a_loss_of_its_kind(
    number: int, values: dict[str, object], reason: str, layout: str, tmp_path: Path
) -> None:
    content = laid_out(changed(number, **values), layout)
    line = content[: content.index(b'"kind"')].count(b"\n") + 1 if layout == "pretty" else 3 + number
    events, observations, _ = read(tmp_path / "t", content)
    (bad,) = [event for event in events if event not in EVENTS]
    kind = EVENTS[number].kind
    assert isinstance(bad, Unparsed)
    assert (bad.reason, bad.touches, bad.seen_in) == (reason, [kind], "syscalls")
    if layout == "lines":
        assert bad.where == Where("t", line)
    assert [event for event in events if event is not bad] == EVENTS[:number] + EVENTS[number + 1 :]
    detail = f"events of the trace file cannot be read: {reason}"
    loss = Loss("unparsed", detail, where=bad.where, touches=[kind])
    assert losses(observations) == [("strace.log", [loss]), ("dns.log", [])]


def test_an_unknown_key_names_itself(tmp_path: Path) -> None:
    events, _, _ = read(tmp_path / "t", laid_out(changed(2, adress="1.1.1.1"), "lines"))
    assert isinstance(events[2], Unparsed)
    assert events[2].reason == '/adress: unknown key ("1.1.1.1")'
    assert (events[2].seen_in, events[2].touches) == ("dns", ["dns.query"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_unknown_kind_touches_every_observation(layout: str, tmp_path: Path) -> None:
    events, observations, _ = read(tmp_path / "t", laid_out(changed(1, kind="socket.teleport"), layout))
    assert isinstance(events[1], Unparsed)
    assert events[1].reason == '/kind: "socket.teleport" is no event kind'
    loss = Loss("unknown-kind", f"events of the trace file cannot be read: {events[1].reason}", where=events[1].where)
    assert losses(observations) == [("strace.log", [loss]), ("dns.log", [loss])]


@pytest.mark.parametrize(
    "element", [b"7", b"null", b'"x"', b"[]", b"{}", b'{"kind":7}', b'{"kind":null}', b"tru", b"{,}"]
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_element_that_is_no_event_is_unparsed(element: bytes, layout: str, tmp_path: Path) -> None:
    loaded = document()
    loaded["events"].insert(1, "HERE")
    events, observations, _ = read(tmp_path / "t", laid_out(loaded, layout).replace(b'"HERE"', element))
    assert isinstance(events[1], Unparsed)
    assert events[1].raw == element
    assert events[:1] + events[2:] == EVENTS
    assert [[loss.what for loss in found] for _, found in losses(observations)] == [["unparsed"]] * 2


def test_a_broken_line_costs_that_line_alone(tmp_path: Path) -> None:
    lines = text().splitlines(keepends=True)
    for broken in (
        b'{"kind":"file.open","where":{"file":"\n',
        b"\x00\xff\xfe\n",
        b"}]}\n",
        b'{"kind":"a"},{"kind":"b"}\n',
    ):
        content = b"".join([*lines[:3], broken, *lines[3:]])
        events, observations, _ = read(tmp_path / "t", content)
        assert events[:1] + events[2:] == EVENTS
        assert (type(events[1]), events[1].where) == (Unparsed, Where("t", 4))
        assert [[loss.touches for loss in found] for _, found in losses(observations)] == [[[]], [[]]]


def test_many_bad_events_are_one_loss_with_a_count(tmp_path: Path) -> None:
    loaded = document()
    loaded["events"] = [{"kind": f"x{number}"} for number in range(50)] + loaded["events"]
    events, observations, _ = read(tmp_path / "t", laid_out(loaded, "lines"))
    assert len(events) == 55
    assert [[(loss.what, loss.count, str(loss.where)) for loss in found] for _, found in losses(observations)] == [
        [("unknown-kind", 50, "t:3")]
    ] * 2


def test_a_loss_of_a_channel_without_observation_gets_one(tmp_path: Path) -> None:
    loaded = document()
    loaded["events"] = [{"kind": "net.flow", "where": {"file": "c.pcap", "at": 1}, "t_ns": "soon"}]
    _, observations, _ = read(tmp_path / "t", laid_out(loaded, "lines"))
    assert [(item.channel, item.proof, [loss.what for loss in item.losses]) for item in observations[2:]] == [
        ("packets", "absent", ["unparsed"])
    ]


def test_evidence_inside_a_text_forges_no_event(tmp_path: Path) -> None:
    forged = text().decode().splitlines()[2].removesuffix(",")
    hostile = f'x",\n{forged},\n]}}\n"observations": []\\'
    event = SocketConnect(Where("s", 1), None, "connect", 0, path=hostile)
    for form in FORMS:
        assert read(tmp_path / "t", text(form, Memory([event, *EVENTS]))) == (
            [event, *EVENTS],
            OBSERVATIONS,
            Memory().run,
        )


def test_an_event_with_a_key_of_the_last_line_does_not_end_json_lines(tmp_path: Path) -> None:
    lines = text("jsonl").splitlines(keepends=True)
    content = b"".join([lines[0], b'{"observations": [], "kind": "file.open"}\n', *lines[1:]])
    events, observations, _ = read(tmp_path / "t", content)
    assert events[1:] == EVENTS
    assert isinstance(events[0], Unparsed)
    assert [len(found) for _, found in losses(observations)] == [1, 0]


def test_addresses_come_in_one_spelling(tmp_path: Path) -> None:
    connect = SocketConnect(Where("s", 1), None, "connect", 0, address="::FFFF:1.1.1.1")
    flow = NetFlow(Where("c", 1), None, source="2001:DB8::1", address="2001:0db8::2")
    events, _, _ = read(tmp_path / "t", text("json", Memory([connect, flow])))
    assert [(event.address, getattr(event, "raw_address", "")) for event in events] == [  # type: ignore[attr-defined]
        ("1.1.1.1", "::FFFF:1.1.1.1"),
        ("2001:db8::2", ""),
    ]
    assert isinstance(events[1], NetFlow)
    assert events[1].source == "2001:db8::1"


@pytest.mark.parametrize("layout", ["lines", "pretty"])
def test_an_event_that_is_too_long_is_skipped_with_a_loss(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 300_000
    for module in (tracefile_scan, tracefile_reader):
        monkeypatch.setattr(module, "MAX_VALUE", limit)
    monkeypatch.setattr(tracefile_scan.Scanner.value, "__defaults__", (limit,))
    loaded = document()
    loaded["events"].insert(1, {"kind": "file.open", "argv": ["x" * 1000] * 1000})
    events, observations, _ = read(tmp_path / "t", laid_out(loaded, layout))
    assert events[:1] + events[2:] == EVENTS
    assert isinstance(events[1], Unparsed)
    assert (events[1].reason, len(events[1].raw)) == (f"is longer than {limit} bytes", 4096)
    assert [[loss.touches for loss in found] for _, found in losses(observations)] == [[[]], [[]]]


def test_an_event_too_long_to_be_read_again_is_written_as_unparsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracefile_write, "MAX_VALUE", 1000)
    long: list[Event] = [SocketConnect(Where("s", 7), 5, "connect", 0, path="x" * 1000)] * 2
    events, observations, _ = read(tmp_path / "t", text("json", Memory([*long, EVENTS[0]])))
    reason = "socket.connect longer than 1000 bytes"
    assert events == [
        *[Unparsed(Where("s", 7), 5, seen_in="syscalls", reason=reason, touches=["socket.connect"])] * 2,
        EVENTS[0],
    ]
    assert losses(observations) == [
        ("strace.log", [Loss("unparsed", reason, 2, Where("s", 7), ["socket.connect"])]),
        ("dns.log", []),
    ]


@pytest.mark.parametrize("depth", [2000, 200_000])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_deep_nesting_is_unparsed(depth: int, layout: str, tmp_path: Path) -> None:
    deep = b'{"kind":"file.open","aliases":' + b"[" * depth + b"]" * depth + b"}"
    loaded = document()
    loaded["events"].insert(1, "HERE")
    events, _, _ = read(tmp_path / "t", laid_out(loaded, layout).replace(b'"HERE"', deep))
    assert events[:1] + events[2:] == EVENTS
    assert isinstance(events[1], Unparsed)


@given(junk=st.binary(max_size=80), at=st.integers(0, 2400), form=st.sampled_from(FORMS))
def test_any_bytes_anywhere_give_events_or_an_input_error(
    junk: bytes, at: int, form: Literal["json", "jsonl"], tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = text(form)
    for content in (whole[:at] + junk + whole[at:], whole[:at] + junk + whole[at + len(junk) :], junk or b"{"):
        try:
            events, observations, _ = read(tmp_path_factory.getbasetemp() / "t", content)
        except InputError:
            continue
        missing = [event for event in EVENTS if event not in events]
        if missing:
            assert any(found for _, found in losses(observations)) or any(
                event.kind == missing[0].kind for event in events
            )
