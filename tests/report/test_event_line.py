"""One readable line for an event of every kind."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpdetect.model import binary, files, mcp, net
from mcpdetect.model import event as ev
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.place import Where
from mcpdetect.report.event_line import event_line

AT = Where("trace.log", 41)
T = 1_796_041_192_443_879_000

CASES: list[tuple[ev.Event, str]] = [
    (
        ev.ProcessStart(AT, T, "execve", 0, process="38", executable="/bin/sh", argv=["sh", "-c", "ls"], parent="37"),
        "exec /bin/sh [sh, -c, ls] by 37 = 0",
    ),
    (
        ev.ProcessStart(AT, T, "execve", 0, process="38", argv=["a"], argv_cut=True, origin="memfd"),
        "exec (unknown file) [a, …] memfd = 0",
    ),
    (ev.ProcessStart(AT, T, "clone", 39, process="39", how="clone", parent="38"), "clone by 38 = 39"),
    (ev.ProcessExecFailed(AT, T, "execve", None, "ENOENT", executable="/usr/bin/npm"), "/usr/bin/npm = ENOENT"),
    (ev.ProcessExit(AT, T, code=0), "code 0"),
    (ev.ProcessExit(AT, T, signal="SIGKILL"), "killed by SIGKILL"),
    (ev.ProcessExit(AT, T), "ended"),
    (ev.FileOpen(AT, T, "openat", 3, path="/etc/passwd", access="read"), "read /etc/passwd = 3"),
    (
        ev.FileOpen(AT, T, "openat", None, "ENOENT", path="../.env", access="read", certain=False),
        "read ../.env (perhaps) = ENOENT",
    ),
    (
        ev.FileRead(AT, T, "read", 9, path="/etc/motd", fd=3, size=9, data=b"hello\x1b[m\n"),
        '/etc/motd 9 bytes "hello\\x1b[m\\x0a" = 9',
    ),
    (ev.FileRead(AT, T, "read", None, fd=7, cut=True), "fd 7 (unknown file) (data not recorded) = ?"),
    (ev.FileRead(AT, T, "mmap", 0, path="/lib/a.so", size=4096, mapped=True), "/lib/a.so 4,096 bytes mapped = 0"),
    (ev.FileChange(AT, T, "rename", 0, operation="rename", path="/a", target="/b"), "rename /a -> /b = 0"),
    (ev.FileChange(AT, T, "chmod", 0, operation="chmod", path="/a", mode="0755"), "chmod /a mode 0755 = 0"),
    (ev.FileProbe(AT, T, "access", None, "EACCES", operation="access", path="/root"), "access /root = EACCES"),
    (ev.KernelNotable(AT, T, "memfd_create", 5, detail='"x", 0'), 'memfd_create "x", 0 = 5'),
    (ev.Probe(AT, T, nonce="n0nce", watched="dns", phase="after"), "dns after n0nce"),
    (ev.Unparsed(AT, T, reason="no header", raw=b"garbage"), 'syscalls no header "garbage"'),
    (net.SocketOpen(AT, T, "socket", 4, socket="s1", family="inet", type="stream", fd=4), "s1 inet stream fd 4 = 4"),
    (
        net.SocketConnect(
            AT, T, "connect", None, "EINPROGRESS", socket="s1", transport="tcp", family="inet6",
            address="2001:db8::1", port=443, outcome="in_progress",
        ),
        "s1 tcp [2001:db8::1]:443 in progress = EINPROGRESS",
    ),
    (
        net.SocketConnect(AT, T, "connect", 0, family="unix", path="@x", transport="unix", outcome="established"),
        "unix @x established = 0",
    ),
    (net.SocketConnect(AT, T, "connect", 0, family="unspec"), "(disconnect) unknown = 0"),
    (net.SocketState(AT, T, "getsockopt", 0, socket="s1", status="ECONNREFUSED"), "s1 so_error ECONNREFUSED = 0"),
    (
        net.SocketSend(AT, T, "sendto", None, "EPERM", socket="s2", transport="udp", address="192.0.2.1", port=53,
            tried=30),
        "s2 udp to 192.0.2.1:53 30 bytes tried = EPERM",
    ),
    (net.SocketReceive(AT, T, "recvfrom", 4, size=4, data=b"\x00abc"), 'from (unknown address) 4 bytes "\\x00abc" = 4'),
    (net.SocketListen(AT, T, "listen", 0, operation="listen", socket="s3"), "listen s3 = 0"),
    (
        net.SocketListen(AT, T, "bind", 0, operation="bind", socket="s3", address="0.0.0.0", port=80),
        "bind s3 0.0.0.0:80 = 0",
    ),
    (net.FdPass(AT, T, "sendmsg", 1, socket="s4", fds=[5], paths=["/x"]), "sent s4 fds 5 /x = 1"),
    (
        net.NetFlow(
            AT, T, source="10.0.0.2", source_port=4000, address="203.0.113.9", port=443, packets_out=3, packets_in=2,
            bytes_out=517, bytes_in=99, syn=1, syn_ack=1, midstream=True, icmp=[net.IcmpError(3, 3, "10.0.0.3", 9)],
        ),
        "tcp 10.0.0.2:4000 -> 203.0.113.9:443 3/2 packets, 517/99 bytes out/in, SYN 1, SYN-ACK 1, "  # noqa: ISC004
        "ICMP 3/3 from 10.0.0.3 (begun before the capture)",
    ),
    (
        net.NetPacket(AT, T, protocol="icmp", source="10.0.0.1", address="10.0.0.2", icmp_type=3, icmp_code=1, size=36),
        "icmp type 3 code 1 10.0.0.1 -> 10.0.0.2 36 bytes",
    ),
    (
        net.DnsQuery(AT, T, seen_in="syscalls", name="a.example", server="192.0.2.1", server_port=53, error="EPERM"),
        "A a.example to 192.0.2.1:53 not sent: EPERM",
    ),
    (net.DnsQuery(AT, T, seen_in="dns", name=None, altered=True), "A (name not visible) (altered by the logger)"),
    (net.DnsQuery(AT, T, seen_in="dns", name="", type="NS", client="10.0.0.2"), "NS . from 10.0.0.2"),
    (
        net.DnsAnswer(
            AT, T, seen_in="dns", name="a.example", rcode="NOERROR", source="policy",
            records=[net.DnsRecord("a.example", "A", "203.0.113.9")],
        ),
        "A a.example NOERROR policy A 203.0.113.9",
    ),
    (net.DnsAnswer(AT, T, seen_in="dns", name="a.example", type="AAAA", no_data=True), "AAAA a.example no data"),
    (
        net.TlsClientHello(AT, T, seen_in="packets", address="203.0.113.9", port=443, sni="a.example", alpn=["h2"],
            ech=True),
        "to 203.0.113.9:443 a.example alpn h2 ech",
    ),
    (net.TlsClientHello(AT, T, seen_in="packets"), "to (unknown address) (no server name)"),
    (net.TlsClientHello(AT, T, seen_in="packets", complete=False), "to (unknown address) (name not visible)"),
    (net.QuicInitial(AT, T, address="203.0.113.9", port=443), "to 203.0.113.9:443 version 0x1 (name not visible)"),
    (
        net.HttpRequest(AT, T, seen_in="packets", method="GET", target="/\r\nX: y", host="a.example",
            address="192.0.2.7", port=80),
        "to 192.0.2.7:80 GET /\\x0d\\x0aX: y host a.example",
    ),
    (
        net.FirewallDrop(AT, T, action="drop", transport="tcp", source="10.0.0.2", address="1.1.1.1", port=443),
        "drop tcp 10.0.0.2 -> 1.1.1.1:443 1 packet",
    ),
    (net.FirewallDrop(AT, T, action="reject", packets=7, prefix="DENY: "), "reject 7 packets DENY:"),
    (
        mcp.McpMessage(AT, T, direction="c2s", method="tools/call", tool="read", id="4", arguments='{"p":1}'),
        'client -> server request tools/call read id 4 {"p":1}',
    ),
    (mcp.McpMessage(AT, T, form="noise", text="npm warn\u202e"), "server -> client noise npm warn\\u202e"),
    (
        mcp.McpTool(AT, T, name="read", texts=[mcp.McpText("/name", "read")], digest="ab" * 32, revision=2),
        "tool read revision 2 1 text abababababa…",
    ),
    (
        binary.BinaryImage(AT, T, path="/opt/x", size=9000, sha256="cd" * 32, elf=binary.ElfFacts(
            "X86_64", 64, "little", "static", networking=["connect", "socket"], io_uring=["io_uring_setup"],
            packed="upx", language="rust")),
        "/opt/x 9,000 bytes sha256 cdcdcdcdcdc… X86_64 static rust packed (upx) calls connect, socket io_uring",
    ),
    (binary.BinaryImage(AT, T, size=1, sha256="0"), "(unknown file) 1 byte sha256 0"),
    (
        files.FileDifference(AT, T, path="/tmp/x", change="created", mode="0755", size=9000, sha256="cd" * 32),
        "created file /tmp/x mode 0755 9,000 bytes sha256 cdcdcdcdcdc…",
    ),
    (
        files.FileDifference(AT, T, path="/tmp/l\u202e", change="deleted", type="link", mode="0777", target="/etc"),
        "deleted link /tmp/l\\u202e -> /etc mode 0777",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("event", "told"), CASES, ids=[f"{n}-{event.kind}" for n, (event, _) in enumerate(CASES)])
def test_an_event_in_words(event: ev.Event, told: str) -> None:
    line = event_line(event)
    head = f" 12:19:52.443879Z  trace.log:41           {event.process or '-':>7}  {event.kind:<19} "
    assert line == head.removeprefix(" ") + told


def test_every_kind_is_told() -> None:
    assert {event.kind for event, _ in CASES} == set(EVENT_TYPES)


def test_times_of_other_clocks_and_no_time() -> None:
    assert event_line(ev.ProcessExit(AT, 12_345_678_901)).split()[0] == "12.345678"
    assert event_line(ev.ProcessExit(AT, None)).split()[0] == "-"


def test_place_thread_and_folder() -> None:
    line = event_line(ev.ProcessExit(Where("c.pcap", 7, unit="packet"), None, process="38", tid=40), "runs/a/")
    assert line.split()[1:3] == ["runs/a/c.pcap#7", "38/40"]


@given(st.text(), st.binary(max_size=64))
def test_no_text_makes_a_second_line_or_moves_the_cursor(text: str, data: bytes) -> None:
    events: list[ev.Event] = [
        ev.FileRead(Where(text, 1), 1, text, 1, text, path=text, data=data, process=text),
        ev.Unparsed(AT, 1, reason=text, raw=data),
        mcp.McpMessage(AT, 1, method=text, tool=text, id=text, text=text),
        net.HttpRequest(AT, 1, seen_in="packets", method=text, target=text, host=text, address=text),
        net.FirewallDrop(AT, 1, source=text, address=text, transport=text, prefix=text),
        ev.KernelNotable(AT, 1, text, 1, detail=text, path=text),
    ]
    for event in events:
        line = event_line(event)
        assert re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", line) is None
        assert len(line) < 12_000
