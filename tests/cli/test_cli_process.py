"""The program as a process: streams, signals, terminals, faults of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_evidence import MCP

PROGRAM = [sys.executable, "-m", "mcpdetect"]


@pytest.fixture
def mcp(tmp_path: Path) -> str:
    file = tmp_path / "mcp.jsonl"
    file.write_text(MCP)
    return str(file)


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    return {**kept, "TERM": "xterm", "LC_ALL": "C.UTF-8", **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, env=environment(**more), timeout=60, check=False
    )


def shell(command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a bash command in which ``$MCPDETECT`` is the program."""
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        env=environment(MCPDETECT=" ".join(PROGRAM), **more),
        timeout=60,
        check=False,
    )


def on_terminal(arguments: list[str], columns: int = 80, **more: str) -> tuple[int, str]:
    """Run the program with stdout and stderr on a terminal; return exit code and what the terminal got."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=child, stderr=child, env=environment(COLUMNS=str(columns), **more)
    )
    os.close(child)
    seen = b""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        if select.select([parent], [], [], 1)[0]:
            try:
                part = os.read(parent, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
    os.close(parent)
    return process.wait(timeout=60), seen.decode()


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("mcpdetect 0.")
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert [
        word for word in ("check", "parse", "events", "detectors", "schema", "completion") if word not in done.stdout
    ] == []


def test_json_is_the_only_thing_on_stdout(mcp: str) -> None:
    done = run("check", mcp, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["schema"] == "mcpdetect.result/1"


def test_an_error_leaves_stdout_empty(tmp_path: Path) -> None:
    done = run("check", str(tmp_path / "none.log"), "--format", "json")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("command", ["check", "events"])
def test_a_reader_that_goes_away_is_no_error(command: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.jsonl"
    file.write_text(MCP * 3000)
    done = shell(f"$MCPDETECT {command} {file} | head -n 1; echo ${{PIPESTATUS[0]}}")
    assert done.stderr == ""
    first, code = done.stdout.splitlines()
    assert first
    assert code == "0"


def test_a_trace_written_to_a_reader_that_goes_away(tmp_path: Path) -> None:
    file = tmp_path / "mcp.jsonl"
    file.write_text(MCP * 3000)
    done = shell(f"$MCPDETECT parse {file} -o - | head -c 30; echo; echo ${{PIPESTATUS[0]}}")
    assert done.stdout == '{"schema": "mcpdetect.trace/1"\n0\n'
    assert done.stderr == ""


def test_a_trace_through_a_pipe_is_checked(mcp: str) -> None:
    done = shell(f"$MCPDETECT parse {mcp} -q -o - | $MCPDETECT check /dev/stdin --format json")
    assert (done.returncode, done.stderr) == (0, "")
    direct = json.loads(run("check", mcp, "--format", "json").stdout)
    assert json.loads(done.stdout) == direct


def test_process_substitution(mcp: str) -> None:
    done = shell(f"$MCPDETECT check --mcp <(cat {mcp}) -q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_full_disk_is_2_and_told(mcp: str) -> None:
    done = shell(f"$MCPDETECT check {mcp} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == "Error: cannot write to standard output: No space left on device\n"


def test_a_closed_stdout_is_2_and_told(mcp: str) -> None:
    done = shell(f"$MCPDETECT check {mcp} >&-")
    assert done.returncode == 2
    assert "standard output" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_stderr_changes_nothing(mcp: str) -> None:
    done = shell(f"$MCPDETECT check {mcp} --format json 2>&-")
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema"] == "mcpdetect.result/1"


def test_an_ascii_terminal_gets_ascii(mcp: str) -> None:
    done = run("check", mcp, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "  ? not observable" in done.stdout
    assert "  - not detected" in done.stdout


def test_a_fault_of_our_own_is_5_without_a_traceback(tmp_path: Path) -> None:
    code = (
        "import mcpdetect.api\n"
        "def fault(*a, **k): raise ZeroDivisionError('a\\x1b[2Jb')\n"
        "mcpdetect.api.check = fault\n"
        "from mcpdetect.cli.main import run\n"
        "run()\n"
    )
    file = tmp_path / "mcp.jsonl"
    file.write_text(MCP)
    command = [sys.executable, "-c", code, "check", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (5, "")
    assert "mcpdetect failed; nothing was decided\n  value: ZeroDivisionError: a\\x1b[2Jb\n" in done.stderr
    assert "Traceback" not in done.stderr
    asked = {**environment(), "MCPDETECT_TRACEBACK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=asked, check=False)
    assert done.returncode == 5
    assert "Traceback" in done.stderr


def test_an_interrupt_while_reading_is_130(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [*PROGRAM, "check", "--mcp", str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    with pipe.open("wb", buffering=0) as writer:  # opens once the program reads
        writer.write(MCP.encode())
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "")


def test_colour_on_a_terminal_unless_refused(mcp: str) -> None:
    code, seen = on_terminal(["check", mcp])
    assert code == 0
    assert "\x1b[1m" in seen
    assert "\x1b" not in on_terminal(["check", mcp], TERM="dumb")[1]
    # Where reading takes half a second, a progress line is erased (ESC [2K), which is no colour (ESC [...m).
    for refused in (on_terminal(["check", mcp], NO_COLOR="1"), on_terminal(["check", mcp, "--no-color"])):
        assert "\x1b" not in refused[1].replace("\x1b[2K", "")


def test_lines_fit_the_terminal(mcp: str) -> None:
    narrow = on_terminal(["check", mcp, "--no-color"], columns=80)[1].replace("\r\n", "\n").splitlines()
    assert max(len(line) for line in narrow if mcp not in line) <= 80


def test_shell_completion() -> None:
    for name, marker in (
        ("bash", "complete -o nosort -F"),
        ("zsh", "#compdef mcpdetect"),
        ("fish", "complete --no-files"),
    ):
        done = run("completion", name)
        assert (done.returncode, done.stderr) == (0, "")
        assert marker in done.stdout
    asked = run(_MCPDETECT_COMPLETE="bash_complete", COMP_WORDS="mcpdetect check --check egress.d", COMP_CWORD="3")
    assert asked.stdout.splitlines() == ["plain,egress.direct-ip"]
