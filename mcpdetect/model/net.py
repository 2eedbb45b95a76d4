"""Events of the network: of the wire (packets, DNS, TLS, HTTP, firewall) here, of sockets from ``sockets``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mcpdetect.model.event import Event
from mcpdetect.model.place import STRICT
from mcpdetect.model.sockets import (
    FdPass,
    SocketConnect,
    SocketListen,
    SocketOpen,
    SocketReceive,
    SocketSend,
    SocketState,
)
from mcpdetect.model.vocabulary import Channel

__all__ = [
    "DnsAnswer",
    "DnsQuery",
    "DnsRecord",
    "FdPass",
    "FirewallDrop",
    "HttpRequest",
    "IcmpError",
    "NetFlow",
    "NetPacket",
    "QuicInitial",
    "SocketConnect",
    "SocketListen",
    "SocketOpen",
    "SocketReceive",
    "SocketSend",
    "SocketState",
    "TlsClientHello",
]


@dataclass(slots=True)
class IcmpError:
    """An ICMP or ICMPv6 error that quotes a flow (RFC 792, RFC 4443).

    Attributes:
        type, code: as in the message.
        sender: address of who refused.
        packet: number of the packet.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    type: int
    code: int
    sender: str
    packet: int


@dataclass(slots=True)
class NetFlow(Event):
    """One conversation on the wire, emitted when it ends, idles out, or the capture does.

    Attributes:
        where: its first packet.
        t_ns, end_ns: time of first and last packet.
        transport: ``tcp`` or ``udp``.
        source, source_port: who sent the first packet; for TCP who sent the SYN, where seen.
        address, port: the other end.
        packets_out, packets_in, bytes_out, bytes_in: counts; bytes are transport payload by original length.
        syn: SYN packets from the source, retransmissions included. syn_ack, rst_in, rst_out, fin: counts.
        data_out, data_in: packets that carry payload.
        icmp: errors that quote this flow.
        cut: packets whose captured length is short of the original.
        midstream: a TCP flow whose beginning was not captured.
    """

    kind: Literal["net.flow"] = field(default="net.flow", kw_only=True)
    channel: ClassVar[Channel] = "packets"
    transport: Literal["tcp", "udp"] = "tcp"
    source: str = ""
    source_port: int = 0
    address: str = ""
    port: int = 0
    end_ns: int | None = None
    packets_out: int = 0
    packets_in: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    data_out: int = 0
    data_in: int = 0
    syn: int = 0
    syn_ack: int = 0
    rst_out: int = 0
    rst_in: int = 0
    fin: int = 0
    cut: int = 0
    midstream: bool = False
    icmp: list[IcmpError] = field(default_factory=list)


@dataclass(slots=True)
class NetPacket(Event):
    """A packet that is neither TCP nor UDP, or whose ports cannot be known (later fragment, cut header).

    Attributes:
        protocol: ``icmp``, ``icmpv6``, ``arp``, ``gre``, ``esp``, ``sctp``, ``fragment``, ``truncated``, ``ip-<n>``,
            ``ethertype-0x<hex>``.
        source, address: the IP addresses, where there are any.
        icmp_type, icmp_code: for ICMP.
        size: original length of the payload above IP.
        inner: for a tunnel, the inner destination.
    """

    kind: Literal["net.packet"] = field(default="net.packet", kw_only=True)
    channel: ClassVar[Channel] = "packets"
    protocol: str = ""
    source: str | None = None
    address: str | None = None
    icmp_type: int | None = None
    icmp_code: int | None = None
    size: int = 0
    inner: str | None = None


@dataclass(slots=True)
class DnsQuery(Event):
    r"""A question for a name, from a packet, a resolver's log or a system call's buffer.

    Attributes:
        seen_in: the channel that showed it.
        name: the name, lower case, without the final dot; bytes that are no letter, digit, ``-`` or ``_`` as
            ``\DDD`` (RFC 4343 §2.1). Empty for the root, None where the evidence hides or cuts it.
        spelled: the name as asked, where the letter case differs.
        type: the record type (``A``, ``AAAA``, ``HTTPS``, ``TYPE65535``).
        client, client_port: who asked, where known.
        server, server_port: who was asked, where known.
        transport: ``udp``, ``tcp``, ``unix``, ...
        id: the message id where seen; pairs with the answer.
        altered: the logger damaged the name, exact comparison is off.
        error: errno of the send that failed: the question did not leave.
    """

    kind: Literal["dns.query"] = field(default="dns.query", kw_only=True)
    seen_in: Channel = field(kw_only=True)
    name: str | None = None
    type: str = "A"
    spelled: str | None = field(default=None, kw_only=True)
    client: str | None = field(default=None, kw_only=True)
    client_port: int | None = field(default=None, kw_only=True)
    server: str | None = field(default=None, kw_only=True)
    server_port: int | None = field(default=None, kw_only=True)
    transport: str | None = field(default=None, kw_only=True)
    id: int | None = field(default=None, kw_only=True)
    altered: bool = field(default=False, kw_only=True)
    error: str | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class DnsRecord:
    """One record of an answer.

    Attributes:
        name: the owner's name, spelled as ``DnsQuery.name``.
        type: the record type.
        value: an address, a name (CNAME, PTR, HTTPS target) or text.
        ttl: seconds it may be kept, where shown.
        hints: address hints of an HTTPS or SVCB record (RFC 9460 §7.3).
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    type: str
    value: str
    ttl: int | None = None
    hints: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DnsAnswer(Event):
    """An answer to a name.

    Attributes:
        seen_in: the channel that showed it.
        name, type: the question, as in ``DnsQuery``.
        rcode: ``NOERROR``, ``NXDOMAIN``, ``SERVFAIL``, ``REFUSED``, ...; ``""`` when the log does not say.
        records: the records that matter for naming; order kept.
        source: who answered by the log's own word: ``upstream``, ``policy`` (configuration: blocked or
            sinkholed), ``hosts``, ``cache``, ``""`` unknown.
        no_data: the name exists without such a record.
        client, server, transport, id: as in ``DnsQuery``.
    """

    kind: Literal["dns.answer"] = field(default="dns.answer", kw_only=True)
    seen_in: Channel = field(kw_only=True)
    name: str | None = None
    type: str = "A"
    rcode: str = ""
    records: list[DnsRecord] = field(default_factory=list)
    source: Literal["", "upstream", "policy", "hosts", "cache"] = ""
    no_data: bool = field(default=False, kw_only=True)
    client: str | None = field(default=None, kw_only=True)
    server: str | None = field(default=None, kw_only=True)
    transport: str | None = field(default=None, kw_only=True)
    id: int | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class TlsClientHello(Event):
    """A TLS ClientHello (RFC 8446 §4.1.2).

    Attributes:
        seen_in: ``packets``, or ``syscalls`` where it was decoded from a buffer.
        source, source_port: the client, where known.
        address, port: the server, where known.
        sni: server name (RFC 6066 §3), None where absent or unreadable.
        alpn: protocols offered. ech: extension 0xfe0d is present (real or filler, nobody can tell).
        complete: the whole hello was captured; else ``sni`` None means unknown, not absent.
        ja4: the JA4 fingerprint, where computed.
        socket: identity of the socket, where it was decoded from a buffer.
    """

    kind: Literal["tls.client_hello"] = field(default="tls.client_hello", kw_only=True)
    seen_in: Channel = field(kw_only=True)
    source: str | None = None
    source_port: int | None = None
    address: str | None = None
    port: int | None = None
    sni: str | None = None
    alpn: list[str] = field(default_factory=list)
    ech: bool = False
    complete: bool = True
    ja4: str | None = field(default=None, kw_only=True)
    socket: str | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class QuicInitial(Event):
    """A QUIC Initial packet of a client (RFC 9000 §17.2.2).

    Attributes:
        source, source_port: the client.
        address, port: the server.
        version: the QUIC version (RFC 9000 §15).
        sni: server name, where the hello could be read.
        complete: the whole hello could be read; else ``sni`` None means unknown, not absent.
    """

    kind: Literal["quic.initial"] = field(default="quic.initial", kw_only=True)
    channel: ClassVar[Channel] = "packets"
    source: str | None = None
    source_port: int | None = None
    address: str | None = None
    port: int | None = None
    version: int = 1
    sni: str | None = None
    complete: bool = False


@dataclass(slots=True)
class HttpRequest(Event):
    """An HTTP/1 request line and its Host, in the clear (RFC 9112 §3).

    Attributes:
        seen_in: ``packets``, or ``syscalls`` where it was read from a buffer.
        method, target: as in the request line.
        host: value of the Host field, None where it is absent or out of sight.
        source, source_port: the client, where known.
        address, port: the server, where known.
        socket: identity of the socket, where it was read from a buffer.
    """

    kind: Literal["http.request"] = field(default="http.request", kw_only=True)
    seen_in: Channel = field(kw_only=True)
    method: str = ""
    target: str = ""
    host: str | None = None
    source: str | None = None
    source_port: int | None = None
    address: str | None = None
    port: int | None = None
    socket: str | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class FirewallDrop(Event):
    """A firewall's word about packets: a log line, or the difference of a counter.

    Attributes:
        action: ``drop``, ``reject``, ``accept``, or ``logged`` when the prefix does not say.
        transport: ``tcp``, ``udp``, ``icmp``, ..., where the line says so.
        source, source_port: where the packets came from.
        address, port: where they went.
        packets: how many (1 for a line; a counter's difference otherwise, then addresses are unknown).
        prefix: the rule's own words.
    """

    kind: Literal["firewall.drop"] = field(default="firewall.drop", kw_only=True)
    channel: ClassVar[Channel] = "firewall"
    action: Literal["drop", "reject", "accept", "logged"] = "logged"
    transport: str | None = None
    source: str | None = None
    source_port: int | None = None
    address: str | None = None
    port: int | None = None
    packets: int = 1
    prefix: str = ""
