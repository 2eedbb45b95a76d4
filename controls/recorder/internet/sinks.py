"""TCP sinks: one connection, answered in the protocol the client speaks first, whatever its port."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import struct

from controls.recorder.internet.journal import Endpoint, Journal
from controls.recorder.internet.names import Names
from controls.recorder.internet.streams import Ended, Plain, Stream, TlsServer, Wrapped
from controls.recorder.internet.web import Line, Web
from controls.recorder.internet.wire import looks_like_query, question

__all__ = ["Sinks"]

PATIENCE = 10.0
"""Seconds without a byte after which a connection is closed."""
DNS_TCP, DNS_TLS = 53, 853

_PAUSE = 0.02
_DEEPEST = 4
"""Most layers of TLS and proxies inside one another."""
_MOST_LINE = 16384
_SO_ORIGINAL_DST = 80  # linux/netfilter_ipv4.h; the same number with IPv6
_H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # RFC 9113 section 3.4
# POST /v1/collect HTTP/1.1
_REQUEST_LINE = re.compile(rb"[A-Z]{3,16}+ [^ \r\n]++ HTTP/1\.[01]\r?\n")
_REQUEST_START = re.compile(rb"[A-Z]{3,16}+ [^\r\n]*+\Z")


def destination(sock: socket.socket) -> Endpoint:
    """Return what a client dialled, before the packet was redirected to the sink."""
    local = sock.getsockname()
    try:
        if sock.family == socket.AF_INET:
            raw = sock.getsockopt(socket.IPPROTO_IP, _SO_ORIGINAL_DST, 16)
            port, address = struct.unpack_from(">H4s", raw, 2)
        else:
            raw = sock.getsockopt(socket.IPPROTO_IPV6, _SO_ORIGINAL_DST, 28)
            port, address = struct.unpack_from(">H4x16s", raw, 2)
    except OSError:
        return plain(local[0]), local[1]
    return plain(str(ipaddress.ip_address(address))), port


def plain(address: str) -> str:
    """Return an address without its zone, an IPv4-mapped one as IPv4."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found)


class _Journalled:
    """A stream whose received bytes are written to the journal, until what it carries is TLS of its own."""

    def __init__(self, below: Stream, journal: Journal, number: int, layer: str) -> None:
        self._below = below
        self._journal = journal
        self._number = number
        self._layer = layer
        self._back = b""
        self._ahead = b""
        self.quiet = False

    async def peek(self) -> bytes:
        """Return what ``read`` will, which goes into the journal only then."""
        if not self._back and not self._ahead:
            self._ahead = await self._below.read()
        return self._back or self._ahead

    async def read(self) -> bytes:
        if self._back:
            back, self._back = self._back, b""
            return back
        data, self._ahead = self._ahead or await self._below.read(), b""
        if data and not self.quiet:
            self._journal.write("received", connection=self._number, layer=self._layer, bytes=data)
        return data

    async def write(self, data: bytes) -> None:
        await self._below.write(data)

    def unread(self, data: bytes) -> None:
        self._back = data + self._back


class Sinks:
    """Serves connections.

    Args:
        names: the name server's knowledge.
        journal: where everything received goes.
        tls: gives the contexts of TLS servers.
        patience: seconds without a byte after which a connection is closed.
    """

    def __init__(self, names: Names, journal: Journal, tls: TlsServer, patience: float = PATIENCE) -> None:
        self._names = names
        self._journal = journal
        self._tls = tls
        self._patience = patience
        self._web = Web(names, journal)
        self._serving: set[asyncio.Task[None]] = set()

    async def listen(self, server: socket.socket) -> None:
        """Serve every connection to a listening socket, which is not blocking, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, peer = await loop.sock_accept(server)
            except OSError:
                # The client is gone already, or it has opened more connections than there are descriptors.
                await asyncio.sleep(_PAUSE)
                continue
            task = asyncio.ensure_future(self.serve(sock, (plain(peer[0]), peer[1])))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def serve(self, sock: socket.socket, peer: Endpoint) -> None:
        """Serve one connection to its end."""
        to = destination(sock)
        name = self._names.name_of(to[0])
        number = self._journal.connection(peer, to, name)
        stream = Plain(sock, self._patience)
        by = "sink"
        try:
            by = await self._layer(stream, Line(number, name or to[0], to[1], "http", (to[0],)), 0)
        except Ended as end:
            by = end.by
        try:
            if by in ("error", "sink"):
                await asyncio.wait_for(self._rest(sock, stream, number), self._patience)
        except (Ended, TimeoutError):
            pass
        finally:
            self._journal.write("closed", connection=number, by=by)
            sock.close()

    async def _rest(self, sock: socket.socket, stream: Plain, number: int) -> None:
        """Hear a client out after the last word to it; closing at once would throw away what it has sent."""
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        while data := await stream.read():
            self._journal.write("received", connection=number, layer="rest", bytes=data)

    async def _layer(self, stream: Stream, line: Line, depth: int) -> str:
        """Serve what is in a stream; return who ended it."""
        if not isinstance(stream, _Journalled):
            stream = _Journalled(stream, self._journal, line.number, "tls" if line.scheme == "https" else "tcp")
        first = await stream.peek()
        if not first:
            return "client"
        if first[0] == 0x16 and first[1:2] in (b"", b"\x03") and depth < _DEEPEST:
            # It goes into the journal as what is inside.
            stream.quiet = True
            return await self._secure(stream, line, depth)
        return await self._speak(stream, line, depth)

    async def _secure(self, stream: Stream, line: Line, depth: int) -> str:
        """Serve what is inside of TLS (RFC 8446 section 5.1: a record of type 22, version 3.x)."""
        inner = Wrapped(stream, self._tls, tuple(dict.fromkeys((line.host, *line.dialled))))
        try:
            alpn, version, cipher = await inner.handshake()
        except Ended as end:
            self._journal.write("tls-failed", connection=line.number, sni=inner.sni, why=str(end), bytes=inner.raw)
            raise
        self._journal.write("tls", connection=line.number, sni=inner.sni, alpn=alpn, version=version, cipher=cipher)
        try:
            return await self._layer(inner, line.secured(inner.sni, alpn), depth + 1)
        finally:
            await inner.close()

    async def _speak(self, stream: _Journalled, line: Line, depth: int) -> str:
        first = await self._enough(stream, line)
        stream.unread(first)
        if first.startswith(_H2_PREFACE):
            # Loaded when spoken: most recordings speak neither, and in an emulated machine each costs seconds.
            from controls.recorder.internet import http2

            return await http2.serve(stream, line, self._web)
        if _REQUEST_LINE.match(first):
            from controls.recorder.internet import http1

            return await self._through(await http1.serve(stream, line, self._web), stream, line, depth)
        if first[:1] == b"\x05" and len(first) > 1 and len(first) == 2 + first[1]:
            return await self._through(await _socks(stream), stream, line, depth)
        if line.names or (looks_like_query(first[2:]) and int.from_bytes(first[:2], "big") == len(first) - 2):
            return await self._answer_names(stream, line)
        return await self._plain(stream, line)

    async def _through(self, to: Endpoint | None, stream: _Journalled, line: Line, depth: int) -> str:
        """Serve what comes through a proxy; None: there was no more."""
        if to is None or depth >= _DEEPEST:
            return "client"
        self._journal.write("tunnel", connection=line.number, to=list(to))
        return await self._layer(stream, Line(line.number, to[0], to[1], "http", (to[0],)), depth + 1)

    async def _enough(self, stream: _Journalled, line: Line) -> bytes:
        """Read until it is plain what is spoken."""
        data = await stream.read()
        while len(data) < _MOST_LINE and (
            (data and _H2_PREFACE.startswith(data)) or (_REQUEST_START.match(data) and b"\n" not in data)
        ):
            more = await stream.read()
            if not more:
                break
            data += more
        return data

    async def _answer_names(self, stream: Stream, line: Line) -> str:
        """Answer DNS over TCP (RFC 7766 section 8) or TLS (RFC 7858 section 3.3)."""
        data = b""
        while True:
            while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], "big"):
                more = await stream.read()
                if not more:
                    return "client"
                data += more
            size = int.from_bytes(data[:2], "big")
            message, data = data[2 : 2 + size], data[2 + size :]
            over = "tls" if line.scheme == "https" else "tcp"
            self._journal.query(over, question(message), message, connection=line.number)
            answer = self._names.answer(message, stream=True)
            await asyncio.sleep(answer.delay)
            if answer.message is not None:
                await stream.write(len(answer.message).to_bytes(2, "big") + answer.message)

    async def _plain(self, stream: Stream, line: Line) -> str:
        """Serve a protocol unknown here: give back what comes, swallow it, or hang up."""
        how = self._names.find(line.host).tcp
        while data := await stream.read():
            if how == "echo":
                await stream.write(data)
            elif how == "close":
                return "sink"
        return "client"


async def _exactly(stream: Stream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = await stream.read()
        if not more:
            raise Ended("client")
        data += more
    stream.unread(data[size:])
    return data[:size]


async def _socks(stream: Stream) -> Endpoint:
    """Grant a SOCKS 5 client what it asks for (RFC 1928 sections 3 to 6); return where it wants to go."""
    await _exactly(stream, (await _exactly(stream, 2))[1])
    await stream.write(b"\x05\0")
    kind = (await _exactly(stream, 4))[3]
    if kind == 3:
        host = (await _exactly(stream, (await _exactly(stream, 1))[0])).decode("latin-1")
    else:
        host = str(ipaddress.ip_address(await _exactly(stream, 4 if kind == 1 else 16)))
    port = int.from_bytes(await _exactly(stream, 2), "big")
    await stream.write(b"\x05\0\0\x01\0\0\0\0\0\0")
    return host, port
