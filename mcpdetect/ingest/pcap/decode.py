"""From a frame to its flow: every layer but the common case, which ``capture`` reads itself."""

from __future__ import annotations

from collections.abc import Callable

from mcpdetect.ingest.dnswire import address_text
from mcpdetect.ingest.pcap.datagrams import Datagrams, DnsWatcher, UdpWatcher
from mcpdetect.ingest.pcap.dns import DNS_PORTS, DnsReader
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.ingest.pcap.flows import FlowTable, Half
from mcpdetect.ingest.pcap.fragments import Datagram, Fragments
from mcpdetect.ingest.pcap.ledger import NAMES, Ledger
from mcpdetect.ingest.pcap.link import ETHERNET, unwrap
from mcpdetect.ingest.pcap.streams import Streams, TcpWatcher
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import IcmpError, NetPacket
from mcpdetect.model.place import Where

__all__ = ["Decoder"]

_TCP, _UDP, _ICMP, _ICMPV6, _IPIP, _SIX, _GRE, _ESP, _AH = 6, 17, 1, 58, 4, 41, 47, 50, 51
_FRAGMENT = 44
_EXTENSIONS = frozenset({0, 43, 60, _AH, 135, 139, 140})  # IANA "IPv6 Extension Header Types" that name a next header
_PROTOCOLS = {1: "icmp", 47: "gre", 50: "esp", 58: "icmpv6", 132: "sctp"}
_ICMP_ERRORS = {_ICMP: frozenset({3, 4, 5, 11, 12}), _ICMPV6: frozenset({1, 2, 3, 4})}
_ABOVE_IP = ("net.flow", *NAMES)
_MOST_DEPTH = 4
_EXCERPT = 64
_SNAPLEN = "packets longer than the snap length were cut"


class Decoder:
    """Decodes the packets of one capture.

    Attributes:
        flows: the flow table, whose dictionaries the fast lane looks into.
        unparsed: packets and messages that could not be understood.
    """

    def __init__(self, name: str, out: Callable[[Event], None], wanted: frozenset[str], ledger: Ledger) -> None:
        self._name = name
        self._out = out
        self._ledger = ledger
        self._packets = "net.packet" in wanted
        self._wants_unparsed = "unparsed" in wanted
        self.unparsed = 0
        self.flows = FlowTable(name, out if "net.flow" in wanted else None)
        self._dns = DnsReader(name, out, wanted, ledger, self._count)
        self._streams = Streams(name, out, wanted, ledger, self._dns)
        self._datagrams = Datagrams(name, out, wanted, ledger, self._dns)
        self._fragments = Fragments()
        self._number = 0
        self._t_ns = NO_TIME
        self._cut = False

    def _count(self) -> None:
        self.unparsed += 1

    def frame(self, link: int, frame: bytes, original: int, number: int, t_ns: int) -> None:
        """Decode one frame of a supported link type."""
        self._number = number
        self._t_ns = t_ns
        self._cut = len(frame) < original
        self._link(link, frame, original, 0)
        self._report_failed()

    def close(self) -> None:
        """The capture is over: give out what is unfinished."""
        self._fragments.close()
        self._report_failed()
        self.flows.close()
        if self._fragments.overflows:
            self._ledger.add(
                "overflow", "too many unfinished IP fragments at once", None, _ABOVE_IP, count=self._fragments.overflows
            )
        if self.flows.overflows:
            self._ledger.add(
                "overflow",
                "too many live flows at once; some were split in two",
                None,
                count=self.flows.overflows,
                note=True,
            )
        if self.flows.unkept_icmp:
            self._ledger.add(
                "overflow", "more ICMP errors of one flow than are kept", None, count=self.flows.unkept_icmp, note=True
            )

    def _where(self) -> Where:
        return Where(self._name, self._number, None, "packet")

    def _time(self) -> int | None:
        return self._t_ns if self._t_ns != NO_TIME else None

    def _snaplen(self, touches: tuple[str, ...]) -> None:
        """Count a packet that was cut where something may have been behind the cut."""
        self._ledger.add("snaplen", _SNAPLEN, self._where(), touches, note=not touches)

    def _undecodable(self, reason: str, data: bytes, touches: tuple[str, ...] = ()) -> None:
        """Account for a packet of which not even the addresses can be had, or whose headers lie."""
        self.unparsed += 1
        if self._cut:
            self._snaplen(touches or ("net.packet", *_ABOVE_IP))
        else:
            self._ledger.add("unparsed", "packets with malformed headers", self._where(), touches)
        if self._wants_unparsed:
            self._out(Unparsed(self._where(), self._time(), "packets", reason, data[:_EXCERPT], list(touches)))

    def _packet(
        self,
        protocol: str,
        size: int,
        source: bytes | None = None,
        address: bytes | None = None,
        **more: int | str | None,
    ) -> None:
        if self._packets:
            event = NetPacket(
                self._where(),
                self._time(),
                protocol,
                address_text(source) if source is not None else None,
                address_text(address) if address is not None else None,
                size=size,
            )
            for field, value in more.items():
                setattr(event, field, value)
            self._out(event)

    def _link(self, link: int, frame: bytes, original: int, depth: int) -> None:
        protocol, at = unwrap(link, frame)
        if protocol == "ip":
            self._ip(frame, at, original - at, depth)
        elif protocol == "arp":
            # 0001 0800 06 04 0001: Ethernet, IPv4, lengths, operation; then sender and target
            is_ipv4 = frame[at + 2 : at + 6] == b"\x08\x00\x06\x04" and len(frame) >= at + 28
            self._packet(
                "arp",
                original - at,
                frame[at + 14 : at + 18] if is_ipv4 else None,
                frame[at + 24 : at + 28] if is_ipv4 else None,
            )
            self._note_cut()
        elif protocol:
            self._packet(protocol, max(0, original - at))
            self._note_cut()
        else:
            self._undecodable("the link layer header is cut" if self._cut else "the frame is too short", frame)

    def _note_cut(self) -> None:
        if self._cut:
            self._snaplen(())

    def _ip(self, data: bytes, at: int, left: int, depth: int) -> None:
        """Decode an IP packet at ``at``; ``left`` is what the wire had from there on."""
        version = data[at] >> 4 if at < len(data) else 0
        if version == 4 and len(data) >= at + 20:
            header = (data[at] & 15) * 4
            total = ((data[at + 2] << 8) | data[at + 3]) or left  # 0: segmentation offload
            if header < 20 or total < header:
                self._undecodable("an IPv4 header whose lengths lie", data[at:])
                return
            total = min(total, left)
            source, address, protocol = data[at + 12 : at + 16], data[at + 16 : at + 20], data[at + 9]
            flags = (data[at + 6] << 8) | data[at + 7]
            if flags & 0x3FFF:
                key = data[at + 12 : at + 20] + data[at + 9 : at + 10] + data[at + 4 : at + 6]
                self._fragment(
                    key,
                    source,
                    address,
                    protocol,
                    (flags & 0x1FFF) * 8,
                    bool(flags & 0x2000),
                    data,
                    at + header,
                    at + total,
                    depth,
                )
            else:
                self._transport(protocol, source, address, data, at + header, at + total, depth)
        elif version == 6 and len(data) >= at + 40:
            size = (data[at + 4] << 8) | data[at + 5]
            end = at + min(40 + size if size else left, left)
            self._ipv6(data, at, end, depth)
        else:
            short = version in (4, 6)
            self._undecodable(
                "an IP header that is cut"
                if short and self._cut
                else "an IP header that is too short or of no known version",
                data[at:],
            )

    def _ipv6(self, data: bytes, at: int, end: int, depth: int) -> None:
        source, address = data[at + 8 : at + 24], data[at + 24 : at + 40]
        following = data[at + 6]
        at += 40
        while following in _EXTENSIONS or following == _FRAGMENT:
            if at + 8 > min(end, len(data)):
                self._headless(source, address, max(0, end - at), "an IPv6 extension header that is cut", data[at:])
                return
            if following == _FRAGMENT:
                field = (data[at + 2] << 8) | data[at + 3]
                if field & 0xFFF9:
                    key = source + address + data[at + 4 : at + 8]
                    self._fragment(
                        key, source, address, data[at], field & 0xFFF8, bool(field & 1), data, at + 8, end, depth
                    )
                    return
                size = 8  # an atomic fragment (RFC 6946)
            elif following == _AH:
                size = (data[at + 1] + 2) * 4
            else:
                size = (data[at + 1] + 1) * 8
            following = data[at]
            at += size
        self._transport(following, source, address, data, at, max(at, end), depth)

    def _fragment(
        self,
        key: bytes,
        source: bytes,
        address: bytes,
        protocol: int,
        offset: int,
        more: bool,
        data: bytes,
        at: int,
        end: int,
        depth: int,
    ) -> None:
        piece = data[at:end] if len(data) >= end else None
        if self._cut:
            self._snaplen(_ABOVE_IP if piece is None else ())
        found = self._fragments.add(
            key, source, address, protocol, offset, more, piece, max(0, end - at), self._number, self._t_ns
        )
        if found is None:
            return
        datagram, whole = found
        here, self._number, self._cut = self._number, datagram.number, False
        if len(source) == 16 and (datagram.protocol in _EXTENSIONS):
            header = b"\x60\0\0\0\0\0" + bytes([datagram.protocol, 0]) + source + address
            self._ipv6(header + whole, 0, 40 + len(whole), depth + 1)
        else:
            self._transport(datagram.protocol, source, address, whole, 0, len(whole), depth)
        self._number = here

    def _report_failed(self) -> None:
        for datagram in self._fragments.failed:
            self._failed(datagram)
        self._fragments.failed.clear()

    def _failed(self, datagram: Datagram) -> None:
        number, time = self._number, self._t_ns
        self._number, self._t_ns = datagram.number, datagram.t_ns
        self._packet("fragment", datagram.original, datagram.source, datagram.address)
        self._ledger.add("fragment", "fragmented packets that could not be put together", self._where(), _ABOVE_IP)
        self._number, self._t_ns = number, time

    def _headless(self, source: bytes, address: bytes, size: int, reason: str, data: bytes) -> None:
        """Account for a packet whose addresses are known, but whose ports are not."""
        self._packet("truncated", size, source, address)
        if self._cut:
            self._snaplen(_ABOVE_IP)
        else:
            self._undecodable(reason, data, _ABOVE_IP)

    def _transport(
        self, protocol: int, source: bytes, address: bytes, data: bytes, at: int, end: int, depth: int
    ) -> None:
        """Decode what is above IP: ``data[at:end]`` as far as captured."""
        size = end - at
        have = min(end, len(data)) - at
        if protocol in (_TCP, _UDP):
            if have < (20 if protocol == _TCP else 8):
                self._headless(source, address, size, "a TCP or UDP header that is cut or too short", data[at:])
            elif protocol == _TCP:
                self._tcp(source + address + data[at : at + 4], data, at, end)
            else:
                self._udp(source + address + data[at : at + 4], data, at, end)
            return
        if protocol in (_ICMP, _ICMPV6):
            self._icmp(protocol, source, address, data, at, size, have)
            return
        if protocol in (_IPIP, _SIX, _GRE):
            self._tunnel(protocol, source, address, data, at, end, depth)
            return
        self._packet(_PROTOCOLS.get(protocol) or f"ip-{protocol}", size, source, address)
        if protocol == _ESP:
            self._ledger.add("tunnel", "encrypted tunnels; what is inside cannot be seen", self._where(), _ABOVE_IP)
        self._note_cut()

    def _tunnel(self, protocol: int, source: bytes, address: bytes, data: bytes, at: int, end: int, depth: int) -> None:
        """Report the outer packet with the inner destination, then decode the inner packet."""
        inner_at = at if protocol != _GRE else -1
        is_frame = False
        if protocol == _GRE and len(data) >= at + 4 and data[at + 1] & 7 == 0:
            # 20 00 08 00: flags (checksum, key, sequence: four bytes each), version 0, protocol (RFC 2784, RFC 2890)
            flags = data[at]
            inner_type = data[at + 2 : at + 4]
            behind = at + 4 + 4 * ((flags >> 7 & 1) + (flags >> 5 & 1) + (flags >> 4 & 1))
            if not flags & 0x40 and inner_type in (b"\x08\x00", b"\x86\xdd", b"\x65\x58"):
                inner_at, is_frame = behind, inner_type == b"\x65\x58"
        inner: str | None = None
        if inner_at >= 0:
            ip_at = inner_at
            if is_frame:
                held = unwrap(ETHERNET, data[inner_at:end])
                ip_at = inner_at + held.at if held.protocol == "ip" else len(data)
            version = data[ip_at] >> 4 if ip_at < len(data) else 0
            if version == 4 and len(data) >= ip_at + 20:
                inner = address_text(data[ip_at + 16 : ip_at + 20])
            elif version == 6 and len(data) >= ip_at + 40:
                inner = address_text(data[ip_at + 24 : ip_at + 40])
        self._packet(_PROTOCOLS.get(protocol) or f"ip-{protocol}", end - at, source, address, inner=inner)
        if inner_at < 0 or depth >= _MOST_DEPTH:
            self._ledger.add("tunnel", "tunnels that were not looked into", self._where(), _ABOVE_IP)
            self._note_cut()
        elif is_frame:
            self._link(ETHERNET, data[inner_at:end], end - inner_at, depth + 1)
        else:
            self._ip(data[:end], inner_at, end - inner_at, depth + 1)

    def _icmp(self, protocol: int, source: bytes, address: bytes, data: bytes, at: int, size: int, have: int) -> None:
        kind = data[at] if have > 0 else None
        code = data[at + 1] if have > 1 else None
        self._packet(_PROTOCOLS[protocol], size, source, address, icmp_type=kind, icmp_code=code)
        self._note_cut()
        if kind is None or code is None or kind not in _ICMP_ERRORS[protocol]:
            return
        quoted = at + 8
        error = IcmpError(kind, code, address_text(source), self._number)
        if protocol == _ICMP and len(data) >= quoted + 20 and data[quoted] >> 4 == 4:
            ports = quoted + (data[quoted] & 15) * 4
            key = data[quoted + 12 : quoted + 20] + data[ports : ports + 4]
            if len(key) == 12 and data[quoted + 9] in (_TCP, _UDP):
                self.flows.attach(key, tcp=data[quoted + 9] == _TCP, error=error)
        elif protocol == _ICMPV6 and len(data) >= quoted + 44 and data[quoted] >> 4 == 6:
            key = data[quoted + 8 : quoted + 44]
            if data[quoted + 6] in (_TCP, _UDP):
                self.flows.attach(key, tcp=data[quoted + 6] == _TCP, error=error)

    def tcp(self, key: bytes, data: bytes, at: int, end: int, number: int, t_ns: int) -> None:
        """Take a TCP segment of a whole frame, past the layers below.

        Args:
            key: source, destination, ports.
            data: the frame, not cut.
            at: where the TCP header begins, all of its 20 bytes being there.
            end: where the payload ends.
            number: the packet's number.
            t_ns: its time.
        """
        self._number = number
        self._t_ns = t_ns
        self._cut = False
        self._tcp(key, data, at, end)

    def udp(self, key: bytes, data: bytes, at: int, end: int, number: int, t_ns: int) -> None:
        """Take a datagram of a whole frame, past the layers below; arguments as in ``tcp``."""
        self._number = number
        self._t_ns = t_ns
        self._cut = False
        self._udp(key, data, at, end)

    def _tcp(self, key: bytes, data: bytes, at: int, end: int) -> None:
        """Count a TCP segment whose 20-byte header is there, and read its payload while that is of interest."""
        flags = data[at + 13]
        sequence = int.from_bytes(data[at + 4 : at + 8], "big")
        half = self._tcp_half(key, flags, sequence)
        half.packets += 1
        half.last = max(half.last, self._t_ns)
        if flags & 0x02:
            if flags & 0x10:
                half.syn_ack += 1
            else:
                half.syn += 1
        half.fin += flags & 1
        half.rst += flags >> 2 & 1
        half.cut += self._cut
        header = (data[at + 12] >> 4) * 4
        if header < 20 or at + header > end:
            self._undecodable("a TCP header whose length lies", data[at:], NAMES)
            return
        start = at + header
        size = end - start
        watcher = half.watcher
        touched: tuple[str, ...] = ()
        if size > 0:
            half.bytes += size
            half.data += 1
            if isinstance(watcher, TcpWatcher):
                payload = data[start:end]
                # a SYN takes one sequence number; data on it (TCP Fast Open) come behind that
                watcher.feed(
                    (sequence + 1) & 0xFFFFFFFF if flags & 2 else sequence, payload, size, self._number, self._t_ns
                )
                touched = watcher.hidden
                if watcher.done:
                    half.watcher = None
        if self._cut:
            self._snaplen(touched)

    def _tcp_half(self, key: bytes, flags: int, sequence: int) -> Half:
        """Return the half flow of a segment, beginning a new flow where its flags say so."""
        flows = self.flows
        half = flows.tcp.get(key)
        begins = flags & 0x12 == 0x02
        if half is not None and begins and self._is_new(half, sequence):
            flows.finish(half.flow)
            half = None
        opened = half is None
        if half is None:
            half = flows.open(key, self._number, self._t_ns, tcp=True, answers=flags & 0x12 == 0x12)
        if flags & 0x02 and half.isn is None:
            half.isn = sequence
        if opened or (begins and half.packets == 0):
            self._watch_tcp(half, key)
        return half

    @staticmethod
    def _is_new(half: Half, sequence: int) -> bool:
        """Whether a SYN on a known half flow begins another connection between the same ends."""
        if half.isn is not None:
            return half.isn != sequence
        # not the very first packet of this direction, and no simultaneous open
        return half.packets > 0 or half.flow.closed or (half is half.flow.back and not half.flow.out.syn)

    def _watch_tcp(self, half: Half, key: bytes) -> None:
        """Have a half flow's payload looked at: the client's, both of DNS, and both where the client is not known."""
        port, other = (key[-4] << 8) | key[-3], (key[-2] << 8) | key[-1]
        if half is half.flow.out or port in DNS_PORTS or other in DNS_PORTS or not half.flow.out.syn:
            width = (len(key) - 4) // 2
            half.watcher = self._streams.watch((key[:width], port, key[width : 2 * width], other), half.isn)

    def _udp(self, key: bytes, data: bytes, at: int, end: int) -> None:
        """Count a datagram whose 8-byte header is there, and read its payload while that is of interest."""
        half = self.flows.udp.get(key)
        if half is None:
            half = self.flows.open(key, self._number, self._t_ns, tcp=False)
            self._watch_udp(half, key)
        half.packets += 1
        if self._t_ns > half.last:
            half.last = self._t_ns
        size = end - at - 8
        touched: tuple[str, ...] = ()
        if size > 0:
            half.bytes += size
            half.data += 1
            watcher = half.watcher
            if isinstance(watcher, (DnsWatcher, UdpWatcher)):
                length = (data[at + 4] << 8) | data[at + 5]
                stop = min(end, at + length) if length >= 8 else end
                touched = watcher.feed(data[at + 8 : stop], self._number, self._t_ns, cut=len(data) < stop)
        if self._cut:
            half.cut += 1
            self._snaplen(touched)

    def _watch_udp(self, half: Half, key: bytes) -> None:
        """Have a half flow's payload looked at: all of it where a DNS port is involved, else the first."""
        port, other = (key[-4] << 8) | key[-3], (key[-2] << 8) | key[-1]
        width = (len(key) - 4) // 2
        ends = (key[:width], port, key[width : 2 * width], other)
        if port in DNS_PORTS or other in DNS_PORTS:
            half.watcher = DnsWatcher(self._dns, ends)
        elif half.watcher is None:
            half.watcher = self._datagrams.watch(half, ends)
