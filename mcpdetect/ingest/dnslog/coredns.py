"""CoreDNS's ``log`` plug-in in its common and combined form (coredns.io/plugins/log)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.dnslog.names import address_of
from mcpdetect.ingest.dnslog.querylog import QueryLog
from mcpdetect.ingest.logclock import Stamp, stamp_at
from mcpdetect.model.event import Event
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of

__all__ = ["CoreDnsLog", "coredns_line"]

# 2026-11-30T11:21:18.000000000Z stdout F [INFO] ...   (Kubernetes' container logs)
_CONTAINER = re.compile(rb"(?:stdout|stderr) ([FP]) ")
_LEVEL = re.compile(rb"\[(INFO|DEBUG|WARNING|ERROR|FATAL|PANIC)\] ")
# [2001:db8:77::2]:50759 - 29008 "A IN api.example.test. udp 41 false 4096" NOERROR qr,rd,ra,ad 68 0.037990251s
# [fe80::abcd:abcd%!l(MISSING)an0]:54939 - 57566 "A IN foo.%!s(MISSING).example.test. udp 43 false 4096" NXDOMAIN ...
_QUESTION = re.compile(
    rb"(?:\[([^\[\]\s]{2,80})\]|([0-9.]{7,15})):(\d{1,5}) - (\d{1,5}) "
    rb'"([A-Z0-9-]{1,20}) ([A-Z0-9]{2,10}) ((?:[^\s\\]|\\.){1,1100}+) ([a-z0-9-]{1,16}) '
    rb'\d{1,10} (?:true|false) \d{1,10}" '
    rb"(-|[A-Z0-9]{1,16}) \S{1,64} \d{1,10} \S{1,32}"
)
# What Go's fmt prints for a verb that a hostile "%" in a name made, of a version before its names were escaped.
_DAMAGE = re.compile(rb"%!.\(MISSING\)")
# fe80::1%eth0
_ZONED = re.compile(rb"[0-9A-Fa-f:.]++(?:%[\w.-]{1,32})?")
# Lines that CoreDNS writes about itself at its start and end.
_ITSELF = re.compile(
    rb"plugin/|Reloading|Successfully reloaded|SIG[A-Z0-9]{2,8}: |CoreDNS-|linux/|Running configuration|"
    rb"Corefile changed|Shutting down|Failed to|Still waiting"
)
# .:53      example.test.:1053      CoreDNS-1.11.1      linux/amd64, go1.20.7, ae2bbc2      maxprocs: ...
_BANNER = re.compile(
    rb"\S{0,300}:\d{1,5}(?: on \S{1,64})?|CoreDNS-(\S{1,32})|(?:linux|darwin|windows)/\S{1,64}, go\S.{0,100}|"
    rb"maxprocs: .*"
)


def coredns_line(line: bytes) -> tuple[Stamp | None, bytes, bytes, bool] | None:
    """Return time stamp, level (empty: none), message and whether it is whole, None for a line of another form."""
    stamp = stamp_at(line)
    at = stamp.end if stamp is not None else 0
    while line[at : at + 1] == b" ":
        at += 1
    whole = True
    if match := _CONTAINER.match(line, at):
        at, whole = match.end(), match[1] == b"F"
    if match := _LEVEL.match(line, at):
        return stamp, match[1], line[match.end() :], whole
    rest = line[at:]
    return (stamp, b"", rest, whole) if _BANNER.fullmatch(rest) else None


class CoreDnsLog(QueryLog):
    """A log of CoreDNS.

    A line in a form that the configuration chose (``log . "{remote}"``) cannot be read; it counts as unparsed, because
    questions are then missing. The damage ``%!s(MISSING)`` in a name becomes ``?``, and the name is ``altered``.

    Raises:
        UnknownFormat: no line of it is CoreDNS's.
    """

    format: ClassVar[str] = "coredns"

    def _look(self) -> Stamp | None:
        for line in self._source.first_lines():
            read = coredns_line(line)
            if read is not None and read[1]:
                return read[0]
        raise UnknownFormat(
            "is no log of CoreDNS",
            file=self._name,
            value=text_of(self._source.head[:60]),
            cause="not one of its lines begins with [INFO]",
            hint="record with the log plug-in in its common form",
        )

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        read = coredns_line(line)
        if read is None or not read[3]:
            yield self._unparsed(where, line, "no whole line of CoreDNS")
            return
        stamp, level, message, _ = read
        t_ns = self._clock.time(stamp)
        if level in (b"INFO", b"ERROR") and (match := _QUESTION.fullmatch(message.rstrip(b" "))):
            yield from self._question(where, t_ns, line, match)
        elif level == b"INFO" and not _ITSELF.match(message):
            yield self._unparsed(where, line, "log format not recognised, so questions may be missing")
        else:
            self._counts["other"] += 1
            if not level:
                self._alive = True
            version = _BANNER.fullmatch(message)
            if version and version[1]:
                self._observation.tool = self._observation.tool or f"CoreDNS {version[1].decode('ascii', 'replace')}"

    def _question(self, where: Where, t_ns: int | None, line: bytes, match: re.Match[bytes]) -> Iterator[Event]:
        raw = match[1] or match[2]
        if not _ZONED.fullmatch(raw):  # the zone is damaged, the address is not
            raw = raw.partition(b"%")[0]
        client = address_of(raw)
        port = self._port(match[3])
        if client is None or port is None:
            yield self._unparsed(where, line, "a client's address is none")
            return
        name, damaged = _DAMAGE.subn(b"?", match[7])
        record, transport = match[5].decode("ascii"), match[8].decode("ascii")
        query = self._ask(
            where,
            t_ns,
            name,
            record,
            client=client,
            port=port,
            transport=transport,
            escaped=True,
            altered=damaged > 0,
        )
        query.id = int(match[4])
        yield query
        if match[9] != b"-":
            answer = self._answer(
                where,
                t_ns,
                name,
                record,
                match[9].decode("ascii"),
                client=client,
                transport=transport,
                escaped=True,
                altered=damaged > 0,
            )
            answer.id = query.id
            yield answer
