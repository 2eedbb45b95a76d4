"""Streamable HTTP (MCP 2025-06-18, transports) as a wire: the SDK's own transport, tapped beneath, where the bytes are.

The server listens inside the cell, so the session is held by a thread that has entered the server's network namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from controls.recorder.client.transcript import NOTHING, Transcript
from controls.recorder.client.wire import LINE_LIMIT, MOST_BYTES, Answers, hand_over, key_of
from controls.recorder.errors import RecorderError

if TYPE_CHECKING:
    import httpx
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

__all__ = ["HttpWire", "inside", "listening"]

_CLONE_NEWNET = 0x40000000  # setns(2)
_LISTENING = "0A"  # TCP_LISTEN in /proc/net/tcp
_SECONDS = 60.0
_T = TypeVar("_T")


def listening(keeper: int, url: str) -> bool:
    """Return whether somebody listens at a URL's port; asking the kernel leaves no trace at the server.

    Args:
        keeper: process id in the server's network namespace.
        url: the server's endpoint.
    """
    port = f"{urlsplit(url).port or 80:04X}"
    for name in ("tcp", "tcp6"):
        #   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 ...
        with contextlib.suppress(OSError):
            for row in Path(f"/proc/{keeper}/net/{name}").read_text().splitlines()[1:]:
                words = row.split()
                if words[3] == _LISTENING and words[1].rpartition(":")[2] == port:
                    return True
    return False


def inside(keeper: int, work: Callable[[], _T]) -> _T:
    """Run something in a thread of its own inside a network namespace, and return what it returns.

    Args:
        keeper: process id in that namespace.
        work: what to run.

    Raises:
        RecorderError: the namespace cannot be entered, or what ``work`` raises.
    """
    found: list[_T] = []
    failed: list[RecorderError] = []

    def run() -> None:
        try:
            handle = os.open(f"/proc/{keeper}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET):
                    raise RecorderError(f"the server's namespace: {os.strerror(ctypes.get_errno())}")
            finally:
                os.close(handle)
            found.append(work())
        except RecorderError as error:
            failed.append(error)
        except OSError as error:
            failed.append(RecorderError(f"the server's namespace: {error}"))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    if not found:
        raise RecorderError("the session broke off")
    return found[0]


class HttpWire:
    """A session over HTTP.

    Args:
        url: the server's endpoint.
        transcript: what is said goes there.
        ended: a descriptor that becomes readable when the server has ended.

    Attributes:
        over: done once nothing more comes, with the reason as a status and a text.
        answers: who waits for what.
    """

    def __init__(self, url: str, transcript: Transcript, ended: int | None = None) -> None:
        self._url = url
        self._transcript = transcript
        self._taken = 0
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._out: MemoryObjectSendStream[SessionMessage] | None = None
        self._ready = asyncio.Event()
        self._leave = asyncio.Event()
        self._left = asyncio.Event()
        self.over: asyncio.Future[tuple[str, str]] = self._loop.create_future()
        self.answers = Answers()
        if ended is not None:
            self._loop.add_reader(ended, self.finish, "closed", "the server ended")

    def finish(self, status: str, why: str) -> None:
        """Take no more from the server."""
        if self._ended is not None:
            self._loop.remove_reader(self._ended)
            self._ended = None
        if not self.over.done():
            self.over.set_result((status, why))

    def sent(self, body: bytes) -> object:
        """Write down what is sent; return its id, None where it asks for no answer."""
        value = self._transcript.note("c2s", body)
        self.answers.sent(value)
        return value.get("id") if isinstance(value, dict) and "method" in value else None

    def received(self, body: bytes) -> None:
        """Write down one message of the server, or what it said instead."""
        if not body.strip():
            return
        value = self._transcript.note("s2c", body[:LINE_LIMIT])
        for one in [] if value is NOTHING else value if isinstance(value, list) else [value]:
            self.answers.received(one)

    def refused(self, identity: object, status: int) -> dict[str, object]:
        """Take an HTTP error for the answer to a request, and return it as one."""
        error: dict[str, object] = {"code": status, "message": f"HTTP status {status}"}
        answer = {"jsonrpc": "2.0", "id": identity, "error": error}
        self.answers.received(answer)
        return answer

    def took(self, size: int) -> bool:
        """Count what came; return whether it is too much."""
        self._taken += size
        if self._taken > MOST_BYTES:
            self.finish("flooded", f"the server sent more than {MOST_BYTES >> 20} MB")
        return self._taken > MOST_BYTES

    async def pump(self, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Hand what the server says to the SDK until the session is left."""
        import httpx
        from mcp.client.streamable_http import streamable_http_client

        client = httpx.AsyncClient(transport=_tap(self), timeout=httpx.Timeout(_SECONDS), trust_env=False)
        try:
            async with client, streamable_http_client(self._url, http_client=client) as (read, write, _):
                self._out = write
                self._ready.set()
                reading = asyncio.ensure_future(self._read(read, into))
                await self._leave.wait()
                reading.cancel()
                await asyncio.wait({reading})
                await read.aclose()
        except* (httpx.HTTPError, ValueError) as errors:
            self.finish("closed", f"the connection broke: {type(errors.exceptions[0]).__name__}")
        finally:
            self._left.set()

    async def _read(
        self,
        read: MemoryObjectReceiveStream[SessionMessage | Exception],
        into: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        async for one in read:
            if isinstance(one, Exception):
                continue
            value = one.message.model_dump(by_alias=True, mode="json", exclude_none=True)
            if not ("id" in value and "method" not in value and self.answers.ours(key_of(value["id"]))):
                hand_over(value, into)

    async def carry(self, out: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send what the SDK says to the server."""
        await self._ready.wait()
        async with out:
            async for one in out:
                if self._out is not None:
                    await self._out.send(one)

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        from mcp.shared.message import SessionMessage
        from mcp.types import JSONRPCMessage

        await self._ready.wait()
        if self._out is not None:
            await self._out.send(SessionMessage(JSONRPCMessage.model_validate(message)))

    async def drain(self, seconds: float) -> bool:
        """End the session; a server over HTTP lives on, and is told to end by a signal."""
        self._leave.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._left.wait()
        return self._left.is_set()

    def close(self) -> None:
        """Stop listening."""
        self.finish("closed", "the session is over")
        self._leave.set()


def _tap(wire: HttpWire) -> httpx.AsyncBaseTransport:
    """Return what carries HTTP requests and tells the wire of every byte of MCP in them."""
    import httpx

    class Body(httpx.AsyncByteStream):
        """The body of a response: JSON as a whole, a stream of events one by one (WHATWG HTML 9.2)."""

        def __init__(self, stream: httpx.AsyncByteStream, *, events: bool) -> None:
            self._stream = stream
            self._events = events
            self._rest = b""
            self._data: list[bytes] = []

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._stream:
                if wire.took(len(part)):
                    raise httpx.ReadError("flooded")
                self._rest += part
                if self._events:
                    *lines, self._rest = self._rest.split(b"\n")
                    for line in lines:
                        self._line(line.rstrip(b"\r"))
                yield part
            if not self._events:
                wire.received(self._rest)

        def _line(self, line: bytes) -> None:
            # event: message / data: {"jsonrpc":"2.0",...} / an empty line ends the event
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                wire.received(b"\n".join(self._data))
                self._data = []

        async def aclose(self) -> None:
            if self._events and self._data:
                wire.received(b"\n".join(self._data))
            await self._stream.aclose()

    class Tap(httpx.AsyncBaseTransport):
        def __init__(self) -> None:
            self._under = httpx.AsyncHTTPTransport(trust_env=False)

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            identity = wire.sent(await request.aread()) if request.method == "POST" else None
            try:
                response = await self._under.handle_async_request(request)
                if request.method == "POST" and response.status_code >= 400:
                    return httpx.Response(200, json=await self._refusal(response, identity))
            except httpx.TransportError as error:
                if request.method != "POST":
                    raise
                wire.finish("closed", f"the server went away: {type(error).__name__}")
                return httpx.Response(202)
            kind = response.headers.get("content-type", "").lower()
            if isinstance(response.stream, httpx.AsyncByteStream) and request.method in ("POST", "GET"):
                response.stream = Body(response.stream, events=kind.startswith("text/event-stream"))
            return response

        async def _refusal(self, response: httpx.Response, identity: object) -> object:
            """Return what the SDK is told of an HTTP error, which would end its transport: a JSON-RPC error."""
            body = b""
            if isinstance(response.stream, httpx.AsyncByteStream):
                async for part in response.stream:
                    if wire.took(len(part)):
                        break
                    body += part
                await response.stream.aclose()
            wire.received(body)
            return wire.refused(identity, response.status_code)

        async def aclose(self) -> None:
            await self._under.aclose()

    return Tap()
