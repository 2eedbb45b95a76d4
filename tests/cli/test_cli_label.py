"""``mcpdetect label``: drafts, checks, counts and reviews; comments survive."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mcpdetect.cli.main import main
from mcpdetect.errors import LabelError
from mcpdetect.labels.loader import load_label
from mcpdetect.labels.writer import add, edit

ROOT = Path(__file__).parents[2]
CASE = "egress/direct-ip/c-tcp4"


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    shutil.copytree(ROOT / "corpus" / CASE, tmp_path / "corpus" / CASE)
    (tmp_path / "labels" / "cases").mkdir(parents=True)
    return ["--corpus", str(tmp_path / "corpus"), "--labels", str(tmp_path / "labels")]


def draft(corpus: list[str], *more: str) -> int:
    return main(["label", "draft", CASE, "--why", "it connects", "--by", "tester", *corpus, *more])


def test_a_draft_says_what_the_committed_label_says(
    tmp_path: Path, corpus: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert draft(corpus, "--axis", "runtime=c", "--axis", "family=ipv4") == 0
    path = tmp_path / "labels" / "cases" / f"{CASE}.yaml"
    assert capsys.readouterr().out == f"{path}\n"
    made, known = load_label(path), load_label(ROOT / "labels" / "cases" / f"{CASE}.yaml")
    assert made.axes == {"runtime": "c", "family": "ipv4"}
    assert (made.truth, made.evidence, made.provenance) == (known.truth, known.evidence, known.provenance)
    for check, wanted in known.checks.items():
        assert sorted(made.checks[check].places) == sorted(wanted.places)
        assert (made.checks[check].verdict, made.checks[check].level) == (wanted.verdict, wanted.level)


def test_a_draft_never_overwrites(tmp_path: Path, corpus: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert draft(corpus) == 0
    path = tmp_path / "labels" / "cases" / f"{CASE}.yaml"
    before = path.read_bytes()
    assert draft(corpus) == 4
    assert "exists already" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_wrong_verdict_is_drafted_with_what_is_right_and_a_todo(tmp_path: Path, corpus: list[str]) -> None:
    assert draft(corpus, "--truth", "silent") == 0
    label = load_label(tmp_path / "labels" / "cases" / f"{CASE}.yaml")
    assert (label.truth, label.checks["egress.direct-ip"].verdict) == ("silent", "not_detected")
    assert label.todo == "egress.direct-ip says detected today: it connects"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["egress/direct-ip/nothing"], 4, "there is no bundle here"),
        ([CASE, "--axis", "runtime"], 2, "'runtime' is not NAME=VALUE"),
        ([CASE, "--truth", "wrong"], 2, "'wrong' is not one of"),
    ],
)
def test_a_draft_that_cannot_be_is_told(
    corpus: list[str], arguments: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["label", "draft", *arguments, "--why", "so", "--by", "x", *corpus]) == code
    assert told in capsys.readouterr().err


def test_check_counts_what_belongs_together_and_names_what_does_not(
    tmp_path: Path, corpus: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["label", "check", *corpus]) == 4
    assert "no label says what this bundle shows" in capsys.readouterr().err
    draft(corpus)
    capsys.readouterr()
    assert main(["label", "check", *corpus]) == 0
    assert capsys.readouterr().out == "1 label, every one with its bundle\n"
    with (tmp_path / "corpus" / CASE / "manifest.json").open("a") as stream:
        stream.write("\n")
    assert main(["label", "check", *corpus]) == 4
    assert "the bundle's file has sha256" in capsys.readouterr().err


def test_stats_count_truths_and_axes(corpus: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    draft(corpus, "--axis", "runtime=c")
    capsys.readouterr()
    assert main(["label", "stats", *corpus]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["check", "fires", "silent", "blind", "todo", "axes"]
    assert lines[1] == ["drift.behaviour", "0", "0", "0", "0"]
    assert lines[2] == ["egress.direct-ip", "1", "0", "0", "0", "runtime", "1"]
    assert lines[-1] == ["secrets.canary-read", "0", "0", "0", "0"]


def test_a_review_pins_the_bundle_again_and_keeps_comments(tmp_path: Path, corpus: list[str]) -> None:
    draft(corpus)
    path = tmp_path / "labels" / "cases" / f"{CASE}.yaml"
    path.write_text("# looked at twice\n" + path.read_text().replace("truth: fires", "truth: fires  # it does"))
    with (tmp_path / "corpus" / CASE / "manifest.json").open("a") as stream:
        stream.write("\n")
    with pytest.raises(LabelError):
        load_label(path, bundle=tmp_path / "corpus" / CASE)
    assert main(["label", "review", CASE, "--by", "second reader", *corpus]) == 0
    label = load_label(path, bundle=tmp_path / "corpus" / CASE)
    assert label.reviewed.by == "second reader"
    lines = path.read_text().splitlines()
    assert lines[0] == "# looked at twice"
    assert "truth: fires  # it does" in lines


def test_an_edit_of_what_is_not_there_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: {b: 1}\n")
    with pytest.raises(LabelError, match=r"has no a\.c"):
        edit(path, {("a", "c"): "2"})
    with pytest.raises(LabelError, match=r"has no x\.c"):
        edit(path, {("x", "c"): "2"})
    assert path.read_text() == "a: {b: 1}\n"
    path.write_text("a: [")
    with pytest.raises(LabelError, match="cannot be edited"):
        edit(path, {("a",): "2"})


COMMENTED = """\
# who, when, and a very long remark that no tool may break into lines, since people wrote it as they read it
schema: mcpdetect.label/0
"""


def test_pinning_adds_limits_and_explanations_and_changes_nothing_else(
    tmp_path: Path, corpus: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels" / "cases" / f"{CASE}.yaml"
    path.parent.mkdir(parents=True)
    pinned = (ROOT / "labels" / "cases" / f"{CASE}.yaml").read_text().replace("schema: mcpdetect.label/0\n", COMMENTED)
    bare = pinned.replace("    explained: []\n", "").replace(", limits: [not-configured]", "")
    assert len(bare) < len(pinned)
    path.write_text(bare)
    assert main(["label", "pin", *corpus]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text() == pinned
    # What is pinned stays as it is.
    assert main(["label", "pin", CASE, *corpus]) == 0
    assert capsys.readouterr().out == ""
    assert path.read_text() == pinned
    assert main(["label", "pin", "a/b/c", *corpus]) == 2


def test_nothing_is_pinned_of_a_case_that_comes_out_otherwise(
    tmp_path: Path, corpus: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels" / "cases" / f"{CASE}.yaml"
    path.parent.mkdir(parents=True)
    text = (ROOT / "labels" / "cases" / f"{CASE}.yaml").read_text()
    wrong = text.replace("limits: [not-configured]", "limits: [io_uring]")
    assert wrong != text
    path.write_text(wrong)
    assert main(["label", "pin", *corpus]) == 4
    assert "does not come out as labelled" in capsys.readouterr().err
    assert path.read_text() == wrong


def test_a_list_is_added_only_where_it_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: {b: 1} # kept\n")
    add(path, {("a", "c"): ["x", "y"]})
    assert path.read_text() == "a: {b: 1, c: [x, y]} # kept\n"
    with pytest.raises(LabelError, match=r"has a\.c already"):
        add(path, {("a", "c"): ["z"]})
    with pytest.raises(LabelError, match="has no b"):
        add(path, {("b", "c"): ["z"]})
    assert path.read_text() == "a: {b: 1, c: [x, y]} # kept\n"
