"""Sockets: attempts, peers, payloads, lookups."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_c25_connecting_datagrams_sends_nothing(tmp_path: Path) -> None:
    text = r"""
50 connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file or directory)
50 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 3
50 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.10")}, 16) = 0
50 getsockname(3, {sa_family=AF_INET, sin_port=htons(52090), sin_addr=inet_addr("10.77.0.2")}, [28 => 16]) = 0
50 connect(3, {sa_family=AF_UNSPEC, sa_data="\0\0\0\0\0\0\0\0\0\0\0\0\0\0"}, 16) = 0
50 connect(3, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("203.0.113.11")}, 16) = 0
50 getsockname(3, {sa_family=AF_INET6, sin6_port=htons(43983), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::ffff:10.77.0.2", &sin6_addr), sin6_scope_id=0}, [28]) = 0
50 close(3) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='50' call='' how='seen'
socket.connect@1 process='50' call='connect' error='ENOENT' socket='s1' fd=3 transport='unix' family='unix' path='/var/run/nscd/socket' outcome='failed'
socket.open@2 process='50' call='socket' result=3 socket='s2' fd=3 family='inet' type='dgram' protocol='IPPROTO_IP'
socket.connect@3 process='50' call='connect' result=0 socket='s2' fd=3 transport='udp' family='inet' address='203.0.113.10' port=443
socket.connect@5 process='50' call='connect' result=0 socket='s2' fd=3 transport='udp' family='unspec'
socket.connect@6 process='50' call='connect' result=0 socket='s2' fd=3 transport='udp' family='inet' address='203.0.113.11' port=0
socket.state@8 process='50' call='close' result=0 socket='s2' fd=3 source='close'
loss no-exit x1
note no-clock x1
8 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c25_a_send_after_reconnecting_goes_to_the_last_address(tmp_path: Path) -> None:
    text = r"""
50 connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file or directory)
50 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 3
50 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.10")}, 16) = 0
50 getsockname(3, {sa_family=AF_INET, sin_port=htons(52090), sin_addr=inet_addr("10.77.0.2")}, [28 => 16]) = 0
50 connect(3, {sa_family=AF_UNSPEC, sa_data="\0\0\0\0\0\0\0\0\0\0\0\0\0\0"}, 16) = 0
50 connect(3, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("203.0.113.11")}, 16) = 0
50 getsockname(3, {sa_family=AF_INET6, sin6_port=htons(43983), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::ffff:10.77.0.2", &sin6_addr), sin6_scope_id=0}, [28]) = 0
50 write(3, "x", 1) = 1
50 close(3) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='50' call='' how='seen'
socket.connect@1 process='50' call='connect' error='ENOENT' socket='s1' fd=3 transport='unix' family='unix' path='/var/run/nscd/socket' outcome='failed'
socket.open@2 process='50' call='socket' result=3 socket='s2' fd=3 family='inet' type='dgram' protocol='IPPROTO_IP'
socket.connect@3 process='50' call='connect' result=0 socket='s2' fd=3 transport='udp' family='inet' address='203.0.113.10' port=443
socket.connect@5 process='50' call='connect' result=0 socket='s2' fd=3 transport='udp' family='unspec'
socket.connect@6 process='50' call='connect' result=0 socket='s2' fd=3 transport='udp' family='inet' address='203.0.113.11' port=0
socket.send@8 process='50' call='write' result=1 socket='s2' fd=3 transport='udp' address='203.0.113.11' port=0 remote_source='connect' size=1 tried=1 data=b'x'
socket.state@9 process='50' call='close' result=0 socket='s2' fd=3 source='close'
loss no-exit x1
note no-clock x1
9 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c26_the_nscd_socket_is_a_failed_unix_connect(tmp_path: Path) -> None:
    text = """
51 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, 0) = 3
51 connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file or directory)
51 close(3) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='51' call='' how='seen'
socket.open@1 process='51' call='socket' result=3 socket='s1' fd=3 family='unix' type='stream' protocol='0'
socket.connect@2 process='51' call='connect' error='ENOENT' socket='s1' fd=3 transport='unix' family='unix' path='/var/run/nscd/socket' outcome='failed'
socket.state@3 process='51' call='close' result=0 socket='s1' fd=3 source='close'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c40_attempt_connection_and_transfer_are_apart(tmp_path: Path) -> None:
    text = r"""
95 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = -1 EINPROGRESS (Operation now in progress)
95 epoll_wait(4, [{events=EPOLLOUT|EPOLLERR|EPOLLHUP, data={u32=3, u64=3}}], 1024, -1) = 1
95 getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0
95 connect(5, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.8")}, 16) = -1 EINPROGRESS (Operation now in progress)
95 getsockopt(5, SOL_SOCKET, SO_ERROR, [0], [4]) = 0
95 write(5, "\26\3\1\2\0", 5) = 5
95 connect(6, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.9")}, 16) = -1 EINPROGRESS (Operation now in progress)
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='95' call='' how='seen'
socket.connect@1 process='95' call='connect' error='EINPROGRESS' socket='s1' fd=3 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='in_progress'
socket.state@3 process='95' call='getsockopt' result=0 socket='s1' fd=3 status='ECONNREFUSED'
socket.connect@4 process='95' call='connect' error='EINPROGRESS' socket='s2' fd=5 transport='tcp' family='inet' address='203.0.113.8' port=443 outcome='in_progress'
socket.state@5 process='95' call='getsockopt' result=0 socket='s2' fd=5 status='0'
socket.send@6 process='95' call='write' result=5 socket='s2' fd=5 transport='tcp' address='203.0.113.8' port=443 remote_source='connect' size=5 tried=5 data=b'\x16\x03\x01\x02\x00'
socket.connect@7 process='95' call='connect' error='EINPROGRESS' socket='s3' fd=6 transport='tcp' family='inet' address='203.0.113.9' port=443 outcome='in_progress'
tls.client_hello@6 process='95' seen_in='syscalls' address='203.0.113.8' port=443 complete=False socket='s2'
loss no-exit x1
note no-clock x1
7 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c42_a_dropped_connect_is_an_attempt_and_a_wait(tmp_path: Path) -> None:
    text = """
30 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = -1 EINPROGRESS (Operation now in progress)
30 poll([{fd=3, events=POLLOUT|POLLERR}], 1, 3000) = 0 (Timeout)
30 getpeername(3, 0x7fff71f26840, [16]) = -1 ENOTCONN (Transport endpoint is not connected)
31 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = -1 ETIMEDOUT (Connection timed out) <3.068482>
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='30' call='' how='seen'
socket.connect@1 process='30' call='connect' error='EINPROGRESS' socket='s1' fd=3 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='in_progress'
socket.state@2 process='30' call='poll' result=0 socket='s1' fd=3 source='poll' status='timeout'
socket.state@3 process='30' call='getpeername' error='ENOTCONN' socket='s1' fd=3 source='peer' status='ENOTCONN'
process.start@4 process='31' call='' how='seen'
socket.connect@4 process='31' call='connect' error='ETIMEDOUT' socket='s2' fd=3 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='timed_out' duration_ns=3068482000
loss no-exit x1
note no-clock x1
4 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c45_a_refused_send_keeps_its_destination(tmp_path: Path) -> None:
    text = """
41 connect(4, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("203.0.113.7")}, 16) = 0
41 sendto(4, "x", 1, 0, NULL, 0)             = -1 EPERM (Operation not permitted)
41 sendto(3, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("203.0.113.7")}, 16) = -1 EPERM (Operation not permitted)
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='41' call='' how='seen'
socket.connect@1 process='41' call='connect' result=0 socket='s1' fd=4 family='inet' address='203.0.113.7' port=53
socket.send@2 process='41' call='sendto' error='EPERM' socket='s1' fd=4 address='203.0.113.7' port=53 remote_source='connect' tried=1 data=b'x'
socket.send@3 process='41' call='sendto' error='EPERM' socket='s2' fd=3 transport='udp' address='203.0.113.7' port=53 remote_source='argument' tried=1 data=b'x'
note not-dns@2 x2 process=41
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c54_unix_sockets_keep_their_paths(tmp_path: Path) -> None:
    text = r"""
46 connect(7, {sa_family=AF_UNIX, sun_path="/run/docker.sock"}, 110) = 0
46 write(7, "POST /v1.41/containers/create HTTP/1.1\r\nHost: d\r\n"..., 412) = 412
46 connect(8, {sa_family=AF_UNIX, sun_path="/run/user/1000/bus"}, 110) = 0
46 connect(9, {sa_family=AF_UNIX, sun_path=@"/tmp/.X11-unix/X0"}, 20) = 0
46 connect(10, {sa_family=AF_UNIX, sun_path="/run/nope.sock"}, 110) = -1 ENOENT (No such file or directory)
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='46' call='' how='seen'
socket.connect@1 process='46' call='connect' result=0 socket='s1' fd=7 transport='unix' family='unix' path='/run/docker.sock' outcome='established'
socket.send@2 process='46' call='write' result=412 socket='s1' fd=7 transport='unix' path='/run/docker.sock' remote_source='connect' size=412 tried=412 data=b'POST /v1.41/containers/create HTTP/1.1\r\nHost: d\r\n' cut=True
http.request@2 process='46' seen_in='syscalls' method='POST' target='/v1.41/containers/create' host='d' socket='s1'
socket.connect@3 process='46' call='connect' result=0 socket='s2' fd=8 transport='unix' family='unix' path='/run/user/1000/bus' outcome='established'
socket.connect@4 process='46' call='connect' result=0 socket='s3' fd=9 transport='unix' family='unix' path='@/tmp/.X11-unix/X0' outcome='established'
socket.connect@5 process='46' call='connect' error='ENOENT' socket='s4' fd=10 transport='unix' family='unix' path='/run/nope.sock' outcome='failed'
loss string-cut@2 x1 data:socket.send
loss no-exit x1
note no-clock x1
5 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c55_vsock_has_cid_and_port(tmp_path: Path) -> None:
    text = """
47 socket(AF_VSOCK, SOCK_STREAM, 0)        = 3
47 connect(3, {sa_family=AF_VSOCK, svm_cid=VMADDR_CID_HOST, svm_port=0x1388, svm_flags=0}, 16) = 0
47 write(3, "AWS_SECRET_ACCESS_KEY=AKIAEXAMPLE", 33) = 33
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='47' call='' how='seen'
socket.open@1 process='47' call='socket' result=3 socket='s1' fd=3 family='vsock' type='stream' protocol='0'
socket.connect@2 process='47' call='connect' result=0 socket='s1' fd=3 transport='vsock' family='vsock' path='2:5000' outcome='established'
socket.send@3 process='47' call='write' result=33 socket='s1' fd=3 transport='vsock' path='2:5000' remote_source='connect' size=33 tried=33 data=b'AWS_SECRET_ACCESS_KEY=AKIAEXAMPLE'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c57_ipv4_inside_ipv6_is_canonical(tmp_path: Path) -> None:
    text = """
48 connect(3, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::ffff:203.0.113.7", &sin6_addr), sin6_scope_id=0}, 28) = 0
48 connect(4, {sa_family=AF_INET6, sin6_port=htons(22), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::ffff:127.0.0.1", &sin6_addr), sin6_scope_id=0}, 28) = 0
48 connect(5, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "64:ff9b::cb00:7107", &sin6_addr), sin6_scope_id=0}, 28) = 0
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='48' call='' how='seen'
socket.connect@1 process='48' call='connect' result=0 socket='s1' fd=3 family='inet6' address='203.0.113.7' port=443 raw_address='::ffff:203.0.113.7'
socket.connect@2 process='48' call='connect' result=0 socket='s2' fd=4 family='inet6' address='127.0.0.1' port=22 raw_address='::ffff:127.0.0.1'
socket.connect@3 process='48' call='connect' result=0 socket='s3' fd=5 family='inet6' address='203.0.113.7' port=443 raw_address='64:ff9b::cb00:7107'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c58_a_datagram_leaves_although_connect_is_denied(tmp_path: Path) -> None:
    text = """
49 connect(4, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = -1 EACCES (Permission denied)
49 sendto(5, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = 1
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='49' call='' how='seen'
socket.connect@1 process='49' call='connect' error='EACCES' socket='s1' fd=4 family='inet' address='203.0.113.7' port=443 outcome='denied'
socket.send@2 process='49' call='sendto' result=1 socket='s2' fd=5 transport='udp' address='203.0.113.7' port=443 remote_source='argument' size=1 tried=1 data=b'x'
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c79_a_lookup_through_resolved_is_a_question(tmp_path: Path) -> None:
    text = r"""
52 connect(5, {sa_family=AF_UNIX, sun_path="/run/systemd/resolve/io.systemd.Resolve"}, 42) = 0
52 sendto(5, "{\"method\":\"io.systemd.Resolve.ResolveHostname\",\"parameters\":{\"name\":\"c2.example.test\",\"flags\":0}}\0", 98, MSG_DONTWAIT|MSG_NOSIGNAL, NULL, 0) = 98
52 recvfrom(5, "{\"parameters\":{\"addresses\":[{\"ifindex\":2,\"family\":2,\"address\":[203,0,113,44]}],\"name\":\"c2.example.test\"}}\0", 135152, MSG_DONTWAIT, NULL, NULL) = 106
52 connect(6, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.44")}, 16) = -1 EINPROGRESS (Operation now in progress)
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='52' call='' how='seen'
socket.connect@1 process='52' call='connect' result=0 socket='s1' fd=5 transport='unix' family='unix' path='/run/systemd/resolve/io.systemd.Resolve' outcome='established'
socket.send@2 process='52' call='sendto' result=98 socket='s1' fd=5 transport='unix' path='/run/systemd/resolve/io.systemd.Resolve' remote_source='connect' size=98 tried=98 data=b'{"method":"io.systemd.Resolve.ResolveHostname","parameters":{"name":"c2.example.test","flags":0}}\x00'
dns.query@2 process='52' seen_in='syscalls' name='c2.example.test' transport='unix'
socket.receive@3 process='52' call='recvfrom' result=106 socket='s1' fd=5 transport='unix' path='/run/systemd/resolve/io.systemd.Resolve' remote_source='connect' size=106 data=b'{"parameters":{"addresses":[{"ifindex":2,"family":2,"address":[203,0,113,44]}],"name":"c2.example.test"}}\x00'
dns.answer@3 process='52' seen_in='syscalls' name='c2.example.test' rcode='NOERROR' records=[DnsRecord(name='c2.example.test', type='A', value='203.0.113.44', ttl=None, hints=[])] transport='unix'
socket.connect@4 process='52' call='connect' error='EINPROGRESS' socket='s2' fd=6 transport='tcp' family='inet' address='203.0.113.44' port=443 outcome='in_progress'
loss no-exit x1
note no-clock x1
4 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c79_a_cut_lookup_has_no_name(tmp_path: Path) -> None:
    text = r"""
52 connect(5, {sa_family=AF_UNIX, sun_path="/run/systemd/resolve/io.systemd.Resolve"}, 42) = 0
52 sendto(5, "{\"method\":\"io.systemd.Resolve.R"..., 98, MSG_DONTWAIT|MSG_NOSIGNAL, NULL, 0) = 98
"""
    assert (
        script(tmp_path, text[1:])
        == """
process.start@1 process='52' call='' how='seen'
socket.connect@1 process='52' call='connect' result=0 socket='s1' fd=5 transport='unix' family='unix' path='/run/systemd/resolve/io.systemd.Resolve' outcome='established'
socket.send@2 process='52' call='sendto' result=98 socket='s1' fd=5 transport='unix' path='/run/systemd/resolve/io.systemd.Resolve' remote_source='connect' size=98 tried=98 data=b'{"method":"io.systemd.Resolve.R' cut=True
dns.query@2 process='52' seen_in='syscalls' transport='unix'
loss string-cut@2 x1 data:socket.send
note name-hidden@2 x1 process=52
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )
