"""The fake internet's name server: every name its own address, and each way of refusing."""

import ipaddress
import struct

import pytest

from controls.recorder.internet.names import Names, address4, address6
from controls.recorder.internet.settings import DNS_MODES


def query(name: str, kind: int, number: int = 0x1234) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def reply(message: bytes, mode: str) -> bytes | None:
    return Names(mode).answer(message).message


def test_a_name_has_one_address_of_each_family_whatever_its_case() -> None:
    assert address4("api.example.com") == address4("API.Example.com.") == "44.144.196.62"
    assert address6("api.example.com") == "2fff:cafe::3885:64d"
    assert address4("cdn.example.com") != address4("api.example.com")


def test_every_address_looks_public() -> None:
    names = [f"host-{number}.example.com" for number in range(500)]
    assert len(names) == 500
    assert all(ipaddress.ip_address(address4(name)) in ipaddress.ip_network("44.128.0.0/10") for name in names)
    assert all(ipaddress.ip_address(find(name)).is_global for name in names for find in (address4, address6))


def test_an_answer_repeats_the_question_and_adds_one_record() -> None:
    asked = query("api.example.com", 1)
    answer = ipaddress.IPv4Address("44.144.196.62").packed
    assert reply(asked, "answer") == (
        b"\x12\x34\x81\x80\0\1\0\1\0\0\0\0" + asked[12:] + b"\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4" + answer
    )


def test_each_mode_answers_in_its_way() -> None:
    # Mode -> (flags, number of answers) for A and for AAAA; None is silence.
    wanted: dict[str, tuple[tuple[int, int] | None, tuple[int, int] | None]] = {
        "answer": ((0x8180, 1), (0x8180, 1)),
        "ipv4": ((0x8180, 1), (0x8180, 0)),
        "nxdomain": ((0x8183, 0), (0x8183, 0)),
        "servfail": ((0x8182, 0), (0x8182, 0)),
        "refused": ((0x8185, 0), (0x8185, 0)),
        "silent": (None, None),
    }
    found: dict[str, tuple[tuple[int, int] | None, ...]] = {}
    for mode in DNS_MODES:
        answers = [reply(query("api.example.com", kind), mode) for kind in (1, 28)]
        found[mode] = tuple(
            None if one is None else (int.from_bytes(one[2:4]), int.from_bytes(one[6:8])) for one in answers
        )
    assert found == wanted


def test_a_type_without_a_record_exists_without_data() -> None:
    answer = reply(query("api.example.com", 65), "answer")
    assert answer is not None
    assert struct.unpack_from(">HHHHH", answer, 2) == (0x8180, 1, 0, 0, 0)


@pytest.mark.parametrize("size", range(len(query("api.example.com", 1))))
def test_a_cut_query_is_not_answered(size: int) -> None:
    assert reply(query("api.example.com", 1)[:size], "answer") is None


def test_a_pointer_in_a_question_is_not_followed() -> None:
    assert reply(query("a", 1)[:12] + b"\xc0\x0c\0\1\0\1", "answer") is None
