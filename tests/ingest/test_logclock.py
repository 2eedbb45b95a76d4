"""Time stamps of logs: what they count from, and what a declared window makes of those without year or zone."""

from __future__ import annotations

import pytest

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.logclock import LogClock, Stamp, stamp_at

SECOND = 10**9
AT = 1796048410 * SECOND  # 2026-11-30T14:20:10Z


def local(text: str) -> Stamp:
    stamp = stamp_at(text.encode())
    assert stamp is not None
    return stamp


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("2026-11-30T14:20:10Z x", Stamp("epoch", AT, 20)),
        ("2026-11-30T14:20:10.123456789+00:00", Stamp("epoch", AT + 123456789, 35)),
        ("2026-11-30T14:20:10.1234567891234Z", Stamp("epoch", AT + 123456789, 34)),
        ("2026-11-30 15:20:10,5 +01:00", Stamp("epoch", AT + SECOND // 2, 28)),
        ("2026-11-30T09:50:10-0430", Stamp("epoch", AT, 24)),
        ("2026-11-30T14:20:10", Stamp("local", AT, 19)),
        ("2026-11-30T14:20:10 CET", Stamp("local", AT, 19)),
        ("2026-11-30T14:20:60Z", Stamp("epoch", AT + 49 * SECOND, 20)),
        ("2026-02-30T14:20:10Z", Stamp("vague", 0, 20)),
        ("2026-11-30T24:20:10", Stamp("vague", 0, 19)),
        ("30-Nov-2026 14:20:10.944 client", Stamp("local", AT + 944 * 10**6, 24)),
        ("Nov 30 14:20:10 h", Stamp("local", 1732976410 * SECOND, 15, yearless=True)),
        ("[Mon Nov 30 14:20:10 2026] x", Stamp("local", AT, 26)),
        ("[1796048410] unbound", Stamp("epoch", AT, 12)),
        ("1796048410.548221 h", Stamp("epoch", AT + 548221000, 17)),
        ("[  880.640080] x", Stamp("boot", 880640080000, 14)),
        ("[12345.000001 <    0.000002>]", Stamp("boot", 12345000001000, 29)),
        ("4,1049,2240284883,-;x", Stamp("boot", 2240284883000, 20)),
        ("[Nov30 14:20] x", Stamp("vague", 0, 13)),
        ("[  +0.000171] x", Stamp("vague", 0, 13)),
    ],
)
def test_every_form_of_a_stamp(text: str, stamp: Stamp) -> None:
    assert stamp_at(text.encode()) == stamp


@pytest.mark.parametrize("text", ["", "x", "[", "[x] ", "Nov", "Foo 30 14:20:10 ", "12", "1796048410 x", "2026-11-30"])
def test_other_texts_are_no_stamps(text: str) -> None:
    assert stamp_at(text.encode()) is None


def window(begin: str, end: str) -> Declared:
    return Declared(begin_ns=local(begin + "Z").ns, end_ns=local(end + "Z").ns)


def test_the_year_turns_within_a_log() -> None:
    clock = LogClock(window("2026-12-31T23:59:50", "2027-01-01T00:01:00"), local("Dec 31 23:59:59 "))
    assert clock.clock == "epoch"
    assert clock.time(local("Dec 31 23:59:59 ")) == local("2026-12-31T23:59:59Z").ns
    assert clock.time(local("Jan  1 00:00:01 ")) == local("2027-01-01T00:00:01Z").ns
    assert clock.time(local("Jan  1 00:00:00 ")) == local("2027-01-01T00:00:00Z").ns


def test_a_zone_may_put_the_first_line_into_another_year() -> None:
    clock = LogClock(window("2026-12-31T23:30:00", "2026-12-31T23:40:00"), local("Jan  1 00:35:00 "))
    assert clock.time(local("Jan  1 00:35:00 ")) == local("2026-12-31T23:35:00Z").ns
    assert clock.notes()[0][1] == "its times have no zone: UTC+01:00 puts the first line into the declared window"


def test_of_several_zones_the_plainest_is_taken() -> None:
    wide = window("2026-11-30T10:00:00", "2026-11-30T16:00:00")
    for text, zone in (("Nov 30 14:20:10 ", "+00:00"), ("Nov 30 17:20:10 ", "+02:00"), ("Nov 30 09:50:10 ", "-01:00")):
        clock = LogClock(wide, local(text))
        assert clock.notes()[0][1] == f"its times have no zone: UTC{zone} puts the first line into the declared window"
    narrow = window("2026-11-30T14:20:00", "2026-11-30T14:21:00")
    for text, zone in (("Nov 30 20:05:10 ", "+05:45"), ("Nov 30 04:50:10 ", "-09:30"), ("Dec  1 04:20:10 ", "+14:00")):
        clock = LogClock(narrow, local(text))
        assert clock.notes()[0][1] == f"its times have no zone: UTC{zone} puts the first line into the declared window"


@pytest.mark.parametrize(
    "declared", [Declared(), Declared(begin_ns=5), window("2020-01-01T00:00:00", "2020-01-01T00:01:00")]
)
def test_without_a_window_that_fits_a_local_time_is_none(declared: Declared) -> None:
    clock = LogClock(declared, local("Nov 30 14:20:10 "))
    assert (clock.clock, clock.time(local("Nov 30 14:20:10 ")), clock.span, clock.notes()) == (
        "none",
        None,
        (None, None),
        [],
    )


def test_the_29th_of_february_is_a_day_of_leap_years_only() -> None:
    clock = LogClock(window("2028-02-29T10:00:00", "2028-02-29T10:01:00"), local("Feb 29 10:00:30 "))
    assert clock.time(local("Feb 29 10:00:30 ")) == local("2028-02-29T10:00:30Z").ns
    clock = LogClock(window("2026-03-01T10:00:00", "2026-03-01T10:01:00"), local("Feb 29 10:00:30 "))
    assert clock.time(local("Feb 29 10:00:30 ")) == local("2026-03-01T10:00:30Z").ns


def test_a_stamp_of_another_sort_or_beyond_64_bits_is_no_time() -> None:
    clock = LogClock(Declared(), Stamp("epoch", 5, 0))
    assert clock.time(Stamp("epoch", 7, 0)) == 7
    assert clock.time(Stamp("boot", 9, 0)) is None
    assert clock.time(None) is None
    assert clock.time(Stamp("epoch", 1 << 63, 0)) is None
    assert clock.time(Stamp("epoch", -1, 0)) is None
    assert (clock.span, clock.notes()) == ((7, 7), [("no-clock", "lines have no time on the clock of this log", 4)])
