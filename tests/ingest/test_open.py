"""Opening runs: sets of files, manifests that do not fit, folders that are nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcpdetect
from mcpdetect.errors import InputError, UnknownFormat

ROOT = Path(__file__).resolve().parent.parent.parent
PARENT = (
    '1700000000.000001 execve("/usr/bin/app", ["app"], 0x7ffd /* 3 vars */) = 0\n'
    "1700000000.000002 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 12\n"
    "1700000000.000009 +++ exited with 0 +++\n"
)
CHILD = (
    "1700000000.000003 socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 3\n"
    "1700000000.000004 connect(3, {sa_family=AF_INET, sin_port=htons(443), "
    'sin_addr=inet_addr("203.0.113.7")}, 16) = 0\n'
    '1700000000.000005 sendto(3, "x", 1, 0, NULL, 0) = 1\n'
    '1700000000.000006 recvfrom(3, "y", 1, 0, NULL, NULL) = 1\n'
    "1700000000.000007 +++ exited with 0 +++\n"
)


def test_several_strace_files_are_one_set_and_places_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.11").write_text(PARENT)
    (tmp_path / "t.12").write_text(CHILD)
    run = mcpdetect.open_evidence_files(strace=[tmp_path / "t.11", tmp_path / "t.12"])
    (check,) = mcpdetect.check(run, checks=["egress.direct-ip"]).checks
    assert [(check.verdict, finding.process) for finding in check.findings] == [("detected", "12")]
    assert [str(place) for place in check.findings[0].where] == [f"{tmp_path}/t.12:2"]


def test_two_logs_that_are_no_set_are_refused_by_name(tmp_path: Path) -> None:
    for name in ("one.log", "two.log"):
        (tmp_path / name).write_text(PARENT)
    with pytest.raises(UnknownFormat, match="has no thread id at the end of its name"):
        mcpdetect.open_evidence_files(strace=[tmp_path / "one.log", tmp_path / "two.log"])


def test_a_folder_that_is_no_bundle_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        mcpdetect.open_trace(tmp_path)
    assert (caught.value.file, caught.value.problem) == (str(tmp_path), "is a directory without a manifest.json")


def test_events_are_read_once() -> None:
    run = mcpdetect.open_trace(ROOT / "corpus" / "egress" / "direct-ip" / "c-tcp4")
    assert sum(1 for _ in run.events(frozenset({"socket.connect"}))) == 1
    with pytest.raises(InputError, match="the events of this run were read already"):
        next(iter(run.events()))


def test_no_evidence_at_all_is_an_error() -> None:
    with pytest.raises(InputError, match="there is no evidence to read"):
        mcpdetect.open_evidence_files()
