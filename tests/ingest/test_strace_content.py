"""Strings, arguments and payloads: exact bytes, and what is cut."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_c15_cut_arguments_and_environment_are_marked(tmp_path: Path) -> None:
    text = """
77 execve("/usr/bin/python3", ["python3", "-m", "srv", "--token=AKIA"..., ...], 0x7ffc8494a070 /* 38 vars */) = 0
78 execve("/bin/true", ["/bin/true"], ["A=1", "AWS_SECRET_ACCESS_KEY=AKIAEXAMPL"..., "B=x, 3) = 0"]) = 0
79 execve("/usr/bin/env", ["env"], NULL) = 0
80 execve("/usr/sbin/bash", ["bash", "x"], 0x7fffb951bec0 /* 39 vars */) = -1 ENOENT (No such file or directory)
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='77' call='execve' result=0 executable='/usr/bin/python3' argv=['python3', '-m', 'srv', '--token=AKIA'] argv_cut=True env_count=38
process.start@2 process='78' call='execve' result=0 executable='/bin/true' argv=['/bin/true'] env=['A=1', 'AWS_SECRET_ACCESS_KEY=AKIAEXAMPL', 'B=x, 3) = 0']
process.start@3 process='79' call='execve' result=0 executable='/usr/bin/env' argv=['env'] env=[] env_count=0
process.exec_failed@4 process='80' call='execve' error='ENOENT' executable='/usr/sbin/bash' argv=['bash', 'x']
loss string-cut@1 x1 data:process.start
loss no-exit x1
note no-clock x1
4 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c16_escapes_give_exact_bytes(tmp_path: Path) -> None:
    text = r"""
5 write(3, "hi\18\177", 5) = 5
5 openat(AT_FDCWD, "/tmp/w/\303\251\1\302\200", O_RDONLY) = 3
5 openat(AT_FDCWD, "\x2f\x65\x74\x63\x2f\x70\x61\x73\x73\x77\x64", O_RDONLY) = 4
5 sendto(6, "hello\0\1\377world, this is a long pa"..., 50, 0, NULL, 0) = 50
5 sendto(6, "he said \"x) = 3\"\\", 17, 0, NULL, 0) = 17
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='5' call='' how='seen'
file.change@1 process='5' call='write' result=5 fd=3 size=5 data=b'hi\x018\x7f' certain=False
file.open@2 process='5' call='openat' result=3 path='/tmp/w/é\x01\x80' access='read' flags='O_RDONLY' fd=3 written='/tmp/w/é\x01\x80'
file.open@3 process='5' call='openat' result=4 path='/etc/passwd' access='read' flags='O_RDONLY' fd=4 written='/etc/passwd'
socket.send@4 process='5' call='sendto' result=50 socket='s1' fd=6 size=50 tried=50 data=b'hello\x00\x01\xffworld, this is a long pa' cut=True
socket.send@5 process='5' call='sendto' result=17 socket='s1' fd=6 size=17 tried=17 data=b'he said "x) = 3"\\'
loss string-cut@4 x1 data:socket.send
loss no-exit x1
note no-clock x1
5 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c18_one_event_a_destination_and_the_descriptors_passed(tmp_path: Path) -> None:
    text = r"""
9 sendmmsg(3, [{msg_hdr={msg_name={sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("203.0.113.53")}, msg_namelen=16, msg_iov=[{iov_base="\0224\1\0\0\1", iov_len=32}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=32}, {msg_hdr={msg_name={sa_family=AF_INET, sin_port=htons(4444), sin_addr=inet_addr("198.51.100.9")}, msg_namelen=16, msg_iov=[{iov_base="GET /", iov_len=5}, {iov_base=" HTTP/1.1\r\n", iov_len=11}], msg_iovlen=2, msg_controllen=0, msg_flags=0}, msg_len=16}], 2, MSG_NOSIGNAL) = 2
9 sendmsg(4, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="x", iov_len=1}], msg_iovlen=1, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[6]}], msg_controllen=24, msg_flags=0}, 0) = 1
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='9' call='' how='seen'
socket.send@1 process='9' call='sendmmsg' result=2 socket='s1' fd=3 transport='udp' address='203.0.113.53' port=53 remote_source='argument' size=32 tried=32 data=b'\x124\x01\x00\x00\x01' cut=True
dns.query@1 process='9' seen_in='syscalls' type='' server='203.0.113.53' server_port=53 transport='udp' id=4660
socket.send@1 process='9' call='sendmmsg' result=2 socket='s1' fd=3 transport='udp' address='198.51.100.9' port=4444 remote_source='argument' size=16 tried=16 data=b'GET / HTTP/1.1\r\n'
socket.send@2 process='9' call='sendmsg' result=1 socket='s2' fd=4 size=1 tried=1 data=b'x'
fd.pass@2 process='9' call='sendmsg' result=1 socket='s2' fds=[6] paths=[None]
loss string-cut@1 x1 data:socket.send
note name-hidden@1 x1 process=9
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c18_only_the_messages_that_went_out_are_sent(tmp_path: Path) -> None:
    text = r"""
9 sendmmsg(3, [{msg_hdr={msg_name={sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("203.0.113.53")}, msg_namelen=16, msg_iov=[{iov_base="\0224\1\0\0\1", iov_len=32}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=32}, {msg_hdr={msg_name={sa_family=AF_INET, sin_port=htons(4444), sin_addr=inet_addr("198.51.100.9")}, msg_namelen=16, msg_iov=[{iov_base="GET /", iov_len=5}, {iov_base=" HTTP/1.1\r\n", iov_len=11}], msg_iovlen=2, msg_controllen=0, msg_flags=0}, msg_len=16}], 2, MSG_NOSIGNAL) = 1
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='9' call='' how='seen'
socket.send@1 process='9' call='sendmmsg' result=1 socket='s1' fd=3 transport='udp' address='203.0.113.53' port=53 remote_source='argument' size=32 tried=32 data=b'\x124\x01\x00\x00\x01' cut=True
dns.query@1 process='9' seen_in='syscalls' type='' server='203.0.113.53' server_port=53 transport='udp' id=4660
loss string-cut@1 x1 data:socket.send
note name-hidden@1 x1 process=9
loss no-exit x1
note no-clock x1
1 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c22_a_pointer_is_no_payload(tmp_path: Path) -> None:
    text = """
8 recvfrom(5, 0x55d0c2f3a0a0, 65536, 0, NULL, NULL) = -1 ECONNRESET (Connection reset by peer)
8 connect(3, 0x10, 16)                    = -1 EFAULT (Bad address)
8 connect(3, 0x7fff7db82410, 1)           = -1 EINVAL (Invalid argument)
8 read(3, ""..., 0) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='8' call='' how='seen'
socket.receive@1 process='8' call='recvfrom' error='ECONNRESET' socket='s1' fd=5
socket.connect@2 process='8' call='connect' error='EFAULT' socket='s2' fd=3 outcome='failed'
socket.connect@3 process='8' call='connect' error='EINVAL' socket='s2' fd=3 outcome='failed'
socket.receive@4 process='8' call='read' result=0 socket='s2' fd=3 size=0
loss no-exit x1
note no-clock x1
4 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )
