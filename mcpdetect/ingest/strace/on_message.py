"""Sends and receives proper: sendto, sendmsg, sendmmsg, their opposites, and the descriptors that go along."""

from __future__ import annotations

from mcpdetect.ingest.adapter import EXCERPT
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.on_socket import socket_of
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle
from mcpdetect.ingest.strace.traffic import content, named_peer, received, sent
from mcpdetect.ingest.strace.values import descriptor, fields, items, number, vectors
from mcpdetect.model.net import FdPass

__all__ = ["on_receive", "on_receive_message", "on_send", "on_send_message"]

_MOST_PASSED = 64


def on_send(call: Call, recorder: Recorder) -> None:
    """sendto(3, "x", 1, MSG_FASTOPEN, {sa_family=AF_INET, ...}, 16) = 1, and send."""
    named = named_peer(call.argument(4))
    fd, handle = socket_of(call, recorder, named.family if named else "")
    data, cut, tried = content(call) if recorder.reads_sends else (b"", False, None)
    if recorder.stdio is not None:
        recorder.stdio.call(call, fd, handle, "s2c")
    fast = "MSG_FASTOPEN" in call.argument(3) or "0x20000000" in call.argument(3)
    sent(call, recorder, fd, handle, data, cut, tried, named, fastopen=fast)


def on_receive(call: Call, recorder: Recorder) -> None:
    """recvfrom(4, "..."..., 2048, 0, {sa_family=AF_INET, ...}, [28 => 16]) = 115, and recv."""
    if not recorder.reads_receives:
        return
    named = named_peer(call.argument(4))
    fd, handle = socket_of(call, recorder, named.family if named else "")
    if recorder.stdio is not None and "MSG_PEEK" not in call.argument(3):
        recorder.stdio.call(call, fd, handle, "c2s")
    data, cut, _ = content(call)
    received(call, recorder, fd, handle, data, cut, named)


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
    if recorder.stdio is not None:
        recorder.stdio.call(call, *recorder.handle_of(call.thread, call.argument(0)), "s2c")
    messages = _messages(call)
    if not any(header for header, _ in messages) and call.error != "EFAULT" and call.result != 0:
        messages = [({}, None if many else call.result)]
    for header, size in messages:
        named = named_peer(header.get("msg_name", ""))
        fd, handle = socket_of(call, recorder, named.family if named else "")
        if header:
            data, cut, tried = vectors(header.get("msg_iov", ""), EXCERPT)
        else:
            data, cut, tried = b"", True, None
            recorder.loss("unfinished", "a send whose message the log does not show", call, ("dns.query",))
        if many and size is None and call.ok:
            size = tried
        flags = call.argument(3 if many else 2)
        sent(call, recorder, fd, handle, data, cut, tried, named, size=size, fastopen="MSG_FASTOPEN" in flags)
        _passed(call, recorder, handle, header, "sent")


def on_receive_message(call: Call, recorder: Recorder) -> None:
    """Recvmsg and recvmmsg: one event a message, and the descriptors that came along."""
    if call.result is None:
        fd, handle = socket_of(call, recorder)
        if call.error is not None:
            received(call, recorder, fd, handle, b"", False, None)
        return
    if recorder.stdio is not None and "MSG_PEEK" not in ", ".join(call.arguments[2:]):
        recorder.stdio.call(call, *recorder.handle_of(call.thread, call.argument(0)), "c2s")
    for header, size in _messages(call):
        named = named_peer(header.get("msg_name", ""))
        fd, handle = socket_of(call, recorder, named.family if named else "")
        data, cut, _ = vectors(header.get("msg_iov", ""), EXCERPT)
        got = call.result if call.name == "recvmsg" else size
        received(call, recorder, fd, handle, data, cut, named, size=got)
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
