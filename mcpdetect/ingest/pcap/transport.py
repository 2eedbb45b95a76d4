"""TCP segments and UDP datagrams: counted in their flow, and read while their payload is of interest."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from mcpdetect.ingest.pcap.account import Account
from mcpdetect.ingest.pcap.datagrams import Datagrams, UdpWatcher
from mcpdetect.ingest.pcap.dns import DnsReader
from mcpdetect.ingest.pcap.ends import DNS_PORTS, asks, dns_way
from mcpdetect.ingest.pcap.flows import FlowTable, Half, TcpHalf
from mcpdetect.ingest.pcap.ledger import NAMES
from mcpdetect.ingest.pcap.streamevents import StreamEvents
from mcpdetect.ingest.pcap.streams import TcpWatcher
from mcpdetect.ingest.pcap.unread import MIDSTREAM, UNREAD, Unread

__all__ = ["Transport"]

_DNS_PORTS = frozenset(port.to_bytes(2, "big") for port in DNS_PORTS)
_SEQUENCE: Callable[[bytes, int], tuple[int]] = struct.Struct("!I").unpack_from


class Transport:
    """Counts and reads what is above IP.

    Attributes:
        flows: the flow table, whose dictionaries the fast lane looks into.
        dns: reads messages to and from DNS ports.
    """

    def __init__(self, name: str, account: Account, wanted: frozenset[str]) -> None:
        self._account = account
        out, ledger = account.out, account.ledger
        self.flows = FlowTable(name, out if "net.flow" in wanted else None)
        self.dns = DnsReader(name, out, wanted, ledger, account.count)
        self._streams = StreamEvents(name, out, wanted, ledger, self.dns)
        self._datagrams = Datagrams(name, out, wanted, ledger, self.dns)

    def close(self) -> Iterator[None]:
        """The capture is over: give out every flow, pausing whenever some events may be taken."""
        yield from self.flows.close()
        ledger = self._account.ledger
        if self.flows.overflows:
            ledger.add(
                "overflow",
                "too many live flows at once; some were split in two",
                count=self.flows.overflows,
                note=True,
            )
        if self.flows.unkept_icmp:
            ledger.add(
                "overflow", "more ICMP errors of one flow than are kept", count=self.flows.unkept_icmp, note=True
            )

    def tcp(self, key: bytes, data: bytes, at: int, end: int) -> None:
        """Take a TCP segment.

        Args:
            key: source, destination, ports.
            data: the packet.
            at: where the TCP header begins; all of its 20 bytes are there.
            end: where the payload ends by the IP header, perhaps behind what was captured.
        """
        account = self._account
        start = at + (data[at + 12] >> 4) * 4
        lies = start < at + 20 or start > end
        half = self.flows.tcp.get(key)
        touched = self.segment(half, key, data, at, end if lies else start, end, account.number, account.t_ns)
        if account.cut:
            self.flows.tcp[key].cut += 1
        if lies:
            account.undecodable("a TCP header whose length lies", data[at:], NAMES)
        elif account.cut:
            account.snaplen(touched)

    def segment(
        self, half: TcpHalf | None, key: bytes, data: bytes, at: int, start: int, end: int, number: int, t_ns: int
    ) -> tuple[str, ...]:
        """Count a segment, and read its payload where that is of interest.

        Args:
            half: what the flow table has for ``key``.
            key: source, destination, ports.
            data: what holds the packet.
            at: where in it the TCP header begins.
            start: where the payload begins.
            end: where it ends on the wire.
            number: the packet's number.
            t_ns: its time.

        Returns:
            The event kinds that it may have hidden because it was cut.
        """
        flags = data[at + 13]
        size = end - start
        sequence = 0
        if flags & 0x02:
            sequence = _SEQUENCE(data, at + 4)[0]
            if half is not None and not flags & 0x10 and _is_new(half, sequence):
                self.flows.finish(half.flow)
                half = None
            if half is None:
                half = self.flows.open_tcp(key, number, t_ns, answers=flags & 0x10 != 0)
            if half.isn is None:
                half.isn = sequence
            if flags & 0x10:
                half.syn_ack += 1
            else:
                half.syn += 1
        elif half is None:
            half = self.flows.open_tcp(key, number, t_ns, answers=False)
        if not half.packets:
            # The payload that is looked at: the client's, both of DNS, and both where the client is not known.
            out = half.flow.out
            if half is out or not out.syn or key[-4:-2] in _DNS_PORTS or key[-2:] in _DNS_PORTS:
                half.watcher = MIDSTREAM if half.isn is None else UNREAD
        half.packets += 1
        if t_ns > half.last:
            half.last = t_ns
        if flags & 0x05:
            half.fin += flags & 1
            half.rst += flags >> 2 & 1
        if size <= 0:
            return ()
        half.bytes += size
        half.data += 1
        watcher = half.watcher
        if watcher is None:
            return ()
        # a SYN takes one sequence number; data on it (TCP Fast Open) come behind that
        sequence = (sequence + 1) & 0xFFFFFFFF if flags & 2 else _SEQUENCE(data, at + 4)[0]
        payload = data[start:end]
        if isinstance(watcher, Unread):
            watcher = watcher.begin(self._streams, half.isn, sequence, payload, size, key, number, t_ns)
            half.watcher = watcher
        if not isinstance(watcher, TcpWatcher):
            return ()
        watcher.feed(sequence, payload, size, number, t_ns)
        if watcher.done:
            half.watcher = None
        return watcher.hidden

    def begin_udp(self, key: bytes, number: int, t_ns: int) -> Half:
        """Begin the flow of a datagram, whose ``key`` is not in the table; return the half, which has no packet yet."""
        half = self.flows.open_udp(key, number, t_ns)
        if key[-4:-2] in _DNS_PORTS or key[-2:] in _DNS_PORTS:
            flow = half.flow
            flow.out.dns = dns_way(flow.key)
            flow.back.dns = dns_way(flow.other)
        return half

    def udp(self, key: bytes, data: bytes, at: int, end: int) -> None:
        """Take a datagram whose 8-byte header is there; arguments as in ``tcp``."""
        account = self._account
        half = self.flows.udp.get(key) or self.begin_udp(key, account.number, account.t_ns)
        way = half.dns
        if not half.packets and way is None and half.watcher is None:
            half.watcher = self._datagrams.watch(half, key)
        half.packets += 1
        if account.t_ns > half.last:
            half.last = account.t_ns
        size = end - at - 8
        touched: tuple[str, ...] = ()
        if size > 0:
            half.bytes += size
            half.data += 1
            watcher = half.watcher
            if way is not None or watcher is not None:
                length = (data[at + 4] << 8) | data[at + 5]
                stop = min(end, at + length) if length >= 8 else end
                payload = data[at + 8 : stop]
                cut = len(payload) < stop - at - 8
                if way is not None and not cut:
                    self.dns.datagram(payload, 0, len(payload), way, account.number, account.t_ns)
                elif way is not None:
                    self.dns.message(payload, key, "udp", account.number, account.t_ns, cut)
                    if len(data) < stop:
                        touched = ("dns.query",) if asks(key) else ("dns.answer",)
                elif isinstance(watcher, UdpWatcher):
                    touched = watcher.feed(payload, account.number, account.t_ns, cut=len(data) < stop)
        if account.cut:
            half.cut += 1
            account.snaplen(touched)


def _is_new(half: TcpHalf, sequence: int) -> bool:
    """Whether a SYN on a known half flow begins another connection between the same ends."""
    if half.isn is not None:
        return half.isn != sequence
    # not the very first packet of this direction, and no simultaneous open
    return half.packets > 0 or half.flow.closed or (half is half.flow.back and not half.flow.out.syn)
