"""The debug messages of systemd-resolved (246 to 257), from its journal as text or its standard error.

It answers through D-Bus, varlink and a stub on 127.0.0.53; each question makes one ``Looking up RR for``. Addresses of
answers are in no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.dnslog.names import address_of
from mcpdetect.ingest.dnslog.querylog import QueryLog
from mcpdetect.ingest.logclock import Stamp
from mcpdetect.ingest.logheader import header_of
from mcpdetect.model.event import Event
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of

__all__ = ["ResolvedLog", "resolved_line"]

# ApI.example.test IN A      evil\010x.test IN AAAA
_KEY = rb"((?:[^\s\\]|\\.){1,1100}+) ([A-Z0-9]{2,10}) ([A-Z0-9-]{1,20})"
# Looking up RR for api.example.test IN A.
_LOOKUP = re.compile(rb"Looking up RR for " + _KEY + rb"\.")
# Received dns UDP packet of size 57, ifindex=0, ttl=64, fragsize=0, sender=127.0.0.1, destination=127.0.0.53
_RECEIVED = re.compile(rb"Received \w{1,8} (UDP|TCP) packet of size \d{1,6}, .{0,120}?sender=([0-9A-Fa-f:.]{2,45}),")
# Got DNS stub UDP query packet for id 12425
_STUB = re.compile(rb"Got DNS stub (UDP|TCP) query packet for id (\d{1,5})")
# varlink-20: New incoming message: {"method":"io.systemd.Resolve.ResolveHostname",...
_VARLINK = re.compile(
    rb'varlink-\S{1,16}: (?:New incoming message|Received message): \{"method":"io\.systemd\.Resolve\.'
)
# Processing incoming packet of size 44 on transaction 7661 (rcode=NXDOMAIN).
_CODE = re.compile(rb"Processing incoming packet of size \d{1,6} on transaction (\d{1,5}) \(rcode=([A-Z0-9]{1,16})\)")
# Regular transaction 7661 for <nx.example.test IN A> on scope dns on */* now complete with <rcode-failure> from network
_COMPLETE = re.compile(
    rb"\w{1,16} transaction (\d{1,5}) for <" + _KEY + rb"> on scope .{1,120}? now complete with "
    rb"<([a-z-]{1,32})> from ([a-z-]{1,16})"
)
_ZONE = re.compile(rb"[A-Z]{2,5} ")
_MOST_OPEN = 65_536


def resolved_line(line: bytes) -> tuple[Stamp | None, bytes] | None:
    """Return time stamp and message of a line of systemd-resolved, None for one of another program.

    Lines of its standard error name no program; ``varlink-20:`` in front of such a message looks like one.
    """
    header = header_of(line)
    if header.tag == b"systemd-resolved":
        return header.stamp, line[header.start :]
    if header.tag is not None and not header.tag.startswith(b"varlink"):
        return None
    at = header.stamp.end if header.stamp is not None else 0
    while line[at : at + 1] == b" ":
        at += 1
    if match := _ZONE.match(line, at):  # CET: a zone's name that stamps do not know
        at = match.end()
    return header.stamp, line[at:]


class ResolvedLog(QueryLog):
    """A debug log of systemd-resolved (``resolvectl log-level debug``).

    Raises:
        UnknownFormat: no line of it is about a lookup.
    """

    format: ClassVar[str] = "systemd-resolved"

    def _look(self) -> Stamp | None:
        for line in self._source.first_lines():
            read = resolved_line(line)
            if read is not None and (_LOOKUP.fullmatch(read[1]) or _RECEIVED.match(read[1])):
                return read[0]
        raise UnknownFormat(
            "is no debug log of systemd-resolved",
            file=self._name,
            value=text_of(self._source.head[:60]),
            cause="its usual log names no lookup",
            hint="turn it on first: resolvectl log-level debug",
        )

    def _begin(self) -> None:
        super()._begin()
        self._received: tuple[bytes, bytes] | None = None
        self._asker: tuple[str | None, str | None, int | None] = (None, None, None)
        self._codes: dict[bytes, str] = {}

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        read = resolved_line(line)
        if read is None:
            self._counts["other"] += 1
            return
        stamp, message = read
        t_ns = self._clock.time(stamp)
        if match := _LOOKUP.fullmatch(message):
            client, transport, number = self._asker
            record = match[3].decode("ascii")
            query = self._ask(where, t_ns, match[1], record, client=client, transport=transport, escaped=True)
            query.id = number
            yield query
        elif match := _COMPLETE.match(message):
            yield from self._completed(where, t_ns, match)
        elif message.startswith(b"Looking up RR"):
            yield self._unparsed(where, line, "a lookup in an unknown form")
        else:
            self._counts["other"] += 1
            self._note(message)

    def _note(self, message: bytes) -> None:
        """Remember who asks, and what code a transaction met."""
        if match := _RECEIVED.match(message):
            self._received = (match[1], match[2])
        elif match := _STUB.match(message):
            transport, sender = self._received or (match[1], b"")
            same = transport == match[1]
            self._asker = (address_of(sender) if same else None, match[1].decode("ascii").lower(), int(match[2]))
        elif _VARLINK.match(message):
            self._asker = (None, "unix", None)
        elif match := _CODE.match(message):
            if len(self._codes) >= _MOST_OPEN:
                self._codes.clear()
            self._codes[match[1]] = "NOERROR" if match[2] == b"SUCCESS" else match[2].decode("ascii")
        elif message.startswith((b"Sending response packet", b"Got message type=method_call")):
            self._asker = (None, None, None)

    def _completed(self, where: Where, t_ns: int | None, match: re.Match[bytes]) -> Iterator[Event]:
        number, name, _, record, outcome, source = match.groups()
        code = self._codes.pop(number, "")
        rcode = "NOERROR" if outcome == b"success" else code if outcome == b"rcode-failure" else ""
        if not rcode:  # no answer came, or a cached one whose code is not told
            self._counts["other"] += 1
            return
        yield self._answer(
            where,
            t_ns,
            name,
            record.decode("ascii"),
            rcode,
            client=None,
            source="cache" if source == b"cache" else "hosts" if source == b"zone" else "upstream",
            escaped=True,
        )
