"""``parse``, ``events``, ``detectors``, ``schema`` and ``completion``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard
from cli_evidence import write

from mcpdetect.cli.main import main
from mcpdetect.engine.discovery import detectors
from mcpdetect.model.kinds import EVENT_TYPES


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    return {name: str(path) for name, path in write(tmp_path).items()}


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert main(list(arguments)) == code
    out, err = capsys.readouterr()
    return out, err


# events


def test_events_of_an_strace_log(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    log = files["strace"]
    out, err = said(capsys, "events", log)
    assert err == ""
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert f"12:19:52.443879Z {log}:1 38 process.start exec /srv/server [server] = 0" in lines
    assert f"12:19:52.500000Z {log}:2 38 file.open read /etc/hostname = 3" in lines
    assert f'12:19:52.500100Z {log}:3 38 file.read /etc/hostname 4 bytes "box\\x0a" = 4' in lines
    assert f"12:19:52.600100Z {log}:6 38 process.exit code 0" in lines


def test_events_of_a_kind_or_group(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "events", files["strace"], "--kind", "file.open", "--kind", "process")
    assert [line.split()[3] for line in out.splitlines()] == ["process.start", "file.open", "process.exit"]


def test_events_up_to_a_limit(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    everything, _ = said(capsys, "events", files["strace"])
    assert said(capsys, "events", files["strace"], "--limit", "2")[0] == "".join(everything.splitlines(True)[:2])
    assert said(capsys, "events", files["strace"], "--limit", "0")[0] == ""


def test_events_of_every_kind_of_evidence_in_order_of_time(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = said(capsys, "events", *files.values())
    kinds = {line.split()[3] for line in out.splitlines()}
    assert {"process.start", "net.flow", "dns.query", "dns.answer", "firewall.drop", "mcp.message", "mcp.tool"} <= kinds
    assert kinds <= set(EVENT_TYPES)


def test_what_could_not_be_understood_is_an_event_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "trace.log"
    log.write_text((write(tmp_path)["strace"]).read_text() + "what is this\x1b[2J\n")
    out, _ = said(capsys, "events", str(log), "--kind", "unparsed")
    assert out.count("\n") == 1
    assert f"{log}:7" in out
    assert out.rstrip().endswith('"what is this\\x1b[2J"')


@pytest.mark.parametrize(
    ("kind", "hint"), [("file.opn", "did you mean file.open"), ("xyzzy", "kinds are process.start")]
)
def test_an_unknown_kind_is_2(kind: str, hint: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, "events", files["strace"], "--kind", kind, code=2)
    assert out == ""
    assert f"there is no event kind '{kind}'; {hint}" in err


def test_events_of_two_runs_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    _, err = said(capsys, "events", str(tmp_path / "a"), str(tmp_path / "b"), code=2)
    assert "events shows one run at a time" in err


# parse


@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.json.gz", "t.jsonl.zst"])
def test_a_parsed_trace_gives_the_same_events_and_verdicts(
    name: str, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / name
    evidence = [files["strace"], files["pcap"], files["mcp"]]
    out, err = said(capsys, "parse", *evidence, "-o", str(trace))
    assert out == ""
    events = said(capsys, "events", *evidence)[0]
    count = events.count("\n")
    assert err.startswith(f"{trace}: {count} events\n  syscalls  {files['strace']}  lines 6, ")
    assert said(capsys, "events", str(trace))[0] == events
    code = main(["check", *evidence, "--format", "json"])
    direct = json.loads(capsys.readouterr().out)
    through = json.loads(said(capsys, "check", str(trace), "--format", "json", code=code)[0])
    assert through["checks"] == direct["checks"]
    assert through["observations"] == direct["observations"]
    raw = trace.read_bytes()
    if name.endswith(".gz"):
        raw = gzip.decompress(raw)
    elif name.endswith(".zst"):
        raw = zstandard.ZstdDecompressor().stream_reader(raw).read()
    lines = raw.splitlines()
    assert len(json.loads(raw)["events"] if "jsonl" not in name else lines[1:-1]) == count


def test_a_quiet_parse_says_nothing(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "parse", files["mcp"], "-q", "-o", str(tmp_path / "t.json")) == ("", "")


def test_parse_says_what_was_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path)["strace"]
    log.write_text(log.read_text() + "what is this\n")
    _, err = said(capsys, "parse", str(log), "-o", str(tmp_path / "t.json"))
    assert f"(first at {log}:7)\n" in err or f"({log}:7)\n" in err
    assert "unparsed" in err


def test_parse_needs_an_output(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "Missing option '-o'" in said(capsys, "parse", files["mcp"], code=2)[1]


def test_a_failed_parse_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.log"
    bad.write_text("Roses are red\n")
    trace = tmp_path / "out" / "t.json"
    trace.parent.mkdir()
    said(capsys, "parse", "--strace", str(bad), "-o", str(trace), code=4)
    assert list(trace.parent.iterdir()) == []


# detectors


def test_the_list_of_detectors_has_one_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "detectors")
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == list(detectors())


def test_every_detector_has_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    found = detectors()
    assert len(found) >= 5
    for name, kind in found.items():
        out, _ = said(capsys, "detectors", name)
        assert out.startswith(f"{name}  v{kind.spec.version}  ")
        words = " ".join(out.split())
        for told in (kind.spec.claim, *kind.spec.blind_to, *(group.purpose for group in kind.spec.needs)):
            assert " ".join(told.split()) in words


def test_a_category_has_the_pages_of_its_checks(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "detectors", "egress")
    assert out.count("\nclaim ") == sum(kind.spec.category == "egress" for kind in detectors().values())


def test_detectors_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    loaded = json.loads(said(capsys, "detectors", "--format", "json")[0])
    assert [item["id"] for item in loaded] == list(detectors())
    for item in loaded:
        spec = detectors()[item["id"]].spec
        assert item["blind_to"] == list(spec.blind_to)
        assert [group["purpose"] for group in item["needs"]] == [group.purpose for group in spec.needs]
    alone = json.loads(said(capsys, "detectors", "egress.direct-ip", "--format", "json")[0])
    assert [item["id"] for item in alone] == ["egress.direct-ip"]


def test_an_unknown_detector_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        "there is no check 'egress.direkt-ip'; did you mean" in said(capsys, "detectors", "egress.direkt-ip", code=2)[1]
    )


# schema and completion


def test_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = said(capsys, "schema", "--list")[0].split()
    assert {"trace", "result", "results", "event"} <= set(kinds)
    for kind in kinds:
        loaded = json.loads(said(capsys, "schema", kind)[0])
        assert loaded["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert loaded["$id"] == f"urn:mcpdetect:schema:{kind}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name one KIND, or ask for --list"),
        (["result", "--list"], "name one KIND, or ask for --list"),
        (["nothing"], "there is no schema 'nothing'; kinds are trace, "),
    ],
)
def test_wrong_usage_of_schema_is_2(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in said(capsys, "schema", *arguments, code=2)[1]


def test_completion_starts_no_shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("subprocess.run", refuse)
    monkeypatch.setattr("subprocess.Popen", refuse)
    for shell in ("bash", "zsh", "fish"):
        assert "_MCPDETECT_COMPLETE" in said(capsys, "completion", shell)[0]
