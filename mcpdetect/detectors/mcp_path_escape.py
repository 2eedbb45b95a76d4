"""mcp.path-escape: a tool's argument led to a file outside the declared root."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.calls import Calls, ToolCall
from mcpdetect.correlate.processes import Processes
from mcpdetect.model.event import Event, FileChange, FileOpen
from mcpdetect.model.mcp import McpMessage
from mcpdetect.model.result import Finding

__all__ = ["McpPathEscape"]

MAX_OPENS = 100_000
"""Most files opened or changed that are kept until the calls are known."""

_SLACK_NS = 2_000_000_000
_MOST_STRINGS = 200
# The runtime's own files: no argument leads there.
_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/proc/self/", "/sys/", "/dev/")


class McpPathEscape(Detector):
    """A file outside the declared root that was reached because a tool's argument named it, or a way to it."""

    spec = Spec(
        id="mcp.path-escape",
        version=1,
        claim="no argument of a call led to a file outside the root that was declared",
        kinds=("file.open", "file.change", "mcp.message"),
        needs=(
            AnyOf("the calls and their arguments", Need("mcp", ("mcp.message", "data:mcp.message"))),
            AnyOf("the files that were opened", Need("syscalls", ("file.open", "file.change"))),
        ),
        facts=(Calls, Processes),
        blind_to=(
            "a root that is declared by other means than the command line or the client's roots",
            "an argument that names no path, from which the server makes one",
            "a link whose target the log does not show (strace without -y)",
            "a file that is opened long after the call was answered",
        ),
        technique="T1083",
        complete_run=False,
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._roots: list[str] = [
            posixpath.normpath(word)
            for word in context.run.target[1:]
            if word.startswith("/") and "." not in _last(word)
        ]
        self._files: list[FileOpen | FileChange] = []

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Gather roots and files; the calls are known at the end."""
        if isinstance(event, McpMessage):
            if event.direction == "c2s" and event.method == "roots/list" and event.text:
                for line in event.text.splitlines():
                    if line.startswith("file:///"):
                        self._roots.append(posixpath.normpath(line.removeprefix("file://")))
        elif (
            isinstance(event, (FileOpen, FileChange)) and event.ok and event.path and not event.path.startswith(_SYSTEM)
        ):
            if len(self._files) < MAX_OPENS:
                self._files.append(event)
            else:
                self.context.limit("overflow", f"more than {MAX_OPENS} files: later ones are not joined with calls")
        return ()

    def finish(self) -> Iterator[Finding]:
        """Join what the arguments named with what was opened."""
        # A word of the command line that was opened to be read, and not as a folder, is a program.
        programs = {
            event.path
            for event in self._files
            if isinstance(event, FileOpen) and "O_DIRECTORY" not in event.flags and event.path in self._roots
        }
        roots = list(dict.fromkeys(root for root in self._roots if root not in ("/", "") and root not in programs))
        if not roots:
            self.context.limit("no-root", "no root was declared, on the command line or by the client")
            return
        calls = self.context.fact(Calls)
        if not calls.calls:
            self.context.limit("no-calls", "no tool was called, so no argument could lead anywhere")
        if any(call.begin_ns is None for call in calls.calls):
            self.context.limit("no-clock", "the calls have no times, so nothing can be joined with them")
        named = [(call, wanted) for call in calls.calls for wanted in _paths(call, roots)]
        by_path: dict[str, list[tuple[ToolCall, str]]] = {}
        for call, wanted in named:
            by_path.setdefault(wanted, []).append((call, wanted))
        for event in self._files:
            path = event.path or ""
            if any(_within(path, root) for root in roots):
                continue
            written = posixpath.normpath(event.written) if isinstance(event, FileOpen) and event.written else path
            for call, wanted in by_path.get(path, []) or by_path.get(written, []):
                if call.under_way(event.t_ns, _SLACK_NS):
                    yield self._found(call, event, wanted, roots)
                    break

    def _found(self, call: ToolCall, event: FileOpen | FileChange, wanted: str, roots: list[str]) -> Finding:
        inside = any(_within(wanted, root) for root in roots)
        how = "through a link inside the root" if inside else "by a path that leads out of the root"
        done = "opened" if isinstance(event, FileOpen) else f"changed ({event.operation})"
        return self.finding(
            event,
            call.where,
            title=f"a call of {call.tool!r} with {wanted} {done} {event.path}, {how}",
            reason=f"The declared root is {', '.join(roots[:4])}. A server that follows such an argument gives away "
            "every file that its user may open.",
            identity=f"{call.tool}\0{event.path}\0{inside}",
            level="suspicious",
            program=self.context.fact(Processes).program(event.process),
            tool=call.tool,
            argument=wanted,
            path=event.path,
            link=inside,
            roots=roots[:16],
        )


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _paths(call: ToolCall, roots: list[str]) -> Iterator[str]:
    """Yield the absolute paths that the arguments of a call can mean, below each root where they are relative."""
    seen: set[str] = set()
    for text in call.strings:
        text = text.removeprefix("file://")
        if not text or len(text) > 4096 or "\n" in text:
            continue
        meant = [text] if text.startswith("/") else [posixpath.join(root, text) for root in roots]
        for path in meant:
            plain = posixpath.normpath(path)
            if plain not in seen:
                seen.add(plain)
                yield plain
