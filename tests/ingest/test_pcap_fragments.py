"""IP fragments, extension headers, tunnels, and headers that lie."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from packets import (
    ACK,
    CLIENT,
    CLIENT6,
    PUSH,
    SECOND,
    SERVER,
    SERVER6,
    SYN,
    T0,
    eth,
    fragment6,
    ip4,
    ip6,
    pcap,
    question,
    read,
    tcp,
    udp,
)

from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsQuery, NetFlow, NetPacket
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

HIDDEN = ["dns.answer", "dns.query", "http.request", "net.flow", "quic.initial", "tls.client_hello"]


def names(events: list[Event]) -> list[str | None]:
    return [event.name for event in events if isinstance(event, DnsQuery)]


def flows(events: list[Event]) -> list[NetFlow]:
    return [event for event in events if isinstance(event, NetFlow)]


def packets(events: list[Event]) -> list[NetPacket]:
    return [event for event in events if isinstance(event, NetPacket)]


# cases C68: fragments, extension headers, tunnels


def pieces(payload: bytes, *cuts: int, ident: int = 1) -> list[bytes]:
    edges = [0, *cuts, len(payload)]
    return [
        eth(ip4(CLIENT, SERVER, 17, payload[begin:end], offset=begin // 8, more=end < len(payload), ident=ident))
        for begin, end in pairwise(edges)
    ]


DATAGRAM = udp(40000, 53, question("frag.example.test"))


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 0, 1, 2, 2]])
def test_fragments_are_put_together_in_any_order(tmp_path: Path, order: list[int]) -> None:
    parts = pieces(DATAGRAM, 8, 16)
    events, _ = read(tmp_path, pcap([parts[index] for index in order]))
    assert names(events) == ["frag.example.test"]
    assert [(str(event.where), event.packets_out, event.bytes_out) for event in flows(events)] == [
        ("c.pcap#1", 1, len(DATAGRAM) - 8)
    ]
    rest = [(event.protocol, event.size) for event in packets(events)]
    assert rest == ([("fragment", len(DATAGRAM) - 16)] if order[-2:] == [2, 2] else [])


def test_a_missing_fragment_leaves_the_destination(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(pieces(DATAGRAM, 8, 16)[1:]))
    place = Where("c.pcap", 1, None, "packet")
    assert events == [NetPacket(place, T0 * SECOND, "fragment", CLIENT, SERVER, size=len(DATAGRAM) - 8)]
    assert observation.losses == [
        Loss("fragment", "fragmented packets that could not be put together", 1, place, HIDDEN)
    ]


def test_fragments_that_overlap_are_not_believed(tmp_path: Path) -> None:
    first, second = pieces(DATAGRAM, 16)
    other = eth(ip4(CLIENT, SERVER, 17, b"\xff" * 16, offset=1, more=True))
    events, observation = read(tmp_path, pcap([first, other, second]))
    assert names(events) == []
    assert [loss.what for loss in observation.losses] == ["fragment"]
    assert {event.protocol for event in packets(events)} == {"fragment"}


def test_fragments_wait_no_longer_than_a_minute(tmp_path: Path) -> None:
    first, second = pieces(DATAGRAM, 16)
    events, observation = read(tmp_path, pcap([first, second], times=[0, 61]))
    assert names(events) == []
    assert [loss.count for loss in observation.losses] == [2]


def test_the_table_of_fragments_is_bounded(tmp_path: Path) -> None:
    firsts = [pieces(DATAGRAM, 16, ident=ident)[0] for ident in range(700)]
    events, observation = read(tmp_path, pcap(firsts, times=[0.001 * index for index in range(700)]))
    assert [event.protocol for event in packets(events)] == ["fragment"] * 700
    assert sorted((loss.what, loss.count) for loss in observation.losses) == [("fragment", 700), ("overflow", 188)]


def test_ipv6_fragments_that_split_an_extension_header_are_put_together(tmp_path: Path) -> None:
    options = bytes([17, 0, 1, 4, 0, 0, 0, 0])
    inner = udp(40000, 53, question("v6frag.test"))
    data = pcap(
        [
            eth(ip6(CLIENT6, SERVER6, 44, fragment6(60, 0, 1) + options), 0x86DD),
            eth(ip6(CLIENT6, SERVER6, 44, fragment6(60, 1, 0) + inner), 0x86DD),
        ]
    )
    events, observation = read(tmp_path, data)
    assert names(events) == ["v6frag.test"]
    assert [(event.source, event.address) for event in flows(events)] == [(CLIENT6, SERVER6)]
    assert observation.losses == []


@pytest.mark.parametrize(
    ("following", "headers"),
    [
        (0, bytes([17, 0, 1, 4, 0, 0, 0, 0])),
        (60, bytes([43, 1]) + bytes(14) + bytes([17, 0]) + bytes(6)),
        (44, fragment6(17, 0, 0)),
        (51, bytes([17, 4]) + bytes(22)),
        (135, bytes([17, 0]) + bytes(6)),
    ],
)
def test_extension_headers_are_stepped_over(tmp_path: Path, following: int, headers: bytes) -> None:
    packet = ip6(CLIENT6, SERVER6, following, headers + udp(40000, 53, question("ext.test")))
    events, observation = read(tmp_path, pcap([eth(packet, 0x86DD)]))
    assert names(events) == ["ext.test"]
    assert observation.losses == []


def test_ipv4_options_are_stepped_over(tmp_path: Path) -> None:
    packet = ip4(CLIENT, SERVER, 17, udp(40000, 53, question("opt.test")), options=b"\x94\x04\0\0")
    events, observation = read(tmp_path, pcap([eth(packet)]))
    assert names(events) == ["opt.test"]
    assert observation.losses == []


def test_a_length_of_zero_means_segmentation_offload(tmp_path: Path) -> None:
    packet = ip4(CLIENT, SERVER, 17, udp(40000, 53, question("tso.test")), total=0)
    events, observation = read(tmp_path, pcap([eth(packet)]))
    assert names(events) == ["tso.test"]
    assert observation.losses == []


def test_padding_of_the_link_layer_is_no_payload(tmp_path: Path) -> None:
    bare = eth(ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1001, ACK))) + bytes(6)
    data = pcap([eth(ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1000, SYN))), bare, bare])
    events, _ = read(tmp_path, data)
    assert [(event.bytes_out, event.data_out) for event in flows(events)] == [(0, 0)]


INNER6 = ip6(CLIENT6, SERVER6, 17, udp(40000, 53, question("inner.test")))
INNER4 = ip4(CLIENT, SERVER, 17, udp(40000, 53, question("inner.test")))
TUNNELS = [
    (ip4("10.0.0.1", "198.51.100.9", 41, INNER6), "ip-41", SERVER6),
    (ip4("10.0.0.1", "198.51.100.9", 4, INNER4), "ip-4", SERVER),
    (ip4("10.0.0.1", "198.51.100.9", 47, b"\0\0\x08\0" + INNER4), "gre", SERVER),
    (ip4("10.0.0.1", "198.51.100.9", 47, b"\xb0\0\x86\xdd" + bytes(12) + INNER6), "gre", SERVER6),
    (ip4("10.0.0.1", "198.51.100.9", 47, b"\0\0\x65\x58" + eth(INNER4)), "gre", SERVER),
    (ip4("10.0.0.1", "198.51.100.9", 41, ip6(CLIENT6, "2001:db8::99", 41, INNER6)), "ip-41", "2001:db8::99"),
]


@pytest.mark.parametrize(("packet", "protocol", "inner"), TUNNELS)
def test_a_tunnel_gives_the_outer_and_the_inner_destination_and_what_is_inside(
    tmp_path: Path, packet: bytes, protocol: str, inner: str
) -> None:
    events, observation = read(tmp_path, pcap([eth(packet)]))
    first = packets(events)[0]
    assert (first.protocol, first.address, first.inner) == (protocol, "198.51.100.9", inner)
    assert names(events) == ["inner.test"]
    assert observation.losses == []


@pytest.mark.parametrize(
    ("packet", "protocol", "what"),
    [
        (ip4(CLIENT, SERVER, 50, bytes(40)), "esp", "tunnel"),
        (ip4(CLIENT, SERVER, 47, b"\x30\x01\x88\x0b" + bytes(40)), "gre", "tunnel"),
        (ip4(CLIENT, SERVER, 47, b"\0\0\x12\x34" + bytes(40)), "gre", "tunnel"),
        (ip4(CLIENT, SERVER, 47, b"\0"), "gre", "tunnel"),
    ],
)
def test_a_tunnel_that_cannot_be_looked_into_is_a_loss(tmp_path: Path, packet: bytes, protocol: str, what: str) -> None:
    events, observation = read(tmp_path, pcap([eth(packet)]))
    assert [(event.protocol, event.address) for event in packets(events)] == [(protocol, SERVER)]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [(what, HIDDEN)]


def test_tunnels_in_tunnels_end_somewhere(tmp_path: Path) -> None:
    packet = INNER4
    for _ in range(20):
        packet = ip4(CLIENT, SERVER, 4, packet)
    events, observation = read(tmp_path, pcap([eth(packet)]))
    assert [event.protocol for event in packets(events)] == ["ip-4"] * 5
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("tunnel", HIDDEN)]


@pytest.mark.parametrize(("number", "name"), [(132, "sctp"), (2, "ip-2"), (59, "ip-59"), (136, "ip-136")])
def test_other_protocols_are_packets_of_their_name(tmp_path: Path, number: int, name: str) -> None:
    events, observation = read(tmp_path, pcap([eth(ip4(CLIENT, SERVER, number, bytes(30)))]))
    assert [(event.protocol, event.address, event.size) for event in packets(events)] == [(name, SERVER, 30)]
    assert observation.losses == []


LYING = [
    (ip4(CLIENT, SERVER, 17, udp(1, 2, b"x"), total=10), "an IPv4 header whose lengths lie"),
    (b"\x43" + INNER4[1:], "an IPv4 header whose lengths lie"),
    (b"\x75" + INNER4[1:], "an IP header that is too short or of no known version"),
    (INNER4[:12], "an IP header that is too short or of no known version"),
    (INNER6[:30], "an IP header that is too short or of no known version"),
]


@pytest.mark.parametrize(("packet", "reason"), LYING)
def test_a_header_that_lies_is_located_and_hides_everything(tmp_path: Path, packet: bytes, reason: str) -> None:
    events, observation = read(tmp_path, pcap([eth(packet)]))
    assert [event.reason for event in events if isinstance(event, Unparsed)] == [reason]
    assert flows(events) == []
    place = Where("c.pcap", 1, None, "packet")
    assert observation.losses == [Loss("unparsed", "packets with malformed headers", 1, place)]


@pytest.mark.parametrize("packet", [ip4(CLIENT, SERVER, 6, bytes(12)), ip4(CLIENT, SERVER, 17, bytes(7))])
def test_a_transport_header_that_is_too_short_leaves_the_destination(tmp_path: Path, packet: bytes) -> None:
    events, observation = read(tmp_path, pcap([eth(packet)]))
    assert [(event.protocol, event.address) for event in packets(events)] == [("truncated", SERVER)]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("unparsed", HIDDEN)]


def test_a_data_offset_that_lies_keeps_the_flow(tmp_path: Path) -> None:
    segment = bytearray(tcp(40001, 443, 1000, PUSH, b"x" * 10))
    segment[12] = 0x40
    events, observation = read(tmp_path, pcap([eth(ip4(CLIENT, SERVER, 6, bytes(segment)))]))
    assert [(event.packets_out, event.bytes_out) for event in flows(events)] == [(1, 0)]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [
        ("unparsed", [kind for kind in HIDDEN if kind != "net.flow"])
    ]
