"""What the readers of all TCP connections of a capture share: the events and losses they make, the memory they hold."""

from __future__ import annotations

from collections.abc import Callable

from mcpdetect.ingest.pcap.dns import DnsReader
from mcpdetect.ingest.pcap.ends import ends_of
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.ingest.pcap.http import Request
from mcpdetect.ingest.pcap.ledger import Ledger
from mcpdetect.ingest.tls import Hello
from mcpdetect.model.event import Event
from mcpdetect.model.net import HttpRequest, TlsClientHello
from mcpdetect.model.place import Where

__all__ = ["STREAM_KINDS", "StreamEvents"]

STREAM_KINDS = ("dns.answer", "dns.query", "http.request", "tls.client_hello")
"""The kinds that are read out of TCP payload."""


class StreamEvents:
    """Makes the events of one capture's TCP payload.

    Args:
        name: the capture's name in places.
        out: receives events.
        wanted: the kinds to make.
        ledger: receives losses.
        dns: reads DNS messages.

    Attributes:
        dns: as given.
        held: bytes that all readers together keep.
    """

    def __init__(
        self, name: str, out: Callable[[Event], None], wanted: frozenset[str], ledger: Ledger, dns: DnsReader
    ) -> None:
        self._name = name
        self._out = out
        self._hellos = "tls.client_hello" in wanted
        self._requests = "http.request" in wanted
        self._ledger = ledger
        self.dns = dns
        self.held = 0

    def hello(self, hello: Hello, key: bytes, first: int, last: int, t_ns: int) -> None:
        """Tell a hello that begins in packet ``first`` and ends in packet ``last``."""
        if self._hellos:
            where = Where.__new__(Where)
            where.file, where.at, where.end, where.unit = self._name, first, None if last == first else last, "packet"
            event = TlsClientHello.__new__(TlsClientHello)  # field by field: the constructor takes three times as long
            event.kind = "tls.client_hello"
            event.seen_in = "packets"
            event.where = where
            event.t_ns = t_ns if t_ns != NO_TIME else None
            event.process = event.tid = event.socket = None
            event.source, event.source_port, event.address, event.port = ends_of(key)
            event.sni, event.alpn, event.ech, event.ja4 = hello.sni, hello.alpn, hello.ech, hello.ja4
            event.complete = hello.complete
            self._out(event)

    def request(self, request: Request, key: bytes, first: int, last: int, t_ns: int) -> None:
        """Tell a request whose head begins in packet ``first`` and ends in packet ``last``."""
        if self._requests:
            where = Where.__new__(Where)
            where.file, where.at, where.end, where.unit = self._name, first, last if last > first else None, "packet"
            event = HttpRequest.__new__(HttpRequest)
            event.kind = "http.request"
            event.seen_in = "packets"
            event.where = where
            event.t_ns = t_ns if t_ns != NO_TIME else None
            event.process = event.tid = event.socket = None
            event.method, event.target, event.host, _ = request
            event.source, event.source_port, event.address, event.port = ends_of(key)
            self._out(event)

    def gap(self, number: int, kinds: tuple[str, ...]) -> None:
        """Account for segments that are missing before packet ``number``."""
        self._lose("gap", "segments of TCP connections are missing in the capture", number, kinds)

    def overflow(self, number: int) -> None:
        """Account for a connection that was given up because too much was held."""
        self._lose(
            "overflow", "too many unfinished TCP connections at once; some were not looked into", number, STREAM_KINDS
        )

    def lost_requests(self, number: int) -> None:
        """Account for requests that may be behind packet ``number`` without a known beginning."""
        self._lose(
            "unparsed", "HTTP connections whose later requests could not be told apart", number, ("http.request",)
        )

    def _lose(self, what: str, detail: str, number: int, kinds: tuple[str, ...]) -> None:
        self._ledger.add(what, detail, Where(self._name, number, None, "packet"), kinds)
