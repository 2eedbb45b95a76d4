"""Bad input, and odd but good input: each gives one clear error, or works."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest
import zstandard
from cli_evidence import MCP, pcap, write

from mcpdetect.cli.main import main


def error_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must fail for its input; return its one block on stderr."""
    assert main(arguments) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("error: ") == 1
    assert "Traceback" not in err
    return err


OPTIONS = ["strace", "pcap", "dns", "firewall", "mcp"]


@pytest.mark.parametrize("option", OPTIONS)
def test_an_empty_file(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty"
    file.touch()
    err = error_of(["check", f"--{option}", str(file)], capsys)
    assert err.startswith(f"error: {file}: is empty\n  likely cause: the recorder never started")


def test_an_empty_file_without_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty"
    file.touch()
    assert error_of(["check", str(file)], capsys).startswith(f"error: {file}: is empty\n")


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("command", [["check"], ["events"], ["parse", "-o", os.devnull]])
def test_a_file_of_no_known_kind(
    command: list[str], option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command[0] == "parse":
        command = ["parse", "-o", str(tmp_path / "out.json")]
    file = tmp_path / "poem.txt"
    file.write_text("Roses are red,\nviolets are blue.\n" * 3)
    assert str(file) in error_of([*command, f"--{option}", str(file)], capsys)
    assert not (tmp_path / "out.json").exists()


def test_a_file_of_no_known_kind_without_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "poem.txt"
    file.write_text("Roses are red,\nviolets are blue.\n")
    assert str(file) in error_of(["check", str(file)], capsys)


LOOKS = {
    "strace": "an strace log",
    "pcap": "a pcap capture",
    "dns": "a dnsmasq log",
    "firewall": "a kernel firewall log",
    "mcp": "an MCP transcript",
}


@pytest.mark.parametrize("really", OPTIONS)
@pytest.mark.parametrize("said", OPTIONS)
def test_swapped_options(said: str, really: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path)[really]
    if said == really:
        assert main(["check", f"--{said}", str(file)]) in (0, 1)
        return
    err = error_of(["check", f"--{said}", str(file)], capsys)
    assert err.startswith(f"error: {file}: ")
    assert f"looks like {LOOKS[really]}, not what --{said} takes\n" in err
    assert "  likely cause: two options were swapped, or a file was misnamed\n" in err
    assert err.endswith(f"  try: give it with --{really}\n")


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(60), "looks like an ELF program"),
        (b"PK\x03\x04" + bytes(60), "looks like an archive"),
    ],
)
def test_a_kind_that_is_known_but_not_read(
    head: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x"
    file.write_bytes(head)
    assert words in error_of(["check", str(file)], capsys)


def test_a_whole_trace_given_with_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, trace = write(tmp_path), tmp_path / "t.json"
    assert main(["parse", "--mcp", str(files["mcp"]), "-o", str(trace), "-q"]) == 0
    err = error_of(["check", "--strace", str(trace)], capsys)
    assert "looks like an mcpdetect trace" in err
    assert err.endswith("  try: give it as TRACE, without an option\n")


@pytest.mark.parametrize("option", OPTIONS)
def test_a_truncated_file_is_read_as_far_as_it_goes_and_the_loss_is_told(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path)[option]
    whole = file.read_bytes() if option != "pcap" else pcap(packets=3)
    file.write_bytes(whole[:-7])
    assert main(["check", f"--{option}", str(file)]) in (0, 1)
    out, err = capsys.readouterr()
    assert err == ""
    assert "NOTES\n" in out or "COULD NOT BE SEEN\n" in out
    assert main(["parse", f"--{option}", str(file), "-o", str(tmp_path / "t.json")]) == 0
    told = capsys.readouterr().err
    assert any(word in told for word in ("truncated", "unparsed", "no-exit")), told


def test_a_truncated_compressed_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mcp.jsonl.zst"
    noise = "".join(MCP.replace("Adds", hashlib.sha256(bytes([n])).hexdigest()) for n in range(200)) * 20
    file.write_bytes(zstandard.compress(noise.encode())[:-9])
    assert main(["parse", "--mcp", str(file), "-o", str(tmp_path / "t.json")]) == 0
    assert "stream broke" in capsys.readouterr().err


def test_a_file_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path)["mcp"]
    opened = Path.open

    def refuse(path: Path, *arguments: object, **options: object) -> object:
        if path == file:
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    err = error_of(["check", "--mcp", str(file)], capsys)
    assert err == f"error: {file}: cannot be read: Permission denied\n  try: check its permissions\n"


def test_a_folder_that_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    err = error_of(["check", str(tmp_path)], capsys)
    assert err.startswith(f"error: {tmp_path}: is a directory without a manifest.json\n")


def test_a_folder_given_as_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    err = error_of(["check", "--strace", str(tmp_path)], capsys)
    assert err.startswith(f"error: {tmp_path}: is a directory, not an evidence file\n")


def test_a_device_given_as_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    err = error_of(["check", "--pcap", "/dev/null"], capsys)
    assert err.startswith("error: /dev/null: is ")


@pytest.mark.parametrize("option", OPTIONS)
def test_a_pipe_works_like_its_file(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, pipe = write(tmp_path)[option], tmp_path / "pipe"
    os.mkfifo(pipe)
    expected = main(["events", f"--{option}", str(file)])
    from_file = capsys.readouterr().out
    writer = threading.Thread(target=pipe.write_bytes, args=(file.read_bytes(),))
    writer.start()
    assert main(["events", f"--{option}", str(pipe)]) == expected == 0
    writer.join()
    from_pipe = capsys.readouterr().out
    assert from_pipe.split() == from_file.replace(str(file), str(pipe)).split()
    assert from_pipe.count("\n") >= 1


def test_evidence_of_two_different_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path)
    files["pcap"].write_bytes(pcap(at=1_796_000_000))
    err = error_of(["check", "--strace", str(files["strace"]), "--pcap", str(files["pcap"])], capsys)
    assert "evidence of two different runs: the times of these files do not meet\n" in err
    assert "41192 s before" in err.replace("41,192", "41192")


def test_names_from_the_command_line_are_harmless_in_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = str(tmp_path / "a\x1b[2J\u202eb\nerror: c")
    assert main(["check", "--mcp", hostile]) == 4
    assert capsys.readouterr().err == (
        f"error: {tmp_path}/a\\x1b[2J\\u202eb\\x0aerror: c: cannot be opened: No such file or directory\n"
        "  try: check the path and its spelling\n"
    )


def test_a_name_that_is_no_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9.jsonl"
    Path(os.fsdecode(raw)).write_text(MCP)
    for form in ("text", "json"):
        assert main(["check", os.fsdecode(raw), "--format", form]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert "caf" in out
        out.encode()
    assert main(["parse", os.fsdecode(raw), "-o", str(tmp_path / "t.json")]) == 0
    assert main(["events", str(tmp_path / "t.json")]) == 0
