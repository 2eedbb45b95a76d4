"""Standard input and output of a server as a transport of the official SDK, every byte written down on the way.

The SDK's own transport starts the server itself; here it already runs in the room. This one also bears what no
transport must meet: noise between messages, lines and floods without end, a server that reads nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import IO, TYPE_CHECKING, Any

from controls.recorder.client.transcript import NOTHING, Transcript

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

__all__ = ["LINE_LIMIT", "MOST_BYTES", "MOST_LINES", "Answers", "StdioWire", "hand_over", "key_of"]

LINE_LIMIT = 7 << 20
"""Longest line taken from a server: the reader of transcripts takes 8 MB with our frame around it."""
MOST_BYTES = 64 << 20
"""Most bytes taken from a server in one session."""
MOST_LINES = 200_000
"""Most lines taken from a server in one session."""
_BLOCK = 1 << 16


def key_of(identity: object) -> str:
    """Return an id as a key: ``7`` and ``"7"`` are two ids, and an id may be anything at all."""
    return json.dumps(identity, sort_keys=True)


class Answers:
    """Who waits for which answer, beside the SDK: what it cannot understand is still an answer."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._next: asyncio.Future[dict[str, Any]] | None = None
        self._ours: set[str] = set()

    def expect_next(self) -> asyncio.Future[dict[str, Any]]:
        """Return what will hold the answer to the next request that is sent."""
        self._next = asyncio.get_running_loop().create_future()
        return self._next

    def expect(self, identity: str) -> asyncio.Future[dict[str, Any]]:
        """Return what will hold the answer to a request of ours, of which the SDK knows nothing."""
        self._ours.add(key_of(identity))
        self._open[key_of(identity)] = found = asyncio.get_running_loop().create_future()
        return found

    def ours(self, key: str) -> bool:
        """Return whether an id is one of ours."""
        return key in self._ours

    def sent(self, message: object) -> None:
        """Take note of a message that was sent."""
        if self._next is not None and isinstance(message, dict) and "method" in message and "id" in message:
            self._open[key_of(message["id"])] = self._next
            self._next = None

    def received(self, message: object) -> bool:
        """Take note of a message that came; return whether the SDK shall see it."""
        if not isinstance(message, dict) or "method" in message or "id" not in message:
            return True
        key = key_of(message["id"])
        waiting = self._open.pop(key, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)
        return key not in self._ours


def hand_over(value: object, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Give the SDK a message, or the error it makes; an SDK that listens no more gets nothing."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCMessage

    try:
        message: SessionMessage | Exception = SessionMessage(JSONRPCMessage.model_validate(value))
    except ValueError as error:  # pydantic's ValidationError is one
        message = error
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        into.send_nowait(message)


class StdioWire:
    """The pipes of a server.

    Args:
        to_server: its standard input.
        from_server: its standard output.
        transcript: what is said goes there.
        ended: a descriptor that becomes readable when the server has ended; strace and the launcher may hold its output
            open longer.

    Attributes:
        over: done once nothing more comes, with the reason as a status and a text.
        answers: who waits for what.
    """

    def __init__(
        self, to_server: IO[bytes], from_server: IO[bytes], transcript: Transcript, ended: int | None = None
    ) -> None:
        self._input = to_server
        self._to = to_server.fileno()
        self._from = from_server.fileno()
        self._ended = ended
        self._transcript = transcript
        self._buffer = bytearray()
        self._taken = 0
        self._many = 0
        self._loop = asyncio.get_running_loop()
        self._into: MemoryObjectSendStream[SessionMessage | Exception] | None = None
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._turn = asyncio.Lock()
        self.over: asyncio.Future[tuple[str, str]] = self._loop.create_future()
        self.answers = Answers()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._loop.add_reader(self._from, self._readable)
        if ended is not None:
            self._loop.add_reader(ended, self._gone)

    def _finish(self, status: str, why: str) -> None:
        self._loop.remove_reader(self._from)
        if self._ended is not None:
            self._loop.remove_reader(self._ended)
        if not self.over.done():
            self.over.set_result((status, why))
            self._lines.put_nowait(None)

    def _gone(self) -> None:
        while not self.over.done() and self._readable():
            pass
        self._finish("closed", "the server closed its output before it answered")

    def _readable(self) -> bool:
        try:
            part = os.read(self._from, _BLOCK)
        except BlockingIOError:
            return False
        except OSError:
            part = b""
        if not part:
            self._flush_rest()
            self._finish("closed", "the server closed its output before it answered")
            return False
        self._taken += len(part)
        *lines, rest = part.split(b"\n")
        for line in lines:
            self._put(bytes(self._buffer) + line)
            self._buffer.clear()
        self._buffer += rest
        if len(self._buffer) > LINE_LIMIT:
            self._flush_rest()
            self._finish("flooded", f"the server sent a line of more than {LINE_LIMIT >> 20} MB")
        elif self._taken > MOST_BYTES:
            self._finish("flooded", f"the server sent more than {MOST_BYTES >> 20} MB")
        elif self._many > MOST_LINES:
            self._finish("flooded", f"the server sent more than {MOST_LINES} lines")
        return True

    def _put(self, line: bytes) -> None:
        self._many += 1
        if self._many <= MOST_LINES and line.strip():
            self._lines.put_nowait(line)

    def _flush_rest(self) -> None:
        self._put(bytes(self._buffer[:LINE_LIMIT]))
        self._buffer.clear()

    async def pump(self, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Write what the server says down, and hand it to the SDK until nothing more comes."""
        async with into:
            while (line := await self._lines.get()) is not None:
                value = self._transcript.note("s2c", line)
                for one in [] if value is NOTHING else value if isinstance(value, list) else [value]:
                    if self.answers.received(one):
                        hand_over(one, into)

    async def carry(self, out: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send what the SDK says to the server."""
        async with out:
            async for one in out:
                await self.send(one.message.model_dump(by_alias=True, mode="json", exclude_none=True))

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message; what a server does not take is dropped with it."""
        data = json.dumps(message, separators=(",", ":")).encode()
        async with self._turn:
            self._transcript.note("c2s", data)
            self.answers.sent(message)
            rest = memoryview(data + b"\n")
            while rest and not self.over.done() and not self._input.closed:
                try:
                    rest = rest[os.write(self._to, rest) :]
                except BlockingIOError:
                    await self._room()
                except OSError:
                    self._finish("closed", "the server went away")

    async def _room(self) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(self._to, ready.set)

        def over(_: object) -> None:
            ready.set()

        self.over.add_done_callback(over)
        try:
            await ready.wait()
        finally:
            self.over.remove_done_callback(over)
            self._loop.remove_writer(self._to)

    async def drain(self, seconds: float) -> bool:
        """Close the server's input and take what it says while it ends; return whether it ended in time."""
        with contextlib.suppress(OSError):  # what was left in the buffer of a pipe nobody reads
            self._input.close()
        await asyncio.wait({self.over}, timeout=seconds)
        ended = self.over.done()
        while not self._lines.empty():
            await asyncio.sleep(0)
        return ended

    def close(self) -> None:
        """Stop listening."""
        self._finish("closed", "the session is over")
        os.set_blocking(self._from, True)
