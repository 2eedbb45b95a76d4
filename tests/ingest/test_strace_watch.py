"""What a log is said to have watched: by its options, or by what occurs in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from strace_tools import hiding, read

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.strace.calls import Filter
from mcpdetect.model.observation import Loss

OPEN = '5 openat(AT_FDCWD, "/a", O_RDONLY) = 3\n5 exit_group(0) = ?\n5 +++ exited with 0 +++\n'
ALL = {
    "dns.answer",
    "dns.query",
    "fd.pass",
    "file.change",
    "file.open",
    "file.probe",
    "file.read",
    "http.request",
    "kernel.notable",
    "process.exec_failed",
    "process.exit",
    "process.start",
    "socket.connect",
    "socket.listen",
    "socket.open",
    "socket.receive",
    "socket.send",
    "socket.state",
    "tls.client_hello",
}


def test_without_a_manifest_only_what_occurs_was_watched(tmp_path: Path) -> None:
    _, observation = read(tmp_path, OPEN)
    assert observation.watches == {"file.open": "inferred", "process.exit": "inferred"}
    assert (observation.proof, observation.options) == ("inferred", [])


def test_a_kind_counts_by_its_calls_whatever_is_wanted(tmp_path: Path) -> None:
    text = "5 getuid() = 0\n" * 9000 + '5 connect(3, 0x1, 2) = -1 EFAULT (Bad address)\n5 write(1, "", 0) = 0\n' + OPEN
    _, observation = read(tmp_path, text, frozenset({"process.start"}))
    assert set(observation.watches) == {
        "dns.query",
        "file.change",
        "file.open",
        "http.request",
        "process.exit",
        "socket.connect",
        "socket.send",
        "tls.client_hello",
    }


def test_the_text_of_a_buffer_watches_nothing(tmp_path: Path) -> None:
    _, observation = read(tmp_path, '5 write(1, "connect(3) = 0", 14) = 14\n')
    assert "socket.connect" not in observation.watches


def test_options_without_a_filter_watch_everything(tmp_path: Path) -> None:
    declared = Declared(tool="strace 6.1", options=["-f", "-ttt", "-s", "512"], complete=True, scope="tree")
    _, observation = read(tmp_path, '5 openat(AT_FDCWD, "/a", O_RDONLY) = 3\n', declared=declared)
    assert observation.watches == dict.fromkeys(ALL, "declared")
    assert hiding(observation) == set()
    assert (observation.proof, observation.tool, observation.scope) == ("declared", "strace 6.1", "tree")
    assert observation.complete


def test_a_declared_filter_names_the_calls_it_left_out(tmp_path: Path) -> None:
    declared = Declared(options=["-f", "-e", "trace=network,execve,openat,open,unlink,rename"])
    _, observation = read(tmp_path, OPEN, declared=declared)
    assert "file.read" not in observation.watches
    assert observation.watches["socket.connect"] == "declared"
    told = {loss.touches[0]: loss.detail for loss in observation.losses if loss.what == "filtered"}
    assert told["file.open"] == "file.open: not traced: creat, openat2"
    assert told["socket.send"] == "socket.send: not traced: pwrite64, sendfile, splice, write, writev"
    assert "socket.connect" not in told


def test_losses_and_window_of_a_manifest_come_first(tmp_path: Path) -> None:
    declared = Declared(begin_ns=1, end_ns=9, losses=[Loss("dropped", "the disk was full")])
    _, observation = read(tmp_path, OPEN, declared=declared)
    assert observation.losses[0] == Loss("dropped", "the disk was full")
    assert (observation.begin_ns, observation.end_ns) == (1, 9)


def test_a_long_log_without_memory_calls_looks_filtered(tmp_path: Path) -> None:
    text = '5 connect(3, 0x1, 2) = -1 EFAULT (Bad address)\n5 sendto(3, "", 0, 0, NULL, 0) = 0\n' * 60
    _, observation = read(tmp_path, text)
    assert [loss.touches for loss in observation.losses if loss.what == "filtered"] == [["socket.send"]]
    _, observation = read(tmp_path, text + "5 brk(NULL) = 0x5\n")
    assert "filtered" not in hiding(observation)


@pytest.mark.parametrize(
    ("options", "kind", "missing"),
    [
        (["-e", "trace=%network"], "socket.connect", []),
        (["-etrace=%file"], "file.open", []),
        (["--trace=%desc"], "file.read", []),
        (["-e", "openat"], "file.open", ["creat", "open", "openat2"]),
        (["-e", "trace=!openat"], "file.open", ["openat"]),
        (["-e", "trace=!%network"], "socket.connect", ["connect"]),
        (["--trace", "?openat2,openat,open,creat"], "file.open", []),
        (["-e", "trace=all"], "file.open", []),
        (["-e", "signal=none", "-e", "abbrev=none"], "file.open", []),
        (["-e", "trace=none"], "file.open", ["creat", "open", "openat", "openat2"]),
    ],
)
def test_a_filter_tells_what_is_missing(options: list[str], kind: str, missing: list[str]) -> None:
    assert Filter(options).missing(kind) == missing


def test_a_filter_by_path_or_status_leaves_any_line_out(tmp_path: Path) -> None:
    for options in (["-P", "/etc"], ["-z"], ["-e", "status=failed"], ["-e", "fd=3"]):
        _, observation = read(tmp_path, OPEN, declared=Declared(options=options))
        assert [loss.touches for loss in observation.losses if loss.what == "filtered"] == [[]]


def test_a_filter_by_pattern_is_not_guessed(tmp_path: Path) -> None:
    _, observation = read(tmp_path, OPEN, declared=Declared(options=["-e", "trace=/open.*"]))
    assert observation.watches == {"file.open": "inferred", "process.exit": "inferred"}
