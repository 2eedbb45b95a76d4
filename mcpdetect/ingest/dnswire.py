r"""DNS messages as bytes (RFC 1035 §4): questions and records out of packets and of system call buffers.

Two kinds of fault are kept apart. A message whose first question cannot be read raises ``DnsFormatError``; a fault
further on leaves what was read and is told by ``DnsMessage.damage``, so that a question never vanishes because of an
answer beside it. All work is linear in the length of the message, whatever its pointers and counts claim.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field
from functools import lru_cache

from mcpdetect.ingest.dnscodes import rcode_name, type_name
from mcpdetect.model.addresses import canonical
from mcpdetect.model.net import DnsRecord
from mcpdetect.model.text import text_of

__all__ = ["DnsFormatError", "DnsMessage", "address_text", "parse_message", "rcode_name", "type_name"]

_HEADER = struct.Struct("!HHHHHH")
_RECORD = struct.Struct("!HHIH")
_TTL_LENGTH = struct.Struct("!IH")
_LOW_RCODES = [rcode_name(number) for number in range(16)]
_PLAIN_ADDRESS = frozenset({b"\xc0\x0c\0\x01", b"\xc0\x0c\0\x1c"})
_PAIR = struct.Struct("!HH")
_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
_ESCAPED = {byte: chr(byte) if byte in _PLAIN else f"\\{byte:03d}" for byte in range(256)} | {0x2E: "\\."}
_NAME_TYPES = frozenset({2, 5, 12, 39})  # NS, CNAME, PTR, DNAME: the data is one name
_OPT, _MX, _SRV, _TXT, _A, _AAAA, _SVCB, _HTTPS = 41, 15, 33, 16, 1, 28, 64, 65
_IPV4HINT, _IPV6HINT = 4, 6  # RFC 9460 §14.3.2
_MOST_NAME = 255  # RFC 1035 §2.3.4, length octets and the root's included
_MOST_JUMPS = 127  # a name of 255 bytes has at most 127 labels, and one pointer behind each is enough
_MOST_TEXT = 4096  # bytes of TXT or of an unknown record that are kept


class DnsFormatError(ValueError):
    """Bytes that are no DNS message, or one whose first question cannot be read."""


class _CutError(DnsFormatError):
    """The message goes on behind the end of the buffer."""


@dataclass(slots=True)
class DnsMessage:
    """One DNS message.

    Attributes:
        id: the message id.
        response: the QR bit: an answer, not a question.
        rcode: ``NOERROR``, ``NXDOMAIN``, ... with the EDNS bits, ``RCODE24`` for a number without a name.
        truncated: the TC bit: the answer is not whole, the asker will come again by TCP.
        questions: folded name, spelled name where the letter case differs, type; as in ``DnsQuery``. The name is None,
            and the type ``""``, where the buffer ends before it.
        records: the answer section, and the addresses in the additional section that belong to a name which an answer
            points to (MX, SRV, SVCB, HTTPS, NS); no OPT.
        damage: why reading stopped before the end of the message, ``""`` when it did not.
    """

    id: int
    response: bool
    rcode: str
    truncated: bool
    questions: list[tuple[str | None, str | None, str]]
    records: list[DnsRecord]
    damage: str = field(default="")


@lru_cache(maxsize=8192)
def address_text(raw: bytes) -> str:
    """Return the canonical spelling (``model.addresses.canonical``) of an address of 4 or 16 bytes.

    Raises:
        ValueError: ``raw`` has another length.
    """
    if len(raw) == 4:
        return f"{raw[0]}.{raw[1]}.{raw[2]}.{raw[3]}"
    return canonical(str(ipaddress.IPv6Address(raw)))


def parse_message(data: bytes, *, cut: bool = False) -> DnsMessage:
    """Read one DNS message.

    Args:
        data: the message without the length of DNS over TCP. Bytes behind its last record are ignored.
        cut: the buffer is known to be a beginning only; its end is then no fault, and names that it cuts are None.

    Raises:
        DnsFormatError: shorter than a header, or no question can be read where there should be one.
    """
    if len(data) < 12:
        raise DnsFormatError(f"{len(data)} bytes are no DNS header")
    ttl: int
    length: int
    ident, flags, questions, answers, authorities, additional = _HEADER.unpack_from(data)
    message = DnsMessage(ident, flags >= 0x8000, _LOW_RCODES[flags & 15], flags & 0x0200 != 0, [], [])
    known: dict[int, tuple[str, int]] = {}
    at = 12
    try:
        if questions == 1:
            zero = data.find(b"\0", 12)
            common = _question(data[12 : zero + 5]) if zero >= 0 else None
            if common is not None:
                message.questions.append(common[0])
                if not (answers or authorities or additional):
                    return message
                known[12] = common[1]
                at = zero + 5
                questions = 0
                owner = common[0][0] or ""
                # c00c 0001 0001 0000003c 0004 cb007107: an address of the name asked for; the rest goes the common way
                while answers and at + 12 <= len(data) and data[at : at + 4] in _PLAIN_ADDRESS:
                    ttl, length = _TTL_LENGTH.unpack_from(data, at + 6)
                    if length != (4 if data[at + 3] == _A else 16) or at + 12 + length > len(data):
                        break
                    record = DnsRecord.__new__(DnsRecord)  # the constructor takes three times as long
                    record.name = owner
                    record.type = "A" if length == 4 else "AAAA"
                    record.value = address_text(data[at + 12 : at + 12 + length])
                    record.ttl = ttl if ttl < 0x80000000 else 0
                    record.hints = []
                    message.records.append(record)
                    at += 12 + length
                    answers -= 1
                if not (answers or authorities or additional):
                    return message
        at = _read_questions(data, at, questions, message, known)
        targets: set[str] = set()
        for section, count in ((0, answers), (1, authorities), (2, additional)):
            for _ in range(count):
                at = _read_record(data, at, section, message, known, targets, flags & 15)
    except _CutError as error:
        if not cut and questions and not message.questions:
            raise
        if cut and len(message.questions) < questions:
            message.questions.append((None, None, ""))
        message.damage = str(error)
    except DnsFormatError as error:
        if questions and not message.questions:
            raise
        message.damage = str(error)
    return message


@lru_cache(maxsize=16384)
def _question(raw: bytes) -> tuple[tuple[str | None, str | None, str], tuple[str, int]] | None:
    """Read one question that is exactly ``raw``: how nearly every message begins, and its answer again.

    Returns:
        The question, and its name with its length for later pointers; None when it needs the careful way.
    """
    end = len(raw) - 5
    if end < 0 or end >= _MOST_NAME:
        return None
    at = 0
    while at < end:
        if raw[at] > 63:
            return None
        at += 1 + raw[at]
    if at != end:
        return None
    spelled, _ = _name(raw, 0, {})
    number = (raw[end + 1] << 8) | raw[end + 2]
    return (*_folded(spelled), type_name(number)), (spelled, end + 1)


def _read_questions(data: bytes, at: int, count: int, message: DnsMessage, known: dict[int, tuple[str, int]]) -> int:
    for _ in range(count):
        spelled, at = _name(data, at, known)
        if at + 4 > len(data):
            message.questions.append((*_folded(spelled), ""))
            raise _CutError("a question is cut behind its name")
        number = (data[at] << 8) | data[at + 1]
        message.questions.append((*_folded(spelled), type_name(number)))
        at += 4
    return at


def _folded(spelled: str) -> tuple[str, str | None]:
    name = spelled.lower()
    return name, None if name == spelled else spelled


def _read_record(
    data: bytes,
    at: int,
    section: int,
    message: DnsMessage,
    known: dict[int, tuple[str, int]],
    targets: set[str],
    low_rcode: int,
) -> int:
    # c00c: the name of the first question, which owns nearly every record
    first = known.get(12) if data[at : at + 2] == b"\xc0\x0c" else None
    if first is not None:
        owner, at = first[0], at + 2
    else:
        owner, at = _name(data, at, known)
    if at + 10 > len(data):
        raise _CutError("a record is cut in its header")
    number: int
    ttl: int
    length: int
    number, _, ttl, length = _RECORD.unpack_from(data, at)
    at += 10
    end = at + length
    if end > len(data):
        raise _CutError(f"a record claims {length} bytes of data, {len(data) - at} are there")
    if number == _OPT:
        if section == 2 and ttl >> 24:  # RFC 6891 §6.1.3: the upper bits of the response code
            message.rcode = rcode_name((ttl >> 24 << 4) | low_rcode)
        return end
    if section == 1:
        return end
    name = owner.lower()
    if section == 2 and (number not in (_A, _AAAA) or name not in targets):
        return end
    if ttl >> 31:
        ttl = 0  # RFC 2181 §8
    try:
        value, target, hints = _value(data, at, end, number, name, known)
    except DnsFormatError as error:  # its length still says where the next record begins
        message.damage = f"the data of a {type_name(number)} record: {error}"
        value, target, hints = _generic(data, at, end), None, []
    if target is not None:
        targets.add(target)
    message.records.append(DnsRecord(name, type_name(number), value, ttl, hints))
    return end


def _value(
    data: bytes, at: int, end: int, number: int, owner: str, known: dict[int, tuple[str, int]]
) -> tuple[str, str | None, list[str]]:
    """Return a record's value as text, the name whose addresses may follow, and address hints."""
    length = end - at
    if (number == _A and length == 4) or (number == _AAAA and length == 16):
        return address_text(data[at:end]), None, []
    if number in _NAME_TYPES:
        name = _name(data, at, known)[0].lower()
        return name, name, []
    if number == _MX and length > 2:
        name = _name(data, at + 2, known)[0].lower()
        return f"{(data[at] << 8) | data[at + 1]} {name}", name, []
    if number == _SRV and length > 6:
        priority, weight = _PAIR.unpack_from(data, at)
        name = _name(data, at + 6, known)[0].lower()
        return f"{priority} {weight} {(data[at + 4] << 8) | data[at + 5]} {name}", name, []
    if number == _TXT:
        return text_of(_strings(data, at, end)), None, []
    if number in (_SVCB, _HTTPS) and length > 2:
        return _service(data, at, end, owner, known)
    return _generic(data, at, end), None, []


def _generic(data: bytes, at: int, end: int) -> str:
    r"""Return data of an unknown kind as RFC 3597 §5 writes it: ``\# 4 0a000001``."""
    return f"\\# {end - at} {data[at : min(end, at + _MOST_TEXT)].hex()}".rstrip()


def _strings(data: bytes, at: int, end: int) -> bytes:
    parts = []
    while at < end:
        length = data[at]
        parts.append(data[at + 1 : min(at + 1 + length, end)])
        at += 1 + length
    return b"".join(parts)[:_MOST_TEXT]


def _service(
    data: bytes, at: int, end: int, owner: str, known: dict[int, tuple[str, int]]
) -> tuple[str, str | None, list[str]]:
    """Read SVCB or HTTPS data (RFC 9460 §2.2): priority, target, parameters by key.

    A target of ``.`` stands for the owner (§2.5.2), and in alias mode, priority 0, for "no such service" (§2.5.1).
    """
    priority = (data[at] << 8) | data[at + 1]
    name, at = _name(data, at + 2, known)
    target = name.lower() or (owner if priority else "")
    hints: list[str] = []
    while at + 4 <= end:
        key, length = _PAIR.unpack_from(data, at)
        at += 4
        size = 4 if key == _IPV4HINT else 16 if key == _IPV6HINT else 0
        if size:
            for first in range(at, min(at + length, end) - size + 1, size):
                hints.append(address_text(data[first : first + size]))
        at += length
    return target, target or None, hints


def _name(data: bytes, at: int, known: dict[int, tuple[str, int]]) -> tuple[str, int]:
    """Read a name; return it with its letter case and escapes, and the offset behind it.

    ``known`` keeps the names by offset, so that no part of a message is walked twice. A pointer must lead backwards
    (RFC 1035 §4.1.4: a *prior* occurrence), which rules out every loop.
    """
    labels: list[str] = []
    visited: list[tuple[int, int, int]] = [(at, 0, 0)]
    lowest = at
    behind = 0
    length = 1
    size = len(data)
    tail = ""
    while True:
        if at >= size:
            raise _CutError("a name is cut")
        head = data[at]
        if head == 0:
            at += 1
            break
        if head < 64:
            label = data[at + 1 : at + 1 + head]
            if len(label) < head:
                raise _CutError("a name is cut in a label")
            length += head + 1
            if length > _MOST_NAME:
                raise DnsFormatError("a name is longer than 255 bytes")
            if label.translate(None, _PLAIN):
                labels.append("".join([_ESCAPED[byte] for byte in label]))
            else:
                labels.append(label.decode("ascii"))
            at += 1 + head
            continue
        if head < 192:
            raise DnsFormatError(f"a label of the unknown kind 0x{head & 0xC0:02x}")
        if at + 2 > size:
            raise _CutError("a name is cut in a pointer")
        target = ((head & 0x3F) << 8) | data[at + 1]
        behind = behind or at + 2
        found = known.get(target)
        if found is not None and target < lowest:
            tail, rest = found
            length += rest - 1
            if length > _MOST_NAME:
                raise DnsFormatError("a name is longer than 255 bytes")
            break
        if target >= lowest or target < 12:
            raise DnsFormatError(f"a compression pointer to offset {target} does not lead backwards to a name")
        if len(visited) > _MOST_JUMPS:
            raise DnsFormatError("a name of more than 127 compression pointers")
        visited.append((target, len(labels), length - 1))
        lowest = at = target
    if tail:
        labels.append(tail)
    for place, first, before in visited:
        known[place] = (".".join(labels[first:]), length - before)
    return known[visited[0][0]][0], behind or at
