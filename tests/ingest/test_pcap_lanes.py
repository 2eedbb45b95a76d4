"""The fast lanes of captures give what the careful way gives: every field set, every event, in its order."""

from __future__ import annotations

import random
from dataclasses import fields
from pathlib import Path

import pytest
from packets import (
    ACK,
    CLIENT,
    CLIENT6,
    PUSH,
    SERVER,
    SERVER6,
    SYN,
    T0,
    answer,
    client_hello,
    dns_packet,
    enhanced,
    eth,
    flow,
    interface,
    ip4,
    ip6,
    option,
    pcap,
    question,
    read,
    record,
    section,
    sll,
    sll2,
    tcp,
    udp,
)

from mcpdetect.ingest.pcap.reading import Reading
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsAnswer, DnsQuery, NetFlow
from mcpdetect.model.observation import Observation

REPLY = answer("a.example.test", (b"\xc0\x0c", 1, b"\x01\x02\x03\x04"))
FRAMES = [
    eth(dns_packet()),
    eth(ip4(SERVER, CLIENT, 17, udp(53, 40000, REPLY))),
    *flow([(0, record(client_hello("b.example.test")))]),
]


def rebuilt(event: Event) -> Event:
    """The same event by its constructor: fails where a field was never set."""
    return type(event)(**{one.name: getattr(event, one.name) for one in fields(event)})


def test_events_filled_field_by_field_lack_no_field(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap(FRAMES))
    assert [event.kind for event in events] == ["dns.query", "dns.answer", "tls.client_hello", "net.flow", "net.flow"]
    assert [rebuilt(event) for event in events] == events


def test_a_message_said_again_gives_the_same_with_its_own_id_place_and_ports(tmp_path: Path) -> None:
    frames = []
    for index in range(100):
        ask, reply = question("MiXed.test", ident=index), answer("MiXed.test", ident=index, flags=0x8183)
        frames.append(eth(ip4(CLIENT, SERVER, 17, udp(3000 + index, 53, ask))))
        frames.append(eth(ip4(SERVER, CLIENT, 17, udp(53, 3000 + index, reply))))
    events, observation = read(tmp_path, pcap(frames, times=[index / 1000 for index in range(200)]))
    queries = [event for event in events if isinstance(event, DnsQuery)]
    answers = [event for event in events if isinstance(event, DnsAnswer)]
    assert [(one.id, one.where.at, one.client_port, one.name, one.spelled) for one in queries] == [
        (index, 2 * index + 1, 3000 + index, "mixed.test", "MiXed.test") for index in range(100)
    ]
    assert [(one.id, one.where.at, one.client, one.server, one.name, one.rcode, one.no_data) for one in answers] == [
        (index, 2 * index + 2, CLIENT, SERVER, "mixed.test", "NXDOMAIN", False) for index in range(100)
    ]
    assert [event.kind for event in events[:200]] == ["dns.query", "dns.answer"] * 100
    flows = [event for event in events[200:] if isinstance(event, NetFlow)]
    assert [(one.where.at, one.source_port, one.packets_out, one.packets_in) for one in flows] == [
        (2 * index + 1, 3000 + index, 1, 1) for index in range(100)
    ]
    assert observation.counts == {"packets": 200, "unparsed": 0}


def test_a_message_that_was_damaged_is_told_every_time(tmp_path: Path) -> None:
    damaged = REPLY[:-3]
    frames = [eth(ip4(SERVER, CLIENT, 17, udp(53, 40000, damaged)))] * 3
    events, observation = read(tmp_path, pcap(frames))
    assert [event.kind for event in events] == ["dns.answer", "unparsed"] * 3 + ["net.flow"]
    assert observation.counts == {"packets": 3, "unparsed": 3}


@pytest.mark.parametrize("resolution", [6, 9, 3, 0x94])
def test_packets_with_and_without_options_and_blocks_between_keep_order_and_time(
    tmp_path: Path, resolution: int
) -> None:
    unit = 2**20 if resolution & 0x80 else 10**resolution
    data = section() + interface(option(9, bytes([resolution]))) + interface(option(9, bytes([resolution])), link=276)
    for index in range(6):
        packet = dns_packet(ident=index)
        ticks = (T0 + index) * unit
        if index % 3 == 0:
            data += enhanced(eth(packet), ticks=ticks)
        elif index % 3 == 1:
            data += enhanced(sll2(packet), option(1, b"a comment"), on=1, ticks=ticks)
        else:
            data += enhanced(sll2(packet), on=1, ticks=ticks)
    events, observation = read(tmp_path, data, frozenset({"dns.query"}))
    assert [(one.id, one.where.at, one.t_ns) for one in events if isinstance(one, DnsQuery)] == [
        (index, index + 1, (T0 + index) * 1_000_000_000) for index in range(6)
    ]
    assert observation.losses == []


def test_a_payload_before_the_syn_ack_is_read_where_it_begins(tmp_path: Path) -> None:
    """The reader of a half flow is made with its first payload; what it waits for is known from its first packet."""
    hello = record(client_hello("late.example.test"))
    frames = [
        eth(ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1001, ACK))),
        eth(ip4(CLIENT, SERVER, 6, tcp(40001, 443, 7000, SYN | ACK))),
        eth(ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1001, ACK, hello))),
    ]
    events, observation = read(tmp_path, pcap(frames), frozenset({"tls.client_hello"}))
    assert [(event.kind, event.where.at, getattr(event, "sni", None)) for event in events] == [
        ("tls.client_hello", 3, "late.example.test")
    ]
    assert observation.losses == []


GET = b"GET /one HTTP/1.1\r\nHost: w.example.test\r\n\r\n"


def conversations() -> list[tuple[int, bytes]]:
    """EtherType and IP packet of everything that the lane takes, and of some that it must leave."""
    packets = [(0x0800, frame[14:]) for frame in (*FRAMES, *flow([(0, GET), (len(GET), GET), (2 * len(GET), b"x")]))]
    packets += [(0x0800, frame[14:]) for frame in flow([(0, GET[:20]), (20, GET[20:])], port=40010, other=80)]
    packets.append((0x0800, ip4(SERVER, CLIENT, 6, tcp(443, 40001, 9000, PUSH, bytes(300)))))
    packets.append((0x0800, ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1001, 0x14))))
    for part in (udp(40002, 53, question("six.test")), udp(40003, 443, b"\xc0" + bytes(60)), udp(40004, 9, b"")):
        packets.append((0x86DD, ip6(CLIENT6, SERVER6, 17, part)))
        packets.append((0x86DD, b"\x50" + ip6(CLIENT6, SERVER6, 17, part)[1:]))
    for flags, payload in ((SYN, b""), (ACK, record(client_hello("six.example.test"))), (0x11, b"")):
        sequence = 1000 + (flags != SYN)
        packets.append((0x86DD, ip6(CLIENT6, SERVER6, 6, tcp(40005, 443, sequence, flags, payload))))
    return packets * 2


def both_ways(tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[Event], Observation]]:
    """What the lane gives, and what the careful way gives where the lane takes nothing."""
    found = [read(tmp_path, data)]
    with monkeypatch.context() as patch:
        patch.setattr(Reading, "_walk", lambda _self, _run: None)
        found.append(read(tmp_path, data))
    return found


LINKS = {1: eth, 113: sll, 276: sll2, 101: lambda packet, _kind: packet}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_the_lane_and_the_careful_way_give_the_same(
    tmp_path: Path, order: str, link: int, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{order}{link}{form}")  # noqa: S311
    frames = [LINKS[link](packet, kind) for kind, packet in conversations()]
    compared = 0
    for damage in range(12):
        hurt = [bytearray(frame) for frame in frames]
        for frame in rng.sample(hurt, damage):
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        if form == "pcap":
            data = pcap([bytes(frame) for frame in hurt], link=link, order=order)
        else:
            data = section(order=order) + interface(link=link, order=order)
            data += b"".join(
                enhanced(bytes(frame), ticks=T0 * 1_000_000 + n, order=order) for n, frame in enumerate(hurt)
            )
        lane, careful = both_ways(tmp_path, data, monkeypatch)
        assert lane == careful
        assert len(lane[0]) > 20
        compared += 1
    assert compared == 12


def test_a_frame_marked_ipv6_that_has_another_version_is_no_flow(tmp_path: Path) -> None:
    packet = b"\x50" + ip6(CLIENT6, SERVER6, 17, udp(40000, 53, question("six.test")))[1:]
    events, observation = read(tmp_path, pcap([eth(packet, 0x86DD)] * 3))
    assert [type(event) for event in events] == [Unparsed] * 3
    assert observation.counts == {"packets": 3, "unparsed": 3}
