"""Logs that begin late, end early, or that others write into."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_c21_attaching_in_the_middle_of_a_call_is_told(tmp_path: Path) -> None:
    text = """
strace: Process 345678 attached
restart_syscall(<... resuming interrupted read ...>) = 0
openat(AT_FDCWD, "/etc/hostname", O_RDONLY) = 4
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@2 call='' how='seen'
file.open@3 call='openat' result=4 path='/etc/hostname' access='read' flags='O_RDONLY' fd=4 written='/etc/hostname'
loss attached@1 x2
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c23_text_of_the_traced_program_makes_no_event(tmp_path: Path) -> None:
    text = r"""
write(2, "connect(3, {sa_family=AF_INET, s"..., 98connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("198.51.100.66")}, 16) = 0
) = 98
write(2, "+++ exited with 0 +++\n", 22+++ exited with 0 +++
) = 22
openat(AT_FDCWD, "/home/u/.ssh/id_ed25519", O_RDONLY|O_CLOEXEC) = 3
+++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 call='' how='seen'
file.change@1+2 call='write' result=98 fd=2 size=98 data=b'connect(3, {sa_family=AF_INET, s' cut=True certain=False
file.change@3+4 call='write' result=22 fd=2 size=22 data=b'+++ exited with 0 +++\n' certain=False
file.open@5 call='openat' result=3 path='/home/u/.ssh/id_ed25519' access='read' flags='O_RDONLY|O_CLOEXEC' fd=3 written='/home/u/.ssh/id_ed25519'
process.exit@6 code=0
loss shared-stream@1 x1
loss string-cut@1+2 x1 data:file.change
note no-clock x1
6 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_c23_a_forged_line_of_its_own_makes_no_event(tmp_path: Path) -> None:
    text = r"""
write(2, "\nconnect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr(\"198.51.100.66\")}, 16) = 0\n", 99
connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("198.51.100.66")}, 16) = 0
) = 99
getpid() = 7
+++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 call='' how='seen'
file.change@1+3 call='write' result=99 fd=2 size=99 data=b'\nconnect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("198.51.100.66")}, 16) = 0\n' certain=False
process.exit@5 process='7' code=0
loss shared-stream@1 x1
note no-clock x1
5 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_c23_a_forged_end_of_the_write_does_not_free_the_forged_call(tmp_path: Path) -> None:
    text = r"""
write(2, "\n) = 1\nconnect(3, 0x10, 16)"..., 38
) = 1
connect(3, 0x10, 16)        = 0
) = 38
openat(AT_FDCWD, "/etc/hostname", O_RDONLY) = 3
+++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
unparsed@1 reason='a call with foreign text in it' raw=b'write(2, "\\n) = 1\\nconnect(3, 0x10, 16)"..., 38'
process.start@5 call='' how='seen'
file.open@5 call='openat' result=3 path='/etc/hostname' access='read' flags='O_RDONLY' fd=3 written='/etc/hostname'
process.exit@6 code=0
loss shared-stream@1 x1
loss unparsed@1 x1
note no-clock x1
6 lines 1 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_c23_where_the_count_does_not_fit_the_end_with_that_count_is_taken(tmp_path: Path) -> None:
    text = r"""
write(2, "\n) = 1\nconnect(3, 0x10, 16)"..., 30
) = 1
connect(3, 0x10, 16)        = 0
) = 30
openat(AT_FDCWD, "/etc/hostname", O_RDONLY) = 3
+++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
unparsed@1 reason='a call with foreign text in it' raw=b'write(2, "\\n) = 1\\nconnect(3, 0x10, 16)"..., 30'
process.start@5 call='' how='seen'
file.open@5 call='openat' result=3 path='/etc/hostname' access='read' flags='O_RDONLY' fd=3 written='/etc/hostname'
process.exit@6 code=0
loss shared-stream@1 x1
loss unparsed@1 x1
note no-clock x1
6 lines 1 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_c24_a_log_cut_in_a_call_keeps_what_it_says(tmp_path: Path) -> None:
    text = """
12137 execve("/usr/bin/sh", ["sh", "-c", "sleep 1; cat /etc/hostname"], 0x7ffe /* 9 vars */) = 0
12137 openat(AT_FDCWD, "/usr/lib/locale/C.utf8/LC_CTYPE", O_RDONLY|O_CLOEXEC) = 3
12137 connect(3, {sa_family=AF_INET, sin_po"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='12137' call='execve' result=0 executable='/usr/bin/sh' argv=['sh', '-c', 'sleep 1; cat /etc/hostname'] env_count=9
file.open@2 process='12137' call='openat' result=3 path='/usr/lib/locale/C.utf8/LC_CTYPE' access='read' flags='O_RDONLY|O_CLOEXEC' fd=3 written='/usr/lib/locale/C.utf8/LC_CTYPE'
socket.connect@3 process='12137' call='connect' socket='s1' fd=3 family='inet'
loss name-hidden@3 x1 socket.connect process=12137
loss file-truncated@3 x1
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c24_a_call_cut_at_a_lines_end_is_unparsed_and_kept(tmp_path: Path) -> None:
    text = """
12137 execve("/usr/bin/sh", ["sh", "-c", "sleep 1; cat /etc/hostname"], 0x7ffe /* 9 vars */) = 0
12137 openat(AT_FDCWD, "/usr/lib/locale/C.utf8/LC_CTYPE", O_RDONLY|O_CLOEXEC) = 3
12137 connect(3, {sa_family=AF_INET, sin_po
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='12137' call='execve' result=0 executable='/usr/bin/sh' argv=['sh', '-c', 'sleep 1; cat /etc/hostname'] env_count=9
file.open@2 process='12137' call='openat' result=3 path='/usr/lib/locale/C.utf8/LC_CTYPE' access='read' flags='O_RDONLY|O_CLOEXEC' fd=3 written='/usr/lib/locale/C.utf8/LC_CTYPE'
unparsed@3 reason='not a whole connect call' raw=b'connect(3, {sa_family=AF_INET, sin_po' touches=['socket.connect']
socket.connect@3 process='12137' call='connect' socket='s1' fd=3 family='inet'
loss unparsed@3 x1 socket.connect
loss name-hidden@3 x1 socket.connect process=12137
loss no-exit x1
note no-clock x1
3 lines 1 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )
