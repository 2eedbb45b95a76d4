"""DNS messages on the wire made into events: who asked whom, who answered, and what was no DNS at all."""

from __future__ import annotations

from collections.abc import Callable

from mcpdetect.ingest.dnswire import DnsFormatError, DnsMessage, address_text, parse_message
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.ingest.pcap.ledger import Ledger
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsAnswer, DnsQuery
from mcpdetect.model.place import Where

__all__ = ["DNS_PORTS", "DnsReader", "Ends"]

DNS_PORTS = frozenset({53, 5353, 5355})
"""Ports whose datagrams are DNS messages: DNS (RFC 1035), mDNS (RFC 6762) and LLMNR (RFC 4795)."""

_MOST_MEMO = 4096
_LONGEST_MEMO = 600
_EXCERPT = 64

Ends = tuple[bytes, int, bytes, int]
"""Raw source address, source port, raw destination address, destination port of one message."""


class DnsReader:
    """Makes events of messages. The messages of one capture repeat themselves: what they say is kept, within bounds.

    Args:
        name: the capture's name in places.
        out: receives the events.
        wanted: kinds to make; every message is read and accounted for all the same.
        ledger: receives losses.
        count: called for every message that could not be understood.
    """

    def __init__(
        self,
        name: str,
        out: Callable[[Event], None],
        wanted: frozenset[str],
        ledger: Ledger,
        count: Callable[[], None],
    ) -> None:
        self._name = name
        self._out = out
        self._queries = "dns.query" in wanted
        self._answers = "dns.answer" in wanted
        self._unparsed = "unparsed" in wanted
        self._ledger = ledger
        self._count = count
        self._memo: dict[bytes, DnsMessage] = {}

    def parse(self, data: bytes, cut: bool) -> DnsMessage:
        """Read a message, its id aside, once.

        Raises:
            DnsFormatError: see ``parse_message``.
        """
        if cut or len(data) > _LONGEST_MEMO:
            return parse_message(data, cut=cut)
        body = data[2:]
        message = self._memo.get(body)
        if message is None:
            message = parse_message(data)
            if len(self._memo) >= _MOST_MEMO:
                self._memo.clear()
            self._memo[body] = message
        return message

    def message(self, data: bytes, ends: Ends, transport: str, number: int, t_ns: int, *, cut: bool, end: int) -> bool:
        """Make the events of one message to or from a DNS port; return whether it was one.

        Args:
            data: the message.
            ends: its endpoints.
            transport: ``udp`` or ``tcp``.
            number: packet of its first byte.
            t_ns: time of that packet.
            cut: the capture holds only its beginning.
            end: packet of its last byte.
        """
        try:
            message = self.parse(data, cut)
        except DnsFormatError as error:
            self._broken(data, ends, transport, number, t_ns, str(error), cut)
            return False
        self.events(message, data, ends, transport, number, t_ns, end=end)
        if message.damage and not cut:
            asked = (data[4] << 8) | data[5]
            touches = [
                kind for kind, hit in (("dns.query", len(message.questions) < asked), ("dns.answer", True)) if hit
            ]
            if message.response or len(message.questions) < asked:
                self._tell(data, number, t_ns, message.damage, touches)
        return True

    def events(
        self, message: DnsMessage, data: bytes, ends: Ends, transport: str, number: int, t_ns: int, *, end: int
    ) -> None:
        """Make the events of a message that was read: ``ends`` decide who asked.

        A message *to* a DNS port is a question whatever its header claims: its names left that way. Only what comes
        from a DNS port to another, or from a multicast responder, answers.
        """
        source, source_port, address, port = ends
        where = Where(self._name, number, None if end == number else end, "packet")
        time = t_ns if t_ns != NO_TIME else None
        ident = (data[0] << 8) | data[1]
        if message.response and (port not in DNS_PORTS or (source_port == port and port != 53) or source_port == 53):
            if not self._answers:
                return
            server, client = address_text(source), address_text(address)
            for name, _, kind in message.questions or [(None, None, "")]:
                self._out(
                    DnsAnswer(
                        where,
                        time,
                        name,
                        kind,
                        message.rcode,
                        message.records,
                        seen_in="packets",
                        no_data=_no_data(message, kind),
                        client=client,
                        server=server,
                        transport=transport,
                        id=ident,
                    )
                )
            return
        if not self._queries:
            return
        client, server = address_text(source), address_text(address)
        for name, spelled, kind in message.questions or [(None, None, "")]:
            self._out(
                DnsQuery(
                    where,
                    time,
                    name,
                    kind,
                    seen_in="packets",
                    spelled=spelled,
                    client=client,
                    client_port=source_port,
                    server=server,
                    server_port=port,
                    transport=transport,
                    id=ident,
                )
            )

    def _broken(self, data: bytes, ends: Ends, transport: str, number: int, t_ns: int, reason: str, cut: bool) -> None:
        """Account for bytes at a DNS port that are no message; going there, they are a question with unknown name."""
        source, source_port, address, port = ends
        asks = port in DNS_PORTS
        if asks and self._queries:
            self._out(
                DnsQuery(
                    Where(self._name, number, None, "packet"),
                    t_ns if t_ns != NO_TIME else None,
                    None,
                    "",
                    seen_in="packets",
                    client=address_text(source),
                    client_port=source_port,
                    server=address_text(address),
                    server_port=port,
                    transport=transport,
                )
            )
        if not cut:
            touches = [kind for kind, hit in (("dns.query", asks), ("dns.answer", source_port in DNS_PORTS)) if hit]
            self._tell(data, number, t_ns, reason, touches)

    def _tell(self, data: bytes, number: int, t_ns: int, reason: str, touches: list[str]) -> None:
        where = Where(self._name, number, None, "packet")
        self._count()
        self._ledger.add("unparsed", "messages at a DNS port that are not well-formed DNS", where, touches)
        if self._unparsed:
            self._out(
                Unparsed(
                    where,
                    t_ns if t_ns != NO_TIME else None,
                    "packets",
                    f"malformed DNS: {reason}",
                    data[:_EXCERPT],
                    touches,
                )
            )


def _no_data(message: DnsMessage, kind: str) -> bool:
    """Return whether an answer says that the name has no record of the kind asked for."""
    if message.rcode != "NOERROR" or message.truncated or message.damage or not kind or kind == "ANY":
        return False
    return all(record.type != kind for record in message.records)
