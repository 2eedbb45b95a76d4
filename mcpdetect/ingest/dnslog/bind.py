r"""The query log of BIND (9.4 to 9.20, ``lib/ns/query.c``), with or without time and category."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.dnslog.names import address_of
from mcpdetect.ingest.dnslog.querylog import QueryLog
from mcpdetect.ingest.logclock import Stamp, stamp_at
from mcpdetect.ingest.logheader import header_of
from mcpdetect.model.event import Event
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of

__all__ = ["BindLog", "bind_line"]

# queries: info: client @0x7f9041aeb098 10.77.0.2#39617 (API.example.test): view sandbox: query: ...
# client 192.0.2.1#53053/key mykey (www.test): query: ...      client 192.0.2.1#1053: query: ...
# Names hold no bare space: BIND escapes everything but printable bytes, and ( ) ; $ @ " \ . too.
_CLIENT = re.compile(
    rb"(?:[a-z-]{1,32}: )?(?:(?:info|notice|warning|error|critical|dynamic|debug \d{1,3}): )?"
    rb"client (?:@0x[0-9a-f]{1,16} )?([0-9A-Fa-f.:]{2,45}(?:%[^\s#]{1,32})?)#(\d{1,5})"
    rb"(?:/key \S{1,1100})?(?: \((?:[^\s\\]|\\.){1,1100}\))?: (?:view \S{1,128}: )?"
)
# query: api.example.test IN A +E(0)TK (10.77.0.1)      query: edu.test IN ANY +
# query: api.example.test IN A +E(0) (10.77.0.1) [ECS 192.0.2.0/24/0]
_QUERY = re.compile(
    rb"query: ((?:[^\s\\]|\\.){1,1100}+) ([A-Z0-9]{2,10}) ([A-Z0-9-]{1,20})(?: ([+-]\S{0,64}))?"
    rb"(?: \(([0-9A-Fa-f.:]{2,45})(?:%\S{1,32})?\))?(?: .{0,300})?"
)
# query failed (SERVFAIL) for evil\010x.test/IN/A at query.c:6426
_FAILED = re.compile(
    rb"query failed \(([^()]{1,64})\) for ((?:[^\s\\]|\\.){1,1100})/[A-Z0-9]{2,10}/([A-Z0-9-]{1,20}) at \S+"
)
# query 'api.example.test/A/IN' denied      query (cache) 'a.test/A/IN' denied (allow-query-cache did not match)
_DENIED = re.compile(
    rb"query (?:\(cache\) )?'((?:[^\s\\]|\\.){1,1100})/([A-Z0-9-]{1,20})/[A-Z0-9]{2,10}' denied(?: .{0,200})?"
)
# all zones loaded      running
_RUNNING = re.compile(rb"(?:[a-z-]{1,32}: )?(?:[a-z]{1,16}: )?(?:all zones loaded|running|starting BIND (\S{1,32}).*)")
_RCODES = {b"REFUSED": "REFUSED", b"NXDOMAIN": "NXDOMAIN", b"FORMERR": "FORMERR", b"NOTIMP": "NOTIMP"}


def bind_line(line: bytes) -> tuple[Stamp | None, bytes] | None:
    """Return time stamp and message of a line that may be BIND's, None for a line of another program.

    A line without time is BIND's only if it begins as a query line does.
    """
    stamp = stamp_at(line)
    if stamp is not None:
        at = stamp.end + 1 if line[stamp.end : stamp.end + 1] == b" " else stamp.end
        if line[:1] != b"[" and _CLIENT.match(line, at):
            return stamp, line[at:]
    header = header_of(line)
    if header.tag == b"named":
        return header.stamp, line[header.start :]
    if stamp is None:
        return (None, line) if _CLIENT.match(line) else None
    # 30-Nov-2026 14:38:54.157 all zones loaded: the date form is BIND's own
    return (stamp, line[at:]) if line[2:3] == b"-" or header.tag is None else None


class BindLog(QueryLog):
    """A log of BIND's ``queries`` category, ``query-errors`` and ``security`` among it or not.

    Raises:
        UnknownFormat: no line of it has the form of a client's question.
    """

    format: ClassVar[str] = "bind"

    def _look(self) -> Stamp | None:
        first: Stamp | None = None
        for line in self._source.first_lines():
            read = bind_line(line)
            if read is not None:
                first = first or read[0]
                if _CLIENT.match(read[1]) or _RUNNING.fullmatch(read[1]):
                    return first
        raise UnknownFormat(
            "is no query log of BIND",
            file=self._name,
            value=text_of(self._source.head[:60]),
            cause="not one of its lines has the form client <address>#<port>: query:",
            hint="turn it on with querylog yes, or a logging channel for category queries",
        )

    def _begin(self) -> None:
        super()._begin()
        self._refused: tuple[bytes, bytes] | None = None

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        read = bind_line(line)
        if read is None:
            if header_of(line).tag is not None:  # another program in the same system log
                self._counts["other"] += 1
            else:
                yield self._unparsed(where, line, "no line of BIND")
            return
        stamp, message = read
        t_ns = self._clock.time(stamp)
        match = _CLIENT.match(message)
        if match is None:
            self._itself(message)
            return
        client, port = address_of(match[1]), self._port(match[2])
        said = message[match.end() :]
        if client is None or port is None:
            yield self._unparsed(where, line, "a client's address is none")
        elif query := _QUERY.fullmatch(said):
            flags = query[4] or b""
            # + or - (recursion), then S, E(version), T, D, C, V, K
            transport = ("tcp" if b"T" in flags else "udp") if flags else None
            asked = self._ask(
                where,
                t_ns,
                query[1],
                query[3].decode("ascii"),
                client=client,
                port=port,
                transport=transport,
                escaped=True,
            )
            asked.server = address_of(query[5] or b"")
            yield asked
        elif denied := _DENIED.fullmatch(said):
            self._refused = (match[0], denied[1])
            yield self._code(where, t_ns, client, denied[1], denied[2], "REFUSED")
        elif failed := _FAILED.fullmatch(said):
            if self._refused == (match[0], failed[2]):  # the same refusal, told twice
                self._counts["other"] += 1
            else:
                yield self._code(where, t_ns, client, failed[2], failed[3], _RCODES.get(failed[1], "SERVFAIL"))
            self._refused = None
        elif b"query: " in said or said.startswith((b"query ", b"query(")):
            yield self._unparsed(where, line, "a question in an unknown form")
        else:
            self._counts["other"] += 1

    def _code(self, where: Where, t_ns: int | None, client: str, name: bytes, record: bytes, rcode: str) -> Event:
        return self._answer(
            where,
            t_ns,
            name,
            record.decode("ascii"),
            rcode,
            client=client,
            source="policy" if rcode == "REFUSED" else "",
            escaped=True,
        )

    def _itself(self, message: bytes) -> None:
        self._counts["other"] += 1
        if match := _RUNNING.fullmatch(message):
            self._alive = True
            if match[1]:
                self._observation.tool = self._observation.tool or f"BIND {match[1].decode('ascii', 'replace')}"
