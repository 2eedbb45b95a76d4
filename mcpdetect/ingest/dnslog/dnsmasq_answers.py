"""Answers that dnsmasq logs over several lines, put together: an alias chain, several addresses, one question."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcpdetect.ingest.dnslog.dnsmasq_line import Said
from mcpdetect.ingest.dnslog.names import address_of, reverse_name
from mcpdetect.model.net import DnsAnswer, DnsRecord
from mcpdetect.model.place import Where

__all__ = ["AnswerBuilder", "Asked"]

_MOST_QUESTIONS = 4096
_MOST_WAITING = 64
_MOST_RECORDS = 256

Key = tuple[bytes, int]
"""Process number and serial: a query by TCP is served by a child that counts on by itself."""


@dataclass(slots=True)
class Asked:
    """A question that answers may belong to."""

    name: str | None
    type: str
    client: str | None
    transport: str | None


@dataclass(slots=True)
class _Answer:
    """An answer under construction. ``alias``: its last line was a CNAME whose target comes with the next."""

    key: Key | None
    first: Where
    last: int
    t_ns: int | None
    asked: Asked | None
    name: str | None
    said: Said
    type: str
    alias: str | None = None
    records: list[DnsRecord] = field(default_factory=list)


class AnswerBuilder:
    """Takes lines in order and gives out whole answers.

    Lines of one answer follow each other. In the ``extra`` form a serial joins them, and one that was interrupted in
    the middle of an alias chain waits; in the plain form only the neighbourhood joins them.
    """

    def __init__(self) -> None:
        self._questions: dict[Key, Asked] = {}
        self._recent: dict[str | None, list[Asked]] = {}
        self._latest: Asked | None = None
        self._current: _Answer | None = None
        self._waiting: dict[Key, _Answer] = {}

    def asked(self, key: Key | None, said: Said) -> None:
        """Remember a question."""
        asked = self._latest = Asked(said.name, said.type, said.client, said.transport)
        if key is not None:
            if len(self._questions) >= _MOST_QUESTIONS:
                del self._questions[next(iter(self._questions))]
            self._questions[key] = asked
            return
        if len(self._recent) >= _MOST_QUESTIONS:
            del self._recent[next(iter(self._recent))]
        same = self._recent.setdefault(said.name, [])
        same.append(asked)
        del same[:-16]

    def interrupt(self) -> list[DnsAnswer]:
        """A line that is no answer came: give out what is whole."""
        answer, self._current = self._current, None
        if answer is None:
            return []
        if answer.key is None or answer.alias is None:
            return [_event(answer)]
        self._waiting[answer.key] = answer
        if len(self._waiting) > _MOST_WAITING:
            return [_event(self._waiting.pop(next(iter(self._waiting))))]
        return []

    def close(self) -> list[DnsAnswer]:
        """Give out everything."""
        done = self.interrupt()
        done.extend(_event(answer) for answer in self._waiting.values())
        self._waiting.clear()
        return done

    def answer(self, key: Key | None, said: Said, where: Where, t_ns: int | None) -> list[DnsAnswer]:
        """Take one answer line; give out the answers that it shows to be whole."""
        done: list[DnsAnswer] = []
        current = self._current
        if current is None or not _continues(current, key, said):
            done = self.interrupt()
            current = self._waiting.pop(key, None) if key is not None else None
            if current is None:
                asked = self._question(key, said)
                name = asked.name if asked is not None and (said.unnamed or said.name is None) else said.name
                current = _Answer(key, where, where.at, t_ns, asked, name, said, said.type)
            self._current = current
        current.last = where.at
        _extend(current, said)
        return done

    def _question(self, key: Key | None, said: Said) -> Asked | None:
        """Find the question of an answer's first line."""
        if key is not None:
            return self._questions.get(key)
        if said.unnamed:
            return self._latest
        same = self._recent.get(said.name)
        if not same:
            return None
        for at, asked in enumerate(same):
            # a value tells its type; an alias, NXDOMAIN and the like fit the oldest open question
            if asked.type == said.type or said.type in ("", "CNAME"):
                return same.pop(at) if len(same) > 1 else asked
        return same[-1]


def _continues(current: _Answer, key: Key | None, said: Said) -> bool:
    """Whether an answer line goes on with the answer of the line before."""
    if key is not None or current.key is not None:
        return key == current.key
    if said.unnamed or said.source != current.said.source:
        return False
    if current.alias is not None:
        return said.name != current.name
    return (
        said.name == current.said.name and said.type == current.said.type and bool(said.value) and said.type != "CNAME"
    )


def _extend(answer: _Answer, said: Said) -> None:
    if answer.alias is not None and answer.records:
        answer.records[-1].value = said.name or ""
    answer.alias = None
    answer.said = said
    if said.rcode == "NOERROR" and said.value and len(answer.records) < _MOST_RECORDS:
        name = said.name or ""
        if said.type in ("A", "AAAA"):
            answer.records.append(DnsRecord(name, said.type, said.value))
        elif said.type == "PTR" and said.value != "PTR":
            answer.records.append(DnsRecord(name, "PTR", said.value))
        else:
            answer.records.append(DnsRecord(name, said.type, ""))
            if said.type == "CNAME":
                answer.alias = said.name


def _event(answer: _Answer) -> DnsAnswer:
    asked, said = answer.asked, answer.said
    where = answer.first
    if answer.last != where.at:
        where = Where(where.file, where.at, answer.last)
    kind = answer.type if answer.type != "CNAME" else said.type if said.type != "CNAME" else ""
    name = answer.name
    if name is not None and asked is None and (address := address_of(name.encode("ascii"))) is not None:
        name, kind = reverse_name(address), kind or "PTR"  # config 10.77.0.9 is NXDOMAIN
    return DnsAnswer(
        where,
        answer.t_ns,
        asked.name if asked is not None and name is not None and asked.name is not None else name,
        (asked.type if asked is not None else "") or kind,
        said.rcode,
        answer.records,
        seen_in="dns",
        source=said.source,
        no_data=said.no_data,
        client=asked.client if asked is not None and asked.client else said.client,
        transport=asked.transport if asked is not None and asked.transport else said.transport,
    )
