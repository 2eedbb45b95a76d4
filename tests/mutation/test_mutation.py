"""The mutation run: which faults it plants, that labels tell them, and that its committed results are current."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kills import ROOT, Lab, parsed
from mutants import essence, mutants
from run_mutants import OUTPUT, SCHEMA, checks_of, fingerprint, targets

from mcpdetect.engine.discovery import detectors
from mcpdetect.score.corpus import Case, Corpus, load_cases

REFRESH = "measure again: python tests/mutation/run_mutants.py --changed"

SOURCE = '''
"""Doc."""
LIMIT = 3
NAMES = ("plain", "some prose")


def look(a: int, b: str = "x") -> bool:
    """Doc."""
    if a < LIMIT and not b:
        say("why", reason="because")
        return True
    return f"{a} in b" == b
'''


def planted(source: str) -> list[str]:
    return [f"{one.line} {one.kind}: {one.before} -> {one.after}" for one in mutants(ast.parse(source))]


def test_the_faults_of_a_module_are_these() -> None:
    assert planted(SOURCE) == [
        "3 constant: 3 -> 2",
        "3 constant: 3 -> 4",
        "4 constant: 'plain' -> 'plain~'",
        "7 constant: 'x' -> 'x~'",
        "9 comparison: a < LIMIT -> a <= LIMIT",
        "9 condition: a < LIMIT and (not b) -> False",
        "9 condition: a < LIMIT and (not b) -> True",
        "9 logic: a < LIMIT and (not b) -> a < LIMIT",
        "9 logic: a < LIMIT and (not b) -> a < LIMIT or not b",
        "9 logic: a < LIMIT and (not b) -> not b",
        "9 logic: not b -> b",
        "10 statement: say('why', reason='because') -> pass",
        "10 constant: 'why' -> 'why~'",
        "11 constant: True -> False",
        "12 comparison: f'{a} in b' == b -> f'{a} in b' != b",
    ]


def test_a_planted_fault_is_in_the_code() -> None:
    tree = ast.parse(SOURCE)
    fault = next(one for one in mutants(tree) if one.after == "a <= LIMIT")
    fault.plant()
    assert "if a <= LIMIT and (not b):" in ast.unparse(tree)
    assert (fault.function, fault.span) == ("look", (9, 9))


def test_comments_and_docstrings_change_nothing_that_is_hashed() -> None:
    other = SOURCE.replace('"""Doc."""', '"""Another."""').replace("LIMIT = 3", "LIMIT = 3  # three")
    assert essence(other) == essence(SOURCE)
    assert essence(SOURCE.replace("LIMIT = 3", "LIMIT = 4")) != essence(SOURCE)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases(Corpus("corpus", ROOT / "corpus", ROOT / "labels"), list(detectors()))


def test_labels_tell_a_fault_from_the_real_code(cases: list[Case]) -> None:
    path = ROOT / "mcpdetect" / "detectors" / "egress_direct_ip.py"
    few = [case for case in cases if case.label.case in ("egress/direct-ip/c-tcp4", "egress/direct-ip/python-named")]
    assert len(few) == 2
    lab = Lab(few)
    assert lab.baseline(["egress.direct-ip"]) == {}
    lab.prepare()
    tree, found = parsed(path)
    fault = next(one for one in found if one.function == "finish" and one.kind == "comparison")
    assert lab.kill(path, tree, fault, few, ["egress.direct-ip"]).by == {
        "egress/direct-ip/c-tcp4": ["egress.direct-ip"]
    }
    # Nothing of it is left in this process.
    assert lab.baseline(["egress.direct-ip"]) == {}


def test_the_lines_that_a_case_runs_are_known(cases: list[Case]) -> None:
    path = ROOT / "mcpdetect" / "detectors" / "egress_direct_ip.py"
    few = [case for case in cases if case.label.case == "egress/direct-ip/c-tcp4"]
    (lines,) = Lab(few).lines([path], ["egress.direct-ip"]).values()
    numbers = lines[str(path)]
    assert len(numbers) > 20
    assert max(numbers) <= path.read_text().count("\n")


def test_every_check_rests_on_its_own_module_and_on_code_that_others_share() -> None:
    found = {path.name: checks_of(path) for path in targets()}
    assert found["egress_direct_ip.py"] == ["egress.direct-ip"]
    assert {"egress.direct-ip", "network.blocked"} <= set(found["contacts.py"])
    assert all(found.values())


def test_the_committed_results_of_every_detector_are_current(cases: list[Case]) -> None:
    data = json.loads(OUTPUT.read_text("utf-8"))
    assert data["schema"] == SCHEMA
    rows = {row["module"]: row for row in data["rows"]}
    judged = [case for case in cases if case.label.todo is None]
    own = [path for path in targets() if path.parent.name == "detectors"]
    assert len(own) == len(detectors())
    stale = [
        name
        for path in own
        for name in [path.relative_to(ROOT).as_posix()]
        if name not in rows or rows[name]["inputs"] != fingerprint(path, judged)
    ]
    assert stale == [], REFRESH


def test_the_sums_are_those_of_the_rows() -> None:
    data = json.loads(OUTPUT.read_text("utf-8"))
    rows = data["rows"]
    assert data["summary"]["mutants"] == sum(row["mutants"] for row in rows) > 1000
    assert data["summary"]["killed"] == sum(row["killed"] for row in rows)
    for row in rows:
        assert row["mutants"] - row["killed"] == len(row["survivors"])
        assert row["unreached"] == sum(1 for one in row["survivors"] if not one["ran"])
        assert sum(row["how"].values()) == row["mutants"]
    for check, one in data["summary"]["checks"].items():
        assert one["killed"] == sum(row["checks"].get(check, 0) for row in rows)
