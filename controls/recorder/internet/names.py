"""What names answer: an address of its own for every name, or what the table of a variant says."""

from __future__ import annotations

import hashlib
import ipaddress
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from controls.recorder.internet.answers import Page, TableError, load_pages
from controls.recorder.internet.settings import DNS_MODES
from controls.recorder.internet.wire import RCODES, TYPES, Question, Record, data_of, question, reply

__all__ = ["Answer", "Name", "Names", "address4", "address6", "load_names"]

_TTL = 300
_LONGEST_CHAIN = 8
_MOST_REMEMBERED = 100_000
_PLAIN_UDP = 512
"""Most bytes of an answer over UDP to who says nothing of its size (RFC 1035 section 4.2.1)."""
_KEYS = {"answer", "a", "aaaa", "cname", "https", "txt", "mx", "ttl", "delay_ms", "tcp", "alpn", "http"}
_TCP = ("echo", "swallow", "close")
_OPT = 41  # RFC 6891 section 6.1.2


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.lower().rstrip(".").encode()).digest()


def address4(name: str) -> str:
    """Return the one IPv4 address of a name, inside 44.128.0.0/10: public to every guard, and never reached."""
    one = _digest(name)
    return f"44.{128 + one[0] % 64}.{one[1]}.{1 + one[2] % 254}"


def address6(name: str) -> str:
    """Return the one IPv6 address of a name, inside 2fff:cafe::/32, which nobody was given."""
    one = _digest(name)
    return str(ipaddress.IPv6Address(b"\x2f\xff\xca\xfe" + bytes(8) + one[3:7]))


@dataclass(frozen=True, slots=True)
class Name:
    """What one name of the table answers.

    Attributes:
        answer: a mode of ``DNS_MODES``, None for the cell's own.
        records: record type to data, in order; a type that is missing is answered as every name answers it.
        ttl: seconds.
        delay: seconds before the answer.
        tcp: what a TCP connection does that speaks no protocol known here: ``echo``, ``swallow`` or ``close``.
        alpn: protocols its TLS server takes, in its order; None for all.
        pages: what its HTTP server answers.
    """

    answer: str | None = None
    records: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    ttl: int = _TTL
    delay: float = 0.0
    tcp: str = "echo"
    alpn: tuple[str, ...] | None = None
    pages: tuple[Page, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one query: the message, None for silence, and the seconds to wait before it."""

    message: bytes | None
    delay: float = 0.0


def _fail(place: str, problem: str, value: object) -> TableError:
    return TableError(problem, place=place, value=repr(value)[:80])


def load_names(data: Mapping[str, Any], place: str = "names") -> dict[str, Name]:
    """Return the table that plain values of a YAML or JSON file describe.

    Args:
        data: name (``api.example.com``, ``*.example.com`` for every name below it, ``*`` for every name) to a mapping
            of ``answer``, ``a``, ``aaaa``, ``cname``, ``https``, ``txt``, ``mx``, ``ttl``, ``delay_ms``, ``tcp``,
            ``alpn``, ``http``.
        place: where it stands, for errors.

    Raises:
        TableError: a key or a value is wrong; it names the place.
    """
    return {name.lower().rstrip("."): _name(entry, f"{place}/{name}") for name, entry in data.items()}


def _name(entry: object, place: str) -> Name:
    if not isinstance(entry, dict):
        raise _fail(place, "must be a mapping", entry)
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise _fail(place, f"unknown key; there are {', '.join(sorted(_KEYS))}", unknown[0])
    answer = entry.get("answer")
    if answer is not None and answer not in DNS_MODES:
        raise _fail(f"{place}/answer", f"must be one of {', '.join(DNS_MODES)}", answer)
    tcp = entry.get("tcp", "echo")
    if tcp not in _TCP:
        raise _fail(f"{place}/tcp", f"must be one of {', '.join(_TCP)}", tcp)
    ttl, delay = entry.get("ttl", _TTL), entry.get("delay_ms", 0)
    for key, value in (("ttl", ttl), ("delay_ms", delay)):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
            raise _fail(f"{place}/{key}", "must be a number that is not negative", value)
    records = {kind: tuple(_records(kind, entry, place)) for kind in TYPES if kind.lower() in entry}
    if "CNAME" in records and len(records) > 1:
        raise _fail(place, "a name with a cname has no other records", sorted(records))
    alpn = entry.get("alpn")
    if alpn is not None and not (isinstance(alpn, list) and all(isinstance(one, str) for one in alpn)):
        raise _fail(f"{place}/alpn", "must be a list of protocols", alpn)
    return Name(
        answer=answer,
        records=records,
        ttl=ttl,
        delay=delay / 1000,
        tcp=tcp,
        alpn=None if alpn is None else tuple(alpn),
        pages=load_pages(entry.get("http", []), f"{place}/http"),
    )


def _records(kind: str, entry: dict[str, Any], place: str) -> Iterator[bytes]:
    given = entry[kind.lower()]
    values = given if isinstance(given, list) else [given]
    if kind == "CNAME" and len(values) != 1:
        raise _fail(f"{place}/cname", "must be one name", given)
    for value in values:
        try:
            yield data_of(kind, str(value))
        except ValueError as error:
            raise TableError(str(error), place=f"{place}/{kind.lower()}", value=repr(value)[:80]) from error


class Names:
    """The name server's knowledge.

    Args:
        mode: how names are answered that the table says nothing else of.
        table: see ``load_names``.
    """

    def __init__(self, mode: str, table: Mapping[str, Name] | None = None) -> None:
        self._mode = mode
        self._table = dict(table or {})
        self._asked: dict[str, str] = {}
        for name, entry in self._table.items():
            if "*" not in name:
                self._remember(name, entry)

    def find(self, name: str) -> Name:
        """Return the table's entry of a name: its own, else that of the nearest name above it, else of every name."""
        name = name.lower().rstrip(".")
        if name in self._table:
            return self._table[name]
        parts = name.split(".")
        for at in range(1, len(parts) + 1):
            found = self._table.get(".".join(["*", *parts[at:]]))
            if found is not None:
                return found
        return Name()

    def name_of(self, address: str) -> str | None:
        """Return the name that an address was given to in the table or in an answer, None for an address alone."""
        return self._asked.get(address)

    def answer(self, message: bytes, *, stream: bool = False) -> Answer:
        """Return the answer to a query.

        Args:
            message: the query.
            stream: it came over TCP, where no answer is too long.
        """
        asked = question(message)
        if asked is None:
            return Answer(None)
        entry = self.find(asked.name)
        mode = entry.answer or self._mode
        if mode == "silent":
            return Answer(None)
        rcode = RCODES.get(mode, 0)
        records: list[Record] = []
        if not rcode:
            rcode, records = self._chain(asked, entry)
        limit = 0 if stream else _room(message, asked)
        return Answer(reply(message, asked, rcode, records, limit=limit), entry.delay)

    def _chain(self, asked: Question, entry: Name) -> tuple[int, list[Record]]:
        """Return code and records for a question, aliases followed; the code is that of the last name."""
        name = asked.name
        records = []
        for _ in range(_LONGEST_CHAIN):
            target = entry.records.get("CNAME")
            if target is None:
                break
            records.append(Record(name, TYPES["CNAME"], entry.ttl, target[0]))
            if asked.kind == TYPES["CNAME"]:
                return 0, records
            name = _read_name(target[0])
            entry = self.find(name)
        rcode = RCODES.get(entry.answer or self._mode, 0)
        if not rcode:
            self._remember(name, entry)
            records += [Record(name, asked.kind, entry.ttl, data) for data in self._data(name, asked.kind, entry)]
        return rcode, records

    def _data(self, name: str, kind: int, entry: Name) -> tuple[bytes, ...]:
        for word, number in TYPES.items():
            if number == kind and word in entry.records:
                return entry.records[word]
        if kind == TYPES["A"]:
            return (ipaddress.IPv4Address(address4(name)).packed,)
        if kind == TYPES["AAAA"] and (entry.answer or self._mode) != "ipv4":
            return (ipaddress.IPv6Address(address6(name)).packed,)
        return ()

    def _remember(self, name: str, entry: Name) -> None:
        four = [str(ipaddress.IPv4Address(one)) for one in entry.records.get("A", ())] or [address4(name)]
        six = [str(ipaddress.IPv6Address(one)) for one in entry.records.get("AAAA", ())] or [address6(name)]
        if len(self._asked) > _MOST_REMEMBERED:
            return
        for address in (*four, *six):
            self._asked[address] = name.lower().rstrip(".")


def _read_name(wire: bytes) -> str:
    labels = []
    at = 0
    while wire[at]:
        labels.append(wire[at + 1 : at + 1 + wire[at]].decode("latin-1"))
        at += 1 + wire[at]
    return ".".join(labels)


def _room(message: bytes, asked: Question) -> int:
    """Return how long an answer over UDP may be: what the query's OPT record says (RFC 6891 section 6.2.3)."""
    if message[asked.end : asked.end + 3] == bytes([0]) + struct.pack(">H", _OPT) and len(message) >= asked.end + 5:
        return max(_PLAIN_UDP, cast("int", struct.unpack_from(">H", message, asked.end + 3)[0]))
    return _PLAIN_UDP
