"""Bytes handed to a socket, or got from it: the events of one message."""

from __future__ import annotations

from mcpdetect.ingest.adapter import EXCERPT
from mcpdetect.ingest.strace import payload
from mcpdetect.ingest.strace.addresses import sockaddr
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Peer
from mcpdetect.ingest.strace.values import excerpt_in, number, vectors
from mcpdetect.model.net import SocketReceive, SocketSend

__all__ = ["content", "named_peer", "received", "sent"]

_VECTORS = {"readv", "preadv", "preadv2", "writev", "pwritev", "pwritev2"}


def content(call: Call) -> tuple[bytes, bool, int | None]:
    """Return bytes, whether the text is cut, and the size offered, of a read or write family call."""
    if call.name in _VECTORS:
        return vectors(call.argument(1), EXCERPT)
    found = excerpt_in(call.argument(1), EXCERPT)
    size = number(call.argument(2))
    return (*found, size) if found is not None else (b"", False, size)


def named_peer(text: str) -> Peer | None:
    """Return the remote end that an address argument names, None when it names none."""
    address = sockaddr(text)
    if address is None or address.family == "unspec":
        return None
    port = address.port if address.family != "vsock" else None
    return Peer(address.family, address.address, port, address.path, "argument")


def _far_end(call: Call, recorder: Recorder, handle: Handle | None, named: Peer | None) -> Peer | None:
    """Return the remote end of one message: the address given with it, unless the socket is a connected stream."""
    socket = handle.socket if handle is not None else None
    if socket is not None and socket.transport == "tcp" and socket.peer is not None and socket.peer.address:
        return socket.peer
    if named is not None and (named.address is not None or named.path is not None):
        return named
    return recorder.remote(handle, call.argument(0))


def sent(
    call: Call,
    recorder: Recorder,
    fd: int | None,
    handle: Handle | None,
    data: bytes,
    cut: bool,
    tried: int | None,
    named: Peer | None,
    *,
    size: int | None = None,
    fastopen: bool = False,
) -> None:
    """Emit one message that was sent, or could not be, and what its bytes say.

    Args:
        call: the call.
        recorder: the trace.
        fd: the descriptor.
        handle: what it leads to, None when unknown.
        data: the bytes offered, as far as the log shows them.
        cut: some of them are missing.
        tried: how many were offered.
        named: the address given with the message.
        size: how many were sent, where that is not the call's result.
        fastopen: sent with MSG_FASTOPEN.
    """
    socket = handle.socket if handle else None
    if size is None:
        size = call.result
    if size is not None:
        data = data[:size]
        cut = len(data) < size
    if socket is not None and socket.transport is None and named is not None and named.port and not fastopen:
        # Only a datagram takes an address with every message.
        socket.transport = "udp" if named.address is not None else None
    remote = _far_end(call, recorder, handle, named)
    transport = socket.transport if socket else None
    if cut and transport != "netlink":
        recorder.cut("socket.send", call.where)
    if socket is not None and fastopen and named is not None and (call.ok or call.error == "EINPROGRESS"):
        socket.peer = named
        socket.peer.source = "connect"
        socket.pending = call.error == "EINPROGRESS"
    if recorder.wants("socket.send"):
        recorder.emit(
            SocketSend(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                socket.id if socket else None,
                fd,
                transport,
                remote.address if remote else None,
                remote.port if remote else None,
                remote.path if remote else None,
                ("argument" if remote is named else remote.source) if remote else None,
                size,
                tried,
                data,
                cut,
                fastopen=fastopen,
                process=call.thread.process.id,
                tid=call.thread.number,
            )
        )
    if socket is not None:
        payload.sent(call, recorder, socket, remote, data, cut)


def received(
    call: Call,
    recorder: Recorder,
    fd: int | None,
    handle: Handle | None,
    data: bytes,
    cut: bool,
    named: Peer | None,
    *,
    size: int | None = None,
) -> None:
    """Emit one message that was received, or could not be, and what its bytes say; arguments as for ``sent``."""
    socket = handle.socket if handle else None
    if size is None:
        size = call.result
    if size is None:
        data, cut = b"", False
    else:
        data = data[:size]
        cut = len(data) < size
    transport = socket.transport if socket else None
    if cut and transport != "netlink":
        recorder.cut("socket.receive", call.where)
    remote = _far_end(call, recorder, handle, named)
    if recorder.wants("socket.receive"):
        recorder.emit(
            SocketReceive(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                socket.id if socket else None,
                fd,
                transport,
                remote.address if remote else None,
                remote.port if remote else None,
                remote.path if remote else None,
                ("argument" if remote is named else remote.source) if remote else None,
                size,
                data,
                cut,
                process=call.thread.process.id,
                tid=call.thread.number,
            )
        )
    if socket is not None and size:
        payload.received(call, recorder, socket, remote, data, cut)
