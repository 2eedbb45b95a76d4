"""Byte streams of the sinks: a TCP connection, and TLS inside any stream, so that a sink may look before it speaks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from controls.recorder.internet.authority import Authority

__all__ = ["Ended", "Plain", "Stream", "TlsServer", "Wrapped"]

_T = TypeVar("_T")
_READ = 65536
_MOST_CONTEXTS = 256
_MOST_RAW = 65536
_PROTOCOLS = ("h2", "http/1.1", "http/1.0", "dot")
"""ALPN names that are taken, in the server's order."""


class Ended(Exception):
    """A stream that cannot go on; ``by`` says who or what ended it."""

    def __init__(self, by: str, why: str = "") -> None:
        super().__init__(why or by)
        self.by = by


class Stream(Protocol):
    """What a sink reads from and writes to."""

    async def read(self) -> bytes:
        """Return what comes next, ``b""`` at its end; raise ``Ended`` where it breaks or nothing comes in time."""
        ...

    async def write(self, data: bytes) -> None:
        """Send; raise ``Ended`` where nobody takes it."""
        ...

    def unread(self, data: bytes) -> None:
        """Put back what was read, for the next ``read``."""
        ...


class Plain:
    """A TCP connection.

    A client that hangs up on what it is told has often said something before: writing that fails ends nothing, and all
    that came is read first.

    Args:
        sock: the connection, not blocking.
        patience: seconds without a byte after which it is ended.
    """

    def __init__(self, sock: socket.socket, patience: float) -> None:
        self._sock = sock
        self._patience = patience
        self._back = b""
        self._deaf = False

    async def read(self) -> bytes:
        """Return what comes next."""
        if self._back:
            back, self._back = self._back, b""
            return back
        try:
            return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._sock, _READ), self._patience)
        except TimeoutError as error:
            raise Ended("idle") from error
        except OSError as error:
            raise Ended("client", str(error)) from error

    async def write(self, data: bytes) -> None:
        """Send, as long as the client takes it."""
        if self._deaf:
            return
        try:
            await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(self._sock, data), self._patience)
        except TimeoutError as error:
            raise Ended("idle") from error
        except OSError:
            self._deaf = True

    def unread(self, data: bytes) -> None:
        """Put back what was read."""
        self._back = data + self._back


class TlsServer:
    """Contexts of TLS servers, one a name; made as names are asked for.

    Args:
        authority: file of the certificate authority.
        protocols: name to the ALPN protocols its server takes, None for all that are known.
    """

    def __init__(self, authority: Path, protocols: Callable[[str], tuple[str, ...] | None]) -> None:
        self._file = authority
        self._authority: Authority | None = None
        self._protocols = protocols
        self._contexts: dict[tuple[str, ...], ssl.SSLContext] = {}

    def context(self, names: tuple[str, ...]) -> ssl.SSLContext:
        """Return the context of a server with a certificate for ``names``, whose protocols are the first one's.

        Raises:
            ValueError: no certificate can hold that name.
        """
        found = self._contexts.get(names)
        if found is None:
            if self._authority is None:
                self._authority = Authority(self._file)
            found = _context(self._authority.leaf(*names), self._protocols(names[0]) or _PROTOCOLS)
            if len(self._contexts) >= _MOST_CONTEXTS:
                self._contexts.pop(next(iter(self._contexts)))
            self._contexts[names] = found
        return found


def _context(chain: bytes, protocols: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(list(protocols))
    # The module takes certificates from files alone; this one is in memory and nameless.
    handle = os.memfd_create("leaf", os.MFD_CLOEXEC)
    try:
        os.write(handle, chain)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)
    return context


class Wrapped:
    """The server's end of TLS inside another stream.

    Args:
        below: the stream that carries it.
        server: gives the contexts.
        fallback: the names and addresses of the certificate shown to a client that names no server.

    Attributes:
        sni: the name that the client asked for, None before and without.
        raw: what the client sent until the handshake ended or failed.
    """

    def __init__(self, below: Stream, server: TlsServer, fallback: tuple[str, ...]) -> None:
        self._below = below
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._back = b""
        self.sni: str | None = None
        self.raw = b""

        def choose(tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
            self.sni = name
            try:
                tls.context = server.context((name.lower(),) if name else fallback)
            except ValueError:
                return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
            return None

        first = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        first.sni_callback = choose
        self._tls = first.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def handshake(self) -> tuple[str | None, str, str]:
        """Finish the handshake; return ALPN's protocol, the version and the cipher.

        Raises:
            Ended: it failed; ``str`` tells why.
        """
        try:
            await self._until(self._tls.do_handshake)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError) as error:
            raise Ended("client", "the client went away in the middle of the handshake") from error
        cipher = self._tls.cipher()
        return self._tls.selected_alpn_protocol(), self._tls.version() or "", cipher[0] if cipher else ""

    async def read(self) -> bytes:
        """Return what comes next; an end without TLS's own goodbye is an end too."""
        if self._back:
            back, self._back = self._back, b""
            return back
        try:
            return await self._until(lambda: self._tls.read(_READ))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def write(self, data: bytes) -> None:
        """Send."""
        try:
            await self._until(lambda: self._tls.write(data))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError) as error:
            raise Ended("client") from error

    def unread(self, data: bytes) -> None:
        """Put back what was read."""
        self._back = data + self._back

    async def close(self) -> None:
        """Say goodbye, without waiting for the other's."""
        with contextlib.suppress(ssl.SSLError, Ended):
            with contextlib.suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
            await self._flush()

    async def _until(self, act: Callable[[], _T]) -> _T:
        """Do a step of TLS, carrying bytes to and fro until it is done."""
        while True:
            try:
                result = act()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._below.read()
                if data:
                    if self._tls.version() is None and len(self.raw) < _MOST_RAW:
                        self.raw += data
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                raise
            except ssl.SSLError as error:
                await self._flush()
                raise Ended("error", error.reason or str(error)) from error
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._below.write(self._outgoing.read())
