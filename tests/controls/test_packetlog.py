"""The firewall's log of a cell: every packet that was denied, beside the counters and without changing them."""

import json
from pathlib import Path
from typing import Any

import pytest

from controls.catalog import Control, Variant, load_control
from controls.recorder import packetlog
from controls.recorder.denial import DENIALS
from controls.recorder.errors import RecorderError
from controls.recorder.job import Job
from controls.recorder.packetlog import NAME, PacketLog, log_chain, log_losses, logs
from controls.recorder.packing import pieces
from controls.recorder.record import record
from controls.recorder.tools import missing
from mcpdetect.api import check
from mcpdetect.ingest.open import open_bundle
from mcpdetect.model.net import FirewallDrop

PROBLEM = missing(["gcc", "ulogd"])
recording = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")
CONNECTS = """import socket
for kind, address in ((socket.SOCK_STREAM, ("203.0.113.9", 443)), (socket.SOCK_DGRAM, ("203.0.113.9", 5000))):
    with socket.socket(socket.AF_INET, kind) as one:
        one.settimeout(1.5)
        try:
            one.connect(address)
            one.send(b"x")
            one.recv(1)
        except OSError:
            pass
"""


def recorded(folder: Path, **changes: Any) -> Path:
    programs = folder / "made/up"
    programs.mkdir(parents=True)
    (programs / "connects.py").write_text(CONNECTS)
    settings: dict[str, Any] = {
        "name": "python",
        "truth": "fires",
        "why": "made up",
        "run": ("/usr/bin/python3", "{control}/connects.py"),
        "axes": {"runtime": "python"},
        "expect": {},
        "log": True,
        **changes,
    }
    return record(Control("made/up", programs, "nothing"), Variant(**settings), folder / "out", probe=True)


def test_a_chain_of_its_own_logs_what_the_rules_deny_as_it_was_dialled() -> None:
    rules = [
        (
            "meta l4proto tcp ct original ip daddr 198.18.0.1 ct original proto-dst 20000 "
            'counter log prefix "mcpdetect-probe before 00" reject with tcp reset'
        ),
        "udp dport 53 accept",
        'iifname "wire" meta l4proto tcp ct original proto-dst { 80, 443 } counter drop',
    ]
    assert log_chain(rules, "input", gateway=True).splitlines() == [
        "  chain noted {",
        "    type filter hook prerouting priority raw; policy accept;",
        (
            "    ip daddr 198.18.0.1 tcp dport 20000 "
            'log prefix "ulogd: mcpdetect-probe before 00 " group 5 queue-threshold 1 accept'
        ),
        "    udp dport 53 accept",
        '    iifname "wire" tcp dport { 80, 443 } log prefix "ulogd: input drop " group 5 queue-threshold 1 accept',
        "  }",
    ]
    for name, denial in DENIALS.items():
        if denial.hook:
            made = log_chain(denial.rules.split("; "), denial.hook, gateway=denial.side == "internet")
            assert made.count("group 5") == denial.rules.count("counter ") >= 1, name
            assert "ct original" not in made, name


def test_lost_packets_and_an_end_that_nobody_asked_for_are_seen_in_the_daemons_own_words(tmp_path: Path) -> None:
    begun = b"Mon Nov 30 23:22:19 2026 <3> ulogd.c:1645 initialization finished, entering main loop\n"
    losing = b"Mon Nov 30 23:22:20 2026 <5> ulogd_inppkt_NFLOG.c:503 We are losing events. Please, consider using\n"
    ended = b"Mon Nov 30 23:22:20 2026 <5> ulogd.c:1378 Terminal signal received, exiting\n"
    assert log_losses(begun + ended) == (0, True)
    assert log_losses(begun + losing * 2) == (2, False)
    (tmp_path / "strace.log").write_bytes(b"7 +++ exited with 0 +++\n")
    (tmp_path / "dnsmasq.log").write_bytes(b"")
    (tmp_path / "ulogd.txt").write_bytes(begun + losing * 2)
    job = Job("a/b/c", ["/bin/true"], "0", ["-f"], "/", capture=False, log=True)
    versions = dict.fromkeys(("strace", "dnsmasq", "ulogd"), "x")
    (tmp_path / NAME).touch()
    assert not logs(tmp_path)
    assert [one.channel for one in pieces(job, tmp_path, versions)] == ["syscalls", "dns"]
    (tmp_path / NAME).write_bytes(b"Nov 30 23:22:20 cell ulogd: output drop IN= OUT=eth0 SRC=10.200.0.2 DST=1.1.1.1\n")
    (log,) = (one for one in pieces(job, tmp_path, versions) if one.channel == "firewall")
    assert (log.format, log.complete, [one.count for one in log.losses]) == ("kernel-log", False, [2])


def test_a_control_asks_for_the_log(tmp_path: Path) -> None:
    text = (
        "plants: x\nvariants:\n  a:\n    truth: fires\n    why: x\n    run: [/bin/true]\n    axes: {}\n    expect: {}\n"
        "    denial: output-drop\n    cell: {log: true}\n"
    )
    (tmp_path / "control.yaml").write_text(text)
    assert load_control(tmp_path).variants["a"].log is True


def test_where_its_plug_ins_are_missing_the_message_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packetlog, "_PLUGINS", (str(tmp_path / "nowhere"),))
    with pytest.raises(RecorderError, match=r"apt-get install ulogd2"):
        PacketLog(tmp_path, 1)


@recording
@pytest.mark.parametrize(
    ("denial", "tcp", "udp"),
    [
        ("output-reject-reset", "reject", "drop"),
        ("gateway-drop", "drop", "drop"),
        ("gateway-reject-reset", "reject", "drop"),
        ("gateway-drop-port", "drop", None),
    ],
)
def test_every_denied_packet_is_in_the_log_with_where_it_was_going(
    denial: str, tcp: str, udp: str | None, tmp_path: Path
) -> None:
    bundle = recorded(tmp_path, denial=denial)
    said = [one for one in open_bundle(bundle).events() if isinstance(one, FirewallDrop)]
    lines = [one for one in said if one.where.file.startswith(NAME) and "probe" not in one.prefix]
    found = {(one.address, one.transport, one.port, one.action) for one in lines}
    wanted = {("203.0.113.9", "tcp", 443, tcp)}
    assert found == wanted | ({("203.0.113.9", "udp", 5000, udp)} if udp else set())
    told = check(bundle)
    firewall = [(one.source.removesuffix(".zst"), one.proof) for one in told.observations if one.channel == "firewall"]
    # The probes' ports are none of those that a denial of some ports denies.
    proof = "declared" if denial == "gateway-drop-port" else "proved"
    assert firewall == [("nft.txt", proof), (NAME, proof)]
    (blocked,) = (one for one in told.checks if one.check == "network.blocked")
    assert blocked.verdict == "detected"


@recording
def test_without_a_firewall_the_run_says_that_nothing_was_logged(tmp_path: Path) -> None:
    manifest = json.loads((recorded(tmp_path, denial="no-route") / "manifest.json").read_text())
    assert manifest["run"]["notes"] == ["no firewall of the run logged a packet"]
    assert "firewall" not in {one["channel"] for one in manifest["evidence"]}
