"""The base of every event, and events of processes and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mcpdetect.model.place import STRICT, Where
from mcpdetect.model.vocabulary import Access, Channel

__all__ = [
    "CallEvent",
    "Event",
    "FileChange",
    "FileOpen",
    "FileOperation",
    "FileProbe",
    "FileRead",
    "Frame",
    "KernelNotable",
    "Probe",
    "ProcessExecFailed",
    "ProcessExit",
    "ProcessStart",
    "Unparsed",
]


@dataclass(slots=True)
class Frame:
    """One stack frame below a call (``strace -k``).

    Attributes:
        image: path of the mapped file, or the raw text of a frame that could not be read.
        symbol: function name, None when unknown.
        offset: offset within the symbol, or within the image where there is no symbol.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    image: str
    symbol: str | None = None
    offset: int | None = None


@dataclass(slots=True)
class Event:
    """One normalized fact. Built directly by the adapters, never changed afterwards.

    Attributes:
        kind: the event type's name; the key of ``EVENT_TYPES``.
        where: the evidence place.
        t_ns: integer nanoseconds on the observation's clock; None where the evidence has no time.
        process: identity of the acting process, ``"<pid>"``, or ``"<pid>#<n>"`` for the n-th (from 2) process that
            used the same pid in this trace; None where the channel cannot know it.
        tid: the acting thread, where it is not the process's main thread.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    channel: ClassVar[Channel] = "syscalls"

    kind: str = field(default="", kw_only=True)
    where: Where
    t_ns: int | None
    process: str | None = field(default=None, kw_only=True)
    tid: int | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class CallEvent(Event):
    """An event that is one system call.

    Attributes:
        call: the system call's name as the evidence spells it.
        result: its return value, None when it failed or is unknown.
        error: errno name of a failure (``"ENOENT"``, ``"ERESTARTSYS"``), else None.
        frames: its stack, where recorded.

    With ``result`` and ``error`` both None the outcome is unknown: neither success nor failure.
    """

    call: str
    result: int | None
    error: str | None = None
    frames: list[Frame] | None = field(default=None, kw_only=True)

    @property
    def ok(self) -> bool:
        """Whether the call is known to have succeeded."""
        return self.result is not None and self.error is None


@dataclass(slots=True)
class ProcessStart(CallEvent):
    """A process began (clone) or became another program (exec). Threads are not processes and start none.

    Attributes:
        how: ``clone``; ``exec``; or ``seen``, the first line of a process whose birth is not in the evidence.
        parent: identity of the parent process, where known.
        executable: absolute path of the program for ``exec``; None when it could not be known (a bare descriptor).
            Never argv[0].
        argv: the arguments, each possibly a prefix (see ``argv_cut``).
        argv_cut: arguments are missing at the end, or one of them is cut.
        env: ``NAME=value`` strings where the evidence shows them, else None.
        env_count: how many variables there were, where only the number is shown.
        origin: ``memfd``, ``deleted`` or ``descriptor`` for a program not executed by its path.
        flags: clone flags, as written (``CLONE_UNTRACED``).
    """

    kind: Literal["process.start"] = field(default="process.start", kw_only=True)
    how: Literal["clone", "exec", "seen"] = field(default="exec", kw_only=True)
    parent: str | None = field(default=None, kw_only=True)
    executable: str | None = field(default=None, kw_only=True)
    argv: list[str] | None = field(default=None, kw_only=True)
    argv_cut: bool = field(default=False, kw_only=True)
    env: list[str] | None = field(default=None, kw_only=True)
    env_count: int | None = field(default=None, kw_only=True)
    origin: Literal["memfd", "deleted", "descriptor"] | None = field(default=None, kw_only=True)
    flags: list[str] | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class ProcessExecFailed(CallEvent):
    """A program that could not be started: an intent, no process.

    Attributes:
        executable: the path asked for.
        argv, argv_cut: as in ``ProcessStart``.
    """

    kind: Literal["process.exec_failed"] = field(default="process.exec_failed", kw_only=True)
    executable: str | None = field(default=None, kw_only=True)
    argv: list[str] | None = field(default=None, kw_only=True)
    argv_cut: bool = field(default=False, kw_only=True)


@dataclass(slots=True)
class ProcessExit(Event):
    """A whole process ended (its last thread did). One of both is known, or neither.

    Attributes:
        code: its exit status.
        signal: name of the signal that killed it.
    """

    kind: Literal["process.exit"] = field(default="process.exit", kw_only=True)
    code: int | None = None
    signal: str | None = None


@dataclass(slots=True)
class FileOpen(CallEvent):
    """An attempt to open a file.

    Attributes:
        path: absolute path of what was opened, after directory descriptor, working directory, symlink history and
            the kernel's own decoration of the result; as written where it could not be resolved.
        certain: whether ``path`` is known to be what the kernel opened (decorated, or absolute and free of ``..``
            and known symlinks).
        written: the path argument as the program wrote it.
        access: read, write, readwrite, path (O_PATH), unknown.
        flags: the flags as written (``O_RDONLY|O_CLOEXEC``).
        fd: descriptor on success.
        aliases: other absolute paths of the same file known from link, rename and symlink calls in this trace.
    """

    kind: Literal["file.open"] = field(default="file.open", kw_only=True)
    path: str = ""
    certain: bool = True
    access: Access = "unknown"
    flags: str = ""
    fd: int | None = None
    written: str | None = field(default=None, kw_only=True)
    aliases: list[str] | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class FileRead(CallEvent):
    """Content of a file reached the process: read family, mmap, sendfile, splice, copy_file_range.

    Attributes:
        path: the file's absolute path, None for a descriptor of unknown origin.
        certain: whether ``path`` is known to be right.
        fd: the descriptor read from.
        size: bytes read, or mapped; None when unknown.
        mapped: the file was mapped, so which bytes were looked at is not visible.
        to_fd: for sendfile, splice and copy_file_range, the descriptor written to.
        to_socket: identity of that descriptor where it is a socket.
        data: the bytes read, as far as recorded (bounded).
        cut: ``data`` is shorter than what was read.
        inherited: the descriptor was not opened by this process in this trace (inherited, passed or unknown).
        aliases: other names of the same file.
    """

    kind: Literal["file.read"] = field(default="file.read", kw_only=True)
    path: str | None = None
    fd: int | None = None
    size: int | None = None
    data: bytes = b""
    cut: bool = False
    certain: bool = field(default=True, kw_only=True)
    mapped: bool = field(default=False, kw_only=True)
    inherited: bool = field(default=False, kw_only=True)
    to_fd: int | None = field(default=None, kw_only=True)
    to_socket: str | None = field(default=None, kw_only=True)
    aliases: list[str] | None = field(default=None, kw_only=True)


FileOperation = Literal[
    "write", "rename", "unlink", "link", "symlink", "chmod", "chown", "truncate", "mkdir", "rmdir", "mknod", "xattr"
]


@dataclass(slots=True)
class FileChange(CallEvent):
    """An attempt to change the file system.

    Attributes:
        operation: what was done.
        path: the absolute path changed; None for a write to a descriptor of unknown origin.
        target: the second path: new name (rename), the existing file (link), the text pointed to (symlink).
        fd: the descriptor, for calls that take one.
        size: bytes written.
        data: the bytes written, as far as recorded (bounded).
        cut: ``data`` is shorter than what was written.
        mode: the mode argument as written.
        certain: whether ``path`` is known to be right.
    """

    kind: Literal["file.change"] = field(default="file.change", kw_only=True)
    operation: FileOperation = "write"
    path: str | None = None
    target: str | None = None
    fd: int | None = None
    size: int | None = None
    data: bytes = b""
    cut: bool = False
    mode: str | None = field(default=None, kw_only=True)
    certain: bool = field(default=True, kw_only=True)


@dataclass(slots=True)
class FileProbe(CallEvent):
    """A look at a file without its content.

    Attributes:
        operation: ``stat``, ``access``, ``readlink``, ``list`` (a directory) or ``xattr`` (extended attributes).
        path: its absolute path, None for a descriptor of unknown origin.
        certain: whether ``path`` is known to be right.
        written: the path argument as the program wrote it.
    """

    kind: Literal["file.probe"] = field(default="file.probe", kw_only=True)
    operation: Literal["stat", "access", "readlink", "list", "xattr"] = "stat"
    path: str | None = None
    certain: bool = field(default=True, kw_only=True)
    written: str | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class KernelNotable(CallEvent):
    """A call that changes what the evidence can show, or that few programs make.

    ``io_uring_setup``, ``memfd_create``, ``ptrace``, ``seccomp``, ``bpf``, ``process_vm_readv``, ``unshare``,
    ``mount``, ``open_by_handle_at``, ``pidfd_getfd``, ``name_to_handle_at``, unknown call numbers, ...

    Attributes:
        detail: the arguments as written, bounded.
        path: the file concerned, where there is one.
    """

    kind: Literal["kernel.notable"] = field(default="kernel.notable", kw_only=True)
    detail: str = ""
    path: str | None = None


@dataclass(slots=True)
class Probe(Event):
    """A harmless act of the recorder with a one-run nonce.

    Attributes:
        watched: the channel that it proves to have been live at that time.
        nonce: the nonce.
        phase: ``before`` or ``after`` the target ran.
    """

    kind: Literal["probe"] = field(default="probe", kw_only=True)
    watched: Channel = "syscalls"
    nonce: str = ""
    phase: Literal["before", "after"] = "before"


@dataclass(slots=True)
class Unparsed(Event):
    """A line, packet, record or message that could not be understood.

    Attributes:
        seen_in: the channel it belongs to.
        reason: why, in plain words.
        raw: its beginning (bounded).
        touches: event kinds that it may have hidden; empty means it may have hidden any of its channel.
    """

    kind: Literal["unparsed"] = field(default="unparsed", kw_only=True)
    seen_in: Channel = "syscalls"
    reason: str = ""
    raw: bytes = b""
    touches: list[str] = field(default_factory=list)
