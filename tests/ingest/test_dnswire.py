"""DNS messages as bytes: names exactly as escaped, pointers, cuts, unknown types, service records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets import answer, pack, qname, question

from mcpdetect.ingest.dnswire import DnsFormatError, DnsMessage, parse_message, rcode_name, type_name
from mcpdetect.model.net import DnsRecord

OWNER = b"\xc0\x0c"


def test_a_question_is_read_with_its_id_and_flags() -> None:
    assert parse_message(question("a.example.test", ident=0xBEEF)) == DnsMessage(
        0xBEEF, False, "NOERROR", False, [("a.example.test", None, "A")], []
    )


def test_letter_case_is_folded_and_kept() -> None:
    assert parse_message(question("aPi.eXample.TEST")).questions == [("api.example.test", "aPi.eXample.TEST", "A")]


def test_several_questions_are_all_read() -> None:
    message = parse_message(question("tcp.example.test", "second.example.test", kind=28))
    assert message.questions == [("tcp.example.test", None, "AAAA"), ("second.example.test", None, "AAAA")]


def test_a_question_cut_behind_its_name_is_not_read_as_a_shorter_one() -> None:
    # the two bytes that are left of the type must not be taken for the type and class of the root
    message = parse_message(bytes.fromhex("1234 0100 0001 0000 0000 0000 01 61 00 00 01"))
    assert message.questions == [("a", None, "")]
    assert message.damage == "a question is cut behind its name"


def test_the_root_is_an_empty_name() -> None:
    assert parse_message(pack("!HHHHHH", 1, 0, 1, 0, 0, 0) + b"\0\0\x02\0\x01").questions == [("", None, "NS")]


@pytest.mark.parametrize(
    "hexadecimal",
    [
        "000101000001000000000000c00c00010001",  # a pointer to itself
        "000101000001000000000000c00ec00c00010001",  # two that point at each other
        "0001010000010000000000000161c00c00010001",  # a loop through a label
        "000101000001000000000000c00000010001",  # into the header
        "00010100000100000000000041610000010001",  # a label of the kind 0x40
    ],
)
def test_a_name_that_leads_nowhere_is_malformed(hexadecimal: str) -> None:
    with pytest.raises(DnsFormatError):
        parse_message(bytes.fromhex(hexadecimal))


def test_a_name_over_255_bytes_is_malformed() -> None:
    long = b"".join(b"\x3f" + b"x" * 63 for _ in range(5)) + b"\0"
    with pytest.raises(DnsFormatError, match="longer than 255"):
        parse_message(pack("!HHHHHH", 1, 0x100, 1, 0, 0, 0) + long + b"\0\x01\0\x01")


def test_a_long_legal_chain_of_pointers_gives_every_name() -> None:
    body = pack("!HHHHHH", 1, 0x8180, 0, 12, 0, 0)
    before = None
    for _ in range(12):
        at = len(body)
        body += b"\x01a" + (pack("!H", 0xC000 | before) if before is not None else b"\0")
        body += pack("!HHIH", 2, 1, 60, 2) + pack("!H", 0xC000 | at)
        before = at
    names = [".".join("a" * count) for count in range(1, 13)]
    message = parse_message(body)
    assert message.damage == ""
    assert [(record.name, record.type, record.value) for record in message.records] == [
        (name, "NS", name) for name in names
    ]


def test_an_unknown_record_does_not_take_its_question_along() -> None:
    data = bytes.fromhex("000181800001000100000000016104746573740000410001c00c004100010000003c0003000100")
    assert parse_message(data) == DnsMessage(
        1,
        True,
        "NOERROR",
        False,
        [("a.test", None, "HTTPS")],
        [DnsRecord("a.test", "HTTPS", "a.test", 60)],
    )


def test_bytes_of_every_kind_in_a_label_are_escaped() -> None:
    data = bytes.fromhex("00010100000100000000000006612e620afffe04746573740000010001")
    assert parse_message(data).questions == [("a\\.b\\010\\255\\254.test", None, "A")]


def test_a_backslash_is_escaped_by_its_number() -> None:
    assert parse_message(question("a\\b.test")).questions == [("a\\092b.test", None, "A")]


@pytest.mark.parametrize(
    ("number", "name"), [(1, "A"), (28, "AAAA"), (65, "HTTPS"), (65535, "TYPE65535"), (0, "TYPE0"), (255, "ANY")]
)
def test_types_have_names_or_numbers(number: int, name: str) -> None:
    assert type_name(number) == name
    assert parse_message(question("a.test", kind=number)).questions == [("a.test", None, name)]


@pytest.mark.parametrize(("number", "name"), [(0, "NOERROR"), (2, "SERVFAIL"), (3, "NXDOMAIN"), (12, "RCODE12")])
def test_response_codes_have_names_or_numbers(number: int, name: str) -> None:
    assert rcode_name(number) == name
    assert parse_message(answer("a.test", flags=0x8180 | number)).rcode == name


def test_the_edns_bits_extend_the_response_code() -> None:
    data = bytearray(question("a.test"))
    data[2:4] = b"\x81\x80"
    data[11] = 1
    assert parse_message(bytes(data) + b"\0\0\x29\x04\xd0\x01\0\0\0\0\0").rcode == "BADVERS"


def test_the_truncation_bit_is_told() -> None:
    assert parse_message(answer("a.test", flags=0x8380)).truncated is True


RECORDS: list[tuple[int, bytes, str, str]] = [
    (1, bytes([203, 0, 113, 7]), "A", "203.0.113.7"),
    (28, bytes.fromhex("20010db8000000000000000000000007"), "AAAA", "2001:db8::7"),
    (28, bytes.fromhex("00000000000000000000ffffcb007107"), "AAAA", "203.0.113.7"),
    (28, bytes.fromhex("0064ff9b0000000000000000cb007107"), "AAAA", "203.0.113.7"),
    (5, b"\x01B\xc0\x0c", "CNAME", "b.q.test"),
    (12, qname("Host.test"), "PTR", "host.test"),
    (15, b"\0\x0a" + qname("mx.test"), "MX", "10 mx.test"),
    (33, b"\0\x01\0\x02\x01\xbb" + qname("srv.test"), "SRV", "1 2 443 srv.test"),
    (16, b"\x03a\xffb\x02cd", "TXT", "a\\xffbcd"),
    (64, b"\0\0" + qname("alias.test"), "SVCB", "alias.test"),
    (65, b"\0\0\0", "HTTPS", ""),
    (1, b"\x01\x02\x03", "A", "\\# 3 010203"),
    (999, b"\xde\xad", "TYPE999", "\\# 2 dead"),
    (10, b"", "NULL", "\\# 0"),
]


@pytest.mark.parametrize(("number", "data", "kind", "value"), RECORDS)
def test_record_data_has_one_spelling(number: int, data: bytes, kind: str, value: str) -> None:
    message = parse_message(answer("q.test", (OWNER, number, data), kind=number))
    assert message.records == [DnsRecord("q.test", kind, value, 60)]
    assert message.damage == ""


def test_service_records_give_target_and_address_hints() -> None:
    data = (
        b"\0\x01"
        + qname("Svc.test")
        + pack("!HH", 1, 3)
        + b"\x02h2"
        + pack("!HH", 4, 8)
        + bytes([203, 0, 113, 1, 203, 0, 113, 2])
        + pack("!HH", 6, 16)
        + bytes.fromhex("20010db8000000000000000000000001")
    )
    assert parse_message(answer("q.test", (OWNER, 65, data), kind=65)).records == [
        DnsRecord("q.test", "HTTPS", "svc.test", 60, ["203.0.113.1", "203.0.113.2", "2001:db8::1"])
    ]


def test_a_negative_time_to_live_is_zero() -> None:
    data = answer("q.test", (OWNER, 1, b"\x01\x02\x03\x04")).replace(pack("!I", 60), pack("!I", 0x80000001))
    assert [record.ttl for record in parse_message(data).records] == [0]


def test_additional_addresses_count_only_for_names_that_the_answer_points_to() -> None:
    data = (
        pack("!HHHHHH", 1, 0x8180, 1, 1, 1, 2)
        + qname("q.test")
        + pack("!HH", 15, 1)
        + OWNER
        + pack("!HHIH", 15, 1, 60, 9)
        + b"\0\x01\x02mx\xc0\x0c\0\0"
    )
    data += qname("ns.test") + pack("!HHIH", 2, 1, 60, 1) + b"\0"
    for owner in ("mx.q.test", "api.vendor.test"):
        data += qname(owner) + pack("!HHIH", 1, 1, 60, 4) + b"\x01\x02\x03\x04"
    assert [(record.name, record.type, record.value) for record in parse_message(data).records] == [
        ("q.test", "MX", "1 mx.q.test"),
        ("mx.q.test", "A", "1.2.3.4"),
    ]


def test_a_damaged_record_leaves_question_and_neighbours() -> None:
    data = answer("q.test", (OWNER, 5, b"\xc0\xff"), (OWNER, 1, b"\x01\x02\x03\x04"), kind=1)
    message = parse_message(data)
    assert message.questions == [("q.test", None, "A")]
    assert [(record.type, record.value) for record in message.records] == [("CNAME", "\\# 2 c0ff"), ("A", "1.2.3.4")]
    assert message.damage.startswith("the data of a CNAME record: ")


def test_counts_that_lie_leave_what_is_there() -> None:
    data = bytearray(question("q.test"))
    data[4:8] = b"\xff\xff\xff\xff"
    message = parse_message(bytes(data))
    assert (message.questions, message.records) == ([("q.test", None, "A")], [])
    assert message.damage == "a name is cut"


def test_a_header_alone_or_less_is_no_question() -> None:
    assert parse_message(bytes(12)).questions == []
    for size in range(12):
        with pytest.raises(DnsFormatError):
            parse_message(bytes(size), cut=True)


def test_every_cut_of_a_message_gives_a_beginning_of_it() -> None:
    whole = answer("Q.test", (OWNER, 5, b"\x01b\xc0\x0c"), (b"\x01b" + OWNER, 1, b"\x01\x02\x03\x04"))
    full = parse_message(whole)
    assert full.damage == ""
    seen = 0
    for size in range(12, len(whole)):
        message = parse_message(whole[:size], cut=True)
        assert message.damage != ""
        assert message.questions in ([("q.test", "Q.test", "A")], [("q.test", "Q.test", "")], [(None, None, "")])
        assert message.records == full.records[: len(message.records)]
        seen += 1
    assert seen == len(whole) - 12
    assert parse_message(whole[:14], cut=True).questions == [(None, None, "")]


@given(st.binary(max_size=600), st.booleans())
def test_any_bytes_give_a_message_or_the_one_error(data: bytes, cut: bool) -> None:
    try:
        message = parse_message(data, cut=cut)
    except DnsFormatError:
        return
    for name, spelled, kind in message.questions:
        assert name is None or (name.isascii() and name.isprintable() and name == name.lower())
        assert spelled is None or spelled.lower() == name
        assert kind.isascii()
    for record in message.records:
        record.value.encode("utf-8")


def test_more_than_127_pointers_in_one_name_are_malformed() -> None:
    # at 23 a root, behind it 200 pointers, each to the one before
    chain = pack("!H", 0xC000 | 23) + b"".join(pack("!H", 0xC000 | (24 + 2 * index)) for index in range(199))
    data = pack("!HHHHHH", 1, 0x8180, 0, 2, 0, 0) + b"\0" + pack("!HHIH", 10, 1, 0, len(chain) + 1) + b"\0" + chain
    data += pack("!H", 0xC000 | (24 + 2 * 199)) + pack("!HHIH", 1, 1, 0, 4) + b"\x01\x02\x03\x04"
    assert parse_message(data).damage == "a name of more than 127 compression pointers"
