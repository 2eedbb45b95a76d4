"""Residues: each one named by real lines, the exact checks whose claim it spoils, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hand_sources import HandSource, observed, where
from made_runs import expecting, secrets

from mcpdetect.correlate.processes import Processes
from mcpdetect.correlate.residues import Residues, spoils
from mcpdetect.data.residues import residues
from mcpdetect.engine.discovery import detectors
from mcpdetect.engine.run import run_checks
from mcpdetect.ingest.strace import StraceLog
from mcpdetect.labels.blindspots import load_blindspots
from mcpdetect.model.event import Event, ProcessStart
from mcpdetect.model.net import NetFlow, QuicInitial, SocketConnect, TlsClientHello
from mcpdetect.model.observation import Observation
from mcpdetect.model.result import Result
from mcpdetect.model.trace import Run

ROOT = Path(__file__).parents[2]
HEAD = '7 1.000000 execve("/srv/server", ["/srv/server"], 0x7ffe /* 3 vars */) = 0\n'
UNIX = (
    "7 1.100000 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 5\n7 1.200000 connect(5, {sa_family=AF_UNIX, sun_path="
)
ALL = ["egress.direct-ip", "egress.unexplained-host", "network.blocked", "secrets.canary-read"]


def unix(path: str, result: str = "0") -> str:
    return f"{UNIX}{path}}}, 110) = {result}\n"


def tcp(address: str, port: int, result: str = "0") -> str:
    return (
        "7 1.100000 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = 5\n"
        f'7 1.200000 connect(5, {{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr("{address}")}}, 16) '
        f"= {result}\n"
    )


def events_of(folder: Path, text: str) -> list[Event]:
    path = folder / "strace.log"
    path.write_text(HEAD + text + "7 9.000000 +++ exited with 0 +++\n")
    log = StraceLog(path, "strace.log", None)
    events = list(log.events(None))
    assert not [loss for loss in log.observation.losses if not loss.note], "the lines themselves are whole"
    return events


def fed(events: list[Event], run: Run | None = None) -> Residues:
    run = run or Run()
    processes = Processes(run)
    found = Residues(run, processes)
    for event in events:
        if event.kind in Processes.kinds:
            processes.on_event(event)
        if event.kind in Residues.kinds:
            found.on_event(event)
    return found


BUS = unix('"/run/dbus/system_bus_socket"') + (
    '7 1.3 sendto(5, "l\\1\\0\\1\\20\\0\\0\\0\\3\\0\\0\\0org.freedesktop.systemd1\\0StartTransientUnit\\0", '
    "56, 0, NULL, 0) = 56\n"
)


@pytest.mark.parametrize(
    ("text", "ids", "detail"),
    [
        (
            unix('"/var/run/docker.sock"'),
            ["container-socket"],
            "virtual machines behind this socket (/var/run/docker.sock)",
        ),
        (unix('"/run/user/1000/podman/podman.sock"'), ["container-socket"], "(/run/user/1000/podman/podman.sock)"),
        (unix('"/run/systemd/private"'), ["service-manager"], "cron or at (/run/systemd/private)"),
        (unix('"/run/user/1000/systemd/private"'), ["service-manager"], "(/run/user/1000/systemd/private)"),
        (BUS, ["service-manager", "standing-helper"], "cron or at (StartTransientUnit)"),
        (unix('"/run/dbus/system_bus_socket"'), ["standing-helper"], "not in it (/run/dbus/system_bus_socket)"),
        (unix('@"/tmp/.X11-unix/X0"'), ["standing-helper"], "not in it (@/tmp/.X11-unix/X0)"),
        (unix('"/var/run/nscd/socket"'), ["resolver-inside"], "tells no trace which (/var/run/nscd/socket)"),
        (
            '7 1.2 sendto(5<UNIX-DGRAM:[9]>, "hi", 2, 0, {sa_family=AF_UNIX, sun_path="/run/helper"}, 14) = 2\n',
            ["standing-helper"],
            "not in it (/run/helper)",
        ),
        (tcp("127.0.0.1", 9222), ["loopback-helper"], "is not in it (loopback port 9222)"),
        (
            tcp("127.0.0.1", 9222, "-1 EINPROGRESS (Operation now in progress)")
            + '7 1.300000 recvfrom(5, "ok", 16, 0, NULL, NULL) = 2\n',
            ["loopback-helper"],
            "(loopback port 9222)",
        ),
        (
            '7 1.1 openat(AT_FDCWD, "/proc/sys/kernel/core_pattern", O_WRONLY|O_TRUNC) = 3\n',
            ["kernel-helper"],
            "no tracer follows (/proc/sys/kernel/core_pattern)",
        ),
        (
            '7 1.1 openat(AT_FDCWD, "/etc/cron.d/job", O_WRONLY|O_CREAT, 0644) = 3\n',
            ["service-manager"],
            "(/etc/cron.d/job)",
        ),
        ('7 1.1 openat(AT_FDCWD, "/dev/vda1", O_RDONLY) = 3\n', ["raw-device"], "(/dev/vda1)"),
        ('7 1.1 openat(AT_FDCWD, "/proc/612/mem", O_RDONLY) = 3\n', ["memory-of-others"], "(/proc/612/mem)"),
        (
            '7 1.1 process_vm_readv(612, [{iov_base="x", iov_len=1}], 1, [], 1, 0) = 1\n',
            ["memory-of-others"],
            "(process_vm_readv)",
        ),
        ("7 1.1 ptrace(PTRACE_SEIZE, 612, NULL, 0) = 0\n", ["memory-of-others"], "(ptrace)"),
        (
            '7 1.1 fanotify_mark(3, FAN_MARK_ADD|FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, "/home") = 0\n',
            ["fanotify"],
            "opens none itself (fanotify_mark)",
        ),
        (
            "7 1.1 seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, {len=4, filter=0x7ffe}) = 3\n",
            ["supervisor"],
            "is not the one carried out (seccomp)",
        ),
        ("7 1.1 seccomp(0x1, 0x8, 0x7ffe) = 3\n", ["supervisor"], "(seccomp)"),
        (
            '7 1.1 bpf(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_SCHED_CLS, insn_cnt=2, license="GPL"}, 144) = 4\n',
            ["xdp-and-bpf"],
            "past every capture (bpf)",
        ),
        ("7 1.1 socket(AF_XDP, SOCK_RAW, 0) = 4\n", ["xdp-and-bpf"], "(xdp)"),
        (
            "7 1.1 socket(AF_VSOCK, SOCK_STREAM, 0) = 4\n",
            ["other-families"],
            "no capture of an interface shows (vsock)",
        ),
        (tcp("9.9.9.9", 853), ["encrypted-dns"], "which is in no evidence (9.9.9.9, port 853)"),
    ],
)
def test_a_line_is_this_residue(tmp_path: Path, text: str, ids: list[str], detail: str) -> None:
    found = fed(events_of(tmp_path, text))
    assert found.found == ids
    (log,) = found.observed([observed("syscalls", "file.open")])
    assert len(log.losses) == len(ids)
    assert log.losses[0].detail.endswith(detail)
    assert (log.losses[0].count, log.losses[0].where is None, log.losses[0].note) == (1, False, False)


LISTENING = (
    "7 1.01 socket(AF_UNIX, SOCK_STREAM, 0) = 3\n"
    '7 1.02 bind(3, {sa_family=AF_UNIX, sun_path="/tmp/own.sock"}, 16) = 0\n'
    "7 1.03 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 4\n"
    '7 1.04 bind(4, {sa_family=AF_INET, sin_port=htons(9222), sin_addr=inet_addr("127.0.0.1")}, 16) = 0\n'
)


@pytest.mark.parametrize(
    "text",
    [
        unix('"/var/run/docker.sock"', "-1 ENOENT (No such file or directory)"),
        unix('"/var/run/nscd/socket"', "-1 ENOENT (No such file or directory)"),
        unix('"/run/systemd/private"', "-1 EACCES (Permission denied)"),
        LISTENING + unix('"/tmp/own.sock"'),
        LISTENING + tcp("127.0.0.1", 9222),
        tcp("127.0.0.1", 9222, "-1 ECONNREFUSED (Connection refused)"),
        tcp("127.0.0.53", 53),
        tcp("192.0.2.7", 443),
        tcp("9.9.9.9", 853, "-1 ENETUNREACH (Network is unreachable)"),
        "7 1.1 socketpair(AF_UNIX, SOCK_STREAM, 0, [4, 5]) = 0\n",
        '7 1.1 openat(AT_FDCWD, "/proc/sys/kernel/core_pattern", O_RDONLY) = 3\n',
        '7 1.1 openat(AT_FDCWD, "/etc/cron.d/job", O_RDONLY) = 3\n',
        '7 1.1 openat(AT_FDCWD, "/dev/vda1", O_RDONLY) = -1 EACCES (Permission denied)\n',
        '7 1.1 openat(AT_FDCWD, "/dev/null", O_RDWR) = 3\n',
        '7 1.1 openat(AT_FDCWD, "/proc/7/mem", O_RDONLY) = 3\n',
        "7 1.1 ptrace(PTRACE_TRACEME) = -1 EPERM (Operation not permitted)\n",
        "7 1.1 seccomp(SECCOMP_SET_MODE_FILTER, 0, {len=4, filter=0x7ffe}) = 0\n",
        "7 1.1 seccomp(SECCOMP_GET_ACTION_AVAIL, 0, [SECCOMP_RET_USER_NOTIF]) = 0\n",
        "7 1.1 bpf(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_XDP}, 144) = -1 EPERM (Operation not permitted)\n",
        "7 1.1 bpf(BPF_MAP_CREATE, {map_type=BPF_MAP_TYPE_ARRAY}, 72) = 4\n",
        "7 1.1 socket(AF_VSOCK, SOCK_STREAM, 0) = -1 EAFNOSUPPORT (Address family not supported by protocol)\n",
        "7 1.1 socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) = 4\n",
    ],
)
def test_an_ordinary_or_failed_act_is_none(tmp_path: Path, text: str) -> None:
    found = fed(events_of(tmp_path, text))
    assert found.found == []
    plain = observed("syscalls", "file.open")
    assert found.observed([plain]) == [plain]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (TlsClientHello(where(3, "c.pcap"), 1, seen_in="packets", sni="mozilla.cloudflare-dns.com"), True),
        (TlsClientHello(where(3, "c.pcap"), 1, seen_in="packets", sni="cloudflare-dns.com"), True),
        (TlsClientHello(where(3, "c.pcap"), 1, seen_in="packets", sni="cloudflare-dns.com.evil.test"), False),
        (TlsClientHello(where(3, "c.pcap"), 1, seen_in="packets", sni="notcloudflare-dns.com"), False),
        (TlsClientHello(where(3, "c.pcap"), 1, seen_in="packets"), False),
        (QuicInitial(where(3, "c.pcap"), 1, sni="dns.google"), True),
        (NetFlow(where(3, "c.pcap"), 1, address="192.0.2.53", port=853, packets_in=2), True),
        (NetFlow(where(3, "c.pcap"), 1, address="192.0.2.53", port=853), False),
        (NetFlow(where(3, "c.pcap"), 1, address="192.0.2.53", port=443, packets_in=2), False),
    ],
)
def test_encrypted_dns_is_known_by_documented_names_and_its_port(event: Event, told: bool) -> None:
    assert fed([event]).found == (["encrypted-dns"] if told else [])


def test_what_the_launcher_did_is_no_residue() -> None:
    docker = SocketConnect(where(2), 2, "1", 0, family="unix", path="/run/docker.sock", outcome="established")
    entered = ProcessStart(where(3), 3, "1", 0, how="exec", executable="/srv/server", process="1")
    run = Run(entry="/srv/server")
    assert fed([docker, entered], run).found == []
    assert fed([entered, docker], run).found == ["container-socket"]


def test_repetitions_count_up_at_the_first_place(tmp_path: Path) -> None:
    found = fed(events_of(tmp_path, unix('"/run/docker.sock"') * 3))
    (log,) = found.observed([observed("syscalls", "file.open")])
    assert [(loss.what, loss.count, str(loss.where), loss.process) for loss in log.losses] == [
        ("delegated", 3, "strace.log:3", "7")
    ]


def test_a_residue_spoils_exactly_the_checks_that_the_list_of_blind_spots_names() -> None:
    cases = [path.parent.relative_to(ROOT / "corpus").as_posix() for path in (ROOT / "corpus").rglob("manifest.json")]
    every = detectors()
    entries = load_blindspots(ROOT / "labels" / "blindspots.yaml", checks=list(every), cases=cases).entries
    spots = {entry.id: entry for entry in entries}
    known = residues()
    assert len(known) == 13
    for residue in known:
        spot = spots[residue.id]
        assert [name for name, kind in every.items() if spoils(residue, kind.spec)] == sorted(spot.checks), residue.id
        assert sorted(residue.lowers) == sorted(spot.blind), residue.id
        assert residue.what in spot.losses, residue.id


WATCHED = {
    "syscalls": [
        *(kind for kind in Residues.kinds if kind not in ("net.flow", "quic.initial")),
        *("socket.state", "process.start", "process.exit", "process.exec_failed", "file.read", "file.change"),
        *("dns.answer", "http.request", "mcp.tool"),
    ],
    "packets": ["net.flow", "net.packet", "dns.query", "dns.answer", "tls.client_hello", "http.request"],
    "dns": ["dns.query", "dns.answer"],
    "firewall": ["firewall.drop"],
    "mcp": ["mcp.tool", "mcp.message"],
}


def judged(events: list[Event]) -> Result:
    seen: list[Observation] = [
        replace(observed(channel, *kinds, proof="declared", source=f"{channel}.log"), complete=True)  # type: ignore[arg-type]
        for channel, kinds in WATCHED.items()
    ]
    run = Run(declared=True, mode="open", resolvers=["192.0.2.2"])
    return run_checks(
        HandSource(events, seen, run),
        detectors(),
        secrets=secrets("/home/u/.ssh/id_ed25519"),
        expectations=expecting("api.example.test"),
    )


def test_a_quiet_run_lets_every_check_claim_absence(tmp_path: Path) -> None:
    said = {one.check: one.verdict for one in judged(events_of(tmp_path, "")).checks}
    assert {check: said[check] for check in [*ALL, "mcp.exfil-instruction"]} == dict.fromkeys(
        [*ALL, "mcp.exfil-instruction"], "not_detected"
    )


@pytest.mark.parametrize(
    ("text", "what", "spoiled"),
    [
        (unix('"/run/docker.sock"'), "delegated", ALL),
        (unix('"/run/systemd/private"'), "delegated", ALL),
        (unix('"/tmp/agent.sock"'), "helper", ALL),
        (tcp("127.0.0.1", 9222), "helper", ["secrets.canary-read"]),
        (unix('"/run/nscd/socket"'), "resolver", ["egress.unexplained-host"]),
        ("7 1.1 bpf(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_XDP}, 144) = 4\n", "kernel-program", ALL[:3]),
        ("7 1.1 seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, {}) = 3\n", "supervisor", ALL),
    ],
)
def test_a_residue_lowers_the_claims_that_it_spoils_and_says_so(
    tmp_path: Path, text: str, what: str, spoiled: list[str]
) -> None:
    result = judged(events_of(tmp_path, text))
    # Checks that join calls of tools have nothing to join here, and say so.
    result.checks = [one for one in result.checks if one.check in (*ALL, "mcp.exfil-instruction")]
    lowered = {one.check: one for one in result.checks if one.verdict == "not_observable"}
    assert list(lowered) == spoiled
    assert {one.verdict for one in result.checks if one.check not in spoiled} == {"not_detected"}
    for one in lowered.values():
        hiding = [limit for limit in one.limits if limit.hides]
        assert {limit.what for limit in hiding} == {what}
        assert {str(limit.where) for limit in hiding} <= {"strace.log:2", "strace.log:3"}
        assert one.reason.startswith(hiding[0].detail)


def test_a_residue_takes_no_finding_away(tmp_path: Path) -> None:
    text = tcp("203.0.113.9", 443)
    alone = {one.check: one for one in judged(events_of(tmp_path, text)).checks}["egress.direct-ip"]
    beside = {one.check: one for one in judged(events_of(tmp_path, unix('"/run/docker.sock"') + text)).checks}
    assert alone.verdict == beside["egress.direct-ip"].verdict == "detected"
    assert [one.key for one in alone.findings] == [one.key for one in beside["egress.direct-ip"].findings]
    assert [one.level for one in alone.findings] == [one.level for one in beside["egress.direct-ip"].findings]


def test_a_check_that_no_residue_spoils_is_not_slowed_by_them(tmp_path: Path) -> None:
    source = HandSource(events_of(tmp_path, ""), [observed("mcp", "mcp.tool", source="mcp.jsonl")], Run())
    run_checks(source, {"mcp.exfil-instruction": detectors()["mcp.exfil-instruction"]})
    assert source.asked == frozenset({"mcp.tool"})
