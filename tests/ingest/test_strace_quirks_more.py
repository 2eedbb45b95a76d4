"""More of what real logs of strace 6.1 were seen to do, each on a minimal excerpt."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_quirk_13_a_path_search_fails_before_it_finds(tmp_path: Path) -> None:
    text = """
38 execve("/home/dev/.npm/_npx/7e/node_modules/.bin/node", ["node", "x"], 0x7ffe6346fe18 /* 16 vars */) = -1 ENOENT (No such file or directory)
38 execve("/usr/bin/node", ["node", "x"], ["PATH=/usr/bin", "TOKEN=c"]) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.exec_failed@1 process='38' call='execve' error='ENOENT' executable='/home/dev/.npm/_npx/7e/node_modules/.bin/node' argv=['node', 'x']
process.start@2 process='38' call='execve' result=0 executable='/usr/bin/node' argv=['node', 'x'] env=['PATH=/usr/bin', 'TOKEN=c']
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_14_what_is_cut_is_marked(tmp_path: Path) -> None:
    text = """
38 read(4</proc/36/environ>, "PATH=/usr"..., 4096) = 700
38 getdents64(3</home/dev>, 0x55 /* 3 entries */, 32768) = 80
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='38' call='' how='seen'
file.read@1 process='38' call='read' result=700 path='/proc/36/environ' fd=4 size=700 data=b'PATH=/usr' cut=True inherited=True
file.probe@2 process='38' call='getdents64' result=80 operation='list' path='/home/dev'
loss string-cut@1 x1 data:file.read
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_15_hex_hides_nothing(tmp_path: Path) -> None:
    text = r"""
36 openat(AT_FDCWD<\x2f\x68>, "\x2f\x65\x74\x63", O_RDONLY) = 7<\x2f\x64\x65\x76\x2f\x6e\x75\x6c\x6c<char 1:3>>
36 connect(5, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("\x31\x39\x32\x2e\x30\x2e\x32\x2e\x31")}, 16) = 0
36 write(3<\x70\x69\x70\x65\x3a\x5b\x31\x5d>, "\x00\xff", 2) = 2
36 sendto(6, "\30\250\1", 3, 0, NULL, 0) = 3
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='36' call='' how='seen'
file.open@1 process='36' call='openat' result=7 path='/dev/null' access='read' flags='O_RDONLY' fd=7 written='/etc'
socket.connect@2 process='36' call='connect' result=0 socket='s1' fd=5 family='inet' address='192.0.2.1' port=443
file.change@3 process='36' call='write' result=2 path='pipe:[1]' fd=3 size=2 data=b'\x00\xff'
socket.send@4 process='36' call='sendto' result=3 socket='s2' fd=6 size=3 tried=3 data=b'\x18\xa8\x01'
loss no-exit x1
note no-clock x1
4 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_16_lengths_and_comments_are_no_values(tmp_path: Path) -> None:
    text = """
36 accept4(3<TCP:[0.0.0.0:8000]>, {sa_family=AF_INET, sin_port=htons(40000), sin_addr=inet_addr("10.0.0.9")}, [128 => 16], SOCK_CLOEXEC) = 4<TCP:[10.0.0.2:8000->10.0.0.9:40000]>
36 recvfrom(4<TCP:[10.0.0.2:8000->10.0.0.9:40000]>, "GET", 10, 0, NULL, NULL) = 3
36 prctl(PR_CAPBSET_READ, 0x2c /* CAP_??? */) = -1 EINVAL (Invalid argument)
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='36' call='' how='seen'
socket.listen@1 process='36' call='accept4' result=4 operation='accept' socket='s2' fd=4 transport='tcp' address='10.0.0.9' port=40000
socket.receive@2 process='36' call='recvfrom' result=3 socket='s2' fd=4 transport='tcp' address='10.0.0.9' port=40000 remote_source='accept' size=3 data=b'GET'
kernel.notable@3 process='36' call='prctl' error='EINVAL' detail='PR_CAPBSET_READ, 0x2c /* CAP_??? */'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_17_buffers_hold_anything(tmp_path: Path) -> None:
    text = r"""
36 read(17</srv/n8n.js>, "if (a) = ? ETIMEDOUT\nconnect(3, {sa_family=AF_INET}) = 0", 57) = 57
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='36' call='' how='seen'
file.read@1 process='36' call='read' result=57 path='/srv/n8n.js' fd=17 size=57 data=b'if (a) = ? ETIMEDOUT\nconnect(3, {sa_family=AF_INET}) = 0' cut=True inherited=True
loss string-cut@1 x1 data:file.read
loss no-exit x1
note no-clock x1
1 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_18_the_returned_path_wins(tmp_path: Path) -> None:
    text = """
36 openat(AT_FDCWD</home/dev/project>, "/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY|O_CLOEXEC) = 3</usr/lib/x86_64-linux-gnu/libc.so.6> <0.000010>
36 openat(AT_FDCWD</home/dev/project>, ".env", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory) <0.1>
36 openat(6</home/dev/.cache>, "../deviceid", O_RDONLY) = -1 EACCES (Permission denied)
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='36' call='' how='seen'
file.open@1 process='36' call='openat' result=3 path='/usr/lib/x86_64-linux-gnu/libc.so.6' access='read' flags='O_RDONLY|O_CLOEXEC' fd=3 written='/lib/x86_64-linux-gnu/libc.so.6'
file.open@2 process='36' call='openat' error='ENOENT' path='/home/dev/project/.env' access='read' flags='O_RDONLY|O_CLOEXEC' written='.env'
file.open@3 process='36' call='openat' error='EACCES' path='/home/dev/deviceid' access='read' flags='O_RDONLY' written='../deviceid'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_19_every_way_to_look_at_a_path(tmp_path: Path) -> None:
    text = """
36 open("/a", O_RDONLY|O_CLOEXEC) = 3
36 statx(AT_FDCWD, "/b", AT_STATX_SYNC_AS_STAT, STATX_ALL, {stx_mask=STATX_ALL, stx_mode=S_IFREG|0644}) = 0
36 newfstatat(3, "", {st_mode=S_IFREG|0644, st_size=1, ...}, AT_EMPTY_PATH) = 0
36 access("/c", R_OK) = 0
36 stat("/d", {st_mode=S_IFREG|0644}) = 0
36 lgetxattr(".env", "security.selinux", 0x5, 255) = -1 ENODATA (No data available)
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='36' call='' how='seen'
file.open@1 process='36' call='open' result=3 path='/a' access='read' flags='O_RDONLY|O_CLOEXEC' fd=3 written='/a'
file.probe@2 process='36' call='statx' result=0 path='/b' written='/b'
file.probe@3 process='36' call='newfstatat' result=0 path='/a' written=''
file.probe@4 process='36' call='access' result=0 operation='access' path='/c' written='/c'
file.probe@5 process='36' call='stat' result=0 path='/d' written='/d'
file.probe@6 process='36' call='lgetxattr' error='ENODATA' operation='xattr' path='.env' certain=False written='.env'
loss no-exit x1
note no-clock x1
6 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_20_pid_columns_of_every_width(tmp_path: Path) -> None:
    text = """
36    1796037399.316142 openat(AT_FDCWD, "/a", O_RDONLY) = 3
36<mcp-server-gith> 1796037399.316143 connect(19, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = 0
36    1796037399.316144 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 t_ns=1796037399316142000 process='36' call='' how='seen'
file.open@1 t_ns=1796037399316142000 process='36' call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'
socket.connect@2 t_ns=1796037399316143000 process='36' call='connect' result=0 socket='s1' fd=19 family='inet' address='203.0.113.7' port=443
process.exit@3 t_ns=1796037399316144000 process='36' code=0
3 lines 0 unparsed 0 orphans 1 exits complete clock=epoch
"""
    )


def test_quirk_21_a_message_lands_in_the_middle_of_a_wait(tmp_path: Path) -> None:
    text = """
wait4(-1, strace: Process 31019 attached
 <unfinished ...>
[pid 31019] openat(AT_FDCWD, "/a", O_RDONLY) = 3
[pid 31019] +++ exited with 0 +++
<... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 31019
+++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 call='' how='seen'
process.start@3 process='31019' call='' how='seen'
file.open@3 process='31019' call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'
process.exit@4 process='31019' code=0
process.exit@6 code=0
note no-clock x1
6 lines 0 unparsed 0 orphans 2 exits complete clock=none
"""
    )


def test_quirk_22_netlink_nests_deeply(tmp_path: Path) -> None:
    text = """
36 sendto(17<NETLINK:[ROUTE:36]>, [{nlmsg_len=20, nlmsg_type=RTM_GETADDR, nlmsg_flags=NLM_F_REQUEST|NLM_F_DUMP, nlmsg_seq=1, nlmsg_pid=0}, {ifa_family=AF_UNSPEC, ifa_prefixlen=0}], 20, 0, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 20
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='36' call='' how='seen'
socket.send@1 process='36' call='sendto' result=20 socket='s1' fd=17 transport='netlink' size=20 tried=20 cut=True
loss no-exit x1
note no-clock x1
1 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_23_a_log_without_an_exit_is_incomplete(tmp_path: Path) -> None:
    text = """
36 openat(AT_FDCWD, "/a", O_RDONLY) = 3
36 kill(31, SIGKILL"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='36' call='' how='seen'
file.open@1 process='36' call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'
kernel.notable@2 process='36' call='kill' detail='31, SIGKILL'
loss file-truncated@2 x1
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_quirk_24_restart_syscall_and_superseded_threads(tmp_path: Path) -> None:
    text = """
36 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM, exit_signal=0, stack=0x7f, stack_size=0x7fff80} => {parent_tid=[40]}, 88) = 40
36 restart_syscall(<... resuming interrupted futex ...> <unfinished ...>
40 execve("/bin/true", ["true"], 0x7ff /* 1 var */ <unfinished ...>
36 <... restart_syscall resumed>) = ?
36 +++ superseded by execve in pid 40 +++
36 <... execve resumed>) = 0
36 openat(AT_FDCWD, "/etc/hostname", O_RDONLY) = 3
36 +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='36' call='' how='seen'
process.start@3+6 process='36' call='execve' result=0 executable='/bin/true' argv=['true'] env_count=1
file.open@7 process='36' call='openat' result=3 path='/etc/hostname' access='read' flags='O_RDONLY' fd=3 written='/etc/hostname'
process.exit@8 process='36' code=0
note no-clock x1
8 lines 0 unparsed 0 orphans 1 exits complete clock=none
"""
    )
