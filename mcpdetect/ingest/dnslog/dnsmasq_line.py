"""One line of a dnsmasq log (``log-queries``, ``log-queries=extra``, ``log-queries=proto``): what it says.

The asker chooses the name in a line, so every pattern is anchored at its right end, where only dnsmasq writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from mcpdetect.ingest.dnslog.names import address_of, name_of, reverse_name

__all__ = ["HIDDEN", "Said", "read_line"]

HIDDEN = b"<name unprintable>"
"""What dnsmasq prints instead of a name with a byte that it dislikes."""

_ADDRESS = rb"[0-9A-Fa-f:.]{2,45}+(?:%[^\s/#]{1,32}+)?"

# UDP 436 127.0.0.1/36363 query[PTR] ...     3 10.77.0.2/47605 config ...     * 10.77.0.2/47605 ...
_FRONT = re.compile(rb"(?:(UDP|TCP) )?(?:(\d{1,10}|\*) (?:(" + _ADDRESS + rb")/(\d{1,5}) )?)?")
# query[A] www.example.test from 10.77.0.2     query[type=65535] api.example.test from 10.77.0.2
_QUERY = re.compile(rb"(?:query|auth)\[([^\]\s]{1,64})\] (.+) from (" + _ADDRESS + rb")", re.DOTALL)
# forwarded q.up.test to 10.77.0.1#5300     dnssec-query[DS] test to 10.77.0.1
_FORWARDED = re.compile(
    rb"(?:forwarded|dnssec-(?:query|retry)\[[^\]\s]{1,64}\]) (.+) to (" + _ADDRESS + rb")(?:#(\d{1,5}))?(?:@\S{1,64})?",
    re.DOTALL,
)
# config x.blocked.test is NXDOMAIN     /etc/hosts svc.internal.test is 10.77.0.9
# gravity blocked ads.example.test is 0.0.0.0     (Pi-hole)
_SOURCE = re.compile(
    rb"(reply|cached-stale|cached|config|auth|DHCP|/[^\s]{0,4096}"
    rb"|(?:gravity|exactly|regex|special) [a-z-]{1,20}(?: [a-z-]{1,20})?) "
)
# ... is 203.0.113.10     ... is <CNAME>     ... is NODATA-IPv6     ... is REFUSED (EDE: not ready)
_VALUE = re.compile(
    rb"(.+) is (" + _ADDRESS + rb"|<[^<>]{1,64}>|NXDOMAIN|NODATA(?:-IPv[46])?|SERVFAIL|REFUSED|FORMERR|not implemented"
    rb"|\d{1,5})(?: \(EDE: [^()\n]{0,200}\))?",
    re.DOTALL,
)
# /etc/hosts 10.77.0.9 is svc.internal.test
_REVERSE = re.compile(rb"(" + _ADDRESS + rb") is (.+)", re.DOTALL)
# overflow: 17 log entries lost
_LOST = re.compile(rb"overflow: (\d{1,9}) log entries lost")
# message repeated 2 times: [ query[A] www.example.test from 10.77.0.2]
_REPEATED = re.compile(rb"message repeated (\d{1,9}) times: \[ ?(.*)\]", re.DOTALL)
# started, version 2.90 cachesize 150
_STARTED = re.compile(rb"started, version (\S{1,64})")
_NOT_ANSWERED = re.compile(rb"ignoring query from |Maximum number of concurrent DNS queries reached")
# Lines about dnsmasq itself that show no name a client asked for.
_OTHER = re.compile(
    rb"started|compile time options: |warning: |using |cleared cache|exiting on |reading |read |DNS service |DNSSEC |"
    rb"no servers found|no upstream|ignoring nameserver |nameserver |asynchronous logging|chown of |setting |inotify|"
    rb"validation |time \d|cache size |queries |pool memory |server |possible DNS-rebind |LOUD WARNING|local addresses "
    rb"only|listening on |bound to |stopped listening |interface |ipset |nftset |failed to |FAILED to |child process |"
    rb"reducing DNS packet size |Insecure DS reply |negative DS reply |dnssec-|last message repeated |bad |Received |"
    rb"DNS rate |duplicate|directory |now checking |not using configured "
)

# 3 10.200.0.2/57465 reply query is duplicate: the same question is under way, and its answer goes to both who asked.
_DUPLICATE = b"reply query is duplicate"
_RCODES = {
    b"NXDOMAIN": "NXDOMAIN",
    b"SERVFAIL": "SERVFAIL",
    b"REFUSED": "REFUSED",
    b"FORMERR": "FORMERR",
    b"not implemented": "NOTIMP",
}
_NUMBERED = {1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 9: "NOTAUTH"}

Source = Literal["", "upstream", "policy", "hosts", "cache"]


@dataclass(slots=True)
class Said:
    """What one line says.

    Attributes:
        what: ``query``, ``answer``, ``forwarded``; ``started`` (``value``: version), ``exiting``, ``lost`` (``count``
            lines), ``unanswered`` (a query that dnsmasq did not take), ``other``; or ``""``: not understood.
        serial: number of the exchange in the ``extra`` form, None in the plain one.
        client, client_port, transport: where the line tells.
        name, spelled: as in ``DnsQuery``; None where dnsmasq hid the name.
        type: the type asked for; of an answer, what its value shows.
        value: address, target name of a reverse answer, record type in angle brackets, or upstream server.
        rcode: response code of an answer.
        no_data: an answer without record.
        source: whose answer, as in ``DnsAnswer``.
        unnamed: the line has an rcode instead of a name (``config error is REFUSED``).
        count: how many lines were lost, or how often the message came.
    """

    what: str
    serial: int | None = None
    client: str | None = None
    client_port: int | None = None
    transport: str | None = None
    name: str | None = None
    spelled: str | None = None
    type: str = ""
    value: str = ""
    rcode: str = ""
    no_data: bool = False
    source: Source = ""
    unnamed: bool = False
    count: int = 1


def read_line(body: bytes) -> Said:
    """Read the message of a line, behind time, program and process number."""
    if match := _REPEATED.fullmatch(body):
        said = read_line(match[2]) if not match[2].startswith(b"message repeated ") else Said("")
        said.count = int(match[1])
        return said
    front = _FRONT.match(body)
    said = Said("")
    at = 0
    if front is not None:
        at = front.end()
        said.transport = front[1].decode("ascii").lower() if front[1] else None
        said.serial = int(front[2]) if front[2] and front[2] != b"*" else None
        said.client = address_of(front[3]) if front[3] else None
        said.client_port = int(front[4]) if front[4] else None
    if match := _QUERY.fullmatch(body, at):
        said.what = "query"
        said.type = _type(match[1])
        _set_name(said, match[2])
        said.client = said.client or address_of(match[3])
    elif body[at:] == _DUPLICATE:
        said.what = "other"
    elif match := _SOURCE.match(body, at):
        _answer(said, match[1], body, match.end())
    elif match := _FORWARDED.fullmatch(body, at):
        said.what = "forwarded"
        said.value = f"{address_of(match[2]) or ''}#{int(match[3]) if match[3] else 53}"
        _set_name(said, match[1])
    else:
        _itself(said, body, at)
    return said


def _itself(said: Said, body: bytes, at: int) -> None:
    """Read a line about dnsmasq itself."""
    if match := _STARTED.match(body, at):
        said.what = "started"
        said.value = match[1].decode("ascii", "replace")
    elif match := _LOST.fullmatch(body, at):
        said.what = "lost"
        said.count = int(match[1])
    elif _NOT_ANSWERED.match(body, at):
        said.what = "unanswered"
    elif body.startswith(b"exiting on ", at):
        said.what = "exiting"
    elif _OTHER.match(body, at):
        said.what = "other"


def _type(raw: bytes) -> str:
    """Return the name of a type; ``type=65535`` is one without (C ``querystr``)."""
    number = raw.removeprefix(b"type=")
    if number != raw and number.isdigit():
        return f"TYPE{int(number)}"
    return raw.decode("ascii", "backslashreplace").upper()


def _set_name(said: Said, raw: bytes) -> None:
    if raw != HIDDEN:
        said.name, said.spelled = name_of(raw)


def _answer(said: Said, source: bytes, body: bytes, at: int) -> None:
    said.source = _source(source)
    match = _VALUE.fullmatch(body, at)
    if match is None:
        # the value is a name only where an address was asked for backwards
        reverse = _REVERSE.fullmatch(body, at)
        address = address_of(reverse[1]) if reverse else None
        if reverse is None or address is None:
            return
        said.what, said.type, said.rcode = "answer", "PTR", "NOERROR"
        said.name = reverse_name(address)
        said.value = "" if reverse[2] == HIDDEN else name_of(reverse[2])[0]
        return
    said.what = "answer"
    value = match[2]
    said.unnamed = match[1] == b"error"
    if not said.unnamed:
        _set_name(said, match[1])
    if value[:1] == b"<":
        said.rcode = "NOERROR"
        said.type = said.value = "" if value == HIDDEN else _type(value[1:-1])
    elif value.startswith(b"NODATA"):
        said.rcode, said.no_data = "NOERROR", True
        said.type = {b"NODATA-IPv4": "A", b"NODATA-IPv6": "AAAA"}.get(value, "")
    elif value in _RCODES:
        said.rcode = _RCODES[value]
    elif value.isdigit():
        said.rcode = _NUMBERED.get(int(value)) or f"RCODE{int(value)}"
    else:
        address = address_of(value)
        if address is None:
            said.what = ""
            return
        said.rcode, said.value = "NOERROR", address
        said.type = "AAAA" if b":" in value else "A"


def _source(word: bytes) -> Source:
    if word == b"reply":
        return "upstream"
    if word.startswith(b"cached"):
        return "cache"
    if word[:1] == b"/" or word == b"DHCP":
        return "hosts"
    return "" if word == b"auth" else "policy"
