"""The UDP sink: every address and port, by transparent sockets; DNS and NTP are answered, anything else comes back.

The kernel hands datagrams over with the address they were sent to (``tproxy`` in nftables rewrites nothing), and the
answer is sent from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
import time

from controls.recorder.internet.journal import Endpoint, Journal
from controls.recorder.internet.names import Names
from controls.recorder.internet.sinks import plain
from controls.recorder.internet.wire import looks_like_query, question

__all__ = ["Datagrams"]

DNS, NTP = 53, 123

_MOST = 65536
_AT_ONCE = 64
_BUFFER = 64 * 1024 * 1024
_SO_RCVBUFFORCE, _SO_RXQ_OVFL = 33, 40  # asm-generic/socket.h
_COUNT = struct.Struct("=I")
_IP_TRANSPARENT, _IP_RECVORIGDSTADDR = 19, 20  # linux/in.h
_IPV6_RECVORIGDSTADDR, _IPV6_TRANSPARENT = 74, 75  # linux/in6.h
_NTP_EPOCH = 2_208_988_800  # seconds from 1900 to 1970, RFC 5905 section 6


class Datagrams:
    """Serves datagrams of both families.

    Args:
        names: the name server's knowledge.
        journal: where everything received goes.
    """

    def __init__(self, names: Names, journal: Journal) -> None:
        self._names = names
        self._journal = journal
        self._sockets: list[socket.socket] = []
        self._dropped: dict[socket.socket, int] = {}
        self._waiting: set[asyncio.Task[None]] = set()

    def open(self, port: int, *, transparent: bool = True) -> int:
        """Listen on a port of every address; return the port.

        Args:
            port: where the firewall sends datagrams; 0 for any.
            transparent: take what was sent to other ports and addresses as well, which needs root.
        """
        loop = asyncio.get_running_loop()
        for family in (socket.AF_INET, socket.AF_INET6):
            one = _socket(family, transparent=transparent)
            self._sockets.append(one)
            one.bind(("0.0.0.0" if family == socket.AF_INET else "::", port))
            port = one.getsockname()[1]
            loop.add_reader(one, self._arrived, one)
        return port

    def close(self) -> None:
        """Stop listening."""
        for one in self._sockets:
            asyncio.get_running_loop().remove_reader(one)
            one.close()
        for task in self._waiting:
            task.cancel()

    def _arrived(self, sock: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                data, extra, _, peer = sock.recvmsg(_MOST, 256)
                dropped = next((_COUNT.unpack(raw)[0] for _, kind, raw in extra if kind == _SO_RXQ_OVFL), 0)
                if dropped > self._dropped.get(sock, 0):
                    self._journal.write("dropped", datagrams=dropped - self._dropped.get(sock, 0))
                    self._dropped[sock] = dropped
                self._take(sock, data, (peer[0], peer[1]), _destination(sock, extra))

    def _take(self, sock: socket.socket, data: bytes, peer: Endpoint, to: Endpoint) -> None:
        self._journal.write(
            "datagram", peer=[plain(peer[0]), peer[1]], to=list(to), name=self._names.name_of(to[0]), bytes=data
        )
        if to[1] == DNS or looks_like_query(data):
            self._journal.query("udp", question(data), data, to=list(to))
            answer = self._names.answer(data)
            if answer.message is None:
                return
            if answer.delay:
                task = asyncio.ensure_future(self._later(answer.delay, sock, answer.message, peer, to))
                self._waiting.add(task)
                task.add_done_callback(self._waiting.discard)
                return
            data = answer.message
        elif to[1] == NTP and len(data) >= 48 and data[0] & 7 == 3:
            data = _time(data)
        _send(sock, data, peer, to)

    async def _later(self, delay: float, sock: socket.socket, data: bytes, peer: Endpoint, to: Endpoint) -> None:
        await asyncio.sleep(delay)
        _send(sock, data, peer, to)


def _socket(family: int, *, transparent: bool) -> socket.socket:
    one = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    four = family == socket.AF_INET
    if not four:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    one.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
    if transparent:
        one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        if four:
            one.setsockopt(socket.IPPROTO_IP, _IP_TRANSPARENT, 1)
            one.setsockopt(socket.IPPROTO_IP, _IP_RECVORIGDSTADDR, 1)
        else:
            one.setsockopt(socket.IPPROTO_IPV6, _IPV6_TRANSPARENT, 1)
            one.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVORIGDSTADDR, 1)
    return one


def _destination(sock: socket.socket, extra: list[tuple[int, int, bytes]]) -> Endpoint:
    for level, kind, data in extra:
        if (level, kind) == (socket.IPPROTO_IP, _IP_RECVORIGDSTADDR):
            port, address = struct.unpack_from(">H4s", data, 2)
            return str(ipaddress.IPv4Address(address)), port
        if (level, kind) == (socket.IPPROTO_IPV6, _IPV6_RECVORIGDSTADDR):
            port, address = struct.unpack_from(">H4x16s", data, 2)
            return plain(str(ipaddress.IPv6Address(address))), port
    local = sock.getsockname()
    return plain(local[0]), local[1]


def _send(sock: socket.socket, data: bytes, peer: Endpoint, to: Endpoint) -> None:
    """Answer from the address that was written to, which is local here like every other."""
    with contextlib.suppress(OSError):
        if to == tuple(sock.getsockname()[:2]) or ipaddress.ip_address(to[0]).is_unspecified:
            sock.sendto(data, peer)
            return
        with _socket(sock.family, transparent=True) as one:
            one.bind(to)
            one.sendto(data, peer)


def _time(asked: bytes) -> bytes:
    """Return the answer of a time server of stratum 1 (RFC 5905 section 7.3)."""
    now = time.time_ns()
    stamp = struct.pack(">II", now // 10**9 + _NTP_EPOCH, ((now % 10**9) << 32) // 10**9)
    head = bytes([0x20 & 0xC0 | asked[0] & 0x38 | 4, 1, asked[2], 0xEC]) + bytes(8) + b"FAKE"
    return head + stamp + asked[40:48] + stamp + stamp
