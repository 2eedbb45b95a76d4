"""Opening, looking at and changing files, and descriptors as such."""

from __future__ import annotations

from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle
from mcpdetect.ingest.strace.values import decoration_of, fields, number, string_in
from mcpdetect.model.event import FileChange, FileOpen, FileOperation, FileProbe
from mcpdetect.model.vocabulary import Access

__all__ = ["on_change", "on_change_pair", "on_open", "on_probe", "resolve"]

_O_CREAT = "O_WRONLY|O_CREAT|O_TRUNC"
# asm-generic/fcntl.h
_BITS = ((0x1, "O_WRONLY"), (0x2, "O_RDWR"), (0x40, "O_CREAT"), (0x200, "O_TRUNC"), (0x400, "O_APPEND"),
         (0x10000, "O_DIRECTORY"), (0x20000, "O_NOFOLLOW"), (0x80000, "O_CLOEXEC"), (0x200000, "O_PATH"))  # fmt: skip


_NO_NULL = frozenset({"stat", "lstat", "open", "openat", "access", "readlink", "unlink", "rename", "mkdir", "rmdir"})


def resolve(call: Call, recorder: Recorder, path: int, at: int | None) -> tuple[str | None, bool, str | None]:
    """Return the absolute path of a path argument, whether it is certain, and the argument as written.

    Args:
        call: the call.
        recorder: the trace.
        path: index of the path argument.
        at: index of the directory descriptor, None where the call has none.
    """
    written = string_in(call.argument(path))
    if written is None:
        if call.ok and call.argument(path) == "NULL" and call.name in _NO_NULL:
            # stat(NULL, NULL) = 14: the number belongs to the table of another ABI
            recorder.loss(
                "inconsistent-decoding", "calls with impossible arguments: strace misread their numbers", call
            )
        return None, False, None
    thread = call.thread
    base = thread.directory.cwd if at is None else recorder.base_of(thread, call.argument(at))
    found, certain = recorder.names.absolute(written, base, thread.directory, thread.table, thread.process.id or "")
    if call.argument(path).endswith("..."):
        certain = False
    return found, certain, written


def _open_flags(text: str) -> str:
    code = number(text)
    if code is None:
        return text
    comment = text.partition("/* ")[2]
    if comment:
        # 0x80000 /* O_RDONLY|O_CLOEXEC */
        return comment.removesuffix(" */")
    names = [name for bit, name in _BITS if code & bit]
    if not code & 3:
        names.insert(0, "O_RDONLY")
    return "|".join(names)


def _access(flags: str) -> Access:
    """Return what open flags ask for."""
    if "O_PATH" in flags:
        return "path"
    if "O_RDWR" in flags:
        return "readwrite"
    if "O_WRONLY" in flags:
        return "write"
    return "read" if "O_RDONLY" in flags else "unknown"


def on_open(call: Call, recorder: Recorder) -> None:
    """open, openat, openat2, creat."""
    name = call.name
    at = 0 if name in {"openat", "openat2"} else None
    index = 0 if at is None else 1
    if call.decoration is not None and call.result is not None:
        if at is not None:
            recorder.base_of(call.thread, call.argument(at))
        path, certain, written = None, False, string_in(call.argument(index))
    else:
        path, certain, written = resolve(call, recorder, index, at)
    if name == "openat2":
        flags = _open_flags(fields(call.argument(2)).get("flags", ""))
    else:
        flags = _O_CREAT if name == "creat" else _open_flags(call.argument(index + 1))
    thread = call.thread
    fd = call.result
    handle: Handle | None = None
    if fd is not None:
        if call.decoration is not None:
            decoration = decoration_of(call.decoration)
            sort = decoration.sort
            if decoration.path is not None:
                path, certain = decoration.path, True
        else:
            sort = "file"
        handle = Handle(sort, path, certain, thread.process, opaque="O_PATH" in flags)
        thread.table.put(fd, handle, closing="O_CLOEXEC" in flags)
        if "O_DIRECTORY" in flags and certain and path is not None:
            recorder.names.directory(path)
    if recorder.wants("file.open"):
        recorder.emit(
            FileOpen(
                call.where,
                call.t_ns,
                name,
                fd,
                call.error,
                path if path is not None else call.argument(index),
                certain,
                _access(flags),
                flags,
                fd,
                process=thread.process.id,
                tid=thread.number,
                written=written,
                aliases=recorder.names.aliases(path),
            )
        )


# call -> operation, index of path, index of directory descriptor
_PROBES: dict[str, tuple[str, int, int | None]] = {
    "stat": ("stat", 0, None),
    "stat64": ("stat", 0, None),
    "lstat": ("stat", 0, None),
    "lstat64": ("stat", 0, None),
    "newfstatat": ("stat", 1, 0),
    "fstatat64": ("stat", 1, 0),
    "statx": ("stat", 1, 0),
    "access": ("access", 0, None),
    "faccessat": ("access", 1, 0),
    "faccessat2": ("access", 1, 0),
    "readlink": ("readlink", 0, None),
    "readlinkat": ("readlink", 1, 0),
    "getxattr": ("xattr", 0, None),
    "lgetxattr": ("xattr", 0, None),
    "listxattr": ("xattr", 0, None),
    "llistxattr": ("xattr", 0, None),
}


def on_probe(call: Call, recorder: Recorder) -> None:
    """stat, access, readlink, xattr reads and directory listings."""
    if not recorder.wants("file.probe") and call.argument(0) != "NULL":
        return
    thread = call.thread
    if call.name in {"getdents", "getdents64"}:
        _, handle = recorder.handle_of(thread, call.argument(0))
        operation, path, certain, written = "list", handle.path if handle else None, bool(handle), None
        certain = handle is not None and handle.certain
    else:
        operation, index, at = _PROBES[call.name]
        path, certain, written = resolve(call, recorder, index, at)
    if not recorder.looks_at(path):
        return
    recorder.emit(
        FileProbe(
            call.where,
            call.t_ns,
            call.name,
            call.result,
            call.error,
            operation,  # type: ignore[arg-type]
            path,
            certain=certain,
            written=written,
            process=thread.process.id,
            tid=thread.number,
        )
    )


# call -> operation, index of path, index of directory descriptor, index of mode
_CHANGES: dict[str, tuple[FileOperation, int, int | None, int | None]] = {
    "unlink": ("unlink", 0, None, None),
    "unlinkat": ("unlink", 1, 0, None),
    "chmod": ("chmod", 0, None, 1),
    "fchmodat": ("chmod", 1, 0, 2),
    "fchmodat2": ("chmod", 1, 0, 2),
    "chown": ("chown", 0, None, None),
    "lchown": ("chown", 0, None, None),
    "fchownat": ("chown", 1, 0, None),
    "truncate": ("truncate", 0, None, None),
    "truncate64": ("truncate", 0, None, None),
    "mkdir": ("mkdir", 0, None, 1),
    "mkdirat": ("mkdir", 1, 0, 2),
    "rmdir": ("rmdir", 0, None, None),
    "mknod": ("mknod", 0, None, 1),
    "mknodat": ("mknod", 1, 0, 2),
    "setxattr": ("xattr", 0, None, None),
    "lsetxattr": ("xattr", 0, None, None),
}
_DESCRIPTOR_CHANGES: dict[str, tuple[FileOperation, int | None]] = {
    "fchmod": ("chmod", 1),
    "fchown": ("chown", None),
    "ftruncate": ("truncate", None),
    "ftruncate64": ("truncate", None),
    "fsetxattr": ("xattr", None),
    "fallocate": ("truncate", None),
}


def on_change(call: Call, recorder: Recorder) -> None:
    """Changes of one path: unlink, chmod, chown, truncate, mkdir, rmdir, mknod, xattr."""
    thread = call.thread
    fd: int | None = None
    by_descriptor = _DESCRIPTOR_CHANGES.get(call.name)
    if by_descriptor is not None:
        operation, mode = by_descriptor
        fd, handle = recorder.handle_of(thread, call.argument(0))
        path = handle.path if handle else None
        certain = handle is not None and handle.certain
    else:
        operation, index, at, mode = _CHANGES[call.name]
        path, certain, _ = resolve(call, recorder, index, at)
        if operation == "unlink" and "AT_REMOVEDIR" in call.argument(2):
            operation = "rmdir"
        if call.ok and path is not None and operation == "unlink":
            recorder.names.gone(path)
    if recorder.wants("file.change"):
        recorder.emit(
            FileChange(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                operation,
                path,
                fd=fd,
                mode=call.argument(mode) or None if mode is not None else None,
                certain=certain,
                process=thread.process.id,
                tid=thread.number,
            )
        )


# call -> operation, first path, its directory, second path, its directory
_PAIRS: dict[str, tuple[FileOperation, int, int | None, int, int | None]] = {
    "rename": ("rename", 0, None, 1, None),
    "renameat": ("rename", 1, 0, 3, 2),
    "renameat2": ("rename", 1, 0, 3, 2),
    "link": ("link", 0, None, 1, None),
    "linkat": ("link", 1, 0, 3, 2),
    "symlink": ("symlink", 0, None, 1, None),
    "symlinkat": ("symlink", 0, None, 2, 1),
}


def on_change_pair(call: Call, recorder: Recorder) -> None:
    """rename, link, symlink: two names, and what the trace learns from them."""
    operation, first, first_at, second, second_at = _PAIRS[call.name]
    new, new_certain, _ = resolve(call, recorder, second, second_at)
    if operation == "symlink":
        old, old_certain = string_in(call.argument(first)), True
    else:
        old, old_certain, _ = resolve(call, recorder, first, first_at)
    if call.ok and old is not None and new is not None and new.startswith("/"):
        if operation == "symlink":
            recorder.names.symlink(new, old)
        elif old.startswith("/"):
            if operation == "rename":
                recorder.names.moved(old, new)
                if "RENAME_EXCHANGE" in call.argument(4):
                    recorder.names.same(new, old)
            else:
                recorder.names.same(old, new)
    if not recorder.wants("file.change"):
        return
    # rename changes the old name, link and symlink make the new one
    path, target = (old, new) if operation == "rename" else (new, old)
    recorder.emit(
        FileChange(
            call.where,
            call.t_ns,
            call.name,
            call.result,
            call.error,
            operation,
            path,
            target,
            certain=new_certain and old_certain,
            process=call.thread.process.id,
            tid=call.thread.number,
        )
    )
