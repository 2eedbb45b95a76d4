"""mcp.annotation-mismatch: tools that do what their annotations deny."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.calls import Calls, ToolCall
from mcpdetect.correlate.processes import Processes
from mcpdetect.model.addresses import is_remote
from mcpdetect.model.event import Event, FileChange
from mcpdetect.model.result import Finding
from mcpdetect.model.sockets import SocketConnect, SocketSend
from mcpdetect.model.vocabulary import Level

__all__ = ["McpAnnotationMismatch"]

MAX_ACTS = 50_000
"""Most writes and connections kept until the calls are known."""

_CHANGES = frozenset({"write", "rename", "unlink", "link", "symlink", "truncate", "mkdir", "rmdir", "chmod", "mknod"})
# What a program writes for itself, whatever it is asked to do.
_OWN_PLACES = ("/tmp/", "/var/tmp/", "/dev/", "/proc/", "/run/", "/var/log/")  # noqa: S108
_OWN_PARTS = frozenset({".cache", "__pycache__", "logs", "log", ".local", ".npm", "node_modules", "Caches"})


class McpAnnotationMismatch(Detector):
    """A tool that wrote although it says that it only reads, or connected although its world is closed."""

    spec = Spec(
        id="mcp.annotation-mismatch",
        version=1,
        claim="no tool wrote while it says that it only reads, or connected out while it says that its world is closed",
        kinds=("file.change", "socket.connect", "socket.send"),
        needs=(
            AnyOf("definitions and calls", Need("mcp", ("mcp.tool", "mcp.message"))),
            AnyOf("what the calls do", Need("syscalls", ("file.change", "socket.connect", "socket.send"))),
        ),
        facts=(Calls, Processes),
        blind_to=(
            "work that is put off until the call was answered",
            "work of a thread of its own that happens to fall into a call: it is told as the call's",
            "a write through a mapping, and what a service outside the trace does for the tool",
            "destructiveHint and idempotentHint, which no single call can contradict",
        ),
        complete_run=False,
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._writes: dict[tuple[str, str], list[FileChange]] = {}
        self._contacts: list[tuple[str, SocketConnect | SocketSend]] = []
        self._count = 0

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Keep what was written and contacted; the calls are known at the end."""
        if event.t_ns is None or self._count >= MAX_ACTS:
            if self._count >= MAX_ACTS:
                self.context.limit("overflow", f"more than {MAX_ACTS} acts: later ones are not joined with calls")
            return ()
        if isinstance(event, FileChange):
            if event.ok and event.path is not None and event.operation in _CHANGES and event.path.startswith("/"):
                same = self._writes.setdefault((event.path, event.operation), [])
                # A file written in many pieces counts once a call; a handful of times tell the calls apart.
                if not same or (len(same) < 64 and event.t_ns - (same[-1].t_ns or 0) > 1_000_000):
                    same.append(event)
                    self._count += 1
        elif isinstance(event, (SocketConnect, SocketSend)):
            address = event.address
            if address and _remote(address) and not (isinstance(event, SocketConnect) and event.port == 0):
                self._contacts.append((address, event))
                self._count += 1
        return ()

    def finish(self) -> Iterator[Finding]:
        """Join what was done with the calls of annotated tools."""
        calls = self.context.fact(Calls)
        reading = set(calls.annotated("readOnlyHint=true"))
        closed = set(calls.annotated("openWorldHint=false"))
        called = {call.tool for call in calls.calls}
        if not called & (reading | closed):
            self.context.limit(
                "not-annotated", "no tool that was called says that it only reads or that its world is closed"
            )
        if any(call.begin_ns is None for call in calls.calls):
            self.context.limit("no-clock", "the calls have no times, so nothing can be joined with them")
        for (path, operation), events in self._writes.items():
            for event in events:
                call = self._within(calls, event, reading)
                if call is not None:
                    yield self._wrote(call, event, path, operation)
        for address, contact in self._contacts:
            call = self._within(calls, contact, closed)
            if call is not None:
                yield self._connected(call, contact, address)

    def _within(self, calls: Calls, event: Event, tools: set[str]) -> ToolCall | None:
        """Return the call that an act falls into, where every call then under way is of one of ``tools``."""
        under_way = calls.during(event.t_ns)
        return under_way[-1] if under_way and all(call.tool in tools for call in under_way) else None

    def _wrote(self, call: ToolCall, event: FileChange, path: str, operation: str) -> Finding:
        own = path.startswith(_OWN_PLACES) or not _OWN_PARTS.isdisjoint(path.split("/"))
        level: Level = "info" if own else "suspicious"
        return self.finding(
            event,
            call.where,
            title=f"{call.tool!r} says that it only reads, and during its call there was a {operation} of {path}",
            reason="Clients call such tools without asking the user (readOnlyHint)."
            + (" The place is one where programs keep caches and logs of their own." if own else ""),
            identity=f"write\0{call.tool}\0{path}\0{operation}",
            level=level,
            program=self.context.fact(Processes).program(event.process),
            tool=call.tool,
            hint="readOnlyHint",
            path=path,
            operation=operation,
        )

    def _connected(self, call: ToolCall, event: SocketConnect | SocketSend, address: str) -> Finding:
        return self.finding(
            event,
            call.where,
            title=f"{call.tool!r} says that its world is closed, and during its call {address} was contacted",
            reason="Clients take such a tool for one that talks to nobody (openWorldHint false).",
            identity=f"connect\0{call.tool}\0{address}",
            level="suspicious",
            program=self.context.fact(Processes).program(event.process),
            tool=call.tool,
            hint="openWorldHint",
            address=address,
        )


def _remote(address: str) -> bool:
    try:
        return is_remote(address)
    except ValueError:
        return False
