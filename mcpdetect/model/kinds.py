"""The register of event types: kind to class, and the system calls behind each kind."""

from __future__ import annotations

from mcpdetect.model import binary as _binary
from mcpdetect.model import event as _event
from mcpdetect.model import files as _files
from mcpdetect.model import mcp as _mcp
from mcpdetect.model import net as _net
from mcpdetect.model.event import Event
from mcpdetect.model.vocabulary import Channel

__all__ = ["CALLS", "CALL_KINDS", "EVENT_TYPES", "channel_of"]

_TYPES: tuple[type[Event], ...] = (
    _event.ProcessStart,
    _event.ProcessExecFailed,
    _event.ProcessExit,
    _event.FileOpen,
    _event.FileRead,
    _event.FileChange,
    _event.FileProbe,
    _net.SocketOpen,
    _net.SocketConnect,
    _net.SocketState,
    _net.SocketSend,
    _net.SocketReceive,
    _net.SocketListen,
    _net.FdPass,
    _net.NetFlow,
    _net.NetPacket,
    _net.DnsQuery,
    _net.DnsAnswer,
    _net.TlsClientHello,
    _net.QuicInitial,
    _net.HttpRequest,
    _net.FirewallDrop,
    _mcp.McpMessage,
    _mcp.McpTool,
    _binary.BinaryImage,
    _files.FileDifference,
    _event.KernelNotable,
    _event.Probe,
    _event.Unparsed,
)


def _kind_of(event_type: type[Event]) -> str:
    return str(event_type.__dataclass_fields__["kind"].default)


EVENT_TYPES: dict[str, type[Event]] = {_kind_of(event_type): event_type for event_type in _TYPES}
"""Every event type by its kind, in the order of DESIGN §5."""

# System calls by the event kind they make (man-pages 6.x section 2; x86-64 and i386 names). A call may make several
# kinds: a write to a socket is a send, to a file a change.
CALLS: dict[str, frozenset[str]] = {
    "process.start": frozenset({"execve", "execveat", "clone", "clone3", "fork", "vfork"}),
    "process.exec_failed": frozenset({"execve", "execveat"}),
    "file.open": frozenset({"open", "openat", "openat2", "creat"}),
    "file.read": frozenset(
        {
            "read",
            "pread64",
            "pread",
            "readv",
            "preadv",
            "preadv2",
            "mmap",
            "mmap2",
            "sendfile",
            "sendfile64",
            "splice",
            "tee",
            "copy_file_range",
        }
    ),
    "file.change": frozenset(
        {
            "write",
            "pwrite64",
            "pwrite",
            "writev",
            "pwritev",
            "pwritev2",
            "rename",
            "renameat",
            "renameat2",
            "unlink",
            "unlinkat",
            "link",
            "linkat",
            "symlink",
            "symlinkat",
            "chmod",
            "fchmod",
            "fchmodat",
            "fchmodat2",
            "chown",
            "fchown",
            "lchown",
            "fchownat",
            "truncate",
            "truncate64",
            "ftruncate",
            "ftruncate64",
            "mkdir",
            "mkdirat",
            "rmdir",
            "mknod",
            "mknodat",
            "setxattr",
            "lsetxattr",
            "fsetxattr",
            "fallocate",
        }
    ),
    "file.probe": frozenset(
        {
            "stat",
            "stat64",
            "lstat",
            "lstat64",
            "newfstatat",
            "fstatat64",
            "statx",
            "access",
            "faccessat",
            "faccessat2",
            "readlink",
            "readlinkat",
            "getdents",
            "getdents64",
            "getxattr",
            "lgetxattr",
            "listxattr",
            "llistxattr",
        }
    ),
    "socket.open": frozenset({"socket", "socketpair", "socketcall"}),
    "socket.connect": frozenset({"connect", "socketcall"}),
    "socket.state": frozenset({"getsockopt", "getpeername", "poll", "ppoll", "close", "shutdown", "socketcall"}),
    "socket.send": frozenset(
        {
            "sendto",
            "sendmsg",
            "sendmmsg",
            "send",
            "write",
            "writev",
            "pwrite64",
            "sendfile",
            "sendfile64",
            "splice",
            "socketcall",
        }
    ),
    "socket.receive": frozenset({"recvfrom", "recvmsg", "recvmmsg", "recv", "read", "readv", "socketcall"}),
    "socket.listen": frozenset({"bind", "listen", "accept", "accept4", "socketcall"}),
    "fd.pass": frozenset({"sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "pidfd_getfd", "socketcall"}),
    "kernel.notable": frozenset(
        {
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "memfd_create",
            "memfd_secret",
            "ptrace",
            "seccomp",
            "bpf",
            "process_vm_readv",
            "process_vm_writev",
            "unshare",
            "setns",
            "mount",
            "umount2",
            "move_mount",
            "open_tree",
            "pivot_root",
            "chroot",
            "open_by_handle_at",
            "name_to_handle_at",
            "fanotify_init",
            "fanotify_mark",
            "userfaultfd",
            "keyctl",
            "add_key",
            "request_key",
            "init_module",
            "finit_module",
            "kexec_load",
            "landlock_create_ruleset",
            "landlock_restrict_self",
            "pidfd_getfd",
            "shmget",
            "shmat",
            "prctl",
            "kill",
            "tkill",
            "tgkill",
        }
    ),
}
"""Event kind -> system calls that make such events. A kind counts as wholly watched only with all that the kernel in
question can use; adapters work from this table, and manifests are compared with it."""

CALL_KINDS: dict[str, tuple[str, ...]] = {
    name: tuple(kind for kind, names in CALLS.items() if name in names)
    for name in sorted(frozenset().union(*CALLS.values()))
}
"""System call -> event kinds it can make."""


def channel_of(event: Event) -> Channel:
    """Return the channel that showed an event: its own word where several could, else its kind's."""
    seen_in: Channel | None = getattr(event, "seen_in", None)
    return seen_in or event.channel
