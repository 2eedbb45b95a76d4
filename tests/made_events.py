"""Short ways to state the events and observations of a run by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hand_sources import observed, where
from made_runs import check, expecting, secrets, turned_over

from mcpdetect.model.event import FileChange, FileOpen, FileRead, ProcessStart
from mcpdetect.model.net import (
    DnsAnswer,
    DnsQuery,
    DnsRecord,
    FirewallDrop,
    IcmpError,
    NetFlow,
    SocketConnect,
    SocketReceive,
    SocketSend,
    SocketState,
    TlsClientHello,
)
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Channel, Transport

__all__ = [
    "CALLS",
    "FILES",
    "MS",
    "WIRE",
    "S",
    "answer",
    "asked",
    "calls",
    "changed",
    "check",
    "connect",
    "dropped",
    "execed",
    "expecting",
    "flow",
    "flows_only",
    "hello",
    "logged",
    "opened",
    "packet",
    "read",
    "received",
    "secrets",
    "sent",
    "state",
    "turned_over",
    "walled",
    "wire",
]

MS = 1_000_000
S = 1000 * MS
CALLS = (
    "socket.open",
    "socket.connect",
    "socket.state",
    "socket.send",
    "socket.receive",
    "process.start",
    "process.exec_failed",
    "kernel.notable",
)
FILES = ("file.open", "file.read", "file.change", "file.probe")
WIRE = ("net.flow", "net.packet", "dns.query", "dns.answer", "tls.client_hello", "http.request")


def calls(*losses: Loss, without: Iterable[str] = ()) -> Observation:
    kinds = [kind for kind in (*CALLS, *FILES) if kind not in set(without)]
    return observed("syscalls", *kinds, losses=list(losses), end_ns=100 * S)


def wire(*losses: Loss, begin_ns: int | None = 0, end_ns: int | None = 100 * S) -> Observation:
    return observed("packets", *WIRE, losses=list(losses), source="capture.pcap", begin_ns=begin_ns, end_ns=end_ns)


def flows_only() -> Observation:
    """Return a capture that watched the wire for flows and nothing more: it says nothing about names."""
    return observed("packets", "net.flow", "net.packet", source="capture.pcap", end_ns=100 * S)


def walled() -> Observation:
    """Return a firewall whose counters were watched, and counted nothing."""
    return observed("firewall", "firewall.drop", source="nft.txt", end_ns=100 * S)


def logged(begin_ns: int = 0) -> Observation:
    return observed("dns", "dns.query", "dns.answer", source="dns.log", begin_ns=begin_ns, end_ns=100 * S)


def packet(number: int) -> Where:
    return Where("capture.pcap", number, unit="packet")


def connect(
    line: int,
    address: str | None = "203.0.113.7",
    error: str | None = None,
    *,
    t: int = S,
    port: int = 443,
    socket: str | None = "s1",
    transport: Transport | None = "tcp",
    process: str = "7",
    pending: bool = False,
    family: str = "inet",
    path: str | None = None,
) -> SocketConnect:
    failed = error is not None or pending
    return SocketConnect(
        where(line),
        t,
        "connect",
        None if failed else 0,
        "EINPROGRESS" if pending else error,
        socket=socket,
        fd=3,
        transport=transport,
        family=family,
        address=address,
        port=port,
        path=path,
        process=process,
    )


def state(
    line: int,
    source: Literal["so_error", "peer", "poll", "close", "shutdown"],
    status: str = "",
    *,
    t: int = 2 * S,
    socket: str = "s1",
) -> SocketState:
    return SocketState(where(line), t, "getsockopt", 0, socket=socket, fd=3, source=source, status=status, process="7")


def sent(
    line: int,
    address: str | None = "203.0.113.7",
    size: int | None = 5,
    error: str | None = None,
    *,
    t: int = 2 * S,
    port: int | None = 443,
    socket: str | None = "s1",
    transport: Transport = "tcp",
    process: str = "7",
    source: Literal["argument", "connect", "accept", "decoration"] = "connect",
) -> SocketSend:
    return SocketSend(
        where(line),
        t,
        "sendto",
        None if error else size,
        error,
        socket=socket,
        fd=3,
        transport=transport,
        address=address,
        port=port,
        remote_source=source,
        size=None if error else size,
        process=process,
    )


def received(
    line: int, address: str = "203.0.113.7", data: bytes = b"ok", *, socket: str = "s1", error: str | None = None,
    transport: Transport = "tcp", port: int = 443, t: int = 2 * S,
) -> SocketReceive:  # fmt: skip
    return SocketReceive(
        where(line),
        t,
        "recvfrom",
        None if error else len(data),
        error,
        socket=socket,
        fd=3,
        transport=transport,
        address=address,
        port=port,
        size=None if error else len(data),
        data=data,
        process="7",
    )


def flow(
    number: int,
    address: str = "203.0.113.7",
    *,
    t: int = S,
    port: int = 443,
    transport: Literal["tcp", "udp"] = "tcp",
    source: str = "10.77.0.2",
    source_port: int = 40000,
    syn: int = 1,
    syn_ack: int = 0,
    rst_in: int = 0,
    packets_in: int = 0,
    packets_out: int = 1,
    data_out: int = 0,
    icmp: tuple[int, int] | None = None,
    icmp_from: str = "10.77.0.1",
    midstream: bool = False,
) -> NetFlow:
    return NetFlow(
        packet(number),
        t,
        transport=transport,
        source=source,
        source_port=source_port,
        address=address,
        port=port,
        packets_out=packets_out,
        packets_in=packets_in or syn_ack + rst_in,
        syn=syn if transport == "tcp" else 0,
        syn_ack=syn_ack,
        rst_in=rst_in,
        data_out=data_out,
        midstream=midstream,
        icmp=[] if icmp is None else [IcmpError(*icmp, icmp_from, number + 1)],
    )


def dropped(
    line: int,
    address: str | None = "203.0.113.7",
    *,
    action: Literal["drop", "reject", "accept", "logged"] = "drop",
    port: int | None = 443,
    source_port: int | None = 35770,
    transport: str | None = "tcp",
    packets: int = 1,
    prefix: str = "MCPD-OUT",
) -> FirewallDrop:
    return FirewallDrop(
        Where("firewall.log", line),
        S,
        action=action,
        transport=transport,
        source="10.77.0.2",
        source_port=source_port,
        address=address,
        port=port,
        packets=packets,
        prefix=prefix,
    )


def asked(
    line: int,
    name: str | None,
    *,
    seen_in: Channel = "syscalls",
    t: int = S // 2,
    kind: str = "A",
    error: str | None = None,
    server: str | None = "10.77.0.1",
    client: str | None = None,
    process: str | None = "7",
) -> DnsQuery:
    place = {"syscalls": where(line), "packets": packet(line), "dns": Where("dns.log", line)}[seen_in]
    return DnsQuery(
        place,
        t,
        seen_in=seen_in,
        name=name,
        type=kind,
        server=server,
        client=client,
        error=error,
        process=process if seen_in == "syscalls" else None,
    )


def answer(
    line: int,
    name: str | None,
    *addresses: str,
    seen_in: Channel = "syscalls",
    t: int = S // 2 + 1,
    rcode: str = "NOERROR",
    client: str | None = None,
    source: Literal["", "upstream", "policy", "hosts", "cache"] = "",
    alias: str | None = None,
) -> DnsAnswer:
    place = {"syscalls": where(line), "packets": packet(line), "dns": Where("dns.log", line)}[seen_in]
    records = [DnsRecord(name or "", "CNAME", alias)] if alias else []
    records += [DnsRecord(alias or name or "", "AAAA" if ":" in one else "A", one) for one in addresses]
    return DnsAnswer(place, t, seen_in=seen_in, name=name, rcode=rcode, records=records, client=client, source=source)


def hello(number: int, address: str, sni: str | None) -> TlsClientHello:
    return TlsClientHello(packet(number), S, seen_in="packets", address=address, port=443, sni=sni)


def opened(
    line: int,
    path: str,
    *,
    t: int = S,
    process: str = "7",
    fd: int | None = 3,
    error: str | None = None,
    access: Literal["read", "write", "readwrite", "path", "unknown"] = "read",
    written: str | None = None,
    certain: bool = True,
    aliases: list[str] | None = None,
) -> FileOpen:
    return FileOpen(
        where(line),
        t,
        "openat",
        fd if error is None else None,
        error,
        path=path,
        access=access,
        fd=fd if error is None else None,
        written=written or path,
        certain=certain,
        aliases=aliases,
        process=process,
    )


def read(
    line: int,
    path: str | None,
    data: bytes = b"content",
    *,
    t: int = S + 1,
    process: str = "7",
    fd: int = 3,
    call: str = "read",
    mapped: bool = False,
    cut: bool = False,
    inherited: bool = False,
    to_socket: str | None = None,
    size: int | None = None,
    error: str | None = None,
    aliases: list[str] | None = None,
) -> FileRead:
    count = len(data) if size is None else size
    return FileRead(
        where(line),
        t,
        call,
        None if error else count,
        error,
        path=path,
        fd=fd,
        size=None if error else count,
        data=data,
        cut=cut,
        mapped=mapped,
        inherited=inherited,
        to_socket=to_socket,
        aliases=aliases,
        process=process,
    )


def changed(
    line: int, operation: Literal["write", "rename", "link", "symlink"], path: str, target: str | None = None
) -> FileChange:
    return FileChange(where(line), S // 2, operation, 0, operation=operation, path=path, target=target, process="7")


def execed(
    line: int, executable: str, *argv: str, process: str = "7", parent: str | None = None, t: int = 0
) -> ProcessStart:
    return ProcessStart(
        where(line),
        t,
        "execve",
        0,
        how="exec",
        executable=executable,
        argv=list(argv) or [executable],
        process=process,
        parent=parent,
    )
