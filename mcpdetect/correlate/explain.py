"""Why a fact may be ordinary: known habits, the caller's own argument, the operator's command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from mcpdetect.contract import Fact
from mcpdetect.correlate.calls import Calls, strings_of
from mcpdetect.correlate.clock import later
from mcpdetect.correlate.processes import Processes
from mcpdetect.data.habits import Habit, habits
from mcpdetect.model.event import Event, FileOpen, FileProbe, ProcessStart
from mcpdetect.model.result import Explanation
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level

__all__ = ["Explanations", "level_with", "named_file"]

MAX_SEARCHED = 256
"""Most directories kept per process in which a dotenv file was looked for."""
_SLACK_NS = 2_000_000_000
"""How long after its response a call's work may still show: children finish, buffers drain."""
_DOTENV = "/.env"
_SYSTEM = frozenset({"/", "/home", "/root", "/etc", "/usr", "/var", "/tmp", "/proc", "/opt"})  # noqa: S108


class Explanations(Fact):
    """Collects what is needed to explain findings, and explains them."""

    kinds: ClassVar[tuple[str, ...]] = ("file.open", "file.probe", "process.start")
    only: ClassVar[Mapping[str, str]] = {"file.probe": _DOTENV}
    uses: ClassVar[tuple[type[Fact], ...]] = (Processes, Calls)

    def __init__(self, run: Run, *uses: Fact) -> None:
        super().__init__(run, *uses)
        processes, calls = uses
        if not isinstance(processes, Processes) or not isinstance(calls, Calls):
            raise TypeError("Explanations reads Processes and Calls")
        self._processes, self._calls = processes, calls
        self._habits = habits()
        self._used: dict[str, set[str]] = {}
        self._paths: dict[str, tuple[str, ...]] = {}
        self._searched: dict[str, set[str]] = {}
        self._joined: tuple[int, str] = (0, "")

    def on_event(self, event: Event) -> None:
        """Learn from one event."""
        if isinstance(event, FileOpen):
            if event.process is not None and event.fd is not None:
                used = self._libraries(event.path)
                if used:
                    self._used.setdefault(event.process, set()).update(used)
            self._looked(event.process, event.path)
        elif isinstance(event, FileProbe):
            self._looked(event.process, event.path)
        elif isinstance(event, ProcessStart) and event.how == "exec" and event.process is not None:
            # another program begins: what the one before had loaded is gone
            self._used.pop(event.process, None)

    def _looked(self, process: str | None, path: str | None) -> None:
        """Note the directories in which a process looked for a dotenv file."""
        if process is not None and path is not None and _DOTENV in path:
            directory, _, name = path.rpartition("/")
            if name.startswith(".env"):
                searched = self._searched.setdefault(process, set())
                if len(searched) < MAX_SEARCHED:
                    searched.add(directory + "/")

    def _libraries(self, path: str) -> tuple[str, ...]:
        known = self._paths.get(path)
        if known is None:
            known = tuple(habit.id for habit in self._habits if habit.libraries.fullmatch(path))
            if len(self._paths) < 50_000:
                self._paths[path] = known
        return known

    def _said(self) -> str:
        """Return all argument texts in one, lower case, to rule out quickly what no caller named."""
        calls = self._calls.calls
        if self._joined[0] != len(calls):
            text = "\n".join(string for call in calls for string in call.strings).lower()
            self._joined = (len(calls), text)
        return self._joined[1]

    def of_file(self, path: str, process: str | None, t_ns: int | None, written: str | None) -> list[Explanation]:
        """Return why an access to ``path`` may be ordinary.

        Args:
            path: absolute path of the file.
            process: who touched it.
            t_ns: when.
            written: the path as the program wrote it, where known.
        """
        found = [
            habit.explanation
            for habit in self._habits
            if habit.paths.fullmatch(path) and self._holds(habit, process, written)
        ]
        found.extend(self.launcher(t_ns))
        if self._upward(path, process):
            text = "the file was looked for in a directory below first: an upward search, as dotenv libraries make it"
            found.append(Explanation("dotenv-upward-search", text, "python-dotenv documentation, find_dotenv"))
        for call in self._calls.during(t_ns, _SLACK_NS):
            given = next((text for text in call.strings if _covers(text, path)), None)
            if given is not None:
                found.append(
                    Explanation(
                        "caller-argument",
                        f"the caller of tool {call.tool!r} passed {given!r}",
                        f"{call.where}",
                    )
                )
                break
        found.extend(self._operator(path, _covers))
        return found

    def of_destination(
        self, address: str, port: int | None, names: list[str], process: str | None, t_ns: int | None = None
    ) -> list[Explanation]:
        """Return why a contact with an address, or with one of its names, at ``t_ns`` may be ordinary."""
        found = [
            habit.explanation
            for habit in self._habits
            if habit.concerns_address(address, port) and self._holds(habit, process, None)
        ]
        found.extend(self.launcher(t_ns))
        wanted = [*names, address]
        said = self._said()
        given_to = self._calls.calls if any(host.lower() in said for host in wanted) else ()
        for call in given_to:
            if later(call.begin_ns, t_ns, _SLACK_NS):
                continue  # what came before the call was not asked for by it
            given = next((host for host in wanted if any(_mentions(text, host) for text in call.strings)), None)
            if given is not None:
                found.append(
                    Explanation(
                        "caller-argument", f"the caller of tool {call.tool!r} passed {given!r}", f"{call.where}"
                    )
                )
                break
        for host in wanted:
            operator = self._operator(host, _mentions)
            if operator:
                found.extend(operator)
                break
        return found

    def _operator(self, thing: str, test: Callable[[str, str], bool]) -> list[Explanation]:
        for argument in self.run.target[1:]:
            if test(argument, thing):
                text = f"the server was started with the argument {argument!r}"
                return [Explanation("operator-argument", text, "the command line of the run")]
        return []

    def _holds(self, habit: Habit, process: str | None, written: str | None) -> bool:
        if habit.always or (habit.relative and written is not None and not written.startswith("/")):
            return True
        program = self._processes.program(process)
        if program is not None and habit.programs.fullmatch(program):
            return True
        if process is not None and habit.id in self._used.get(process, ()):
            return True
        same = True  # a child that did not exec runs its parent's program with all it loaded
        for item in self._processes.lineage(process):
            if same and habit.id in self._used.get(item.id, ()):
                return True
            same = same and not item.history
            if habit.children and item.executable is not None and habit.programs.fullmatch(item.executable):
                return True
        return False

    def launcher(self, t_ns: int | None) -> list[Explanation]:
        """Return the explanation of what happened before the audited program began; known once it has."""
        if self.run.entry is None or not later(self._processes.entered_ns, t_ns):
            return []
        text = f"it happened before the audited program {self.run.entry} began: the launcher's act"
        return [Explanation("launcher", text, "the entry point that the recorder states")]

    def _upward(self, path: str, process: str | None) -> bool:
        directory, _, name = path.rpartition("/")
        if not name.startswith(".env"):
            return False
        above = directory + "/"
        return any(place != above and place.startswith(above) for place in self._searched.get(process or "", ()))


def level_with(explanations: list[Explanation], otherwise: Level = "suspicious") -> Level:
    """Return a finding's level: ``info`` as soon as something explains it."""
    return "info" if explanations else otherwise


def named_file(arguments: str | None, path: str) -> str | None:
    """Return the string of a call's arguments that names ``path`` or a directory above it, None for no such string.

    Args:
        arguments: as JSON, or the beginning of it; None for none.
        path: absolute path of a file.
    """
    return next((text for text in strings_of(arguments) if _covers(text, path)), None)


def _covers(text: str, path: str) -> bool:
    """Return whether an argument names the path, a directory above it, or its last parts."""
    text = text.removeprefix("file://").rstrip("/")
    if not text:
        return False
    if text.startswith("/"):
        return path == text or (text not in _SYSTEM and path.startswith(text + "/"))
    return len(text) > 3 and "/" not in text[:1] and path.endswith("/" + text.removeprefix("./").removeprefix("~/"))


def _mentions(text: str, host: str) -> bool:
    """Return whether an argument holds the host or address as a whole word, as in a URL."""
    text, host = text.lower(), host.lower()
    if host not in text:
        return False
    return re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)", text) is not None
