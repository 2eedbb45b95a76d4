"""io_uring: what hides work, and what only asks whether it could."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_c41_entering_a_ring_hides_files_and_sockets(tmp_path: Path) -> None:
    text = """
18540 io_uring_setup(64, {flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0, sq_thread_idle=10, sq_entries=64, cq_entries=128, features=IORING_FEAT_SINGLE_MMAP|IORING_FEAT_NODROP, sq_off={head=0, tail=4}, cq_off={head=8, tail=12}}) = 13
18540 io_uring_enter(14, 2, 2, IORING_ENTER_GETEVENTS, NULL, 0) = 2
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='18540' call='' how='seen'
kernel.notable@1 process='18540' call='io_uring_setup' result=13 detail='64, {flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0, sq_thread_idle=10, sq_entries=64, cq_entries=128, features=IORING_FEAT_SINGLE_MMAP|IORING_FEAT_NODROP, sq_off={head=0, tail=4}, cq_off={head=8, tail=12}}'
kernel.notable@2 process='18540' call='io_uring_enter' result=2 detail='14, 2, 2, IORING_ENTER_GETEVENTS, NULL, 0'
loss io_uring@2 x1 file.open file.read file.change file.probe socket.open socket.connect socket.send socket.receive socket.listen dns.query process=18540
loss io_uring@1 x1 file.open file.read file.change file.probe socket.open socket.connect socket.send socket.receive socket.listen dns.query process=18540
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c41_a_probe_that_is_closed_hides_nothing(tmp_path: Path) -> None:
    text = """
9 io_uring_setup(1, {flags=0, sq_thread_cpu=0, sq_thread_idle=0, sq_entries=1, cq_entries=2}) = 3<anon_inode:[io_uring]>
9 close(3<anon_inode:[io_uring]>) = 0
9 io_uring_setup(1, {flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0}) = 3<anon_inode:[io_uring]>
9 close(3<anon_inode:[io_uring]>) = 0
9 io_uring_setup(8, {flags=0}) = -1 EPERM (Operation not permitted)
9 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='9' call='' how='seen'
kernel.notable@1 process='9' call='io_uring_setup' result=3 detail='1, {flags=0, sq_thread_cpu=0, sq_thread_idle=0, sq_entries=1, cq_entries=2}'
kernel.notable@3 process='9' call='io_uring_setup' result=3 detail='1, {flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0}'
kernel.notable@5 process='9' call='io_uring_setup' error='EPERM' detail='8, {flags=0}'
process.exit@6 process='9' code=0
note io_uring@1 x2 process=9
note no-clock x1
6 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )


def test_c41_a_polled_ring_left_open_hides_all(tmp_path: Path) -> None:
    text = """
9 io_uring_setup(1, {flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0}) = 3<anon_inode:[io_uring]>
9 openat(AT_FDCWD, "/a", O_RDONLY) = 4
9 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='9' call='' how='seen'
kernel.notable@1 process='9' call='io_uring_setup' result=3 detail='1, {flags=IORING_SETUP_SQPOLL, sq_thread_cpu=0}'
file.open@2 process='9' call='openat' result=4 path='/a' access='read' flags='O_RDONLY' fd=4 written='/a'
process.exit@3 process='9' code=0
loss io_uring@1 x1 file.open file.read file.change file.probe socket.open socket.connect socket.send socket.receive socket.listen dns.query process=9
note no-clock x1
3 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )
