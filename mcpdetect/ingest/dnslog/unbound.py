"""The log of unbound with ``log-queries`` and ``log-replies`` (unbound 1.4 to 1.24, ``util/net_help.c``)."""

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

__all__ = ["UnboundLog", "unbound_line"]

# unbound[27638:0] info: ...   [6739:3] query: ...  (behind "unbound: " of a system log)
_LEVEL = re.compile(rb"(?:unbound)?\[\d{1,10}:[0-9a-fA-F]{1,8}\] ([a-z]{1,16}): ")
# 10.77.0.2 api.example.test. A IN
_QUERY = re.compile(rb"([0-9A-Fa-f:.]{2,45}) (\S{1,1100}) ([A-Z0-9-]{1,20}) ([A-Z]{2,4}|CLASS\d{1,5})")
# 10.77.0.2 api.example.test. A IN NOERROR 0.000000 1 61      127.0.0.1 - - - FORMERR - - -
# 10.77.0.2 api.example.test. A IN NOERROR 0.000000 1 61 on udp 127.0.0.1 53
_REPLY = re.compile(
    rb"([0-9A-Fa-f:.]{2,45}) (\S{1,1100}) ([A-Z0-9-]{1,20}) (-|[A-Z]{2,4}|CLASS\d{1,5}) ([A-Z0-9]{1,16}) "
    rb"(?:-|\d{1,10}\.\d{1,9}) (-|[01]) (?:-|\d{1,10})(?: on ([a-z]{1,8}) \S{1,64}(?: \d{1,5})?)?"
)
# example.test. static 10.77.0.2@34735 api.example.test. A IN
_LOCAL = re.compile(
    rb"\S{1,1100} ([a-z_]{1,32}) ([0-9A-Fa-f:.]{2,45})@\d{1,5} (\S{1,1100}) ([A-Z0-9-]{1,20}) "
    rb"(?:[A-Z]{2,4}|CLASS\d{1,5})"
)
# A zone of one of these types lets the question through to the resolver where it holds no data of its own.
_TRANSPARENT = frozenset({b"transparent", b"typetransparent", b"nodefault", b"inform", b"always_transparent"})
# start of service (unbound 1.17.1).
_STARTED = re.compile(rb"start of service \(unbound ([^)\s]{1,32})\)")
_MOST_OPEN = 65_536


def unbound_line(line: bytes) -> tuple[Stamp | None, bytes, bytes] | None:
    """Return time stamp, level and message of a line of unbound, None for any other line."""
    header = header_of(line)
    if header.tag is not None and header.tag != b"unbound":
        return None
    match = _LEVEL.match(line, header.start)
    return (header.stamp, match[1], line[match.end() :].rstrip(b" ")) if match else None


class UnboundLog(QueryLog):
    """A log of unbound.

    With ``log-replies`` alone each reply stands for its question as well. ``?`` in a name is any byte that is no
    letter, digit, ``-``, ``_`` or ``*``: such a name is ``altered``.

    Raises:
        UnknownFormat: no line of it is unbound's.
    """

    format: ClassVar[str] = "unbound"

    def _look(self) -> Stamp | None:
        for line in self._source.first_lines():
            if (read := unbound_line(line)) is not None:
                return read[0]
        raise UnknownFormat(
            "is no log of unbound",
            file=self._name,
            value=text_of(self._source.head[:60]),
            cause="not one of its lines has the form unbound[<pid>:<thread>] info:",
            hint="record with log-queries: yes and log-replies: yes, and give that log",
        )

    def _begin(self) -> None:
        super()._begin()
        self._open: dict[tuple[bytes, bytes, bytes], int] = {}
        self._local: tuple[bytes, bytes, bytes] | None = None

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        read = unbound_line(line)
        if read is None:
            if header_of(line).tag is not None:  # another program in the same system log
                self._counts["other"] += 1
            else:
                yield self._unparsed(where, line, "no line of unbound")
            return
        stamp, level, message = read
        t_ns = self._clock.time(stamp)
        local, self._local = self._local, None
        if level not in (b"info", b"query", b"reply"):
            self._counts["other"] += 1
        elif (match := _QUERY.fullmatch(message)) and level != b"reply" and address_of(match[1]) is not None:
            yield self._question(where, t_ns, match)
        elif (match := _REPLY.fullmatch(message)) and level != b"query" and address_of(match[1]) is not None:
            yield from self._reply(where, t_ns, match, local)
        elif match := _LOCAL.fullmatch(message):
            if match[1] not in _TRANSPARENT:
                self._local = (match[2], match[3], match[4])
            self._counts["other"] += 1
        elif level == b"info" and address_of(message.split(b" ", 1)[0]) is None:
            self._itself(message)
        else:
            yield self._unparsed(where, line, "a question or reply of unbound in an unknown form")

    def _question(self, where: Where, t_ns: int | None, match: re.Match[bytes]) -> Event:
        key = (match[1], match[2], match[3])
        if len(self._open) < _MOST_OPEN or key in self._open:
            self._open[key] = self._open.get(key, 0) + 1
        else:
            self._book.add(
                "overflow", "more open questions than are kept: replies may be taken for more", where, note=True
            )
        return self._asked(where, t_ns, match, None)

    def _asked(self, where: Where, t_ns: int | None, match: re.Match[bytes], transport: str | None) -> Event:
        client, name, record = match[1], match[2], match[3]
        # 127.0.0.1 - - - FORMERR - - -     127.0.0.2 null TYPE0 CLASS0 REFUSED 0.000000 1 12
        hidden = name == b"-" or (name == b"null" and record == b"TYPE0")
        return self._ask(
            where,
            t_ns,
            None if hidden else name,
            "" if hidden else record.decode("ascii"),
            client=address_of(client),
            transport=transport,
            altered=b"?" in name,
        )

    def _reply(
        self, where: Where, t_ns: int | None, match: re.Match[bytes], local: tuple[bytes, bytes, bytes] | None
    ) -> Iterator[Event]:
        key = (match[1], match[2], match[3])
        rcode = match[5].decode("ascii")
        transport = match[7].decode("ascii") if match[7] else None
        waiting = self._open.get(key, 0)
        if waiting > 1:
            self._open[key] = waiting - 1
        elif waiting:
            del self._open[key]
        else:
            yield self._asked(where, t_ns, match, transport)
        hidden = match[2] == b"-" or (match[2] == b"null" and match[3] == b"TYPE0")
        policy = local == key and rcode != "NOERROR"
        cached = match[6] == b"1" and local != key and not hidden
        yield self._answer(
            where,
            t_ns,
            None if hidden else match[2],
            "" if hidden else match[3].decode("ascii"),
            rcode,
            client=address_of(match[1]),
            transport=transport,
            altered=b"?" in match[2],
            source="policy" if policy else "cache" if cached else "",
        )

    def _itself(self, message: bytes) -> None:
        self._counts["other"] += 1
        if match := _STARTED.match(message):
            self._alive = True
            self._observation.tool = self._observation.tool or f"unbound {match[1].decode('ascii', 'replace')}"
