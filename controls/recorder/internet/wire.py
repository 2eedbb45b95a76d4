"""DNS messages as bytes: reading one question, writing the records that a table names (RFC 1035, RFC 9460)."""

from __future__ import annotations

import base64
import ipaddress
import struct
from dataclasses import dataclass

__all__ = ["RCODES", "TYPES", "Question", "Record", "data_of", "looks_like_query", "question", "reply", "wire_name"]

RCODES = {"answer": 0, "servfail": 2, "nxdomain": 3, "refused": 5}
"""RFC 1035 section 4.1.1."""
TYPES = {"A": 1, "CNAME": 5, "MX": 15, "TXT": 16, "AAAA": 28, "HTTPS": 65}
"""RFC 1035 section 3.2.2, RFC 3596, RFC 9460 section 14.1."""

_IN = 1
_HEAD = 12
_SERVICE_KEYS = {"alpn": 1, "no-default-alpn": 2, "port": 3, "ipv4hint": 4, "ech": 5, "ipv6hint": 6}
"""RFC 9460 section 14.3.2."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query's first question: its name as written, its type, and the offset behind it."""

    name: str
    kind: int
    end: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record of an answer."""

    name: str
    kind: int
    ttl: int
    data: bytes


def question(message: bytes) -> Question | None:
    """Return a query's first question, None when the message is no query or is cut."""
    if len(message) < _HEAD or message[2] & 0xF8 or message[4:6] == b"\0\0":
        return None
    labels = []
    at = _HEAD
    while at < len(message) and message[at]:
        size = message[at]
        if size > 63 or at + 1 + size >= len(message):
            return None
        labels.append(message[at + 1 : at + 1 + size].decode("latin-1"))
        at += 1 + size
    if at + 5 > len(message):
        return None
    return Question(".".join(labels), struct.unpack_from(">H", message, at + 1)[0], at + 5)


def looks_like_query(message: bytes) -> bool:
    """Return whether bytes that nothing announced are a DNS query: one question, no answers, nothing behind."""
    if len(message) < _HEAD + 5 or message[4:10] != b"\0\1\0\0\0\0" or message[10:11] != b"\0" or message[11] > 1:
        return False
    asked = question(message)
    return asked is not None and (message[11] > 0 or asked.end == len(message))


def wire_name(name: str) -> bytes:
    """Return a name in wire form, without compression.

    Raises:
        ValueError: a label is empty or longer than 63 bytes, or the whole longer than 255.
    """
    out = bytearray()
    for label in name.rstrip(".").split(".") if name.rstrip(".") else ():
        raw = label.encode("latin-1")
        if not 0 < len(raw) < 64:
            raise ValueError(f"{name!r} is no DNS name")
        out += bytes([len(raw)]) + raw
    if len(out) > 254:
        raise ValueError(f"{name!r} is too long for a DNS name")
    return bytes(out) + b"\0"


def data_of(kind: str, text: str) -> bytes:
    """Return the data of a record from the form it has in a zone file.

    Args:
        kind: a key of ``TYPES``.
        text: ``192.0.2.1``, ``2001:db8::1``, ``www.example.com``, ``10 mail.example.com``, the text of a TXT record,
            or ``1 . alpn=h2,h3 port=443``.

    Raises:
        ValueError: it has not that form.
    """
    if kind == "A":
        return ipaddress.IPv4Address(text).packed
    if kind == "AAAA":
        return ipaddress.IPv6Address(text).packed
    if kind == "CNAME":
        return wire_name(text)
    if kind == "TXT":
        raw = text.encode()
        parts = [raw[at : at + 255] for at in range(0, len(raw), 255)] or [b""]
        return b"".join(bytes([len(part)]) + part for part in parts)
    if kind == "MX":
        preference, _, host = text.partition(" ")
        return struct.pack(">H", _number(preference)) + wire_name(host)
    return _service(text)


def _number(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 0xFFFF:
        raise ValueError(f"{text!r} is not between 0 and 65535")
    return value


def _service(text: str) -> bytes:
    """Return the data of an HTTPS record (RFC 9460 section 2.2) from its presentation form."""
    # 1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.1 ech=AEX+DQBB...
    words = text.split()
    if len(words) < 2:
        raise ValueError(f"{text!r} is no HTTPS record (1 . alpn=h2)")
    parameters = {}
    for word in words[2:]:
        key, _, value = word.partition("=")
        if key not in _SERVICE_KEYS:
            raise ValueError(f"{key!r} is no parameter of an HTTPS record")
        parameters[_SERVICE_KEYS[key]] = _parameter(key, value)
    packed = b"".join(struct.pack(">HH", key, len(raw)) + raw for key, raw in sorted(parameters.items()))
    return struct.pack(">H", _number(words[0])) + wire_name(words[1]) + packed


def _parameter(key: str, value: str) -> bytes:
    if key == "alpn":
        return b"".join(bytes([len(one)]) + one.encode() for one in value.split(","))
    if key == "port":
        return struct.pack(">H", _number(value))
    if key == "ipv4hint":
        return b"".join(ipaddress.IPv4Address(one).packed for one in value.split(","))
    if key == "ipv6hint":
        return b"".join(ipaddress.IPv6Address(one).packed for one in value.split(","))
    if key == "ech":
        return base64.b64decode(value, validate=True)
    if value:
        raise ValueError(f"{key} has no value")
    return b""


def reply(message: bytes, asked: Question, rcode: int, records: list[Record], *, limit: int = 0) -> bytes:
    """Return the answer to a query: its question again, then the records.

    Args:
        message: the query.
        asked: its question.
        rcode: the response code.
        records: the answer section, in order.
        limit: most bytes; a longer answer leaves its records out and says that it is cut. 0: no limit.
    """
    body = b"".join(
        # The question's own name is pointed to.
        (b"\xc0\x0c" if one.name == asked.name else wire_name(one.name))
        + struct.pack(">HHIH", one.kind, _IN, one.ttl, len(one.data))
        + one.data
        for one in records
    )
    # QR, opcode 0, RD copied, RA.
    flags = 0x8080 | (struct.unpack_from(">H", message, 2)[0] & 0x0100) | rcode
    count = len(records)
    if limit and asked.end + len(body) > limit:
        body, count, flags = b"", 0, flags | 0x0200
    return message[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + message[_HEAD : asked.end] + body
