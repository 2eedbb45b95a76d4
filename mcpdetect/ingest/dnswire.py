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
from mcpdetect.ingest.dnsname import MOST_NAME, PLAIN, CutError, DnsFormatError, read_name
from mcpdetect.model.addresses import canonical
from mcpdetect.model.net import DnsRecord
from mcpdetect.model.text import text_of

__all__ = [
    "DnsFormatError",
    "DnsMessage",
    "Question",
    "address_text",
    "parse_message",
    "plain_message",
    "plain_question",
    "rcode_name",
    "type_name",
]

Question = tuple[str | None, str | None, str]
"""Folded name, spelled name where the letter case differs, type; as in ``DnsQuery``."""

_HEADER = struct.Struct("!HHHHHH")
_RECORD = struct.Struct("!HHIH")
_TTL_LENGTH = struct.Struct("!IH").unpack_from
_LOW_RCODES = [rcode_name(number) for number in range(16)]
_PLAIN_ADDRESS = {b"\xc0\x0c\0\x01": 4, b"\xc0\x0c\0\x1c": 16}
_PAIR = struct.Struct("!HH")
_NAME_TYPES = frozenset({2, 5, 12, 39})  # NS, CNAME, PTR, DNAME: the data is one name
_OPT, _MX, _SRV, _TXT, _A, _AAAA, _SVCB, _HTTPS = 41, 15, 33, 16, 1, 28, 64, 65
_IPV4HINT, _IPV6HINT = 4, 6  # RFC 9460 §14.3.2
_new = object.__new__
_MOST_TEXT = 4096  # bytes of TXT or of an unknown record that are kept


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
    questions: list[Question]
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
                at = _addresses(data, at, answers, common[0][0] or "", message.records)
                answers -= len(message.records)
                if not (answers or authorities or additional):
                    return message
        at = _read_questions(data, at, questions, message, known)
        targets: set[str] = set()
        for section, count in ((0, answers), (1, authorities), (2, additional)):
            for _ in range(count):
                at = _read_record(data, at, section, message, known, targets, flags & 15)
    except CutError as error:
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


def plain_message(data: bytes) -> DnsMessage | None:
    """Read a message as most are: one plain question, and behind it nothing or addresses of the name asked for.

    Returns:
        What ``parse_message`` returns for it; None for any other message.
    """
    # 1234 8180 0001 0002 0000 0000
    if data[4:6] != b"\0\1" or data[8:12] != b"\0\0\0\0" or (zero := data.find(b"\0", 12)) < 0:
        return None
    common = _question(data[12 : zero + 5])
    if common is None:
        return None
    records: list[DnsRecord] = []
    count = (data[6] << 8) | data[7]
    if count:
        _addresses(data, zero + 5, count, common[0][0] or "", records)
        if len(records) != count:
            return None
    message = DnsMessage.__new__(DnsMessage)
    message.id = (data[0] << 8) | data[1]
    message.response = data[2] >= 0x80
    message.rcode = _LOW_RCODES[data[3] & 15]
    message.truncated = data[2] & 2 != 0
    message.questions = [common[0]]
    message.records = records
    message.damage = ""
    return message


def plain_question(raw: bytes) -> Question | None:
    """Return the question that ``raw`` is from its first byte to its last; None where it is not, or not a plain one."""
    if raw.find(b"\0") + 5 != len(raw):
        return None
    common = _question(raw)
    return None if common is None else common[0]


def _addresses(data: bytes, at: int, count: int, owner: str, records: list[DnsRecord]) -> int:
    """Read up to ``count`` addresses of the first question's name into ``records``; return the offset behind them.

    It stops at the first record that is anything else, or is not all there.
    """
    ttl: int
    length: int
    size = len(data)
    while count and at + 12 <= size:
        # c00c 0001 0001 0000003c 0004 cb007107
        kind = data[at : at + 4]
        if kind not in _PLAIN_ADDRESS:
            break
        ttl, length = _TTL_LENGTH(data, at + 6)
        at += 12
        if length != _PLAIN_ADDRESS[kind] or at + length > size:
            return at - 12
        record = _new(DnsRecord)  # the constructor takes three times as long
        record.name = owner
        record.type = "A" if length == 4 else "AAAA"
        record.value = address_text(data[at : at + length])
        record.ttl = ttl if ttl < 0x80000000 else 0
        record.hints = []
        records.append(record)
        at += length
        count -= 1
    return at


@lru_cache(maxsize=16384)
def _question(raw: bytes) -> tuple[Question, tuple[str, int]] | None:
    """Read one question that is exactly ``raw``: how nearly every message begins, and its answer again.

    Returns:
        The question, and its name with its length for later pointers; None when it needs the careful way.
    """
    end = len(raw) - 5
    if end < 0 or end >= MOST_NAME or raw[end]:
        return None
    labels: list[bytes] = []
    at = 0
    while at < end:
        length = raw[at]
        if length > 63:
            return None
        at += 1
        labels.append(raw[at : at + length])
        at += length
    if at != end:
        return None
    text = b".".join(labels)
    # what is left are the dots between labels, unless a label needs escapes
    plain = not labels or len(text.translate(None, PLAIN)) == len(labels) - 1
    spelled = text.decode("ascii") if plain else read_name(raw, 0, {})[0]
    number = (raw[end + 1] << 8) | raw[end + 2]
    return (*_folded(spelled), type_name(number)), (spelled, end + 1)


def _read_questions(data: bytes, at: int, count: int, message: DnsMessage, known: dict[int, tuple[str, int]]) -> int:
    for _ in range(count):
        spelled, at = read_name(data, at, known)
        if at + 4 > len(data):
            message.questions.append((*_folded(spelled), ""))
            raise CutError("a question is cut behind its name")
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
        owner, at = read_name(data, at, known)
    if at + 10 > len(data):
        raise CutError("a record is cut in its header")
    number: int
    ttl: int
    length: int
    number, _, ttl, length = _RECORD.unpack_from(data, at)
    at += 10
    end = at + length
    if end > len(data):
        raise CutError(f"a record claims {length} bytes of data, {len(data) - at} are there")
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
        name = read_name(data, at, known)[0].lower()
        return name, name, []
    if number == _MX and length > 2:
        name = read_name(data, at + 2, known)[0].lower()
        return f"{(data[at] << 8) | data[at + 1]} {name}", name, []
    if number == _SRV and length > 6:
        priority, weight = _PAIR.unpack_from(data, at)
        name = read_name(data, at + 6, known)[0].lower()
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
    name, at = read_name(data, at + 2, known)
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
