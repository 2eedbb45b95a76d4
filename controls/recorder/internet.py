"""The fake internet: an upstream name server that knows every name, and sinks that answer on every port.

Runs as a process of its own inside the internet namespace: ``python -m controls.recorder.internet MODE``. It prints
``ready`` once everything listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import json
import socket
import struct
import sys
from typing import cast

__all__ = ["DNS_MODES", "DNS_PORT", "FOREIGN_DNS_PORT", "SINK_PORT", "address4", "address6", "probe"]

DNS_PORT = 5300
"""Where the upstream name server listens on loopback; dnsmasq asks it."""
FOREIGN_DNS_PORT = 5301
"""Where questions to any other name server than the configured one arrive."""
SINK_PORT = 7007
"""Where redirected TCP and UDP arrive."""
DNS_MODES = ("answer", "ipv4", "nxdomain", "servfail", "refused", "silent")
"""How names are answered: with A and AAAA, with A alone, by an error, or not at all."""

_RCODES = {"nxdomain": 3, "servfail": 2, "refused": 5}  # RFC 1035 §4.1.1
_A, _AAAA, _IN = 1, 28, 1
_MAX_MESSAGE = 64 * 1024


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.lower().rstrip(".").encode()).digest()


def address4(name: str) -> str:
    """Return the one IPv4 address of a name, inside 44.128.0.0/10: public to every guard, and never reached."""
    one = _digest(name)
    return f"44.{128 + one[0] % 64}.{one[1]}.{1 + one[2] % 254}"


def address6(name: str) -> str:
    """Return the one IPv6 address of a name, inside 2fff:cafe::/32, which nobody was given."""
    one = _digest(name)
    return str(ipaddress.IPv6Address(b"\x2f\xff\xca\xfe" + bytes(8) + one[3:7]))


def _question(message: bytes) -> tuple[str, int, int] | None:
    """Return name, type and end offset of a query's first question, None when it is no such thing."""
    labels = []
    at = 12
    while at < len(message) and message[at]:
        size = message[at]
        if size > 63 or at + 1 + size >= len(message):
            return None
        labels.append(message[at + 1 : at + 1 + size].decode("latin-1"))
        at += 1 + size
    if at + 5 > len(message):
        return None
    return ".".join(labels), struct.unpack_from(">H", message, at + 1)[0], at + 5


def reply(message: bytes, mode: str) -> bytes | None:
    """Return the answer to one DNS query, None for silence."""
    if len(message) < 17 or mode == "silent":
        return None
    asked = _question(message)
    if asked is None:
        return None
    name, kind, end = asked
    rcode = _RCODES.get(mode, 0)
    record = b""
    if not rcode:
        if kind == _A:
            record = ipaddress.IPv4Address(address4(name)).packed
        elif kind == _AAAA and mode != "ipv4":
            record = ipaddress.IPv6Address(address6(name)).packed
    answer = struct.pack(">HHHIH", 0xC00C, kind, _IN, 300, len(record)) + record if record else b""
    # QR, RD copied, RA; one question, the record, nothing else.
    flags = 0x8080 | (struct.unpack_from(">H", message, 2)[0] & 0x0100) | rcode
    head = message[:2] + struct.pack(">HHHHH", flags, 1, 1 if answer else 0, 0, 0)
    return head + message[12:end] + answer


class _Names(asyncio.DatagramProtocol):
    def __init__(self, mode: str) -> None:
        self._mode = mode

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = reply(data, self._mode)
        if answer is not None:
            self._transport.sendto(answer, addr)


class _Datagrams(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._transport.sendto(b"sink: got " + str(len(data)).encode() + b" bytes\n", addr)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one TCP connection: HTTP with a short document, anything else with a line, then close."""
    try:
        first = await asyncio.wait_for(reader.read(_MAX_MESSAGE), 10)
        if first:
            body = b"ok\n"
            if b" HTTP/1." in first.split(b"\r\n", 1)[0]:
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 3\r\n\r\n"
                body = head + body
            writer.write(body)
            await writer.drain()
    except (OSError, TimeoutError):
        pass
    finally:
        writer.close()


def probe(order: str) -> None:
    """Act where a denial lets nothing through: ask the name server, and broadcast on the wire, where nobody answers.

    Args:
        order: JSON of the name to ask for, the server (``""``: nobody), the broadcast address, port and text.
    """
    name, server, broadcast, port, text = json.loads(order)
    question = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        if server:
            one.sendto(struct.pack(">HHHIH", 0x4D50, 0x0100, 1, 0, 0) + question + b"\0\0\1\0\1", (server, 53))
        one.sendto(text.encode(), (broadcast, port))


def _ordered() -> None:
    """Take an order from standard input."""
    line = sys.stdin.readline()
    if line:
        probe(line)
        print("probed", flush=True)
    else:
        asyncio.get_running_loop().remove_reader(sys.stdin)


async def _main(mode: str) -> None:
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, _ordered)
    await loop.create_datagram_endpoint(lambda: _Names(mode), local_addr=("127.0.0.1", DNS_PORT))
    # A datagram socket on :: takes IPv4 too.
    await loop.create_datagram_endpoint(lambda: _Names(mode), local_addr=("::", FOREIGN_DNS_PORT))
    await loop.create_datagram_endpoint(_Datagrams, local_addr=("::", SINK_PORT))
    servers = [
        await asyncio.start_server(_serve, "0.0.0.0", SINK_PORT),
        await asyncio.start_server(_serve, "::", SINK_PORT),
    ]
    print("ready", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
