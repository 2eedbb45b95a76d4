"""A zstandard file that was cut: what came before the cut is read, and the cut is told."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import zstandard

from mcpdetect.ingest.opener import observed, open_evidence

NOISE = hashlib.shake_256(b"noise").digest(300_000)
TEXT = b"".join(b"line %d of a log\n" % number for number in range(2000))
SKIPPABLE = b"\x53\x2a\x4d\x18\x05\x00\x00\x00abcde"
FORMS = [{"level": 3}, {"level": 3, "write_checksum": True}, {"level": 19, "write_content_size": False}]


def read(file: Path) -> tuple[bytes, str]:
    with open_evidence(file) as stream:
        return b"".join(iter(lambda: stream.read(65_536), b"")), stream.damaged


@pytest.mark.parametrize("form", range(len(FORMS)))
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, b"a" * 3_000_000], ids=["none", "x", "text", "noise", "same"])
def test_whole_frames_are_no_damage(data: bytes, form: int, tmp_path: Path) -> None:
    packed = zstandard.ZstdCompressor(**FORMS[form]).compress(data)  # type: ignore[arg-type]
    file = tmp_path / "x.zst"
    for blob, expected in ((packed, data), (packed * 2, data * 2), (packed + SKIPPABLE + packed, data * 2)):
        file.write_bytes(blob)
        assert read(file) == (expected, "")


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_a_cut_anywhere_gives_a_beginning_and_is_told(form: int, tmp_path: Path) -> None:
    packed = zstandard.ZstdCompressor(**FORMS[form]).compress(TEXT)  # type: ignore[arg-type]
    blob = packed + SKIPPABLE + packed
    between = {len(packed), len(packed) + len(SKIPPABLE)}
    file = tmp_path / "x.zst"
    cuts = [
        size for size in range(5, len(blob)) if size < 40 or size > len(blob) - 40 or size % 37 == 0 or size in between
    ]
    assert len(cuts) > 100
    for cut in cuts:
        file.write_bytes(blob[:cut])
        data, damaged = read(file)
        assert (TEXT * 2).startswith(data)
        expected = "" if cut in between else "the zstd stream broke: it ends in the middle of a frame"
        assert damaged == expected, cut


def test_what_follows_a_frame_and_is_none_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "x.zst"
    file.write_bytes(zstandard.compress(TEXT) + b"garbage")
    data, damaged = read(file)
    assert data == TEXT
    assert damaged.startswith("the zstd stream broke: ")


def test_observers_hear_of_every_byte_on_disk(tmp_path: Path) -> None:
    for name, blob in (("a.zst", zstandard.compress(NOISE)), ("b", NOISE)):
        file = tmp_path / name
        file.write_bytes(blob)
        heard: list[int] = []
        with observed(heard.append):
            read(file)
        read(file)
        assert sum(heard) == len(blob)
