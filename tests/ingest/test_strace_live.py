"""Logs made by the machine's own strace, under many option sets, of one small program on loopback.

Skipped, and said so, where strace or a C compiler is missing or may not trace.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from strace_tools import hiding

from mcpdetect.ingest.strace import StraceFiles, StraceLog
from mcpdetect.model.event import Event, FileChange, FileOpen, FileRead, ProcessExit, ProcessStart
from mcpdetect.model.net import DnsQuery, FdPass, SocketConnect, SocketOpen, SocketSend
from mcpdetect.model.observation import Observation

SOURCE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int net(const char *ip, int port, int type) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &a.sin_addr);
    int s = socket(AF_INET, type, 0);
    connect(s, (struct sockaddr *)&a, sizeof a);
    return s;
}

static void *work(void *name) {
    char buffer[64];
    int fd = open(name, O_RDONLY);
    read(fd, buffer, sizeof buffer);
    close(fd);
    return 0;
}

static void pass(int sock, int fd) {
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    sendmsg(sock, &m, 0);
}

int main(int argc, char **argv) {
    pthread_t t;
    pthread_create(&t, 0, work, "secret.txt");
    pthread_join(t, 0);
    chdir("sub");
    int fd = open("in\tner\"x", O_RDWR | O_CREAT, 0600);
    write(fd, "\x01\xffhello", 7);
    net("127.0.0.1", 1, SOCK_STREAM);
    int u = net("127.0.0.1", 53, SOCK_DGRAM);
    send(u, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04live\x04test\x00\x00\x01\x00\x01", 27, 0);
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pass(pair[0], fd);
    if (fork() == 0) {
        execl("/bin/true", "true", "--live", (char *)0);
        _exit(9);
    }
    wait(0);
    return 3;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for tool in ("strace", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: no log is made by a real strace")
    folder = tmp_path_factory.mktemp("live")
    (folder / "p.c").write_text(SOURCE)
    (folder / "sub").mkdir()
    (folder / "secret.txt").write_text("s3cret\n")
    subprocess.run(["gcc", "-w", "-pthread", "-o", "p", "p.c"], cwd=folder, check=True, timeout=120)
    probe = subprocess.run(
        ["strace", "-f", "-o", "/dev/null", "/bin/true"], capture_output=True, text=True, timeout=60, check=False
    )
    if probe.returncode != 0:
        pytest.skip(f"strace may not trace here: {probe.stderr.strip()}")
    return folder / "p"


def _trace(program: Path, options: list[str], out: Path) -> tuple[list[Event], Observation]:
    if options and options[0] == "stderr":
        with out.open("wb") as stream:
            subprocess.run(
                ["strace", *options[1:], str(program)], cwd=program.parent, stderr=stream, timeout=120, check=False
            )
    else:
        subprocess.run(["strace", *options, "-o", str(out), str(program)], cwd=program.parent, timeout=120, check=False)
    log = StraceLog(out, out.name)
    return list(log.events()), log.observation


def _seen(events: list[Event], folder: Path) -> dict[str, object]:
    """Return what the program is known to do, as the events tell it."""
    starts = [event for event in events if isinstance(event, ProcessStart)]
    main = starts[0]
    opens = [event for event in events if isinstance(event, FileOpen)]
    mine = [event for event in opens if event.written in {"secret.txt", 'in\tner"x'}]
    connects = [event for event in events if isinstance(event, SocketConnect)]
    passed = [event for event in events if isinstance(event, FdPass)]
    exits = [event for event in events if isinstance(event, ProcessExit)]
    true = next(event for event in starts if event.executable == "/bin/true")
    return {
        "program": main.argv,
        "opens": [(event.written, event.access, event.process == main.process) for event in mine],
        "connects": [(event.address, event.port, event.transport, event.outcome) for event in connects],
        "sockets": [
            (event.family, event.type) for event in events if isinstance(event, SocketOpen) and event.call == "socket"
        ],
        "passed": [(event.direction, event.fds == [mine[1].fd]) for event in passed],
        "child": (true.how, true.argv, true.parent == main.process, true.process != main.process),
        "exits": sorted((event.code, event.process == main.process) for event in exits),
    }


def _expected(program: Path) -> dict[str, object]:
    return {
        "program": [str(program)],
        "opens": [("secret.txt", "read", True), ('in\tner"x', "readwrite", True)],
        "connects": [
            ("127.0.0.1", 1, "tcp", "refused"),
            ("127.0.0.1", 53, "udp", "unknown"),
        ],
        "sockets": [("inet", "stream"), ("inet", "dgram")],
        "passed": [("sent", True)],
        "child": ("exec", ["true", "--live"], True, True),
        "exits": [(0, False), (3, True)],
    }


OPTIONS = [
    ["-f", "-ttt", "-T", "-yy", "-s", "128"],
    ["-f", "-tt", "-s", "128"],
    ["-f", "-t", "-y", "-s", "128"],
    ["-f", "-r", "-s", "128"],
    ["-f", "-ttt", "-r", "-s", "128"],
    ["-f", "-s", "128"],
    ["-f", "-x", "-yy", "-s", "128"],
    ["-f", "-xx", "-yy", "-ttt", "-s", "512"],
    ["-f", "-X", "raw", "-s", "128"],
    ["-f", "-X", "verbose", "-yy", "-s", "128"],
    ["-f", "-v", "-yy", "-s", "128"],
    ["-f", "-Y", "-yy", "-ttt", "-s", "128"],
    ["-f", "-i", "-n", "-ttt", "-s", "128"],
    ["-f", "-k", "-s", "128"],
    ["-f", "--decode-fds=all", "--decode-pids=all", "-s", "128"],
    ["-f", "--seccomp-bpf", "-ttt", "-yy", "-s", "128", "-e", "trace=all"],
    ["stderr", "-f", "-s", "128"],
    ["stderr", "-f", "-tt", "-yy", "-s", "128"],
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_every_option_set_shows_the_same_acts(program: Path, tmp_path: Path, options: list[str]) -> None:
    if (
        "-k" in options
        and "--stack-traces"
        not in subprocess.run(["strace", "--help"], capture_output=True, text=True, timeout=60, check=False).stdout
    ):
        pytest.skip("this strace was built without stack traces")
    events, observation = _trace(program, options, tmp_path / "trace.log")
    assert _seen(events, program.parent) == _expected(program)
    assert observation.counts["unparsed"] == 0
    assert observation.counts["orphan-resumed"] == 0
    assert observation.complete
    assert hiding(observation) <= {"string-cut"}
    secret = next(event for event in events if isinstance(event, FileOpen) and event.written == "secret.txt")
    reads = [event for event in events if isinstance(event, FileRead) and event.fd == secret.fd]
    decorated = bool({"-y", "-yy", "--decode-fds=all"} & set(options))
    if decorated:
        assert (secret.path, secret.certain) == (str(program.parent / "secret.txt"), True)
    else:
        assert (secret.path, secret.certain) == ("secret.txt", False)
    assert b"s3cret\n" in [event.data for event in reads]
    written = [event for event in events if isinstance(event, FileChange) and event.size == 7]
    assert [event.data for event in written] == [b"\x01\xffhello"]
    asked = [event for event in events if isinstance(event, DnsQuery)]
    if "-s" in options:
        assert [(event.name, event.type) for event in asked] == [("live.test", "A")]
        sent = [event for event in events if isinstance(event, SocketSend) and event.port == 53]
        assert [(event.size, event.transport, event.remote_source) for event in sent] == [(27, "udp", "connect")]
    if "-k" in options:
        assert any(event.frames for event in events if isinstance(event, SocketConnect))


def test_strings_of_no_length_are_all_cut(program: Path, tmp_path: Path) -> None:
    events, observation = _trace(program, ["-f", "-yy", "-s", "0"], tmp_path / "trace.log")
    assert [event.data for event in events if isinstance(event, FileChange) and event.size == 7] == [b""]
    assert {"data:file.change", "data:socket.send", "data:process.start"} <= {
        touch for loss in observation.losses for touch in loss.touches
    }
    assert [event.name for event in events if isinstance(event, DnsQuery)] == [None]


def test_split_files_show_the_same_acts(program: Path, tmp_path: Path) -> None:
    for name, options in (("timed", ["-ttt"]), ("bare", [])):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run(
            ["strace", "-ff", "-yy", "-s", "128", *options, "-o", str(folder / "t"), str(program)],
            cwd=program.parent,
            timeout=120,
            check=False,
        )
        paths = sorted(folder.iterdir())
        assert len(paths) == 3
        split = StraceFiles(paths, [path.name for path in paths])
        events = list(split.events())
        found, expected = _seen(events, program.parent), _expected(program)
        if name == "bare":
            # without times the thread's file is read after its parent's
            found["opens"] = sorted(found["opens"], key=str)  # type: ignore[call-overload]
            expected["opens"] = sorted(expected["opens"], key=str)  # type: ignore[call-overload]
            found["passed"] = expected["passed"]
        assert found == expected
        assert split.observation.complete
        assert split.observation.counts["unparsed"] == 0


def test_what_a_program_prints_into_its_own_log_makes_no_event(program: Path, tmp_path: Path) -> None:
    forged = 'connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("198.51.100.66")}, 16) = 0'
    for text in (f"{forged}\\n", f"\\n{forged}\\n", f"\\n) = 1\\n{forged}\\n", "+++ exited with 0 +++\\n"):
        out = tmp_path / "trace.log"
        with out.open("wb") as stream:
            subprocess.run(
                ["strace", "-s", "16", "/bin/sh", "-c", f"printf '%b' '{text}' >&2; : < /etc/hostname"],
                stderr=stream,
                timeout=120,
                check=False,
            )
        log = StraceLog(out, "trace.log")
        events = list(log.events(frozenset({"socket.connect", "process.exit", "file.open"})))
        assert [event.kind for event in events if event.kind != "file.open"] == ["process.exit"], text
        opened = [event.path for event in events if isinstance(event, FileOpen)]
        assert opened[-1] == "/etc/hostname"
        assert "shared-stream" in hiding(log.observation)
