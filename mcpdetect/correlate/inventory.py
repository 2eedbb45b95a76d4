"""What a run shows a server to be: what it lists, whom it contacts, what it starts, what it changes."""

from __future__ import annotations

import re
from typing import ClassVar

from mcpdetect.contract import Fact
from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.hosts import host_and_port, is_local_name
from mcpdetect.correlate.names import Names
from mcpdetect.correlate.processes import Processes
from mcpdetect.model.addresses import scope_of
from mcpdetect.model.event import Event, FileChange, ProcessStart
from mcpdetect.model.mcp import McpTool
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

__all__ = ["MAX_ITEMS", "Inventory", "general_path"]

MAX_ITEMS = 20_000
"""Most paths, programs and definitions that are kept."""

# /tmp/x   /dev/null   /proc/self/...: gone with the run, or no file
_PASSING = ("/tmp/", "/var/tmp/", "/dev/", "/proc/", "/run/", "/sys/")  # noqa: S108
# config.json.36.1796039166281   207fe352-509d-49fe   2026-11-30T12_12_50_439Z
_VARIES = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{4,27}|(?<![0-9A-Za-z])[0-9a-f]{16,}|\d[\d_:.TZ-]{3,}\d|\d{3,}")


def general_path(path: str) -> str:
    """Return a path with numbers, times and identifiers that change from run to run replaced by ``*``."""
    return _VARIES.sub("*", path)


class Inventory(Fact):
    """Gathers the description of a server while its run is read; complete once the run is."""

    kinds: ClassVar[tuple[str, ...]] = ("mcp.tool", "file.change", "process.start")
    uses: ClassVar[tuple[type[Fact], ...]] = (Processes, Names, Contacts)

    def __init__(self, run: Run, *uses: Fact) -> None:
        super().__init__(run, *uses)
        self._processes, self._names, self._contacts = uses
        self.definitions: dict[tuple[str, str], McpTool] = {}
        self.files: dict[str, Where] = {}
        self.children: dict[str, Where] = {}
        self.overflow = 0

    def on_event(self, event: Event) -> None:
        """Note a definition, a change of a file or a program."""
        if isinstance(event, McpTool):
            key = (event.part, event.name)
            if key in self.definitions or len(self.definitions) < MAX_ITEMS:
                self.definitions[key] = event
            else:
                self.overflow += 1
        elif isinstance(event, FileChange):
            path = event.path or ""
            if event.ok and path.startswith("/") and event.fd not in (0, 1, 2) and not path.startswith(_PASSING):
                self._note(self.files, general_path(path), event.where)
        elif isinstance(event, ProcessStart) and event.how == "exec" and event.ok and event.executable:
            # What begins the audited program, and what came before it, is no child of the server.
            own = isinstance(self._processes, Processes) and self._processes.entered
            if own and event.executable != self.run.entry:
                self._note(self.children, event.executable, event.where)

    def _note(self, known: dict[str, Where], name: str, where: Where) -> None:
        if name in known:
            return
        if len(known) < MAX_ITEMS:
            known[name] = where
        else:
            self.overflow += 1

    def hosts(self) -> dict[str, Where]:
        """Return whom the run contacted or asked for, by name where a name is known, with the first place of each."""
        found: dict[str, Where] = {}
        names, contacts = self._names, self._contacts
        if not isinstance(names, Names) or not isinstance(contacts, Contacts):
            return found
        for target in contacts.targets():
            if scope_of(target.address) not in ("public", "private", "metadata"):
                continue
            if target.port == 53 and target.address in self.run.resolvers:
                continue
            places = [place for attempt in target.attempts for place in attempt.where[:1]]
            places += [event.where for event in (*target.flows, *target.packets)]
            if places:
                known = [name.name for name in names.names_of(target.address, target.first_ns, claimed=True)]
                for host in dict.fromkeys(known) or [target.address]:
                    found.setdefault(host, places[0])
        for lookup in names.lookups.values():
            if lookup.name and not is_local_name(lookup.name) and lookup.where:
                found.setdefault(lookup.name, lookup.where[0])
        for proxied in contacts.proxied:
            host, _ = host_and_port(proxied.host)
            if host and proxied.where:
                found.setdefault(host.rstrip("."), proxied.where[0])
        return found
