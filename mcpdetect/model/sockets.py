"""Events of sockets, as system calls show them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mcpdetect.model.event import CallEvent
from mcpdetect.model.vocabulary import Outcome, RemoteSource, Transport

__all__ = [
    "FdPass",
    "SocketConnect",
    "SocketListen",
    "SocketOpen",
    "SocketReceive",
    "SocketSend",
    "SocketState",
]


@dataclass(slots=True)
class SocketOpen(CallEvent):
    """A socket was made, or could not be.

    Attributes:
        socket: identity of the open socket (``s1``, ``s2``, ...), shared by every descriptor that names it through
            dup, fork and fd passing; None when the call failed.
        fd: the descriptor.
        family: the address family without ``AF_`` in lower case: ``inet``, ``inet6``, ``unix``, ``vsock``, ...
        type: ``stream``, ``dgram``, ``seqpacket``, ``raw``, ...
        protocol: as written (``IPPROTO_TCP``).
    """

    kind: Literal["socket.open"] = field(default="socket.open", kw_only=True)
    socket: str | None = None
    fd: int | None = None
    family: str = ""
    type: str = ""
    protocol: str = ""


@dataclass(slots=True)
class SocketConnect(CallEvent):
    """A connect call.

    Attributes:
        socket: identity of the socket, None for a descriptor of unknown origin.
        fd: the descriptor.
        transport: how its data travels, ``other`` or None when unknown.
        family: address family of the destination (``inet``, ``unspec``, ...), ``""`` unknown.
        address: canonical IP address; None for other families and where the evidence does not show it.
        port: its port.
        path: unix socket path; abstract names begin with ``@``. For vsock, ``cid:port``.
        outcome: what this call alone shows; ``correlate.attempts`` finds the final one.
        raw_address: the address as written, where it differs from ``address`` (v4-mapped, NAT64).
        duration_ns: time spent in the call.
    """

    kind: Literal["socket.connect"] = field(default="socket.connect", kw_only=True)
    socket: str | None = None
    fd: int | None = None
    transport: Transport | None = None
    family: str = ""
    address: str | None = None
    port: int | None = None
    path: str | None = None
    outcome: Outcome = "unknown"
    raw_address: str | None = field(default=None, kw_only=True)
    duration_ns: int | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class SocketState(CallEvent):
    """A later word about a socket's connection.

    Attributes:
        socket, fd: as in ``SocketConnect``.
        source: ``so_error`` (getsockopt SO_ERROR; ``status`` is its errno name, ``"0"`` for success), ``peer``
            (getpeername; ``status`` errno name or ``"0"``), ``poll`` (a wait on this socket ended; ``status`` is
            ``timeout`` or the returned events), ``close`` (last known descriptor closed), ``shutdown``.
        status: see ``source``.
    """

    kind: Literal["socket.state"] = field(default="socket.state", kw_only=True)
    socket: str | None = None
    fd: int | None = None
    source: Literal["so_error", "peer", "poll", "close", "shutdown"] = "so_error"
    status: str = ""


@dataclass(slots=True)
class SocketSend(CallEvent):
    """Data handed to a socket: send family, write family, sendfile and splice into it.

    One event per destination: a ``sendmmsg`` makes one for every message that was sent, or, when the call failed,
    one for every message that was tried.

    Attributes:
        socket, fd, transport: as in ``SocketConnect``.
        address, port, path: the remote end, by ``remote_source``.
        remote_source: how the remote end is known, best first: ``argument``, ``connect``, ``accept``, ``decoration``.
        size: bytes sent, None when unknown or failed (then ``tried`` bytes were offered).
        tried: bytes offered.
        data: their beginning (bounded).
        cut: ``data`` is shorter than what was sent or tried.
        fastopen: sent with MSG_FASTOPEN, which connects as well.
    """

    kind: Literal["socket.send"] = field(default="socket.send", kw_only=True)
    socket: str | None = None
    fd: int | None = None
    transport: Transport | None = None
    address: str | None = None
    port: int | None = None
    path: str | None = None
    remote_source: RemoteSource | None = None
    size: int | None = None
    tried: int | None = None
    data: bytes = b""
    cut: bool = False
    fastopen: bool = field(default=False, kw_only=True)


@dataclass(slots=True)
class SocketReceive(CallEvent):
    """Data received from a socket. A result of 0 on a stream is its end.

    Attributes:
        socket, fd, transport, address, port, path, remote_source: as in ``SocketSend``.
        size: bytes received, None when unknown or failed.
        data: their beginning (bounded).
        cut: ``data`` is shorter than what was received.
    """

    kind: Literal["socket.receive"] = field(default="socket.receive", kw_only=True)
    socket: str | None = None
    fd: int | None = None
    transport: Transport | None = None
    address: str | None = None
    port: int | None = None
    path: str | None = None
    remote_source: RemoteSource | None = None
    size: int | None = None
    data: bytes = b""
    cut: bool = False


@dataclass(slots=True)
class SocketListen(CallEvent):
    """A step of serving: bind, listen or accept.

    Attributes:
        operation: which.
        socket, fd, transport: as in ``SocketConnect``; for accept, of the new socket.
        address, port, path: the local end for bind and listen, the remote end for accept.
    """

    kind: Literal["socket.listen"] = field(default="socket.listen", kw_only=True)
    operation: Literal["bind", "listen", "accept"] = "bind"
    socket: str | None = None
    fd: int | None = None
    transport: Transport | None = None
    address: str | None = None
    port: int | None = None
    path: str | None = None


@dataclass(slots=True)
class FdPass(CallEvent):
    """Descriptors passed over a unix socket (SCM_RIGHTS) or taken with pidfd_getfd.

    Attributes:
        direction: ``sent`` or ``received``; a descriptor taken is received.
        socket: identity of the unix socket, None for pidfd_getfd.
        fds: the descriptors, numbered as in this process.
        paths: what each names, in the same order, where the evidence shows it.
    """

    kind: Literal["fd.pass"] = field(default="fd.pass", kw_only=True)
    direction: Literal["sent", "received"] = "sent"
    socket: str | None = None
    fds: list[int] = field(default_factory=list)
    paths: list[str | None] = field(default_factory=list)
