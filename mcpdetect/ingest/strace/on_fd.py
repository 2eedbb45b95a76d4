"""Descriptors as such: dup, close, pipes, anonymous files, and what moves them between processes."""

from __future__ import annotations

import re

from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle
from mcpdetect.ingest.strace.values import decoration_of, descriptor, items, number, string_in
from mcpdetect.model.net import FdPass, SocketState
from mcpdetect.model.text import text_of

__all__ = ["on_anonymous", "on_close", "on_close_range", "on_dup", "on_fcntl", "on_memfd", "on_pidfd_getfd", "on_pipe"]

_INTEGER = re.compile(r"\d{1,10}\Z", re.ASCII)


def on_close(call: Call, recorder: Recorder) -> None:
    """Handle close: the descriptor leads nowhere; the last one of a socket ends it."""
    if not call.ok and call.error not in {"EINTR", "EIO"}:
        return
    thread = call.thread
    text = call.argument(0)
    fd = int(text) if _INTEGER.match(text) else descriptor(text)[0]
    if fd is None:
        return
    if "<" in text:
        recorder.handle_of(thread, text)
    handle = thread.table.drop(fd)
    if handle is not None:
        handle.closed = True
    if handle is None or handle.socket is None or handle.socket.holders > 0 or not recorder.wants("socket.state"):
        return
    recorder.emit(
        SocketState(
            call.where,
            call.t_ns,
            call.name,
            call.result,
            call.error,
            handle.socket.id,
            fd,
            "close",
            process=thread.process.id,
            tid=thread.number,
        )
    )


def on_close_range(call: Call, recorder: Recorder) -> None:
    """close_range(3, 4294967295, 0)."""
    first, last = number(call.argument(0)), number(call.argument(1))
    if not call.ok or first is None or last is None:
        return
    table = call.thread.table
    chosen = [fd for fd in table.handles if first <= fd <= last]
    if "CLOSE_RANGE_CLOEXEC" in call.argument(2):
        table.closing.update(chosen)
        return
    for fd in chosen:
        handle = table.drop(fd)
        if handle is not None:
            handle.closed = True


def _install(call: Call, recorder: Recorder, fd: int, source: Handle | None, *, closing: bool) -> None:
    """Put what ``source`` leads to at ``fd``, the returned decoration's word first."""
    table = call.thread.table
    if source is not None:
        table.put(fd, source, closing=closing)
    else:
        table.drop(fd)
    if call.decoration is not None:
        recorder.decorated(call.thread, fd, decoration_of(call.decoration), table.handles.get(fd))
        if closing:
            table.closing.add(fd)


def on_dup(call: Call, recorder: Recorder) -> None:
    """Handle dup, dup2, dup3."""
    if call.result is None:
        return
    old, source = recorder.handle_of(call.thread, call.argument(0))
    if old == call.result:
        return
    _install(call, recorder, call.result, source, closing="O_CLOEXEC" in call.argument(2))


def on_fcntl(call: Call, recorder: Recorder) -> None:
    """Handle fcntl F_DUPFD, F_DUPFD_CLOEXEC, F_SETFD."""
    if call.result is None:
        return
    command = call.argument(1)
    if command.startswith(("F_DUPFD", "0x406")) or command == "0":
        _, source = recorder.handle_of(call.thread, call.argument(0))
        _install(call, recorder, call.result, source, closing="CLOEXEC" in command or command.startswith("0x406"))
    elif command.startswith("F_SETFD"):
        fd, _ = descriptor(call.argument(0))
        if fd is None or fd not in call.thread.table.handles:
            return
        if call.argument(2).startswith(("FD_CLOEXEC", "0x1")):
            call.thread.table.closing.add(fd)
        else:
            call.thread.table.closing.discard(fd)


def on_pipe(call: Call, recorder: Recorder) -> None:
    """Handle pipe, pipe2: two descriptors."""
    if not call.ok:
        return
    for text in items(call.argument(0)):
        fd, decoration = descriptor(text)
        if fd is not None:
            path = decoration.path if decoration else "pipe"
            call.thread.table.put(
                fd, Handle("pipe", path, True, call.thread.process), closing="O_CLOEXEC" in call.argument(1)
            )


def on_memfd(call: Call, recorder: Recorder) -> None:
    """memfd_create: an anonymous file with a name."""
    if call.result is None:
        return
    name = string_in(call.argument(0)) or ""
    handle = Handle("memfd", text_of(b"/memfd:") + name, True, call.thread.process)
    call.thread.table.put(call.result, handle, closing="MFD_CLOEXEC" in call.argument(1))


def on_anonymous(call: Call, recorder: Recorder) -> None:
    """eventfd, epoll_create, timerfd_create and the like: a descriptor without content of a file."""
    if call.result is None:
        return
    name = call.name.rstrip("0123456789")
    handle = Handle("anon", f"anon_inode:[{name}]", True, call.thread.process)
    if call.decoration is not None:
        handle.path = decoration_of(call.decoration).path
    call.thread.table.put(call.result, handle, closing="CLOEXEC" in ", ".join(call.arguments))


def on_pidfd_getfd(call: Call, recorder: Recorder) -> None:
    """pidfd_getfd(21, 7, 0) = 22: a descriptor taken from another process."""
    handle: Handle | None = None
    if call.result is not None:
        _, target = descriptor(call.argument(0))
        source = None
        # 21<pid:4073>
        if target is not None and target.path is not None and target.path.startswith("pid:"):
            other = recorder.world.threads.get(target.path[4:])
            taken, _ = descriptor(call.argument(1))
            source = other.table.handles.get(taken) if other is not None and taken is not None else None
        _install(call, recorder, call.result, source, closing=True)
        handle = call.thread.table.handles.get(call.result)
    if recorder.wants("fd.pass"):
        recorder.emit(
            FdPass(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                "received",
                fds=[call.result] if call.result is not None else [],
                paths=[handle.path if handle else None] if call.result is not None else [],
                process=call.thread.process.id,
                tid=call.thread.number,
            )
        )
