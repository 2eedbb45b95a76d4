"""Functions of C libraries that say what a program can do, by name."""

from __future__ import annotations

import re

__all__ = ["is_io_uring", "is_networking", "is_opaque"]

# POSIX.1-2017 <sys/socket.h> and <netdb.h>, and the GNU and BSD additions to them (man-pages sections 2 and 3).
# Functions that only ask about a socket are left out.
_SOCKET = ["socket", "connect", "bind", "listen", "accept", "accept4", "rcmd", "rcmd_af", "rexec"]
_DATA = ["send", "sendto", "sendmsg", "sendmmsg", "recv", "recvfrom", "recvmsg", "recvmmsg"]
_NAMES = ["getaddrinfo", "getaddrinfo_a", "getnameinfo", "gethostbyname", "gethostbyname_r", "gethostbyname2"]
_MORE_NAMES = ["gethostbyname2_r", "gethostbyaddr", "gethostbyaddr_r"]
_NETWORKING = frozenset([*_SOCKET, *_DATA, *_NAMES, *_MORE_NAMES])
# The resolver of <resolv.h>; ns_parserr and the like only read messages.
# res_query, __res_nquery, __res_init
_RESOLVER = re.compile(r"res_n?(?:query|querydomain|search|mkquery|send|init)")
# io_uring_queue_init of liburing, uv__io_uring_setup inside libuv
_IO_URING = re.compile(r"(?:\w*_)?io_uring_\w+")
# dlopen(3), dlsym(3), dlmopen(3), syscall(2) of glibc; __libc_dlopen_mode is glibc's own
_OPAQUE = frozenset(["dlopen", "dlmopen", "dlsym", "dlvsym", "libc_dlopen_mode", "libc_dlsym", "syscall"])


def is_networking(name: str) -> bool:
    """Return whether a function opens sockets, moves data over them, or resolves names."""
    plain = name.lstrip("_")
    return plain in _NETWORKING or _RESOLVER.fullmatch(plain) is not None


def is_io_uring(name: str) -> bool:
    """Return whether a function belongs to io_uring, by which calls are made that no syscall trace shows."""
    return _IO_URING.fullmatch(name) is not None


def is_opaque(name: str) -> bool:
    """Return whether a program can call, through this function, what its file does not name."""
    return name.lstrip("_") in _OPAQUE
