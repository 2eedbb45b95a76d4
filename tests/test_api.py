"""The API page: both of its examples run, and say what they say."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

import mcpdetect
from mcpdetect.contract import Detector
from mcpdetect.engine import discovery

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "python-api.md"


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_page_has_two_examples_and_the_first_is_short() -> None:
    first, second = examples()
    assert len([line for line in first.splitlines() if line.strip()]) == 9
    assert "class ProcessShell(Detector)" in second


def test_the_first_example_prints_the_verdict_and_where_it_rests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(examples()[0], str(PAGE), "exec"), {})  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "detected egress.direct-ip (declared): 1 finding"
    assert re.fullmatch(
        r"  suspicious Data or a connection reached [0-9.]+:\d+/tcp, an address no name explains"
        r"( (strace\.log|capture\.pcap)(\.zst)?[:#]\d+(\+\d+)?)+",
        lines[1],
    )


@pytest.fixture
def shell_detector(monkeypatch: pytest.MonkeyPatch) -> type[Detector]:
    scope: dict[str, object] = {}
    exec(compile(examples()[1], str(PAGE), "exec"), scope)  # noqa: S102
    detector = scope["ProcessShell"]
    assert isinstance(detector, type)
    assert issubclass(detector, Detector)
    point = EntryPoint("shell", "outside:ProcessShell", discovery.ENTRY_POINT_GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: detector)
    monkeypatch.setattr(discovery, "entry_points", lambda group: EntryPoints([point]))
    return detector


def test_an_outside_detector_joins_the_others(shell_detector: type[Detector], tmp_path: Path) -> None:
    assert mcpdetect.installed_detectors()["process.shell"] is shell_detector
    log = tmp_path / "trace.log"
    log.write_text(
        '7 1700000000.000001 execve("/bin/sh", ["sh", "-c", "true"], 0x7ffd /* 3 vars */) = 0\n'
        "7 1700000000.000002 exit_group(0) = ?\n"
        "7 1700000000.000003 +++ exited with 0 +++\n"
    )
    result = mcpdetect.check(mcpdetect.open_evidence_files(strace=[log]), checks=["process"])
    assert [(check.check, check.verdict) for check in result.checks] == [("process.shell", "detected")]
    assert [str(place) for place in result.checks[0].findings[0].where] == [f"{log}:1"]


def test_the_exported_names_are_sorted_and_there() -> None:
    assert mcpdetect.__all__ == sorted(mcpdetect.__all__)
    assert [name for name in mcpdetect.__all__ if not hasattr(mcpdetect, name)] == []
