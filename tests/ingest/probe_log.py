"""A log in which probes run, built event by event."""

from collections.abc import Iterable

from mcpdetect.ingest.probes import ProbeWatch
from mcpdetect.model.event import Event, FileOpen, ProcessStart
from mcpdetect.model.place import Where
from mcpdetect.model.probe_acts import ProbeActs, ProbeRun

__all__ = ["AFTER", "BEFORE", "RUNS", "Log", "lines", "passed"]

BEFORE = ProbeActs("before", "0123456789abcdef")
AFTER = ProbeActs("after", "fedcba9876543210")
RUNS = [ProbeRun("before", BEFORE.nonce, ("syscalls",)), ProbeRun("after", AFTER.nonce, ("syscalls",))]


class Log:
    """Builds events of one trace, a line each."""

    def __init__(self) -> None:
        self.line = 0

    def at(self) -> Where:
        self.line += 1
        return Where("t.log", self.line)

    def execed(self, process: str, parent: str | None, *argv: str) -> ProcessStart:
        return ProcessStart(
            self.at(), self.line, "execve", 0, process=process, parent=parent, executable=argv[0], argv=list(argv)
        )

    def forked(self, process: str, parent: str) -> ProcessStart:
        return ProcessStart(self.at(), self.line, "clone", 9, how="clone", process=process, parent=parent)

    def opened(self, process: str, path: str) -> FileOpen:
        return FileOpen(self.at(), self.line, "openat", 3, process=process, path=path)


def passed(events: Iterable[Event], entry: str | None = "/bin/target", *, only: bool = False) -> list[Event]:
    return list(ProbeWatch(RUNS, entry, only=only).events(iter(events), None))


def lines(events: Iterable[Event]) -> list[int]:
    return [event.where.at for event in events]
