"""gVisor's own call log: lines as runsc 0.0~20221219 wrote them, and what they say."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest
from gvisor_tools import NAME, lines, read, script

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.gvisor import GvisorLog
from mcpdetect.ingest.open import open_evidence_files
from mcpdetect.model.event import Event, FileOpen
from mcpdetect.model.kinds import CALLS


def told(folder: Path, *calls: str) -> list[str]:
    """Return the events of calls of one process, without the first and the losses that every cut log has."""
    found = script(folder, lines(*calls)).split("\n")[2:-2]
    return [line.replace(" process='1'", "") for line in found if line != "loss no-exit x1"]


def test_c17_a_path_with_commas_and_spaces_and_a_pending_connect(tmp_path: Path) -> None:
    text = """\
I0503 21:57:55.238695   12 strace.go:587] [   5:   5] python3 E openat(AT_FDCWD /, 0x7f176abd3d40 /tmp/pip-x/a,b c, O_RDONLY|O_CLOEXEC, 0o0)
I0503 21:57:55.238712   12 strace.go:625] [   5:   5] python3 X connect(0x3, 0x7f1a2b {Family: AF_INET, Addr: 203.0.113.7, Port: 443}, 0x10) = 0 (0x0) errno=115 (operation now in progress) (2.4µs)
"""
    assert (
        script(tmp_path, text)
        == """
process.start@1 process='5' call='' how='seen'
socket.connect@2 process='5' call='connect' error='EINPROGRESS' socket='s1' fd=3 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='in_progress' duration_ns=2400
file.open@1 process='5' call='openat' path='/tmp/pip-x/a,b c' access='read' flags='O_RDONLY|O_CLOEXEC' written='/tmp/pip-x/a,b c'
loss unfinished@1 x1 file.open
note unfinished@1 x1
loss no-exit x1
2 lines 0 unparsed 0 exits incomplete clock=time-of-day
"""
    )


def test_files_are_opened_read_written_renamed_and_removed(tmp_path: Path) -> None:
    assert told(
        tmp_path,
        "X chdir(0x7f4bc7373050 /tmp/w) = 0 (0x0) (54.152µs)",
        "E openat(AT_FDCWD /tmp/w, 0x7f4bc7373050 a,b c.txt, O_WRONLY|O_CLOEXEC|O_CREAT|O_TRUNC, 0o666)",
        "X openat(AT_FDCWD /tmp/w, 0x7f4bc7373050 a,b c.txt, O_WRONLY|O_CLOEXEC|O_CREAT|O_TRUNC, 0o666) = 3 (0x3) (97.624µs)",
        r'E write(0x3 /tmp/w/a,b c.txt, 0x5606e313cd70 "hello \"q\" \\ \né x\n", 0x12)',
        "X write(0x3 /tmp/w/a,b c.txt, ..., 0x12) = 18 (0x12) (11.281µs)",
        "E read(0x3 /tmp/w/a,b c.txt, 0x5606e313cd70, 0x1000)",
        r'X read(0x3 /tmp/w/a,b c.txt, 0x5606e313cd70 "z\u00a0\x00\a\U0001f600", 0x1000) = 9 (0x9) (1.2ms)',
        "X read(0x3 /tmp/w/a,b c.txt, , 0x1000) = 0 (0x0) (825ns)",
        r'X read(0x3 /tmp/w/a,b c.txt, 0x5606e313cd70 "cut"..., 0x1000) = 4000 (0xfa0) (2s)',
        "X mmap(0x0, 0x2000, PROT_READ, MAP_PRIVATE, 0x3 /tmp/w/a,b c.txt, 0x0) = 139963438161920 (0x7f4bc7026000) (7.618µs)",
        "X mmap(0x0, 0x2000, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, 0xffffffffffffffff (bad FD), 0x0) = 140146407297024 (0x7f7660d2d000) (20.562µs)",
        "X close(0x3 /tmp/w/a,b c.txt) = 0 (0x0) (2.722µs)",
        "X rename(0x7f4bc7373050 a,b c.txt, 0x7f4bc73730e0 d (x).txt) = 0 (0x0) (48.926µs)",
        "X symlink(0x7f4bc73730e0 d (x).txt, 0x7f4bc7f51d30 l) = 0 (0x0) (61.143µs)",
        "X newfstatat(AT_FDCWD /tmp/w, 0x7f4bc7372f90 l, 0x7f0fcaa16d30 {dev=9, ino=4, mode=S_IFREG|0o644, nlink=1, size=0, atime=2026-11-30 15:16:50.293811735 +0000 UTC}, 0x0) = 0 (0x0) (14.952µs)",
        "X unlinkat(AT_FDCWD /tmp/w, 0x7f4bc7372f90 l, 0x0) = 0 (0x0) (13.926µs)",
        "X unlinkat(AT_FDCWD /tmp/w, 0x7f4bc7372f90 dd, 0x200) = 0 (0x0) (13.926µs)",
        "X mkdir(0x7f4bc7372f90 dd, 0o777) = 0 (0x0) (39.259µs)",
        "X access(0x7f2b773ab2a0 /etc/ld.so.preload, 0o4) = 0 (0x0) errno=2 (no such file or directory) (9.904µs)",
    ) == [
        "file.open@2+3 call='openat' result=3 path='/tmp/w/a,b c.txt' access='write' flags='O_WRONLY|O_CLOEXEC|O_CREAT|O_TRUNC' fd=3 written='a,b c.txt'",
        "file.change@4+5 call='write' result=18 path='/tmp/w/a,b c.txt' fd=3 size=18 data=b'hello \"q\" \\\\ \\n\\xc3\\xa9 x\\n'",
        "file.read@6+7 call='read' result=9 path='/tmp/w/a,b c.txt' fd=3 size=9 data=b'z\\xc2\\xa0\\x00\\x07\\xf0\\x9f\\x98\\x80'",
        "file.read@8 call='read' result=0 path='/tmp/w/a,b c.txt' fd=3 size=0",
        "file.read@9 call='read' result=4000 path='/tmp/w/a,b c.txt' fd=3 size=4000 data=b'cut' cut=True",
        "file.read@10 call='mmap' result=139963438161920 path='/tmp/w/a,b c.txt' fd=3 size=8192 cut=True mapped=True",
        "file.change@13 call='rename' result=0 operation='rename' path='/tmp/w/a,b c.txt' target='/tmp/w/d (x).txt'",
        "file.change@14 call='symlink' result=0 operation='symlink' path='/tmp/w/l' target='d (x).txt'",
        "file.probe@15 call='newfstatat' result=0 path='/tmp/w/d (x).txt' written='l'",
        "file.change@16 call='unlinkat' result=0 operation='unlink' path='/tmp/w/d (x).txt'",
        "file.change@17 call='unlinkat' result=0 operation='rmdir' path='/tmp/w/dd'",
        "file.change@18 call='mkdir' result=0 operation='mkdir' path='/tmp/w/dd' mode='0777'",
        "file.probe@19 call='access' error='ENOENT' operation='access' path='/etc/ld.so.preload' written='/etc/ld.so.preload'",
        "loss string-cut@9 x1 data:file.read",
    ]


def test_sockets_of_every_family_and_what_becomes_of_them(tmp_path: Path) -> None:
    assert told(
        tmp_path,
        "X socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_IP) = 4 (0x4) (37.988µs)",
        "X connect(0x4 socket:[3], 0x7f0fcaa17030 {Family: AF_INET, Addr: 127.0.0.1, Port: 9}, 0x10) = 0 (0x0) errno=115 (operation now in progress) (150.182µs)",
        "X poll(0x7f0fcaa16fd8 [{FD: 0x4 socket:[3], Events: POLLOUT|POLLERR|POLLHUP, REvents: POLLOUT|POLLERR|POLLHUP}], 0x1, 0x12c) = 1 (0x1) (31.672µs)",
        "X getsockopt(0x4 socket:[3], SOL_SOCKET, SO_ERROR, 0x7f0fcaa16fd4 {value=111}, 0x7f0fcaa16fd8 {length=4}) = 0 (0x0) (5.895µs)",
        "X close(0x4 socket:[3]) = 0 (0x0) (2.722µs)",
        "X socket(AF_INET6, SOCK_STREAM, IPPROTO_TCP) = 4 (0x4) (37.988µs)",
        "X connect(0x4 socket:[4], 0x7f0fcaa17030 {Family: AF_INET6, Addr: 2001:db8::1, Port: 80}, 0x1c) = 0 (0x0) errno=113 (no route to host) (3.398µs)",
        "X connect(0x5 socket:[5], 0x7f0fcaa17030 {Family: AF_INET6, Addr: ::ffff:cb00:7108, Port: 81}, 0x1c) = 0 (0x0) errno=113 (no route to host) (2.645µs)",
        'X connect(0x6 socket:[6], 0x7f0fcaa17030 {Family: AF_UNIX, Addr: "/run/no, such}.sock"}, 0x16) = 0 (0x0) errno=2 (no such file or directory) (3.427592ms)',
        r'X connect(0x7 socket:[7], 0x7f0fcaa17030 {Family: AF_UNIX, Addr: "\x00abs\x01}"}, 0x8) = 0 (0x0) errno=111 (connection refused) (2.078µs)',
        "X bind(0x8 socket:[8], 0x7f0fcaa17020 {Family: AF_INET, Addr: , Port: 8080}, 0x10) = 0 (0x0) (5.089µs)",
        "X listen(0x8 socket:[8], 0x1) = 0 (0x0) (4.395µs)",
        "X accept4(0x8 socket:[8], 0x7f0fcaa17010 {Family: AF_INET, Addr: 127.0.0.1, Port: 17345}, 0x7f0fcaa17004 {length=16}, SOCK_CLOEXEC) = 9 (0x9) (12.107µs)",
        "X connect(0xa socket:[9], 0x7f0f {Family: AF_NETLINK, PortID: 0, Groups: 0}, 0xc) = 0 (0x0) (1µs)",
        "X connect(0xb socket:[10], 0x7f0f {error reading address: bad address}, 0xc) = 0 (0x0) errno=14 (bad address) (1µs)",
    ) == [
        "socket.open@1 call='socket' result=4 socket='s1' fd=4 family='inet' type='stream' protocol='IPPROTO_IP'",
        "socket.connect@2 call='connect' error='EINPROGRESS' socket='s1' fd=4 transport='tcp' family='inet' address='127.0.0.1' port=9 outcome='in_progress' duration_ns=150182",
        "socket.state@3 call='poll' result=1 socket='s1' fd=4 source='poll' status='POLLOUT|POLLERR|POLLHUP'",
        "socket.state@4 call='getsockopt' result=0 socket='s1' fd=4 status='ECONNREFUSED'",
        "socket.state@5 call='close' result=0 socket='s1' fd=4 source='close'",
        "socket.open@6 call='socket' result=4 socket='s2' fd=4 family='inet6' type='stream' protocol='IPPROTO_TCP'",
        "socket.connect@7 call='connect' error='EHOSTUNREACH' socket='s2' fd=4 transport='tcp' family='inet6' address='2001:db8::1' port=80 outcome='unreachable' duration_ns=3398",
        "socket.connect@8 call='connect' error='EHOSTUNREACH' socket='s3' fd=5 family='inet6' address='203.0.113.8' port=81 outcome='unreachable' raw_address='::ffff:cb00:7108' duration_ns=2645",
        "socket.connect@9 call='connect' error='ENOENT' socket='s4' fd=6 family='unix' path='/run/no, such}.sock' outcome='failed' duration_ns=3427592",
        "socket.connect@10 call='connect' error='ECONNREFUSED' socket='s5' fd=7 family='unix' path='@abs\\x01}' outcome='refused' duration_ns=2078",
        "socket.listen@11 call='bind' result=0 socket='s6' fd=8 address='0.0.0.0' port=8080",
        "socket.listen@12 call='listen' result=0 operation='listen' socket='s6' fd=8 address='0.0.0.0' port=8080",
        "socket.listen@13 call='accept4' result=9 operation='accept' socket='s7' fd=9 address='127.0.0.1' port=17345",
        "socket.connect@14 call='connect' result=0 socket='s8' fd=10 family='netlink' duration_ns=1000",
        "socket.connect@15 call='connect' error='EFAULT' socket='s9' fd=11 outcome='failed' duration_ns=1000",
    ]


def test_what_sendto_sends_and_where_sendmsg_sends_it_are_hidden_and_said_so(tmp_path: Path) -> None:
    sent = '0x7f0fcaa16fc0 {name=0x7f0fcaa17000, namelen=16, iovecs=0x7f4bc72e1590 {base=0x7f4bc7371ac0, len=3, "abc"}, {base=0x7f4bc7371b20, len=3, "def"}, control={0x0 }, flags=0}'
    passing = '0x7f0fcaa16fc0 {name=0x0, namelen=0, iovecs=0x7f4bc77a4850 {base=0x7f4bc7f51d60, len=1, "m"}, control={0x7f4bc72e1590 {level=SOL_SOCKET, type=SCM_RIGHTS, length=20, content: 0,5}}, flags=0}'
    assert told(
        tmp_path,
        "X socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 4 (0x4) (37.988µs)",
        "X sendto(0x4 socket:[7], 0x7f4bc71b4b40, 0x22, 0x0, 0x7f0fcaa17000 {Family: AF_INET, Addr: 203.0.113.53, Port: 53}, 0x10) = 34 (0x22) (65.457µs)",
        "X sendto(0x4 socket:[7], 0x7f4bc71b4b40, 0x22, 0x0, 0x7f0fcaa17000 {Family: AF_INET, Addr: 203.0.113.9, Port: 99}, 0x10) = 0 (0x0) errno=113 (no route to host) (28.464µs)",
        f"E sendmsg(0x4 socket:[7], {sent}, 0x0)",
        "X sendmsg(0x4 socket:[7], 0x7f0fcaa16fc0 {name=0x7f0fcaa17000, namelen=16, iovecs=0x7f4bc72e1590 {base=0x7f4bc7371ac0, len=3}, {base=0x7f4bc7371b20, len=3}, control=0x0, control_len=0, flags=0}, 0x0) = 6 (0x6) (2.926µs)",
        f"E sendmsg(0x8 socket:[11], {passing}, 0x0)",
        "X sendmsg(0x8 socket:[11], 0x7f0fcaa16fc0 {name=0x0, namelen=0, iovecs=0x7f4bc77a4850 {base=0x7f4bc7f51d60, len=1}, control=0x7f4bc72e1590, control_len=24, flags=0}, 0x0) = 1 (0x1) (9.108µs)",
        r'X recvmsg(0x6 socket:[9], 0x7f0fcaa16f60 {name=0x7f0fcaa16fa0, namelen=0, iovecs=0x7f0fcaa170a0 {base=0x7f4bc7373020, len=10, "xxyyK\x7f\x00\x00h\xe9"}, control={0x0 }, flags=0}, 0x0) = 4 (0x4) (5.27µs)',
    ) == [
        "socket.open@1 call='socket' result=4 socket='s1' fd=4 family='inet' type='dgram' protocol='IPPROTO_IP'",
        "socket.send@2 call='sendto' result=34 socket='s1' fd=4 transport='udp' address='203.0.113.53' port=53 remote_source='argument' size=34 tried=34 cut=True",
        "dns.query@2 seen_in='syscalls' type='' server='203.0.113.53' server_port=53 transport='udp' id=0",
        "socket.send@3 call='sendto' error='EHOSTUNREACH' socket='s1' fd=4 transport='udp' address='203.0.113.9' port=99 remote_source='argument' tried=34",
        "socket.send@4+5 call='sendmsg' result=6 socket='s1' fd=4 transport='udp' size=6 tried=6 data=b'abcdef'",
        "socket.send@6+7 call='sendmsg' result=1 socket='s2' fd=8 size=1 tried=1 data=b'm'",
        "fd.pass@6+7 call='sendmsg' result=1 socket='s2' fds=[0, 5] paths=[None, None]",
        "socket.receive@8 call='recvmsg' result=4 socket='s3' fd=6 size=4 data=b'xxyy'",
        "loss string-cut@2 x2 data:socket.send",
        "note name-hidden@2 x1 process=1",
        "loss name-hidden@4+5 x1 socket.send socket.connect process=1",
    ]


def test_kinds_read_out_of_what_is_sent_are_not_watched(tmp_path: Path) -> None:
    _, observation = read(
        tmp_path,
        lines(
            "X connect(0x4 socket:[3], 0x7f {Family: AF_INET, Addr: 127.0.0.1, Port: 9}, 0x10) = 0 (0x0) (1µs)",
            "X sendto(0x4 socket:[3], 0x7f, 0x22, 0x0, null, 0x0) = 34 (0x22) (1µs)",
        ),
    )
    assert set(observation.watches) == {"socket.connect", "socket.send"}
    assert set(observation.watches.values()) == {"inferred"}


def test_processes_are_born_exec_and_end(tmp_path: Path) -> None:
    text = lines(
        "E clone(CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|0x11, 0x0, 0x0, 0x7f4bc801ce50, 0x0)",
        '[  43:  43] sh E execve(0x564ef40e1c40 /usr/bin/cat, 0x564ef40e1af0 ["cat", "/etc/a, b\\""], 0x564ef40e1b08 ["A=1", "B"])',
        "X clone(CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|0x11, 0x0, 0x0, 0x7f4bc801ce50, 0x0) = 43 (0x2b) (1.233673ms)",
        '[  43:  43] cat X execve(0x564ef40e1c40 /usr/bin/cat, 0x564ef40e1af0 ["cat", "/etc/a, b\\""], 0x564ef40e1b08 ["A=1", "B"]) = 0 (0x0) (317.1µs)',
        "X clone(CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SETTLS, 0x7f, 0x7f, 0x7f, 0x7f) = 44 (0x2c) (44.288µs)",
        "[   1:  44] python3 X openat(AT_FDCWD /, 0x7f /etc/hosts, O_RDONLY, 0o0) = 11 (0xb) (1µs)",
        "X openat(AT_FDCWD /, 0x7f x, O_RDONLY, 0o0) = 12 (0xc) (1µs)",
        "[   1:  44] python3 E exit(0x0)",
        "[   1:  44] python3 X exit(0x0) = 0 (0x0) (918ns)",
        "X vfork() = 45 (0x2d) (55.147µs)",
        '[  45:  45] python3 X execve(0x7f /nonexistent, 0x7f ["/nonexistent"], 0x7f []) = 0 (0x0) errno=2 (no such file or directory) (116µs)',
        "[  45:  45] python3 E exit_group(0xff)",
        "[  45:  45] python3 X exit_group(0xff) = 0 (0x0) (723ns)",
        "[  43:  43] cat E exit_group(0x0)",
        "[  43:  43] cat X exit_group(0x0) = 0 (0x0) (723ns)",
        "E exit_group(0x105)",
        "X exit_group(0x105) = 0 (0x0) (1.064µs)",
    )
    assert (
        script(tmp_path, text)
        == """
process.start@1 process='1' call='' how='seen'
process.start@1+3 process='43' call='clone' result=43 how='clone' parent='1' flags=['CLONE_CHILD_CLEARTID', 'CLONE_CHILD_SETTID', '0x11']
process.start@2+4 process='43' call='execve' result=0 parent='1' executable='/usr/bin/cat' argv=['cat', '/etc/a, b"'] env=['A=1', 'B']
file.open@6 process='1' tid=44 call='openat' result=11 path='/etc/hosts' access='read' flags='O_RDONLY' fd=11 written='/etc/hosts'
file.open@7 process='1' call='openat' result=12 path='/x' access='read' flags='O_RDONLY' fd=12 written='x'
process.start@10 process='45' call='vfork' result=45 how='clone' parent='1' flags=['CLONE_VFORK', 'CLONE_VM']
process.exec_failed@11 process='45' call='execve' error='ENOENT' executable='/nonexistent' argv=['/nonexistent']
process.exit@13 process='45' code=255
process.exit@15 process='43' code=0
process.exit@17 process='1' code=5
17 lines 0 unparsed 4 exits complete clock=time-of-day
"""
    )


def test_debug_messages_tell_the_end_of_killed_processes(tmp_path: Path) -> None:
    text = (
        lines("X getpid() = 1 (0x1) (1µs)", "[  46:  46] sh X getpid() = 46 (0x2e) (1µs)")
        + """\
D1130 15:16:50.384992   29411 task_signals.go:189] [  46:  46] Signal 9: terminating thread group
I1130 15:16:50.385002   29411 compat.go:135] Uncaught signal: "killed" (9), PID: 46, TID: 46, fault addr: 0x0
D1130 15:16:50.385013   29411 task_exit.go:204] [  46:  46] Transitioning from exit state TaskExitNone to TaskExitInitiated
D1130 15:16:50.385352   29411 task_exit.go:204] [  46:  46] Transitioning from exit state TaskExitInitiated to TaskExitZombie
D1130 15:16:50.385992   29411 task_exit.go:204] [  46:  46] Transitioning from exit state TaskExitZombie to TaskExitDead
"""
        + lines("E exit_group(0x5)", "X exit_group(0x5) = 0 (0x0) (1.064µs)")
        + "D1130 15:16:50.388200   29411 task_exit.go:204] [   1:   1] Transitioning from exit state TaskExitInitiated to TaskExitZombie\n"
    )
    assert (
        script(tmp_path, text)
        == """
process.start@1 process='1' call='' how='seen'
process.start@2 process='46' call='' how='seen'
process.exit@6 process='46' signal='SIGKILL'
process.exit@10 process='1' code=5
10 lines 0 unparsed 2 exits complete clock=time-of-day
"""
    )


def test_a_thread_that_execs_goes_on_as_its_process(tmp_path: Path) -> None:
    text = lines(
        "X clone(CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, 0x7f, 0x7f, 0x7f, 0x7f) = 2 (0x2) (1µs)",
        '[   1:   2] python3 E execve(0x7f /bin/echo, 0x7f ["echo"], 0x7f [])',
        "D1130 15:16:50.384992   29411 task_exit.go:204] [   1:   1] Transitioning from exit state TaskExitInitiated to TaskExitZombie",
        '[   1:   1] echo X execve(0x7f /bin/echo, 0x7f ["echo"], 0x7f []) = 0 (0x0) (1µs)',
        "[   1:   1] echo X openat(AT_FDCWD /, 0x7f /etc/hosts, O_RDONLY, 0o0) = 3 (0x3) (1µs)",
    ).replace("I1130 15:16:50.002000   29411 strace.go:605] [   1:   1] python3 D1130", "D1130")
    assert (
        script(tmp_path, text)
        == """
process.start@1 process='1' call='' how='seen'
process.start@2+4 process='1' call='execve' result=0 executable='/bin/echo' argv=['echo'] env=[]
file.open@5 process='1' call='openat' result=3 path='/etc/hosts' access='read' flags='O_RDONLY' fd=3 written='/etc/hosts'
loss no-exit x1
5 lines 0 unparsed 1 exits incomplete clock=time-of-day
"""
    )


def test_descriptors_move(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        "X openat(AT_FDCWD /, 0x7f /etc/passwd, O_RDONLY|O_CLOEXEC, 0o0) = 3 (0x3) (1µs)",
        "X dup2(0x3 /etc/passwd, 0x9 pipe:[28]) = 9 (0x9) (1.818µs)",
        "X fcntl(0x3 /etc/passwd, 0x406, 0x0) = 11 (0xb) (3.252µs)",
        "X pipe2(0x7f0fcaa16da8 [12 13], 0x80000) = 0 (0x0) (2.756µs)",
        r'X read(0x9, 0x7f "r", 0x1) = 1 (0x1) (1µs)',
        r'X read(0xb, 0x7f "o", 0x1) = 1 (0x1) (1µs)',
        "X close_range(0x3 /etc/passwd, 0xb (bad FD), 0x0) = 0 (0x0) (6.273µs)",
        r'X read(0x9, 0x7f "t", 0x1) = 1 (0x1) (1µs)',
        'X writev(0xd pipe:[28], 0x7f4bc72e1250 {base=0x7f4bc73783b0, len=3, "one"}, {base=0x7f4bc7378410, len=3, "two"}, 0x2) = 6 (0x6) (1µs)',
        r'X readv(0xc pipe:[28], 0x7f4bc72e1250 {base=0x7f4bc77a4800, len=4, "onet"}, {base=0x7f4bc77a4830, len=9, "wo"...}, 0x2) = 6 (0x6) (2.748µs)',
        "X sendfile(0x4 socket:[1], 0x3 /etc/hosts, 0x7fa58e868228, 0x14) = 20 (0x14) (30.42µs)",
        r'X write(0x1 host:[3], 0x7f "hi\n", 0x3) = 3 (0x3) (1µs)',
    )
    assert [line for line in found if not line.startswith("loss")] == [
        "file.open@1 call='openat' result=3 path='/etc/passwd' access='read' flags='O_RDONLY|O_CLOEXEC' fd=3 written='/etc/passwd'",
        "file.read@5 call='read' result=1 path='/etc/passwd' fd=9 size=1 data=b'r'",
        "file.read@6 call='read' result=1 path='/etc/passwd' fd=11 size=1 data=b'o'",
        "file.read@8 call='read' result=1 fd=9 size=1 data=b't' certain=False inherited=True",
        "file.change@9 call='writev' result=6 path='pipe:[28]' fd=13 size=6 data=b'onetwo'",
        "file.read@10 call='readv' result=6 path='pipe:[28]' fd=12 size=6 data=b'onetwo' inherited=True",
        "file.read@11 call='sendfile' result=20 path='/etc/hosts' fd=3 size=20 cut=True inherited=True to_fd=4 to_socket='s1'",
        "socket.send@11 call='sendfile' result=20 socket='s1' fd=4 size=20 tried=20 cut=True",
        "file.change@12 call='write' result=3 path='host:[3]' fd=1 size=3 data=b'hi\\n'",
    ]


def test_calls_that_it_only_numbers_are_named_and_their_arguments_counted_as_hidden(tmp_path: Path) -> None:
    assert told(
        tmp_path,
        "X sys_439(0xffffff9c, 0x5631006fa420, 0x1, 0x200, 0xbfb93fc0019a1, 0x0) = 0 (0x0) (291.443µs)",
        "X sys_437(0xffffffffffffff9c, 0x7f0b519c44a0, 0x7f0b519e3290, 0x18, 0x0, 0x6) = 0 (0x0) errno=38 (invalid system call number) (31.478µs)",
        "X sys_999(0x1, 0x2, 0x3, 0x4, 0x5, 0x6) = 7 (0x7) (31.478µs)",
        "X io_uring_setup(0x8, 0x0) = 0 (0x0) errno=14 (bad address) (2.118µs)",
        "X memfd_create(0x7f4bc7378d70 mm, 0x1) = 11 (0xb) (11.797µs)",
        "X mount(0x7f0b519bd6a0 none, 0x7f0b519bd700 /mnt, 0x7f0b519bd760 tmpfs, 0x0, 0x7f0b525508c8 ) = 0 (0x0) (134.596µs)",
        "X kill(0x2e, SIGKILL) = 0 (0x0) (29.801µs)",
    ) == [
        "file.probe@1 call='faccessat2' result=0 operation='access' certain=False",
        "file.open@2 call='openat2' error='ENOSYS' path='0x7f0b519c44a0' certain=False",
        "kernel.notable@3 call='syscall_0x3e7' result=7 detail='0x1, 0x2, 0x3, 0x4, 0x5, 0x6'",
        "kernel.notable@4 call='io_uring_setup' error='EFAULT' detail='0x8, 0x0'",
        "kernel.notable@5 call='memfd_create' result=11 detail='\"mm\", MFD_CLOEXEC' path='mm'",
        'kernel.notable@6 call=\'mount\' result=0 detail=\'"none", "/mnt", "tmpfs", 0x0, ""\' path=\'/mnt\'',
        "kernel.notable@7 call='kill' result=0 detail='0x2e, SIGKILL'",
        "loss unknown-call@3 x1 process=1",
    ]


def test_a_path_that_can_be_read_in_two_ways_is_uncertain(tmp_path: Path) -> None:
    assert told(tmp_path, "X link(0x7f0b519c1250 nope, 0x7f0b519c3d40 q, 0x1 z) = 0 (0x0) (590.737µs)") == [
        "file.change@1 call='link' result=0 operation='link' path='q, 0x1 z' target='nope' certain=False",
    ]
    (event,) = (
        event
        for event in read(tmp_path, lines("X openat(AT_FDCWD /a, 0x1 b, 0x2 /etc/x, O_RDONLY, 0o0) = 3 (0x3) (1µs)"))[0]
        if isinstance(event, FileOpen)
    )
    assert not event.certain


def test_without_a_window_times_count_from_midnight_with_one_from_1970(tmp_path: Path) -> None:
    text = lines("X openat(AT_FDCWD /, 0x7f /a, O_RDONLY, 0o0) = 3 (0x3) (1µs)")
    events, observation = read(tmp_path, text, frozenset({"file.open"}))
    assert [(event.t_ns, observation.clock) for event in events] == [
        ((15 * 3600 + 16 * 60 + 50) * 10**9, "time-of-day")
    ]
    window = Declared(begin_ns=1796051800 * 10**9, end_ns=1796051820 * 10**9)
    events, observation = read(tmp_path, text, frozenset({"file.open"}), window)
    assert [(event.t_ns, observation.clock) for event in events] == [(1796051810 * 10**9, "epoch")]
    assert [(loss.what, loss.note) for loss in observation.losses if loss.what != "no-exit"] == [
        ("clock-inferred", True)
    ]


def test_a_filter_of_the_log_or_of_the_manifest_is_a_loss(tmp_path: Path) -> None:
    call = lines("X openat(AT_FDCWD /, 0x7f /a, O_RDONLY, 0o0) = 3 (0x3) (1µs)")
    configured = (
        "I1130 15:16:48.105523   29411 main.go:230] \t\tStrace: true, max size: 1024, syscalls: openat,connect\n"
    )
    _, observation = read(tmp_path, configured + call)
    assert observation.watches == {"file.open": "inferred", "socket.connect": "inferred", "process.exit": "inferred"}
    missing = sorted(CALLS["file.open"] - {"openat"})
    assert [loss.detail for loss in observation.losses if loss.touches == ["file.open"]] == [
        f"file.open: not traced: {', '.join(missing)}"
    ]
    _, observation = read(tmp_path, call, None, Declared(options=["--strace", "--strace-syscalls=openat"]))
    assert (observation.watches, observation.options) == (
        {"file.open": "declared", "process.exit": "declared"},
        ["--strace", "--strace-syscalls=openat"],
    )
    _, observation = read(tmp_path, call, None, Declared(options=["--strace", "--debug"], complete=True))
    assert observation.watches["socket.connect"] == "declared"
    assert observation.complete


def test_mcp_is_overheard_on_the_descriptors_of_the_host(tmp_path: Path) -> None:
    ask = r"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n"
    said = r"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"add\"}]}}\n"
    text = lines(
        "E read(0x0 host:[1], 0x7f, 0x1000)",
        f'X read(0x0 host:[1], 0x7f "{ask}", 0x1000) = 47 (0x2f) (1µs)',
        f'E write(0x1 host:[2], 0x7f "{said}", 0x3d)',
        "X write(0x1 host:[2], ..., 0x3d) = 65 (0x3d) (1µs)",
    )
    events, observation = read(tmp_path, text)
    assert [(event.kind, event.where.at, event.where.end) for event in events if event.kind.startswith("mcp")] == [
        ("mcp.message", 1, 2),
        ("mcp.message", 3, 4),
        ("mcp.tool", 3, 4),
    ]
    assert observation.watches["mcp.tool"] == "inferred"


def test_the_common_door_knows_such_a_log(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text(lines("X openat(AT_FDCWD /, 0x7f /a, O_RDONLY, 0o0) = 3 (0x3) (1µs)"))
    run = open_evidence_files(strace=[path])
    events: list[Event] = list(run.events(frozenset({"file.open"})))
    assert [observation.format for observation in run.observations()] == ["gvisor"]
    assert [event.where.at for event in events] == [1]


@pytest.mark.parametrize("text", ["1 close(3) = 0\n", "hello\n", '{"msg":"strace.go","level":"info","time":"x"}\n'])
def test_other_text_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / NAME
    path.write_text(text)
    with pytest.raises(UnknownFormat, match="is no debug log of gVisor"):
        GvisorLog(path, NAME)
