"""The guest's cards: what QEMU saw on the wire gets the time of day, and tells what tcpdump missed."""

import itertools
import struct
from pathlib import Path

from controls.recorder.denial import DENIALS
from controls.recorder.microvm.nic import MAC_INSIDE, MAC_OUTSIDE, MISSED, aligned, cards, losses, qemu_options
from mcpdetect.model.manifest import ManifestLoss

HEADER = b"\xd4\xc3\xb2\xa1" + struct.pack("<HHiIII", 2, 4, 0, 0, 262144, 1)


def pcap(*packets: tuple[float, bytes]) -> bytes:
    """Return a capture of frames at times in seconds."""
    out = HEADER
    for stamp, frame in packets:
        micros = round(stamp * 1_000_000)
        out += struct.pack("<IIII", micros // 1_000_000, micros % 1_000_000, len(frame), len(frame)) + frame
    return out


def test_the_smallest_difference_of_packets_seen_once_is_the_clocks_difference() -> None:
    inner = pcap((1000.0, b"syn"), (1000.1, b"twice"), (1000.2, b"twice"), (1000.5, b"end"))
    outer = pcap((70.002, b"syn"), (70.1, b"twice"), (70.2, b"twice"), (70.501, b"end"))
    # syn differs by 929.998 s, end by 929.999 s: QEMU was quicker to stamp the latter.
    assert aligned(outer, inner) == (
        pcap((1000.001, b"syn"), (1000.099, b"twice"), (1000.199, b"twice"), (1000.5, b"end")),
        0,
    )


def test_packets_between_the_first_and_the_last_in_both_that_tcpdump_lacks_are_counted() -> None:
    inner = pcap((1000.0, b"a"), (1000.2, b"c"))
    outer = pcap((9.9, b"early"), (10.0, b"a"), (10.1, b"b"), (10.15, b"b"), (10.2, b"c"), (10.3, b"late"))
    found = aligned(outer, inner)
    assert found is not None
    assert found[1] == 2
    assert found[0] == pcap(
        (999.9, b"early"), (1000.0, b"a"), (1000.1, b"b"), (1000.15, b"b"), (1000.2, b"c"), (1000.3, b"late")
    )


def test_a_capture_that_shares_no_packet_has_no_known_time() -> None:
    assert aligned(pcap((1.0, b"a")), pcap((2.0, b"b"))) is None
    assert aligned(pcap((1.0, b"a"), (1.1, b"a")), pcap((2.0, b"a"), (2.1, b"a"))) is None
    assert aligned(pcap((1.0, b"a")), b"") is None
    assert aligned(pcap((1.0, b"a")), b"\n\r\r\n" + bytes(40)) is None


def test_an_empty_capture_is_whole() -> None:
    assert aligned(HEADER, pcap((1.0, b"a"))) == (HEADER, 0)
    assert aligned(b"", pcap((1.0, b"a"))) == (b"", 0)


def test_a_cut_packet_ends_the_reading() -> None:
    whole, inner = pcap((1.0, b"abc"), (1.1, b"defg")), pcap((501.0, b"abc"), (501.1, b"defg"))
    checked = 0
    for end in range(len(HEADER) + 16 + 3, len(whole)):
        assert aligned(whole[:end], inner) == (
            pcap((501.0, b"abc"), (501.1, b"defg"))[: len(HEADER) + 19] + whole[len(HEADER) + 19 : end],
            0,
        )
        checked += 1
    assert checked == 20
    lying = bytearray(whole)
    struct.pack_into("<I", lying, len(HEADER) + 8, 0xFFFFFFFF)
    assert aligned(bytes(lying), inner) == (bytes(lying), 0)


def test_the_cards_are_known_by_their_addresses(tmp_path: Path) -> None:
    for name, address in (("lo", "00:00:00:00:00:00"), ("eth1", MAC_INSIDE), ("eth0", MAC_OUTSIDE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "address").write_text(address + "\n")
    (tmp_path / "bonding_masters").write_text("")
    assert cards(tmp_path) == ("eth1", "eth0")
    (tmp_path / "eth0/address").unlink()
    assert cards(tmp_path) is None


def test_what_tcpdump_missed_is_a_loss(tmp_path: Path) -> None:
    assert losses(tmp_path) == []
    (tmp_path / MISSED).write_text("0")
    assert losses(tmp_path) == []
    (tmp_path / MISSED).write_text("3")
    assert losses(tmp_path) == [ManifestLoss("dropped", "packets that crossed the network card, unseen by tcpdump", 3)]


def test_the_hub_has_the_two_cards_and_no_other_port() -> None:
    options = qemu_options()
    backends = [value for name, value in itertools.pairwise(options) if name == "-netdev"]
    assert backends == ["hubport,id=inside,hubid=0", "hubport,id=outside,hubid=0"]
    assert options.count("-device") == 2
    assert [name for name, one in DENIALS.items() if one.link] == ["link-down"]
