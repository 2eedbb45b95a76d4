"""Coverage: the published numbers are current, a fall fails by name, and nothing is rewritten."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from corpora import BLIND, FIRES, SILENT, cases_of, copied, label_file, repository
from jsonschema import Draft202012Validator

from mcpdetect.cli.main import main
from mcpdetect.data.coverage import status_of_check
from mcpdetect.detectors.egress_direct_ip import EgressDirectIp
from mcpdetect.engine.discovery import detectors
from mcpdetect.errors import ConfigError
from mcpdetect.report.coverage_page import badge_json, coverage_json, coverage_page, guide_with_numbers, statuses_json
from mcpdetect.report.coverage_plot import trend_svg
from mcpdetect.report.schema import schema
from mcpdetect.score.ablation import Violation
from mcpdetect.score.corpus import Corpus
from mcpdetect.score.coverage import Counts, Coverage
from mcpdetect.score.history import Change, changes, facts, load_coverage, load_excuses, load_history
from mcpdetect.score.measure import load_mutants, measure

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "coverage"
DIRECT = "egress.direct-ip"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40
REFRESH = "make it again: mcpdetect coverage build"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    code = main(["coverage", *arguments])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


# what is published


TURNED: list[Violation] = []


@pytest.fixture(scope="module")
def measured() -> Coverage:
    """Return what the corpus gives; verdicts that turned over on the way are in ``TURNED``."""
    mutants, reading = load_mutants(FOLDER / "mutation.json")
    return measure(cases_of(repository()), detectors(), mutants=mutants, reading=reading, turned=TURNED)


def test_without_any_channels_or_class_of_calls_no_verdict_turns_over(measured: Coverage) -> None:
    assert TURNED == [], "\n".join(map(str, TURNED))
    assert measured.cases > 1000


def test_what_is_published_is_what_the_corpus_gives(measured: Coverage) -> None:
    rows = load_history(FOLDER / "history.jsonl")
    assert load_coverage(FOLDER / "coverage.json") == measured, REFRESH
    assert (FOLDER / "coverage.json").read_bytes() == coverage_json(measured), REFRESH
    assert (FOLDER / "README.md").read_text("utf-8") == coverage_page(measured, rows), REFRESH
    assert (FOLDER / "badge.json").read_bytes() == badge_json(measured), REFRESH
    assert (ROOT / "mcpdetect/data/coverage.json").read_bytes() == statuses_json(measured), REFRESH
    guide = (ROOT / "docs/coverage.md").read_text("utf-8")
    assert guide == guide_with_numbers(guide, measured), REFRESH
    assert measured.checks[DIRECT].detection.sentence in guide
    for category in measured.categories:
        assert (FOLDER / f"{category}.svg").read_text("utf-8") == trend_svg(category, rows), REFRESH
    assert len(rows) >= 1


def test_nothing_fell_since_the_last_row_without_a_reason(measured: Coverage) -> None:
    from mcpdetect.score.history import excused

    excuses = load_excuses(FOLDER / "exceptions.yaml")
    last = load_history(FOLDER / "history.jsonl")[-1]
    fell = [change for change in changes(last.facts, facts(measured)) if change.fall]
    assert [str(change) for change in fell if not excused(change, excuses)] == []


def test_every_check_has_its_numbers_and_no_verdict_turned_over(measured: Coverage) -> None:
    assert list(measured.checks) == sorted(detectors())
    for check, one in measured.checks.items():
        assert one.channels.turned == 0, check
        assert one.channels.ablations > 1000, check
        assert one.labels.total + one.elsewhere.total == measured.cases, check
        assert status_of_check(check) in ("proved", "thin"), check
    assert sum(one.labels.total for one in measured.categories.values()) == measured.cases


def test_the_document_keeps_to_its_schema(measured: Coverage) -> None:
    assert list(Draft202012Validator(schema("coverage")).iter_errors(json.loads(coverage_json(measured)))) == []


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("proved", []),
        ("thin", ["    thin: fewer than three labelled cases show it fire, or fewer than three stay silent"]),
        ("unproved", ["    unproved: no labelled case shows that this check can fire and stay silent"]),
    ],
)
def test_the_text_report_says_under_a_verdict_how_little_stands_behind_it(
    status: str, told: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpdetect.report.text.status_of_check", lambda check: status)
    main(["check", str(ROOT / "corpus" / FIRES), "--check", DIRECT])
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"  ● detected  {DIRECT}"))
    assert lines[at + 1 : at + 1 + len(told)] == told
    assert len([line for line in lines if "labelled case" in line]) == len(told)


def test_a_check_that_the_corpus_does_not_know_is_unproved() -> None:
    assert status_of_check("mine.shouts") == "unproved"


# a small corpus of its own


@pytest.fixture
def root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a folder with three cases, built, and one row of history."""
    copied(tmp_path)
    assert said(capsys, "build", "--root", str(tmp_path))[0] == 0
    assert said(capsys, *append(tmp_path, COMMIT))[0] == 0
    return tmp_path


def append(root: Path, commit: str, date: str = "2026-11-30") -> list[str]:
    return ["history", "--root", str(root), "--append", "--commit", commit, "--date", date]


def corpus_of(root: Path) -> Corpus:
    return Corpus("copy", root / "corpus", root / "labels")


def forget(root: Path, case: str) -> None:
    label_file(corpus_of(root), case).unlink()
    shutil.rmtree(root / "corpus" / case)


def test_a_small_corpus_is_measured_exactly(root: Path) -> None:
    coverage = load_coverage(root / "coverage" / "coverage.json")
    direct = coverage.checks[DIRECT]
    assert (coverage.cases, direct.labels, direct.variants) == (3, Counts(1, 1, 1), Counts(1, 1, 1))
    assert (direct.status, coverage.categories["egress"].status) == ("thin", "proved")
    assert direct.detection.sentence == "0 misses in 1: the miss rate may still be 95%"
    assert direct.false_alarms.sentence == "0 false alarms in 1: the false-alarm rate may still be 95%"
    assert direct.channels.cases == {"detected": 1, "not_detected": 1}
    assert direct.channels.alone["syscalls"] == {"detected": 1}
    assert direct.channels.turned == 0
    assert direct.shells == ["netns"]
    assert direct.axes["family"] == {"dual": 1, "ipv4": 2}
    secrets = coverage.checks["secrets.canary-read"]
    assert (secrets.status, secrets.labels, secrets.elsewhere.total) == ("unproved", Counts(), 3)
    assert secrets.detection.sentence == "never tried: nothing is known of the miss rate"
    assert coverage.categories["secrets"].status == "unproved"
    assert json.loads(badge_json(coverage)) == {
        "schemaVersion": 1,
        "label": "detector coverage",
        "message": f"3 cases, {len(coverage.checks)} checks, {len(coverage.checks) - 1} unproved, 1 thin",
        "color": "red",
    }
    # the root is no source of mcpdetect: nothing of a package is written
    assert sorted(path.name for path in root.iterdir()) == ["corpus", "coverage", "labels"]


def test_near_duplicates_are_one_variant(tmp_path: Path) -> None:
    corpus = copied(tmp_path, FIRES)
    twin = f"{FIRES}-again"
    shutil.copytree(corpus.bundles / FIRES, corpus.bundles / twin)
    text = label_file(corpus, FIRES).read_text("utf-8")
    label_file(corpus, twin).write_text(text.replace(f"case: {FIRES}", f"case: {twin}"), "utf-8")
    direct = measure(cases_of(corpus), detectors()).checks[DIRECT]
    assert (direct.labels.fires, direct.variants.fires, direct.detection.trials) == (2, 1, 1)
    label_file(corpus, twin).write_text(
        text.replace(f"case: {FIRES}", f"case: {twin}").replace('runtime: "c"', 'runtime: "rust"'), "utf-8"
    )
    direct = measure(cases_of(corpus), detectors()).checks[DIRECT]
    assert (direct.labels.fires, direct.variants.fires, direct.detection.trials) == (2, 2, 2)


def test_what_is_current_passes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "check", "--root", str(root))
    assert (code, out, err) == (0, ["nothing fell, and what is published is current"], "")


def test_a_deleted_label_fails_the_check_by_name_even_after_a_build(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forget(root, FIRES)
    code, out, _ = said(capsys, "check", "--root", str(root))
    assert code == 1
    assert f"fell: {DIRECT} labels.fires: 1 -> 0 (a fall)" in out
    assert f"fell: {DIRECT} status: 1 -> 0 (a fall)" in out
    assert "fell: corpus cases: 3 -> 2 (a fall)" in out
    assert f"fell: {DIRECT} alone.syscalls.detected: 1 -> nothing (a fall)" in out
    assert "out of date: coverage/coverage.json" in out
    assert said(capsys, "build", "--root", str(root))[0] == 0
    code, out, _ = said(capsys, "check", "--root", str(root))
    assert code == 1
    assert f"fell: {DIRECT} labels.fires: 1 -> 0 (a fall)" in out
    assert not [line for line in out if line.startswith("out of date")]


def test_a_detector_broken_on_purpose_fails_the_check(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EgressDirectIp, "finish", lambda self: ())
    code, out, _ = said(capsys, "check", "--root", str(root))
    assert code == 1
    assert f"fell: {DIRECT} detection.wrong: 0 -> 1 (a fall)" in out
    assert f"fell: {DIRECT} detection.upper_percent: 95 -> 100 (a fall)" in out


def test_a_fall_is_excused_by_name_number_and_reason(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forget(root, BLIND)
    said(capsys, "build", "--root", str(root))
    code, out, _ = said(capsys, "check", "--root", str(root))
    assert code == 1
    fell = [line.removeprefix("fell: ").split(": ") for line in out if line.startswith("fell: ")]
    assert ["egress labels.blind", "1 -> 0 (a fall)"] in fell
    lines = ["exceptions:"]
    for what, told in fell:
        after = told.split(" ")[2].replace("nothing", "null")
        lines.append(f'  - {{what: "{what}", to: {after}, reason: "the control was withdrawn"}}')
    excuses = root / "coverage" / "exceptions.yaml"
    excuses.write_text("\n".join(lines) + "\n", "utf-8")
    code, out, _ = said(capsys, "check", "--root", str(root))
    assert (code, len(out)) == (0, len(fell))
    assert "fell, and excused: egress labels.blind: 1 -> 0 (a fall)" in out
    excuses.write_text(excuses.read_text("utf-8").replace("the control was withdrawn", "because"), "utf-8")
    code, _, err = said(capsys, "check", "--root", str(root))
    assert code == 4
    assert "a deliberate fall needs a written reason" in err


def test_an_excuse_for_one_fall_excuses_no_deeper_one(tmp_path: Path) -> None:
    from mcpdetect.score.history import Excuse, excused

    excuse = Excuse("egress labels.fires", 5, "two were the same")
    assert excused(Change("egress labels.fires", 6, 5, fall=True), [excuse])
    assert not excused(Change("egress labels.fires", 6, 4, fall=True), [excuse])
    assert not excused(Change("egress labels.silent", 6, 5, fall=True), [excuse])
    gone = Excuse("egress labels.fires", -1, "the category is gone")
    assert excused(Change("egress labels.fires", 6, None, fall=True), [gone])
    assert load_excuses(tmp_path / "none.yaml") == []


def test_falls_and_rises_are_told_apart() -> None:
    before = {"a labels.fires": 3.0, "a detection.wrong": 1.0, "gone": 2.0, "was nothing": 0.0, "same": 1.0}
    after = {"a labels.fires": 4.0, "a detection.wrong": 2.0, "same": 1.0, "new": 1.0, "b weak": 1.0}
    assert changes(before, after) == [
        Change("a detection.wrong", 1, 2, fall=True),
        Change("gone", 2, None, fall=True),
        Change("a labels.fires", 3, 4, fall=False),
        Change("b weak", None, 1, fall=False),
        Change("new", None, 1, fall=False),
        Change("was nothing", 0, None, fall=False),
    ]
    assert [str(one) for one in changes(before, after)][:2] == [
        "a detection.wrong: 1 -> 2 (a fall)",
        "gone: 2 -> nothing (a fall)",
    ]


def test_diff_of_two_documents(root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    now = root / "coverage" / "coverage.json"
    old = tmp_path / "old.json"
    shutil.copy(now, old)
    assert said(capsys, "diff", str(old), str(now)) == (0, ["no difference"], "")
    forget(root, SILENT)
    said(capsys, "build", "--root", str(root))
    code, out, _ = said(capsys, "diff", str(old), str(now))
    assert code == 1
    assert "corpus cases: 3 -> 2 (a fall)" in out
    assert said(capsys, "diff", str(now), str(old))[0] == 0
    old.write_text('{"cases": "3"}', "utf-8")
    code, _, err = said(capsys, "diff", str(old), str(now))
    assert code == 4
    assert "is no coverage" in err


# the history


def test_the_history_is_only_ever_added_to(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "coverage" / "history.jsonl"
    first = path.read_bytes()
    assert said(capsys, *append(root, OTHER, "2026-12-01"))[0] == 0
    assert path.read_bytes().startswith(first)
    rows = load_history(path)
    assert [(row.commit, row.date) for row in rows] == [(COMMIT, "2026-11-30"), (OTHER, "2026-12-01")]
    assert rows[0].facts == rows[1].facts == facts(load_coverage(root / "coverage" / "coverage.json"))
    code, out, _ = said(capsys, "history", "--root", str(root))
    assert code == 0
    assert [line.split(" ")[:2] for line in out] == [["2026-11-30", COMMIT[:12]], ["2026-12-01", OTHER[:12]]]
    assert said(capsys, "check", "--root", str(root))[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b'"facts"', b'"fact"', "line 1: is no row of the history"),
        (b"{", b"", "line 1: is no row of the history"),
        (COMMIT.encode(), b"HEAD", "line 1: a commit is 40 hexadecimal digits"),
        (b"2026-11-30", b"yesterday", "line 1: is no ISO date"),
        (b"coverage-row/0", b"coverage-row/9", "line 1: is a row of another version"),
        (b"\n", b"", "the last line has no end"),
        (b"\n", b"\n\n", "line 2: is no row of the history"),
    ],
)
def test_a_broken_history_is_one_error_and_stays_as_it_is(
    root: Path, capsys: pytest.CaptureFixture[str], old: bytes, new: bytes, told: str
) -> None:
    path = root / "coverage" / "history.jsonl"
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))
    before = {file.name: file.read_bytes() for file in (root / "coverage").iterdir()}
    for arguments in (["history"], ["check"], ["build"], append(root, OTHER)[:1] + append(root, OTHER)[3:]):
        code, out, err = said(capsys, *arguments, "--root", str(root))
        assert (code, out) == (4, []), arguments
        assert told in err, arguments
    assert {file.name: file.read_bytes() for file in (root / "coverage").iterdir()} == before


def test_two_rows_of_one_commit_are_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "coverage" / "history.jsonl"
    before = path.read_bytes()
    code, _, err = said(capsys, *append(root, COMMIT, "2026-12-02"))
    assert code == 4
    assert "the history has a row of this commit already" in err
    assert path.read_bytes() == before
    path.write_bytes(before * 2)
    with pytest.raises(ConfigError, match="is a second row of the commit of line 1"):
        load_history(path)


def test_the_history_never_runs_backwards(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, *append(root, OTHER, "2026-11-29"))
    assert code == 4
    assert "the history ends after this date" in err
    assert len(load_history(root / "coverage" / "history.jsonl")) == 1


def test_a_corpus_changed_after_labelling_is_an_error_and_nothing_is_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = root / "corpus" / FIRES / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b" ")
    before = {file.name: file.read_bytes() for file in (root / "coverage").iterdir()}
    for command in ("build", "check"):
        code, out, err = said(capsys, command, "--root", str(root))
        assert (code, out) == (4, [])
        assert "changed since the label was reviewed" in err
    assert {file.name: file.read_bytes() for file in (root / "coverage").iterdir()} == before


def test_badge_and_plot_print_what_is_published(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "badge", "--root", str(root))
    assert (code, json.loads("\n".join(out))["label"]) == (0, "detector coverage")
    code, out, _ = said(capsys, "plot", "egress", "--root", str(root))
    assert code == 0
    assert "\n".join(out) + "\n" == (root / "coverage" / "egress.svg").read_text("utf-8")
    code, _, err = said(capsys, "plot", "eggs", "--root", str(root))
    assert code == 2
    assert "there is no category 'eggs'" in err


def test_a_trend_is_well_formed_and_shows_every_row(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from xml.etree import ElementTree as Tree

    said(capsys, *append(root, OTHER, "2026-12-01"))
    rows = load_history(root / "coverage" / "history.jsonl")
    space = "{http://www.w3.org/2000/svg}"
    drawn = Tree.fromstring(trend_svg("egress", rows))  # noqa: S314
    assert len(drawn.findall(f"{space}polyline")) == 4
    assert len(drawn.findall(f"{space}circle")) == 8
    texts = [one.text for one in drawn.findall(f"{space}text")]
    for wanted in ("fires 1", "silent 1", "blind 1", "misses 95%", "2026-11-30 0123456", "2026-12-01 fffffff"):
        assert wanted in texts
    empty = Tree.fromstring(trend_svg("egress", []))  # noqa: S314
    assert [one.text for one in empty.findall(f"{space}text")][-1] == "no row of the history yet"


def test_wrong_usage_of_the_history(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "history", "--append", "--root", str(root))[0] == 2
    assert said(capsys, "history", "--commit", OTHER, "--root", str(root))[0] == 2
    code, _, err = said(capsys, *append(root, "HEAD"))
    assert code == 4
    assert "a commit is 40 hexadecimal digits" in err
