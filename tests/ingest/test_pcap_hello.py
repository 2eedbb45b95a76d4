"""Hellos on the wire: TLS over TCP in pieces, QUIC Initials in every layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from packets import (
    CLIENT,
    SECOND,
    SERVER,
    T0,
    client_hello,
    crypto,
    ech_filler,
    eth,
    extension,
    flow,
    ip4,
    pack,
    pcap,
    quic_initial,
    read,
    record,
    tcp,
    udp,
)

from mcpdetect.ingest.pcap import quic
from mcpdetect.model.event import Event
from mcpdetect.model.net import NetFlow, QuicInitial, TlsClientHello
from mcpdetect.model.place import Where

HELLO = client_hello("exfil.example.test")
RECORD = record(HELLO)
NAME_CUT = RECORD.index(b"exfil") + 4
QUIC_CUT = HELLO.index(b"exfil") + 4
WHOLE = [("exfil.example.test", True)]


def hellos(events: list[Event]) -> list[tuple[str | None, bool]]:
    return [(event.sni, event.complete) for event in events if isinstance(event, TlsClientHello | QuicInitial)]


def test_a_hello_is_one_event_with_its_ends(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(flow([(0, record(client_hello("api.vendor.test", ech_filler())))])))
    assert events[0] == TlsClientHello(
        Where("c.pcap", 4, None, "packet"),
        (T0 + 3) * SECOND,
        CLIENT,
        40001,
        SERVER,
        443,
        "api.vendor.test",
        [],
        True,
        True,
        seen_in="packets",
        ja4="t13d010600_0f2cb44170f4_cb548f448140",
    )
    assert observation.losses == []


@pytest.mark.parametrize(
    "segments",
    [
        [(0, RECORD[:NAME_CUT]), (NAME_CUT, RECORD[NAME_CUT:])],
        [(NAME_CUT, RECORD[NAME_CUT:]), (0, RECORD[:NAME_CUT])],
        [(0, RECORD[:1]), (1, RECORD[1:])],
        [(0, RECORD[:NAME_CUT]), (0, RECORD[:NAME_CUT]), (NAME_CUT - 3, RECORD[NAME_CUT - 3 :])],
        [(0, record(HELLO[:40]) + record(HELLO[40:]))],
        [(at, RECORD[at : at + 1]) for at in range(len(RECORD))],
    ],
)
def test_a_hello_in_pieces_gives_its_name(tmp_path: Path, segments: list[tuple[int, bytes]]) -> None:
    events, observation = read(tmp_path, pcap(flow(segments)))
    assert hellos(events) == WHOLE
    assert observation.losses == []


def test_a_hello_of_post_quantum_size_gives_its_name(tmp_path: Path) -> None:
    large = record(client_hello("pq.example.test", extension(51, pack("!HHH", 1220, 0x11EC, 1216) + b"Q" * 1216)))
    assert len(large) > 1300
    events, _ = read(tmp_path, pcap(flow([(0, large[:1200]), (1200, large[1200:])])))
    assert hellos(events) == [("pq.example.test", True)]


def test_a_missing_end_leaves_the_name_unknown_and_the_destination(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(flow([(0, RECORD[:NAME_CUT])])))
    assert hellos(events) == [(None, False)]
    assert [(event.address, event.port) for event in events if isinstance(event, NetFlow)] == [(SERVER, 443)]
    assert observation.losses == []


def test_a_missing_beginning_is_a_gap(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(flow([(NAME_CUT, RECORD[NAME_CUT:])])))
    assert hellos(events) == []
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("gap", ["http.request", "tls.client_hello"])]


def test_two_versions_of_the_same_bytes_make_the_name_unknown(tmp_path: Path) -> None:
    other = record(client_hello("shown.example.test"))
    segments = [(0, other[:NAME_CUT]), (0, RECORD[:NAME_CUT]), (NAME_CUT, RECORD[NAME_CUT:])]
    events, _ = read(tmp_path, pcap(flow(segments)))
    assert hellos(events) == [(None, False)]


def test_a_hello_that_never_ends_is_given_up_at_16_kilobytes(tmp_path: Path) -> None:
    endless = b"\x01\x00\xff\xff" + HELLO[4:] + bytes(40000)
    stream = b"".join(record(endless[at : at + 1000]) for at in range(0, len(endless), 1000))
    segments = [(at, stream[at : at + 1400]) for at in range(0, len(stream), 1400)]
    events, _ = read(tmp_path, pcap(flow(segments)))
    assert [event[1] for event in hellos(events)] == [False]


def test_the_same_ports_used_again_give_a_second_hello(tmp_path: Path) -> None:
    first = flow([(0, RECORD)])
    second = flow([(0, record(client_hello("second.example.test")))], isn=777_000)
    events, _ = read(tmp_path, pcap(first + second))
    assert hellos(events) == [*WHOLE, ("second.example.test", True)]
    assert [(str(event.where), event.syn) for event in events if isinstance(event, NetFlow)] == [
        ("c.pcap#1", 1),
        ("c.pcap#5", 1),
    ]


def test_a_hello_behind_a_plain_beginning_is_found(tmp_path: Path) -> None:
    # PostgreSQL's SSLRequest, then TLS
    events, _ = read(tmp_path, pcap(flow([(0, b"\0\0\0\x08\x04\xd2\x16\x2f"), (8, RECORD)], other=5432)))
    assert hellos(events) == WHOLE


def test_data_on_a_syn_are_read(tmp_path: Path) -> None:
    packet = eth(ip4(CLIENT, SERVER, 6, tcp(40001, 443, 1000, 2, RECORD)))
    events, _ = read(tmp_path, pcap([packet]))
    assert hellos(events) == WHOLE


def test_a_hello_without_its_handshake_is_found_and_the_flow_is_midstream(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap(flow([(0, RECORD)])[3:]))
    assert hellos(events) == WHOLE
    assert [event.midstream for event in events if isinstance(event, NetFlow)] == [True]


def test_a_hello_cut_by_the_snap_length_is_unknown_and_a_loss(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(flow([(0, RECORD)]), snap=96))
    assert hellos(events) == [(None, False)]
    assert [(loss.what, loss.count, loss.touches, loss.note) for loss in observation.losses] == [
        ("snaplen", 1, ["tls.client_hello"], False)
    ]
    assert [(event.bytes_out, event.cut) for event in events if isinstance(event, NetFlow)] == [(len(RECORD), 1)]


def test_a_payload_cut_before_it_can_be_told_touches_whatever_it_may_be(tmp_path: Path) -> None:
    _, observation = read(tmp_path, pcap(flow([(0, RECORD)]), snap=54))
    assert [loss.touches for loss in observation.losses] == [["http.request", "tls.client_hello"]]


def test_a_cut_behind_the_hello_hides_nothing(tmp_path: Path) -> None:
    segments = [(0, RECORD), (len(RECORD), b"\x17\x03\x03\x10\0" + bytes(1400))]
    events, observation = read(tmp_path, pcap(flow(segments), snap=400))
    assert hellos(events) == WHOLE
    assert [(loss.what, loss.touches, loss.note) for loss in observation.losses] == [("snaplen", [], True)]


# QUIC


def datagrams(*payloads: bytes, port: int = 443) -> bytes:
    return pcap([eth(ip4(CLIENT, SERVER, 17, udp(50000, port, payload))) for payload in payloads])


LAYOUTS = [
    (quic_initial(crypto(0, HELLO)),),
    (quic_initial(b"\x01" + crypto(QUIC_CUT, HELLO[QUIC_CUT:]) + b"\0\0" + crypto(0, HELLO[:QUIC_CUT])),),
    (
        quic_initial(crypto(0, HELLO[:QUIC_CUT])),
        quic_initial(b"\x01" + crypto(QUIC_CUT, HELLO[QUIC_CUT:]), packet_number=1),
    ),
    (
        quic_initial(crypto(QUIC_CUT, HELLO[QUIC_CUT:]), packet_number=1),
        quic_initial(crypto(0, HELLO[:QUIC_CUT])),
    ),
    (quic_initial(b"\x02\x00\x00\x01\x00\x01\x02" + crypto(0, HELLO)),),
    (quic_initial(b"\x03\x05\x00\x00\x00\x00\x00\x00" + crypto(0, HELLO)),),
    (quic_initial(crypto(0, HELLO), version=0x6B3343CF),),
    # after the first flight the server's id is used with the first id's key
    (
        quic_initial(crypto(0, HELLO[:QUIC_CUT])),
        quic_initial(
            crypto(QUIC_CUT, HELLO[QUIC_CUT:]),
            dcid=b"srv_id",
            key_dcid=bytes.fromhex("8394c8f03e515708"),
            packet_number=1,
        ),
    ),
    # after a Retry a new id brings a new key
    (quic_initial(crypto(0, HELLO[:QUIC_CUT])), quic_initial(crypto(0, HELLO), dcid=b"retry_id", packet_number=1)),
]


@pytest.mark.parametrize("payloads", LAYOUTS)
def test_every_layout_of_a_quic_hello_gives_its_name(tmp_path: Path, payloads: tuple[bytes, ...]) -> None:
    events, observation = read(tmp_path, datagrams(*payloads))
    assert hellos(events) == WHOLE
    assert observation.losses == []


def test_a_quic_hello_is_one_event_with_its_ends(tmp_path: Path) -> None:
    events, _ = read(tmp_path, datagrams(*LAYOUTS[2]))
    assert events[0] == QuicInitial(
        Where("c.pcap", 1, 2, "packet"), T0 * SECOND, CLIENT, 50000, SERVER, 443, 1, "exfil.example.test", True
    )


def test_half_a_quic_hello_leaves_the_name_unknown(tmp_path: Path) -> None:
    events, _ = read(tmp_path, datagrams(LAYOUTS[2][1]))
    assert hellos(events) == [(None, False)]
    events, _ = read(tmp_path, datagrams(LAYOUTS[2][0]))
    assert hellos(events) == [(None, False)]


def test_two_versions_of_a_quic_hello_make_the_name_unknown(tmp_path: Path) -> None:
    other = client_hello("shown.example.test")
    events, _ = read(tmp_path, datagrams(quic_initial(crypto(0, other[:80]) + crypto(40, HELLO[40:]))))
    assert hellos(events) == [(None, False)]


def test_a_wrong_bit_makes_the_packet_unreadable_and_no_name(tmp_path: Path) -> None:
    packet = bytearray(quic_initial(crypto(0, HELLO)))
    packet[-1] ^= 1
    events, _ = read(tmp_path, datagrams(bytes(packet)))
    assert hellos(events) == [(None, False)]


def test_an_unknown_version_is_an_initial_without_a_name(tmp_path: Path) -> None:
    packet = bytearray(quic_initial(crypto(0, HELLO)))
    packet[1:5] = b"\xfa\xce\xb0\x02"
    events, _ = read(tmp_path, datagrams(bytes(packet)))
    assert [(event.version, event.sni, event.complete) for event in events if isinstance(event, QuicInitial)] == [
        (0xFACEB002, None, False)
    ]


def test_what_is_no_initial_makes_none(tmp_path: Path) -> None:
    handshake = bytearray(quic_initial(crypto(0, HELLO)))
    handshake[0] |= 0x20
    for payload in (b"\x40" + bytes(1300), b"\xc3", bytes(handshake), b"\xc3\0\0\0\x01\x30" + bytes(1300)):
        events, _ = read(tmp_path, datagrams(payload))
        assert hellos(events) == []


def test_a_cut_initial_is_seen_without_its_name(tmp_path: Path) -> None:
    data = pcap([eth(ip4(CLIENT, SERVER, 17, udp(50000, 443, quic_initial(crypto(0, HELLO)))))], snap=200)
    events, observation = read(tmp_path, data)
    assert hellos(events) == [(None, False)]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("snaplen", ["quic.initial"])]


def test_without_a_cipher_the_initial_is_seen_and_the_name_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quic, "_ciphers", lambda: None)
    events, observation = read(tmp_path, datagrams(*LAYOUTS[0]))
    assert hellos(events) == [(None, False)]
    assert [(loss.what, loss.count, loss.note) for loss in observation.losses] == [("quic-sealed", 1, True)]


def test_keys_are_those_of_the_standard() -> None:
    # RFC 9001 appendix A.1
    assert [key.hex() for key in quic._keys(1, bytes.fromhex("8394c8f03e515708"))] == [
        "1f369613dd76d5467730efcbe3b1a22d",
        "fa044b2f42a3fd3b46fb255c",
        "9f50449e04a0e810283a1e9933adedd2",
    ]


def test_a_hello_of_the_side_that_was_seen_second_is_found(tmp_path: Path) -> None:
    # caught in the middle: an acknowledgement of the server, one of the client, then the client's hello
    def segment(source: str, address: str, port: int, other: int, payload: bytes = b"") -> bytes:
        return eth(ip4(source, address, 6, tcp(port, other, 1001, 0x18, payload)))

    data = pcap(
        [
            segment(SERVER, CLIENT, 443, 40001),
            segment(CLIENT, SERVER, 40001, 443),
            segment(CLIENT, SERVER, 40001, 443, RECORD),
        ]
    )
    events, _ = read(tmp_path, data)
    assert hellos(events) == WHOLE
    assert [(event.source, event.midstream) for event in events if isinstance(event, NetFlow)] == [(SERVER, True)]
