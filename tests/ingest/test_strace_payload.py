"""What the first bytes on a socket say: DNS, TLS, HTTP."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from strace_tools import script


def test_dns_over_tcp_in_pieces_is_one_question(tmp_path: Path) -> None:
    text = r"""
5 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 3
5 connect(3, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("203.0.113.53")}, 16) = 0
5 write(3, "\0", 1) = 1
5 write(3, "\42\300\1\1\0\0\1\0\0\0\0\0\0\3t", 15) = 15
5 write(3, "cp\7example\4test\0\0\1\0\1\0", 21) = 21
"""
    assert (
        script(tmp_path, text[1:], frozenset(["dns.query"]))
        == """
dns.query@5 process='5' seen_in='syscalls' name='tcp.example.test' server='203.0.113.53' server_port=53 transport='tcp' id=49153
loss no-exit x1
note no-clock x1
5 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c64_two_messages_in_one_vector_are_two_questions(tmp_path: Path) -> None:
    text = r"""
5 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 3
5 connect(3, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("203.0.113.53")}, 16) = 0
5 writev(3, [{iov_base="\0\42", iov_len=2}, {iov_base="\300\1\1\0\0\1\0\0\0\0\0\0\3tcp\7example\4test\0\0\1\0\1", iov_len=34}, {iov_base="\0\42", iov_len=2}, {iov_base="\301\1\1\0\0\1\0\0\0\0\0\0\3tcp\7example\4test\0\0\1\0\1", iov_len=34}], 4) = 72
"""
    assert (
        script(tmp_path, text[1:], frozenset(["dns.query"]))
        == """
dns.query@3 process='5' seen_in='syscalls' name='tcp.example.test' server='203.0.113.53' server_port=53 transport='tcp' id=49153
dns.query@3 process='5' seen_in='syscalls' name='tcp.example.test' server='203.0.113.53' server_port=53 transport='tcp' id=49409
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_a_question_that_did_not_leave_keeps_its_error(tmp_path: Path) -> None:
    text = r"""
5 connect(6<UDP:[1]>, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.200.0.1")}, 16) = 0
5 write(6<UDP:[10.200.0.2:56514->10.200.0.1:53]>, "\30\250\1\0\0\1\0\0\0\0\0\1\3K8s\7example\3com\0\0\1\0\1\0\0)\4\320\0\0\0\0\0\0", 44) = -1 EPERM (Operation not permitted)
"""
    assert (
        script(tmp_path, text[1:], frozenset(["dns.query"]))
        == """
dns.query@2 process='5' seen_in='syscalls' name='k8s.example.com' spelled='K8s.example.com' server='10.200.0.1' server_port=53 transport='udp' id=6312 error='EPERM'
loss no-exit x1
note no-clock x1
2 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_an_answer_out_of_a_receive_gives_its_records(tmp_path: Path) -> None:
    text = r"""
5 recvfrom(6<UDP:[10.200.0.2:56514->10.200.0.1:53]>, "\30\250\201\200\0\1\0\1\0\0\0\0\3k8s\7example\3com\0\0\1\0\1\300\f\0\1\0\1\0\0\0<\0\4\306\22\0\2", 2048, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.200.0.1")}, [28 => 16]) = 49
"""
    assert (
        script(tmp_path, text[1:], frozenset(["dns.answer"]))
        == """
dns.answer@1 process='5' seen_in='syscalls' name='k8s.example.com' rcode='NOERROR' records=[DnsRecord(name='k8s.example.com', type='A', value='198.18.0.2', ttl=60, hints=[])] server='10.200.0.1' transport='udp' id=6312
loss no-exit x1
note no-clock x1
1 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_bytes_that_are_no_dns_are_noted(tmp_path: Path) -> None:
    text = """
5 sendto(6, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.200.0.1")}, 16) = 1
"""
    assert (
        script(tmp_path, text[1:], frozenset(["dns.query"]))
        == """
note not-dns@1 x1 process=5
loss no-exit x1
note no-clock x1
1 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c43_a_request_through_a_proxy_and_the_hello_inside_it(tmp_path: Path) -> None:
    text = r"""
5 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 3
5 connect(3, {sa_family=AF_INET, sin_port=htons(3128), sin_addr=inet_addr("10.77.0.1")}, 16) = 0
5 sendto(3, "CONNECT exfil.test:443 HTTP/1.1\r\nHost: exfil.test:443\r\n\r\n", 57, 0, NULL, 0) = 57
5 recvfrom(3, "HTTP/1.1 200 OK\r\n\r\n", 4096, 0, NULL, NULL) = 19
5 write(3, "\26\3\1\0\5\1\0\0\1\0", 10) = 10
5 close(3) = 0
"""
    assert (
        script(tmp_path, text[1:], frozenset(["http.request", "tls.client_hello"]))
        == """
http.request@3 process='5' seen_in='syscalls' method='CONNECT' target='exfil.test:443' host='exfil.test:443' address='10.77.0.1' port=3128 socket='s1'
tls.client_hello@5 process='5' seen_in='syscalls' address='10.77.0.1' port=3128 complete=False socket='s1'
loss no-exit x1
note no-clock x1
6 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_c43_a_cut_request_keeps_its_target(tmp_path: Path) -> None:
    text = r"""
5 connect(3, {sa_family=AF_INET, sin_port=htons(3128), sin_addr=inet_addr("10.77.0.1")}, 16) = 0
5 sendto(3, "CONNECT exfil.test:443 HTTP/1.1\r\n"..., 60, 0, NULL, 0) = 60
5 sendto(3, "GET /a/long/pa"..., 600, 0, NULL, 0) = 600
5 sendto(3, "GET something", 13, 0, NULL, 0) = 13
"""
    assert (
        script(tmp_path, text[1:], frozenset(["http.request"]))
        == """
http.request@2 process='5' seen_in='syscalls' method='CONNECT' target='exfil.test:443' address='10.77.0.1' port=3128 socket='s1'
http.request@3 process='5' seen_in='syscalls' method='GET' target='/a/long/pa' address='10.77.0.1' port=3128 socket='s1'
loss string-cut@2 x2 data:socket.send
loss no-exit x1
note no-clock x1
4 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )


def test_fast_open_connects_and_sends(tmp_path: Path) -> None:
    text = r"""
5 socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 3
5 sendto(3, "GET / HTTP/1.0\r\n\r\n", 18, MSG_FASTOPEN, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("203.0.113.7")}, 16) = 18
5 write(3, "x", 1) = 1
"""
    assert (
        script(tmp_path, text[1:])
        == r"""
process.start@1 process='5' call='' how='seen'
socket.open@1 process='5' call='socket' result=3 socket='s1' fd=3 family='inet' type='stream' protocol='IPPROTO_IP'
socket.send@2 process='5' call='sendto' result=18 socket='s1' fd=3 transport='tcp' address='203.0.113.7' port=80 remote_source='argument' size=18 tried=18 data=b'GET / HTTP/1.0\r\n\r\n' fastopen=True
http.request@2 process='5' seen_in='syscalls' method='GET' target='/' address='203.0.113.7' port=80 socket='s1'
socket.send@3 process='5' call='write' result=1 socket='s1' fd=3 transport='tcp' address='203.0.113.7' port=80 remote_source='connect' size=1 tried=1 data=b'x'
loss no-exit x1
note no-clock x1
3 lines 0 unparsed 0 orphans 0 exits incomplete clock=none
"""
    )
