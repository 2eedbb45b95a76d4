"""The adapter of packet captures: opens the file, reads the common packets itself, hands the others to the decoder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcpdetect.errors import InputError
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.opener import Stream, open_evidence
from mcpdetect.ingest.pcap.datagrams import DNS_WATCHER
from mcpdetect.ingest.pcap.decode import Decoder
from mcpdetect.ingest.pcap.files import FAULT, NO_TIME, CaptureFile, PcapFile
from mcpdetect.ingest.pcap.ledger import ALL_KINDS, Ledger
from mcpdetect.ingest.pcap.link import LAYOUTS, RAW, supported
from mcpdetect.ingest.pcap.pcapng import MAGIC, PcapngFile
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where

__all__ = ["PacketCapture"]

_EVERYTHING = frozenset({*ALL_KINDS, "unparsed"})
_MOST_FOREIGN_LINKS = 16
_EXCERPT = 64
_BATCH = 64  # events given out together, at least
_NO_LAYOUT = LAYOUTS[RAW]._replace(ipv4=b"-", ipv6=b"-")


class PacketCapture:
    """One pcap or pcapng file, compressed or not.

    Args:
        path: the file.
        name: its name in places; the path where None.
        declared: what a manifest says about it.

    Raises:
        UnknownFormat: it is no packet capture, or one of a kind that is not supported.
        InputError: it cannot be opened, or ends within its header.
    """

    def __init__(self, path: Path, name: str | None = None, declared: Declared | None = None) -> None:
        self._path = path
        self._name = name or str(path)
        self._declared = declared
        stream = open_evidence(path, self._name)
        try:
            file = _open(stream)
        except InputError:
            stream.close()
            raise
        # a pipe can be read once only, so it stays open until then
        self._opened = (stream, file) if path.is_fifo() else None
        if self._opened is None:
            stream.close()
        self._observation = Observation("packets", self._name, file.format, proof="declared" if declared else "absent")
        if declared is not None:
            self._observation.watches = dict.fromkeys(ALL_KINDS, "declared")
        self._describe(file)

    @property
    def observation(self) -> Observation:
        """What the file can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the events of the wanted kinds (None: all); every packet is read and counted either way."""
        out: list[Event] = []
        ledger = Ledger()
        decoder = Decoder(self._name, out.append, _EVERYTHING if wanted is None else wanted, ledger)
        stream, file = self._opened or self._open()
        self._opened = None
        with stream:
            reading = _Reading(self._name, file, decoder, ledger, out, wanted is None or "unparsed" in wanted)
            for batch in reading.batches():
                yield from batch
                batch.clear()
            self._describe(file)
        self._conclude(reading, ledger)

    def _open(self) -> tuple[Stream, CaptureFile]:
        stream = open_evidence(self._path, self._name)
        return stream, _open(stream)

    def _describe(self, file: CaptureFile) -> None:
        """State what the file's headers say."""
        observation, declared = self._observation, self._declared
        observation.tool = (declared and declared.tool) or file.tool
        observation.options = list(declared.options) if declared and declared.options else list(file.options)
        observation.scope = (declared and declared.scope) or (", ".join(file.interfaces) or None)

    def _conclude(self, reading: _Reading, ledger: Ledger) -> None:
        """Set everything that is known only at the end."""
        observation, declared = self._observation, self._declared
        for option in reading.file.options:
            if option.startswith("filter "):
                ledger.add("filter", "the recorder kept only packets that passed a capture filter")
        observation.proof = "declared" if declared else "inferred" if reading.number else "absent"
        observation.watches = dict.fromkeys(ALL_KINDS, observation.proof) if observation.proof != "absent" else {}
        observation.clock = "epoch" if reading.first_ns != NO_TIME or not reading.number else "none"
        observation.begin_ns = (
            declared.begin_ns if declared and declared.begin_ns is not None else _known(reading.first_ns)
        )
        observation.end_ns = declared.end_ns if declared and declared.end_ns is not None else _known(reading.last_ns)
        observation.complete = declared.complete if declared else reading.file.closed
        observation.counts = {"packets": reading.number, "unparsed": reading.decoder.account.unparsed}
        observation.losses = [*(declared.losses if declared else []), *ledger.losses()]


def _known(time_ns: int) -> int | None:
    return time_ns if time_ns != NO_TIME else None


def _open(stream: Stream) -> CaptureFile:
    head = stream.read_exactly(4)
    return PcapngFile(stream, head) if head == MAGIC else PcapFile(stream, head)


class _Reading:
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
        self.number = 0
        self.first_ns = NO_TIME
        self.last_ns = NO_TIME

    def batches(self) -> Iterator[list[Event]]:
        """Yield what the packets make, some events at a time, in a list that is to be emptied.

        The loop below is the hot path and therefore written out.
        """
        out = self._out
        decoder = self.decoder
        account = decoder.account
        transport = decoder.transport
        flows = transport.flows
        tcp, udp = flows.tcp, flows.udp
        read_segment, begin_udp, read_dns = transport.segment, transport.begin_udp, transport.dns.datagram
        link_now = last_ns = NO_TIME
        known = False
        ip_at, _, ipv4, ipv6, firsts, read4, read6 = _NO_LAYOUT
        needed = wider = number = next_scan = 0
        for t_ns, link, buffer, at, size, original in self.file.packets():
            number += 1
            if link != link_now:
                if link == FAULT:
                    number -= 1
                    self._faults()
                    yield out
                    continue
                link_now = link
                known = supported(link)
                ip_at, _, ipv4, ipv6, firsts, read4, read6 = LAYOUTS.get(link, _NO_LAYOUT)
                needed, wider = ip_at + 40, ip_at + 60
            if t_ns > last_ns:
                if last_ns == NO_TIME:
                    self.first_ns = t_ns
                last_ns = t_ns
                if t_ns >= next_scan:
                    next_scan = flows.scan(t_ns)
                    yield out
            # Whole, with room for the headers, no option, no fragment: endpoints are contiguous bytes.
            if size == original and size >= needed:
                above = 0
                kind, first, end, fragment, protocol, key, width, flags = read4(buffer, at)
                if first == 0x45 and kind == ipv4:
                    if 40 <= end <= size - ip_at and not fragment & 0x3FFF:
                        above = at + ip_at + 20
                        end += above - 20
                elif kind == ipv6 and size >= wider and first in firsts:
                    end, protocol, key, width, flags = read6(buffer, at)
                    if 20 <= end <= size - ip_at - 40:
                        above = at + ip_at + 40
                        end += above
                if above:
                    if protocol == 6:
                        half = tcp.get(key)
                        header = width >> 4 << 2
                        payload = end - above - header
                        if header >= 20 and payload >= 0:
                            if half is None or flags & 0x06 or not half.packets or (payload and half.watcher):
                                read_segment(half, key, buffer, above, end - payload, end, number, t_ns)
                                if len(out) >= _BATCH:
                                    yield out
                                continue
                            # A known half flow, neither SYN nor RST, nothing to read: count it, and that is all.
                            half.packets += 1
                            if t_ns > half.last:
                                half.last = t_ns
                            if payload:
                                half.bytes += payload
                                half.data += 1
                            if flags & 1:
                                half.fin += 1
                            continue
                        account.number, account.t_ns = number, t_ns
                        transport.tcp(key, buffer[at : at + size], above - at, end - at)
                        continue
                    if protocol == 17:
                        way = udp.get(key)
                        if way is None:
                            way = begin_udp(key, number, t_ns)
                        watcher = way.watcher
                        # The same for a datagram, and for one of a DNS port its message is read.
                        if watcher is DNS_WATCHER or (watcher is None and way.packets):
                            way.packets += 1
                            if t_ns > way.last:
                                way.last = t_ns
                            way.bytes += end - above - 8
                            way.data += 1
                            if watcher is None:
                                continue
                            length = (buffer[above + 4] << 8) | buffer[above + 5]
                            if 8 <= length < end - above:
                                end = above + length
                            read_dns(buffer[above + 8 : end], key, number, t_ns)
                            if len(out) >= _BATCH:
                                yield out
                            continue
                        account.number, account.t_ns = number, t_ns
                        transport.udp(key, buffer[at : at + size], above - at, end - at)
                        continue
            data = buffer[at : at + size]
            if known:
                account.number, account.t_ns = number, t_ns
                decoder.frame(link, data, original)
            else:
                self._unsupported(link, data, number, t_ns)
            if len(out) >= _BATCH:
                yield out
        self.number = number
        self.last_ns = last_ns
        self._faults()
        for _ in decoder.close():
            yield out
        yield out

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
            self._out.append(Unparsed(where, _known(t_ns), "packets", reason, data[:_EXCERPT]))

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
