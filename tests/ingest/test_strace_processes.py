"""Who made a line: births, programs, ends, numbers used twice."""

from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_a_pid_used_again_is_another_process(tmp_path: Path) -> None:
    text = """
5 clone(child_stack=NULL, flags=SIGCHLD) = 6
6 openat(AT_FDCWD, "/a", O_RDONLY) = 3
6 +++ exited with 0 +++
5 clone(child_stack=NULL, flags=SIGCHLD) = 6
6 read(3, "x", 1) = 1
6 +++ exited with 1 +++
5 exit_group(0) = ?
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
process.start@1 process='6' call='clone' result=6 how='clone' parent='5' flags=['SIGCHLD']
file.open@2 process='6' call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'
process.exit@3 process='6' code=0
process.start@4 process='6#2' call='clone' result=6 how='clone' parent='5' flags=['SIGCHLD']
file.read@5 process='6#2' call='read' result=1 fd=3 size=1 data=b'x' certain=False inherited=True
process.exit@6 process='6#2' code=1
process.exit@8 process='5' code=0
note no-clock x1
8 lines 0 unparsed 0 orphans 3 exits complete clock=none
"""
    )


def test_b05_an_untraced_child_is_a_loss(tmp_path: Path) -> None:
    text = """
5 clone(child_stack=NULL, flags=CLONE_UNTRACED|SIGCHLD) = 6
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
process.start@1 process='6' call='clone' result=6 how='clone' parent='5' flags=['CLONE_UNTRACED', 'SIGCHLD']
process.exit@2 process='5' code=0
loss untraced-process@1 x1 process=6
note no-clock x1
2 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_b06_a_child_without_a_line_is_a_loss(tmp_path: Path) -> None:
    text = """
5 vfork() = 6
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
process.start@1 process='6' call='vfork' result=6 how='clone' parent='5' flags=['CLONE_VFORK', 'CLONE_VM']
process.exit@2 process='5' code=0
loss untraced-process@1 x1 process=6
note no-clock x1
2 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_raw_clone_flags_are_read_by_their_bits(tmp_path: Path) -> None:
    text = """
5 clone3({flags=0x10f00, exit_signal=0} => {parent_tid=[6]}, 88) = 6
6 openat(AT_FDCWD, "/a", O_RDONLY) = 3
6 +++ exited with 0 +++
5 clone(child_stack=NULL, flags=0x111 /* CLONE_VM|SIGCHLD */) = 7
7 +++ exited with 0 +++
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
file.open@2 process='5' tid=6 call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'
process.start@4 process='7' call='clone' result=7 how='clone' parent='5' flags=['CLONE_VM', 'SIGCHLD']
process.exit@5 process='7' code=0
process.exit@6 process='5' code=0
note no-clock x1
6 lines 0 unparsed 0 orphans 3 exits complete clock=none
"""
    )


def test_descriptors_follow_fork_exec_and_close_on_exec(tmp_path: Path) -> None:
    text = """
5 openat(AT_FDCWD, "/a", O_RDONLY|O_CLOEXEC) = 3
5 openat(AT_FDCWD, "/b", O_RDONLY) = 4
5 fcntl(3, F_DUPFD, 10) = 10
5 dup3(4, 11, O_CLOEXEC) = 11
5 fork() = 6
6 execve("/bin/cat", ["cat"], 0x7ff /* 1 var */) = 0
6 read(3, "", 1) = 0
6 read(4, "b", 1) = 1
6 read(10, "a", 1) = 1
6 read(11, "", 1) = 0
6 close_range(4, 4294967295, 0) = 0
6 read(10, "", 1) = 0
6 +++ exited with 0 +++
5 read(11, "b", 1) = 1
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
file.open@1 process='5' call='openat' result=3 path='/a' access='read' flags='O_RDONLY|O_CLOEXEC' fd=3 written='/a'
file.open@2 process='5' call='openat' result=4 path='/b' access='read' flags='O_RDONLY' fd=4 written='/b'
process.start@5 process='6' call='fork' result=6 how='clone' parent='5'
process.start@6 process='6' call='execve' result=0 parent='5' executable='/bin/cat' argv=['cat'] env_count=1
file.read@7 process='6' call='read' result=0 fd=3 size=0 certain=False inherited=True
file.read@8 process='6' call='read' result=1 path='/b' fd=4 size=1 data=b'b' inherited=True
file.read@9 process='6' call='read' result=1 path='/a' fd=10 size=1 data=b'a' inherited=True
file.read@10 process='6' call='read' result=0 fd=11 size=0 certain=False inherited=True
file.read@12 process='6' call='read' result=0 fd=10 size=0 certain=False inherited=True
process.exit@13 process='6' code=0
file.read@14 process='5' call='read' result=1 path='/b' fd=11 size=1 data=b'b'
process.exit@15 process='5' code=0
note no-clock x1
15 lines 0 unparsed 0 orphans 2 exits complete clock=none
"""
    )


def test_two_children_at_once_are_told_apart_when_they_are_named(tmp_path: Path) -> None:
    text = """
5 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
7 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
9 openat(AT_FDCWD, "/a", O_RDONLY) = 3
8 openat(AT_FDCWD, "/b", O_RDONLY) = 3
5 <... clone resumed>) = 8
7 <... clone resumed>) = 9
9 read(3, "a", 1) = 1
8 +++ exited with 0 +++
9 +++ exited with 0 +++
7 +++ exited with 0 +++
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
file.open@3 process='9' call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'
process.start@4 process='8' call='' how='seen'
file.open@4 process='8' call='openat' result=3 path='/b' access='read' flags='O_RDONLY' fd=3 written='/b'
process.start@1+5 process='8' call='clone' result=8 how='clone' parent='5' flags=['SIGCHLD']
process.start@2+6 process='9' call='clone' result=9 how='clone' parent='7' flags=['SIGCHLD']
file.read@7 process='9' call='read' result=1 path='/a' fd=3 size=1 data=b'a'
process.exit@8 process='8' code=0
process.exit@9 process='9' code=0
process.exit@10 process='7' code=0
process.exit@11 process='5' code=0
note ambiguous-parent x1
note no-clock x1
11 lines 0 unparsed 0 orphans 4 exits complete clock=none
"""
    )


def test_a_child_taken_for_anothers_gets_its_parents_descriptors(tmp_path: Path) -> None:
    text = """
5 openat(AT_FDCWD, "/five", O_RDONLY) = 3
7 openat(AT_FDCWD, "/seven", O_RDONLY) = 3
5 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
7 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
9 openat(AT_FDCWD, "/nine", O_RDONLY) = 4
7 <... clone resumed>) = 9
5 <... clone resumed>) = 8
9 read(3, "7", 1) = 1
9 read(4, "9", 1) = 1
8 read(3, "5", 1) = 1
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
file.open@1 process='5' call='openat' result=3 path='/five' access='read' flags='O_RDONLY' fd=3 written='/five'
process.start@2 process='7' call='' how='seen'
file.open@2 process='7' call='openat' result=3 path='/seven' access='read' flags='O_RDONLY' fd=3 written='/seven'
file.open@5 process='9' call='openat' result=4 path='/nine' access='read' flags='O_RDONLY' fd=4 written='/nine'
process.start@4+6 process='9' call='clone' result=9 how='clone' parent='7' flags=['SIGCHLD']
process.start@3+7 process='8' call='clone' result=8 how='clone' parent='5' flags=['SIGCHLD']
file.read@8 process='9' call='read' result=1 path='/seven' fd=3 size=1 data=b'7' inherited=True
file.read@9 process='9' call='read' result=1 path='/nine' fd=4 size=1 data=b'9'
file.read@10 process='8' call='read' result=1 path='/five' fd=3 size=1 data=b'5' inherited=True
note ambiguous-parent x1
loss no-exit x1
note no-clock x1
10 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_a_thread_that_ends_before_its_birth_returns_ends_once(tmp_path: Path) -> None:
    text = """
5 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_FS|CLONE_SIGHAND|CLONE_THREAD, exit_signal=0} <unfinished ...>
6 openat(AT_FDCWD, "/a", O_RDONLY) = 3
6 +++ exited with 0 +++
5 <... clone3 resumed> => {parent_tid=[0]}, 88) = 6
5 +++ exited with 3 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
file.open@2 process='5' tid=6 call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'
process.exit@5 process='5' code=3
note no-clock x1
5 lines 0 unparsed 0 orphans 2 exits complete clock=none
"""
    )


def test_a_child_that_ends_before_it_is_told_from_another_ends_once(tmp_path: Path) -> None:
    text = """
5 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
7 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
9 openat(AT_FDCWD, "/a", O_RDONLY) = 3
9 +++ exited with 0 +++
5 <... clone resumed>) = 8
7 <... clone resumed>) = 9
8 +++ exited with 0 +++
7 +++ exited with 0 +++
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
file.open@3 process='9' call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'
process.exit@4 process='9' code=0
process.start@1+5 process='8' call='clone' result=8 how='clone' parent='5' flags=['SIGCHLD']
process.start@2+6 process='9' call='clone' result=9 how='clone' parent='7' flags=['SIGCHLD']
process.exit@7 process='8' code=0
process.exit@8 process='7' code=0
process.exit@9 process='5' code=0
note ambiguous-parent x1
note no-clock x1
9 lines 0 unparsed 0 orphans 4 exits complete clock=none
"""
    )


def test_a_lost_second_half_is_a_loss(tmp_path: Path) -> None:
    text = """
5 openat(AT_FDCWD, "/a", O_RDONLY <unfinished ...>
5 openat(AT_FDCWD, "/b", O_RDONLY) = 3
5 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
file.open@1 process='5' call='openat' path='/a' access='read' flags='O_RDONLY' written='/a'
file.open@2 process='5' call='openat' result=3 path='/b' access='read' flags='O_RDONLY' fd=3 written='/b'
process.exit@3 process='5' code=0
loss unfinished@1 x1 file.open
note no-clock x1
3 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_an_unfinished_connect_is_an_attempt_with_unknown_outcome(tmp_path: Path) -> None:
    text = """
5 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16 <unfinished ...>
5 +++ killed by SIGKILL +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
socket.connect@1 process='5' call='connect' socket='s1' fd=3 family='inet' address='203.0.113.7' port=443
process.exit@2 process='5' signal='SIGKILL'
note unfinished@1 x1
note no-clock x1
2 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_an_unfinished_sendmmsg_hides_its_lookup(tmp_path: Path) -> None:
    text = """
5 connect(3, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.0.0.1")}, 16) = 0
5 sendmmsg(3,  <unfinished ...>
5 +++ killed by SIGKILL +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='5' call='' how='seen'
socket.connect@1 process='5' call='connect' result=0 socket='s1' fd=3 family='inet' address='10.0.0.1' port=53
socket.send@2 process='5' call='sendmmsg' socket='s1' fd=3 address='10.0.0.1' port=53 remote_source='connect' cut=True
dns.query@2 process='5' seen_in='syscalls' type='' server='10.0.0.1' server_port=53 id=0
process.exit@3 process='5' signal='SIGKILL'
note unfinished@2 x1
loss unfinished@2 x1 dns.query process=5
loss string-cut@2 x1 data:socket.send
note name-hidden@2 x1 process=5
note no-clock x1
3 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )
