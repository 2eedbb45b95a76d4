"""Hostile captures: any bytes, any cut, any damaged byte; nothing escapes, nothing is invented."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packets import (
    CLIENT,
    CLIENT6,
    SERVER,
    SERVER6,
    SYN,
    answer,
    client_hello,
    crypto,
    dns_packet,
    enhanced,
    eth,
    flow,
    fragment6,
    interface,
    ip4,
    ip6,
    pack,
    pcap,
    question,
    quic_initial,
    read,
    record,
    section,
    tcp,
    udp,
)
from pydantic import TypeAdapter

from mcpdetect.errors import InputError
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation

shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

SYN_PACKET = ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1000, SYN))
FRAMES = [
    eth(dns_packet()),
    eth(ip4(SERVER, CLIENT, 17, udp(53, 40000, answer("a.test", (b"\xc0\x0c", 5, b"\x01b\xc0\x0c"))))),
    *flow([(0, record(client_hello("exfil.example.test")))]),
    *flow([(0, b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")], port=40002, other=80),
    *flow([(0, pack("!H", 26) + question("b.test") + b"xx")], port=40003, other=53),
    eth(ip4(CLIENT, SERVER, 17, udp(50000, 443, quic_initial(crypto(0, client_hello("q.test")))))),
    eth(SYN_PACKET),
    eth(ip4(SERVER, CLIENT, 1, b"\x03\x03" + bytes(6) + SYN_PACKET[:28])),
    eth(ip4(CLIENT, SERVER, 17, udp(40000, 53, question("f.test"))[:16], more=True)),
    eth(ip4(CLIENT, SERVER, 17, udp(40000, 53, question("f.test"))[16:], offset=2)),
    eth(ip6(CLIENT6, SERVER6, 44, fragment6(60, 0, 1) + bytes([17, 0, 1, 4, 0, 0, 0, 0])), 0x86DD),
    eth(ip4(CLIENT, SERVER, 41, ip6(CLIENT6, SERVER6, 17, udp(1, 5300, question("t.test"))))),
    eth(ip4(CLIENT, SERVER, 47, b"\0\0\x65\x58" + eth(dns_packet()))),
    eth(pack("!HHHH", 100, 0x8100, 200, 0x0800) + dns_packet(), 0x88A8),
]
CLASSIC = pcap(FRAMES)
NEXT = section() + interface() + b"".join(enhanced(frame) for frame in FRAMES)


@cache
def adapter_of(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(EVENT_TYPES[kind])


def survived(tmp_path: Path, data: bytes) -> tuple[list[Event], Observation] | None:
    """Read a capture to its end; None where it was refused."""
    try:
        events, observation = read(tmp_path, data)
    except InputError:
        return None
    for event in events:
        adapter_of(event.kind).validate_python(event, strict=True)
        assert 1 <= event.where.at <= observation.counts["packets"] or event.where.unit == "offset"
    return events, observation


def test_the_samples_are_understood(tmp_path: Path) -> None:
    for data in (CLASSIC, NEXT):
        events, observation = read(tmp_path, data)
        assert sorted({event.kind for event in events}) == [
            "dns.answer",
            "dns.query",
            "http.request",
            "net.flow",
            "net.packet",
            "quic.initial",
            "tls.client_hello",
        ]
        assert [loss.what for loss in observation.losses] == ["fragment"]
        assert observation.counts["packets"] == len(FRAMES)


@shared_folder
@given(st.binary(max_size=400))
def test_any_file_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    survived(tmp_path, data)


@shared_folder
@given(st.binary(max_size=300), st.sampled_from([0, 1, 12, 101, 108, 113, 228, 276, 147]), st.integers(0, 300))
def test_any_packet_is_read_or_counted(tmp_path: Path, packet: bytes, link: int, snap: int) -> None:
    result = survived(tmp_path, pcap([packet, packet], link=link, snap=snap))
    assert result is not None
    events, observation = result
    assert observation.counts["packets"] == 2
    assert events or observation.losses


@shared_folder
@given(st.binary(max_size=120), st.sampled_from([1, 6, 17, 41, 44, 47, 50, 58, 60]), st.booleans())
def test_any_payload_of_ip_is_read_or_counted(tmp_path: Path, payload: bytes, protocol: int, six: bool) -> None:
    packet = ip6(CLIENT6, SERVER6, protocol, payload) if six else ip4(CLIENT, SERVER, protocol, payload)
    result = survived(tmp_path, pcap([packet], link=101))
    assert result is not None
    assert result[0]


@shared_folder
@given(st.lists(st.tuples(st.integers(-20, 60), st.binary(max_size=40)), max_size=12), st.sampled_from([53, 80, 443]))
def test_any_order_of_segments_is_survived(tmp_path: Path, parts: list[tuple[int, bytes]], port: int) -> None:
    result = survived(tmp_path, pcap(flow(parts, other=port)))
    assert result is not None


@shared_folder
@given(st.data(), st.sampled_from([CLASSIC, NEXT]))
def test_damaged_bytes_are_survived(tmp_path: Path, data: st.DataObject, sample: bytes) -> None:
    damaged = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    survived(tmp_path, bytes(damaged))


@pytest.mark.parametrize(("sample", "headless"), [(CLASSIC, 4), (NEXT, 2)])
def test_a_cut_anywhere_gives_a_beginning_of_the_events_and_a_loss(
    tmp_path: Path, sample: bytes, headless: int
) -> None:
    prompt = frozenset({"dns.query", "dns.answer", "tls.client_hello", "quic.initial", "http.request"})
    whole, _ = read(tmp_path, sample, prompt)
    refused = 0
    for size in range(0, len(sample), 7):
        try:
            events, observation = read(tmp_path, sample[:size], prompt)
        except InputError:
            refused += 1
            continue
        finished = [event for event in events if getattr(event, "complete", True)]
        # an unfinished stream may end in what only its end shows; whatever is finished is a beginning
        assert [event for event in finished if event in whole] == whole[: len([e for e in finished if e in whole])]
        assert observation.counts["packets"] <= len(FRAMES)
    assert refused == headless


def test_time_may_run_backwards_and_to_the_end_of_the_world(tmp_path: Path) -> None:
    times = [0.0, 4e9 - 1.7e9, 0.0, 1.0]
    events, observation = read(tmp_path, pcap([eth(SYN_PACKET)] * 4, times=times))
    assert sum(event.syn for event in events if event.kind == "net.flow" and hasattr(event, "syn")) == 4
    assert observation.counts == {"packets": 4, "unparsed": 0}


def test_memory_held_for_unfinished_streams_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpdetect.ingest.pcap.streams.MOST_BYTES", 10_000)
    frames = []
    for port in range(2000, 2030):
        frames += flow([(500, bytes(1000))], port=port)
    _, observation = read(tmp_path, pcap(frames))
    losses = {loss.what: loss.count for loss in observation.losses}
    assert losses["overflow"] + losses["gap"] == 30
    assert losses["overflow"] >= 1
