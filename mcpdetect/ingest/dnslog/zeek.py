r"""Zeek's ``dns.log``: tab-separated with a header that names the columns, or one JSON object a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

import msgspec

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.dnslog.names import address_of, name_of
from mcpdetect.ingest.logclock import Stamp, stamp_at
from mcpdetect.ingest.loglines import TextLog
from mcpdetect.model.event import Event
from mcpdetect.model.net import DnsAnswer, DnsQuery, DnsRecord
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of
from mcpdetect.model.vocabulary import Channel

__all__ = ["ZeekLog", "is_zeek"]

# #fields	ts	uid	id.orig_h	id.orig_p	id.resp_h	id.resp_p	proto	query
_FIELDS = re.compile(rb"#fields[^A-Za-z0-9]")
# #separator \x09     the only line that is always separated by a space
_SEPARATOR = re.compile(rb"#separator (?:\\x([0-9a-fA-F]{2})|(.))$")
_HEX = re.compile(rb"\\x([0-9a-fA-F]{2})")
# TXT 5 hello
_TEXT = re.compile(r"TXT \d{1,5} ")
_TOLD = (
    "query",
    "qtype_name",
    "qtype",
    "rcode_name",
    "rcode",
    "proto",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "trans_id",
)
_ADDRESS_TYPES = frozenset({"A", "AAAA", "A6", "ANY", "*"})


def is_zeek(line: bytes) -> bool:
    """Return whether a line is the header of a Zeek log, or a JSON entry of its ``dns.log``."""
    if line.startswith((b"#separator ", b"#fields")):
        return True
    entry = _object(line)
    return entry is not None and "id.orig_h" in entry and bool(entry.keys() & {"query", "qtype", "trans_id", "rcode"})


class ZeekLog(TextLog):
    """Zeek's ``dns.log``: every entry is a question, and its answer where there was one.

    The log gives no owner to a record: a chain of aliases is taken to run from each to the next, as servers send it.
    Columns are found by their names. An entry without name is a question whose name nobody knows. A tab-separated log
    without its ``#close`` line is incomplete.

    Raises:
        UnknownFormat: it has no ``#fields`` line with the columns of a ``dns.log``, and no such JSON entry.
    """

    channel: ClassVar[Channel] = "dns"
    format: ClassVar[str] = "zeek"
    kinds: ClassVar[tuple[str, ...]] = ("dns.query", "dns.answer")
    counted: ClassVar[tuple[str, ...]] = ("queries", "answers")

    def _look(self) -> Stamp | None:
        fields: list[str] = []
        separator = b"\t"
        for line in self._source.first_lines():
            if match := _SEPARATOR.match(line):
                separator = _character(match)
            elif _FIELDS.match(line):
                fields = _split_fields(line, separator)
                if "id.orig_h" not in fields or "query" not in fields:
                    break
            elif line[:1] not in (b"#", b"{", b"") and fields:
                return _stamp(dict(zip(fields, line.split(separator), strict=False)).get("ts", b""))
            elif is_zeek(line):
                entry = _object(line)
                return _json_stamp(entry.get("ts")) if entry is not None else None
        if fields and "query" in fields and "id.orig_h" in fields:
            return None
        raise UnknownFormat(
            "is no dns.log of Zeek",
            file=self._name,
            value=text_of(self._source.head[:60]),
            cause="another log of Zeek was named"
            if fields
            else "it has neither a #fields line nor JSON entries with a query",
            hint="give dns.log",
        )

    def _begin(self) -> None:
        super()._begin()
        self._separator, self._set_separator = b"\t", b","
        self._unset, self._empty = b"-", b"(empty)"
        self._fields: dict[str, int] = {}
        self._width = 0
        self._told: list[tuple[str, int]] = []
        self._headed = self._closed = False

    def _watched(self) -> bool:
        return self._headed or self._counts["queries"] > 0

    def _finish(self) -> None:
        if self._headed and not self._closed:
            self._book.add("file-truncated", "the log has no #close line: it is not complete", None, self.kinds)
        if self._closed:
            self._observation.complete = True

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        if line[:1] == b"#":
            self._header(line)
            return
        if line[:1] == b"{":
            entry = _object(line)
            if entry is None or "id.orig_h" not in entry:
                yield self._unparsed(where, line, "no JSON entry of a dns.log")
                return
            values = {key: raw for key in _TOLD if (raw := _scalar(entry.get(key))) is not None}
            answers = [raw for item in _list(entry.get("answers")) if (raw := _scalar(item)) is not None]
            ttls = [raw for item in _list(entry.get("TTLs")) if (raw := _scalar(item)) is not None]
            yield from self._entry(where, line, self._clock.time(_json_stamp(entry.get("ts"))), values, answers, ttls)
            return
        columns = line.split(self._separator)
        if not self._fields or len(columns) != self._width:
            yield self._unparsed(where, line, "not as many columns as #fields names")
            return
        none = (self._unset, self._empty)
        values = {key: _unhex(columns[at]) for key, at in self._told if columns[at] not in none}
        t_ns = self._clock.time(_stamp(self._column(columns, "ts") or b""))
        answers, ttls = self._set(self._column(columns, "answers")), self._set(self._column(columns, "TTLs"))
        yield from self._entry(where, line, t_ns, values, answers, ttls)

    def _header(self, line: bytes) -> None:
        if match := _SEPARATOR.match(line):
            self._separator = _character(match)
        elif _FIELDS.match(line):
            fields = _split_fields(line, self._separator)
            self._width = len(fields)  # a name may stand there twice
            self._fields = {field: at for at, field in enumerate(fields)}
            self._told = [(key, self._fields[key]) for key in _TOLD if key in self._fields]
            self._headed, self._closed = True, False
        elif line.startswith(b"#close"):
            self._closed = True
        else:
            key, _, value = line.partition(self._separator)
            if key == b"#set_separator" and value:
                self._set_separator = _unhex(value)
            elif key == b"#unset_field":
                self._unset = value
            elif key == b"#empty_field":
                self._empty = value

    def _column(self, columns: list[bytes], name: str) -> bytes | None:
        at = self._fields.get(name)
        return columns[at] if at is not None else None

    def _set(self, column: bytes | None) -> list[bytes]:
        if column is None or column in (self._unset, self._empty):
            return []
        return [_unhex(item) for item in column.split(self._set_separator)]

    def _entry(
        self,
        where: Where,
        line: bytes,
        t_ns: int | None,
        values: dict[str, bytes],
        answers: list[bytes],
        ttls: list[bytes],
    ) -> Iterator[Event]:
        client, server = address_of(values.get("id.orig_h", b"")), address_of(values.get("id.resp_h", b""))
        if client is None:
            yield self._unparsed(where, line, "id.orig_h is no address")
            return
        name: str | None = None
        spelled: str | None = None
        if "query" in values:
            name, spelled = name_of(values["query"])
        else:
            self._book.add("name-hidden", "exchanges whose name the log does not show", where, self.kinds)
        record = _type(values)
        number = _number(values.get("trans_id"), 65535)
        transport = text_of(values["proto"]) if "proto" in values else None
        self._counts["queries"] += 1
        yield DnsQuery(
            where,
            t_ns,
            name,
            record,
            seen_in="dns",
            spelled=spelled,
            client=client,
            client_port=_number(values.get("id.orig_p"), 65535),
            server=server,
            server_port=_number(values.get("id.resp_p"), 65535),
            transport=transport,
            id=number,
            altered=name is None,
        )
        rcode = text_of(values["rcode_name"]) if "rcode_name" in values else ""
        if rcode or answers:
            self._counts["answers"] += 1
            yield DnsAnswer(
                where,
                t_ns,
                name,
                record,
                rcode or "NOERROR",
                _records(name, record, answers, ttls),
                seen_in="dns",
                no_data=rcode == "NOERROR" and not answers,
                client=client,
                server=server,
                transport=transport,
                id=number,
            )


def _records(name: str | None, record: str, answers: list[bytes], ttls: list[bytes]) -> list[DnsRecord]:
    """Return the records of an answer: addresses by their look, other values by what was asked for."""
    owner = name or ""
    records = []
    for number, raw in enumerate(answers):
        ttl = _ttl(ttls[number]) if number < len(ttls) else None
        address = address_of(raw)
        if address is not None:
            records.append(DnsRecord(owner, "AAAA" if b":" in raw else "A", address, ttl))
        elif _TEXT.match(text := text_of(raw)):
            records.append(DnsRecord(owner, "TXT", text.split(" ", 2)[2], ttl))
        elif record in _ADDRESS_TYPES or number + 1 < len(answers):
            target = name_of(raw)[0]
            records.append(DnsRecord(owner, "CNAME", target, ttl))
            owner = target
        else:
            value = name_of(raw)[0] if record in ("PTR", "NS", "CNAME") else text
            records.append(DnsRecord(owner, record, value, ttl))
    return records


def _type(values: dict[str, bytes]) -> str:
    # HTTPS     "query-65535" is how Zeek names a type without one     qtype 65
    named = values.get("qtype_name")
    number = values.get("qtype")
    if named is not None and not named.startswith(b"query-"):
        return text_of(named) if named != b"*" else "ANY"
    if named is not None:
        number = named.removeprefix(b"query-")
    known = _number(number, 65535)
    return f"TYPE{known}" if known is not None else ""


def _character(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 16)]) if match[1] else bytes(match[2])


def _split_fields(line: bytes, separator: bytes) -> list[str]:
    return [text_of(field) for field in line.split(separator)[1:]]


def _unhex(raw: bytes) -> bytes:
    r"""Return a value with Zeek's escapes undone: ``a\x09b`` is ``a``, a tab, ``b``."""
    if b"\\" not in raw:
        return raw
    return _HEX.sub(lambda match: bytes([int(match[1], 16)]), raw).replace(b"\\\\", b"\\")


def _stamp(raw: bytes) -> Stamp | None:
    # 1700000000.000000     2026-11-30T11:21:18.000000Z
    return stamp_at(raw + b" ")


def _json_stamp(value: object) -> Stamp | None:
    # 1700000000.0     "2026-11-30T11:21:18.000000Z"     1700000000000 (JSON::TS_MILLIS)
    if isinstance(value, str):
        return stamp_at(value.encode("utf-8", "replace") + b" ")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 60:
        return None
    if isinstance(value, int):
        return Stamp("epoch", value * (10**6 if value >= 10**11 else 10**9), 0)
    return Stamp("epoch", round(value * 10**6) * 1000, 0)


def _object(line: bytes) -> dict[str, object] | None:
    if line[:1] != b"{":
        return None
    try:
        entry = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _scalar(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value).encode("ascii")
    return None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number(raw: bytes | None, most: int) -> int | None:
    return int(raw) if raw is not None and raw.isdigit() and len(raw) <= 10 and int(raw) <= most else None


def _ttl(raw: bytes) -> int | None:
    # 60.000000
    return _number(raw.partition(b".")[0], 1 << 32)
