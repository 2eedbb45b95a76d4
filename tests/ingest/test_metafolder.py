"""Folders with meta.json: channels by the files that are there, times exactly as written."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpdetect.errors import ConfigError
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.metafolder import load_real_meta
from mcpdetect.model.trace import Run

META: dict[str, Any] = {
    "name": "srv",
    "mode": "denied-gw",
    "argv": ["/opt/bin/srv", "--stdio"],
    "strace_opts": ["-f", "-ttt", "-s", "512"],
    "t_start": 1796041192.1537764,
    "t_exec": 1796041192.384299,
    "t_total": 7.25,
    "strace_rc": 0,
    "canary_tag": "820fb1cc",
    "tools": ["more", "keys", "are", "allowed"],
}
BEGIN, TOTAL = 1796041192_153776400, 7_250_000_000


def folder(root: Path, names: list[str], **changes: object) -> Path:
    path = root / "srv" / "denied-gw"
    path.mkdir(parents=True)
    for name in names:
        (path / name).write_bytes(b"x")
    (path / "meta.json").write_text(json.dumps({**META, **changes}))
    return path


def test_every_file_is_a_channel_with_its_declaration(tmp_path: Path) -> None:
    names = ["trace.log.zst", "capture.pcap", "lo.pcap", "dnsmasq.log", "mcp.jsonl", "http.jsonl", "stderr.log"]
    found = load_real_meta(folder(tmp_path, names))
    assert found.run == Run(
        id="srv/denied-gw",
        target=["/opt/bin/srv", "--stdio"],
        mode="denied",
        denial="denied-gw",
        entry="/opt/bin/srv",
        started_ns=1796041192_384299000,
        ended_ns=BEGIN + TOTAL,
        resolvers=["10.200.0.1"],
        declared=True,
    )
    assert [(item.name, item.channel, item.format, item.declared.scope) for item in found.evidence] == [
        ("trace.log.zst", "syscalls", "strace", "process tree of the target"),
        ("capture.pcap", "packets", "pcap", "eth0 of the server namespace"),
        ("lo.pcap", "packets", "pcap", "loopback"),
        ("dnsmasq.log", "dns", "dnsmasq", "resolver 10.200.0.1"),
        ("mcp.jsonl", "mcp", "mcp-ndjson", "standard input and output of the target"),
    ]
    assert found.evidence[0].declared == Declared(
        tool="strace",
        options=["-f", "-ttt", "-s", "512"],
        begin_ns=BEGIN,
        end_ns=BEGIN + TOTAL + 2_000_000_000,
        complete=True,
        scope="process tree of the target",
    )
    assert (found.tag, found.secrets, found.expect) == ("820fb1cc", None, None)


def test_a_missing_capture_is_a_channel_that_was_not_recorded(tmp_path: Path) -> None:
    found = load_real_meta(folder(tmp_path, ["trace.log.zst", "dnsmasq.log"]))
    assert [item.channel for item in found.evidence] == ["syscalls", "dns"]


def test_an_open_run_has_no_denial(tmp_path: Path) -> None:
    found = load_real_meta(folder(tmp_path, ["trace.log.zst"], mode="open") / "meta.json")
    assert (found.run.mode, found.run.denial) == ("open", None)


@pytest.mark.parametrize(("status", "complete"), [(0, True), (1, True), (-15, False), (None, False), ("0", False)])
def test_a_tracer_that_was_killed_has_no_complete_log(tmp_path: Path, status: object, complete: bool) -> None:
    found = load_real_meta(folder(tmp_path, ["trace.log.zst", "capture.pcap"], strace_rc=status))
    assert [item.declared.complete for item in found.evidence] == [complete, True]


def test_without_a_duration_nothing_is_known_to_be_complete(tmp_path: Path) -> None:
    path = folder(tmp_path, ["capture.pcap"])
    data = dict(META)
    del data["t_total"]
    (path / "meta.json").write_text(json.dumps(data))
    found = load_real_meta(path)
    assert (found.run.ended_ns, found.evidence[0].declared.end_ns, found.evidence[0].declared.complete) == (
        None,
        None,
        False,
    )


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "argv is text": ({"argv": "srv"}, "/argv", "must be a list of texts"),
    "argv is empty": ({"argv": []}, "/argv", "names no program"),
    "options hold a number": ({"strace_opts": ["-s", 512]}, "/strace_opts", "must be a list of texts"),
    "mode is missing": ({"mode": None}, "/mode", "must be text"),
    "time is text": ({"t_start": "noon"}, "/t_start", "must be a number of seconds"),
    "time is true": ({"t_start": True}, "/t_start", "must be a number of seconds"),
    "time is huge": ({"t_start": 10**12}, "/t_start", "is no time in seconds"),
    "duration is negative": ({"t_total": -1}, "/t_total", "a run cannot take less than no time"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_each_mistake_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    changes, place, problem = WRONG[name]
    path = folder(tmp_path, ["trace.log.zst"], **changes)
    with pytest.raises(ConfigError) as caught:
        load_real_meta(path)
    assert (caught.value.file, caught.value.place, caught.value.problem) == (str(path / "meta.json"), place, problem)


def test_a_folder_without_evidence_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_real_meta(folder(tmp_path, []))
    assert caught.value.problem == "there is no evidence beside it"


def test_a_list_is_no_such_file(tmp_path: Path) -> None:
    path = folder(tmp_path, ["trace.log.zst"])
    (path / "meta.json").write_text("[]")
    with pytest.raises(ConfigError) as caught:
        load_real_meta(path)
    assert caught.value.problem == "must be an object"
