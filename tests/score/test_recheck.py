"""Old reports: the three faults that began this project, made by deliberately old detectors, and withdrawn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import mcpdetect
from mcpdetect.cli.main import main
from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.engine.run import run_checks
from mcpdetect.errors import InputError, Malformed, UnknownFormat
from mcpdetect.ingest.open import open_trace
from mcpdetect.labels.errata import Erratum, shipped_errata
from mcpdetect.model.event import Event
from mcpdetect.model.result import Finding, Result
from mcpdetect.report.json_report import json_report
from mcpdetect.score.recheck import read_report, recheck

ROOT = Path(__file__).parents[2]
CHECKS = list(mcpdetect.installed_detectors())


class OldDirectIp(Detector):
    """Judge egress by DNS alone, as a public audit did."""

    spec = Spec(
        id="egress.direct-ip",
        version=1,
        claim="no egress",
        kinds=("dns.query",),
        needs=(AnyOf("names", Need("dns", ("dns.query",))),),
        blind_to=("everything that asks for no name",),
    )

    def on_event(self, event: Event) -> Iterable[Finding]:
        yield self.finding(event, title="a name was asked for", reason="egress", identity="name")


class OldBlocked(Detector):
    """Wait for one error number, as a public audit did."""

    spec = Spec(
        id="network.blocked",
        version=1,
        claim="no firewall violation",
        kinds=("socket.connect",),
        needs=(AnyOf("connects", Need("syscalls", ("socket.connect",))),),
        blind_to=("every other way of denying",),
    )

    def on_event(self, event: Event) -> Iterable[Finding]:
        if getattr(event, "error", None) == "ECONNABORTED":
            yield self.finding(event, title="blocked", reason="blocked", identity="blocked")


class OldExfil(Detector):
    """Look for words inside words, as a public audit did."""

    spec = Spec(
        id="mcp.exfil-instruction",
        version=1,
        claim="no instruction",
        kinds=("mcp.tool",),
        needs=(AnyOf("texts", Need("mcp", ("mcp.tool",))),),
        blind_to=("everything else",),
    )

    def on_event(self, event: Event) -> Iterable[Finding]:
        # "Returns the input_tokens and output_tokens of the last call."
        if re.search(r"(?i)(send|report|return).*to", repr(event)):
            yield self.finding(event, title="told to send", reason="told", identity="told")


FAULTS = [
    (OldDirectIp, "egress/direct-ip/c-tcp4", "not_detected", "egress-from-dns-alone", "detected"),
    (OldBlocked, "network/blocked/c-tcp4-gateway-drop", "not_detected", "denial-by-one-error", "detected"),
    (OldExfil, "mcp/exfil-instruction/python-token-counts", "detected", "words-by-substring", "not_detected"),
]


def old_report(folder: Path, kind: type[Detector], case: str) -> tuple[Path, Result]:
    """Write the report that an old version would have written: version 0, published before there was this program."""
    result = run_checks(open_trace(ROOT / "corpus" / case), {kind.spec.id: kind})
    result.checks[0].version = 0
    path = folder / "report.json"
    path.write_bytes(json_report([result]))
    return path, result


@pytest.mark.parametrize(("kind", "case", "verdict", "erratum", "now"), FAULTS, ids=[one[3] for one in FAULTS])
def test_a_verdict_that_rests_on_a_known_fault_is_withdrawn(
    tmp_path: Path, kind: type[Detector], case: str, verdict: str, erratum: str, now: str
) -> None:
    path, result = old_report(tmp_path, kind, case)
    assert result.checks[0].verdict == verdict
    told = recheck("report.json", read_report(path), shipped_errata(), CHECKS)
    assert [(line.run, line.version, line.outcome, line.errata, line.now) for line in told.lines] == [
        (case, 0, "withdrawn", [erratum], None)
    ]
    assert told.withdrawn == told.lines
    again = {case: mcpdetect.check(ROOT / "corpus" / case, checks=[kind.spec.id])}
    told = recheck("report.json", read_report(path), shipped_errata(), CHECKS, again)
    assert [(line.outcome, line.now) for line in told.lines] == [("withdrawn", now)]


def fresh(case: str, *checks: str) -> Result:
    return mcpdetect.check(ROOT / "corpus" / case, checks=list(checks) or None)


def test_a_verdict_of_a_version_without_errata_stands() -> None:
    result = fresh("egress/direct-ip/c-tcp4", "egress.direct-ip")
    line = recheck("r", [result], shipped_errata(), CHECKS).lines[0]
    assert (line.outcome, line.reason) == ("stands", "no erratum speaks against version 1")


def test_a_check_that_is_not_installed_is_unknown_and_nothing_is_said_for_it() -> None:
    result = fresh("egress/direct-ip/c-tcp4", "egress.direct-ip")
    result.checks[0].check = "egress.renamed"
    assert recheck("r", [result], shipped_errata(), CHECKS).lines[0].outcome == "unknown"


def test_a_fault_of_missing_evidence_does_not_touch_reports_that_had_it() -> None:
    result = fresh("egress/direct-ip/python-named", "egress.direct-ip")
    entry = Erratum("e", "egress.direct-ip", [1], ["not_detected"], "wrong", "2026-11-30", ["syscalls"])
    assert recheck("r", [result], [entry], CHECKS).lines[0].outcome == "stands"
    result.observations = [one for one in result.observations if one.channel != "syscalls"]
    assert recheck("r", [result], [entry], CHECKS).lines[0].outcome == "withdrawn"


def test_evidence_at_hand_withdraws_a_verdict_that_it_does_not_bear() -> None:
    result = fresh("egress/direct-ip/python-named", "egress.direct-ip")
    result.checks[0].verdict = "not_observable"
    again = {result.run.id: fresh("egress/direct-ip/python-named", "egress.direct-ip")}
    line = recheck("r", [result], [], CHECKS, again).lines[0]
    # Never claimed anew: the old line falls, and the new verdict stands in a report of its own.
    assert (line.outcome, line.verdict, line.now) == ("withdrawn", "not_observable", "not_detected")


def test_a_check_that_lacks_its_inputs_now_says_nothing_about_its_old_verdict() -> None:
    case = "egress/unexplained-host/python-documented"
    result = fresh(case, "egress.unexplained-host")
    again = {result.run.id: run_checks(open_trace(ROOT / "corpus" / case), mcpdetect.installed_detectors())}
    line = recheck("r", [result], [], CHECKS, again).lines[0]
    assert (line.outcome, line.now) == ("stands", None)


def test_runs_of_an_audit_are_rechecked_one_by_one() -> None:
    case = "egress/direct-ip/c-tcp4"
    joined = mcpdetect.audit([ROOT / "corpus" / case, ROOT / "corpus" / case], checks=["egress.direct-ip"])
    lines = recheck("r", [joined], shipped_errata(), CHECKS).lines
    assert [line.run for line in lines] == ["audit", case, case]


def test_the_command_withdraws_with_exit_1_and_stands_with_exit_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = old_report(tmp_path, OldDirectIp, "egress/direct-ip/c-tcp4")
    evidence = str(ROOT / "corpus/egress/direct-ip/c-tcp4")
    assert main(["recheck", str(path), "--evidence", evidence, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "mcpdetect.recheck/1"
    assert document["reports"][0]["lines"][0]["outcome"] == "withdrawn"
    assert document["reports"][0]["lines"][0]["now"] == "detected"
    assert main(["recheck", str(path)]) == 1
    text = capsys.readouterr().out
    assert "  withdrawn: egress.direct-ip (version 0) of egress/direct-ip/c-tcp4: not detected" in text.splitlines()
    assert text.splitlines()[-1] == "1 verdict, 1 withdrawn"
    new = tmp_path / "new.json"
    result = fresh("egress/direct-ip/c-tcp4")
    told = len(result.checks)
    new.write_bytes(json_report([result]))
    assert main(["recheck", str(new)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{told} verdicts, 0 withdrawn"


def test_evidence_that_no_report_speaks_of_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = old_report(tmp_path, OldDirectIp, "egress/direct-ip/c-tcp4")
    assert main(["recheck", str(path), "--evidence", str(ROOT / "corpus/egress/direct-ip/c-tcp6")]) == 4
    assert "no report speaks of the run that this evidence is of" in capsys.readouterr().err


def test_a_damaged_report_is_exit_4_and_the_others_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = old_report(tmp_path, OldDirectIp, "egress/direct-ip/c-tcp4")
    bad = tmp_path / "bad.json"
    bad.write_bytes(path.read_bytes()[:400])
    assert main(["recheck", str(bad), str(path)]) == 4
    told = capsys.readouterr()
    assert "is no JSON" in told.err
    assert told.out.splitlines()[-1] == "1 verdict, 1 withdrawn"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", Malformed),
        (b"[" * 100_000, Malformed),
        (b"[]", UnknownFormat),
        (b'{"schema": "mcpdetect.result/99"}', UnknownFormat),
        (b'{"schema": "mcpdetect.results/1"}', UnknownFormat),
        (b'{"schema": "mcpdetect.result/1"}', Malformed),
        (b'{"schema": "mcpdetect.results/1", "results": [1]}', Malformed),
        (b'{"schema": "mcpdetect.results/1", "results": []}', Malformed),
    ],
)
def test_what_is_no_report_is_one_clear_error(tmp_path: Path, content: bytes, kind: type[InputError]) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_report(path)
    assert type(caught.value) is kind


def test_a_report_cut_at_any_byte_is_one_clear_error(tmp_path: Path) -> None:
    path, _ = old_report(tmp_path, OldDirectIp, "egress/direct-ip/c-tcp4")
    whole = path.read_bytes()
    assert len(whole) > 1000
    for size in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError):
            read_report(path)
