"""A planted value is met in every form in which it may leave, and in no other text."""

import base64
import codecs
import gzip
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mcpdetect.correlate.disguises import FORMS, Disguises, Sighting

VALUE = b"npm_CANARY-NPMRC-8b5d8044"
LOOK = Disguises([("npmrc", VALUE)])
FORM: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "as it is": ("plain", bytes),
    "base64": ("base64", base64.b64encode),
    "base64, one byte before": ("base64", lambda value: base64.b64encode(b"x" + value + b"yy")),
    "base64, two bytes before": ("base64", lambda value: base64.b64encode(b"xy" + value + b"y")),
    "base64 in lines": ("base64", lambda value: base64.encodebytes(b"a" * 50 + value)),
    "base64url": ("base64", lambda value: base64.urlsafe_b64encode(b"\xff\xfe" + value)),
    "base32": ("base32", base64.b32encode),
    "base32 in small letters, four bytes before": ("base32", lambda value: base64.b32encode(b"abcd" + value).lower()),
    "hexadecimal": ("hex", lambda value: value.hex().encode()),
    "hexadecimal with colons": ("hex", lambda value: value.hex(":").upper().encode()),
    "percent": ("percent", lambda value: b"".join(b"%%%02X" % byte for byte in value)),
    "percent where needed": ("percent", lambda value: value.replace(b"_", b"%5F").replace(b"-", b"%2d")),
    "backwards": ("reversed", lambda value: value[::-1]),
    "rot13": ("rot13", lambda value: codecs.encode(value.decode(), "rot13").encode()),
    "utf-16": ("utf-16", lambda value: value.decode().encode("utf-16-le")),
    "escapes of JSON": ("escaped", lambda value: b"".join(b"\\u%04x" % byte for byte in value)),
    "escapes of HTML": ("escaped", lambda value: b"".join(b"&#%d;" % byte for byte in value)),
    "letters with dots": ("spaced", lambda value: b".".join(bytes([byte]) for byte in value)),
    "xor": ("xor", lambda value: bytes(byte ^ 0x5A for byte in value)),
    "gzip": ("packed", lambda value: gzip.compress(b"a" * 50 + value, mtime=0)),
    "zlib": ("packed", lambda value: zlib.compress(b"b" * 50 + value * 2)),
    "zstd": ("packed", lambda value: zstandard.compress(b"c" * 500 + value[:12] + b"d" * 500 + value)),
    "gzip in base64": ("nested", lambda value: base64.b64encode(gzip.compress(b"e" * 50 + value, mtime=0))),
    "base64 twice": ("nested", lambda value: base64.b64encode(base64.b64encode(value))),
    "xor in base64": ("nested", lambda value: base64.b64encode(bytes(byte ^ 0x11 for byte in value))),
    "base64 backwards": ("nested", lambda value: base64.b64encode(value)[::-1]),
    "hexadecimal in base64": ("nested", lambda value: base64.b64encode(value.hex().encode())),
}


@pytest.mark.parametrize(("form", "made"), FORM.values(), ids=list(FORM))
def test_a_form_is_met_amid_other_bytes(form: str, made: Callable[[bytes], bytes]) -> None:
    data = b"POST /x?\x00\xff " + made(VALUE) + b" \x01 tail of the message"
    assert [(one.name, one.form) for one in LOOK.search(data)] == [("npmrc", form)]


def test_every_form_that_is_promised_has_a_case() -> None:
    assert {form for form, _ in FORM.values()} == set(FORMS)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        VALUE[:-1],
        VALUE[1:],
        VALUE.upper(),
        base64.b64encode(VALUE[:-2]),
        b"npm_CANARY-NPMRC-00000000",
        VALUE.hex()[:-2].encode(),
    ],
    ids=["nothing", "cut", "cut in front", "other case", "cut and encoded", "another tag", "cut and hexadecimal"],
)
def test_what_is_not_the_whole_value_is_not_met(data: bytes) -> None:
    assert list(LOOK.search(data)) == []


def test_the_place_of_a_plain_value_is_told_and_each_value_once() -> None:
    both = Disguises([("a", VALUE), ("b", b"another-secret-value")])
    data = b"0123 " + VALUE + b" another-secret-value " + VALUE
    assert list(both.search(data)) == [Sighting("a", "plain", 5), Sighting("b", "plain", 31)]


def test_a_short_value_is_left_out_and_said_so() -> None:
    few = Disguises([("tiny", b"1234567"), ("enough", b"12345678")])
    assert (few.left_out, bool(few), bool(Disguises([("tiny", b"1")]))) == (["tiny"], True, False)


def test_layers_are_counted() -> None:
    data = VALUE
    for _ in range(5):
        data = base64.b64encode(data)
    assert list(LOOK.search(data)) == []
    assert [one.form for one in LOOK.search(base64.b64encode(base64.b64encode(base64.b64encode(VALUE))))] == ["nested"]


@given(st.binary(max_size=2000))
def test_any_bytes_are_searched(data: bytes) -> None:
    assert all(0 <= one.at <= len(data) for one in LOOK.search(data))
    assert [one.name for one in LOOK.search(data + VALUE)] == ["npmrc"]


def test_the_place_of_spaced_letters_is_told_and_other_marks_do_not_count() -> None:
    for lead in (b"", b"x"):
        data = lead + b"k " + b".".join(bytes([byte]) for byte in VALUE)
        assert list(LOOK.search(data)) == [Sighting("npmrc", "spaced", len(lead) + 2)]
    assert list(LOOK.search(b"#".join(bytes([byte]) for byte in VALUE))) == []
    blank = Disguises([("blank", b"pass word 1")])
    assert [one.form for one in blank.search(b"p.a.s.s. .w.o.r.d. .1")] == ["spaced"]
    twice = b".".join(bytes([byte]) for byte in b"12345678") + b"#" + b".".join(bytes([byte]) for byte in b"12345678")
    near = Disguises([("near", b"12345678")])
    assert [one.at for one in near.search(b"1#2#3#4#5#6#7#8 " + twice)] == [16]


@pytest.mark.parametrize(
    ("written", "form"),
    [
        (rb"\\x6e\\x70\\x6d\\x5f\\x43\\x41\\x4e\\x41\\x52\\x59", "hex"),
        (rb"\x6e\x70\x6d\x5f\x43\x41\x4e\x41\x52\x59", "hex"),
        (b"0x6e, 0x70, 0x6d, 0x5f, 0x43, 0x41, 0x4e, 0x41, 0x52, 0x59", "hex"),
        (b"%6e%70%6D%5f%43%41%4e%41%52%59", "percent"),
        (rb"bnBtX0NB\nTkFSWQ", "base64"),
        (rb"bnBtX0NB\\r\\nTkFSWQ", "base64"),
        (b"bnBtX0NB\r\nTkFSWQ", "base64"),
        (rb"&#x6e;&#x70;&#109;&#95;&#x43;&#65;&#78;&#65;&#82;&#89;", "escaped"),
        (rb"\u006e\u0070\u006d_CANARY", "escaped"),
        (b"6E:70:6D:5F:43:41:4E:41:52:59", "hex"),
    ],
)
def test_spellings_of_one_value(written: bytes, form: str) -> None:
    assert [one.form for one in Disguises([("k", b"npm_CANARY")]).search(b"> " + written + b" <")] == [form]


def test_a_short_packed_block_may_hold_a_longer_value() -> None:
    value = b"ab" * 40
    packed = base64.b64encode(zlib.compress(value))
    assert len(packed) < len(value)
    assert [one.form for one in Disguises([("k", value)]).search(packed)] == ["nested"]
