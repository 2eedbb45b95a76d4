"""The payload of one direction of a UDP conversation: QUIC Initial packets, and DNS that is not on a DNS port."""

from __future__ import annotations

from collections.abc import Callable

from mcpdetect.ingest.dnswire import DnsFormatError, parse_message
from mcpdetect.ingest.pcap.dns import DnsReader
from mcpdetect.ingest.pcap.ends import ends_of
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.ingest.pcap.flows import Half
from mcpdetect.ingest.pcap.ledger import Ledger
from mcpdetect.ingest.pcap.quic import HelloCollector, can_decrypt, read_initial
from mcpdetect.ingest.tls import Hello
from mcpdetect.model.event import Event
from mcpdetect.model.net import QuicInitial
from mcpdetect.model.place import Where

__all__ = ["Datagrams", "UdpWatcher", "is_query"]

_MOST_INITIALS = 16
_MOST_IDS = 64
_MOST_COLLECTORS = 2000


class Datagrams:
    """What all watchers of a capture share."""

    def __init__(
        self, name: str, out: Callable[[Event], None], wanted: frozenset[str], ledger: Ledger, dns: DnsReader
    ) -> None:
        self.name = name
        self.out = out
        self.initials = "quic.initial" in wanted
        self.ledger = ledger
        self.dns = dns
        self.collecting = 0

    def watch(self, half: Half, key: bytes) -> UdpWatcher:
        """Return a watcher for a half flow between ports that are not DNS's."""
        return UdpWatcher(self, half, key)


class UdpWatcher:
    """Looks at the first datagram of a half flow, and at the next ones while that one gave a reason."""

    __slots__ = ("_collector", "_first", "_half", "_key", "_last", "_seen", "_shared", "_t_ns")

    def __init__(self, shared: Datagrams, half: Half, key: bytes) -> None:
        self._shared = shared
        self._half = half
        self._key = key
        self._collector: HelloCollector | None = None
        self._first = 0
        self._last = 0
        self._t_ns = NO_TIME
        self._seen = 0

    def feed(self, data: bytes, number: int, t_ns: int, *, cut: bool) -> tuple[str, ...]:
        """Take one datagram; the half flow forgets this watcher when there is nothing more to look for.

        Returns:
            The event kinds that a cut may have hidden.
        """
        self._seen += 1
        if self._collector is not None:
            return self._initial(data, number, cut)
        flow = self._half.flow
        if self._half is flow.back and flow.dns_ids is not None:
            return self._answer(data, number, t_ns, cut)
        if is_query(data, cut=cut):
            return self._query(data, number, t_ns, cut)
        if self._seen > 1:
            return ()  # a half that asked before
        if self._half is flow.out and (initial := read_initial(data, cut=cut)) is not None:
            self._first, self._t_ns = number, t_ns
            self._collector = HelloCollector()
            self._collector.version = initial.version
            self._shared.collecting += 1
            return self._initial(data, number, cut)
        if self._half is flow.out or flow.dns_ids is None:
            self._half.watcher = None
        if not cut:
            return ()
        # a header that is cut, or a length that leads behind the cut
        return ("dns.query", "quic.initial") if len(data) < 12 else ("quic.initial",) if data[0] & 0x80 else ()

    def close(self) -> None:
        """The flow is over: tell a hello that never became whole."""
        if self._collector is not None:
            self._tell(self._collector.hello())

    def _query(self, data: bytes, number: int, t_ns: int, cut: bool) -> tuple[str, ...]:
        try:
            message = parse_message(data, cut=cut)
        except DnsFormatError:
            return ()
        flow = self._half.flow
        if flow.dns_ids is None:
            flow.dns_ids = set()
            if self._half is flow.out:
                flow.back.watcher = flow.back.watcher or UdpWatcher(self._shared, flow.back, flow.other)
        if len(flow.dns_ids) < _MOST_IDS:
            flow.dns_ids.add((data[0] << 8) | data[1])
        self._shared.dns.events(message, data, self._key, "udp", number, t_ns)
        return ("dns.query",) if cut else ()

    def _answer(self, data: bytes, number: int, t_ns: int, cut: bool) -> tuple[str, ...]:
        ids = self._half.flow.dns_ids or set()
        if len(data) < 12 or not data[2] & 0x80 or (data[0] << 8) | data[1] not in ids:
            return ("dns.answer",) if cut and len(data) < 12 else ()
        try:
            message = parse_message(data, cut=cut)
        except DnsFormatError:
            return ("dns.answer",)
        self._shared.dns.events(message, data, self._key, "udp", number, t_ns)
        return ("dns.answer",) if cut else ()

    def _initial(self, data: bytes, number: int, cut: bool) -> tuple[str, ...]:
        collector = self._collector
        if collector is None:
            return ()
        self._last = number
        if not can_decrypt():
            self._shared.ledger.add(
                "quic-sealed",
                "names in QUIC Initial packets are not read without the optional package cryptography",
                Where(self._shared.name, number, None, "packet"),
                note=True,
            )
            self._tell(Hello())
            return ()
        hello = collector.feed(data)
        if hello is not None:
            self._tell(hello)
        elif self._seen >= _MOST_INITIALS or self._shared.collecting > _MOST_COLLECTORS:
            self._tell(collector.hello())
        return ("quic.initial",) if cut and hello is None else ()

    def _tell(self, hello: Hello) -> None:
        collector = self._collector
        if collector is None:
            return
        self._collector = None
        self._half.watcher = None
        self._shared.collecting -= 1
        if self._shared.initials:
            source, source_port, address, port = ends_of(self._key)
            self._shared.out(
                QuicInitial(
                    Where(self._shared.name, self._first, None if self._last == self._first else self._last, "packet"),
                    self._t_ns if self._t_ns != NO_TIME else None,
                    source,
                    source_port,
                    address,
                    port,
                    collector.version,
                    hello.sni,
                    hello.complete,
                )
            )


def is_query(data: bytes, *, cut: bool = False) -> bool:
    """Return whether a datagram has the shape of one ordinary DNS question and nothing else, whatever its port.

    Strict, so that nothing else is mistaken for it: opcode 0, one question of class IN, CH or ANY without compression,
    at most one additional record, an OPT, and not a byte more. ``cut``: the end is missing, so less can be asked.
    """
    # 1234 0100 0001 0000 0000 0000 01 61 04 74657374 00 0001 0001
    if (
        len(data) < 12
        or data[2] & 0xFE
        or data[3] & 0xCF
        or data[4:10] != b"\0\x01\0\0\0\0"
        or data[10]
        or data[11] > 1
    ):
        return False
    at = 12
    while at < len(data) and data[at]:
        if data[at] > 63 or at > 266:
            return False
        at += 1 + data[at]
    if at + 5 > len(data):
        return cut
    if at == 12 or data[at + 1 : at + 3] == b"\0\0" or data[at + 3 : at + 5] not in (b"\0\x01", b"\0\x03", b"\0\xff"):
        return False
    at += 5
    if not data[11]:
        return at == len(data)
    if len(data) < at + 11:
        return cut
    return data[at : at + 3] == b"\0\0\x29" and (cut or at + 11 + ((data[at + 9] << 8) | data[at + 10]) == len(data))
