"""Bytes become text without loss, and any text becomes harmless to show."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpdetect.model.text import bytes_of, shown, text_of


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain", "plain"),
        ("é".encode(), "é"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"\\xff", "\\\\xff"),
        (b"a\\b\xe9", "a\\\\b\\xe9"),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        (b"\x00\n\x1b", "\x00\n\x1b"),
        (b"", ""),
    ],
)
def test_bytes_become_unambiguous_text(raw: bytes, text: str) -> None:
    assert text_of(raw) == text
    assert bytes_of(text) == raw


@given(st.binary())
@example(b"\\\xff\\\\x41")
def test_the_bytes_can_always_be_had_again_and_the_text_is_well_formed(raw: bytes) -> None:
    text = text_of(raw)
    assert bytes_of(text) == raw
    assert text.encode("utf-8").decode("utf-8") == text


@given(st.binary(), st.binary())
def test_different_bytes_never_share_a_text(one: bytes, other: bytes) -> None:
    assert (text_of(one) == text_of(other)) is (one == other)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain text é 漢", "plain text é 漢"),
        ("a\nb\tc\r", "a\\x0ab\\x09c\\x0d"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u200bb\u2060c\ufeff", "a\\u200bb\\u2060c\\ufeff"),
        ("\U000e0041\U000e0042", "\\U000e0041\\U000e0042"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ud800", "\\ud800"),
        ("x\ufe0f", "x\\ufe0f"),
    ],
)
def test_what_acts_or_hides_is_written_out(text: str, safe: str) -> None:
    assert shown(text) == safe


@pytest.mark.parametrize(("limit", "cut"), [(0, "abcdef"), (6, "abcdef"), (5, "abcd…"), (1, "…")])
def test_a_limit_cuts_and_says_so(limit: int, cut: str) -> None:
    assert shown("abcdef", limit) == cut


@given(st.text(alphabet=st.characters()))
def test_shown_text_has_no_control_and_is_encodable(text: str) -> None:
    safe = shown(text)
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in safe)
    assert safe.encode("utf-8").decode("utf-8") == safe
