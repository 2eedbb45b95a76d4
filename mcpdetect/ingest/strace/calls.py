"""Which calls a reader must look at, and what a trace's own filter left out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mcpdetect.model.kinds import CALL_KINDS, CALLS

__all__ = [
    "CONDITIONS",
    "DERIVED",
    "SHOWN",
    "UNHALVED",
    "Filter",
    "conditions",
    "names_of",
    "needed_calls",
    "pattern_of",
]


def names_of(text: str) -> frozenset[str]:
    """Return the words of ``text``."""
    return frozenset(text.split())


SHOWN = (*CALLS, "process.exit")
"""Event kinds that a system call trace can show by themselves."""

DERIVED = {
    "dns.query": ("socket.connect", "socket.send"),
    "dns.answer": ("socket.connect", "socket.receive"),
    "tls.client_hello": ("socket.connect", "socket.send"),
    "http.request": ("socket.connect", "socket.send"),
}
"""Event kinds read out of buffers, and the kinds whose calls carry them."""

_STATE = names_of(
    "open openat openat2 creat close close_range dup dup2 dup3 fcntl fcntl64 pipe pipe2 socket socketpair connect bind "
    "accept accept4 sendto sendmsg sendmmsg recvmsg recvmmsg chdir fchdir clone clone3 fork vfork execve execveat "
    "exit exit_group memfd_create eventfd eventfd2 epoll_create epoll_create1 timerfd_create signalfd signalfd4 "
    "inotify_init inotify_init1 userfaultfd perf_event_open pidfd_open fanotify_init memfd_secret io_uring_setup "
    "io_uring_enter mount chroot pivot_root move_mount open_tree open_tree_attr fsmount setns open_by_handle_at "
    "pidfd_getfd rename renameat renameat2 "
    "link linkat symlink symlinkat unlink unlinkat restart_syscall socketcall stat lstat getpid"
)
READS = names_of("read pread64 pread readv preadv preadv2 recvfrom recv sendfile sendfile64 splice tee")
WRITES = names_of("write writev pwrite64 pwrite pwritev pwritev2 send")
_FOR_ALIASES = names_of("file.open file.read file.change file.probe")

# Lines that need not be looked at, as text after "name(". A line that waits for its other half is always looked at.
_WHOLE = r"[^\n]*+(?<!\.\.\.>)"
_ANON = r"anon_inode:(?!\[io_uring)"
CONDITIONS = {
    # close(3</etc/passwd>): where descriptors are decorated only sockets need their end
    "close": rf"(?!\d++<(?:[/\\]|pipe:|{_ANON}){_WHOLE})",
    "read": rf"(?!\d++<{_ANON}{_WHOLE})",
    "write": rf"(?!\d++<{_ANON}{_WHOLE})",
    "mmap": r"(?![^\n]{0,120}?MAP_ANON" + _WHOLE + ")",
    "fcntl": r"(?!\d++(?:<[^\n]*?>)?, F_(?:GET|SETFL)" + _WHOLE + ")",
}


UNHALVED = frozenset({"stat", "lstat"})
"""Calls of which, where probes are not wanted, only whole lines are looked at, and only odd ones."""


def needed_calls(wanted: frozenset[str]) -> frozenset[str]:
    """Return the calls that make the wanted kinds or keep the state behind them."""
    names: set[str] = set(_STATE)
    for kind in wanted:
        names |= CALLS.get(kind, frozenset())
    derived = wanted & DERIVED.keys()
    if wanted & {"socket.receive"} or derived & {"dns.query", "dns.answer", "tls.client_hello"}:
        names |= READS
    if wanted & {"socket.send"} or derived:
        names |= WRITES
    if wanted & {"socket.state", "socket.connect"}:
        names |= {"getsockopt"}
    return frozenset(names)


def conditions(wanted: frozenset[str]) -> dict[str, str]:
    """Return, by call, what a line must look like to be looked at: ``CONDITIONS`` sharpened by what is wanted."""
    found = dict(CONDITIONS)
    sockets_only = rf"(?!\d++<(?:[/\\]|pipe:|{_ANON}){_WHOLE})"
    if "file.read" not in wanted:
        found["read"] = found["readv"] = found["pread64"] = sockets_only
    if "file.change" not in wanted:
        found["write"] = found["writev"] = found["pwrite64"] = sockets_only
    if "file.probe" not in wanted:
        # stat(NULL, NULL) = 14: a call of another table than strace thought
        found["stat"] = found["lstat"] = rf"(?=NULL{_WHOLE})"
    return found


def _trie(names: Iterable[str]) -> str:
    tree: dict[str, object] = {}
    for name in names:
        node = tree
        for letter in name:
            node = node.setdefault(letter, {})  # type: ignore[assignment]
        node[""] = {}

    def build(node: dict[str, object]) -> str:
        parts = []
        for letter, child in sorted(node.items(), reverse=True):
            parts.append(letter + build(child) if letter else "")  # type: ignore[arg-type]
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"

    return build(tree)


# Calls of every program that make no event: lines of them are passed over before anything else is looked at.
_COMMON = names_of(
    "futex epoll_pwait epoll_wait rt_sigaction rt_sigprocmask rt_sigreturn mprotect ioctl brk munmap madvise lseek "
    "getcwd set_robust_list prlimit64 sched_yield clock_nanosleep clock_gettime nanosleep wait4 fstat sched_getaffinity"
)


def pattern_of(header: str, names: frozenset[str], wanted: frozenset[str], seen: frozenset[str]) -> re.Pattern[str]:
    r"""Return the pattern that picks lines out of a block in one pass; each line begins with its ``\n``.

    Groups: pid, time, name of a resumed call, name of a call, ``+++``, the rest. A match without groups is a line that
    no part of the format explains; it reaches to the end, so that only the last match can be one. Lines are passed
    over by their arguments only for names in ``seen``: that a call occurs at all must be noticed.
    """
    held = {name: text for name, text in conditions(wanted).items() if name in seen}
    halved = names - UNHALVED if "file.probe" not in wanted and "stat" in held else names
    plain = names - held.keys()
    special = "".join(rf"|{name}(?=\({held[name]})" for name in sorted(names & held.keys()))
    shape = r"(?:<\.\.\. \w++ resumed|[a-z_][a-z0-9_]*+\(|\+\+\+ |--- |\?\?\?\()"
    bare = re.sub(r"(?<!\\)\((?!\?)", "(?:", header)
    others = _trie((_COMMON | CALL_KINDS.keys()) - names)
    passed = rf"(?!{bare}(?:<\.\.\. {others} resumed|{others}\())"
    first = rf"((?:{_trie(plain)}(?=\(){special}))\("
    second = rf"<\.\.\. ({_trie(halved)}) resumed(?: #\d++)?+>"
    return re.compile(
        rf"\n{passed}(?:{header}(?:{second}|{first}|(\+\+\+) )([^\n]*+)|(?!{bare}{shape})(?s:.)*+)", re.ASCII
    )


_NETWORK = names_of(
    "socket socketpair connect bind listen accept accept4 sendto sendmsg sendmmsg send recvfrom recvmsg recvmmsg recv "
    "getsockopt setsockopt getsockname getpeername shutdown socketcall"
)
_PROCESS = names_of(
    "clone clone3 fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill unshare setns"
)
_FILE = names_of(
    "open openat openat2 creat stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat getxattr "
    "lgetxattr listxattr llistxattr setxattr lsetxattr execve execveat rename renameat renameat2 unlink unlinkat link "
    "linkat symlink symlinkat chmod fchmodat fchmodat2 chown lchown fchownat truncate mkdir mkdirat rmdir mknod "
    "mknodat "
    "chdir chroot mount umount2 pivot_root open_tree move_mount name_to_handle_at fanotify_mark"
)
_DESCRIPTORS = names_of(
    "read write close pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 open openat openat2 creat dup dup2 "
    "dup3 fcntl pipe pipe2 sendfile splice tee copy_file_range getdents getdents64 fchmod fchown ftruncate fsetxattr "
    "fallocate mmap poll ppoll memfd_create pidfd_getfd bpf io_uring_setup io_uring_enter io_uring_register statx "
    "newfstatat open_by_handle_at fanotify_init userfaultfd close_range fchdir"
)
_CLASSES = {
    "network": _NETWORK,
    "net": _NETWORK,
    "process": _PROCESS,
    "file": _FILE,
    "desc": _DESCRIPTORS,
    "creds": frozenset[str](),
    "clock": frozenset[str](),
    "signal": frozenset({"kill", "tkill", "tgkill"}),
    "ipc": frozenset({"shmget", "shmat"}),
    "memory": frozenset({"mmap", "mmap2"}),
    "stat": frozenset({"stat", "stat64"}),
    "lstat": frozenset({"lstat", "lstat64"}),
    "fstat": frozenset({"newfstatat", "fstatat64"}),
    "%stat": frozenset({"stat", "lstat", "newfstatat", "statx", "stat64", "lstat64", "fstatat64"}),
}
_OTHER_ABI = names_of(
    "mmap2 pread pwrite send recv stat64 lstat64 fstatat64 sendfile64 truncate64 ftruncate64 socketcall"
)


_LEAVES_OUT = ("-P", "--trace-path", "-z", "-Z", "--successful-only", "--failed-only", "--status")


class Filter:
    """What strace's own options let through.

    Attributes:
        calls: the calls traced, None when all are; ``unknown`` when the options cannot be understood.
        partial: reasons why even traced calls may be missing (``-P``, ``-z``).
    """

    def __init__(self, options: list[str]) -> None:
        self.calls: frozenset[str] | None = None
        self.unknown = False
        self.partial: list[str] = []
        values: list[str] = []
        arguments = iter(options)
        for option in arguments:
            if option in {"-e", "--expr"}:
                values.append(next(arguments, ""))
            elif option.startswith("-e") and len(option) > 2:
                values.append(option[2:])
            elif option.startswith("--trace="):
                values.append("trace=" + option.partition("=")[2])
            elif option == "--trace":
                values.append("trace=" + next(arguments, ""))
            elif option.startswith(_LEAVES_OUT):
                self.partial.append(option)
                if option in {"-P", "--trace-path"}:
                    next(arguments, "")
            elif option in {"-s", "-o", "-p", "-u", "-E", "-a", "-S", "-I", "-O", "-b", "-X"}:
                next(arguments, "")
        for value in values:
            self._add(value)

    def _add(self, value: str) -> None:
        name, equals, rest = value.partition("=")
        if equals and name not in {"trace", "t"}:
            if name in {"status", "trace-fds", "trace-fd", "fd"}:
                self.partial.append(f"-e {value}")
            return
        names = rest if equals else value
        if names in {"all", ""}:
            return
        if names in {"none", "!all"}:
            self.calls = frozenset()
            return
        negated = names.startswith("!")
        found: set[str] = set()
        for part in names.removeprefix("!").split(","):
            plain = part.removeprefix("?").partition("@")[0]
            if plain.startswith("/"):
                self.unknown = True
            elif plain == "%%stat":
                found |= _CLASSES["%stat"]
            elif plain.removeprefix("%") in _CLASSES and plain not in {"stat", "lstat", "fstat"}:
                found |= _CLASSES[plain.removeprefix("%")]
            elif plain == "all":
                negated = not negated
            else:
                found.add(plain)
        if negated:
            every = frozenset().union(*CALLS.values())
            self.calls = (every if self.calls is None else self.calls) - found
        else:
            self.calls = frozenset(found) if self.calls is None else self.calls | found

    def missing(self, kind: str) -> list[str]:
        """Return the calls that make events of ``kind`` and are not traced; those of other ABIs do not count."""
        if self.calls is None:
            return []
        return sorted(CALLS.get(kind, frozenset()) - self.calls - _OTHER_ABI)

    def covers(self, kind: str) -> bool:
        """Whether any call that makes events of ``kind`` is traced."""
        return self.calls is None or kind == "process.exit" or bool(CALLS.get(kind, frozenset()) & self.calls)
