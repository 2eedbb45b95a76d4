"""One pass over a capture: the common packets read in one go, the others handed to the decoder."""

from __future__ import annotations

from collections.abc import Iterator

from mcpdetect.ingest.pcap.decode import Decoder
from mcpdetect.ingest.pcap.files import NO_TIME, ROOM, CaptureFile, Run
from mcpdetect.ingest.pcap.ledger import Ledger
from mcpdetect.ingest.pcap.link import lane, supported
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.place import Where

__all__ = ["Reading"]

_MOST_FOREIGN_LINKS = 16
_EXCERPT = 64
_BATCH = 64  # events given out together, at least
_PCAP_HEADER, _PCAPNG_HEADER = ("IIII", 16), ("IIIIIII", 28)
_ENHANCED = 6  # the block type of an enhanced packet


class Reading:
    """One pass over a capture.

    Attributes:
        file: what is read.
        decoder: what decodes it.
        number: packets so far.
        first_ns, last_ns: time of the first packet that has one, and the latest time.
    """

    def __init__(
        self, name: str, file: CaptureFile, decoder: Decoder, ledger: Ledger, out: list[Event], tell_faults: bool
    ) -> None:
        self._name = name
        self.file = file
        self.decoder = decoder
        self._ledger = ledger
        self._out = out
        self._tell_faults = tell_faults
        self._foreign_links: set[int] = set()
        self._next_scan = 0
        self.number = 0
        self.first_ns = NO_TIME
        self.last_ns = NO_TIME

    def batches(self) -> Iterator[list[Event]]:
        """Yield what the packets make, some events at a time, in a list that is to be emptied."""
        out = self._out
        for step in self.file.steps():
            if isinstance(step, Run):
                self._walk(step)
            elif step is not None:
                self._packet(*step)
            else:
                self._faults()
            if len(out) >= _BATCH:
                yield out
        self._faults()
        for _ in self.decoder.close():
            yield out
        yield out

    def _packet(self, t_ns: int, link: int, data: bytes, original: int) -> None:
        """Take one packet the careful way."""
        self.number += 1
        if t_ns > self.last_ns:
            if self.last_ns == NO_TIME:
                self.first_ns = t_ns
            self.last_ns = t_ns
            if t_ns >= self._next_scan:
                self._next_scan = self.decoder.transport.flows.scan(t_ns)
        if supported(link):
            account = self.decoder.account
            account.number, account.t_ns = self.number, t_ns
            self.decoder.frame(link, data, original)
        else:
            self._unsupported(link, data, self.number, t_ns)

    def _walk(self, run: Run) -> None:
        """Take the packets of a run, as far as it is plain; nearly all of a capture goes through here.

        The loop is the hot path and therefore written out. What it cannot tell at a glance goes the careful way.
        """
        decoder = self.decoder
        account = decoder.account
        transport = decoder.transport
        flows = transport.flows
        tcp_half, udp_half = flows.tcp.get, flows.udp.get
        read_segment, begin_udp, read_dns = transport.segment, transport.begin_udp, transport.dns.datagram
        link, buffer, at, unit, limit = run.link, run.buffer, run.at, run.unit, run.limit
        blocks = run.interface >= 0
        header, width = _PCAPNG_HEADER if blocks else _PCAP_HEADER
        known = supported(link)
        read, ip, ipv4, first4, ipv6, firsts6, fragments, read6 = lane(link, run.order, header, width)
        # what the frame must have before and behind the first byte of IP, counted from the frame's beginning
        before4, before6 = ip - width + 20, ip - width + 40
        least, least6 = before4 + 20, before6 + 20
        number, last_ns, next_scan = self.number, self.last_ns, self._next_scan
        second, second_ns = -1, 0
        stop = len(buffer) - ROOM
        whole = len(buffer)
        while at <= stop:
            if blocks:
                (
                    block, length, interface, high, low, size, original,
                    kind, first, total, total_low, fragment, protocol, key, offset, flags,
                ) = read(buffer, at)  # fmt: skip
                if (
                    block != _ENHANCED
                    or length != 32 + ((size + 3) & ~3)
                    or at + length > whole
                    or interface != run.interface
                    or size > limit
                    or buffer[at + length - 4 : at + length] != buffer[at + 4 : at + 8]
                ):
                    break
                t_ns = (high << 32 | low) * unit
                following = at + length
            else:
                (
                    seconds, part, size, original,
                    kind, first, total, total_low, fragment, protocol, key, offset, flags,
                ) = read(buffer, at)  # fmt: skip
                following = at + 16 + size
                if following > whole or size > limit:
                    break
                if seconds != second:
                    second, second_ns = seconds, seconds * 1_000_000_000
                t_ns = second_ns + part * unit
            number += 1
            if t_ns > last_ns:
                if last_ns == NO_TIME:
                    self.first_ns = t_ns
                last_ns = t_ns
                if t_ns >= next_scan:
                    next_scan = flows.scan(t_ns)
            # Whole, with room for the headers, no option, no fragment: endpoints are contiguous bytes.
            if original <= size >= least:
                left = -1
                if kind == ipv4 and first == first4:
                    left = (total << 8 | total_low) - 20
                    above = at + ip + 20
                    if left > size - before4 or fragment & fragments:
                        left = -1
                elif kind == ipv6 and first in firsts6 and size >= least6:
                    left, protocol, key, offset, flags = read6(buffer, at + ip)
                    above = at + ip + 40
                    if left > size - before6:
                        left = -1
                if left < 20:
                    pass
                elif protocol == 6:
                    half = tcp_half(key)
                    payload = left - (offset >> 4 << 2)
                    if offset >= 0x50 and payload >= 0:
                        if half is None or flags & 0x06 or not half.packets or (payload and half.watcher):
                            end = above + left
                            read_segment(half, key, buffer, above, end - payload, end, number, t_ns)
                        else:
                            # A known half flow, neither SYN nor RST, nothing to read: count it, and that is all.
                            half.packets += 1
                            if t_ns > half.last:
                                half.last = t_ns
                            if payload:
                                half.bytes += payload
                                half.data += 1
                            if flags & 1:
                                half.fin += 1
                        at = following
                        continue
                elif protocol == 17:
                    way = udp_half(key) or begin_udp(key, number, t_ns)
                    dns = way.dns
                    if dns is not None or (way.watcher is None and way.packets):
                        # The same for a datagram, and for one of a DNS port its message is read.
                        way.packets += 1
                        if t_ns > way.last:
                            way.last = t_ns
                        way.bytes += left - 8
                        way.data += 1
                        if dns is not None:
                            length = (buffer[above + 4] << 8) | buffer[above + 5]
                            end = above + (length if 8 <= length < left else left)
                            read_dns(buffer, above + 8, end, dns, number, t_ns)
                        at = following
                        continue
            begin = at + width
            data = buffer[begin : begin + size]
            if known:
                account.number, account.t_ns = number, t_ns
                decoder.frame(link, data, original if original > size else size)
            else:
                self._unsupported(link, data, number, t_ns)
            at = following
        run.at = at
        self.number, self.last_ns, self._next_scan = number, last_ns, next_scan

    def _unsupported(self, link: int, data: bytes, number: int, t_ns: int) -> None:
        """Count a packet of a link type that cannot be read: it may have been anything."""
        where = Where(self._name, number, None, "packet")
        reason = f"unsupported link type {link}"
        self.decoder.account.unparsed += 1
        if link in self._foreign_links or len(self._foreign_links) < _MOST_FOREIGN_LINKS:
            self._foreign_links.add(link)
            self._ledger.add("link-type", reason, where)
        else:
            self._ledger.add("link-type", "further unsupported link types", where)
        if self._tell_faults:
            self._out.append(Unparsed(where, t_ns if t_ns != NO_TIME else None, "packets", reason, data[:_EXCERPT]))

    def _faults(self) -> None:
        """Account for what the container's reader met."""
        for fault in self.file.faults:
            where = None if fault.offset is None else Where(self._name, fault.offset, None, "offset")
            self._ledger.add(fault.what, fault.detail, where, count=fault.count, note=fault.note)
            if where is not None:
                self.decoder.account.unparsed += 1
                if self._tell_faults:
                    self._out.append(Unparsed(where, None, "packets", f"{fault.detail}: {fault.reason}"))
        self.file.faults.clear()
