"""The query log of dnsmasq as an adapter (format: dnsmasq 2.8x and 2.9x, ``log.c`` and ``cache.c``, ``log_query``)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.dnslog.dnsmasq_answers import AnswerBuilder
from mcpdetect.ingest.dnslog.dnsmasq_line import Said, read_line
from mcpdetect.ingest.logclock import Stamp
from mcpdetect.ingest.logheader import Header, header_of
from mcpdetect.ingest.loglines import TextLog
from mcpdetect.model.event import Event
from mcpdetect.model.net import DnsAnswer, DnsQuery
from mcpdetect.model.place import Where

__all__ = ["DnsmasqLog"]

# dnsmasq[27255]: query[A] ...     dnsmasq: started, ...     dnsmasq-dhcp[12]: ...
_BARE = re.compile(rb"(dnsmasq(?:-[a-z]{1,16})?)(?:\[(\d{1,10})\])?: ")
_MOST_UPSTREAM = 16
_HIDDEN = "names that dnsmasq did not print"


class DnsmasqLog(TextLog):
    """One log of dnsmasq: to a file, to standard error, or out of a system log with lines of others.

    An answer comes when its last line is known, so behind the event of a question in the line after it.

    Raises:
        UnknownFormat: not one line of dnsmasq is in its first 256 KiB.
    """

    channel = "dns"
    format = "dnsmasq"
    kinds = ("dns.query", "dns.answer")
    counted = ("queries", "answers", "forwarded", "foreign")

    def _look(self) -> Stamp | None:
        for line in self._source.first_lines():
            header = _header(line)
            if header is not None:
                return header.stamp
        raise UnknownFormat(
            "is no log of dnsmasq",
            file=self._name,
            value=f"{self._source.head[:60]!r}",
            cause="not one of its lines begins with dnsmasq[<pid>]:",
            hint="record with log-queries=extra and log-facility=FILE, and give that file",
        )

    def _begin(self) -> None:
        super()._begin()
        self._answers = AnswerBuilder()
        self._alive = False
        self._ended = False
        self._spoke = False
        self._hidden_values = 0

    def _rest(self) -> Iterator[Event]:
        return self._given(self._answers.close())

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        header = _header(line)
        if header is None:
            if header_of(line).tag is not None:  # another program in the same system log
                self._counts["foreign"] += 1
            else:
                yield self._unparsed(where, line, "no line of dnsmasq")
            return
        self._alive = True
        if header.tag != b"dnsmasq":  # dnsmasq-dhcp, dnsmasq-tftp, dnsmasq-script: nobody's question
            return
        said = read_line(line[header.start :].rstrip(b" "))
        t_ns = self._clock.time(header.stamp)
        key = (header.pid or b"", said.serial) if said.serial is not None else None
        if said.what == "answer":
            self._spoke = True
            if said.value == said.type not in ("", "CNAME"):
                self._hidden_values += 1
            yield from self._given(self._answers.answer(key, said, where, t_ns))
            return
        yield from self._given(self._answers.interrupt())
        if said.what == "query":
            self._spoke = True
            self._answers.asked(key, said)
            yield self._query(said, where, t_ns)
        elif said.what:
            self._other(said, where)
        else:
            yield self._unparsed(where, line, "an unknown message of dnsmasq")

    def _query(self, said: Said, where: Where, t_ns: int | None) -> DnsQuery:
        self._counts["queries"] += said.count
        if said.count > 1:
            self._book.add("repeated", "lines that the system log folded into one", where, note=True)
        if said.name is None:
            self._book.add("name-hidden", _HIDDEN, where, self.kinds)
        return DnsQuery(
            where,
            t_ns,
            said.name,
            said.type,
            seen_in="dns",
            spelled=said.spelled,
            client=said.client,
            client_port=said.client_port,
            transport=said.transport,
            altered=said.name is None,
        )

    def _given(self, answers: list[DnsAnswer]) -> Iterator[DnsAnswer]:
        for answer in answers:
            self._counts["answers"] += 1
            if answer.name is None:
                self._book.add("name-hidden", _HIDDEN, answer.where, ("dns.answer",))
            yield answer

    def _other(self, said: Said, where: Where) -> None:
        if said.what == "started":
            self._observation.tool = self._observation.tool or f"dnsmasq {said.value}"
        elif said.what == "exiting":
            self._ended = True
        elif said.what == "lost":
            self._book.add("dropped", "dnsmasq lost lines of its own log", where, self.kinds, count=said.count)
        elif said.what == "unanswered":
            self._book.add("dropped", "questions that dnsmasq did not take, and may not have logged", where, self.kinds)
        elif said.what == "forwarded":
            self._spoke = True
            self._counts["forwarded"] += 1
            option = f"upstream {said.value}"
            options = self._observation.options
            if option not in options and len(options) < _MOST_UPSTREAM:
                options.append(option)

    def _watched(self) -> bool:
        return self._alive

    def _finish(self) -> None:
        if self._hidden_values:
            self._book.add(
                "value-hidden",
                "the log names the type of records that are no addresses, but not their content",
                note=True,
                count=self._hidden_values,
            )

    def _end(self) -> None:
        super()._end()
        seen = self._observation
        seen.complete = seen.complete or self._ended
        if self._declared is None and not self._spoke:
            # it ran, but nothing shows that it was told to log queries
            seen.watches = {}


def _header(line: bytes) -> Header | None:
    """Return the header of a line of dnsmasq, None for any other line."""
    if match := _BARE.match(line):
        return Header(None, None, match[1], match[2], match.end())
    header = header_of(line)
    tag = header.tag
    return header if tag is not None and (tag == b"dnsmasq" or tag.startswith(b"dnsmasq-")) else None
