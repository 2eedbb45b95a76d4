"""Errata and review records: strict forms, and the copy that the wheel carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpdetect.errors import LabelError
from mcpdetect.labels.errata import Erratum, load_errata, shipped_errata
from mcpdetect.labels.reviews import ReviewRecord, load_reviews

ROOT = Path(__file__).parents[2]

ERRATA = """\
schema: mcpdetect.errata/0
entries:
  - id: one
    check: a.b
    versions: [1, 2]
    verdicts: [not_detected]
    wrong: it saw nothing
    date: 2026-11-30
    without: [packets]
"""
REVIEW = """\
schema: mcpdetect.review/0
check: a.b
key: 0123456789abcdef
run: r
by: maintainer
date: 2026-11-30
decision: confirmed
why: it is so
"""


def test_the_shipped_errata_are_the_committed_ones() -> None:
    path = ROOT / "labels" / "errata.yaml"
    copy = ROOT / "mcpdetect" / "data" / "errata.yaml"
    assert copy.read_bytes() == path.read_bytes(), "copy labels/errata.yaml over mcpdetect/data/errata.yaml"
    assert shipped_errata() == load_errata(path)
    assert [entry.check for entry in shipped_errata()] == [
        "egress.direct-ip",
        "network.blocked",
        "mcp.exfil-instruction",
    ]


def test_an_erratum_is_read(tmp_path: Path) -> None:
    path = tmp_path / "errata.yaml"
    path.write_text(ERRATA)
    assert load_errata(path) == [
        Erratum("one", "a.b", [1, 2], ["not_detected"], "it saw nothing", "2026-11-30", ["packets"])
    ]


@pytest.mark.parametrize(
    ("old", "new", "place", "problem"),
    [
        ("[1, 2]", "[]", "line 5", "names none"),
        ("[1, 2]", "[one]", "line 5", "must be a whole number, 0 or more"),
        ("[not_detected]", "[error]", "line 6", "must be one of"),
        ("2026-11-30", "2026-13-30", "line 8", "is no ISO date"),
        ("errata/0", "errata/1", "line 1", "is not a list this version reads"),
        ("[packets]", "[wire]", "line 9", "must be one of"),
    ],
)
def test_a_mistake_in_the_errata_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, place: str, problem: str
) -> None:
    path = tmp_path / "errata.yaml"
    path.write_text(ERRATA.replace(old, new))
    with pytest.raises(LabelError) as caught:
        load_errata(path)
    assert caught.value.place == place
    assert caught.value.problem.startswith(problem)


def test_an_erratum_given_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "errata.yaml"
    path.write_text(ERRATA + ERRATA[ERRATA.index("  - id") :])
    with pytest.raises(LabelError, match="is given twice"):
        load_errata(path)


def test_records_are_read_from_a_file_and_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "README.md").write_text("# Reviews\n")
    path = tmp_path / "deep" / "one.yaml"
    path.write_text(REVIEW)
    record = ReviewRecord(
        "mcpdetect.review/0", "a.b", "0123456789abcdef", "r", "maintainer", "2026-11-30", "confirmed", "it is so"
    )
    assert load_reviews(path) == load_reviews(tmp_path) == {("r", "a.b", "0123456789abcdef"): record}


def test_two_records_about_one_finding_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(REVIEW)
    (tmp_path / "b.yaml").write_text(REVIEW.replace("confirmed", "dismissed"))
    with pytest.raises(LabelError) as caught:
        load_reviews(tmp_path)
    assert caught.value.file == str(tmp_path / "b.yaml")
    assert caught.value.place == "line 3"
    assert caught.value.problem == f"was reviewed in {tmp_path / 'a.yaml'} already"


def test_a_file_that_is_no_record_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("looks fine")
    with pytest.raises(LabelError, match="is no review record"):
        load_reviews(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "place", "problem"),
    [
        ("0123456789abcdef", "0123", "line 3", "is no key of a finding"),
        ("confirmed", "unsure", "line 7", "must be one of confirmed, dismissed"),
        ("2026-11-30", "yesterday", "line 6", "is no ISO date"),
        ("review/0", "review/1", "line 1", "is not a record this version reads"),
        ("why: it is so", "why: ''", "line 8", "must say something"),
    ],
)
def test_a_mistake_in_a_record_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, place: str, problem: str
) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(REVIEW.replace(old, new))
    with pytest.raises(LabelError) as caught:
        load_reviews(path)
    assert caught.value.place == place
    assert caught.value.problem.startswith(problem)
