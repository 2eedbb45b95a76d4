"""The commands probe and calibrate."""

import json
from pathlib import Path

import pytest

from mcpdetect.cli.main import main

HEAD = "100 1700000000.000000 execve("
LOG = f"""{HEAD}"/bin/sh", ["sh", "-c", "..."], 0x7ffd /* 5 vars */) = 0
100 1700000000.010000 vfork() = 101
101 1700000000.020000 execve("/bin/sh", ["sh", "probe.sh", "before", "0123456789abcdef"], 0x7ffd /* 5 vars */) = 0
101 1700000000.030000 openat(AT_FDCWD, "/tmp/x", O_RDONLY) = 3
101 1700000000.040000 exit_group(0) = ?
101 1700000000.050000 +++ exited with 0 +++
100 1700000000.060000 vfork() = 102
102 1700000000.070000 execve("/bin/sh", ["sh", "probe.sh", "after", "fedcba9876543210"], 0x7ffd /* 5 vars */) = 0
102 1700000000.080000 openat(AT_FDCWD, "/tmp/x", O_RDONLY) = 3
102 1700000000.090000 exit_group(0) = ?
102 1700000000.100000 +++ exited with 0 +++
100 1700000000.110000 exit_group(0) = ?
100 1700000000.120000 +++ exited with 0 +++
"""


def test_the_probe_is_printed_as_it_lies_in_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[2] / "mcpdetect/data/probe"
    for options, name in (([], "probe.sh"), (["--c"], "probe.c")):
        assert main(["probe", *options]) == 0
        assert capsys.readouterr().out == (root / name).read_text()


def test_calibrate_finds_the_probes_and_says_what_they_prove(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "own.log"
    log.write_text(LOG)
    assert main(["calibrate", "--strace", str(log), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "mcpdetect.calibration/0"
    assert [(probe["phase"], probe["nonce"]) for probe in found["probes"]] == [
        ("before", "0123456789abcdef"),
        ("after", "fedcba9876543210"),
    ]
    (file,) = found["files"]
    assert (file["observation"]["proof"], file["observation"]["watches"]["file.open"]) == ("proved", "proved")
    assert file["before"] == file["after"] == ["file.open", "process.exit", "process.start"]
    assert found["denial"] == []
    assert main(["calibrate", "--strace", str(log)]) == 0
    text = capsys.readouterr().out
    assert "probe before  0123456789abcdef" in text
    assert "syscalls  " in text


def test_calibrate_without_a_probe_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "own.log"
    log.write_text(f'{HEAD}"/bin/true", ["true"], 0x7ffd /* 5 vars */) = 0\n100 1700000001.0 +++ exited with 0 +++\n')
    assert main(["calibrate", "--strace", str(log)]) == 4
    said = capsys.readouterr().err
    assert "no probe is in this evidence" in said
    assert "mcpdetect probe" in said


def test_two_probes_of_one_phase_must_be_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "own.log"
    log.write_text(LOG.replace('"after"', '"before"'))
    assert main(["calibrate", "--strace", str(log)]) == 4
    assert "several probes of one phase" in capsys.readouterr().err
    assert main(["calibrate", "--strace", str(log), "--before", "fedcba9876543210"]) == 0
    assert "probe before  fedcba9876543210" in capsys.readouterr().out


@pytest.mark.parametrize("nonce", ["", "0123", "0123456789ABCDEF", "0123456789abcdeg"])
def test_a_wrong_nonce_is_wrong_usage(nonce: str, tmp_path: Path) -> None:
    assert main(["calibrate", "--strace", str(tmp_path / "x"), "--before", nonce]) == 2
