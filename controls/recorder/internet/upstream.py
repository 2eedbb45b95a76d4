"""The name server behind the cell's own: dnsmasq asks it over UDP, and over TCP where an answer is long."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

from controls.recorder.internet.journal import Journal
from controls.recorder.internet.names import Names
from controls.recorder.internet.wire import question

__all__ = ["upstream"]

_PATIENCE = 10.0


class _Queries(asyncio.DatagramProtocol):
    def __init__(self, names: Names, journal: Journal) -> None:
        self._names = names
        self._journal = journal

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._journal.query("dnsmasq", question(data), data)
        answer = self._names.answer(data)
        if answer.message is None:
            return
        if answer.delay:
            asyncio.get_running_loop().call_later(answer.delay, self._transport.sendto, answer.message, addr)
        else:
            self._transport.sendto(answer.message, addr)


async def upstream(names: Names, journal: Journal, port: int) -> None:
    """Listen on a port of loopback.

    Args:
        names: what is known.
        journal: where queries are written.
        port: UDP and TCP.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            while True:
                size = int.from_bytes(await asyncio.wait_for(reader.readexactly(2), _PATIENCE), "big")
                message = await asyncio.wait_for(reader.readexactly(size), _PATIENCE)
                journal.query("dnsmasq", question(message), message)
                found = names.answer(message, stream=True)
                await asyncio.sleep(found.delay)
                if found.message is not None:
                    writer.write(len(found.message).to_bytes(2, "big") + found.message)
                    await writer.drain()
        writer.close()

    await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Queries(names, journal), local_addr=("127.0.0.1", port)
    )
    await asyncio.start_server(answer, "127.0.0.1", port)
