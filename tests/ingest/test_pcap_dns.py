"""DNS on the wire: over UDP and TCP, on odd ports, by multicast, malformed, cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from packets import (
    CLIENT,
    SECOND,
    SERVER,
    T0,
    answer,
    dns_packet,
    eth,
    flow,
    ip4,
    pack,
    pcap,
    question,
    read,
    udp,
)

from mcpdetect.model.addresses import scope_of
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsAnswer, DnsQuery, DnsRecord, NetFlow
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

OWNER = b"\xc0\x0c"


def datagram(payload: bytes, port: int = 40000, other: int = 53, address: str = SERVER, source: str = CLIENT) -> bytes:
    return eth(ip4(source, address, 17, udp(port, other, payload)))


def names(events: list[Event]) -> list[tuple[str | None, str, str | None, int | None]]:
    return [
        (event.name, event.type, event.server, event.server_port) for event in events if isinstance(event, DnsQuery)
    ]


def test_a_question_and_its_answer_are_two_events(tmp_path: Path) -> None:
    reply = answer(
        "aPi.example.test",
        (OWNER, 5, b"\x05other\xc0\x10"),
        (b"\x05other\xc0\x10", 1, bytes([203, 0, 113, 10])),
        ident=7,
    )
    data = pcap([datagram(question("aPi.example.test", ident=7)), datagram(reply, 53, 40000, CLIENT, SERVER)])
    events, observation = read(tmp_path, data)
    assert events == [
        DnsQuery(
            Where("c.pcap", 1, None, "packet"),
            T0 * SECOND,
            "api.example.test",
            "A",
            seen_in="packets",
            spelled="aPi.example.test",
            client=CLIENT,
            client_port=40000,
            server=SERVER,
            server_port=53,
            transport="udp",
            id=7,
        ),
        DnsAnswer(
            Where("c.pcap", 2, None, "packet"),
            (T0 + 1) * SECOND,
            "api.example.test",
            "A",
            "NOERROR",
            [
                DnsRecord("api.example.test", "CNAME", "other.example.test", 60),
                DnsRecord("other.example.test", "A", "203.0.113.10", 60),
            ],
            seen_in="packets",
            client=CLIENT,
            server=SERVER,
            transport="udp",
            id=7,
        ),
        NetFlow(
            Where("c.pcap", 1, None, "packet"),
            T0 * SECOND,
            "udp",
            CLIENT,
            40000,
            SERVER,
            53,
            (T0 + 1) * SECOND,
            1,
            1,
            34,
            len(reply),
            1,
            1,
        ),
    ]
    assert observation.losses == []


@pytest.mark.parametrize(
    ("flags", "records", "rcode", "no_data"),
    [
        (0x8180, (), "NOERROR", True),
        (0x8183, (), "NXDOMAIN", False),
        (0x8182, (), "SERVFAIL", False),
        (0x8380, (), "NOERROR", False),
        (0x8180, ((OWNER, 5, b"\x01b\xc0\x0c"),), "NOERROR", True),
        (0x8180, ((OWNER, 1, b"\x01\x02\x03\x04"),), "NOERROR", False),
    ],
)
def test_an_answer_tells_absence_of_data_from_absence_of_the_name(
    tmp_path: Path, flags: int, records: tuple[tuple[bytes, int, bytes], ...], rcode: str, no_data: bool
) -> None:
    reply = answer("q.test", *records, flags=flags)
    events, _ = read(tmp_path, pcap([datagram(reply, 53, 40000, CLIENT, SERVER)]))
    assert [(event.rcode, event.no_data) for event in events if isinstance(event, DnsAnswer)] == [(rcode, no_data)]


def test_each_of_several_questions_is_an_event(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap([datagram(question("a.test", "b.test", kind=28))]))
    assert names(events) == [("a.test", "AAAA", SERVER, 53), ("b.test", "AAAA", SERVER, 53)]


# cases C35: multicast is not egress, the same port to one host is


def test_multicast_questions_name_their_group_and_unicast_ones_their_host(tmp_path: Path) -> None:
    local = question("_services._dns-sd._udp.local", kind=12)
    data = pcap(
        [
            datagram(local, 5353, 5353, "224.0.0.251"),
            datagram(question("x.test"), 5353, 5353, "198.51.100.5"),
            datagram(question("host"), 50000, 5355, "224.0.0.252"),
        ]
    )
    events, _ = read(tmp_path, data)
    assert names(events) == [
        ("_services._dns-sd._udp.local", "PTR", "224.0.0.251", 5353),
        ("x.test", "A", "198.51.100.5", 5353),
        ("host", "A", "224.0.0.252", 5355),
    ]
    assert [scope_of(event.server or "") for event in events if isinstance(event, DnsQuery)] == [
        "multicast",
        "public",
        "multicast",
    ]


def test_a_multicast_responder_answers_without_a_question(tmp_path: Path) -> None:
    announced = pack("!HHHHHH", 0, 0x8400, 0, 1, 0, 0) + b"\x02me\x05local\0" + pack("!HHIH", 1, 0x8001, 120, 4)
    events, observation = read(tmp_path, pcap([datagram(announced + bytes([10, 77, 0, 2]), 5353, 5353, "224.0.0.251")]))
    assert [(event.name, event.type, event.records) for event in events if isinstance(event, DnsAnswer)] == [
        (None, "", [DnsRecord("me.local", "A", "10.77.0.2", 120)])
    ]
    assert observation.losses == []


# cases C64: DNS over TCP in pieces


def framed(*messages: bytes) -> bytes:
    return b"".join(pack("!H", len(message)) + message for message in messages)


def test_questions_over_tcp_survive_every_cut_into_segments(tmp_path: Path) -> None:
    stream = framed(question("tcp.example.test"), question("second.example.test"))
    whole = [("tcp.example.test", "A", SERVER, 53), ("second.example.test", "A", SERVER, 53)]
    events, observation = read(tmp_path, pcap(flow([(0, stream[:1]), (1, stream[1:20]), (20, stream[20:])], other=53)))
    assert names(events) == whole
    assert [(event.transport, str(event.where)) for event in events if isinstance(event, DnsQuery)] == [
        ("tcp", "c.pcap#4+6"),
        ("tcp", "c.pcap#6"),
    ]
    assert observation.losses == []
    for cut in range(1, len(stream)):
        segments = [(cut, stream[cut:]), (0, stream[:cut])]
        for order in (segments, segments[::-1]):
            events, observation = read(tmp_path, pcap(flow(order, other=53)))
            assert names(events) == whole
            assert observation.losses == []


def test_a_retransmitted_segment_gives_no_second_question(tmp_path: Path) -> None:
    stream = framed(question("tcp.example.test"))
    events, _ = read(tmp_path, pcap(flow([(0, stream), (0, stream), (0, stream[:9])], other=53)))
    assert names(events) == [("tcp.example.test", "A", SERVER, 53)]


def test_a_missing_segment_is_a_gap(tmp_path: Path) -> None:
    stream = framed(question("tcp.example.test"), question("second.example.test"))
    events, observation = read(tmp_path, pcap(flow([(0, stream[:10]), (20, stream[20:])], other=53)))
    assert names(events) == []
    assert [(loss.what, str(loss.where), loss.touches) for loss in observation.losses] == [
        ("gap", "c.pcap#5", ["dns.answer", "dns.query"])
    ]


def test_a_connection_that_ends_within_a_message_is_told(tmp_path: Path) -> None:
    stream = framed(question("tcp.example.test"))
    events, observation = read(tmp_path, pcap(flow([(0, stream[:-4])], other=53)))
    assert names(events) == [("tcp.example.test", "", SERVER, 53)]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("gap", ["dns.answer", "dns.query"])]


def test_other_bytes_on_tcp_port_53_are_a_question_with_unknown_name(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap(flow([(0, b"\0\x05hello" * 40)], other=53)))
    assert names(events) == [(None, "", SERVER, 53)]
    assert [(loss.what, loss.count, loss.touches) for loss in observation.losses] == [("unparsed", 1, ["dns.query"])]


# cases C66, C67: what is no DNS, and what only looks so

NOT_DNS = [
    ("000101000001000000000000c00c00010001", "a compression pointer to offset 12 does not lead backwards to a name"),
    (
        "000101000001000000000000c00ec00c00010001",
        "a compression pointer to offset 14 does not lead backwards to a name",
    ),
    (
        "0001010000010000000000000161c00c00010001",
        "a compression pointer to offset 12 does not lead backwards to a name",
    ),
    ("000101000001000000000000" + ("3f" + "78" * 63) * 5 + "0000010001", "a name is longer than 255 bytes"),
    ("68656c6c6f", "5 bytes are no DNS header"),
]


@pytest.mark.parametrize(("hexadecimal", "reason"), NOT_DNS)
def test_malformed_dns_is_counted_and_stays_a_datagram_to_port_53(
    tmp_path: Path, hexadecimal: str, reason: str
) -> None:
    payload = bytes.fromhex(hexadecimal)
    events, observation = read(tmp_path, pcap([datagram(payload)]))
    place = Where("c.pcap", 1, None, "packet")
    assert names(events) == [(None, "", SERVER, 53)]
    assert [event for event in events if isinstance(event, Unparsed)] == [
        Unparsed(place, T0 * SECOND, "packets", f"malformed DNS: {reason}", payload[:64], ["dns.query"])
    ]
    assert [(event.address, event.port, event.bytes_out) for event in events if isinstance(event, NetFlow)] == [
        (SERVER, 53, len(payload))
    ]
    assert observation.losses == [
        Loss("unparsed", "messages at a DNS port that are not well-formed DNS", 1, place, ["dns.query"])
    ]
    assert observation.counts == {"packets": 1, "unparsed": 1}


def test_malformed_answers_touch_answers_only(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap([datagram(b"\0" * 5, 53, 40000, CLIENT, SERVER)]))
    assert names(events) == []
    assert [loss.touches for loss in observation.losses] == [["dns.answer"]]


def test_an_unknown_record_type_leaves_the_question(tmp_path: Path) -> None:
    payload = bytes.fromhex("000181800001000100000000016104746573740000410001c00c004100010000003c0003000100")
    events, observation = read(tmp_path, pcap([datagram(payload, 53, 40000, CLIENT, SERVER)]))
    assert [(event.name, event.type, event.no_data) for event in events if isinstance(event, DnsAnswer)] == [
        ("a.test", "HTTPS", False)
    ]
    assert observation.losses == []


def test_a_name_of_odd_bytes_is_one_event(tmp_path: Path) -> None:
    payload = bytes.fromhex("00010100000100000000000006612e620afffe04746573740000010001")
    events, observation = read(tmp_path, pcap([datagram(payload)]))
    assert names(events) == [("a\\.b\\010\\255\\254.test", "A", SERVER, 53)]
    assert observation.losses == []


def test_an_answer_with_a_damaged_record_keeps_the_rest(tmp_path: Path) -> None:
    reply = answer("q.test", (OWNER, 5, b"\xc0\xff"), (OWNER, 1, b"\x01\x02\x03\x04"))
    events, observation = read(tmp_path, pcap([datagram(reply, 53, 40000, CLIENT, SERVER)]))
    assert [event.records[1].value for event in events if isinstance(event, DnsAnswer)] == ["1.2.3.4"]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("unparsed", ["dns.answer"])]


def test_what_goes_to_port_53_is_a_question_even_when_it_claims_to_answer(tmp_path: Path) -> None:
    forged = answer("secret.exfil.test", (OWNER, 1, b"\x01\x02\x03\x04"))
    events, _ = read(tmp_path, pcap([datagram(forged)]))
    assert names(events) == [("secret.exfil.test", "A", SERVER, 53)]
    assert [event for event in events if isinstance(event, DnsAnswer)] == []


# cases C69: DNS that does not go to port 53


def test_an_answer_of_port_53_pairs_with_a_question_that_was_redirected(tmp_path: Path) -> None:
    asked = ip4("127.0.0.1", "127.0.0.11", 17, udp(46367, 35971, question("api.example.test", ident=36410)))
    reply = answer("api.example.test", (OWNER, 1, bytes([203, 0, 113, 18])), ident=36410)
    answered = ip4("127.0.0.11", "127.0.0.1", 17, udp(53, 46367, reply))
    events, observation = read(tmp_path, pcap([asked, answered], link=101))
    assert names(events) == [("api.example.test", "A", "127.0.0.11", 35971)]
    query = next(event for event in events if isinstance(event, DnsQuery))
    reply_event = next(event for event in events if isinstance(event, DnsAnswer))
    assert (query.id, query.client, query.name) == (reply_event.id, reply_event.client, reply_event.name)
    assert [record.value for record in reply_event.records] == ["203.0.113.18"]
    assert observation.losses == []


def test_a_resolver_on_an_odd_port_is_seen_with_its_answers(tmp_path: Path) -> None:
    asked = [
        datagram(question(name, kind=kind, ident=kind), 40000, 5300) for name, kind in (("a.test", 1), ("a.test", 28))
    ]
    replies = [
        datagram(answer("a.test", (OWNER, 1, b"\x01\x02\x03\x04"), ident=1), 5300, 40000, CLIENT, SERVER),
        datagram(answer("a.test", kind=28, ident=28), 5300, 40000, CLIENT, SERVER),
        datagram(answer("forged.test", (OWNER, 1, b"\x01\x02\x03\x04"), ident=99), 5300, 40000, CLIENT, SERVER),
    ]
    events, _ = read(tmp_path, pcap([*asked, *replies]))
    assert names(events) == [("a.test", "A", SERVER, 5300), ("a.test", "AAAA", SERVER, 5300)]
    assert [(event.name, event.type, event.no_data) for event in events if isinstance(event, DnsAnswer)] == [
        ("a.test", "A", False),
        ("a.test", "AAAA", True),
    ]


@pytest.mark.parametrize(
    "payload",
    [
        question("a.test") + b"\0",
        question("a.test")[:-1],
        answer("a.test"),
        question("a.test", "b.test"),
        question("a.test")[:-2] + b"\0\x02",
        bytes(40),
        b"\x12\x34\x01\0\0\x01" + bytes(30),
    ],
)
def test_only_the_exact_shape_of_a_question_is_one_on_an_odd_port(tmp_path: Path, payload: bytes) -> None:
    events, observation = read(tmp_path, pcap([datagram(payload, 40000, 5300)]))
    assert names(events) == []
    assert observation.losses == []


# cases C61: cut by the snap length


def test_a_name_that_is_cut_is_unknown(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap([eth(dns_packet())], snap=60))
    assert names(events) == [(None, "", SERVER, 53)]
    assert [(event.bytes_out, event.cut) for event in events if isinstance(event, NetFlow)] == [(32, 1)]
    assert observation.losses == [
        Loss(
            "snaplen",
            "packets longer than the snap length were cut",
            1,
            Where("c.pcap", 1, None, "packet"),
            ["dns.query"],
        )
    ]


def test_wanted_kinds_change_no_account(tmp_path: Path) -> None:
    packets = [eth(dns_packet()), datagram(b"x"), datagram(answer("a.test"), 53, 40000, CLIENT, SERVER)]
    events, everything = read(tmp_path, pcap(packets))
    assert len(events) == 5
    for wanted in ("dns.query", "dns.answer", "net.flow", "unparsed", "tls.client_hello"):
        some, observation = read(tmp_path, pcap(packets), frozenset({wanted}))
        assert some == [event for event in events if event.kind == wanted]
        assert observation == everything
