"""Width, wrapping, columns, times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpdetect.report.layout import Style, columns, counted, fit, moment, span, text_width, wrapped


def test_width_counts_terminal_columns() -> None:
    assert text_width("abc") == 3
    assert text_width("漢字") == 4
    assert text_width("e\u0301") == 1


def test_wrapping_indents_what_follows() -> None:
    assert wrapped("one two three four", 12, "- ") == ["- one two", "  three four"]


def test_a_word_longer_than_the_line_stays_whole() -> None:
    assert wrapped(f"see {'x' * 30} now", 12) == ["see", "x" * 30, "now"]


@given(st.text(alphabet="ab 漢", max_size=80), st.integers(min_value=1, max_value=40))
def test_wrapping_loses_nothing_and_keeps_the_width(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(text_width(line) <= width or " " not in line for line in lines)


def test_columns_are_padded_to_the_widest_cell() -> None:
    assert columns([["a", "1", "x"], ["漢字", "22", "y"]], right=(1,)) == [
        ["a     ", " 1  ", "x"],
        ["漢字  ", "22  ", "y"],
    ]


def test_an_empty_column_takes_no_room() -> None:
    assert columns([["a", "", "x"], ["b", "", "y"]]) == [["a  ", "", "x"], ["b  ", "", "y"]]


def test_a_cell_beyond_its_limit_is_cut() -> None:
    assert columns([["abcdef", "x"]], limits=(4,)) == [["abc…  ", "x"]]
    assert fit("漢字漢字", 5) == "漢字…"
    assert fit("abc", 3) == "abc"


def test_no_rows_give_no_columns() -> None:
    assert columns([]) == []


def test_counts() -> None:
    assert [counted(n, "line") for n in (0, 1, 1204)] == ["0 lines", "1 line", "1,204 lines"]
    assert counted(2, "query", "queries") == "2 queries"


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0 ms"),
        (38_400_000, "38.4 ms"),
        (11_200_000_000, "11.2 s"),
        (250_000_000_000, "4 min 10 s"),
        (7_500_000_000_000, "2 h 5 min"),
        (-2_000_000_000, "-2.0 s"),
    ],
)
def test_lengths_of_time(length: int, text: str) -> None:
    assert span(length) == text


def test_moments() -> None:
    assert moment(1_796_041_192_443_879_000) == "2026-11-30 12:19:52Z"
    assert moment(1_796_041_192_443_879_000, day=False) == "12:19:52.443879Z"


def test_a_time_no_calendar_holds() -> None:
    assert moment(10**30) == f"{10**21} s"
    assert moment(-(10**30)) == f"-{10**21} s"


def test_paint_only_where_colour_is_wanted() -> None:
    assert Style().paint("x", "grave") == "x"
    assert Style(color=True).paint("x", "grave") == "\x1b[1;31mx\x1b[0m"
    assert Style(color=True).paint("", "grave") == ""


def test_plain_output_replaces_its_symbols_and_escapes_the_rest() -> None:
    assert Style(plain=True).encode("● ○ × · … é") == "* - x - ... \\xe9"
    assert Style().encode("●é") == "●é"
