"""The progress line: on a terminal's stderr only, only for long work, gone at the end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from cli_evidence import MCP

from mcpdetect.cli.progress import Progress
from mcpdetect.ingest.opener import open_evidence


class Terminal(io.StringIO):
    """A stderr that is, or is not, a terminal."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the program sees; each look at it takes 0.2 s. The terminal is an ordinary one."""
    now = [100.0]

    def look() -> float:
        now[0] += 0.2
        return now[0]

    monkeypatch.setattr("mcpdetect.cli.progress.monotonic", look)
    monkeypatch.setenv("TERM", "xterm")
    return now


def shown(monkeypatch: pytest.MonkeyPatch, files: list[Path], *, tty: bool = True, wanted: bool = True) -> str:
    """Read every file in five pieces under a progress line; return what stderr got."""
    stream = Terminal(tty=tty)
    monkeypatch.setattr("sys.stderr", stream)
    with Progress(files, wanted=wanted):
        for path in files:
            with open_evidence(path) as evidence:
                size = path.stat().st_size // 5
                while evidence.read(size):
                    pass
    return stream.getvalue()


def test_the_line_says_how_far_and_how_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    file = tmp_path / "x"
    file.write_bytes(bytes(50_000_000))
    text = shown(monkeypatch, [file])
    lines = text.split("\r\x1b[2K")
    assert lines[0] == ""
    assert lines[1:] == [
        "reading 30 of 50 MB, 50 MB/s",
        "reading 40 of 50 MB, 50 MB/s",
        "reading 50 of 50 MB, 50 MB/s",
        "reading 50 of 50 MB, 42 MB/s",
        "",
    ]


def test_nothing_where_stderr_is_no_terminal_that_can_erase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    file = tmp_path / "x"
    file.write_bytes(bytes(5000))
    assert shown(monkeypatch, [file], tty=False) == ""
    assert shown(monkeypatch, [file], wanted=False) == ""
    assert shown(monkeypatch, [file]) != ""
    monkeypatch.setenv("TERM", "dumb")
    assert shown(monkeypatch, [file]) == ""


def test_nothing_for_short_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpdetect.cli.progress.monotonic", lambda: 100.0)
    file = tmp_path / "x"
    file.write_bytes(bytes(5000))
    assert shown(monkeypatch, [file]) == ""


def test_the_total_of_a_folder_is_that_of_its_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    (tmp_path / "mcp.jsonl").write_text(MCP * 40_000)
    (tmp_path / "notes.txt").write_bytes(bytes(90_000_000))
    stream = Terminal(tty=True)
    monkeypatch.setattr("sys.stderr", stream)
    with Progress([tmp_path]), open_evidence(tmp_path / "mcp.jsonl") as evidence:
        while evidence.read(1_000_000):
            pass
        seen = stream.getvalue()
    size = len(MCP) * 40_000 / 1_000_000
    assert size > 10
    assert f" of {size:.0f} MB, " in seen


def test_a_pipe_has_no_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    (tmp_path / "x").write_bytes(bytes(20_000_000))
    stream = Terminal(tty=True)
    monkeypatch.setattr("sys.stderr", stream)
    with Progress([Path("/dev/stdin"), tmp_path / "none"]), open_evidence(tmp_path / "x") as evidence:
        while evidence.read(4_000_000):
            pass
        seen = stream.getvalue()
    assert "reading 20 MB, " in seen
    assert " of " not in seen


def test_a_terminal_that_went_away_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    (tmp_path / "x").write_bytes(bytes(5000))
    monkeypatch.setattr("sys.stderr", Gone(tty=True))
    with Progress([tmp_path / "x"]), open_evidence(tmp_path / "x") as evidence:
        assert sum(len(part) for part in iter(lambda: evidence.read(500), b"")) == 5000
