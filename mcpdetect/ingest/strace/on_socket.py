"""Sockets: made, connected, bound, accepted, asked about, shut down."""

from __future__ import annotations

import errno
import re

from mcpdetect.ingest.strace.addresses import Address, family_name, sockaddr
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Peer, Socket
from mcpdetect.ingest.strace.values import decoration_of, descriptor, fields, items, number
from mcpdetect.model.net import SocketConnect, SocketListen, SocketOpen, SocketState
from mcpdetect.model.vocabulary import Outcome, Transport

__all__ = [
    "on_accept",
    "on_bind",
    "on_connect",
    "on_getpeername",
    "on_getsockopt",
    "on_poll",
    "on_shutdown",
    "on_socket",
    "on_socketcall",
    "on_socketpair",
    "socket_of",
    "transport_of",
]

_SOCKET_KINDS = ("socket.open", "socket.connect", "socket.send", "socket.receive", "socket.listen")
# linux/net.h
_TYPES = {1: "SOCK_STREAM", 2: "SOCK_DGRAM", 3: "SOCK_RAW", 5: "SOCK_SEQPACKET", 10: "SOCK_PACKET"}
_PROTOCOLS = {"6": "IPPROTO_TCP", "17": "IPPROTO_UDP", "1": "IPPROTO_ICMP", "58": "IPPROTO_ICMPV6"}

_OUTCOMES: dict[str, Outcome] = {
    "EINPROGRESS": "in_progress",
    "EALREADY": "in_progress",
    # An interrupted connect goes on without its caller (POSIX connect()).
    "EINTR": "in_progress",
    "ERESTARTSYS": "in_progress",
    "ERESTARTNOINTR": "in_progress",
    "ECONNREFUSED": "refused",
    "ECONNRESET": "refused",
    "ENETUNREACH": "unreachable",
    "EHOSTUNREACH": "unreachable",
    "ENETDOWN": "unreachable",
    "EHOSTDOWN": "unreachable",
    "EPERM": "denied",
    "EACCES": "denied",
    "ETIMEDOUT": "timed_out",
}


# connect answers these only where it has to wait for the other side
_STREAM_ERRORS = frozenset({"EINPROGRESS", "EALREADY", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EISCONN"})


def transport_of(family: str, kind: str, protocol: str) -> Transport | None:
    """Return how data on a socket travels, by its family, type (``stream``) and protocol (``IPPROTO_TCP``)."""
    if family in {"inet", "inet6"}:
        if "ICMP" in protocol:
            return "raw" if kind == "raw" else "icmp"
        if kind == "raw":
            return "raw"
        if kind == "stream" and protocol in {"IPPROTO_TCP", "IPPROTO_IP", "IPPROTO_MPTCP", "0", ""}:
            return "tcp"
        if kind == "dgram" and protocol in {"IPPROTO_UDP", "IPPROTO_IP", "IPPROTO_UDPLITE", "0", ""}:
            return "udp"
        return "other"
    named: dict[str, Transport] = {"unix": "unix", "netlink": "netlink", "vsock": "vsock", "packet": "packet"}
    return named.get(family, "other" if family else None)


def _kind(text: str) -> tuple[str, bool]:
    """Return the type without its flags (``stream``) and whether it is close-on-exec."""
    code = number(text)
    if code is not None and "/*" not in text:
        name = _TYPES.get(code & 0xF, str(code & 0xF))
        return name.removeprefix("SOCK_").lower(), bool(code & 0x80000)
    text = text.partition("/* ")[2].removesuffix(" */") or text
    return text.partition("|")[0].removeprefix("SOCK_").lower(), "SOCK_CLOEXEC" in text


def _describe(call: Call) -> tuple[str, str, bool, str, Transport | None]:
    family = family_name(call.argument(0))
    kind, closing = _kind(call.argument(1))
    protocol = call.argument(2)
    protocol = protocol.partition("/* ")[2].removesuffix(" */") or protocol
    if family in {"inet", "inet6"}:
        protocol = _PROTOCOLS.get(protocol, protocol)
        code = number(protocol)
        if code is not None and code != 0:
            protocol = _PROTOCOLS.get(str(code), protocol)
    return family, kind, closing, protocol, transport_of(family, kind, protocol)


def on_socket(call: Call, recorder: Recorder) -> None:
    """socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = 3<TCP:[571196]>."""
    family, kind, closing, protocol, transport = _describe(call)
    socket: Socket | None = None
    if call.result is not None:
        socket = recorder.new_socket()
        socket.family, socket.transport = family, transport
        if call.decoration is not None:
            socket.inode = decoration_of(call.decoration).inode
        call.thread.table.put(call.result, Handle("socket", owner=call.thread.process, socket=socket), closing=closing)
    if recorder.wants("socket.open"):
        recorder.emit(
            SocketOpen(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                socket.id if socket else None,
                call.result,
                family,
                kind,
                protocol,
                process=call.thread.process.id,
                tid=call.thread.number,
            )
        )


def on_socketpair(call: Call, recorder: Recorder) -> None:
    """socketpair(AF_UNIX, SOCK_STREAM, 0, [4, 5]) = 0: two connected sockets, one event each."""
    family, kind, closing, protocol, transport = _describe(call)
    ends: list[Socket] = []
    for text in items(call.argument(3)) if call.ok else ():
        fd, decoration = descriptor(text)
        if fd is None:
            continue
        socket = recorder.new_socket()
        socket.family, socket.transport = family, transport
        socket.peer = Peer(family)
        if decoration is not None:
            socket.inode = decoration.inode
        call.thread.table.put(fd, Handle("socket", owner=call.thread.process, socket=socket), closing=closing)
        ends.append(socket)
        if recorder.wants("socket.open"):
            recorder.emit(_opened(call, socket.id, fd, family, kind, protocol))
    if len(ends) == 2:
        ends[0].partner, ends[1].partner = ends[1], ends[0]
    if not ends and recorder.wants("socket.open"):
        recorder.emit(_opened(call, None, None, family, kind, protocol))


def _opened(call: Call, socket: str | None, fd: int | None, family: str, kind: str, protocol: str) -> SocketOpen:
    return SocketOpen(
        call.where,
        call.t_ns,
        call.name,
        call.result,
        call.error,
        socket,
        fd,
        family,
        kind,
        protocol,
        process=call.thread.process.id,
        tid=call.thread.number,
    )


def socket_of(call: Call, recorder: Recorder, family: str = "") -> tuple[int | None, Handle | None]:
    """Return the socket that the first argument leads to; a descriptor of unknown origin becomes one."""
    fd, handle = recorder.handle_of(call.thread, call.argument(0))
    if fd is None or fd < 0:
        return fd, None
    if handle is None or handle.socket is None:
        if call.error in {"EBADF", "ENOTSOCK"}:
            return fd, None
        handle = Handle("socket", socket=recorder.new_socket())
        if handle.socket is not None:
            handle.socket.family = family
            handle.socket.transport = transport_of(family, "", "?") if family not in {"inet", "inet6", ""} else None
        call.thread.table.put(fd, handle)
    return fd, handle


def _outcome(call: Call, transport: Transport | None, address: Address | None) -> Outcome:
    if call.ok:
        return "established" if transport not in {"udp", "icmp", "raw", None} else "unknown"
    if call.error is None:
        return "unknown"
    if call.error == "EINVAL":
        # a blackhole route answers EINVAL to a valid address
        ip = address is not None and address.address is not None and bool(address.port)
        return "unreachable" if ip else "failed"
    return _OUTCOMES.get(call.error, "failed")


def on_connect(call: Call, recorder: Recorder) -> None:
    """connect: the destination that counts from now on, whatever a decoration says later."""
    address = sockaddr(call.argument(1))
    family = address.family if address else ""
    fd, handle = socket_of(call, recorder, family if family != "unspec" else "")
    socket = handle.socket if handle else None
    if socket is not None and address is not None:
        if socket.transport is None and family in {"inet", "inet6"} and call.error in _STREAM_ERRORS:
            socket.transport = "tcp"
        pending = call.error in {"EINPROGRESS", "EINTR", "ERESTARTSYS", "EALREADY"}
        if (call.ok or pending) and family == "unspec":
            socket.peer = Peer()
            socket.pending = False
        elif call.ok or pending:
            port = address.port if family != "vsock" else None
            socket.peer = Peer(family, address.address, port, address.path, "connect")
            socket.pending = pending
            socket.sent = False
            socket.greeting = socket.inbox = socket.outbox = b""
    hidden = address is None or (address.cut and address.address is None and address.path is None)
    if hidden and call.error not in {"EFAULT", "EINVAL", "EBADF", "ENOTSOCK"}:
        recorder.loss("name-hidden", "a connect whose destination the log does not show", call, ("socket.connect",))
    if not recorder.wants("socket.connect"):
        return
    transport = socket.transport if socket else None
    recorder.emit(
        SocketConnect(
            call.where,
            call.t_ns,
            call.name,
            call.result,
            call.error,
            socket.id if socket else None,
            fd,
            transport,
            family,
            address.address if address else None,
            address.port if address and family != "vsock" else None,
            address.path if address else None,
            _outcome(call, transport, address),
            raw_address=address.raw if address else None,
            duration_ns=call.duration_ns,
            process=call.thread.process.id,
            tid=call.thread.number,
        )
    )


def _listen_event(call: Call, operation: str, fd: int | None, socket: Socket | None, peer: Peer | None) -> SocketListen:
    return SocketListen(
        call.where,
        call.t_ns,
        call.name,
        call.result,
        call.error,
        operation,  # type: ignore[arg-type]
        socket.id if socket else None,
        fd,
        socket.transport if socket else None,
        peer.address if peer else None,
        peer.port if peer else None,
        peer.path if peer else None,
        process=call.thread.process.id,
        tid=call.thread.number,
    )


def on_bind(call: Call, recorder: Recorder) -> None:
    """Bind and listen: the local end."""
    address = sockaddr(call.argument(1)) if call.name == "bind" else None
    fd, handle = socket_of(call, recorder, address.family if address else "")
    socket = handle.socket if handle else None
    if call.name == "bind":
        local = Peer(address.family, address.address, address.port, address.path) if address else None
        if socket is not None and call.ok:
            socket.local = local
    else:
        local = socket.local if socket else None
        if local is None or local.port == 0:
            _, decoration = descriptor(call.argument(0))
            if decoration is not None and decoration.local is not None:
                local = Peer("", *decoration.local)
    if recorder.wants("socket.listen"):
        recorder.emit(_listen_event(call, call.name, fd, socket, local))


def on_accept(call: Call, recorder: Recorder) -> None:
    """accept, accept4: a new socket whose peer is the caller."""
    _, handle = socket_of(call, recorder)
    listening = handle.socket if handle else None
    address = sockaddr(call.argument(1))
    socket: Socket | None = None
    peer: Peer | None = None
    if address is not None:
        peer = Peer(address.family, address.address, address.port, address.path, "accept")
    if call.result is not None:
        decoration = decoration_of(call.decoration) if call.decoration else None
        if peer is None and decoration is not None and decoration.remote is not None:
            peer = Peer("", *decoration.remote, None, "accept")
        socket = recorder.new_socket()
        if listening is not None:
            socket.family, socket.transport = listening.family, listening.transport
        if decoration is not None and socket.transport is None:
            socket.transport = decoration.transport
        socket.peer = peer
        closing = "SOCK_CLOEXEC" in call.argument(3)
        call.thread.table.put(call.result, Handle("socket", owner=call.thread.process, socket=socket), closing=closing)
    if recorder.wants("socket.listen"):
        recorder.emit(_listen_event(call, "accept", call.result, socket, peer))


def _state(call: Call, recorder: Recorder, fd: int | None, socket: Socket | None, source: str, status: str) -> None:
    if recorder.wants("socket.state"):
        recorder.emit(
            SocketState(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                socket.id if socket else None,
                fd,
                source,  # type: ignore[arg-type]
                status,
                process=call.thread.process.id,
                tid=call.thread.number,
            )
        )


def on_getsockopt(call: Call, recorder: Recorder) -> None:
    """getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0."""
    option = call.argument(2)
    # SO_ERROR      0x4      0x4 /* SO_ERROR */
    if not call.ok or not (option == "SO_ERROR" or option.startswith("0x4 ") or option in {"4", "0x4"}):
        return
    if call.argument(1).partition(" ")[0] not in {"SOL_SOCKET", "0x1", "1"}:
        return
    status = (items(call.argument(3)) or [""])[0].partition(" ")[0]
    code = number(status)
    if code:
        status = errno.errorcode.get(code, str(code))
    elif code == 0:
        status = "0"
    fd, handle = socket_of(call, recorder)
    socket = handle.socket if handle else None
    if socket is not None:
        socket.pending = False
    _state(call, recorder, fd, socket, "so_error", status)


def on_getpeername(call: Call, recorder: Recorder) -> None:
    """getpeername: whether the socket is connected."""
    fd, handle = socket_of(call, recorder)
    if call.ok or call.error is not None:
        _state(call, recorder, fd, handle.socket if handle else None, "peer", call.error or "0")


def on_shutdown(call: Call, recorder: Recorder) -> None:
    """shutdown(3, SHUT_WR) = 0."""
    fd, handle = socket_of(call, recorder)
    status = call.argument(1) if call.ok else call.error or ""
    _state(call, recorder, fd, handle.socket if handle else None, "shutdown", status)


# ([{fd=3, revents=POLLOUT|POLLERR}])
_EVENTS = re.compile(r"fd=(\d{1,10})[^,{}]*+, revents=([A-Z|0-9x]++)", re.ASCII)


def on_poll(call: Call, recorder: Recorder) -> None:
    """poll, ppoll: a wait on a socket that is not connected yet, or that got no answer."""
    if call.result is None or not recorder.wants("socket.state"):
        return
    table = call.thread.table.handles
    if call.result == 0:
        if call.argument(2) == "0" or call.argument(2).startswith("{tv_sec=0, tv_nsec=0}"):
            return
        for text in items(call.argument(0)):
            fd, _ = descriptor(fields(text).get("fd", ""))
            handle = table.get(fd) if fd is not None else None
            if handle is not None and handle.socket is not None:
                _state(call, recorder, fd, handle.socket, "poll", "timeout")
        return
    for match in _EVENTS.finditer(call.note):
        handle = table.get(int(match[1]))
        if handle is not None and handle.socket is not None and handle.socket.pending:
            _state(call, recorder, int(match[1]), handle.socket, "poll", match[2])


def on_socketcall(call: Call, recorder: Recorder) -> None:
    """socketcall(SYS_CONNECT, ...) that strace did not take apart."""
    recorder.loss("undecoded-call", "a socketcall that strace did not decode", call, _SOCKET_KINDS)
