"""mcp.annotation-mismatch: tools that do what their annotations deny."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.calls import Calls, ToolCall
from mcpdetect.correlate.processes import Processes
from mcpdetect.model.addresses import elsewhere
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
# Hidden places that are everybody's: what is written there acts on other programs.
_OTHERS = frozenset(
    {".ssh", ".aws", ".kube", ".docker", ".gnupg", ".git", ".github", ".config", ".env", ".npmrc", ".netrc", ".bashrc"}
    | {".profile", ".bash_profile", ".zshrc", ".gitconfig", ".claude", ".cursor", ".vscode", ".codex", ".pypirc"}
)
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
        """Keep what was written and contacted, standard streams apart; the calls are known at the end."""
        if event.t_ns is None or self._count >= MAX_ACTS:
            if self._count >= MAX_ACTS:
                self.context.limit("overflow", f"more than {MAX_ACTS} acts: later ones are not joined with calls")
            return ()
        if isinstance(event, FileChange):
            streams = event.operation == "write" and event.fd in (0, 1, 2)
            if event.ok and event.path is not None and event.operation in _CHANGES and not streams:
                if not event.path.startswith("/"):  # pipe:[640419]
                    return ()
                same = self._writes.setdefault((event.path, event.operation), [])
                # A file written in many pieces counts once a call; a handful of times tell the calls apart.
                if not same or (len(same) < 64 and event.t_ns - (same[-1].t_ns or 0) > 1_000_000):
                    same.append(event)
                    self._count += 1
        elif isinstance(event, (SocketConnect, SocketSend)):
            address = event.address
            if address and elsewhere(address) and not (isinstance(event, SocketConnect) and event.port == 0):
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
        wrote: dict[tuple[str, bool], list[tuple[ToolCall, FileChange, str]]] = {}
        for (path, _), events in self._writes.items():
            within = [(self._within(calls, event, reading), event) for event in events]
            # What goes on outside of such calls as well is the program's own doing.
            own = _own(path) or any(call is None for call, _ in within)
            for call, event in within:
                if call is not None:
                    wrote.setdefault((call.tool, own), []).append((call, event, path))
        for (tool, own), acts in wrote.items():
            yield self._wrote(tool, acts, own=own)
        met: dict[tuple[str, str], list[tuple[ToolCall | None, SocketConnect | SocketSend]]] = {}
        for address, contact in self._contacts:
            call = self._within(calls, contact, closed)
            met.setdefault((call.tool if call else "", address), []).append((call, contact))
        for (tool, address), contacts in met.items():
            call, contact = contacts[0]
            if call is not None:
                yield self._connected(call, contact, address, own=("", address) in met, tool=tool)

    def _within(self, calls: Calls, event: Event, tools: set[str]) -> ToolCall | None:
        """Return the call that an act falls into, where every call then under way is of one of ``tools``."""
        under_way = calls.during(event.t_ns)
        return under_way[-1] if under_way and all(call.tool in tools for call in under_way) else None

    def _wrote(self, tool: str, acts: list[tuple[ToolCall, FileChange, str]], *, own: bool) -> Finding:
        paths = list(dict.fromkeys(path for _, _, path in acts))
        call, first, _ = acts[0]
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        level: Level = "info" if own else "suspicious"
        ordinary = (
            " It is what the program keeps for itself, such as caches, logs and settings of its own." if own else ""
        )
        return self.finding(
            first,
            call.where,
            *(event for _, event, _ in acts[1:8]),
            title=f"{tool!r} says that it only reads, and its calls changed {paths[0]}{more}",
            reason=f"Clients call such a tool without asking the user (readOnlyHint).{ordinary}",
            identity=f"write\0{tool}\0{own}",
            level=level,
            program=self.context.fact(Processes).program(first.process),
            tool=tool,
            hint="readOnlyHint",
            paths=paths[:32],
            operations=sorted({event.operation for _, event, _ in acts}),
        )

    def _connected(
        self, call: ToolCall, event: SocketConnect | SocketSend, address: str, *, own: bool, tool: str
    ) -> Finding:
        level: Level = "info" if own else "suspicious"
        ordinary = " The same address is contacted outside of such calls too." if own else ""
        return self.finding(
            event,
            call.where,
            title=f"{tool!r} says that its world is closed, and during its call {address} was contacted",
            reason=f"Clients take such a tool for one that talks to nobody (openWorldHint false).{ordinary}",
            identity=f"connect\0{tool}\0{address}",
            level=level,
            program=self.context.fact(Processes).program(event.process),
            tool=tool,
            hint="openWorldHint",
            address=address,
        )


def _own(path: str) -> bool:
    """Return whether a path is where programs keep what they need for themselves."""
    parts = path.split("/")
    hidden = any(part.startswith(".") and part not in _OTHERS for part in parts) and _OTHERS.isdisjoint(parts)
    return (
        path.startswith(_OWN_PLACES) or hidden or not _OWN_PARTS.isdisjoint(parts) or path.endswith((".log", ".lock"))
    )
