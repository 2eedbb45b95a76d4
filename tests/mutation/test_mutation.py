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
from run_mutants import OUTPUT, SCHEMA, checks_of, load_rows, main, stale, targets

from mcpdetect.engine.discovery import detectors
from mcpdetect.score.corpus import Case, Corpus, load_cases

REFRESH = "measure again: python tests/mutation/run_mutants.py --changed"

SOURCE = '''
"""Doc."""
LIMIT = 3
NAMES = ("plain", "some prose")
MAX_KEPT = 9


def look(a: int, b: str = "x") -> bool:
    """Doc."""
    if a < LIMIT and not b:
        say("why", reason="because")
        return True
    if len(b) < MAX_KEPT and b:
        self.overflow += 1
    needs = AnyOf("contacts", b or "")
    return f"{a} in b" == b
'''


def planted(source: str) -> list[str]:
    return [f"{one.line} {one.kind}: {one.before} -> {one.after}" for one in mutants(ast.parse(source))]


def test_the_faults_of_a_module_are_these() -> None:
    assert planted(SOURCE) == [
        "3 constant: 3 -> 2",
        "3 constant: 3 -> 4",
        "4 constant: 'plain' -> 'plain~'",
        "8 constant: 'x' -> 'x~'",
        "10 comparison: a < LIMIT -> a <= LIMIT",
        "10 condition: a < LIMIT and (not b) -> False",
        "10 condition: a < LIMIT and (not b) -> True",
        "10 logic: a < LIMIT and (not b) -> a < LIMIT",
        "10 logic: a < LIMIT and (not b) -> a < LIMIT or not b",
        "10 logic: a < LIMIT and (not b) -> not b",
        "10 logic: not b -> b",
        "11 statement: say('why', reason='because') -> pass",
        "11 constant: 'why' -> 'why~'",
        "12 constant: True -> False",
        "13 condition: len(b) < MAX_KEPT and b -> False",
        "13 condition: len(b) < MAX_KEPT and b -> True",
        "13 logic: len(b) < MAX_KEPT and b -> len(b) < MAX_KEPT",
        "13 logic: len(b) < MAX_KEPT and b -> len(b) < MAX_KEPT or b",
        "15 logic: b or '' -> ''",
        "15 logic: b or '' -> b and ''",
        "16 comparison: f'{a} in b' == b -> f'{a} in b' != b",
    ]


def test_a_planted_fault_is_in_the_code() -> None:
    tree = ast.parse(SOURCE)
    fault = next(one for one in mutants(tree) if one.after == "a <= LIMIT")
    fault.plant()
    assert "if a <= LIMIT and (not b):" in ast.unparse(tree)
    assert (fault.function, fault.span) == ("look", (10, 10))


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


def test_a_fault_in_what_reads_evidence_is_told_by_evidence_read_anew(cases: list[Case]) -> None:
    path = ROOT / "mcpdetect" / "ingest" / "strace" / "on_socket.py"
    few = [case for case in cases if case.label.case == "egress/direct-ip/c-tcp4"]
    lab = Lab(few)
    lab.prepare()
    tree, found = parsed(path)
    (lines,) = lab.lines([path], ["egress.direct-ip"], reading=True).values()
    reached = set(lines[str(path)])
    executed = [one for one in found if one.span is not None and reached & set(range(one.span[0], one.span[1] + 1))]
    wanted = "not recorder.wants('socket.connect')"
    fault = next(one for one in executed if (one.kind, one.before, one.after) == ("condition", wanted, "True"))
    told = lab.kill(path, tree, fault, few, ["egress.direct-ip"], reading=True)
    assert (told.how, told.by) == ("label", {"egress/direct-ip/c-tcp4": ["egress.direct-ip"]})


def test_the_lines_that_a_case_runs_are_known(cases: list[Case]) -> None:
    path = ROOT / "mcpdetect" / "detectors" / "egress_direct_ip.py"
    few = [case for case in cases if case.label.case == "egress/direct-ip/c-tcp4"]
    (lines,) = Lab(few).lines([path], ["egress.direct-ip"]).values()
    numbers = lines[str(path)]
    assert len(numbers) > 15
    text = path.read_text().splitlines()
    assert all(text[number - 1].strip() for number in numbers)


def test_every_check_rests_on_its_own_module_and_on_code_that_others_share() -> None:
    found = {path.relative_to(ROOT / "mcpdetect").as_posix(): checks_of(path) for path in targets()}
    assert found["detectors/egress_direct_ip.py"] == ["egress.direct-ip"]
    assert {"egress.direct-ip", "network.blocked"} <= set(found["correlate/contacts.py"])
    assert found["ingest/strace/core.py"] == found["ingest/pcap/decode.py"] == sorted(detectors())
    assert [name for name, checks in found.items() if not checks] == []


def test_the_committed_results_are_current(cases: list[Case]) -> None:
    assert json.loads(OUTPUT.read_text("utf-8"))["schema"] == SCHEMA
    old = [path.relative_to(ROOT).as_posix() for path in stale(load_rows(OUTPUT), cases, targets())]
    assert old == [], REFRESH


def test_a_changed_module_or_label_makes_a_row_stale_and_a_new_label_does_not(cases: list[Case]) -> None:
    path = ROOT / "mcpdetect" / "correlate" / "clock.py"
    name = path.relative_to(ROOT).as_posix()
    row = load_rows(OUTPUT)[name]
    assert stale({name: row}, cases, [path]) == []
    asked = row["asked_labels"]
    assert stale({name: row}, [case for case in cases if case.label.case != asked[0]], [path]) == [path]
    assert stale({name: {**row, "inputs": "0"}}, cases, [path]) == [path]
    assert stale({}, cases, [path]) == [path]
    others = [case for case in cases if case.label.todo is None and case.label.case not in asked]
    assert stale({name: row}, [*cases, *others], [path]) == []


def test_nothing_is_measured_where_every_row_is_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "mutation.json"
    output.write_bytes(OUTPUT.read_bytes())
    clock = str(ROOT / "mcpdetect" / "correlate" / "clock.py")
    assert main(["--changed", "--output", str(output), clock]) == 0
    assert capsys.readouterr().out == "every row is current\n"
    assert json.loads(output.read_text())["rows"] == json.loads(OUTPUT.read_text())["rows"]


def test_the_sums_are_those_of_the_rows() -> None:
    data = json.loads(OUTPUT.read_text("utf-8"))
    code = [row for row in data["rows"] if "checks" in row]
    reading = [row for row in data["rows"] if "checks" not in row]
    assert data["summary"]["mutants"] == sum(row["planted"] for row in code) > 1000
    assert data["summary"]["killed"] == sum(row["killed"] for row in code)
    for key in ("mutants", "unreached", "planted", "killed"):
        assert sum(one[key] for one in data["summary"]["reading"].values()) == sum(row[key] for row in reading)
    for row in data["rows"]:
        assert row["planted"] - row["killed"] == len(row["survivors"])
        assert sum(row["how"].values()) == row["planted"] <= row["mutants"]
        assert row["asked_labels"] in data["asked_labels"]
    for row in code:
        assert 0 < row["planted"] <= row["mutants"]
        assert row["unreached"] == sum(1 for one in row["survivors"] if not one["ran"])
    for check, one in data["summary"]["checks"].items():
        assert one["killed"] == sum(row["checks"].get(check, 0) for row in code)
