"""Replacing private addresses wherever evidence may hold them: text, reverse names, buffers, packets of any capture."""

from __future__ import annotations

import ipaddress
import re
import struct

import pytest

from mcpdetect.score.promote_packets import readdressed
from mcpdetect.score.promote_pcapng import redacted_pcapng
from mcpdetect.score.promote_redact import Redaction, escaped, find_details

V4, V6 = bytes([10, 200, 0, 2]), ipaddress.IPv6Address("fd00:200::2").packed


def made(change: Redaction, written: str) -> str:
    return change.text(written.encode()).decode()


def test_private_ipv6_becomes_private_ipv6_of_the_same_length_and_network() -> None:
    change = Redaction([], seed=3)
    first, second = made(change, "fd00:200::2"), made(change, "fd00:200::17")
    assert first != "fd00:200::2"
    assert (len(first), len(second)) == (11, 12)
    assert first.rpartition("::")[0] == second.rpartition("::")[0]
    assert {ipaddress.ip_address(one) in ipaddress.ip_network("fd00::/8") for one in (first, second)} == {True}
    link = made(change, "fe80::a8:1ff:fe00:2%eth0")
    assert link.startswith("fe80::")
    assert link.endswith("%eth0")
    assert link != "fe80::a8:1ff:fe00:2%eth0"
    assert made(change, "FD00:ABCD::1").lower() == made(change, "fd00:abcd::1")


@pytest.mark.parametrize(
    "text",
    [
        "2001:db8::1",
        "::1",
        "fd12:34:56",
        "fdabc::1",
        "fd00:200::2::3",
        "00:fd00:12:34",
        "feedface::1",
        "fd00",
        "fd:00:1",
    ],
)
def test_what_is_no_private_ipv6_stays(text: str) -> None:
    assert made(Redaction([], seed=3), text) == text


def test_names_of_reverse_lookups_are_those_of_the_new_addresses() -> None:
    change = Redaction([], seed=3)
    new = made(change, "10.200.0.2")
    assert made(change, "2.0.200.10.in-addr.arpa") == ".".join(new.split(".")[::-1]) + ".in-addr.arpa"
    assert made(change, "1.1.1.1.in-addr.arpa") == "1.1.1.1.in-addr.arpa"
    old6 = ipaddress.IPv6Address("fd00:200::2")
    new6 = ipaddress.IPv6Address(made(change, "fd00:200::2"))
    assert made(change, old6.reverse_pointer) == new6.reverse_pointer
    assert made(change, ipaddress.IPv6Address("2001:db8::1").reverse_pointer).startswith("1.0.0.0.")


def test_known_addresses_are_replaced_in_buffers_however_strace_writes_them() -> None:
    change = Redaction([], seed=3)
    new = bytes(int(part) for part in made(change, "10.200.0.2").split("."))
    new6 = ipaddress.IPv6Address(made(change, "fd00:200::2")).packed
    octal = "".join(f"\\{byte:03o}" for byte in new)
    assert change.log(rb'recvfrom(3, "\300\f\0\1\0\4\n\310\0\2", 20)') == (
        rb'recvfrom(3, "\300\f\0\1\0\4' + octal.encode() + rb'", 20)'
    )
    assert change.log(rb'"\n\310\0\0022"') == b'"' + octal.encode() + b'2"'
    hexed = "".join(f"\\x{byte:02x}" for byte in V6)
    assert change.log(hexed.encode()) == "".join(f"\\x{byte:02x}" for byte in new6).encode()
    assert change.binary(b"\0\4" + V4 + b"\0\x10" + V6) == b"\0\4" + new + b"\0\x10" + new6
    # Another address, and a longer octal escape, are none of ours.
    assert change.log(rb'"\n\310\0\3"') == rb'"\n\310\0\3"'
    assert change.log(rb'"\n\310\0\23"') == rb'"\n\310\0\23"'


def test_the_pattern_of_bytes_matches_every_spelling_and_no_other() -> None:
    pattern = re.compile(escaped(b"\n\xc8A"))
    for text in (rb"\n\310A", rb"\12\310A", rb"\012\310\101", rb"\x0a\xc8\x41"):
        assert pattern.fullmatch(text)
    for text in (rb"\n\310B", rb"n\310A", rb"\t\310A", rb"\n\31A"):
        assert not pattern.fullmatch(text)


def test_one_replacement_never_feeds_the_next() -> None:
    change = Redaction([], seed=3)
    for last in range(256):
        change.text(f"10.0.0.{last}".encode())
    every = b"".join(bytes([10, 0, 0, last]) for last in range(256))
    assert change.binary(every) == b"".join(change.raw[bytes([10, 0, 0, last])] for last in range(256))


def test_names_in_hexadecimal_strings_are_found_and_replaced() -> None:
    spelled = "".join(f"\\x{byte:02x}" for byte in b"/home/alice/x").encode()
    assert find_details([b'openat(AT_FDCWD, "' + spelled + b'"']) == [b"alice"]
    change = Redaction([b"alice"], seed=1)
    text = change.text(spelled)
    assert len(text) == len(spelled)
    assert bytes.fromhex(text.decode().replace("\\x", "")) == b"/home/" + change.names[b"alice"] + b"/x"


def total(data: bytes) -> int:
    found: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while found > 0xFFFF:
        found = (found & 0xFFFF) + (found >> 16)
    return found


def six(payload: bytes, following: int, extensions: bytes = b"") -> bytes:
    """Return an Ethernet frame with an IPv6 packet."""
    body = extensions + payload
    first = 0 if extensions else following
    return bytes(12) + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(body), first, 64) + V6 + V6[:-1] + b"\x03" + body


@pytest.mark.parametrize(
    ("frame", "start", "following"),
    [
        (six(struct.pack("!HHHH", 5000, 53, 12, 1) + b"abcd", 17), 54, 17),
        (six(struct.pack("!HHIIHHHH", 5000, 80, 1, 0, 0x5002, 64, 1, 0), 6), 54, 6),
        (six(struct.pack("!HHHH", 5000, 53, 12, 1) + b"abcd", 17, bytes([17, 0, 1, 4, 0, 0, 0, 0])), 62, 17),
        (six(bytes([135, 0, 9, 9, 0, 0, 0, 0]) + V6, 58), 54, 58),
    ],
)
def test_ipv6_packets_keep_right_checksums_under_their_new_addresses(frame: bytes, start: int, following: int) -> None:
    change = Redaction([], seed=5)
    new = change.packet(frame, 0, 1)
    assert len(new) == len(frame)
    assert new[22:38] == change.raw[V6]
    assert new[38:54] == change.raw[V6[:-1] + b"\x03"]
    assert V6 not in new
    body = new[start:]
    assert total(new[22:54] + struct.pack("!II", len(body), following) + body) == 0xFFFF
    for size in range(len(frame)):
        assert len(readdressed(frame[:size], 1, lambda raw: raw)) == size


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_headers_and_comments_are_replaced_block_by_block(order: str) -> None:
    frame = six(struct.pack("!HHHH", 5000, 53, 12, 1) + b"abcd", 17)
    section = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    interface = block(1, struct.pack(f"{order}HHI", 1, 0, 0), order)
    head = struct.pack(f"{order}IIIII", 0, 0, 0, len(frame), len(frame))
    comment = b"host alice-laptop at 10.200.0.2 "
    enhanced = block(6, head + frame + bytes(-len(frame) % 4) + comment, order)
    data = section + interface + enhanced
    change = Redaction([b"alice-laptop"], seed=5)
    new = redacted_pcapng(data, change)
    assert new is not None
    assert len(new) == len(data)
    assert new[: len(section + interface) + 28] == data[: len(section + interface) + 28]
    assert change.raw[V6] in new
    for gone in (V6, b"alice", b"10.200.0.2"):
        assert gone in data
        assert gone not in new
    # A damaged capture is not half done.
    assert redacted_pcapng(data[:-4], change) is None
    assert redacted_pcapng(b"nothing", change) is None
    for size in range(len(data)):
        assert redacted_pcapng(data[:size], change) is None or size in (len(section), len(section + interface))
