"""The list of blind spots: strict form, real controls, and residues that lower the claims they spoil."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcpdetect
from mcpdetect.errors import LabelError
from mcpdetect.labels.blindspots import BlindSpot, load_blindspots
from mcpdetect.labels.loader import load_label
from mcpdetect.labels.model import Label

ROOT = Path(__file__).parents[2]
CASES = [path.parent.relative_to(ROOT / "corpus").as_posix() for path in (ROOT / "corpus").rglob("manifest.json")]
CHECKS = list(mcpdetect.installed_detectors())
SPOTS = load_blindspots(ROOT / "labels" / "blindspots.yaml", checks=CHECKS, cases=CASES)

ENTRY = """\
schema: mcpdetect.blindspots/0
entries:
  - id: ring
    group: calls
    title: work goes through a ring
    blind: [syscalls]
    residue: the ring
    verdict: not_observable
    then: nothing can be denied
    checks: [a.b]
    controls: [a/b/c]
"""


def label_of(case: str) -> Label:
    return load_label(ROOT / "labels" / "cases" / f"{case}.yaml")


def test_the_list_is_long_and_most_of_it_is_shown_by_recorded_cases() -> None:
    assert len(SPOTS.entries) == 79
    assert len(SPOTS.shown) >= 47


@pytest.mark.parametrize("spot", SPOTS.shown, ids=lambda spot: str(spot.id))
def test_the_cases_of_an_entry_give_the_verdict_it_states(spot: BlindSpot) -> None:
    labels = [label_of(case) for case in spot.controls]
    # Each control says what the checks that are spoiled make of it, whichever check it was recorded for.
    assert all(set(spot.checks) & label.checks.keys() for label in labels if spot.checks)
    verdicts = {label.checks[label.subject].verdict for label in labels}
    # A check that another channel serves may find what one channel does not show.
    allowed = {
        "detected": {"detected", "not_observable", "not_detected"},
        "not_observable": {"not_observable", "detected", "not_detected"},
        "not_detected": {"not_detected", "detected"},
    }[spot.verdict]
    assert verdicts <= allowed
    if spot.verdict == "not_detected":
        assert "not_detected" in verdicts or spot.id == "order-in-results"


def test_a_residue_in_a_trace_is_said_beside_every_claim_it_spoils() -> None:
    told = 0
    for spot in SPOTS.shown:
        for case in spot.controls:
            label = label_of(case)
            if label.truth != "blind" or not spot.losses:
                continue
            result = mcpdetect.check(ROOT / "corpus" / case, checks=[label.subject]).checks[0]
            words = {limit.what for limit in result.limits if limit.hides}
            assert words & set(spot.losses), f"{spot.id}: {case} is lowered by {sorted(words)}"
            told += 1
    assert told >= 12


def test_a_residue_forbids_not_detected_for_every_check_it_spoils() -> None:
    seen = 0
    for spot in SPOTS.shown:
        for case in spot.controls:
            result = mcpdetect.check(ROOT / "corpus" / case)
            for check in result.checks:
                hiding = {limit.what for limit in check.limits if limit.hides} & set(spot.losses)
                if check.check in spot.checks and hiding:
                    assert check.verdict in ("not_observable", "detected"), f"{case}: {check.check}"
                    seen += 1
    assert seen > 20


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "blindspots.yaml"
    path.write_text(text, "utf-8")
    return path


def test_an_entry_is_read(tmp_path: Path) -> None:
    spots = load_blindspots(write(tmp_path, ENTRY), checks=["a.b"], cases=["a/b/c"])
    assert spots.entries == [
        BlindSpot(
            "ring",
            "calls",
            "work goes through a ring",
            ["syscalls"],
            "the ring",
            "not_observable",
            "nothing can be denied",
            ["a.b"],
            ["a/b/c"],
        )
    ]
    assert spots.shown == spots.entries


@pytest.mark.parametrize(
    ("old", "new", "place", "problem"),
    [
        ("[a.b]", "[a.c]", "line 10", "is no check"),
        ("[a/b/c]", "[a/b/d]", "line 11", "is no recorded case"),
        ("[a/b/c]", "[a/b/c, a/b/c]", "line 11", "is given twice"),
        ("blind: [syscalls]", "blind: []", "line 6", "names no channel"),
        ("blind: [syscalls]", "blind: [calls]", "line 6", "must be one of"),
        ("id: ring", "id: Ring", "line 3", "is no id"),
        ("spots/0", "spots/9", "line 1", "is not a list this version reads (mcpdetect.blindspots/0)"),
        ("    residue: the ring\n", "", "line 3", "the key 'residue' is missing"),
        ("    residue:", "    residues:", "line 7", "unknown key"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, place: str, problem: str) -> None:
    with pytest.raises(LabelError) as caught:
        load_blindspots(write(tmp_path, ENTRY.replace(old, new)), checks=["a.b"], cases=["a/b/c"])
    assert caught.value.place == place
    assert caught.value.problem.startswith(problem)


def test_an_id_given_twice_is_an_error(tmp_path: Path) -> None:
    again = ENTRY[ENTRY.index("  - id") :]
    with pytest.raises(LabelError) as caught:
        load_blindspots(write(tmp_path, ENTRY + again), checks=["a.b"], cases=["a/b/c"])
    assert (caught.value.place, caught.value.problem, caught.value.value) == ("line 12", "is given twice", "ring")
