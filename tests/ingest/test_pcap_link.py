"""Link layers: cooked and raw captures, tags, labels, and what is not IP."""

from __future__ import annotations

from pathlib import Path

import pytest
from packets import CLIENT6, SERVER6, dns_packet, eth, ip6, pack, pcap, question, read, sll, sll2, udp

from mcpdetect.ingest.pcap.link import supported, unwrap
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsQuery, NetFlow, NetPacket
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

PACKET = dns_packet()
PACKET6 = ip6(CLIENT6, SERVER6, 17, udp(40000, 53, question("six.example.test")))


def names(events: list[Event]) -> list[str | None]:
    return [event.name for event in events if isinstance(event, DnsQuery)]


FRAMES = [
    (1, eth(PACKET)),
    (113, sll(PACKET)),
    (276, sll2(PACKET)),
    (12, PACKET),
    (14, PACKET),
    (101, PACKET),
    (228, PACKET),
    (0, b"\x02\0\0\0" + PACKET),
    (0, b"\0\0\0\x02" + PACKET),
    (108, b"\0\0\0\x02" + PACKET),
    (1, eth(pack("!HH", 100, 0x0800) + PACKET, 0x8100)),
    (1, eth(pack("!HHHH", 100, 0x8100, 200, 0x0800) + PACKET, 0x88A8)),
    (1, eth(pack("!HHHH", 100, 0x8100, 200, 0x0800) + PACKET, 0x9100)),
    (113, sll(pack("!HH", 100, 0x0800) + PACKET, 0x8100)),
    (1, eth(b"\xaa\xaa\x03\0\0\0\x08\0" + PACKET, len(PACKET) + 8)),
    (1, eth(b"\0\x01\x01\x40" + PACKET, 0x8847)),
    (1, eth(b"\0\x01\x00\x40\0\x02\x01\x40" + PACKET, 0x8847)),
    (1, eth(b"\x11\0\0\x01" + pack("!HH", len(PACKET) + 2, 0x0021) + PACKET, 0x8864)),
]


@pytest.mark.parametrize(("link", "frame"), FRAMES)
def test_the_question_is_found_below_every_link_layer(tmp_path: Path, link: int, frame: bytes) -> None:
    events, observation = read(tmp_path, pcap([frame], link=link))
    assert names(events) == ["a.example.test"]
    assert [event.bytes_out for event in events if isinstance(event, NetFlow)] == [32]
    assert observation.losses == []
    assert observation.counts == {"packets": 1, "unparsed": 0}


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        (1, eth(PACKET6, 0x86DD)),
        (1, eth(pack("!HH", 100, 0x86DD) + PACKET6, 0x8100)),
        (113, sll(PACKET6, 0x86DD)),
        (276, sll2(PACKET6, 0x86DD)),
        (101, PACKET6),
        (229, PACKET6),
        *((0, bytes([family, 0, 0, 0]) + PACKET6) for family in (10, 24, 28, 30)),
    ],
)
def test_ipv6_is_found_below_every_link_layer(tmp_path: Path, link: int, frame: bytes) -> None:
    events, observation = read(tmp_path, pcap([frame], link=link))
    assert names(events) == ["six.example.test"]
    assert [(event.source, event.address) for event in events if isinstance(event, NetFlow)] == [(CLIENT6, SERVER6)]
    assert observation.losses == []


def test_an_unsupported_link_type_is_named_and_hides_everything(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap([PACKET, PACKET], link=147))
    place = Where("c.pcap", 1, None, "packet")
    assert [type(event) for event in events] == [Unparsed, Unparsed]
    assert observation.losses == [Loss("link-type", "unsupported link type 147", 2, place)]
    assert observation.counts == {"packets": 2, "unparsed": 2}


def test_a_tag_over_an_unknown_type_counts_once(tmp_path: Path) -> None:
    frame = eth(pack("!HH", 100, 0x1234) + b"\x81\x00\x00\x01\x08\x00", 0x8100)
    events, observation = read(tmp_path, pcap([frame]))
    assert [(event.protocol, event.size) for event in events if isinstance(event, NetPacket)] == [
        ("ethertype-0x1234", 6)
    ]
    assert observation.losses == []


OTHERS = [
    (1, eth(bytes(46), 0x0027), "llc", 46),
    (1, eth(b"\xaa\xaa\x03\0\0\0\0\x05" + bytes(38), 46), "llc", 46),
    (1, eth(b"\0\x01\0\x08" + bytes(28), 0x0806), "arp", 32),
    (1, eth(bytes(46), 0x88CC), "ethertype-0x88cc", 46),
    (1, eth(b"\x11\x09\0\0\0\0\0\x01", 0x8864), "ethertype-0x8864", 8),
    (1, eth(b"\0\x01\x01\x40\x20", 0x8847), "ethertype-0x8847", 5),
    (0, b"\x07\0\0\0abc", "family-7", 3),
]


@pytest.mark.parametrize(("link", "frame", "protocol", "size"), OTHERS)
def test_what_is_not_ip_is_a_packet_of_its_kind(
    tmp_path: Path, link: int, frame: bytes, protocol: str, size: int
) -> None:
    events, observation = read(tmp_path, pcap([frame], link=link))
    assert [(event.protocol, event.size) for event in events if isinstance(event, NetPacket)] == [(protocol, size)]
    assert observation.losses == []


def test_arp_tells_who_asks_for_whom(tmp_path: Path) -> None:
    asked = pack(
        "!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, b"abcdef", bytes([10, 77, 0, 2]), bytes(6), bytes([10, 77, 0, 1])
    )
    events, _ = read(tmp_path, pcap([eth(asked, 0x0806)]))
    assert [(event.protocol, event.source, event.address) for event in events if isinstance(event, NetPacket)] == [
        ("arp", "10.77.0.2", "10.77.0.1")
    ]


def test_frames_too_short_for_their_link_layer_are_located(tmp_path: Path) -> None:
    short = [(1, b"\x02" * 13), (113, bytes(15)), (276, bytes(19)), (0, b"\x02\0"), (1, eth(b"\0", 0x8100)), (101, b"")]
    for link, frame in short:
        events, observation = read(tmp_path, pcap([frame], link=link))
        place = Where("c.pcap", 1, None, "packet")
        assert [event.where for event in events if isinstance(event, Unparsed)] == [place]
        assert observation.losses == [Loss("unparsed", "packets with malformed headers", 1, place)]


def test_supported_link_types_never_fail_to_unwrap() -> None:
    known = [link for link in range(300) if supported(link)]
    assert known == [0, 1, 12, 14, 101, 108, 113, 228, 229, 276]
    for link in known:
        for size in range(64):
            for byte in (0, 0x81, 0x88, 0xAA, 0xFF):
                payload = unwrap(link, bytes([byte]) * size)
                assert payload.protocol == "" or payload.at <= size or not size
