"""Drafting labels: never over an existing one, never against what a control was built to be."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from controls import labelling
from controls.__main__ import main
from controls.catalog import Control, Variant, controls
from controls.labelling import draft, outcome
from mcpdetect.labels.loader import load_label
from mcpdetect.labels.model import ExpectedCheck

CORPUS = Path(__file__).parents[2] / "corpus"
CASE = "secrets/canary-read/c-passed"
READ = ExpectedCheck("detected", 1, ["strace.log.zst:17+20", "strace.log.zst:24"], "suspicious", None, [])


def planted() -> tuple[Control, Variant]:
    control = next(one for one in controls() if one.id == "secrets/canary-read")
    return control, control.variants["c-passed"]


def test_a_draft_is_a_label_that_loads(tmp_path: Path) -> None:
    control, variant = planted()
    assert draft(control, variant, CORPUS, tmp_path, "author of the control") == "written"
    label = load_label(tmp_path / "cases" / f"{CASE}.yaml", bundle=CORPUS / CASE)
    assert (label.truth, label.axes, label.reviewed.by) == ("fires", variant.axes, "author of the control")
    assert label.why == variant.why
    assert label.checks["secrets.canary-read"] == READ


def test_an_existing_label_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "cases" / f"{CASE}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("mine\n")
    control, variant = planted()
    assert draft(control, variant, CORPUS, tmp_path, "author of the control") == "exists"
    assert path.read_text() == "mine\n"


def test_a_check_that_says_otherwise_gets_no_draft(tmp_path: Path) -> None:
    control, variant = planted()
    wrong = dataclasses.replace(variant, truth="silent")
    assert draft(control, wrong, CORPUS, tmp_path, "author of the control") == (
        "secrets.canary-read says detected, by construction it is not_detected"
    )
    assert not (tmp_path / "cases").exists()


def test_a_control_without_a_check_gets_no_draft(tmp_path: Path) -> None:
    control, variant = planted()
    shutil.copytree(CORPUS / CASE, tmp_path / "corpus/secrets/other/c-passed")
    other = dataclasses.replace(control, id="secrets/other")
    found = draft(other, variant, tmp_path / "corpus", tmp_path / "labels", "author of the control")
    assert found == "no check secrets.other is installed"


def test_a_todo_keeps_the_right_verdict_and_says_why(tmp_path: Path) -> None:
    control, variant = planted()
    wrong = dataclasses.replace(variant, truth="silent")
    assert draft(control, wrong, CORPUS, tmp_path, "author of the control", "it reads names") == "written"
    label = load_label(tmp_path / "cases" / f"{CASE}.yaml", bundle=CORPUS / CASE)
    assert (label.truth, label.todo) == ("silent", "it reads names")
    assert label.checks["secrets.canary-read"] == ExpectedCheck("not_detected")


def test_a_todo_of_a_case_that_fires_names_what_is_missed(tmp_path: Path) -> None:
    found = next(one for one in controls() if one.id == "secrets/canary-read")
    missed = dataclasses.replace(found.variants["c-absent"], truth="fires")
    argv = (found, missed, CORPUS, tmp_path, "author of the control", "it cannot see this")
    needs = "a case that fires needs the places that its finding would name, any other has none"
    assert draft(*argv) == needs
    assert draft(*argv, ["strace.log:9"]) == "written"
    label = load_label(
        tmp_path / "cases/secrets/canary-read/c-absent.yaml", bundle=CORPUS / "secrets/canary-read/c-absent"
    )
    assert label.checks["secrets.canary-read"] == ExpectedCheck("detected", 1, ["strace.log:9"], "suspicious")
    silent = dataclasses.replace(planted()[1], truth="silent")
    assert draft(planted()[0], silent, CORPUS, tmp_path, "author", "why", ["strace.log:9"]) == needs


def test_a_check_that_is_right_needs_no_todo(tmp_path: Path) -> None:
    control, variant = planted()
    assert draft(control, variant, CORPUS, tmp_path, "author of the control", "nothing") == (
        "secrets.canary-read says detected, as it should: nothing is to do"
    )
    assert not (tmp_path / "cases").exists()


def test_places_are_sorted_by_number() -> None:
    places = ["a.log:41+57", "capture.pcap#12", "a.log:9", "a.log", "capture.pcap#3", "b@24"]
    assert sorted(places, key=labelling._by_number) == [
        "a.log",
        "a.log:9",
        "a.log:41+57",
        "b@24",
        "capture.pcap#3",
        "capture.pcap#12",
    ]


def test_an_outcome_names_every_installed_check() -> None:
    found = outcome(CORPUS / CASE)
    assert found["secrets.canary-read"] == READ
    assert found["mcp.exfil-instruction"] == ExpectedCheck("not_observable", limits=["not-watched"])


def test_the_command_line_drafts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["label", "--by", "reviewer", "--corpus", str(CORPUS), "--labels", str(tmp_path), CASE]
    assert [main(argv), main(argv)] == [0, 0]
    assert capsys.readouterr().out == f"{CASE}: written\n{CASE}: exists\n"
