"""What the call handlers share: the state of the trace, the events made, the losses met."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpdetect.ingest.adapter import CARRIERS, OVERHEARD
from mcpdetect.ingest.strace.account import Account
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.paths import Names
from mcpdetect.ingest.strace.state import Handle, Peer, Socket, Thread
from mcpdetect.ingest.strace.values import Decoration, descriptor
from mcpdetect.ingest.strace.world import World
from mcpdetect.model.event import Event
from mcpdetect.model.place import Where
from mcpdetect.model.wanted import Wanted

if TYPE_CHECKING:
    from mcpdetect.ingest.strace.stdio import Stdio

__all__ = ["Recorder"]


_OUT_OF_SENDS = ("dns.query", "dns.answer", "tls.client_hello", "http.request")


class Recorder:
    """State of one trace while it is read.

    Attributes:
        wanted: the event kinds asked for.
        out: events made and not yet handed on.
        world, names, account: processes, file names, losses.
        opens, reads, changes, probes: events of files that are wanted.
        passed: events that were wanted and not made, since nobody would look at them.
        reads_sends, reads_receives: some wanted kind needs the payload of sends, of receives.
        expected: children that have no line yet, by identity of the thread object.
        rings: io_uring instances, whether the kernel polls them, and their handles.
        hellos: TLS hellos whose rest is still to come, by socket.
        stdio: listens to standard input and output for MCP, where that and the calls that carry it are wanted.
    """

    def __init__(self, wanted: frozenset[str], account: Account) -> None:
        self.wanted = wanted
        self.out: list[Event] = []
        self.world = World()
        self.names = Names()
        self.account = account
        self.opens = "file.open" in wanted
        self.reads = "file.read" in wanted
        self.changes = "file.change" in wanted
        self.probes = "file.probe" in wanted
        self._texts = wanted.texts.get("file.probe") if isinstance(wanted, Wanted) else None
        self.passed = 0
        self.reads_sends = bool(wanted & {"socket.send", *_OUT_OF_SENDS})
        self.reads_receives = bool(wanted & {"socket.receive", *_OUT_OF_SENDS})
        self.expected: dict[int, tuple[Thread, Where, str]] = {}
        self.rings: list[tuple[Call, bool, Handle]] = []
        self.hellos: dict[str, tuple[Call, Peer | None, bytes]] = {}
        self.stdio: Stdio | None = None
        if wanted & OVERHEARD and wanted >= CARRIERS:
            from mcpdetect.ingest.strace.stdio import Stdio

            self.stdio = Stdio(self.out, wanted)
        self._sockets = 0

    def wants(self, kind: str) -> bool:
        """Whether events of this kind were asked for."""
        return kind in self.wanted

    def looks_at(self, path: str | None) -> bool:
        """Whether anybody looks at ``file.probe`` events of this path."""
        if not self.probes:
            return False
        if self._texts is None:
            return True
        if path is not None:
            for text in self._texts:
                if text in path:
                    return True
        self.passed += 1
        return False

    def emit(self, event: Event) -> None:
        """Hand an event on."""
        self.out.append(event)

    def cut(self, kind: str, where: Where) -> None:
        """Note that the payload of an event of ``kind`` is cut."""
        self.account.cut(kind, where)

    def expect(self, child: Thread, where: Where) -> None:
        """Note a child that ought to show a line of its own."""
        self.expected[id(child)] = (child, where, "")

    def untraced(self, child: Thread, where: Where, why: str) -> None:
        """Note a child that asked not to be traced."""
        self.expected[id(child)] = (child, where, why)

    def new_socket(self) -> Socket:
        """Return a socket with a fresh identity."""
        self._sockets += 1
        return Socket(f"s{self._sockets}")

    def base_of(self, thread: Thread, argument: str) -> str | None:
        """Return the directory that a directory descriptor argument stands for, None when unknown."""
        fd, decoration = descriptor(argument)
        if decoration is not None and decoration.path is not None:
            if fd == -100:
                thread.directory.cwd = decoration.path
            return decoration.path
        if fd == -100:
            return thread.directory.cwd
        handle = thread.table.handles.get(fd) if fd is not None else None
        return handle.path if handle is not None and handle.certain else None

    def handle_of(self, thread: Thread, argument: str) -> tuple[int | None, Handle | None]:
        """Return a descriptor argument's number and what it leads to, the decoration's word first."""
        fd, decoration = descriptor(argument)
        if fd is None:
            return None, None
        handle = thread.table.handles.get(fd)
        if decoration is None:
            return fd, handle
        return fd, self.decorated(thread, fd, decoration, handle)

    def decorated(self, thread: Thread, fd: int, decoration: Decoration, handle: Handle | None) -> Handle:
        """Return the handle of a decorated descriptor, a new one where the table does not agree."""
        sort = decoration.sort
        if sort == "socket":
            if handle is not None and handle.socket is not None:
                socket = handle.socket
                if not decoration.inode or not socket.inode or socket.inode == decoration.inode:
                    if decoration.inode:
                        socket.inode = decoration.inode
                    if socket.transport is None:
                        socket.transport = decoration.transport
                    return handle
            socket = self.new_socket()
            socket.transport = decoration.transport
            socket.inode = decoration.inode
            socket.family = _family(decoration)
            if decoration.remote is not None:
                socket.peer = None
            found = Handle("socket", socket=socket)
        elif handle is not None and handle.sort == sort and handle.path == decoration.path:
            return handle
        else:
            found = Handle(sort, decoration.path)
            if handle is not None and handle.sort == sort:
                # The file was renamed or removed since it was opened: the kernel shows its present name.
                found.opaque = handle.opaque
                if handle.path is not None and handle.path in (self.names.aliases(decoration.path) or ()):
                    found.owner = handle.owner
        if fd >= 0:
            thread.table.put(fd, found)
        return found

    def remote(self, handle: Handle | None, argument: str) -> Peer | None:
        """Return the remote end of a socket: its last connect or accept, else what a decoration says."""
        if handle is None or handle.socket is None:
            return None
        if handle.socket.peer is not None:
            return handle.socket.peer
        _, decoration = descriptor(argument)
        if decoration is None or decoration.remote is None:
            return None
        address, port = decoration.remote
        return Peer("", address, port, None, "decoration")

    def loss(
        self,
        what: str,
        detail: str,
        call: Call,
        touches: tuple[str, ...] = (),
        *,
        note: bool = False,
    ) -> None:
        """Note a loss that concerns the calling process."""
        self.account.add(what, detail, call.where, touches, note=note, process=call.thread.process.id)


def _family(decoration: Decoration) -> str:
    name = decoration.protocol.upper()
    if name.startswith("UNIX"):
        return "unix"
    if name.startswith("NETLINK"):
        return "netlink"
    if name.startswith(("TCP", "UDP", "RAW", "PING")):
        return "inet6" if name.endswith("V6") else "inet"
    return ""
