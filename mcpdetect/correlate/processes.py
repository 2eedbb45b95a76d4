"""The process tree: who started whom, as which program, and where the audited program begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from mcpdetect.contract import Fact
from mcpdetect.model.event import Event, ProcessExecFailed, ProcessExit, ProcessStart
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

__all__ = ["MAX_PROCESSES", "Process", "Processes"]

MAX_PROCESSES = 200_000
"""Most processes kept; a fork storm beyond it is counted in ``overflow``."""


@dataclass(slots=True)
class Process:
    """One process.

    Attributes:
        id: its identity as in ``Event.process``.
        parent: the parent's identity, where known.
        executable, argv: the program it runs now, or ran last; inherited from the parent until its own exec.
        history: executables in order, its own only.
        where: the place of its birth.
        launcher: it ran before the audited program began, so its acts are the launcher's.
    """

    id: str
    parent: str | None = None
    executable: str | None = None
    argv: list[str] | None = None
    history: list[str] = field(default_factory=list)
    where: Where | None = None
    ended: bool = False


class Processes(Fact):
    """The process tree of a run, as it is at the time of asking."""

    kinds: ClassVar[tuple[str, ...]] = ("process.start", "process.exit", "process.exec_failed")

    def __init__(self, run: Run, *uses: Fact) -> None:
        super().__init__(run, *uses)
        self._processes: dict[str, Process] = {}
        self.overflow = 0
        self.failed: list[ProcessExecFailed] = []
        self._entered = run.entry is None
        self.entered_ns: int | None = None

    def on_event(self, event: Event) -> None:
        """Learn from one process event."""
        if isinstance(event, ProcessExit):
            if event.process in self._processes:
                self._processes[event.process].ended = True
            return
        if isinstance(event, ProcessExecFailed):
            if len(self.failed) < 10_000:
                self.failed.append(event)
            return
        if not isinstance(event, ProcessStart) or event.process is None:
            return
        process = self._processes.get(event.process)
        if process is None:
            if len(self._processes) >= MAX_PROCESSES:
                self.overflow += 1
                return
            process = self._processes[event.process] = Process(event.process, event.parent, where=event.where)
        if event.how == "clone":
            # a child's own lines may come before the line that names its parent (vfork), so only gaps are filled
            process.parent = process.parent or event.parent
            parent = self._processes.get(event.parent or "")
            if parent is not None and process.executable is None:
                process.executable, process.argv = parent.executable, parent.argv
        elif event.how == "exec":
            process.executable = event.executable or f"({event.origin or 'unknown program'})"
            process.argv = event.argv
            process.history.append(process.executable)
            if not self._entered and process.executable == self.run.entry and event.ok:
                self._entered, self.entered_ns = True, event.t_ns

    @property
    def entered(self) -> bool:
        """Whether the audited program has begun; before that, acts are the launcher's."""
        return self._entered

    def get(self, process: str | None) -> Process | None:
        """Return what is known about a process."""
        return self._processes.get(process or "")

    def program(self, process: str | None) -> str | None:
        """Return the executable a process runs now, its own or the one inherited at fork."""
        for item in self.lineage(process):
            if item.executable is not None:
                return item.executable
        return None

    def command(self, process: str | None) -> str | None:
        """Return the command line of a process as one line of text, None when unknown."""
        found = self.get(process)
        if found is None:
            return None
        return " ".join(found.argv) if found.argv else found.executable

    def lineage(self, process: str | None) -> Iterator[Process]:
        """Yield a process and its ancestors, nearest first, as far as they are known."""
        seen: set[str] = set()
        while process is not None and process not in seen:
            seen.add(process)
            found = self._processes.get(process)
            if found is None:
                return
            yield found
            process = found.parent
