"""HTTP/1 requests in the clear: one behind another, in pieces, tunnelled, and what is none."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets import CLIENT, SECOND, SERVER, T0, client_hello, flow, pcap, read, record

from mcpdetect.ingest.pcap.http import Request, RequestReader, may_be_request
from mcpdetect.model.event import Event
from mcpdetect.model.net import HttpRequest, TlsClientHello
from mcpdetect.model.place import Where

GET = b"GET /x?y=1 HTTP/1.1\r\nAccept: */*\r\nHost: Vendor.test:8080\r\n\r\n"
POST = b"POST http://b.test/ HTTP/1.1\r\nhost:\tb.test \r\nContent-Length: 9\r\n\r\nGET /in b"
CHUNKED = (
    b"PUT /c HTTP/1.1\r\nHost: c.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    b"5;name=value\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\nTrailer: x\r\n\r\n"
)
EACH = [
    ("GET", "/x?y=1", "Vendor.test:8080"),
    ("POST", "http://b.test/", "b.test"),
    ("PUT", "/c", "c.test"),
    ("GET", "/x?y=1", "Vendor.test:8080"),
]
STREAM = GET + POST + CHUNKED + GET


def requests(events: list[Event]) -> list[tuple[str, str, str | None]]:
    return [(event.method, event.target, event.host) for event in events if isinstance(event, HttpRequest)]


def segments(stream: bytes, size: int) -> list[tuple[int, bytes]]:
    return [(at, stream[at : at + size]) for at in range(0, len(stream), size)]


def test_a_request_is_one_event_with_its_ends(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(flow([(0, GET[:10]), (10, GET[10:])], other=8080)))
    assert events[0] == HttpRequest(
        Where("c.pcap", 4, 5, "packet"),
        (T0 + 3) * SECOND,
        "GET",
        "/x?y=1",
        "Vendor.test:8080",
        CLIENT,
        40001,
        SERVER,
        8080,
        seen_in="packets",
    )
    assert observation.losses == []


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1400])
def test_requests_of_one_connection_are_found_whatever_the_segments(tmp_path: Path, size: int) -> None:
    events, observation = read(tmp_path, pcap(flow(segments(STREAM, size), other=80)))
    assert requests(events) == EACH
    assert observation.losses == []


def test_each_request_is_placed_where_its_head_begins(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap(flow([(0, GET + POST[:5]), (len(GET) + 5, POST[5:])], other=80)))
    assert [str(event.where) for event in events if isinstance(event, HttpRequest)] == ["c.pcap#4", "c.pcap#4+5"]


def test_a_missing_segment_is_a_gap_and_the_next_request_is_found(tmp_path: Path) -> None:
    parts = [(0, GET), (len(GET) + len(POST), GET)]
    events, observation = read(tmp_path, pcap(flow(parts, other=80)))
    assert requests(events) == [EACH[0], EACH[0]]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [
        ("gap", ["http.request"]),
        ("unparsed", ["http.request"]),
    ]


def test_a_tunnel_is_a_request_and_then_another_protocol(tmp_path: Path) -> None:
    connect = b"CONNECT api.vendor.test:443 HTTP/1.1\r\nHost: api.vendor.test:443\r\n\r\n"
    stream = [(0, connect), (len(connect), record(client_hello("api.vendor.test")))]
    events, observation = read(tmp_path, pcap(flow(stream, other=3128)))
    assert requests(events) == [("CONNECT", "api.vendor.test:443", "api.vendor.test:443")]
    assert [event.sni for event in events if isinstance(event, TlsClientHello)] == ["api.vendor.test"]
    assert observation.losses == []


def test_a_head_that_is_cut_is_told_without_a_cut_host(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(flow([(0, b"GET / HTTP/1.1\r\nHost: vend")], other=80)))
    assert requests(events) == [("GET", "/", None)]
    assert observation.losses == []
    events, observation = read(tmp_path, pcap(flow([(0, b"GET /long")], other=80)))
    assert requests(events) == []
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("unparsed", ["http.request"])]


def test_a_request_cut_by_the_snap_length_is_a_loss(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(flow([(0, GET), (len(GET), GET)], other=80), snap=80))
    assert requests(events) == [("GET", "/x?y=1", None), ("GET", "/x?y=1", None)]
    assert [(loss.what, loss.count, loss.touches) for loss in observation.losses] == [
        ("snaplen", 2, ["http.request"]),
        ("unparsed", 1, ["http.request"]),
    ]


@pytest.mark.parametrize(
    "stream",
    [
        b"SSH-2.0-x\r\n",
        b"EHLO me\r\n",
        b"get / http/1.1\r\n\r\n",
        b"\0\0\0\x08",
        b"GET /\r\n\r\n",
        b"HELLO \xff\n\n",
        b"A" * 60,
    ],
)
def test_other_protocols_are_no_requests(tmp_path: Path, stream: bytes) -> None:
    events, observation = read(tmp_path, pcap(flow([(0, stream)], other=80)))
    assert requests(events) == []
    assert observation.losses == []


def test_what_follows_another_protocol_is_not_read_as_requests(tmp_path: Path) -> None:
    upgrade = b"GET /chat HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\n\r\n"
    events, observation = read(tmp_path, pcap(flow([(0, upgrade + GET)], other=80)))
    assert requests(events) == [("GET", "/chat", "a.test")]
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    events, _ = read(tmp_path, pcap(flow([(0, preface)], other=80)))
    assert requests(events) == [("PRI", "*", None)]
    assert observation.losses == []


def test_a_body_without_a_length_ends_what_can_be_told(tmp_path: Path) -> None:
    stream = b"POST / HTTP/1.0\r\nHost: a.test\r\n\r\nnot a request line\r\n"
    events, observation = read(tmp_path, pcap(flow([(0, stream)], other=80)))
    assert requests(events) == [("POST", "/", "a.test")]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("unparsed", ["http.request"])]


def test_a_head_without_end_is_given_up_at_16_kilobytes(tmp_path: Path) -> None:
    stream = b"GET / HTTP/1.1\r\nHost: a.test\r\n" + b"X: y\r\n" * 5000
    events, observation = read(tmp_path, pcap(flow(segments(stream, 1400), other=80)))
    assert requests(events) == [("GET", "/", "a.test")]
    assert [loss.what for loss in observation.losses] == ["unparsed"]


def test_empty_lines_and_bare_line_ends_are_allowed() -> None:
    reader = RequestReader()
    assert reader.feed(b"\r\n\r\nGET / HTTP/1.0\nHost: a.test\n\nGET /2 HTTP/1.0\r\n\r\n") == [
        Request("GET", "/", "a.test", True),
        Request("GET", "/2", None, True),
    ]
    assert (reader.over, reader.lost) == (False, False)


def test_target_and_host_keep_odd_bytes() -> None:
    assert RequestReader().feed(b"GET /\xff\\ HTTP/1.1\r\nHost: \x1b[31m\r\n\r\n") == [
        Request("GET", "/\\xff\\\\", "\x1b[31m", True)
    ]


def test_what_may_begin_a_request() -> None:
    assert [may_be_request(data) for data in (b"G", b"GET", b"GET /", b"M-SEARCH *", b"", b"g", b"G3", b"\x16")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
        False,
    ]


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=12))
def test_every_split_of_a_stream_gives_the_same_requests(cuts: list[int]) -> None:
    reader = RequestReader()
    edges = sorted({0, len(STREAM), *cuts})
    found: list[Request] = []
    for begin, end in pairwise(edges):
        found += reader.feed(STREAM[begin:end])
    assert [(request.method, request.target, request.host) for request in found] == EACH
    assert (reader.over, reader.lost, reader.pending) == (False, False, False)


@given(st.lists(st.binary(max_size=60) | st.sampled_from([GET, POST, CHUNKED, b"\r\n", b"0\r\n\r\n"]), max_size=12))
def test_any_bytes_are_survived(parts: list[bytes]) -> None:
    reader = RequestReader()
    for part in parts:
        for request in reader.feed(part):
            request.target.encode("utf-8")
    reader.close()
