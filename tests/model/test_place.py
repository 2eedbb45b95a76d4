"""Places are written so that a person finds them."""

from __future__ import annotations

import pytest

from mcpdetect.model.place import Unit, Where


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Where("trace.log", 41), "trace.log:41"),
        (Where("trace.log", 41, 57), "trace.log:41+57"),
        (Where("capture.pcap", 12, unit="packet"), "capture.pcap#12"),
        (Where("mcp.jsonl", 3, unit="message"), "mcp.jsonl#3"),
        (Where("dns.log", 3, unit="record"), "dns.log#3"),
        (Where("a.elf", 0, unit="offset"), "a.elf@0"),
    ],
)
def test_a_place_is_written_with_its_unit(place: Where, text: str) -> None:
    assert str(place) == text


def test_equal_places_are_one_and_every_part_makes_a_difference() -> None:
    units: list[Unit] = ["line", "packet"]
    places = {Where(file, at, end, unit) for file in "ab" for at in (1, 2) for end in (None, 3) for unit in units}
    assert len(places) == 16
    assert Where("a", 1) == Where("a", 1)
    assert len({Where("a", 1), Where("a", 1)}) == 1
