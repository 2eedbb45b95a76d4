"""Calls that few programs make, or that change what a trace can show."""

from __future__ import annotations

import re

from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.calls import names_of
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle
from mcpdetect.ingest.strace.values import descriptor, number, string_in
from mcpdetect.model.event import KernelNotable

__all__ = ["HIDDEN_BY_RING", "end_rings", "on_mount_descriptor", "on_notable", "on_unknown"]

_MOST_DETAIL = 400
_MOST_RINGS = 1000
HIDDEN_BY_RING = (
    "file.open",
    "file.read",
    "file.change",
    "file.probe",
    "socket.open",
    "socket.connect",
    "socket.send",
    "socket.receive",
    "socket.listen",
    "dns.query",
)
_FILES = ("file.open", "file.read", "file.change", "file.probe")
_PATHS = {
    "chroot": 0,
    "pivot_root": 0,
    "mount": 1,
    "umount2": 0,
    "name_to_handle_at": 1,
    "open_tree": 1,
    "fanotify_mark": 4,
    "memfd_create": 0,
}
# MS_BIND is 4096 (linux/mount.h)
_BIND = re.compile(r"\bMS_BIND\b|\A0x1000\b", re.ASCII)
# MS_REMOUNT changes the flags of a mount, the others who sees what is mounted below it: neither shows other files
_SAME_FILES = re.compile(r"\bMS_(?:REMOUNT|PRIVATE|SLAVE|SHARED|UNBINDABLE)\b", re.ASCII)
_OWN_FILES = names_of(
    "tmpfs ramfs proc sysfs devpts mqueue cgroup cgroup2 hugetlbfs debugfs tracefs securityfs bpf pstore configfs"
)
"""File systems that begin empty, or hold only what the kernel itself makes up: no file gets another name there."""


def on_notable(call: Call, recorder: Recorder) -> None:
    """io_uring, mount, chroot, ptrace, seccomp, and the rest of the list."""
    path: str | None = None
    index = _PATHS.get(call.name)
    thread = call.thread
    if index is not None:
        written = string_in(call.argument(index))
        if written is not None and call.name != "memfd_create":
            base = thread.directory.cwd
            if call.name in {"name_to_handle_at", "open_tree"}:
                base = recorder.base_of(thread, call.argument(0))
            path, _ = recorder.names.absolute(written, base, thread.directory, thread.table, thread.process.id or "")
        else:
            path = written
    if call.ok:
        _effects(call, recorder, path)
    if recorder.wants("kernel.notable"):
        _emit(call, recorder, path)


def _emit(call: Call, recorder: Recorder, path: str | None) -> None:
    recorder.emit(
        KernelNotable(
            call.where,
            call.t_ns,
            call.name,
            call.result,
            call.error,
            ", ".join(call.arguments)[:_MOST_DETAIL],
            path,
            process=call.thread.process.id,
            tid=call.thread.number,
        )
    )


def _effects(call: Call, recorder: Recorder, path: str | None) -> None:
    name = call.name
    thread = call.thread
    if name == "io_uring_setup" and call.result is not None:
        polled = "IORING_SETUP_SQPOLL" in call.argument(1)
        ring = Handle("anon", "anon_inode:[io_uring]", True, thread.process)
        thread.table.put(call.result, ring, closing=True)
        if len(recorder.rings) < _MOST_RINGS:
            recorder.rings.append((call, polled, ring))
        elif polled:
            recorder.loss("overflow", "more io_uring instances than can be remembered", call, HIDDEN_BY_RING)
    elif name == "io_uring_enter":
        if (number(call.argument(1)) or 0) > 0 or "SQ_WAKEUP" in call.argument(3):
            recorder.loss(
                "io_uring",
                "file and socket work of this process may go through io_uring, where no call shows it",
                call,
                HIDDEN_BY_RING,
            )
    elif name == "mount":
        _mounted(call, recorder, path)
    elif name == "chroot" and path is not None and path.startswith("/"):
        thread.directory.root = "" if path == "/" else path
    elif (
        name in {"pivot_root", "move_mount"}
        or (name == "setns" and _mount_namespace(call))
        or (name == "open_tree" and _copies(call))
    ):
        _paths_lost(call, recorder)
    elif name in {"open_by_handle_at"} and call.result is not None:
        found = None if call.decoration is None else descriptor(f"{call.result}{call.decoration}")[1]
        handle = Handle(found.sort if found else "file", found.path if found else None, found is not None)
        thread.table.put(call.result, handle)
        if found is None:
            recorder.loss("handle", "open_by_handle_at opened a file that has no name in the log", call, _FILES)


def _mounted(call: Call, recorder: Recorder, path: str | None) -> None:
    """Follow what mount does to names: a bind mount is another name; what else shows files may show any file."""
    flags = call.argument(3)
    if _SAME_FILES.search(flags) or string_in(call.argument(2)) in _OWN_FILES:
        return
    # mount("../.ssh/id_ed25519", "/tmp/notes.txt", NULL, MS_BIND, NULL) = 0
    source = string_in(call.argument(0)) if path is not None and _BIND.search(flags) else None
    if source is not None and path is not None:
        thread = call.thread
        directory = thread.directory
        own = thread.process.id or ""
        full, certain = recorder.names.absolute(source, directory.cwd, directory, thread.table, own)
        if certain:
            recorder.names.same(full, path)
            return
    # mount("overlay", "/tmp/merged", "overlay", MS_RDONLY, "lowerdir=/home/dev/.ssh:/tmp/second") = 0
    _paths_lost(call, recorder)


def _paths_lost(call: Call, recorder: Recorder) -> None:
    detail = f"after {call.name} the paths of this process may name other files"
    recorder.loss("namespace", detail, call, _FILES)


def _copies(call: Call) -> bool:
    """Return whether open_tree makes a copy of the mount, whose files then have paths that begin at the copy."""
    # open_tree(AT_FDCWD</home/dev/project>, "/home/dev/.ssh", OPEN_TREE_CLONE) = 3</>
    flags = call.argument(2)
    return "OPEN_TREE_CLONE" in flags or flags.startswith("0x")


def _mount_namespace(call: Call) -> bool:
    text = call.argument(1)
    return "CLONE_NEWNS" in text or text == "0"


def on_mount_descriptor(call: Call, recorder: Recorder) -> None:
    """fsmount(4, 0, 0) = 5: a mount that hangs nowhere, and whose files have no path that anybody knows."""
    if call.ok and (call.name != "open_tree_attr" or _copies(call)):
        _paths_lost(call, recorder)


def end_rings(recorder: Recorder) -> None:
    """State what io_uring instances mean that were never entered: nothing, unless the kernel polls them."""
    for call, polled, ring in recorder.rings:
        if polled and not ring.closed:
            recorder.loss(
                "io_uring",
                "a ring that the kernel polls was left open: its work needs no call at all",
                call,
                HIDDEN_BY_RING,
            )
        else:
            recorder.loss("io_uring", "an io_uring instance was made", call, note=True)


def on_unknown(call: Call, recorder: Recorder) -> None:
    """syscall_0x1d5(0x3, ...) = 5: a call that strace has no name for."""
    if call.error != "ENOSYS":
        recorder.loss("unknown-call", "a call that strace could not name did something", call)
    else:
        recorder.loss(
            "unknown-call", "a call that strace could not name, and the kernel does not know", call, note=True
        )
    if recorder.wants("kernel.notable"):
        _emit(call, recorder, None)
