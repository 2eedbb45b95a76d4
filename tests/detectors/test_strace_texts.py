"""From the text of a system call log to the verdict: situations met in the field, as strace writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from quiet_capture import QUIET

import mcpdetect
from mcpdetect.model.inputs import Canary, Expectations, ExpectedHost, Secrets
from mcpdetect.model.result import CheckResult

SSH = "/home/u/.ssh/id_ed25519"
SECRETS = Secrets(
    "secrets.yaml",
    [
        Canary("SSH", None, SSH),
        Canary("AWS", None, "/home/u/.aws/credentials"),
        Canary("ENV", "canary-7c2e", "/home/u/.env"),
        Canary("KUBE", None, "/home/u/.kube/config"),
    ],
)
EXPECT = Expectations("expect.yaml", [ExpectedHost("api.vendor.test")])

# Every class of calls that the checks need, so that what follows is all there is to see. Nothing answers on loopback: a
# program outside the trace that does could have read a file in the place of this one.
BEFORE = """\
50 execve("/usr/bin/srv", ["srv"], 0x7ffe /* 9 vars */) = 0
50 openat(AT_FDCWD, "/etc/resolv.conf", O_RDONLY|O_CLOEXEC) = 9
50 read(9, "nameserver 10.77.0.1\\n", 4096) = 21
50 close(9) = 0
50 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 9
50 connect(9, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("127.0.0.1")}, 16) = 0
50 sendto(9, "x", 1, 0, NULL, 0) = 1
50 recvfrom(9, 0x7f10, 1, MSG_DONTWAIT, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)
50 close(9) = 0
50 write(1, "{}\\n", 3) = 3
"""
AFTER = "50 exit_group(0) = ?\n50 +++ exited with 0 +++\n"
TCP = "50 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = {}\n"
UDP = "50 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = {}\n"
FIRST = BEFORE.count("\n") + 1


def run(tmp_path: Path, text: str) -> dict[str, CheckResult]:
    log = tmp_path / "strace.log"
    log.write_text(BEFORE + text + AFTER)
    (tmp_path / "eth0.pcap").write_bytes(QUIET)
    source = mcpdetect.open_evidence_files(strace=[log], pcap=[tmp_path / "eth0.pcap"])
    result = mcpdetect.check(source, secrets=SECRETS, expectations=EXPECT)
    assert [check.check for check in result.checks if check.verdict == "error"] == []
    return {check.check: check for check in result.checks}


def lines(check: CheckResult) -> list[list[int]]:
    """Return the lines of each finding, counted from the first line of the situation."""
    return [[place.at - FIRST + 1 for place in finding.where] for finding in check.findings]


def test_a_quiet_log_claims_what_it_watched(tmp_path: Path) -> None:
    found = run(tmp_path, "")
    assert {name: check.verdict for name, check in found.items() if not name.startswith(("mcp.", "drift."))} == {
        "egress.direct-ip": "not_detected",
        "egress.unexplained-host": "not_detected",
        "network.blocked": "not_detected",
        "secrets.canary-read": "not_detected",
    }


def test_address_sorting_and_the_name_service_socket_are_no_egress(tmp_path: Path) -> None:
    text = (
        "50 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0) = 3\n"
        '50 connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file)\n'
        "50 close(3) = 0\n" + UDP.format(3) +
        '50 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.10")}, 16) = 0\n'
        '50 getsockname(3, {sa_family=AF_INET, sin_port=htons(520), sin_addr=inet_addr("10.77.0.2")}, [28 => 16]) = 0\n'
        '50 connect(3, {sa_family=AF_UNSPEC, sa_data="\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0"}, 16) = 0\n'
        '50 connect(3, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("203.0.113.11")}, 16) = 0\n'
        "50 close(3) = 0\n"
    )  # fmt: skip
    found = run(tmp_path, text)
    assert (found["egress.direct-ip"].verdict, found["network.blocked"].verdict) == ("not_detected", "not_detected")
    sent = text.replace("50 getsockname", '50 sendto(3, "abc", 3, 0, NULL, 0) = 3\n50 getsockname', 1)
    direct = run(tmp_path, sent)["egress.direct-ip"]
    assert [finding.facts["address"] for finding in direct.findings] == ["203.0.113.10"]
    assert lines(direct) == [[6]]


def connect(fd: int, address: str, outcome: str, port: int = 443) -> str:
    place = f'{{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr("{address}")}}'
    return f"50 connect({fd}, {place}, 16) = {outcome}\n"


PENDING = "-1 EINPROGRESS (Operation now in progress)"


def test_attempt_connection_and_transfer(tmp_path: Path) -> None:
    text = (
        TCP.format(3) + TCP.format(5) + TCP.format(6)
        + connect(3, "203.0.113.7", PENDING)
        + "50 getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0\n"
        + connect(5, "203.0.113.8", PENDING)
        + "50 getsockopt(5, SOL_SOCKET, SO_ERROR, [0], [4]) = 0\n"
        + '50 write(5, "\\26\\3\\1\\2\\0", 5) = 5\n'
        + connect(6, "203.0.113.9", PENDING)
    )  # fmt: skip
    found = run(tmp_path, text)
    direct = found["egress.direct-ip"]
    assert [(item.facts["address"], item.facts["outcome"], item.facts["sent"]) for item in direct.findings] == [
        ("203.0.113.7", "refused", 0),
        ("203.0.113.8", "established", 5),
        ("203.0.113.9", "in_progress", 0),
    ]
    assert lines(direct) == [[4, 5], [6, 7], [9]]
    assert found["network.blocked"].verdict == "not_observable"


def test_a_datagram_that_met_eperm_beside_a_connect_that_worked(tmp_path: Path) -> None:
    text = (
        UDP.format(4) + UDP.format(3) + connect(4, "203.0.113.7", "0", 53)
        + '50 sendto(4, "x", 1, 0, NULL, 0)             = -1 EPERM (Operation not permitted)\n'
        + '50 sendto(3, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("203.0.113.7")}, 16)'
        " = -1 EPERM (Operation not permitted)\n"
    )  # fmt: skip
    blocked = run(tmp_path, text)["network.blocked"]
    assert [(item.facts["denial"], item.facts["count"]) for item in blocked.findings] == [("output-drop", 2)]
    assert lines(blocked) == [[4, 5]]


def test_a_question_whose_send_was_refused_names_the_host(tmp_path: Path) -> None:
    question = r"\30\250\1\0\0\1\0\0\0\0\0\0\4evil\4test\0\0\1\0\1"
    text = (
        UDP.format(6) + connect(6, "10.77.0.1", "0", 53)
        + f'50 write(6, "{question}", 27) = -1 EPERM (Operation not permitted)\n'
    )  # fmt: skip
    found = run(tmp_path, text)
    assert [item.facts["host"] for item in found["network.blocked"].findings] == ["evil.test"]
    assert [item.facts["host"] for item in found["egress.unexplained-host"].findings] == ["evil.test"]
    assert lines(found["network.blocked"]) == lines(found["egress.unexplained-host"]) == [[3]]
    assert found["egress.direct-ip"].verdict == "not_detected"


def test_tcp_is_refused_by_policy_and_a_datagram_leaves(tmp_path: Path) -> None:
    text = (
        TCP.format(4) + UDP.format(5) + connect(4, "203.0.113.7", "-1 EACCES (Permission denied)")
        + '50 sendto(5, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16)'
        " = 1\n"
    )  # fmt: skip
    found = run(tmp_path, text)
    assert [item.facts["denial"] for item in found["network.blocked"].findings] == ["policy"]
    assert [(item.facts["transport"], item.facts["sent"]) for item in found["egress.direct-ip"].findings] == [
        ("tcp", 0),
        ("udp", 1),
    ]


def test_ipv4_inside_ipv6(tmp_path: Path) -> None:
    def six(fd: int, address: str) -> str:
        return (
            f"50 socket(AF_INET6, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = {fd}\n"
            f"50 connect({fd}, {{sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), "
            f'inet_pton(AF_INET6, "{address}", &sin6_addr), sin6_scope_id=0}}, 28) = 0\n'
        )

    text = six(3, "::ffff:203.0.113.7") + six(4, "::ffff:127.0.0.1") + six(5, "64:ff9b::cb00:7107")
    direct = run(tmp_path, text)["egress.direct-ip"]
    assert [(item.facts["address"], item.facts["attempts"]) for item in direct.findings] == [("203.0.113.7", 2)]


def test_fast_open_sends_without_connect(tmp_path: Path) -> None:
    to = '{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("203.0.113.7")}'
    text = TCP.format(3) + f'50 sendto(3, "GET / HTTP/1", 12, MSG_FASTOPEN, {to}, 16) = 12\n'
    direct = run(tmp_path, text)["egress.direct-ip"]
    assert [(item.facts["port"], item.facts["sent"]) for item in direct.findings] == [(80, 12)]


def test_a_download_that_could_not_start(tmp_path: Path) -> None:
    text = (
        '50 execve("/usr/bin/sudo", ["sudo", "wget", "http://203.0.113.25/a"], 0x7ff /* 9 vars */)'
        " = -1 ENOENT (No such file or directory)\n"
    )
    direct = run(tmp_path, text)["egress.direct-ip"]
    assert [(item.facts["address"], item.facts["outcome"]) for item in direct.findings] == [
        ("203.0.113.25", "not-started")
    ]
    assert lines(direct) == [[1]]


def test_a_dotenv_file_found_by_searching_upward(tmp_path: Path) -> None:
    text = (
        '50 newfstatat(AT_FDCWD, "/home/u/work/srv/.env", 0x7ffd, 0) = -1 ENOENT (No such file or directory)\n'
        '50 newfstatat(AT_FDCWD, "/home/u/work/.env", 0x7ffd, 0) = -1 ENOENT (No such file or directory)\n'
        '50 newfstatat(AT_FDCWD, "/home/u/.env", {st_mode=S_IFREG|0600, st_size=64, ...}, 0) = 0\n'
        '50 openat(AT_FDCWD, "/home/u/.env", O_RDONLY|O_CLOEXEC) = 3\n'
        '50 read(3, "HONEY_ENV_TOKEN=canary-7c2e\\n", 64) = 28\n'
    )
    canary = run(tmp_path, text)["secrets.canary-read"]
    assert [(item.level, item.facts["size"], item.facts["value_seen"]) for item in canary.findings] == [
        ("info", 28, True)
    ]
    assert [item.rule for item in canary.findings[0].explanations] == ["dotenv-upward-search"]
    assert lines(canary) == [[4, 5]]


def test_looks_are_no_reads(tmp_path: Path) -> None:
    text = (
        f'50 access("{SSH}", R_OK) = 0\n'
        '50 newfstatat(AT_FDCWD, "/home/u/.aws/credentials", {st_mode=S_IFREG|0600, st_size=116, ...}, 0) = 0\n'
        f'50 readlink("{SSH}", 0x7ffd16391300, 10) = -1 EINVAL (Invalid argument)\n'
        '50 openat(AT_FDCWD, "/home/u/.kube/config", O_RDONLY) = -1 ENOENT (No such file or directory)\n'
        f'50 openat(AT_FDCWD, "{SSH}", O_RDONLY|O_PATH) = 3\n'
    )
    assert run(tmp_path, text)["secrets.canary-read"].verdict == "not_detected"


@pytest.mark.parametrize(
    "text",
    [
        '50 openat(AT_FDCWD, "/proc/self/root/home/u/.ssh/../.ssh/id_ed25519", O_RDONLY) = 4\n',
        '50 openat(AT_FDCWD, "/home/u", O_RDONLY|O_DIRECTORY) = 5\n50 openat(5, ".ssh/id_ed25519", O_RDONLY) = 6\n',
        '50 chdir("/home/u/.ssh") = 0\n50 openat(AT_FDCWD, "id_ed25519", O_RDONLY) = 7\n',
        '50 symlink("/home/u", "/tmp/s") = 0\n50 openat(AT_FDCWD, "/tmp/s/.ssh/id_ed25519", O_RDONLY) = 8\n',
        '50 openat(AT_FDCWD, "/proc/self/fd/9", O_RDONLY) = 10</home/u/.ssh/id_ed25519>\n',
        '50 link("/home/u/.ssh/id_ed25519", "/tmp/w") = 0\n50 openat(AT_FDCWD, "/tmp/w", O_RDONLY) = 8\n',
        '50 rename("/home/u/.ssh", "/tmp/w") = 0\n50 openat(AT_FDCWD, "/tmp/w/id_ed25519", O_RDONLY) = 8\n',
        '50 mount("/home/u/.ssh", "/m", NULL, MS_BIND, NULL) = 0\n50 openat(AT_FDCWD, "/m/id_ed25519", O_RDONLY) = 8\n',
        f'50 openat(AT_FDCWD, "{SSH}", O_RDONLY|O_PATH) = 5\n50 openat(AT_FDCWD, "/proc/self/fd/5", O_RDONLY) = 6\n',
    ],
)
def test_paths_that_only_the_kernel_resolves_are_followed(tmp_path: Path, text: str) -> None:
    canary = run(tmp_path, text)["secrets.canary-read"]
    assert [item.facts["path"] for item in canary.findings] == [SSH]


@pytest.mark.parametrize(
    "text",
    [
        '50 openat(5, ".ssh/id_ed25519", O_RDONLY) = 6\n',
        '50 openat(AT_FDCWD, "/srv/spool/../.ssh/id_ed25519", O_RDONLY) = 3\n',
        '50 read(12, "k", 16) = 1\n',
    ],
)
def test_what_may_have_been_a_planted_file_forbids_the_claim(tmp_path: Path, text: str) -> None:
    assert run(tmp_path, text)["secrets.canary-read"].verdict == "not_observable"


def test_io_uring_hides_and_accuses_nobody(tmp_path: Path) -> None:
    text = (
        "50 io_uring_setup(64, {flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0, sq_thread_idle=10, sq_entries=64, "
        "cq_entries=128, features=IORING_FEAT_SINGLE_MMAP|IORING_FEAT_NODROP, sq_off={head=0, tail=4}, "
        "cq_off={head=8, tail=12}}) = 13\n"
        "50 io_uring_enter(13, 2, 2, IORING_ENTER_GETEVENTS, NULL, 0) = 2\n"
    )
    found = run(tmp_path, text)
    for name in ("egress.direct-ip", "network.blocked", "secrets.canary-read"):
        assert (found[name].verdict, found[name].findings) == ("not_observable", [])


def test_names_in_buffers_of_other_files_are_no_accesses_and_forge_nothing(tmp_path: Path) -> None:
    text = (
        '50 openat(AT_FDCWD, "/srv/a) = 3\\n[pid 1] connect(3, {sa_family=AF_INET", O_RDONLY) = 4\n'
        f'50 read(4, "{SSH} connect(3, {{sa_family=AF_INET, sin_port=htons(443)}}) = 0\\n", 4096) = 75\n'
    )
    found = run(tmp_path, text)
    assert [found[name].verdict for name in ("egress.direct-ip", "network.blocked", "secrets.canary-read")] == [
        "not_detected"
    ] * 3


def test_cut_anywhere_the_log_never_claims_what_the_whole_one_denies(tmp_path: Path) -> None:
    text = TCP.format(3) + connect(3, "203.0.113.7", "-1 EACCES (Permission denied)")
    text += f'50 openat(AT_FDCWD, "{SSH}", O_RDONLY) = 4\n50 read(4, "k", 16) = 1\n'
    whole = BEFORE + text + AFTER
    log = tmp_path / "strace.log"
    tried = 0
    for end in range(len(BEFORE), len(whole) - 30, 3):
        log.write_text(whole[:end])
        result = mcpdetect.check(mcpdetect.open_evidence_files(strace=[log]), secrets=SECRETS, expectations=EXPECT)
        for check in result.checks:
            assert check.verdict in ("detected", "not_observable"), (end, check.check, check.verdict)
        tried += 1
    assert tried > 80
