"""Call name to handler."""

from __future__ import annotations

from collections.abc import Callable

from mcpdetect.ingest.strace import on_data, on_fd, on_file, on_kernel, on_message, on_process, on_socket
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.model.kinds import CALLS

__all__ = ["ALSO", "HANDLERS", "Handler"]

Handler = Callable[[Call, Recorder], None]


def _table(names: str, handler: Handler) -> dict[str, Handler]:
    return dict.fromkeys(names.split(), handler)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(sorted(CALLS["kernel.notable"]), on_kernel.on_notable),
    **_table("clone clone3 fork vfork", on_process.on_clone),
    **_table("execve execveat", on_process.on_exec),
    **_table("exit exit_group", on_process.on_exit_group),
    **_table("chdir", on_process.on_chdir),
    **_table("fchdir", on_process.on_fchdir),
    **_table("getpid", on_process.on_identity),
    **_table("open openat openat2 creat", on_file.on_open),
    **_table(" ".join(sorted(CALLS["file.probe"])), on_file.on_probe),
    **_table("rename renameat renameat2 link linkat symlink symlinkat", on_file.on_change_pair),
    **_table(
        "unlink unlinkat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat truncate truncate64 ftruncate "
        "ftruncate64 mkdir mkdirat rmdir mknod mknodat setxattr lsetxattr fsetxattr fallocate",
        on_file.on_change,
    ),
    **_table("close", on_fd.on_close),
    **_table("close_range", on_fd.on_close_range),
    **_table("dup dup2 dup3", on_fd.on_dup),
    **_table("fcntl fcntl64", on_fd.on_fcntl),
    **_table("pipe pipe2", on_fd.on_pipe),
    **_table("memfd_create memfd_secret", on_fd.on_memfd),
    **_table(
        "eventfd eventfd2 epoll_create epoll_create1 timerfd_create signalfd signalfd4 inotify_init inotify_init1 "
        "userfaultfd perf_event_open pidfd_open fanotify_init",
        on_fd.on_anonymous,
    ),
    **_table("pidfd_getfd", on_fd.on_pidfd_getfd),
    **_table("socket", on_socket.on_socket),
    **_table("socketpair", on_socket.on_socketpair),
    **_table("connect", on_socket.on_connect),
    **_table("bind listen", on_socket.on_bind),
    **_table("accept accept4", on_socket.on_accept),
    **_table("getsockopt", on_socket.on_getsockopt),
    **_table("getpeername", on_socket.on_getpeername),
    **_table("shutdown", on_socket.on_shutdown),
    **_table("poll ppoll", on_socket.on_poll),
    **_table("socketcall", on_socket.on_socketcall),
    **_table("read pread64 pread readv preadv preadv2", on_data.on_read),
    **_table("write pwrite64 pwrite writev pwritev pwritev2", on_data.on_write),
    **_table("sendto send", on_message.on_send),
    **_table("recvfrom recv", on_message.on_receive),
    **_table("sendmsg sendmmsg", on_message.on_send_message),
    **_table("recvmsg recvmmsg", on_message.on_receive_message),
    **_table("mmap mmap2", on_data.on_mmap),
    **_table("fsmount open_tree_attr", on_kernel.on_mount_descriptor),
    **_table("sendfile sendfile64 splice tee copy_file_range", on_data.on_copy),
}
"""Handlers by call name; a call without one only keeps the pairing of halves right."""

ALSO: dict[str, Handler] = dict.fromkeys(
    ("memfd_create", "memfd_secret", "fanotify_init", "userfaultfd", "pidfd_getfd"), on_kernel.on_notable
)
"""Second handlers: calls that make a descriptor and are notable as well."""
