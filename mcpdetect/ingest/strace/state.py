"""What a tracer must remember to read a line: processes, threads, descriptors, sockets, working directories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpdetect.model.vocabulary import RemoteSource, Transport

__all__ = ["Birth", "Directory", "Handle", "Peer", "Process", "Socket", "Table", "Thread"]


@dataclass(slots=True)
class Peer:
    """The remote end of a socket as it was told; all None and ``""`` when it was undone (AF_UNSPEC)."""

    family: str = ""
    address: str | None = None
    port: int | None = None
    path: str | None = None
    source: RemoteSource | None = None


@dataclass(slots=True)
class Socket:
    """One open socket, whatever number of descriptors name it.

    Attributes:
        id: identity within the trace.
        transport, family: None and ``""`` when unknown.
        peer: by the last connect or accept.
        local: by bind.
        partner: the other end of a socketpair.
        holders: descriptors that name it.
        pending: a connect is under way.
        sent: payload went out already (the first bytes decide what is spoken).
        inbox, outbox: bytes of a message whose rest is still to come (DNS over TCP).
        greeting: a TLS hello whose rest is still to come.
        asked: the name last asked for over this socket (local resolvers).
        passed: descriptors sent to this end and not yet received.
    """

    id: str
    transport: Transport | None = None
    family: str = ""
    inode: str = ""
    peer: Peer | None = None
    local: Peer | None = None
    partner: Socket | None = None
    passed: list[list[Handle | None]] = field(default_factory=list)
    holders: int = 0
    pending: bool = False
    sent: bool = False
    inbox: bytes = b""
    outbox: bytes = b""
    greeting: bytes = b""
    asked: str | None = None


@dataclass(slots=True)
class Handle:
    """What a descriptor leads to.

    Attributes:
        sort: ``file``, ``socket``, ``pipe``, ``anon`` (eventfd, epoll and the like), ``memfd``, ``unknown``.
        path: absolute path of a file, name of a pipe or memfd.
        owner: the process that opened it in this trace, None when nobody did.
        opaque: opened with O_PATH.
        closed: a call closed a descriptor of it (the end of a process does not count).
    """

    sort: str
    path: str | None = None
    certain: bool = True
    owner: Process | None = None
    socket: Socket | None = None
    opaque: bool = False
    closed: bool = False


class Table:
    """The descriptors of a process; threads and CLONE_FILES children share one."""

    __slots__ = ("closing", "handles", "users")

    def __init__(self) -> None:
        self.handles: dict[int, Handle] = {}
        self.closing: set[int] = set()
        self.users = 0

    def put(self, fd: int, handle: Handle, *, closing: bool = False) -> None:
        """Let ``fd`` lead to ``handle``; ``closing`` is close-on-exec."""
        old = self.handles.get(fd)
        if old is not None and old.socket is not None:
            old.socket.holders -= 1
        self.handles[fd] = handle
        if closing:
            self.closing.add(fd)
        else:
            self.closing.discard(fd)
        if handle.socket is not None:
            handle.socket.holders += 1

    def open(self, fd: int, handle: Handle, closing: bool) -> None:
        """``put`` for a handle that is no socket."""
        handles = self.handles
        old = handles.get(fd)
        if old is not None and old.socket is not None:
            old.socket.holders -= 1
        handles[fd] = handle
        if closing:
            self.closing.add(fd)
        else:
            self.closing.discard(fd)

    def drop(self, fd: int) -> Handle | None:
        """Forget ``fd``; return what it led to."""
        handle = self.handles.pop(fd, None)
        if handle is not None:
            self.closing.discard(fd)
            if handle.socket is not None:
                handle.socket.holders -= 1
        return handle

    def copy(self) -> Table:
        """Return the table a forked child starts with."""
        child = Table()
        child.handles = dict(self.handles)
        child.closing = set(self.closing)
        for handle in self._sockets():
            handle.holders += 1
        return child

    def at_exec(self) -> None:
        """Close what is marked close-on-exec."""
        for fd in list(self.closing):
            handle = self.drop(fd)
            if handle is not None:
                handle.closed = True
        self.closing.clear()

    def release(self) -> None:
        """Close everything: the last thread that used the table is gone."""
        for socket in self._sockets():
            socket.holders -= 1
        self.handles.clear()

    def _sockets(self) -> Iterator[Socket]:
        return (handle.socket for handle in self.handles.values() if handle.socket is not None)


@dataclass(slots=True)
class Directory:
    """Working and root directory, shared by threads and CLONE_FS children. ``cwd`` None is unknown."""

    cwd: str | None = None
    root: str = ""


@dataclass(slots=True, eq=False)
class Process:
    """One process: a thread group.

    Attributes:
        id: its identity in events, None while the evidence does not tell the pid.
        threads: its living threads.
        parent: identity of its parent, where known.
        threads: its living threads by tid.
        leaving: it called exit_group.
        status: how its main thread ended: exit code, signal.
    """

    id: str | None
    parent: str | None = None
    threads: dict[str, Thread] = field(default_factory=dict)
    leaving: bool = False
    status: tuple[int | None, str | None] | None = None


@dataclass(slots=True, eq=False)
class Thread:
    """One traced task, the owner of a line.

    Attributes:
        tid: as written in the log, ``""`` where the log has no pid column.
        number: its tid in events, None for a main thread.
        first: the line that showed it first, 0 before one did.
        birth: the clone call that made it, None when unknown.
    """

    tid: str
    process: Process
    table: Table
    directory: Directory
    number: int | None = None
    first: int = 0
    birth: Birth | None = None


@dataclass(slots=True, eq=False)
class Birth:
    """A clone, fork or vfork under way, or done.

    Attributes:
        parent: the calling thread.
        flags: clone flags.
        line: where the call began.
        child: the thread that it made, once known or guessed.
    """

    parent: Thread
    flags: frozenset[str]
    line: int
    child: Thread | None = None
