"""Calls in two halves, and the processes that they belong to."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_c01_arguments_of_the_resumed_half_belong_to_the_call(tmp_path: Path) -> None:
    text = r"""
16872 pipe2( <unfinished ...>
16915 <... rt_sigprocmask resumed>NULL, 8) = 0
16872 <... pipe2 resumed>[3, 4], O_CLOEXEC) = 0
16872 recvfrom(5,  <unfinished ...>
16915 close(7)                          = 0
16872 <... recvfrom resumed>"HTTP/1.1 403 Forbidden\r\n", 4096, 0, NULL, NULL) = 24
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='16872' call='' how='seen'
process.start@2 process='16915' call='' how='seen'
socket.receive@4+6 process='16872' call='recvfrom' result=24 socket='s1' fd=5 size=24 data=b'HTTP/1.1 403 Forbidden\r\n'
note orphan-resumed@2 x1
loss no-exit x1
note no-clock x1
6 lines 0 unparsed 1 orphans 0 exits incomplete clock=none
"""
    )


def test_c02_old_and_new_spacing_and_an_unavailable_result(tmp_path: Path) -> None:
    text = """
3619  futex(0x7f1c0c000b60, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>
3620  <... connect resumed> )           = -1 ECONNREFUSED (Connection refused)
3619  <... futex resumed> )             = ? <unavailable>
3621  <... exit resumed>)               = ?
3621  +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='3619' call='' how='seen'
process.start@2 process='3620' call='' how='seen'
socket.connect@2 process='3620' call='connect' error='ECONNREFUSED' outcome='refused'
process.start@4 process='3621' call='' how='seen'
process.exit@5 process='3621' code=0
loss orphan-resumed@2 x1 socket.connect
loss name-hidden@2 x1 socket.connect process=3620
note orphan-resumed@4 x1
loss no-exit x1
note no-clock x1
5 lines 0 unparsed 2 orphans 1 exits incomplete clock=none
"""
    )


def test_c03_a_child_resuming_its_parents_clone_is_one_spawn(tmp_path: Path) -> None:
    text = """
1000 1770331448.000000 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD) = 1001
1001 1770331448.020000 <... clone resumed>) = 0
1001 1770331448.030000 execve("/bin/ls", ["ls"], 0x7fff5a2b /* 10 vars */) = 0
1001 1770331448.500000 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 t_ns=1770331448000000000 process='1000' call='' how='seen'
process.start@1 t_ns=1770331448000000000 process='1001' call='clone' result=1001 how='clone' parent='1000' flags=['CLONE_CHILD_CLEARTID', 'CLONE_CHILD_SETTID', 'SIGCHLD']
process.start@3 t_ns=1770331448030000000 process='1001' call='execve' result=0 parent='1000' executable='/bin/ls' argv=['ls'] env_count=10
process.exit@4 t_ns=1770331448500000000 process='1001' code=0
note orphan-resumed@2 x1
loss no-exit x1
4 lines 0 unparsed 1 orphans 1 exits incomplete clock=epoch
"""
    )


def test_c04_lines_without_a_prefix_belong_to_the_first_process(tmp_path: Path) -> None:
    text = """
execve("./srv", ["./srv"], 0x7ffe8e /* 35 vars */) = 0
vfork( <unfinished ...>
strace: Process 16966 attached
[pid 16966] execve("/bin/sh", ["/bin/sh", "-c", "exit 3"], 0x7ffc /* 38 vars */ <unfinished ...>
[pid 16922] <... vfork resumed>)        = 16966
[pid 16966] <... execve resumed>)       = 0
[pid 16966] +++ exited with 3 +++
--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=16966, si_uid=0, si_status=3, si_utime=0, si_stime=0} ---
openat(AT_FDCWD, "/etc/hostname", O_RDONLY|O_CLOEXEC) = 3
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='16922' call='execve' result=0 executable='./srv' argv=['./srv'] env_count=35
process.start@2+5 process='16966' call='vfork' result=16966 how='clone' parent='16922' flags=['CLONE_VFORK', 'CLONE_VM']
process.start@4+6 process='16966' call='execve' result=0 parent='16922' executable='/bin/sh' argv=['/bin/sh', '-c', 'exit 3'] env_count=38
process.exit@7 process='16966' code=3
file.open@9 process='16922' call='openat' result=3 path='/etc/hostname' access='read' flags='O_RDONLY|O_CLOEXEC' fd=3 written='/etc/hostname'
loss no-exit x1
note no-clock x1
9 lines 0 unparsed 0 orphans 1 exits incomplete clock=none
"""
    )


def test_c05_a_message_of_strace_inside_a_call_is_taken_out(tmp_path: Path) -> None:
    text = """
[pid 16958] clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLDstrace: Process 16959 attached
, child_tidptr=0x7fbf48996a10) = 16959
[pid 16922] clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM|CLONE_SETTLS, exit_signal=0, stack=0x7f046f536000, stack_size=0x7fff80}strace: Process 16964 attached
 => {parent_tid=[16964]}, 88) = 16964
pause(strace: Process 17597 attached
 <unfinished ...>
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='16958' call='' how='seen'
process.start@1+2 process='16959' call='clone' result=16959 how='clone' parent='16958' flags=['CLONE_CHILD_CLEARTID', 'CLONE_CHILD_SETTID', 'SIGCHLD']
process.start@3 process='16922' call='' how='seen'
loss no-exit x1
note no-clock x1
6 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c06_a_result_inside_a_string_is_text(tmp_path: Path) -> None:
    text = r"""
16872 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 16916
16872 openat(AT_FDCWD, "/tmp/w/a) = 3\n[pid 1] connect(3, \"x>y\\z", O_RDONLY|O_CLOEXEC) = 5
16872 sendfile(14, 7, [0] => [15], 15)  = 15
16872 getsockname(3, {sa_family=AF_INET, sin_port=htons(52090), sin_addr=inet_addr("10.77.0.2")}, [28 => 16]) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='16872' call='' how='seen'
file.open@2 process='16872' call='openat' result=5 path='/tmp/w/a) = 3\n[pid 1] connect(3, "x>y\\\\z' access='read' flags='O_RDONLY|O_CLOEXEC' fd=5 written='/tmp/w/a) = 3\n[pid 1] connect(3, "x>y\\\\z'
file.read@3 process='16872' call='sendfile' result=15 fd=7 size=15 cut=True certain=False inherited=True to_fd=14
file.change@3 process='16872' call='sendfile' result=15 fd=14 size=15 cut=True certain=False
note orphan-resumed@1 x1
loss string-cut@3 x1 data:file.read
loss string-cut@3 x1 data:file.change
loss no-exit x1
note no-clock x1
4 lines 0 unparsed 1 orphans 0 exits incomplete clock=none
"""
    )


def test_c14_numbered_markers_join_like_plain_ones(tmp_path: Path) -> None:
    text = """
1905 select(4, [3], NULL, NULL, NULL <unfinished #17 ...>
1906 close(9) = 0
1905 <... select resumed #17>) = 1 (in [3])
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='1905' call='' how='seen'
process.start@2 process='1906' call='' how='seen'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )
