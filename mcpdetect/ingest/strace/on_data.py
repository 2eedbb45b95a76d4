"""Content on the move by descriptor: reads, writes, mappings, and copies between descriptors."""

from __future__ import annotations

from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.traffic import content, received, sent
from mcpdetect.ingest.strace.values import number
from mcpdetect.model.event import FileChange, FileRead

__all__ = ["on_copy", "on_mmap", "on_read", "on_write"]


def on_read(call: Call, recorder: Recorder) -> None:
    """read, pread64, readv and relatives, on a file or on a socket."""
    thread = call.thread
    fd, handle = recorder.handle_of(thread, call.argument(0))
    if recorder.stdio is not None:
        recorder.stdio.call(call, fd, handle, "c2s")
    if handle is not None and handle.socket is not None:
        if not recorder.reads_receives:
            return
        data, cut, _ = content(call)
        received(call, recorder, fd, handle, data, cut, None)
        return
    if (handle is not None and handle.sort == "anon") or not recorder.wants("file.read"):
        return
    data, cut, _ = content(call)
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
    if recorder.stdio is not None:
        recorder.stdio.call(call, fd, handle, "s2c")
    if handle is not None and handle.socket is not None:
        if not recorder.reads_sends:
            return
        data, cut, tried = content(call)
        sent(call, recorder, fd, handle, data, cut, tried, None)
        return
    if (handle is not None and handle.sort == "anon") or not recorder.wants("file.change"):
        return
    data, cut, tried = content(call)
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
    if recorder.stdio is not None:
        recorder.stdio.call(call, fd, handle, "c2s")
        recorder.stdio.call(call, to_fd, to, "s2c")
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
        received(call, recorder, fd, handle, b"", unseen, None)
    if to is not None and to.socket is not None:
        size = number(call.argument(len(call.arguments) - 1 if call.name.startswith("sendfile") else 4))
        sent(call, recorder, to_fd, to, b"", unseen, size, None)
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
