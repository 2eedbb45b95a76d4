"""TLS hellos: names, records in pieces, contradictions, fingerprints."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from packets import client_hello as built
from packets import ech_filler, extension, pack, record, server_name

from mcpdetect.ingest.tls import Hello, client_hello, handshake_hello, looks_like_hello, unwrap_records

HELLO = built("exfil.example.test")
JA4 = "t13d010500_0f2cb44170f4_1b583af8cc09"


def test_a_hello_in_one_record_gives_its_name() -> None:
    assert client_hello(record(HELLO)) == Hello("exfil.example.test", [], False, True, JA4)


def test_a_hello_in_many_records_gives_its_name() -> None:
    assert client_hello(record(HELLO[:40]) + record(HELLO[40:])) == Hello("exfil.example.test", [], False, True, JA4)
    assert client_hello(b"".join(record(HELLO[at : at + 1]) for at in range(len(HELLO)))) == Hello(
        "exfil.example.test", [], False, True, JA4
    )


def test_a_hello_of_post_quantum_size_gives_its_name() -> None:
    large = built("pq.example.test", extension(51, pack("!HHH", 1220, 0x11EC, 1216) + b"Q" * 1216))
    hello = client_hello(record(large))
    assert hello is not None
    assert (hello.sni, hello.complete) == ("pq.example.test", True)


def test_filler_of_encrypted_hello_is_a_mark_beside_the_name() -> None:
    hello = client_hello(record(built("api.vendor.test", ech_filler())))
    assert hello is not None
    assert (hello.sni, hello.ech, hello.complete) == ("api.vendor.test", True, True)


def test_no_name_in_a_whole_hello_is_told_from_an_unknown_one() -> None:
    hello = client_hello(record(built(None)))
    assert hello is not None
    assert (hello.sni, hello.complete) == (None, True)
    cut = client_hello(record(HELLO)[:60])
    assert cut == Hello()


def test_every_cut_is_incomplete_and_never_another_name() -> None:
    whole = record(HELLO)
    assert client_hello(b"") is None
    seen = 0
    for size in range(1, len(whole)):
        hello = client_hello(whole[:size])
        assert hello is not None
        assert not hello.complete
        assert hello.sni in (None, "exfil.example.test")
        assert hello.ja4 is None
        seen += 1
    assert seen == len(whole) - 1


def test_protocols_are_listed_in_order() -> None:
    hello = client_hello(record(built("a.test", extension(16, b"\0\x0c\x02h2\x08http/1.1"))))
    assert hello is not None
    assert hello.alpn == ["h2", "http/1.1"]
    assert hello.ja4 == "t13d0106h2_0f2cb44170f4_1b583af8cc09"


def test_names_are_compared_in_lower_case_and_keep_odd_bytes() -> None:
    odd = built(None, server_name(b"A.\xffB\\.TEST."))
    hello = client_hello(record(odd))
    assert hello is not None
    assert hello.sni == "a.\\xffb\\\\.test"


def test_two_different_names_are_none() -> None:
    hello = client_hello(record(built("a.test", server_name(b"b.test"))))
    assert hello is not None
    assert (hello.sni, hello.complete, hello.ja4) == (None, False, None)


def test_the_fingerprint_ignores_filler_and_order() -> None:
    plain = extension(16, b"\0\x03\x02h2") + extension(23, b"")
    mixed = extension(0x1A1A, b"\0") + extension(23, b"") + extension(16, b"\0\x03\x02h2")
    one, two = client_hello(record(built("a.test", plain))), client_hello(record(built("b.test", mixed)))
    assert one is not None
    assert two is not None
    assert one.ja4 == two.ja4
    assert one.ja4 is not None
    assert one.ja4.startswith("t13d0107h2_")


def test_the_fingerprint_of_the_published_example() -> None:
    # FoxIO, "JA4: TLS Client Fingerprinting", technical details: t13d1516h2_8daaf6152771_e5627efa2ab1
    suites = bytes.fromhex("0a0a 1301 1302 1303 c02b c02f c02c c030 cca9 cca8 c013 c014 009c 009d 002f 0035")
    bodies = {
        b"\0\0": server_name(b"a.test")[4:],
        b"\0\x0d": bytes.fromhex("0010 0403 0804 0401 0503 0805 0501 0806 0601"),
        b"\0\x10": b"\0\x0c\x02h2\x08http/1.1",
        b"\0\x2b": b"\x02\x03\x04",
    }
    kinds = bytes.fromhex("1a1a 001b 0000 0033 0010 4469 0017 002d 000d 0005 0023 0012 002b ff01 000b 000a 0015 fafa")
    extensions = b""
    for at in range(0, len(kinds), 2):
        extensions += extension(int.from_bytes(kinds[at : at + 2], "big"), bodies.get(kinds[at : at + 2], b""))
    body = b"\x03\x03" + bytes(32) + b"\0" + pack("!H", len(suites)) + suites + b"\x01\0"
    body += pack("!H", len(extensions)) + extensions
    hello = handshake_hello(b"\x01" + pack("!I", len(body))[1:] + body, quic=False)
    assert hello is not None
    assert (hello.sni, hello.ja4) == ("a.test", "t13d1516h2_8daaf6152771_e5627efa2ab1")


def test_handshake_bytes_are_read_without_records() -> None:
    assert handshake_hello(HELLO) == Hello("exfil.example.test", [], False, True, "q" + JA4[1:])
    assert handshake_hello(HELLO, quic=False) == Hello("exfil.example.test", [], False, True, JA4)
    assert handshake_hello(b"\x02" + HELLO[1:]) is None
    assert handshake_hello(b"") is None
    assert handshake_hello(HELLO[:3]) == Hello()


def test_what_can_begin_a_hello() -> None:
    whole = record(HELLO)
    assert [looks_like_hello(whole[:size]) for size in (0, 1, 2, 3, 5, 6, 50)] == [False] + [True] * 6
    assert not looks_like_hello(b"\x17\x03\x03\0\x20")
    assert not looks_like_hello(b"\x16\x02")
    assert not looks_like_hello(b"\x16\x03\x01\0\0")
    assert not looks_like_hello(b"\x16\x03\x01\x02\0\x02")  # a ServerHello
    assert client_hello(b"GET / HTTP/1.1\r\n") is None


def test_unwrapping_says_how_many_bytes_are_missing_at_least() -> None:
    whole = record(HELLO)
    assert unwrap_records(whole) == (HELLO, 0)
    assert unwrap_records(whole[:-7]) == (HELLO[:-7], 7)
    assert unwrap_records(whole[:3])[1] == 6
    assert unwrap_records(record(HELLO[:40]) + b"\x17\x03\x03\0\x05hello") == (HELLO[:40], 0)


@given(st.binary(max_size=400))
def test_any_bytes_give_a_hello_or_none(data: bytes) -> None:
    client_hello(data)
    handshake_hello(data)
    client_hello(record(b"\x01" + data))


@given(st.integers(0, len(HELLO) - 1), st.integers(0, 255))
def test_one_wrong_byte_is_survived(at: int, value: int) -> None:
    hello = client_hello(record(HELLO[:at] + bytes([value]) + HELLO[at + 1 :]))
    assert hello is None or hello.sni is None or hello.sni.encode("utf-8")
