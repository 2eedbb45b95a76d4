"""What the HTTP/1.1 and HTTP/2 sinks share: where a request came in, its place in the journal, and its answer."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import json
import struct
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs, urlsplit

from controls.recorder.internet.answers import Reply, Request, page_for
from controls.recorder.internet.journal import Journal
from controls.recorder.internet.names import Names
from controls.recorder.internet.streams import Ended
from controls.recorder.internet.wire import TYPES, question, wire_name

__all__ = ["Body", "Line", "Web", "host_of"]

_MESSAGE = "application/dns-message"  # RFC 8484 section 6
_JSON = "application/dns-json"
_MOST_BODY = 1024 * 1024
_DNS_PORTS = (53, 853)


@dataclass(frozen=True, slots=True)
class Line:
    """Where bytes come in.

    Attributes:
        number: the connection.
        host: the server's name as far as known: what was dialled, or what TLS asked for.
        port: the port that was dialled.
        scheme: ``http``, or ``https`` inside of TLS.
        dialled: what a certificate must hold for a client that names nobody.
        alpn: the protocol that TLS settled on.
    """

    number: int
    host: str
    port: int
    scheme: str
    dialled: tuple[str, ...] = ()
    alpn: str | None = None

    @property
    def names(self) -> bool:
        """Whether DNS is spoken here whatever the first bytes look like."""
        return self.alpn == "dot" or (self.port in _DNS_PORTS and self.alpn is None)

    def secured(self, sni: str | None, alpn: str | None) -> Line:
        """Return the line inside of TLS."""
        return replace(self, host=sni or self.host, scheme="https", alpn=alpn)


@dataclass(slots=True)
class Body:
    """A request's body as it grows; of one that is too long only the beginning is kept, and its size."""

    kept: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.size += len(data)
        self.kept += data[: max(0, _MOST_BODY - len(self.kept))]


class Web:
    """Answers requests.

    Args:
        names: the name server's knowledge, with the pages of the table.
        journal: where requests are written.
    """

    def __init__(self, names: Names, journal: Journal) -> None:
        self._names = names
        self._journal = journal

    async def respond(self, request: Request, line: Line, size: int) -> Reply:
        """Write a request to the journal and return its answer.

        Args:
            request: the request.
            line: where it came in.
            size: bytes of its body, which may be more than were kept.

        Raises:
            Ended: it is not answered.
        """
        self._journal.write(
            "request",
            connection=line.number,
            protocol=request.protocol,
            scheme=request.scheme,
            method=request.method,
            host=request.host,
            path=request.path,
            headers=[list(one) for one in request.headers],
            body=request.body,
            **({"body_size": size} if size != len(request.body) else {}),
        )
        message = _question_of(request)
        if message is not None:
            return await self._name(request, line, message)
        host = host_of(request.host) or line.host
        return page_for(request, self._names.find(host).pages)

    async def _name(self, request: Request, line: Line, message: bytes) -> Reply:
        """Answer DNS over HTTPS (RFC 8484)."""
        self._journal.query("https", question(message), message, connection=line.number)
        answer = self._names.answer(message, stream=True)
        await asyncio.sleep(answer.delay)
        if answer.message is None:
            raise Ended("sink", "silence")
        if _JSON in request.header("accept") and "name=" in urlsplit(request.path).query:
            return Reply(200, (("content-type", _JSON),), _as_json(message, answer.message))
        return Reply(200, (("content-type", _MESSAGE), ("cache-control", "max-age=300")), answer.message)


def host_of(authority: str) -> str:
    """Return the host of ``host:port``, ``[address]:port`` or either without a port; ``""`` for what is neither."""
    try:
        return urlsplit("//" + authority).hostname or ""
    except ValueError:
        return ""


def _question_of(request: Request) -> bytes | None:
    """Return the DNS query that a request carries, None when it carries none."""
    if request.method == "POST" and request.header("content-type").partition(";")[0].strip().lower() == _MESSAGE:
        return request.body
    if request.method != "GET":
        return None
    parts = urlsplit(request.path)
    # GET /dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB
    asked = parse_qs(parts.query)
    if "dns" in asked and (parts.path == "/dns-query" or _MESSAGE in request.header("accept")):
        text = asked["dns"][0]
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
    # GET /resolve?name=www.example.com&type=AAAA, accept: application/dns-json
    if "name" in asked and _JSON in request.header("accept"):
        word = asked.get("type", ["A"])[0].upper()
        try:
            kind = TYPES.get(word) or int(word)
            return (
                struct.pack(">HHHHHH", 0, 0x0100, 1, 0, 0, 0)
                + wire_name(asked["name"][0])
                + struct.pack(">HH", kind, 1)
            )
        except (ValueError, struct.error):
            return None
    return None


def _as_json(query: bytes, message: bytes) -> bytes:
    """Return an answer as the JSON that public resolvers give: addresses alone are spelled out, other data in hex."""
    asked = question(query)
    name, kind = (asked.name, asked.kind) if asked is not None else ("", 0)
    answers = []
    at = asked.end if asked is not None else len(message)
    for _ in range(int.from_bytes(message[6:8], "big")):
        at += 2 if message[at] & 0xC0 else message.index(b"\0", at) + 1 - at
        number, _, ttl, size = struct.unpack_from(">HHIH", message, at)
        data = message[at + 10 : at + 10 + size]
        at += 10 + size
        shown = str(ipaddress.ip_address(data)) if number in (TYPES["A"], TYPES["AAAA"]) else data.hex()
        answers.append({"name": name, "type": number, "TTL": ttl, "data": shown})
    status = message[3] & 0x0F
    return json.dumps({"Status": status, "Question": [{"name": name, "type": kind}], "Answer": answers}).encode()
