"""Flows: counts, direction, ends, ICMP errors, short snap lengths."""

from __future__ import annotations

from pathlib import Path

import pytest
from packets import (
    ACK,
    CLIENT,
    CLIENT6,
    FIN,
    PUSH,
    RST,
    SECOND,
    SERVER,
    SERVER6,
    SYN,
    SYN_ACK,
    T0,
    dns_packet,
    eth,
    flow,
    ip4,
    ip6,
    pack,
    pcap,
    read,
    tcp,
    udp,
)

from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsQuery, IcmpError, NetFlow, NetPacket
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

HIDDEN = ["dns.answer", "dns.query", "http.request", "net.flow", "quic.initial", "tls.client_hello"]


def names(events: list[Event]) -> list[str | None]:
    return [event.name for event in events if isinstance(event, DnsQuery)]


def flows(events: list[Event]) -> list[NetFlow]:
    return [event for event in events if isinstance(event, NetFlow)]


def packets(events: list[Event]) -> list[NetPacket]:
    return [event for event in events if isinstance(event, NetPacket)]


def out(flags: int, payload: bytes = b"", sequence: int = 1001, port: int = 40001) -> bytes:
    return eth(ip4(CLIENT, SERVER, 6, tcp(port, 443, sequence, flags, payload)))


def back(flags: int, payload: bytes = b"", sequence: int = 5001, port: int = 40001) -> bytes:
    return eth(ip4(SERVER, CLIENT, 6, tcp(443, port, sequence, flags, payload)))


def test_a_connection_is_one_flow_with_every_count(tmp_path: Path) -> None:
    data = pcap(
        [
            out(SYN, sequence=1000),
            out(SYN, sequence=1000),
            back(SYN_ACK, sequence=5000),
            out(ACK),
            out(PUSH, b"x" * 10),
            back(ACK),
            back(PUSH, b"y" * 100),
            back(PUSH, b"z" * 50, 5101),
            out(FIN, sequence=1011),
            back(FIN, sequence=5151),
            out(RST, sequence=1012),
        ]
    )
    events, observation = read(tmp_path, data)
    assert events == [
        NetFlow(
            Where("c.pcap", 1, None, "packet"),
            T0 * SECOND,
            "tcp",
            CLIENT,
            40001,
            SERVER,
            443,
            (T0 + 10) * SECOND,
            packets_out=6,
            packets_in=5,
            bytes_out=10,
            bytes_in=150,
            data_out=1,
            data_in=2,
            syn=2,
            syn_ack=1,
            rst_out=1,
            fin=2,
        )
    ]
    assert observation.losses == []


def test_an_unanswered_syn_is_a_flow_of_repeats(tmp_path: Path) -> None:
    data = pcap([out(SYN, sequence=1000)] * 7, times=[0, 1, 3, 7, 15, 31, 63])
    events, _ = read(tmp_path, data)
    assert [(event.syn, event.syn_ack, event.packets_in, event.end_ns) for event in flows(events)] == [
        (7, 0, 0, (T0 + 63) * SECOND)
    ]


# cases C44: refused by RST, refused by ICMP


def test_a_reset_is_counted_where_it_came_from(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap([out(SYN, sequence=1000), back(0x14, sequence=0)]))
    assert [(event.syn, event.rst_in, event.rst_out, event.icmp) for event in flows(events)] == [(1, 1, 0, [])]


def test_an_icmp_error_is_attached_to_the_flow_that_it_quotes(tmp_path: Path) -> None:
    syn = ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1000, SYN))
    error = ip4("10.77.0.1", CLIENT, 1, b"\x03\x0d\0\0\0\0\0\0" + syn[:28])
    events, _ = read(tmp_path, pcap([eth(syn), eth(error)]))
    assert [(event.syn, event.icmp) for event in flows(events)] == [(1, [IcmpError(3, 13, "10.77.0.1", 2)])]
    assert packets(events) == [
        NetPacket(
            Where("c.pcap", 2, None, "packet"), (T0 + 1) * SECOND, "icmp", "10.77.0.1", CLIENT, 3, 13, len(error) - 20
        )
    ]


def test_an_icmpv6_error_is_attached_too(tmp_path: Path) -> None:
    sent = ip6(CLIENT6, SERVER6, 17, udp(40000, 9, b"x"))
    error = ip6("fe80::1", CLIENT6, 58, b"\x01\x04\0\0\0\0\0\0" + sent)
    events, _ = read(tmp_path, pcap([eth(sent, 0x86DD), eth(error, 0x86DD)]))
    assert [event.icmp for event in flows(events)] == [[IcmpError(1, 4, "fe80::1", 2)]]
    assert [(event.protocol, event.icmp_type, event.icmp_code) for event in packets(events)] == [("icmpv6", 1, 4)]


@pytest.mark.parametrize("body", [b"", b"\x03", b"\x03\x03", b"\x03\x03" + bytes(6) + b"\x45" + bytes(10)])
def test_an_icmp_error_that_is_too_short_quotes_nothing(tmp_path: Path, body: bytes) -> None:
    events, observation = read(tmp_path, pcap([eth(ip4(SERVER, CLIENT, 1, body))]))
    assert [(event.protocol, event.size) for event in packets(events)] == [("icmp", len(body))]
    assert observation.losses == []


def test_echo_data_are_a_packet_of_their_size(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap([eth(ip4(CLIENT, SERVER, 1, b"\x08\0" + bytes(1000)))]))
    assert [(event.protocol, event.icmp_type, event.size) for event in packets(events)] == [("icmp", 8, 1002)]


def test_no_more_icmp_errors_are_kept_than_a_flow_needs(tmp_path: Path) -> None:
    syn = ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1000, SYN))
    error = eth(ip4("10.77.0.1", CLIENT, 1, b"\x03\x01" + bytes(6) + syn[:28]))
    events, observation = read(tmp_path, pcap([eth(syn)] + [error] * 40))
    assert [len(event.icmp) for event in flows(events)] == [32]
    assert [(loss.what, loss.count, loss.note) for loss in observation.losses] == [("overflow", 8, True)]


# direction


def test_a_syn_ack_alone_tells_that_the_other_end_began(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap([back(SYN_ACK, sequence=5000), back(PUSH, b"y" * 5)]))
    assert [(event.source, event.address, event.packets_out, event.packets_in) for event in flows(events)] == [
        (CLIENT, SERVER, 0, 2)
    ]
    assert [(event.syn, event.syn_ack, event.midstream) for event in flows(events)] == [(0, 1, True)]


def test_a_syn_recorded_behind_its_answer_is_still_the_beginning(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap([back(SYN_ACK, sequence=5000), out(SYN, sequence=1000), out(ACK)]))
    assert [(event.source, event.syn, event.syn_ack, event.midstream) for event in flows(events)] == [
        (CLIENT, 1, 1, False)
    ]


def test_a_flow_caught_in_the_middle_begins_with_who_was_seen_first(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap([back(PUSH, b"y" * 5), out(ACK)]))
    assert [(event.source, event.address, event.midstream) for event in flows(events)] == [(SERVER, CLIENT, True)]


def test_the_same_ports_after_a_close_are_another_flow(tmp_path: Path) -> None:
    data = pcap([out(SYN, sequence=1), back(RST), out(SYN, sequence=900_000), back(RST), back(SYN, sequence=7)])
    events, _ = read(tmp_path, data)
    assert [(str(event.where), event.source, event.syn, event.rst_in) for event in flows(events)] == [
        ("c.pcap#1", CLIENT, 1, 1),
        ("c.pcap#3", CLIENT, 1, 1),
        ("c.pcap#5", SERVER, 1, 0),
    ]


def test_a_simultaneous_open_stays_one_flow(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap([out(SYN, sequence=1000), back(SYN, sequence=5000), out(SYN_ACK, sequence=1000)]))
    assert [(event.source, event.syn, event.packets_out, event.packets_in) for event in flows(events)] == [
        (CLIENT, 1, 2, 1)
    ]


def test_a_socket_that_talks_to_itself_is_one_flow(tmp_path: Path) -> None:
    packet = ip4("127.0.0.1", "127.0.0.1", 6, tcp(4000, 4000, 1, SYN))
    events, _ = read(tmp_path, pcap([packet, packet], link=101))
    assert [(event.packets_out, event.packets_in) for event in flows(events)] == [(2, 0)]


def test_silence_of_two_minutes_ends_a_flow_and_its_direction_is_remembered(tmp_path: Path) -> None:
    data = pcap([out(SYN, sequence=1000), out(ACK), back(PUSH, b"y"), out(ACK)], times=[0, 1, 200, 201])
    events, observation = read(tmp_path, data)
    assert [(str(event.where), event.source, event.packets_out, event.packets_in) for event in flows(events)] == [
        ("c.pcap#1", CLIENT, 2, 0),
        ("c.pcap#3", CLIENT, 1, 1),
    ]
    assert [event.midstream for event in flows(events)] == [False, True]
    assert observation.losses == []


def test_a_flow_is_given_out_while_the_capture_goes_on(tmp_path: Path) -> None:
    first = out(SYN, sequence=1000)
    later = [out(SYN, sequence=1000, port=41000 + index) for index in range(20)]
    events, _ = read(tmp_path, pcap([first, *later], times=[0, *range(10, 210, 10)]))
    assert [event.source_port for event in flows(events)][:3] == [40001, 41000, 41001]


def test_counts_do_not_depend_on_the_lane_of_a_packet(tmp_path: Path) -> None:
    segments = [(0, b"\x00" * 20), *((20 * index, b"\x00" * 20) for index in range(1, 40))]
    plain = flow(segments)
    tagged = [frame[:12] + pack("!HH", 0x8100, 5) + frame[12:] for frame in plain]
    one, two = read(tmp_path, pcap(plain))[0], read(tmp_path, pcap(tagged))[0]
    assert one == two
    assert [(event.packets_out, event.bytes_out, event.data_out) for event in flows(one)] == [(42, 800, 40)]


# cases C57: IPv4 inside IPv6


@pytest.mark.parametrize("mapped", ["::ffff:203.0.113.7", "64:ff9b::cb00:7107"])
def test_addresses_inside_addresses_are_the_inner_ones(tmp_path: Path, mapped: str) -> None:
    events, _ = read(tmp_path, pcap([eth(ip6(CLIENT6, mapped, 6, tcp(40000, 443, 1, SYN)), 0x86DD)]))
    assert [(event.source, event.address) for event in flows(events)] == [(CLIENT6, "203.0.113.7")]


# cases C61: short snap lengths


def test_addresses_without_ports_are_a_truncated_packet(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap([eth(dns_packet())], snap=34))
    place = Where("c.pcap", 1, None, "packet")
    assert events == [NetPacket(place, T0 * SECOND, "truncated", CLIENT, SERVER, size=40)]
    assert observation.losses == [Loss("snaplen", "packets longer than the snap length were cut", 1, place, HIDDEN)]


def test_a_frame_without_addresses_is_counted(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap([eth(dns_packet())], snap=20))
    assert [(type(event), str(event.where)) for event in events] == [(Unparsed, "c.pcap#1")]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("snaplen", sorted([*HIDDEN, "net.packet"]))]
    assert observation.counts == {"packets": 1, "unparsed": 1}


@pytest.mark.parametrize("snap", range(1, 74))
def test_every_snap_length_is_a_loss_and_keeps_original_sizes(tmp_path: Path, snap: int) -> None:
    events, observation = read(tmp_path, pcap([eth(dns_packet())], snap=snap))
    assert [loss.what for loss in observation.losses] == ["snaplen"]
    assert observation.losses[0].note is False
    assert [event.bytes_out for event in flows(events)] == ([32] if snap >= 42 else [])


# cases C70: what began before the capture


def test_a_late_start_is_told_by_the_window(tmp_path: Path) -> None:
    _, observation = read(tmp_path, pcap([out(ACK)], times=[2.4]))
    assert observation.begin_ns == T0 * SECOND + 2_400_000_000


def test_too_many_live_flows_are_given_out_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpdetect.ingest.pcap.flows._MOST_FLOWS", 8)
    events, observation = read(tmp_path, pcap([out(SYN, sequence=1, port=2000 + index) for index in range(12)]))
    assert [event.source_port for event in flows(events)] == list(range(2000, 2012))
    assert [(loss.what, loss.count, loss.note) for loss in observation.losses] == [("overflow", 4, True)]
