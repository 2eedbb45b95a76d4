"""DNS messages on the wire made into events: who asked whom, who answered, and what was no DNS at all."""

from __future__ import annotations

from collections.abc import Callable

from mcpdetect.ingest.dnswire import (
    DnsFormatError,
    DnsMessage,
    Question,
    parse_message,
    plain_message,
    plain_question,
)
from mcpdetect.ingest.pcap.ends import DNS_PORTS, DnsWay, asks, ends_of
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.ingest.pcap.ledger import Ledger
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsAnswer, DnsQuery, DnsRecord
from mcpdetect.model.place import Where

__all__ = ["DnsReader"]


_MOST_MEMO = 20_000
_LONGEST_MEMO = 512
_EXCERPT = 64

# 0100 0001 0000 0000 0000: an ordinary question that wants recursion, and nothing with it
_PLAIN_QUESTION = b"\x01\0\0\x01\0\0\0\0\0\0"
_NO_QUESTION: list[Question] = [(None, None, "")]

_Said = tuple[Question, bool, str, list[DnsRecord], bool]
"""Of a message: its one question; whether it answers, rcode, records, no data."""

_new = object.__new__


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
        self._memo: dict[bytes, _Said] = {}

    def datagram(self, buffer: bytes, at: int, end: int, way: DnsWay, number: int, t_ns: int) -> None:
        """Make the event of a datagram that came whole to or from a DNS port.

        What it says is known where another one said the same, its id aside. The events are filled field by field:
        their constructors take three times as long.

        Args:
            buffer: what holds the message.
            at: where in it the message begins.
            end: where it ends.
            way: who sent it to whom.
            number: the packet's number.
            t_ns: its time.
        """
        question = None
        if buffer[at + 2 : at + 12] == _PLAIN_QUESTION:
            question = plain_question(buffer[at + 12 : end])
        if question is None:
            said = self._memo.get(buffer[at + 2 : end]) or self._read(buffer[at:end])
            if said is None:
                self.message(buffer[at:end], way[5], "udp", number, t_ns)
                return
            question, response, rcode, records, no_data = said
            if response and way[4]:
                if self._answers:
                    where = _new(Where)
                    where.file, where.at, where.end, where.unit = self._name, number, None, "packet"
                    answer = _new(DnsAnswer)
                    answer.kind = "dns.answer"
                    answer.seen_in = "packets"
                    answer.where = where
                    answer.t_ns = t_ns if t_ns != NO_TIME else None
                    answer.process = answer.tid = None
                    answer.name, _, answer.type = question
                    answer.rcode = rcode
                    answer.records = records
                    answer.source = ""
                    answer.no_data = no_data
                    answer.server, _, answer.client, _, _, _ = way
                    answer.transport = "udp"
                    answer.id = (buffer[at] << 8) | buffer[at + 1]
                    self._out(answer)
                return
        if self._queries:
            where = _new(Where)
            where.file, where.at, where.end, where.unit = self._name, number, None, "packet"
            query = _new(DnsQuery)
            query.kind = "dns.query"
            query.seen_in = "packets"
            query.where = where
            query.t_ns = t_ns if t_ns != NO_TIME else None
            query.process = query.tid = query.error = None
            query.altered = False
            query.name, query.spelled, query.type = question
            query.client, query.client_port, query.server, query.server_port, _, _ = way
            query.transport = "udp"
            query.id = (buffer[at] << 8) | buffer[at + 1]
            self._out(query)

    def _read(self, data: bytes) -> _Said | None:
        """Read a message for ``datagram`` and keep what it says; None where it is not sound or asks not one question.

        The memo is bounded; what is kept of a message is small, for long ones are not kept.
        """
        message = plain_message(data)
        if message is None:
            try:
                message = parse_message(data)
            except DnsFormatError:
                return None
            if message.damage or len(message.questions) != 1:
                return None
        question, records = message.questions[0], message.records
        no_data = message.response and not message.truncated and _no_data(message.rcode, records, question[2])
        said = (question, message.response, message.rcode, records, no_data)
        if len(data) <= _LONGEST_MEMO:
            if len(self._memo) >= _MOST_MEMO:
                self._memo.clear()
            self._memo[data[2:]] = said
        return said

    def message(
        self, data: bytes, key: bytes, transport: str, number: int, t_ns: int, cut: bool = False, end: int = 0
    ) -> bool:
        """Make the events of one message to or from a DNS port; return whether it was one.

        Args:
            data: the message.
            key: its endpoints.
            transport: ``udp`` or ``tcp``.
            number: packet of its first byte.
            t_ns: time of that packet.
            cut: the capture holds only its beginning.
            end: packet of its last byte, where that is another one.
        """
        try:
            message = parse_message(data, cut=cut)
        except DnsFormatError as error:
            self._broken(data, key, transport, number, t_ns, str(error), cut)
            return False
        self.events(message, data, key, transport, number, t_ns, end)
        if message.damage and not cut:
            missing = len(message.questions) < (data[4] << 8) | data[5]
            if missing or message.response:
                touches = ["dns.answer", "dns.query"] if missing else ["dns.answer"]
                self._tell(data, number, t_ns, message.damage, touches)
        return True

    def events(
        self, message: DnsMessage, data: bytes, key: bytes, transport: str, number: int, t_ns: int, end: int = 0
    ) -> None:
        """Make the events of a message that was read; arguments as in ``message``."""
        answers = message.response and not asks(key)
        if not (self._answers if answers else self._queries):
            return
        where = Where(self._name, number, end if end > number else None, "packet")
        time = t_ns if t_ns != NO_TIME else None
        source, source_port, address, port = ends_of(key)
        for name, spelled, kind in message.questions or _NO_QUESTION:
            if answers:
                answer = DnsAnswer(where, time, name, kind, message.rcode, message.records, seen_in="packets")
                answer.no_data = not (message.truncated or message.damage) and _no_data(
                    message.rcode, message.records, kind
                )
                answer.client = address
                answer.server = source
                answer.transport = transport
                answer.id = (data[0] << 8) | data[1]
                self._out(answer)
            else:
                query = DnsQuery(where, time, name, kind, seen_in="packets")
                query.spelled = spelled
                query.client = source
                query.client_port = source_port
                query.server = address
                query.server_port = port
                query.transport = transport
                query.id = (data[0] << 8) | data[1]
                self._out(query)

    def _broken(self, data: bytes, key: bytes, transport: str, number: int, t_ns: int, reason: str, cut: bool) -> None:
        """Account for bytes at a DNS port that are no message; going there, they are a question with unknown name."""
        source, source_port, address, port = ends_of(key)
        asked = port in DNS_PORTS
        if asked and self._queries:
            self._out(
                DnsQuery(
                    Where(self._name, number, None, "packet"),
                    t_ns if t_ns != NO_TIME else None,
                    None,
                    "",
                    seen_in="packets",
                    client=source,
                    client_port=source_port,
                    server=address,
                    server_port=port,
                    transport=transport,
                )
            )
        if not cut:
            touches = [kind for kind, hit in (("dns.query", asked), ("dns.answer", source_port in DNS_PORTS)) if hit]
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


def _no_data(rcode: str, records: list[DnsRecord], kind: str) -> bool:
    """Return whether a whole answer says that the name has no record of the kind asked for."""
    if rcode != "NOERROR" or not kind or kind == "ANY":
        return False
    return kind not in [record.type for record in records]
