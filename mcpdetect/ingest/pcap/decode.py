"""From a frame to its flow: every layer but the common case, which ``capture`` reads itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcpdetect.ingest.dnswire import address_text
from mcpdetect.ingest.pcap.account import ABOVE_IP, Account
from mcpdetect.ingest.pcap.fragments import Datagram, Fragments
from mcpdetect.ingest.pcap.ledger import Ledger
from mcpdetect.ingest.pcap.link import ETHERNET, unwrap
from mcpdetect.ingest.pcap.transport import Transport
from mcpdetect.model.event import Event
from mcpdetect.model.net import IcmpError

__all__ = ["Decoder"]

_TCP, _UDP, _ICMP, _ICMPV6, _IPIP, _SIX, _GRE, _ESP, _AH = 6, 17, 1, 58, 4, 41, 47, 50, 51
_FRAGMENT = 44
_EXTENSIONS = frozenset({0, 43, 60, _AH, 135, 139, 140})  # IANA "IPv6 Extension Header Types" that name a next header
_PROTOCOLS = {1: "icmp", 47: "gre", 50: "esp", 58: "icmpv6", 132: "sctp"}
_ICMP_ERRORS = {_ICMP: frozenset({3, 4, 5, 11, 12}), _ICMPV6: frozenset({1, 2, 3, 4})}
_MOST_DEPTH = 4


class Decoder:
    """Decodes the packets of one capture.

    Attributes:
        account: the packet at hand.
        transport: what takes TCP and UDP.
    """

    def __init__(self, name: str, out: Callable[[Event], None], wanted: frozenset[str], ledger: Ledger) -> None:
        self.account = Account(name, out, wanted, ledger)
        self.transport = Transport(name, self.account, wanted)
        self._fragments = Fragments()

    def frame(self, link: int, frame: bytes, original: int) -> None:
        """Decode one frame of a supported link type; ``account`` knows its number and time."""
        self.account.cut = len(frame) < original
        self._link(link, frame, original, 0)
        self._report_failed()
        self.account.cut = False

    def close(self) -> Iterator[None]:
        """The capture is over: give out what is unfinished, pausing whenever some events may be taken."""
        self._fragments.close()
        self._report_failed()
        yield from self.transport.close()
        if self._fragments.overflows:
            self.account.ledger.add(
                "overflow", "too many unfinished IP fragments at once", None, ABOVE_IP, count=self._fragments.overflows
            )

    def _link(self, link: int, frame: bytes, original: int, depth: int) -> None:
        protocol, at = unwrap(link, frame)
        if protocol == "ip":
            self._ip(frame, at, original - at, depth)
        elif protocol == "arp":
            # 0001 0800 06 04 0001: Ethernet, IPv4, lengths, operation; then sender and target
            is_ipv4 = frame[at + 2 : at + 6] == b"\x08\x00\x06\x04" and len(frame) >= at + 28
            self.account.packet(
                "arp",
                original - at,
                frame[at + 14 : at + 18] if is_ipv4 else None,
                frame[at + 24 : at + 28] if is_ipv4 else None,
            )
            self.account.note_cut()
        elif protocol:
            self.account.packet(protocol, max(0, original - at))
            self.account.note_cut()
        else:
            self.account.undecodable(
                "the link layer header is cut" if self.account.cut else "the frame is too short", frame
            )

    def _ip(self, data: bytes, at: int, left: int, depth: int) -> None:
        """Decode an IP packet at ``at``; ``left`` is what the wire had from there on."""
        version = data[at] >> 4 if at < len(data) else 0
        if version == 4 and len(data) >= at + 20:
            header = (data[at] & 15) * 4
            total = ((data[at + 2] << 8) | data[at + 3]) or left  # 0: segmentation offload
            if header < 20 or total < header:
                self.account.undecodable("an IPv4 header whose lengths lie", data[at:])
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
            self.account.undecodable(
                "an IP header that is cut"
                if short and self.account.cut
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
        if self.account.cut:
            self.account.snaplen(ABOVE_IP if piece is None else ())
        found = self._fragments.add(
            key,
            source,
            address,
            protocol,
            offset,
            more,
            piece,
            max(0, end - at),
            self.account.number,
            self.account.t_ns,
        )
        if found is None:
            return
        datagram, whole = found
        here, self.account.number, self.account.cut = self.account.number, datagram.number, False
        if len(source) == 16 and (datagram.protocol in _EXTENSIONS):
            header = b"\x60\0\0\0\0\0" + bytes([datagram.protocol, 0]) + source + address
            self._ipv6(header + whole, 0, 40 + len(whole), depth + 1)
        else:
            self._transport(datagram.protocol, source, address, whole, 0, len(whole), depth)
        self.account.number = here

    def _report_failed(self) -> None:
        for datagram in self._fragments.failed:
            self._failed(datagram)
        self._fragments.failed.clear()

    def _failed(self, datagram: Datagram) -> None:
        number, time = self.account.number, self.account.t_ns
        self.account.number, self.account.t_ns = datagram.number, datagram.t_ns
        self.account.packet("fragment", datagram.original, datagram.source, datagram.address)
        self.account.ledger.add(
            "fragment", "fragmented packets that could not be put together", self.account.where(), ABOVE_IP
        )
        self.account.number, self.account.t_ns = number, time

    def _headless(self, source: bytes, address: bytes, size: int, reason: str, data: bytes) -> None:
        """Account for a packet whose addresses are known, but whose ports are not."""
        self.account.packet("truncated", size, source, address)
        if self.account.cut:
            self.account.snaplen(ABOVE_IP)
        else:
            self.account.undecodable(reason, data, ABOVE_IP)

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
                self.transport.tcp(source + address + data[at : at + 4], data, at, end)
            else:
                self.transport.udp(source + address + data[at : at + 4], data, at, end)
            return
        if protocol in (_ICMP, _ICMPV6):
            self._icmp(protocol, source, address, data, at, size, have)
            return
        if protocol in (_IPIP, _SIX, _GRE):
            self._tunnel(protocol, source, address, data, at, end, depth)
            return
        self.account.packet(_PROTOCOLS.get(protocol) or f"ip-{protocol}", size, source, address)
        if protocol == _ESP:
            self.account.ledger.add(
                "tunnel", "encrypted tunnels; what is inside cannot be seen", self.account.where(), ABOVE_IP
            )
        self.account.note_cut()

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
        self.account.packet(_PROTOCOLS.get(protocol) or f"ip-{protocol}", end - at, source, address, inner=inner)
        if inner_at < 0 or depth >= _MOST_DEPTH:
            self.account.ledger.add("tunnel", "tunnels that were not looked into", self.account.where(), ABOVE_IP)
            self.account.note_cut()
        elif is_frame:
            self._link(ETHERNET, data[inner_at:end], end - inner_at, depth + 1)
        else:
            self._ip(data[:end], inner_at, end - inner_at, depth + 1)

    def _icmp(self, protocol: int, source: bytes, address: bytes, data: bytes, at: int, size: int, have: int) -> None:
        kind = data[at] if have > 0 else None
        code = data[at + 1] if have > 1 else None
        self.account.packet(_PROTOCOLS[protocol], size, source, address, icmp=(kind, code))
        self.account.note_cut()
        if kind is None or code is None or kind not in _ICMP_ERRORS[protocol]:
            return
        quoted = at + 8
        error = IcmpError(kind, code, address_text(source), self.account.number)
        if protocol == _ICMP and len(data) >= quoted + 20 and data[quoted] >> 4 == 4:
            ports = quoted + (data[quoted] & 15) * 4
            key = data[quoted + 12 : quoted + 20] + data[ports : ports + 4]
            if len(key) == 12 and data[quoted + 9] in (_TCP, _UDP):
                self.transport.flows.attach(key, tcp=data[quoted + 9] == _TCP, error=error)
        elif protocol == _ICMPV6 and len(data) >= quoted + 44 and data[quoted] >> 4 == 6:
            key = data[quoted + 8 : quoted + 44]
            if data[quoted + 6] in (_TCP, _UDP):
                self.transport.flows.attach(key, tcp=data[quoted + 6] == _TCP, error=error)
