"""The arguments of one call in gVisor's text: which of them are written bare, and where each ends.

gVisor writes paths, and the names behind descriptors, without quotes: they may hold commas, brackets and what looks
like further arguments. So a call is read by the kinds of its arguments, the ends of the bare ones are tried out, and
a text that can be read in two ways says so.

The kinds are those of gVisor's own tables (``pkg/sentry/strace/linux64_amd64.go`` and ``linux64_arm64.go``).
"""

from __future__ import annotations

import re

__all__ = ["SHAPES", "split"]

_STR = r'"(?>[^"\\]++|\\.)*+"(?:\.\.\.)?+'
_PTR = r"0x[0-9a-f]++"
_ERROR = r" \(error [^()]*+(?:\([^()]*+\)[^()]*+)?+\)"
_FLAT = rf"(?>[^{{}}\"]++|{_STR})*+"
_STRUCT = rf"\{{(?>[^{{}}\"]++|{_STR}|\{{(?>[^{{}}\"]++|{_STR}|\{{{_FLAT}\}})*+\}})*+\}}"
_VECTOR = rf"\{{base={_PTR}, len=\d++(?:, {_STR})?+(?:, error decoding string: [^{{}}]*+)?+\}}"
_KINDS = {
    # 0x10      O_RDONLY|O_CLOEXEC      0o666      0xb (bad FD)      CLONE_CHILD_SETTID|0x11
    "h": r"[^,\"{}\[\]() ]*+(?: \(bad FD\))?+",
    # 0x5606e313cd70 "hello"...      0x7f4bc71b4b40      ...      (nothing at all for no bytes)
    "b": rf"(?:{_PTR}(?: {_STR}|{_ERROR})?+|\.\.\.|)",
    # 0x7f0fcaa17030 {Family: AF_INET, Addr: 203.0.113.7, Port: 443}      0x7f0fcaa17004 {length=16}      null
    "a": rf"(?:null|{_PTR}(?: {_STRUCT}|{_ERROR})?+)",
    # 0x7f4bc72e1250 {base=0x7f4bc73783b0, len=3, "one"}, {base=0x7f4bc7378410, len=3, "two"}
    "v": rf"(?:\.\.\.|{_PTR}(?: {_VECTOR}(?:, {_VECTOR})*+| |{_ERROR})?+)",
    # 0x564ef40e1af0 ["cat", "/etc/hostname"]
    "s": rf"(?:null|{_PTR}(?: \[(?:{_STR}(?:, {_STR})*+)?+\]| \{{error [^{{}}]*+\}})?+)",
    # 0x7f0fcaa16da8 [11 12]
    "d": rf"{_PTR}(?: \[-?\d++ -?\d++\]|{_ERROR})?+",
}
# Kinds written bare: a descriptor and the name behind it, a path, a list of polled descriptors.
_BARE = {
    # 0x3 /tmp/a,b c.txt      AT_FDCWD /tmp      0x4 socket:[7]      0xb (bad FD)      -0x64
    "f": re.compile(r"(?:AT_FDCWD|-?0x[0-9a-f]++)(?=[ ,]|\Z)"),
    # 0x7f4bc7373050 a,b c.txt      0x0 (error decoding path: bad address)
    "p": re.compile(r"(?:0x[0-9a-f]++|null)(?=[ ,]|\Z)"),
    # 0x7f0fcaa16fd8 [{FD: 0x4 socket:[3], Events: POLLOUT|POLLERR, REvents: ...}]
    "q": re.compile(r"(?:0x[0-9a-f]++(?= \[|,|\Z)|null(?=,|\Z))"),
}
_MOST_TRIES = 256
_MOST_PLAIN = 400  # characters of six numbers, and more

_TABLE = (
    ("fbh", "read write"),
    ("fbhh", "pread64 pwrite64"),
    ("fvh", "readv writev"),
    ("fvhh", "preadv pwritev"),
    ("fvhhh", "preadv2 pwritev2"),
    ("phh", "open mknod chown lchown"),
    ("fphh", "openat mknodat faccessat faccessat2"),
    ("f", "close fchdir dup"),
    ("pa", "stat lstat"),
    ("fpah", "newfstatat"),
    ("fphha", "statx"),
    ("ph", "access creat chmod mkdir truncate umount2 memfd_create"),
    ("fph", "unlinkat mkdirat fchmodat"),
    ("fphhh", "fchownat fsetxattr"),
    ("pbh", "readlink"),
    ("fpbh", "readlinkat"),
    ("pphh", "getxattr lgetxattr"),
    ("pph", "listxattr llistxattr"),
    ("pphhh", "setxattr lsetxattr"),
    ("p", "chdir rmdir unlink chroot"),
    ("pp", "rename link symlink pivot_root"),
    ("fpfp", "renameat"),
    ("fpfph", "renameat2 linkat"),
    ("pfp", "symlinkat"),
    ("fh", "fchmod ftruncate listen shutdown setns"),
    ("fhh", "getdents64 getdents fcntl fchown"),
    ("fhhh", "fallocate sendmmsg"),
    ("ff", "dup2"),
    ("ffh", "dup3 close_range"),
    ("ffhh", "sendfile tee"),
    ("fhfhhh", "splice copy_file_range"),
    ("hhhhfh", "mmap"),
    ("d", "pipe"),
    ("dh", "pipe2"),
    ("hhhh", "socketpair"),
    ("fah", "connect bind sendmsg recvmsg"),
    ("faa", "accept getpeername"),
    ("faah", "accept4"),
    ("fhhhah", "sendto"),
    ("fhhhaa", "recvfrom"),
    ("fhhha", "recvmmsg"),
    ("fhhaa", "getsockopt"),
    ("qhh", "poll"),
    ("qhaah", "ppoll"),
    ("hhhhh", "clone prctl"),
    ("hh", "clone3 io_uring_setup kill tkill timerfd_create eventfd2"),
    ("", "fork vfork getpid"),
    ("h", "exit exit_group epoll_create epoll_create1 eventfd unshare userfaultfd inotify_init1"),
    ("hhh", "socket io_uring_register bpf tgkill shmget shmat seccomp"),
    ("pss", "execve"),
    ("fpssh", "execveat"),
    ("ppphp", "mount"),
)
SHAPES: dict[str, str] = {name: shape for shape, names in _TABLE for name in names.split()}
"""Call name -> the kinds of its arguments."""

_AFTER = {
    shape: re.compile(", ".join(_KINDS[kind] for kind in shape) + r"\Z", re.ASCII | re.DOTALL)
    for shape in {
        shape[at:] for shape in SHAPES.values() for at in range(len(shape) + 1) if not set(shape[at:]) & _BARE.keys()
    }
}
_ONE = {kind: re.compile(pattern, re.ASCII | re.DOTALL) for kind, pattern in _KINDS.items()}


def split(name: str, text: str) -> tuple[list[str], bool] | None:
    """Split the text between the brackets of a call.

    Args:
        name: the call, one of ``SHAPES``.
        text: what stands between its brackets.

    Returns:
        The arguments as written and whether there was only one way to read them; None when there was none. A call
        may have fewer arguments than its table says: older versions decode less.
    """
    shape = SHAPES[name]
    parts = text.split(", ")
    if len(parts) == len(shape) and all(map(_fits, shape, parts)):  # as many as there can be: one way
        return parts, True
    tries = [_MOST_TRIES]
    found = _ways(shape, text, 0, tries)
    if not found:
        return _plain(shape, text)
    return found[0], len(found) == 1 and tries[0] > 0


def _fits(kind: str, part: str) -> bool:
    bare = _BARE.get(kind)
    return _ONE[kind].fullmatch(part) is not None if bare is None else bare.match(part) is not None


def _plain(shape: str, text: str) -> tuple[list[str], bool] | None:
    """Return the arguments of a call that this version of gVisor decoded as bare numbers."""
    parts = text.split(", ") if len(text) < _MOST_PLAIN else []
    for index, part in enumerate(parts):
        bare = _BARE.get(shape[index : index + 1])
        number = bare.match(part) if bare is not None else None
        if _ONE["h"].fullmatch(part) is None or (bare is not None and (number is None or number.end() != len(part))):
            return None
    return (parts, True) if parts else None


def _ways(shape: str, text: str, at: int, tries: list[int]) -> list[list[str]]:
    """Return at most two ways to read ``text`` from ``at`` on."""
    done: list[str] = []
    while shape and shape[0] not in _BARE:
        match = _ONE[shape[0]].match(text, at)
        if match is None:
            return []
        done.append(match[0])
        shape, at = shape[1:], match.end()
        if shape:
            if not text.startswith(", ", at):
                return []
            at += 2
    if not shape:
        return [done] if at == len(text) else []
    number = _BARE[shape[0]].match(text, at)
    if number is None:
        return []
    rest = shape[1:]
    if text.startswith(",", number.end()):  # no name follows the number
        ways = _ways(rest, text, number.end() + 2, tries) if rest and text.startswith(", ", number.end()) else []
        return [[*done, number[0], *way] for way in ways]
    if not rest:
        return [[*done, text[at:]]]
    after = _AFTER.get(rest)
    found: list[list[str]] = []
    cut = text.find(", ", at)
    while cut >= 0 and tries[0] > 0 and len(found) < 2:
        tries[0] -= 1
        fits = after is None or after.match(text, cut + 2) is not None
        ways = _ways(rest, text, cut + 2, tries) if fits else []
        found.extend([*done, text[at:cut], *way] for way in ways)
        cut = text.find(", ", cut + 2)
    return found[:2]
