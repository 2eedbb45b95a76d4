"""Content on the move: reads, writes, sends and receives, mappings, and copies between descriptors."""

from __future__ import annotations

from mcpdetect.ingest.adapter import EXCERPT
from mcpdetect.ingest.strace import payload
from mcpdetect.ingest.strace.addresses import sockaddr
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.on_socket import socket_of
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Peer
from mcpdetect.ingest.strace.values import descriptor, excerpt_in, fields, items, number, vectors
from mcpdetect.model.event import FileChange, FileRead
from mcpdetect.model.net import FdPass, SocketReceive, SocketSend

__all__ = [
    "on_copy",
    "on_mmap",
    "on_read",
    "on_receive",
    "on_receive_message",
    "on_send",
    "on_send_message",
    "on_write",
]

_VECTORS = {"readv", "preadv", "preadv2", "writev", "pwritev", "pwritev2"}
_MOST_PASSED = 64


def _content(call: Call) -> tuple[bytes, bool, int | None]:
    """Return bytes, whether the text is cut, and the size offered, of a read or write family call."""
    if call.name in _VECTORS:
        return vectors(call.argument(1), EXCERPT)
    found = excerpt_in(call.argument(1), EXCERPT)
    size = number(call.argument(2))
    return (*found, size) if found is not None else (b"", False, size)


def on_read(call: Call, recorder: Recorder) -> None:
    """read, pread64, readv and relatives, on a file or on a socket."""
    thread = call.thread
    fd, handle = recorder.handle_of(thread, call.argument(0))
    if handle is not None and handle.socket is not None:
        if not recorder.reads_receives:
            return
        data, cut, _ = _content(call)
        _received(call, recorder, fd, handle, data, cut, None)
        return
    if (handle is not None and handle.sort == "anon") or not recorder.wants("file.read"):
        return
    data, cut, _ = _content(call)
    size = call.result
    if size is None:
        data, cut = b"", False
    else:
        data = data[:size]
        cut = len(data) < size
    if cut:
        recorder.cut("file.read", call.where)
    path = handle.path if handle else None
    recorder.emit(
        FileRead(
            call.where,
            call.t_ns,
            call.name,
            size,
            call.error,
            path,
            fd,
            size,
            data,
            cut,
            certain=handle is not None and handle.certain,
            inherited=handle is None or handle.owner is not thread.process,
            process=thread.process.id,
            tid=thread.number,
            aliases=recorder.names.aliases(path),
        )
    )


def on_write(call: Call, recorder: Recorder) -> None:
    """write, pwrite64, writev and relatives, to a file or to a socket."""
    thread = call.thread
    fd, handle = recorder.handle_of(thread, call.argument(0))
    if handle is not None and handle.socket is not None:
        if not recorder.reads_sends:
            return
        data, cut, tried = _content(call)
        _sent(call, recorder, fd, handle, data, cut, tried, None)
        return
    if (handle is not None and handle.sort == "anon") or not recorder.wants("file.change"):
        return
    data, cut, tried = _content(call)
    if call.result is not None:
        data = data[: call.result]
        cut = len(data) < call.result
    if cut:
        recorder.cut("file.change", call.where)
    recorder.emit(
        FileChange(
            call.where,
            call.t_ns,
            call.name,
            call.result,
            call.error,
            "write",
            handle.path if handle else None,
            fd=fd,
            size=call.result,
            data=data,
            cut=cut,
            certain=handle is not None and handle.certain,
            process=thread.process.id,
            tid=thread.number,
        )
    )


def _far_end(call: Call, recorder: Recorder, handle: Handle | None, named: Peer | None) -> Peer | None:
    """Return the remote end of one message: the address given with it, unless the socket is a connected stream."""
    if named is not None and (named.address is not None or named.path is not None):
        return named
    return recorder.remote(handle, call.argument(0))


def _named(text: str) -> Peer | None:
    address = sockaddr(text)
    if address is None or address.family == "unspec":
        return None
    port = address.port if address.family != "vsock" else None
    return Peer(address.family, address.address, port, address.path, "argument")


def _sent(
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


def _received(
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


def on_send(call: Call, recorder: Recorder) -> None:
    """sendto(3, "x", 1, MSG_FASTOPEN, {sa_family=AF_INET, ...}, 16) = 1, and send."""
    named = _named(call.argument(4))
    fd, handle = socket_of(call, recorder, named.family if named else "")
    data, cut, tried = _content(call) if recorder.reads_sends else (b"", False, None)
    fast = "MSG_FASTOPEN" in call.argument(3) or "0x20000000" in call.argument(3)
    _sent(call, recorder, fd, handle, data, cut, tried, named, fastopen=fast)


def on_receive(call: Call, recorder: Recorder) -> None:
    """recvfrom(4, "..."..., 2048, 0, {sa_family=AF_INET, ...}, [28 => 16]) = 115, and recv."""
    if not recorder.reads_receives:
        return
    named = _named(call.argument(4))
    fd, handle = socket_of(call, recorder, named.family if named else "")
    data, cut, _ = _content(call)
    _received(call, recorder, fd, handle, data, cut, named)


def _messages(call: Call) -> list[tuple[dict[str, str], int | None]]:
    """Return the messages of a sendmsg or sendmmsg with the size that each one's own field tells."""
    if call.name in {"sendmsg", "recvmsg"}:
        return [(fields(call.argument(1)), call.result)]
    found: list[tuple[dict[str, str], int | None]] = []
    for element in items(call.argument(1)):
        outer = fields(element)
        found.append((fields(outer.get("msg_hdr", "")), number(outer.get("msg_len", ""))))
    if call.result is not None:
        found = found[: max(call.result, 0)]
    return found


def on_send_message(call: Call, recorder: Recorder) -> None:
    """Sendmsg and sendmmsg: one event a message, and the descriptors that go along."""
    many = call.name == "sendmmsg"
    messages = _messages(call)
    if not any(header for header, _ in messages) and call.error != "EFAULT" and call.result != 0:
        messages = [({}, None if many else call.result)]
    for header, size in messages:
        named = _named(header.get("msg_name", ""))
        fd, handle = socket_of(call, recorder, named.family if named else "")
        if header:
            data, cut, tried = vectors(header.get("msg_iov", ""), EXCERPT)
        else:
            data, cut, tried = b"", True, None
            recorder.loss("unfinished", "a send whose message the log does not show", call, ("dns.query",))
        if many and size is None and call.ok:
            size = tried
        flags = call.argument(3 if many else 2)
        _sent(call, recorder, fd, handle, data, cut, tried, named, size=size, fastopen="MSG_FASTOPEN" in flags)
        _passed(call, recorder, handle, header, "sent")


def on_receive_message(call: Call, recorder: Recorder) -> None:
    """Recvmsg and recvmmsg: one event a message, and the descriptors that came along."""
    if call.result is None:
        fd, handle = socket_of(call, recorder)
        if call.error is not None:
            _received(call, recorder, fd, handle, b"", False, None)
        return
    for header, size in _messages(call):
        named = _named(header.get("msg_name", ""))
        fd, handle = socket_of(call, recorder, named.family if named else "")
        data, cut, _ = vectors(header.get("msg_iov", ""), EXCERPT)
        received = call.result if call.name == "recvmsg" else size
        _received(call, recorder, fd, handle, data, cut, named, size=received)
        _passed(call, recorder, handle, header, "received")


def _passed(call: Call, recorder: Recorder, handle: Handle | None, header: dict[str, str], direction: str) -> None:
    """cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[6</etc/hostname>]."""
    control = header.get("msg_control", "")
    if "SCM_RIGHTS" not in control and "cmsg_type=0x1" not in control:
        return
    table = call.thread.table
    socket = handle.socket if handle else None
    for text in items(control):
        message = fields(text)
        if not (message.get("cmsg_type", "").startswith(("SCM_RIGHTS", "0x1"))) or "cmsg_data" not in message:
            continue
        fds: list[int] = []
        handles: list[Handle | None] = []
        queued = socket.passed.pop(0) if direction == "received" and socket and socket.passed and call.ok else []
        for index, part in enumerate(items(message["cmsg_data"])):
            fd, decoration = descriptor(part)
            if fd is None:
                continue
            if direction == "received" and call.ok:
                known = queued[index] if index < len(queued) else None
                table.drop(fd)
                if known is not None:
                    table.put(fd, known)
            if decoration is not None:
                recorder.decorated(call.thread, fd, decoration, table.handles.get(fd))
            fds.append(fd)
            handles.append(table.handles.get(fd))
        partner = socket.partner if socket is not None and direction == "sent" and call.ok else None
        if partner is not None and len(partner.passed) < _MOST_PASSED:
            partner.passed.append(handles)
        if recorder.wants("fd.pass"):
            recorder.emit(
                FdPass(
                    call.where,
                    call.t_ns,
                    call.name,
                    call.result,
                    call.error,
                    direction,  # type: ignore[arg-type]
                    socket.id if socket else None,
                    fds,
                    [item.path if item else None for item in handles],
                    process=call.thread.process.id,
                    tid=call.thread.number,
                )
            )


def on_mmap(call: Call, recorder: Recorder) -> None:
    """mmap(NULL, 15, PROT_READ, MAP_PRIVATE, 7, 0): content of a file without a read."""
    if "MAP_ANONYMOUS" in call.argument(3) or not recorder.wants("file.read"):
        return
    fd, handle = recorder.handle_of(call.thread, call.argument(4))
    if fd is None or fd < 0 or (handle is not None and handle.sort in {"anon", "socket"}):
        return
    path = handle.path if handle else None
    recorder.emit(
        FileRead(
            call.where,
            call.t_ns,
            call.name,
            call.result,
            call.error,
            path,
            fd,
            number(call.argument(1)) if call.ok else None,
            b"",
            call.ok,
            mapped=True,
            certain=handle is not None and handle.certain,
            inherited=handle is None or handle.owner is not call.thread.process,
            process=call.thread.process.id,
            tid=call.thread.number,
            aliases=recorder.names.aliases(path),
        )
    )


def on_copy(call: Call, recorder: Recorder) -> None:
    """sendfile(out, in), splice, tee, copy_file_range(in, off, out): bytes that never pass a buffer."""
    source, target = (1, 0) if call.name.startswith("sendfile") else (0, 1 if call.name == "tee" else 2)
    fd, handle = recorder.handle_of(call.thread, call.argument(source))
    to_fd, to = recorder.handle_of(call.thread, call.argument(target))
    unseen = bool(call.result)
    thread = call.thread
    if recorder.wants("file.read") and (handle is None or handle.socket is None):
        if unseen:
            recorder.cut("file.read", call.where)
        recorder.emit(
            FileRead(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                handle.path if handle else None,
                fd,
                call.result,
                b"",
                unseen,
                certain=handle is not None and handle.certain,
                inherited=handle is None or handle.owner is not thread.process,
                to_fd=to_fd,
                to_socket=to.socket.id if to and to.socket else None,
                process=thread.process.id,
                tid=thread.number,
                aliases=recorder.names.aliases(handle.path) if handle else None,
            )
        )
    if handle is not None and handle.socket is not None:
        _received(call, recorder, fd, handle, b"", unseen, None)
    if to is not None and to.socket is not None:
        size = number(call.argument(len(call.arguments) - 1 if call.name.startswith("sendfile") else 4))
        _sent(call, recorder, to_fd, to, b"", unseen, size, None)
    elif recorder.wants("file.change") and (to is None or to.sort != "anon"):
        if unseen:
            recorder.cut("file.change", call.where)
        recorder.emit(
            FileChange(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                "write",
                to.path if to else None,
                fd=to_fd,
                size=call.result,
                cut=unseen,
                certain=to is not None and to.certain,
                process=thread.process.id,
                tid=thread.number,
            )
        )
