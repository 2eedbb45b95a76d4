"""The self-test: what passes, what fails and how it says so, and that it cannot pass on nothing."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from importlib.resources import files
from pathlib import Path

import pytest
from corpora import BLIND, FIRES, SILENT, cases_of, copied, edit, label_file, repository

import mcpdetect.score.corpus as corpus_module
from mcpdetect.cli.main import main
from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.engine import discovery
from mcpdetect.engine.discovery import detectors
from mcpdetect.errors import LabelError, SpecError
from mcpdetect.labels.model import ExpectedCheck
from mcpdetect.model.event import Event
from mcpdetect.model.result import Finding
from mcpdetect.score.compact import choose, unpacked
from mcpdetect.score.corpus import Corpus, compact_corpus, load_cases, plugin_corpora
from mcpdetect.score.runner import run_case
from mcpdetect.score.selftest import selftest

DIRECT = "egress.direct-ip"


def said(capsys: pytest.CaptureFixture[str], corpus: Corpus | None, *arguments: str) -> tuple[int, str, str]:
    chosen = [] if corpus is None else ["--corpus", str(corpus.bundles), "--labels", str(corpus.labels)]
    code = main(["selftest", *chosen, *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_case_that_comes_out_as_labelled_passes(tmp_path: Path) -> None:
    (case,) = cases_of(copied(tmp_path, FIRES))
    outcome = run_case(case, detectors())
    assert (outcome.case, outcome.corpus, outcome.truth, outcome.state, outcome.ok) == (
        FIRES,
        "copy",
        "fires",
        "passed",
        True,
    )
    assert [one.check for one in outcome.checks] == sorted(case.label.checks)
    direct = next(one for one in outcome.checks if one.check == DIRECT)
    assert direct.got == ExpectedCheck("detected", 1, ["capture.pcap#3", "strace.log:17"], "suspicious", explained=[])
    assert direct.agrees


def test_a_failure_shows_expected_and_got_with_places_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = copied(tmp_path)
    edit(label_file(corpus, FIRES), '"strace.log:17"', '"strace.log:18"')
    code, out, err = said(capsys, corpus, "--check", DIRECT)
    assert (code, err) == (1, "")
    lines = [line.rstrip() for line in out.splitlines()]
    start = lines.index("FAILED")
    assert lines[start + 1 : start + 8] == [
        f"  corpus: {FIRES}  fires",
        f"    {DIRECT}",
        "      expected  detected, 1 finding, level suspicious, at capture.pcap#3, strace.log:18",
        "      got       detected, 1 finding, level suspicious, at capture.pcap#3, strace.log:17",
        "      because   1 finding",
        "      missing   strace.log:18",
        "      extra     strace.log:17",
    ]
    assert lines[-2:] == ["3 cases: 2 came out as labelled, 1 failed", "exit 1: 1 case failed"]


def test_the_json_form_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jsonschema import Draft202012Validator

    from mcpdetect.report.schema import schema

    corpus = copied(tmp_path)
    edit(label_file(corpus, FIRES), '"strace.log:17"', '"strace.log:18"')
    code, out, _ = said(capsys, corpus, "--check", DIRECT, "--format", "json")
    report = json.loads(out)
    assert list(Draft202012Validator(schema("selftest")).iter_errors(report)) == []
    assert (code, report["exit"], report["meaning"]) == (1, 1, "1 case failed")
    assert report["checks"] == {DIRECT: {"fires": 0, "silent": 1, "blind": 1, "missing": ["fires"]}}
    assert [(one["case"], one["state"]) for one in report["cases"]] == sorted(
        [(FIRES, "failed"), (SILENT, "passed"), (BLIND, "passed")]
    )
    failed = next(one for one in report["cases"] if one["case"] == FIRES)
    assert failed["checks"] == [
        {
            "check": DIRECT,
            "agrees": False,
            "expected": {
                "verdict": "detected",
                "findings": 1,
                "places": ["capture.pcap#3", "strace.log:18"],
                "level": "suspicious",
                "limits": None,
                "explained": [],
            },
            "got": {
                "verdict": "detected",
                "findings": 1,
                "places": ["capture.pcap#3", "strace.log:17"],
                "level": "suspicious",
                "limits": None,
                "explained": [],
            },
            "reason": "1 finding",
        }
    ]


def test_all_right_is_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, copied(tmp_path), "--category", "egress", "--check", DIRECT)
    assert err == ""
    assert code == 3  # the category has a second check, and no case here shows it fire
    assert out.splitlines()[-1] == "exit 3: no case shows that egress.unexplained-host fires or stays silent"
    code, out, err = said(capsys, copied(tmp_path / "again"), "--check", DIRECT)
    assert (code, err, out.splitlines()[-1]) == (0, "", "exit 0: every case ended as its label foresees")


def test_a_check_without_a_case_is_exit_3_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, copied(tmp_path, FIRES), "--check", DIRECT)
    assert code == 3
    assert "exit 3: no case shows that egress.direct-ip stays silent" in out


def test_a_todo_that_comes_right_fails_and_one_that_is_wrong_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = copied(tmp_path, FIRES)
    label = label_file(corpus, FIRES)
    label.write_text(label.read_text("utf-8") + 'todo: "the second packet is missed"\n', "utf-8")
    (case,) = cases_of(corpus)
    assert run_case(case, detectors()).state == "came-right"
    # One check alone cannot tell: the weakness may be another one's.
    assert run_case(case, {DIRECT: detectors()[DIRECT]}).state == "passed"
    code, out, _ = said(capsys, corpus)
    assert code == 1
    assert "    came right, so its todo must go: the second packet is missed" in out.splitlines()
    edit(label, '"strace.log:17"', '"strace.log:18"')
    (case,) = cases_of(corpus)
    outcome = run_case(case, detectors())
    assert (outcome.state, outcome.ok) == ("weak", True)
    result = selftest([case], {DIRECT: detectors()[DIRECT]})
    assert (result.checks[DIRECT].fires, result.failures) == (0, [])


def test_evidence_changed_after_labelling_is_exit_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = copied(tmp_path)
    log = corpus.bundles / FIRES / "strace.log"
    log.write_bytes(log.read_bytes() + b"x")
    code, out, err = said(capsys, corpus, "--check", DIRECT)
    assert (code, err) == (4, "")
    assert "strace.log has" in out
    assert "likely cause: the file was changed or cut after the recording" in out
    assert out.splitlines()[-1] == "exit 4: 1 case could not be read"
    edit(corpus.bundles / FIRES / "manifest.json", '"seed": 0', '"seed": 1')
    code, out, err = said(capsys, corpus, "--check", DIRECT)
    assert (code, out) == (4, "")
    assert re.search(rf"{FIRES}\.yaml: line \d+: the bundle's file has sha256 [0-9a-f]{{64}}\n", err)


def test_a_label_of_a_check_that_no_longer_exists_is_one_error_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = copied(tmp_path)
    label = label_file(corpus, SILENT)
    edit(label, "  network.blocked:", "  network.blockade:")
    line = label.read_text("utf-8").splitlines().index("  network.blockade: {verdict: not_detected}") + 1
    before = label.read_bytes()
    code, out, err = said(capsys, corpus)
    assert (code, out) == (4, "")
    assert err.splitlines()[:2] == [
        f"error: {label}: line {line}: speaks of a check that is not installed",
        "  value: network.blockade",
    ]
    assert err.splitlines()[-1] == "  try: did you mean network.blocked?"
    assert label.read_bytes() == before


def test_an_empty_corpus_proves_nothing_and_is_an_error(tmp_path: Path) -> None:
    for folder in ("corpus", "labels/cases"):
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(LabelError, match="there is no case here"):
        cases_of(Corpus("empty", tmp_path / "corpus", tmp_path / "labels"))
    with pytest.raises(LabelError, match="there is no folder of labels here"):
        cases_of(Corpus("wrong", tmp_path / "corpus", tmp_path))


def test_wrong_usage_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = copied(tmp_path)
    for arguments, told in (
        (["--corpus", str(corpus.bundles)], "--corpus and --labels go together"),
        (["--check", "egress.direct"], "there is no check 'egress.direct'; did you mean egress.direct-ip, egress?"),
        (["--check", "egress"], "'egress' is a category; use --category"),
        (["--category", "eggs"], "there is no category 'eggs'; categories are drift, egress, "),
        (["--corpus", str(tmp_path / "no"), "--labels", str(corpus.labels)], "does not exist"),
    ):
        code, out, err = said(capsys, None, *arguments)
        assert (code, out) == (2, ""), arguments
        assert told in " ".join(err.split()), arguments


def test_the_corpus_in_the_package_shows_every_check_fire_stay_silent_and_be_blind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = said(capsys, None)
    assert (code, err) == (0, "")
    with compact_corpus() as corpus:
        result = selftest(load_cases(corpus, list(detectors())), detectors())
        folder = corpus.bundles
    assert not folder.exists()
    assert set(result.checks) == set(detectors())
    for check, proven in result.checks.items():
        assert min(proven.fires, proven.silent, proven.blind) >= 1, check


def packaged() -> Path:
    return Path(str(files("mcpdetect.data") / corpus_module.COMPACT))


def test_the_corpus_in_the_package_is_current_and_small() -> None:
    wanted = unpacked(choose(cases_of(repository())))
    with zipfile.ZipFile(packaged()) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    assert sorted(held) == sorted(wanted), "refresh it: mcpdetect coverage build"
    assert held == wanted, "refresh it: mcpdetect coverage build"
    assert packaged().stat().st_size < 800_000


def test_a_smaller_choice_would_show_less() -> None:
    taken = choose(cases_of(repository()))
    shown = [{(check, one.verdict) for check, one in case.label.checks.items()} for case in taken]
    everything = set().union(*shown)
    assert len(taken) >= 5
    for at in range(len(taken)):
        assert set().union(*shown[:at], *shown[at + 1 :]) < everything


class Shouts(Detector):
    """A process speaks of itself."""

    spec = Spec(
        id="mine.shouts",
        version=1,
        claim="nothing shouted",
        kinds=("process.start",),
        needs=(AnyOf("starts", Need("syscalls", ("process.start",))),),
        blind_to=("whispers",),
    )

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Find every start."""
        yield self.finding(event, title="it started", reason="it did", identity="start")


def offered() -> tuple[Path, Path]:
    """Return nothing that exists: tests put their own here."""
    raise NotImplementedError


class NoFunction:
    """No function."""


def test_a_plug_in_brings_its_own_corpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = copied(tmp_path, FIRES)
    mine = "mine/shouts/starts"
    (corpus.bundles / "mine" / "shouts").mkdir(parents=True)
    (corpus.bundles / FIRES).rename(corpus.bundles / mine)
    label = label_file(corpus, mine)
    label.parent.mkdir(parents=True)
    text = label_file(corpus, FIRES).read_text("utf-8")
    text = text.replace(f"case: {FIRES}", f"case: {mine}")
    head, _, rest = text.partition("checks:\n")
    tail = rest[rest.index("axes:") :]
    wanted = '  mine.shouts: {verdict: detected, findings: 1, level: suspicious, places: ["strace.log:1"]}\n'
    label.write_text(f"{head}checks:\n{wanted}{tail}", "utf-8")
    label_file(corpus, FIRES).unlink()

    point = EntryPoint("mine", "test_selftest:Shouts", discovery.ENTRY_POINT_GROUP)
    monkeypatch.setattr(discovery, "entry_points", lambda group: [point] if group == point.group else [])
    code, out, _ = said(capsys, None)
    assert code == 3
    assert out.splitlines()[-1] == "exit 3: no case shows that mine.shouts fires or stays silent"

    bring = EntryPoint("mine-cases", "test_selftest:offered", corpus_module.ENTRY_POINT_GROUP)
    monkeypatch.setattr(corpus_module, "entry_points", lambda group: [bring] if group == bring.group else [])
    monkeypatch.setattr("test_selftest.offered", _returns(corpus))
    code, out, _ = said(capsys, None)
    assert out.splitlines()[0] == "self-test of compact, mine-cases"
    assert code == 3
    assert out.splitlines()[-1] == "exit 3: no case shows that mine.shouts stays silent"
    code, out, _ = said(capsys, corpus, "--check", "mine.shouts", "--format", "json")
    assert json.loads(out)["checks"] == {"mine.shouts": {"fires": 1, "silent": 0, "blind": 0, "missing": ["silent"]}}


def _returns(corpus: Corpus) -> object:
    def give() -> tuple[Path, Path]:
        return corpus.bundles, corpus.labels

    return give


def test_a_broken_offer_of_a_corpus_is_an_error_and_never_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def offers(*points: EntryPoint) -> None:
        monkeypatch.setattr(corpus_module, "entry_points", lambda group: list(points))

    group = corpus_module.ENTRY_POINT_GROUP
    offers()
    assert plugin_corpora() == []
    offers(EntryPoint("gone", "no_such_module:cases", group))
    with pytest.raises(SpecError, match="the plug-in's corpus cannot be loaded: No module named 'no_such_module'"):
        plugin_corpora()
    offers(EntryPoint("odd", "test_selftest:NoFunction", group))
    with pytest.raises(SpecError, match="must name a function that returns two paths"):
        plugin_corpora()
    monkeypatch.setattr("test_selftest.offered", _returns(repository()))
    offers(EntryPoint("one", "test_selftest:offered", group), EntryPoint("one", "test_selftest:offered", group))
    with pytest.raises(SpecError, match="two corpora have one name"):
        plugin_corpora()


def test_a_plug_in_that_shadows_a_check_stops_the_self_test(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("shadow", "mcpdetect.detectors.egress_direct_ip:EgressDirectIp", discovery.ENTRY_POINT_GROUP)
    monkeypatch.setattr(discovery, "entry_points", lambda group: [point] if group == point.group else [])
    code, out, err = said(capsys, None)
    assert (code, out) == (5, "")
    assert "two detectors share the id 'egress.direct-ip'" in err
    assert "likely cause: a plug-in shadows another check" in err


def test_a_crash_is_exit_5(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(detectors()[DIRECT], "finish", crash)
    code, out, _ = said(capsys, copied(tmp_path), "--check", DIRECT)
    assert code == 5
    assert "      got       error" in out.splitlines()
    assert out.splitlines()[-1] == "exit 5: a check crashed"


@pytest.mark.parametrize(
    ("check", "old", "new", "told"),
    [
        (
            "egress.unexplained-host",
            "egress.unexplained-host: {verdict: not_observable, limits: [not-configured]}",
            "egress.unexplained-host: {verdict: not_observable, limits: [io_uring]}",
            "      limits    expected io_uring, got not-configured",
        ),
        (DIRECT, "explained: []", "explained: [launcher]", "      explained expected launcher, got nothing"),
    ],
)
def test_another_reason_to_be_blind_or_another_explanation_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], check: str, old: str, new: str, told: str
) -> None:
    corpus = copied(tmp_path, FIRES)
    edit(label_file(corpus, FIRES), old, new)
    code, out, _ = said(capsys, corpus, "--check", check)
    assert code == 1
    assert told in out.splitlines()
