"""Capture files: byte orders, clocks, sections, truncation, and lengths that lie."""

from __future__ import annotations

import gzip
import os
import struct
import threading
from pathlib import Path

import pytest
import zstandard
from packets import (
    SECOND,
    T0,
    block,
    dns_packet,
    enhanced,
    eth,
    interface,
    option,
    pack,
    pcap,
    read,
    section,
    sll,
)

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.pcap import PacketCapture
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsQuery
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

FRAME = eth(dns_packet())
KINDS = [
    "net.flow",
    "net.packet",
    "dns.query",
    "dns.answer",
    "tls.client_hello",
    "quic.initial",
    "http.request",
]
MALFORMED = "a block is malformed; packets in it are lost"
STOPPED = "a block is malformed; what follows it cannot be read"


def queries(events: list[Event]) -> list[tuple[str | None, int | None, int]]:
    return [(event.name, event.t_ns, event.where.at) for event in events if isinstance(event, DnsQuery)]


@pytest.mark.parametrize(
    "data",
    [
        pcap([FRAME]),
        pcap([FRAME], order=">"),
        pcap([FRAME], magic=0xA1B23C4D),
        pcap([FRAME], magic=0xA1B23C4D, order=">"),
        gzip.compress(pcap([FRAME])),
        zstandard.compress(pcap([FRAME])),
    ],
)
def test_every_form_of_the_classic_file_gives_the_same_packet_and_time(tmp_path: Path, data: bytes) -> None:
    events, observation = read(tmp_path, data)
    assert queries(events) == [("a.example.test", T0 * SECOND, 1)]
    assert observation.format == "pcap"
    assert observation.counts == {"packets": 1, "unparsed": 0}
    assert (observation.begin_ns, observation.end_ns) == (T0 * SECOND, T0 * SECOND)
    assert observation.losses == []


def test_fractions_of_a_second_are_whole_nanoseconds(tmp_path: Path) -> None:
    events, _ = read(tmp_path, pcap([FRAME], magic=0xA1B23C4D, times=[0.000000001]))
    assert queries(events) == [("a.example.test", T0 * SECOND + 1, 1)]
    events, _ = read(tmp_path, pcap([FRAME], times=[0.000001]))
    assert queries(events) == [("a.example.test", T0 * SECOND + 1000, 1)]


def test_the_modified_format_is_rejected_by_name(tmp_path: Path) -> None:
    for order in "<>":
        with pytest.raises(UnknownFormat, match="modified pcap format") as caught:
            read(tmp_path, pcap([FRAME], magic=0xA1B2CD34, order=order))
        assert caught.value.file == "c.pcap"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", InputError),
        (bytes(24), UnknownFormat),
        (b"snoop\0\0\0", UnknownFormat),
        (b"hello\n", UnknownFormat),
        (pcap([])[:23], InputError),
        (b"\x0a\x0d\x0d\x0a", InputError),
        (b"\x0a\x0d\x0d\x0a" + bytes(24), InputError),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path: Path, data: bytes, error: type[InputError]) -> None:
    with pytest.raises(error) as caught:
        read(tmp_path, data)
    assert caught.value.file == "c.pcap"


def test_a_capture_of_no_packets_is_valid_and_proves_nothing(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap([]))
    assert events == []
    assert observation.counts == {"packets": 0, "unparsed": 0}
    assert (observation.proof, observation.watches, observation.losses) == ("absent", {}, [])
    assert (observation.begin_ns, observation.end_ns) == (None, None)


def test_one_packet_makes_the_proof_inferred(tmp_path: Path) -> None:
    _, observation = read(tmp_path, pcap([FRAME]))
    assert (observation.proof, observation.watches) == ("inferred", dict.fromkeys(KINDS, "inferred"))
    assert observation.clock == "epoch"
    assert observation.complete is False


def test_a_manifest_makes_an_empty_capture_declared(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    path.write_bytes(pcap([]))
    declared = Declared(
        tool="tcpdump 4.99",
        options=["-s 0"],
        begin_ns=5,
        end_ns=9,
        complete=True,
        scope="eth0",
        losses=[Loss("dropped", "590 packets dropped by the kernel", 590)],
    )
    capture = PacketCapture(path, "bundle/c.pcap", declared)
    assert capture.observation.watches == dict.fromkeys(KINDS, "declared")
    assert list(capture.events()) == []
    observation = capture.observation
    assert (observation.source, observation.tool, observation.options) == ("bundle/c.pcap", "tcpdump 4.99", ["-s 0"])
    assert (observation.begin_ns, observation.end_ns, observation.complete) == (5, 9, True)
    assert (observation.proof, observation.scope) == ("declared", "eth0")
    assert observation.losses == [Loss("dropped", "590 packets dropped by the kernel", 590)]


def test_a_file_that_stops_in_a_record_keeps_every_whole_one(tmp_path: Path) -> None:
    whole = pcap([FRAME, FRAME])
    record = 16 + len(FRAME)
    for size in range(24, len(whole)):
        events, observation = read(tmp_path, whole[:size])
        packets = (size - 24) // record
        assert observation.counts["packets"] == packets
        assert [query[2] for query in queries(events)] == list(range(1, packets + 1))
        rest = (size - 24) % record
        assert [(loss.what, loss.where, loss.touches, loss.note) for loss in observation.losses] == (
            [("file-truncated", Where("c.pcap", 24 + packets * record, None, "offset"), [], False)] if rest else []
        )


def test_a_record_that_claims_four_gigabytes_ends_the_file(tmp_path: Path) -> None:
    events, observation = read(tmp_path, pcap([FRAME]) + pack("<IIII", T0, 0, 0xFFFFFFFF, 60) + FRAME)
    assert queries(events) == [("a.example.test", T0 * SECOND, 1)]
    assert [(loss.what, str(loss.where)) for loss in observation.losses] == [("malformed", f"c.pcap@{40 + len(FRAME)}")]
    assert [event.reason for event in events if isinstance(event, Unparsed)] == [
        "a record claims an impossible length; what follows it cannot be read: captured length 4294967295"
    ]


def test_a_snap_length_of_zero_is_no_limit(tmp_path: Path) -> None:
    data = bytearray(pcap([FRAME]))
    data[16:20] = bytes(4)
    events, observation = read(tmp_path, bytes(data))
    assert len(queries(events)) == 1
    assert observation.losses == []


def test_a_broken_gzip_stream_keeps_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(pcap([FRAME] * 50), compresslevel=0)
    events, observation = read(tmp_path, packed[: len(packed) // 2])
    assert 0 < observation.counts["packets"] < 50
    assert len(queries(events)) == observation.counts["packets"]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("file-truncated", [])]


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(pcap([FRAME]),))
    writer.start()
    capture = PacketCapture(path, "pipe")
    assert queries(list(capture.events())) == [("a.example.test", T0 * SECOND, 1)]
    writer.join()


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    path.write_bytes(pcap([FRAME, FRAME]))
    capture = PacketCapture(path)
    assert list(capture.events()) == list(capture.events())


# pcapng


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_section_of_either_byte_order_is_read(tmp_path: Path, order: str) -> None:
    data = (
        section(option(4, b"dumpcap 4.0", order=order), order=order)
        + interface(option(2, b"eth0", order=order), snap=262144, order=order)
        + enhanced(FRAME, order=order)
    )
    events, observation = read(tmp_path, data)
    assert queries(events) == [("a.example.test", T0 * SECOND, 1)]
    assert (observation.format, observation.tool, observation.scope) == ("pcapng", "dumpcap 4.0", "eth0")
    assert observation.options == ["snaplen 262144"]
    assert observation.complete is False


CLOCKS = [
    ((), T0 * 1_000_000, T0 * SECOND),
    ((option(9, b"\x09"),), T0 * SECOND + 7, T0 * SECOND + 7),
    ((option(9, b"\x03"),), T0 * 1000, T0 * SECOND),
    ((option(9, b"\x0c"),), 7999, 7),
    ((option(9, b"\x80"),), T0, T0 * SECOND),
    ((option(9, b"\x8a"),), T0 << 10 | 512, T0 * SECOND + SECOND // 2),
    ((option(9, b"\xff"),), 1, 0),
    ((option(14, pack("<q", T0)),), 5, T0 * SECOND + 5000),
    ((option(14, pack("<q", -T0 * 2)),), 5, None),
]


@pytest.mark.parametrize(("options", "ticks", "t_ns"), CLOCKS)
def test_interfaces_have_clocks_of_their_own(
    tmp_path: Path, options: tuple[bytes, ...], ticks: int, t_ns: int | None
) -> None:
    events, _ = read(tmp_path, section() + interface(*options) + enhanced(FRAME, ticks=ticks))
    assert queries(events) == [("a.example.test", t_ns, 1)]


def test_link_types_and_sections_may_change_within_a_file(tmp_path: Path) -> None:
    raw = dns_packet("raw.test")
    data = (
        section()
        + interface()
        + interface(link=101)
        + interface(link=147)
        + enhanced(FRAME)
        + enhanced(raw, on=1)
        + enhanced(raw, on=2)
        + section(order=">")
        + interface(link=113, order=">")
        + enhanced(sll(dns_packet("second.test")), order=">")
    )
    events, observation = read(tmp_path, data)
    assert [query[0] for query in queries(events)] == ["a.example.test", "raw.test", "second.test"]
    assert observation.counts == {"packets": 4, "unparsed": 1}
    assert [(loss.what, loss.detail, loss.count, loss.touches) for loss in observation.losses] == [
        ("link-type", "unsupported link type 147", 1, [])
    ]


def test_simple_and_obsolete_packet_blocks_are_read(tmp_path: Path) -> None:
    simple = block(3, pack("<I", len(FRAME)) + FRAME)
    ticks = T0 * 1_000_000
    obsolete = block(
        2, pack("<HHIIII", 0, 3, ticks >> 32, ticks & 0xFFFFFFFF, len(FRAME), len(FRAME)) + FRAME + bytes(2)
    )
    events, observation = read(tmp_path, section() + interface() + simple + obsolete)
    assert queries(events) == [("a.example.test", None, 1), ("a.example.test", T0 * SECOND, 2)]
    assert [(loss.what, loss.count, loss.touches) for loss in observation.losses] == [("dropped", 3, [])]


def test_a_simple_packet_is_cut_by_its_interface(tmp_path: Path) -> None:
    simple = block(3, pack("<I", len(FRAME)) + FRAME[:60])
    events, observation = read(tmp_path, section() + interface(snap=60) + simple)
    assert queries(events) == [(None, None, 1)]
    assert [(loss.what, loss.touches) for loss in observation.losses] == [("snaplen", ["dns.query"])]


def test_statistics_close_the_file_and_tell_drops(tmp_path: Path) -> None:
    def statistics(*options: bytes) -> bytes:
        return block(5, pack("<III", 0, 0, 0) + b"".join(options))

    first = statistics(option(4, pack("<Q", 10)), option(5, pack("<Q", 1)))
    last = statistics(option(4, pack("<Q", 1402)), option(5, pack("<Q", 500)), option(7, pack("<Q", 90)))
    data = section() + interface() + enhanced(FRAME) + first + last
    _, observation = read(tmp_path, data)
    assert observation.complete is True
    assert [(loss.what, loss.count, loss.touches, loss.note) for loss in observation.losses] == [
        ("dropped", 590, [], False)
    ]


def test_an_impossible_counter_is_no_count(tmp_path: Path) -> None:
    statistics = block(
        5, pack("<III", 0, 0, 0) + option(4, bytes(8)) + option(5, pack("<Q", 4294965006)) + option(0, b"")
    )
    events, observation = read(tmp_path, section() + interface() + statistics)
    assert events == []
    assert observation.proof == "absent"
    assert [(loss.what, loss.detail, loss.count, loss.note) for loss in observation.losses] == [
        ("statistics", "the recorder's counter of dropped packets is impossible", 1, True)
    ]


def test_drops_beside_a_packet_are_counted(tmp_path: Path) -> None:
    data = section() + interface() + enhanced(FRAME, option(4, pack("<Q", 41))) + enhanced(FRAME, option(4, bytes(8)))
    events, observation = read(tmp_path, data)
    assert len(queries(events)) == 2
    assert [(loss.what, loss.count) for loss in observation.losses] == [("dropped", 41)]


def test_a_capture_filter_is_said(tmp_path: Path) -> None:
    data = section() + interface(option(11, b"\0udp port 53")) + enhanced(FRAME)
    _, observation = read(tmp_path, data)
    assert observation.options == ["filter udp port 53", "snaplen 0"]
    assert [(loss.what, loss.touches, loss.note) for loss in observation.losses] == [("filter", [], False)]


GOOD = section() + interface() + enhanced(FRAME)
LIES = [
    (enhanced(FRAME, on=82), 2, MALFORMED, "a packet of interface 82, which was never described"),
    (enhanced(FRAME, captured=5000), 2, MALFORMED, f"a packet of 5000 bytes in a block of {len(enhanced(FRAME))}"),
    (block(6, bytes(12)), 2, MALFORMED, "a packet block of 24 bytes"),
    (block(3, b""), 2, MALFORMED, "a simple packet without room or without an interface"),
    (block(3, pack("<I", 500)), 2, MALFORMED, "a packet of 500 bytes in a block of 16"),
    (block(1, bytes(4)), 2, MALFORMED, "an interface description that is too short, or one too many"),
    (block(5, bytes(4)), 2, MALFORMED, "a statistics block that is too short"),
    (block(6, bytes(40), length=0), 1, STOPPED, "block length 0"),
    (block(6, bytes(40), length=4), 1, STOPPED, "block length 4"),
    (block(6, bytes(40), length=13), 1, STOPPED, "block length 13"),
    (block(6, bytes(40), length=0x7FFFFFFF), 1, STOPPED, "block length 2147483647"),
    (block(6, bytes(40), length=0x7FFFFFFC), 1, STOPPED, "block length 2147483644"),
    (block(6, bytes(20) + FRAME, trailing=8), 1, STOPPED, "two lengths of one block that differ"),
    (block(0x0A0D0D0A, bytes(16)), 1, STOPPED, "a section header without byte-order magic"),
]


@pytest.mark.parametrize(("lie", "packets", "detail", "reason"), LIES)
def test_a_block_that_lies_is_located_and_invents_no_packet(
    tmp_path: Path, lie: bytes, packets: int, detail: str, reason: str
) -> None:
    events, observation = read(tmp_path, GOOD + lie + enhanced(FRAME))
    assert [query[2] for query in queries(events)] == list(range(1, packets + 1))
    place = Where("c.pcap", len(GOOD), None, "offset")
    assert observation.losses == [Loss("malformed", detail, 1, place)]
    assert [event for event in events if isinstance(event, Unparsed)] == [
        Unparsed(place, None, "packets", f"{detail}: {reason}")
    ]
    assert observation.counts == {"packets": packets, "unparsed": 1}


def test_every_cut_of_a_pcapng_file_gives_a_beginning_of_its_packets(tmp_path: Path) -> None:
    head = section() + interface()
    packet = enhanced(FRAME)
    whole = head + packet + packet
    for size in range(len(section()), len(whole)):
        events, observation = read(tmp_path, whole[:size])
        packets = max(0, size - len(head)) // len(packet)
        assert [query[2] for query in queries(events)] == list(range(1, packets + 1))
        edges = {len(section()), len(head), len(head) + len(packet)}
        assert [loss.what for loss in observation.losses] == ([] if size in edges else ["file-truncated"])


def test_many_bad_blocks_are_one_loss(tmp_path: Path) -> None:
    data = section() + interface() + enhanced(FRAME, on=82) * 1000
    events, observation = read(tmp_path, data, frozenset({"dns.query"}))
    assert events == []
    assert [(loss.count, str(loss.where)) for loss in observation.losses] == [(1000, "c.pcap@48")]
    assert observation.counts == {"packets": 0, "unparsed": 1000}


def test_unknown_blocks_are_stepped_over(tmp_path: Path) -> None:
    names = block(4, struct.pack("<HH", 0, 0))
    secrets = block(10, b"TLSK" + struct.pack("<I", 4) + b"abcd")
    events, observation = read(
        tmp_path, section() + interface() + names + secrets + block(0x0BAD, b"x") + enhanced(FRAME)
    )
    assert len(queries(events)) == 1
    assert observation.losses == []
