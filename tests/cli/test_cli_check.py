"""``mcpdetect check``: exit codes, what it takes as input, what it prints where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_evidence import MCP, write

from mcpdetect import api
from mcpdetect.cli.main import main
from mcpdetect.data.habits import habits
from mcpdetect.errors import InputError, SpecError
from mcpdetect.model.inputs import Expectations, ExpectedHost
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level, VerdictWord


def result(*verdicts: VerdictWord, level: Level = "suspicious", name: str = "r") -> Result:
    checks = []
    for number, verdict in enumerate(verdicts):
        check = CheckResult(f"egress.check-{number}", 1, "Title", verdict, "declared", "reason")
        if verdict == "detected":
            check.findings.append(Finding(check.check, "title", "reason", level, [Where("trace.log", 1)]))
        checks.append(check)
    return Result(Run(name), checks, [], "declared")


@pytest.fixture
def mcp(tmp_path: Path) -> str:
    file = tmp_path / "mcp.jsonl"
    file.write_text(MCP)
    return str(file)


def answer(monkeypatch: pytest.MonkeyPatch, *results: Result | Exception) -> list[dict[str, Any]]:
    """Let the API give these results in turn; return the arguments it was called with."""
    calls: list[dict[str, Any]] = []
    left = list(results)

    def check(source: object, **options: object) -> Result:
        calls.append({"source": source, **options})
        given = left.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    monkeypatch.setattr("mcpdetect.api.check", check)
    return calls


@pytest.mark.parametrize(
    ("done", "options", "code"),
    [
        (result("not_detected"), [], 0),
        (result("not_detected", "not_observable"), [], 0),
        (result("not_detected", "not_observable"), ["--strict"], 3),
        (result("not_detected"), ["--strict"], 0),
        (result("detected"), [], 1),
        (result("detected"), ["--fail-on", "accusing"], 0),
        (result("detected", level="info"), [], 0),
        (result("detected", level="info"), ["--fail-on", "info"], 1),
        (result("detected", "not_observable"), ["--strict"], 1),
        (result("detected", "error"), ["--strict"], 5),
        (result("error"), [], 5),
        (result(), [], 3),
    ],
)
def test_exit_code_of_a_result(
    done: Result,
    options: list[str],
    code: int,
    mcp: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer(monkeypatch, done)
    assert main(["check", mcp, *options]) == code
    out, err = capsys.readouterr()
    assert f"exit {code}: " in out
    assert err == ""


def test_a_named_check_that_is_not_observable_is_3(mcp: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", mcp, "--check", "egress.direct-ip"]) == 3
    assert "exit 3: egress.direct-ip had to be observable and was not\n" in capsys.readouterr().out


def test_a_named_category_stands_for_its_checks(
    mcp: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = answer(monkeypatch, result("not_detected"))
    assert main(["check", mcp, "--check", "egress"]) == 3
    assert len(calls[0]["checks"]) >= 2
    assert all(name.startswith("egress.") for name in calls[0]["checks"])
    assert "had to be observable" in capsys.readouterr().out


def test_the_detectors_really_run(mcp: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", mcp, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    loaded = json.loads(out)
    assert err == ""
    assert loaded["schema"] == "mcpdetect.result/1"
    verdicts = {check["check"]: check["verdict"] for check in loaded["checks"]}
    assert verdicts["mcp.exfil-instruction"] == "not_detected"
    assert verdicts["egress.direct-ip"] == "not_observable"


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "--format", "xml", "x"],
        ["check", "--fail-on", "grave", "x"],
        ["check", "--assurance", "absent", "x"],
        ["check", "--no-such-option"],
        ["check", "a-folder/", "--manifest", "m.json"],
        ["nonsense"],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: mcpdetect" in err


def test_an_unknown_check_is_2_and_offers_the_nearest(mcp: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", mcp, "--check", "egress.direct-pi"]) == 2
    assert "there is no check 'egress.direct-pi'; did you mean egress.direct-ip" in capsys.readouterr().err


def test_an_unknown_command_is_2_and_offers_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chekc"]) == 2
    assert "there is no command 'chekc'; did you mean 'check'?" in capsys.readouterr().err


def test_a_broken_plug_in_is_5(mcp: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer(monkeypatch, SpecError("the plug-in cannot be loaded: x", file="entry point 'x' (y)"))
    assert main(["check", mcp]) == 5
    assert capsys.readouterr() == ("", "error: entry point 'x' (y): the plug-in cannot be loaded: x\n")


def test_unreadable_input_is_4_and_one_block_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--mcp", "no/such/file"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: no/such/file: cannot be opened: No such file or directory\n  try: check the path and its spelling\n"
    )


def test_one_unreadable_run_of_several_leaves_the_others_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = []
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{")
        names.append(str(tmp_path / name))
    monkeypatch.setattr("mcpdetect.api.open_trace", lambda path: path)
    answer(
        monkeypatch,
        result("not_detected", name="a"),
        InputError("is empty", file="b"),
        result("detected", name="c"),
    )
    assert main(["check", *names]) == 4
    out, err = capsys.readouterr()
    assert err == "error: b: is empty\n"
    assert out.startswith("a\n")
    assert "\nc\n" in out
    assert out.endswith(f"exit 4: {names[1]} could not be read\n")


def test_several_runs_are_one_json_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    monkeypatch.setattr("mcpdetect.api.open_trace", lambda path: path)
    answer(monkeypatch, result("not_detected", name="a"), InputError("is empty", file="b"))
    assert main(["check", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "json"]) == 4
    loaded = json.loads(capsys.readouterr().out)
    assert loaded["schema"] == "mcpdetect.results/1"
    assert loaded["unreadable"] == [{"trace": str(tmp_path / "b"), "error": "b: is empty"}]


def test_an_audit_joins_and_needs_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    seen: list[object] = []

    def audit(sources: list[object], **_: object) -> Result:
        seen.extend(sources)
        joined = result("detected", name="audit")
        joined.parts = [result("detected", name="a"), result("not_detected", name="b")]
        return joined

    monkeypatch.setattr("mcpdetect.api.open_trace", lambda path: path)
    monkeypatch.setattr("mcpdetect.api.audit", audit)
    assert main(["check", "--audit", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert seen == [tmp_path / "a", tmp_path / "b"]
    assert f"    where     {tmp_path}/a/trace.log:1\n" in capsys.readouterr().out
    assert main(["check", "--audit", str(tmp_path / "a")]) == 2
    assert "--audit joins several runs" in capsys.readouterr().err


def test_options_reach_the_api(tmp_path: Path, mcp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = answer(monkeypatch, result("not_detected"))
    secrets, expect = tmp_path / "secrets.yaml", tmp_path / "expect.yaml"
    secrets.write_text("home: /home/dev\ntag: abcdef\nfiles:\n  .netrc: NETRC\n")
    expect.write_text("hosts:\n  - api.example.com\n")
    arguments = ["check", mcp, "--secrets", str(secrets), "--expect", str(expect), "--assurance", "proved", "-q"]
    assert main(arguments) == 0
    assert calls[0]["assurance"] == "proved"
    assert calls[0]["checks"] is None
    assert calls[0]["secrets"] == secrets
    assert [host.host for host in calls[0]["expectations"].hosts] == ["api.example.com"]


def test_a_mistake_in_an_option_file_is_4_and_names_its_line(
    tmp_path: Path, mcp: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = tmp_path / "expect.yaml"
    expect.write_text("hosts:\n  - api.example.com\nhost: x\n")
    assert main(["check", mcp, "--expect", str(expect)]) == 4
    assert capsys.readouterr().err.startswith(f"error: {expect}: line 3: unknown key")


def test_papers_and_data_files_of_the_user_count(
    tmp_path: Path, mcp: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, int]] = []

    def noted(source: object, **options: Any) -> Result:
        asked.append((options["expectations"], len(habits())))
        return check(source, **options)  # type: ignore[arg-type]

    check = api.check
    monkeypatch.setattr(api, "check", noted)
    (tmp_path / "README.md").write_text("It asks https://api.vendor.io/v1.\n")
    own = tmp_path / "own"
    own.mkdir()
    (own / "habits.yaml").write_text("habits:\n  - {id: mine, text: so it is, source: me}\n")
    papers = ["--documented", str(tmp_path / "README.md")]
    assert main(["check", mcp, *papers, "--data", str(own), "-q"]) == 0
    assert main(["check", mcp, "-q"]) == 0
    first, second = asked
    why = f"{tmp_path / 'README.md'} line 1: https://api.vendor.io"
    assert first[0] == Expectations(str(tmp_path / "README.md"), [ExpectedHost("api.vendor.io", [], why)])
    assert (second[0], first[1] - second[1]) == (None, 1)
    (own / "habits.yaml").write_text("habits:\n  - {id: mine, texts: so it is, source: me}\n")
    capsys.readouterr()
    assert main(["check", mcp, "--data", str(own)]) == 4
    assert capsys.readouterr().err.startswith(f"error: {own / 'habits.yaml'}: line 2: unknown key")


def test_output_goes_to_the_file_and_nothing_to_stdout(
    tmp_path: Path, mcp: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    assert main(["check", mcp, "--format", "json", "-o", str(report)]) == 0
    assert capsys.readouterr() == ("", "")
    assert json.loads(report.read_text())["schema"] == "mcpdetect.result/1"


@pytest.mark.parametrize("target", ["no/such/folder/report.txt", "."])
def test_an_output_that_cannot_be_written_is_told_before_the_work(
    target: str, mcp: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = answer(monkeypatch)
    assert main(["check", mcp, "-o", target]) == 2
    assert calls == []
    assert capsys.readouterr().err.startswith(f"Error: cannot write {target}: ")


def test_quiet_prints_nothing(mcp: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", mcp, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_colours_only_when_asked_for_off_a_terminal(mcp: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", mcp])
    assert "\x1b" not in capsys.readouterr().out
    main(["check", mcp, "--color"])
    assert "\x1b[1m" in capsys.readouterr().out


def test_an_interrupt_is_130_and_quiet(
    mcp: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> Result:
        raise KeyboardInterrupt

    monkeypatch.setattr("mcpdetect.api.check", interrupted)
    assert main(["check", mcp]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip() == ""


def test_evidence_files_are_joined_into_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path)
    assert main(["check", *map(str, files.values()), "--format", "json"]) == 1
    by_sniffing = json.loads(capsys.readouterr().out)
    assert main(["check", *(f"--{name}={file}" for name, file in files.items()), "--format", "json"]) == 1
    by_option = json.loads(capsys.readouterr().out)
    assert by_sniffing == by_option
    assert [item["channel"] for item in by_option["observations"]] == ["syscalls", "packets", "dns", "firewall", "mcp"]


def test_a_trace_and_evidence_do_not_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path)
    (tmp_path / "bundle").mkdir()
    assert main(["check", str(tmp_path / "bundle"), "--pcap", str(files["pcap"])]) == 2
    assert "is a run of its own and" in capsys.readouterr().err
