"""secrets.canary-read: content of a planted secret reached a process, by any road."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.explain import Explanations, level_with
from mcpdetect.correlate.processes import Processes
from mcpdetect.model.event import Event, FileChange, FileOpen, FileRead
from mcpdetect.model.inputs import Canary
from mcpdetect.model.place import Where
from mcpdetect.model.result import Finding

__all__ = ["SecretsCanaryRead"]

_READS = ("file.open", "file.read", "file.change")
MAX_EARLY = 1_000
"""Most findings kept back until the audited program begins; whatever comes then counts as the program's own."""
MAX_ALIASES = 10_000
"""Most other names of planted files that are followed."""


class SecretsCanaryRead(Detector):
    """The content of a planted secret was read."""

    spec: ClassVar[Spec] = Spec(
        id="secrets.canary-read",
        version=1,
        claim="no planted secret was opened for reading, or read",
        kinds=("file.open", "file.read", "file.change"),
        facts=(Processes, Explanations),
        requires=("secrets",),
        # file.change: a link or a rename gives a planted file a name that nobody would look for
        needs=(AnyOf("file opens, reads and renames", Need("syscalls", _READS)),),
        blind_to=(
            "planted environment variables: reading one is no system call",
            "a process that the tracer did not follow, and helpers that read on behalf of the program",
            "reads through io_uring, raw devices, or a mount made outside the trace",
            "a secret that was not planted",
        ),
        technique="T1552.001",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        canaries = context.secrets.canaries if context.secrets else []
        self._paths: dict[str, Canary] = {canary.path: canary for canary in canaries if canary.path}
        self._values: dict[bytes, Canary] = {canary.value.encode(): canary for canary in canaries if canary.value}
        # longest first, so that a value that begins with another one is found as itself
        ordered = sorted(self._values, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(re.escape(value) for value in ordered)) if ordered else None
        self._aliases: dict[str, str] = {}
        self._opened: dict[tuple[str, str | None], FileOpen] = {}
        self._read: set[str] = set()
        self._early: list[Finding] = []
        self._doubtful: FileOpen | None = None
        self._unknown: FileRead | None = None
        if not self._paths and not self._values:
            context.limit("not-configured", "the secrets name no file and no value that could be looked for")

    def on_event(self, event: Event) -> Iterator[Finding]:
        """Follow planted files through opens, other names and reads."""
        if isinstance(event, FileRead):
            yield from self._on_read(event)
        elif isinstance(event, FileOpen):
            self._on_open(event)
        elif isinstance(event, FileChange) and event.ok and event.operation in ("link", "rename", "symlink"):
            self._on_other_name(event)

    def _on_other_name(self, event: FileChange) -> None:
        """link(secret, other) and rename(secret, other): the other name leads to the same content."""
        if event.operation == "rename":
            source, name = event.path, event.target
        else:
            source, name = event.target, event.path
        if source is None or name is None:
            return
        for path in self._paths:
            # mv ~/.ssh /tmp/x: the directory above is enough
            for known in (path, *(alias for alias, meant in self._aliases.items() if meant == path)):
                if known == source or known.startswith(source.rstrip("/") + "/"):
                    self._add_alias(name + known[len(source) :], path)
                    break

    def _add_alias(self, name: str, path: str) -> None:
        if len(self._aliases) < MAX_ALIASES:
            self._aliases[name] = path
        else:
            self.context.limit("overflow", "planted files got more other names than can be kept")

    def _planted(self, path: str | None, aliases: list[str] | None) -> Canary | None:
        for name in (path, *(aliases or ())):
            if name is not None:
                found = self._paths.get(self._aliases.get(name, name))
                if found is not None:
                    return found
        return None

    def _on_open(self, event: FileOpen) -> None:
        planted = self._planted(event.path, event.aliases)
        if planted is not None and planted.path is not None:
            if event.fd is not None and event.access in ("read", "readwrite", "unknown"):
                self._opened.setdefault((planted.path, event.process), event)
        elif not event.certain and event.fd is not None and self._could_be(event.path):
            self._doubtful = self._doubtful or event

    def _could_be(self, path: str) -> bool:
        """Return whether an unresolved path ends like a planted one: it may be that file."""
        last = path.rpartition("/")[2]
        return any(planted.rpartition("/")[2] == last for planted in self._paths)

    def _on_read(self, event: FileRead) -> Iterator[Finding]:
        if event.error is not None:
            return
        planted = self._planted(event.path, event.aliases)
        got = event.mapped or event.size is None or event.size > 0
        if planted is not None and got:
            yield from self._now_or_later(self._finding(event, planted, by_value=False))
            return
        met = self._pattern.search(event.data) if self._pattern is not None and event.data else None
        if met is not None:
            yield from self._now_or_later(self._finding(event, self._values[met[0]], by_value=True))
        elif event.path is None and got and event.inherited and event.fd != 0:
            # descriptor 0 is the transcript of a stdio server, which whoever started it laid there
            self._unknown = self._unknown or event

    def _now_or_later(self, finding: Finding) -> Iterator[Finding]:
        """Yield a finding, or keep it until it is known whether the audited program had begun."""
        if self.context.fact(Processes).entered or len(self._early) >= MAX_EARLY:
            yield finding
        else:
            self._early.append(finding)

    def _finding(self, event: FileRead, planted: Canary, *, by_value: bool) -> Finding:
        processes = self.context.fact(Processes)
        program = processes.program(event.process)
        path = planted.path or f"the environment variable {planted.variable}"
        opened = self._opened.get((path, event.process))
        if opened is None:
            opened = next((item for (name, _), item in self._opened.items() if name == path), None)
        written = opened.written if opened is not None and opened.process == event.process else None
        asked = planted.path or event.path or ""
        explanations = self.context.fact(Explanations).of_file(
            event.path if planted.path is None and event.path else asked, event.process, event.t_ns, written
        )
        self._read.add(path)
        how = _road(event, path)
        size = "its content was mapped" if event.mapped else f"{event.size} bytes" if event.size else "content"
        evidence: list[Event | Where] = [event] if opened is None else [opened, event]
        if by_value and planted.path is not None:
            how = f" under the name {event.path}" if event.path else " through a descriptor of unknown origin"
        finding = self.finding(
            *evidence,
            title=f"{path} ({planted.kind}) was read{how}: {size}",
            reason=(
                "The file was planted for this run and holds a canary; nothing that the server was asked to do needs "
                "it."
                if planted.path is not None
                else f"The planted value of {planted.variable} came out of {event.path or 'a file'}."
            ),
            identity=f"{planted.kind} {path}",
            level=level_with(explanations),
            explanations=explanations,
            program=program,
            path=path,
            canary=planted.kind,
            seen_as=event.path,
            size=event.size,
            value_seen=self._value_seen(event, planted),
            call=event.call,
        )
        finding.process, finding.t_ns = event.process, event.t_ns
        return finding

    def _value_seen(self, event: FileRead, planted: Canary) -> bool:
        return planted.value is not None and planted.value.encode() in event.data

    def finish(self) -> Iterator[Finding]:
        """Yield what waited, and state what could not be decided."""
        for finding in self._early:
            launcher = self.context.fact(Explanations).launcher(finding.t_ns)
            finding.explanations += launcher
            finding.level = level_with(finding.explanations, finding.level)
            yield finding
        if self._doubtful is not None and not self._read:
            self.context.limit(
                "path-unresolved",
                f"{self._doubtful.path!r} was opened relative to a directory that the evidence does not show; "
                "it may be a planted file",
                where=self._doubtful.where,
            )
        for (path, _), event in self._opened.items():
            if path not in self._read:
                yield self._opened_only(event, self._paths[path])
        if self._unknown is not None and not self._read:
            self.context.limit(
                "descriptor-unknown",
                "a descriptor of unknown origin was read; it may have been a planted file",
                where=self._unknown.where,
            )

    def _opened_only(self, event: FileOpen, planted: Canary) -> Finding:
        """Report an open for reading: where no read is seen, it went by a road that the evidence does not show."""
        path = planted.path or ""
        explanations = self.context.fact(Explanations).of_file(path, event.process, event.t_ns, event.written)
        finding = self.finding(
            event,
            title=f"{path} ({planted.kind}) was opened for reading; no read of it is in the evidence",
            reason="The file was planted for this run; whoever opens it for reading may have its content by any road.",
            identity=f"{planted.kind} {path}",
            level=level_with(explanations),
            explanations=explanations,
            program=self.context.fact(Processes).program(event.process),
            path=path,
            canary=planted.kind,
            seen_as=event.path,
            size=None,
            value_seen=False,
            call=event.call,
        )
        finding.process, finding.t_ns = event.process, event.t_ns
        return finding


def _road(event: FileRead, path: str) -> str:
    """Return how the content was reached, where it was not by its own name."""
    if event.path is not None and event.path != path and event.aliases and path in event.aliases:
        return f" under the name {event.path}"
    if event.to_socket is not None:
        return f" and handed to a socket ({event.call})"
    return f" through {event.call}" if event.call not in ("read", "pread64", "mmap") else ""
