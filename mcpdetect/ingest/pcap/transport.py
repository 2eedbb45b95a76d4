"""TCP segments and UDP datagrams: counted in their flow, and read while their payload is of interest."""

from __future__ import annotations

from mcpdetect.ingest.pcap.account import Account
from mcpdetect.ingest.pcap.datagrams import DNS_WATCHER, Datagrams, UdpWatcher
from mcpdetect.ingest.pcap.dns import DnsReader, asks
from mcpdetect.ingest.pcap.ends import DNS_PORTS, ports_of
from mcpdetect.ingest.pcap.flows import FlowTable, Half
from mcpdetect.ingest.pcap.ledger import NAMES
from mcpdetect.ingest.pcap.streamevents import StreamEvents
from mcpdetect.ingest.pcap.streams import TcpWatcher

__all__ = ["Transport"]


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

    def close(self) -> None:
        """The capture is over: give out every flow."""
        self.flows.close()
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
        flags = data[at + 13]
        sequence = int.from_bytes(data[at + 4 : at + 8], "big")
        half = self._tcp_half(key, flags, sequence)
        half.packets += 1
        half.last = max(half.last, account.t_ns)
        if flags & 0x02:
            if flags & 0x10:
                half.syn_ack += 1
            else:
                half.syn += 1
        half.fin += flags & 1
        half.rst += flags >> 2 & 1
        half.cut += account.cut
        header = (data[at + 12] >> 4) * 4
        if header < 20 or at + header > end:
            account.undecodable("a TCP header whose length lies", data[at:], NAMES)
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
                    (sequence + 1) & 0xFFFFFFFF if flags & 2 else sequence, payload, size, account.number, account.t_ns
                )
                touched = watcher.hidden
                if watcher.done:
                    half.watcher = None
        if account.cut:
            account.snaplen(touched)

    def _tcp_half(self, key: bytes, flags: int, sequence: int) -> Half:
        """Return the half flow of a segment, beginning a new flow where its flags say so."""
        flows = self.flows
        half = flows.tcp.get(key)
        begins = flags & 0x12 == 0x02
        if half is not None and begins and self._is_new(half, sequence):
            flows.finish(half.flow)
            half = None
        if half is None:
            half = flows.open(key, self._account.number, self._account.t_ns, tcp=True, answers=flags & 0x12 == 0x12)
        if flags & 0x02 and half.isn is None:
            half.isn = sequence
        if not half.packets:
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
        if half is half.flow.out or not half.flow.out.syn or not DNS_PORTS.isdisjoint(ports_of(key)):
            half.watcher = TcpWatcher(self._streams, key, None if half.isn is None else (half.isn + 1) & 0xFFFFFFFF)

    def udp(self, key: bytes, data: bytes, at: int, end: int) -> None:
        """Take a datagram whose 8-byte header is there; arguments as in ``tcp``."""
        account = self._account
        half = self.flows.udp.get(key)
        if half is None:
            half = self.flows.open(key, account.number, account.t_ns, tcp=False)
            if not DNS_PORTS.isdisjoint(ports_of(key)):
                half.flow.out.watcher = half.flow.back.watcher = DNS_WATCHER
        if not half.packets and half.watcher is None:
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
            if watcher is not None:
                length = (data[at + 4] << 8) | data[at + 5]
                stop = min(end, at + length) if length >= 8 else end
                payload = data[at + 8 : stop]
                if watcher is DNS_WATCHER:
                    self.dns.message(payload, key, "udp", account.number, account.t_ns, len(payload) < stop - at - 8)
                    if len(data) < stop:
                        touched = ("dns.query",) if asks(key) else ("dns.answer",)
                elif isinstance(watcher, UdpWatcher):
                    touched = watcher.feed(payload, account.number, account.t_ns, cut=len(data) < stop)
        if account.cut:
            half.cut += 1
            account.snaplen(touched)
