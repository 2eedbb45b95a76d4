"""The columns and styles that options of strace give to a log."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_c07_decorations_give_paths_and_peers(tmp_path: Path) -> None:
    text = r"""
4067  read(4</home/u/.ssh/id_ed25519>, "k", 16) = 1
4067  write(3</tmp/w/gone>(deleted), "hi\18\177", 5) = 5
4067  openat(AT_FDCWD</srv/app>, "data.json", O_RDONLY) = 6</srv/app/data.json>
4067  sendto(7<TCP:[127.0.0.1:37576->127.0.0.1:52119]>, "tcp", 3, 0, NULL, 0) = 3
4067  sendto(11<TCPv6:[[::1]:53330->[::1]:45581]>, "tcp6", 4, 0, NULL, 0) = 4
4067  write(2</dev/null<char 1:3>>, "x", 1) = 1
4067  sendto(5<UNIX-STREAM:[382734->382727,"/tmp/w/u>s,k"]>, "yo", 2, 0, NULL, 0) = 2
4067  execveat(19</memfd:payload>(deleted), "", ["[kworker/0:0]"], 0x7ff /* 0 vars */, AT_EMPTY_PATH) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='4067' call='' how='seen'
file.read@1 process='4067' call='read' result=1 path='/home/u/.ssh/id_ed25519' fd=4 size=1 data=b'k' inherited=True
file.change@2 process='4067' call='write' result=5 path='/tmp/w/gone' fd=3 size=5 data=b'hi\x018\x7f'
file.open@3 process='4067' call='openat' result=6 path='/srv/app/data.json' access='read' flags='O_RDONLY' fd=6 written='data.json'
socket.send@4 process='4067' call='sendto' result=3 socket='s1' fd=7 transport='tcp' address='127.0.0.1' port=52119 remote_source='decoration' size=3 tried=3 data=b'tcp'
socket.send@5 process='4067' call='sendto' result=4 socket='s2' fd=11 transport='tcp' address='::1' port=45581 remote_source='decoration' size=4 tried=4 data=b'tcp6'
file.change@6 process='4067' call='write' result=1 path='/dev/null' fd=2 size=1 data=b'x'
socket.send@7 process='4067' call='sendto' result=2 socket='s3' fd=5 transport='unix' size=2 tried=2 data=b'yo'
process.start@8 process='4067' call='execveat' result=0 executable='/memfd:payload' argv=['[kworker/0:0]'] env_count=0 origin='memfd'
loss no-exit x1
note no-clock x1
8 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c08_raw_and_verbose_styles_give_the_same_addresses(tmp_path: Path) -> None:
    text = r"""
900 connect(3, {sa_family=0x2, sin_port="\x01\xbb", sin_addr="\xcb\x00\x71\x07"}, 16) = -1 EINPROGRESS (Operation now in progress)
900 connect(4, {sa_family=0xa /* AF_INET6 */, sin6_port="\x01\xbb" /* htons(443) */, sin6_flowinfo="\x00\x00\x00\x00" /* htonl(0) */, sin6_addr="\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" /* inet_pton(AF_INET6, "fe80::1") */, sin6_scope_id=1 /* if_nametoindex("lo") */}, 28) = -1 ENETUNREACH (Network is unreachable)
900 openat(-100 /* AT_FDCWD */, "/etc/passwd", 0x80000 /* O_RDONLY|O_CLOEXEC */) = 5
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='900' call='' how='seen'
socket.connect@1 process='900' call='connect' error='EINPROGRESS' socket='s1' fd=3 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='in_progress'
socket.connect@2 process='900' call='connect' error='ENETUNREACH' socket='s2' fd=4 family='inet6' address='fe80::1%lo' port=443 outcome='unreachable'
file.open@3 process='900' call='openat' result=5 path='/etc/passwd' access='read' flags='O_RDONLY|O_CLOEXEC' fd=5 written='/etc/passwd'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c09_fields_of_an_ipv6_address_in_any_order(tmp_path: Path) -> None:
    text = """
1 connect(3, {sa_family=AF_INET6, sin6_port=htons(443), inet_pton(AF_INET6, "2001:db8::10", &sin6_addr), sin6_flowinfo=htonl(0), sin6_scope_id=0}, 28) = 0
1 connect(4, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(74565), inet_pton(AF_INET6, "fe80::1", &sin6_addr), sin6_scope_id=if_nametoindex("lo")}, 28) = 0
1 connect(5, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "2001:db8::10", &sin6_addr)}, 24) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='1' call='' how='seen'
socket.connect@1 process='1' call='connect' result=0 socket='s1' fd=3 family='inet6' address='2001:db8::10' port=443
socket.connect@2 process='1' call='connect' result=0 socket='s2' fd=4 family='inet6' address='fe80::1%lo' port=443
socket.connect@3 process='1' call='connect' result=0 socket='s3' fd=5 family='inet6' address='2001:db8::10' port=443
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c10_every_time_column(tmp_path: Path) -> None:
    text = """
[pid 17609] 23:59:59.999900 [  59] [00007f8139ba9ad7] execve("/bin/true", ["/bin/true"], 0x7f81 /* 3 vars */ <unfinished ...>
[pid 17608] 00:00:00.000200 [  34] [00007f8139ba8df2] <... pause resumed>) = ?
17619 1796037399.316142 close(3) = 0 <0.000917>
1796037399.390791111 (+     0.000056) getpid() = 17700
     0.000039 getppid()     = 1
11:16:39.186223 [ 231] [????????????????] +++ exited with 0 +++
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@2 t_ns=86400000200000 process='17608' call='' how='seen'
process.start@3 t_ns=1796037399316142000 process='17619' call='' how='seen'
process.start@4 t_ns=1796037399390791111 call='' how='seen'
process.exit@6 t_ns=126999186223000 process='17700' code=0
process.start@1 t_ns=86399999900000 process='17609' call='execve' executable='/bin/true' argv=['/bin/true'] env_count=3
note orphan-resumed@2 x1
note unfinished@1 x1
loss no-exit x1
6 lines 0 unparsed 1 orphans 1 exits incomplete clock=time-of-day
"""
    )


def test_c11_a_command_name_cannot_forge_a_call(tmp_path: Path) -> None:
    text = r"""
18152<x\76] a(1) = 0> sendto(7<TCP:[127.0.0.1:37576->127.0.0.1:52119]>, "tcp", 3, 0, NULL, 0) = 3
18153<x\76] a(1) = 0> +++ exited with 0 +++
[pid 18152<x\76] a(1) = 0>] connect(7, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='18152' call='' how='seen'
socket.send@1 process='18152' call='sendto' result=3 socket='s1' fd=7 transport='tcp' address='127.0.0.1' port=52119 remote_source='decoration' size=3 tried=3 data=b'tcp'
process.start@2 process='18153' call='' how='seen'
process.exit@2 process='18153' code=0
socket.connect@3 process='18152' call='connect' result=0 socket='s1' fd=7 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='established'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 1 exits incomplete clock=none
"""
    )


def test_c12_stack_lines_belong_to_the_call_above(tmp_path: Path) -> None:
    text = """
17645 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = -1 EINPROGRESS (Operation now in progress)
 > /usr/lib/x86_64-linux-gnu/libc.so.6(__connect+0x17) [0x10c5e7]
 > /srv/app/node_modules/addon.node(_ZN3net4postEv+0x6c) [0x11d5]
 > unexpected_backtracing_error [0x7ffe8b0e5fa0]
17645 close(3) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='17645' call='' how='seen'
socket.connect@1 process='17645' call='connect' error='EINPROGRESS' frames=[Frame(image='/usr/lib/x86_64-linux-gnu/libc.so.6', symbol='__connect', offset=23), Frame(image='/srv/app/node_modules/addon.node', symbol='_ZN3net4postEv', offset=108), Frame(image='unexpected_backtracing_error [0x7ffe8b0e5fa0]', symbol=None, offset=None)] socket='s1' fd=3 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='in_progress'
socket.state@5 process='17645' call='close' result=0 socket='s1' fd=3 source='close'
loss no-exit x1
note no-clock x1
5 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c19_a_change_of_abi_is_noted(tmp_path: Path) -> None:
    text = """
[ Process PID=20305 runs in 32 bit mode. ]
open("/home/u/.aws/credentials", O_RDONLY)       = 3
[ Process PID=20305 runs in 64 bit mode. ]
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@2 call='' how='seen'
file.open@2 call='open' result=3 path='/home/u/.aws/credentials' access='read' flags='O_RDONLY' fd=3 written='/home/u/.aws/credentials'
note personality@1 x1
note personality@3 x1
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c19_impossible_arguments_spoil_every_claim(tmp_path: Path) -> None:
    text = """
stat(NULL, NULL)                        = 14
write(0, NULL, 14)                      = ?
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 call='' how='seen'
file.probe@1 call='stat' result=14 certain=False
file.change@2 call='write' fd=0 certain=False
loss inconsistent-decoding@1 x1
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c20_a_call_without_a_name_is_kept(tmp_path: Path) -> None:
    text = """
20 syscall_0x7cf(0x1, 0x2, 0x3, 0, 0x64, 0) = -1 ENOSYS (Function not implemented)
20 syscall_0x1d5(0x3, 0x7ffc, 0x28, 0, 0, 0) = 5
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='20' call='' how='seen'
kernel.notable@1 process='20' call='syscall_0x7cf' error='ENOSYS' detail='0x1, 0x2, 0x3, 0, 0x64, 0'
kernel.notable@2 process='20' call='syscall_0x1d5' result=5 detail='0x3, 0x7ffc, 0x28, 0, 0, 0'
note unknown-call@1 x1 process=20
loss unknown-call@2 x1 process=20
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )
