"""What honest servers were recorded doing, each on a minimal excerpt: facts at level info, or nothing at all.

The excerpts have the shape of real logs (`-f -yy`); texts in buffers are our own, at the length of the originals.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from quiet_capture import QUIET

import mcpdetect
from mcpdetect.model.inputs import Canary, Secrets
from mcpdetect.model.result import CheckResult

HOME = "/home/dev"
CWD = f"AT_FDCWD<{HOME}/project>"
SECRETS = Secrets(
    "planted.yaml",
    [
        Canary("NPMRC", "npm_CANARY-NPMRC-1", f"{HOME}/.npmrc"),
        Canary("SSH", None, f"{HOME}/.ssh/id_rsa"),
        Canary("ENV", None, f"{HOME}/project/.env"),
        Canary("HOMEENV", None, f"{HOME}/.env"),
        Canary("NETRC", None, f"{HOME}/.netrc"),
        Canary("OPENAI", "sk-CANARY-OPENAI-1", variable="OPENAI_API_KEY"),
    ],
)
# Every class of calls that the checks need, and a resolver, so that what follows is all there is to see. Nothing
# answers on loopback: a program outside the trace that does could have read a file in the place of this one.
BEFORE = f"""\
50 execve("/usr/bin/node", ["node", "srv"], 0x7ffe /* 9 vars */) = 0
50 openat({CWD}, "/etc/resolv.conf", O_RDONLY|O_CLOEXEC) = 9</etc/resolv.conf>
50 read(9</etc/resolv.conf>, "nameserver 10.200.0.1\\n", 4096) = 22
50 close(9</etc/resolv.conf>) = 0
50 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 9<UDP:[1]>
50 connect(9<UDP:[1]>, {{sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("127.0.0.1")}}, 16) = 0
50 sendto(9<UDP:[1]>, "x", 1, 0, NULL, 0) = 1
50 recvfrom(9<UDP:[1]>, 0x7f10, 1, MSG_DONTWAIT, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)
50 close(9<UDP:[1]>) = 0
50 write(1<pipe:[7]>, "{{}}\\n", 3) = 3
"""
AFTER = "50 exit_group(0) = ?\n50 +++ exited with 0 +++\n"


def run(tmp_path: Path, text: str) -> dict[str, CheckResult]:
    (tmp_path / "trace.log").write_text(BEFORE + text + AFTER)
    (tmp_path / "eth0.pcap").write_bytes(QUIET)
    source = mcpdetect.open_evidence_files(strace=[tmp_path / "trace.log"], pcap=[tmp_path / "eth0.pcap"])
    checks = ["egress.direct-ip", "network.blocked", "secrets.canary-read"]
    return {item.check: item for item in mcpdetect.check(source, checks=checks, secrets=SECRETS).checks}


def told(found: dict[str, CheckResult]) -> dict[str, list[tuple[str, list[str]]]]:
    """Return, of every check that is not ``not_detected``, its findings' levels and explanations, or its verdict."""
    return {
        name: [(item.level, [one.rule for one in item.explanations]) for item in check.findings]
        or [(check.verdict, [limit.what for limit in check.limits if limit.hides])]
        for name, check in found.items()
        if check.verdict != "not_detected"
    }


NPM = f"""\
50 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 52
52 execve("/usr/bin/npm", ["npm", "install"], 0x7ff /* 16 vars */) = 0
52 openat({CWD}, "{HOME}/.npmrc", O_RDONLY|O_CLOEXEC) = 17<{HOME}/.npmrc>
52 read(17<{HOME}/.npmrc>, "//r/:_authToken=npm_CANARY-NPMRC-1\\n", 4096) = 35
52 close(17<{HOME}/.npmrc>) = 0
52 exit_group(0) = ?
52 +++ exited with 0 +++
"""
RELATIVE = f"""\
50 openat({CWD}, ".env", O_RDONLY|O_CLOEXEC) = 3<{HOME}/project/.env>
50 read(3<{HOME}/project/.env>, "A=1\\n", 4096) = 4
"""
UPWARD = f"""\
50 newfstatat({CWD}, "{HOME}/project/.env", 0x7ffd, 0) = -1 ENOENT (No such file or directory)
50 newfstatat({CWD}, "{HOME}/.env", {{st_mode=S_IFREG|0600, st_size=40, ...}}, 0) = 0
50 openat({CWD}, "{HOME}/.env", O_RDONLY|O_CLOEXEC) = 3<{HOME}/.env>
50 read(3<{HOME}/.env>, "A=1\\n", 4096) = 4
"""
LOOKS = f"""\
50 lgetxattr(".env", "security.selinux", 0x55, 255) = -1 ENODATA (No data available)
50 readlink("{HOME}/project/.env", 0x7ffd, 1023) = -1 EINVAL (Invalid argument)
50 statx({CWD}, "{HOME}/project/.env", AT_STATX_SYNC_AS_STAT, STATX_ALL, {{stx_mask=STATX_ALL, ...}}) = 0
"""
NAMES = f"""\
50 read(0<pipe:[543143]>, "{{\\"arguments\\": {{\\"path\\": \\"{HOME}/.ssh/id_rsa\\"}}}}\\n", 65536) = 53
50 openat({CWD}, "{HOME}/project/.gitignore", O_RDONLY) = 4<{HOME}/project/.gitignore>
50 read(4<{HOME}/project/.gitignore>, ".env\\n", 4096) = 5
"""
GIT = f"""\
50 openat({CWD}, "{HOME}/.gitconfig", O_RDONLY) = 3<{HOME}/.gitconfig>
50 read(3<{HOME}/.gitconfig>, "[user]\\n", 4096) = 7
50 openat({CWD}, "/etc/gitconfig", O_RDONLY) = -1 ENOENT (No such file or directory)
"""
PS = """\
50 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 61
61 execve("/usr/bin/ps", ["ps", "ax"], 0x7ff /* 16 vars */) = 0
61 openat(AT_FDCWD</>, "/proc/36/environ", O_RDONLY) = 4</proc/36/environ>
61 read(4</proc/36/environ>, "PATH=/bin\\0OPENAI_API_KEY=sk-CANARY-OPENAI-1\\0", 131072) = 44
61 exit_group(0) = ?
61 +++ exited with 0 +++
"""
METADATA = """\
50 socket(AF_INET6, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = 293<TCPv6:[451904]>
50 connect(293<TCPv6:[451904]>, {sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0), \
inet_pton(AF_INET6, "::ffff:169.254.169.254", &sin6_addr), sin6_scope_id=0}, 28) = 0
50 sendto(293<TCPv6:[451904]>, "GET /", 5, 0, NULL, 0) = 5
"""
CHROMIUM = """\
50 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 70
70 execve("/usr/lib/chromium/chromium", ["chromium"], 0x7ff /* 16 vars */) = 0
70 socket(AF_INET6, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 22<UDPv6:[533190]>
70 connect(22<UDPv6:[533190]>, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), \
inet_pton(AF_INET6, "2001:4860:4860::8888", &sin6_addr), sin6_scope_id=0}, 28) = \
-1 ENETUNREACH (Network is unreachable)
70 exit_group(0) = ?
70 +++ exited with 0 +++
"""
SORTING = """\
50 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 8<UDP:[608786]>
50 connect(8<UDP:[608786]>, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("198.18.0.2")}, 16) = 0
50 getsockname(8<UDP:[10.200.0.2:4->198.18.0.2:0]>, {sa_family=AF_INET, sin_port=htons(4), \
sin_addr=inet_addr("10.200.0.2")}, [28 => 16]) = 0
50 close(8<UDP:[10.200.0.2:4->198.18.0.2:0]>) = 0
"""
BIND = """\
50 socket(AF_INET6, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_IP) = 3<TCPv6:[489565]>
50 bind(3<TCPv6:[489565]>, {sa_family=AF_INET6, sin6_port=htons(0), sin6_flowinfo=htonl(0), \
inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}, 28) = 0
50 close(3<TCPv6:[[::1]:40001]>) = 0
"""
SCAN = "".join(
    f"50 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_IP) = 5<TCP:[{port}]>\n"
    f"50 connect(5<TCP:[{port}]>, {{sa_family=AF_INET, sin_port=htons({port}), "
    'sin_addr=inet_addr("127.0.0.1")}, 16) = -1 ECONNREFUSED (Connection refused)\n'
    f"50 close(5<TCP:[{port}]>) = 0\n"
    for port in range(3000, 3011)
)
NSCD = """\
50 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0) = 3<UNIX-STREAM:[1]>
50 connect(3<UNIX-STREAM:[1]>, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file)
50 close(3<UNIX-STREAM:[1]>) = 0
50 socket(AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_ROUTE) = 17<NETLINK:[82714]>
50 close(17<NETLINK:[82714]>) = 0
"""
ERRNOS = """\
50 epoll_ctl(4<anon_inode:[eventpoll]>, EPOLL_CTL_ADD, 7</usr/share/ca.pem>, {events=EPOLLIN}) = -1 EPERM (No)
50 chmod("/var/cache/fontconfig", 0755) = -1 EPERM (Operation not permitted)
50 setpriority(PRIO_PROCESS, 0, -20) = -1 EACCES (Permission denied)
50 futex(0x7f, FUTEX_WAIT_BITSET, 0, NULL) = -1 ETIMEDOUT (Connection timed out)
"""
RING_PROBE = """\
50 io_uring_setup(1, {flags=0, sq_entries=1, cq_entries=2}) = 3<anon_inode:[io_uring]>
50 close(3<anon_inode:[io_uring]>) = 0
"""
DESTROYER = """\
50 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 80
80 execve("/bin/sh", ["/bin/sh", "-c", "lsof -ti:9009 | xargs kill -9"], 0x7ff /* 16 vars */) = 0
80 exit_group(0) = ?
80 +++ exited with 0 +++
"""

CASES: list[tuple[str, str, dict[str, list[tuple[str, list[str]]]]]] = [
    ("01 npm reads its token", NPM, {"secrets.canary-read": [("info", ["npm-configuration"])]}),
    ("02 a relative name", RELATIVE, {"secrets.canary-read": [("info", ["dotenv-search"])]}),
    ("03 an upward search", UPWARD, {"secrets.canary-read": [("info", ["dotenv-upward-search"])]}),
    ("04 looks without content", LOOKS, {}),
    ("05 names in buffers", NAMES, {}),
    ("06 git's configuration is no canary", GIT, {}),
    ("07 ps reads environments", PS, {"secrets.canary-read": [("info", ["process-listing"])]}),
    ("11 the metadata service is no internet", METADATA, {}),
    (
        "12 a browser's reachability probe",
        CHROMIUM,
        {
            "egress.direct-ip": [("info", ["browser-reachability-probe"])],
            "network.blocked": [("info", ["browser-reachability-probe"])],
        },
    ),
    ("13 datagram connects that send nothing", SORTING, {}),
    ("15 bind without listen", BIND, {}),
    ("17 a scan of loopback", SCAN, {}),
    ("18 a destructive-looking child", DESTROYER, {}),
    ("20 nscd and netlink", NSCD, {}),
    ("21 errnos of other calls", ERRNOS, {}),
    ("22 a ring that is only probed", RING_PROBE, {}),
]


@pytest.mark.parametrize(("name", "text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_surprise(tmp_path: Path, name: str, text: str, expected: dict[str, list[tuple[str, list[str]]]]) -> None:
    assert told(run(tmp_path, text)) == expected


def test_the_same_reads_without_the_habit_stay_suspicious(tmp_path: Path) -> None:
    direct = (
        f'50 openat({CWD}, "{HOME}/.npmrc", O_RDONLY|O_CLOEXEC) = 17<{HOME}/.npmrc>\n'
        f'50 read(17<{HOME}/.npmrc>, "//r/:_authToken=npm_CANARY-NPMRC-1\\n", 4096) = 35\n'
        f'50 openat({CWD}, "{HOME}/.netrc", O_RDONLY) = 18<{HOME}/.netrc>\n'
        f'50 read(18<{HOME}/.netrc>, "machine", 4096) = 7\n'
    )
    assert told(run(tmp_path, direct)) == {"secrets.canary-read": [("suspicious", []), ("suspicious", [])]}
