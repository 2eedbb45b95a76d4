"""What a log could show, told once it has been read."""

from __future__ import annotations

from dataclasses import dataclass

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.strace.calls import DERIVED, SHOWN, Filter
from mcpdetect.ingest.strace.core import Core
from mcpdetect.ingest.strace.header import Timekeeper
from mcpdetect.model.kinds import CALLS
from mcpdetect.model.observation import Observation
from mcpdetect.model.vocabulary import Proof

__all__ = ["Totals", "describe"]

# An unfiltered trace of this many lines without any of these calls does not exist: every program maps memory.
_MANY_LINES = 100
_EVERYWHERE = frozenset({"mmap", "mmap2", "brk", "mprotect", "munmap", "close", "read"})
# Calls without which a kind cannot count as watched in a log that is known to be filtered.
_USUAL: dict[str, frozenset[str]] = {
    "file.read": frozenset({"read", "mmap"}),
    "file.change": frozenset({"write"}),
    "socket.send": frozenset({"write", "sendto"}),
    "socket.receive": frozenset({"read", "recvfrom"}),
    "socket.state": frozenset({"close"}),
    "process.start": frozenset({"execve"}),
}


@dataclass(slots=True)
class Totals:
    """What was read.

    Attributes:
        lines, size: lines and bytes.
        cut_lines: lines too long to be read whole.
        damaged: why the stream broke, ``""`` when it did not.
        attached: strace was attached to a running process.
    """

    lines: int
    size: int
    cut_lines: int = 0
    damaged: str = ""
    attached: bool = False


def describe(
    observation: Observation, core: Core, times: Timekeeper, totals: Totals, declared: Declared | None
) -> None:
    """Fill ``observation`` at the end of a log."""
    account = core.account
    promised = declared is not None and declared.complete
    ended = core.finish(complete=promised)
    if totals.damaged:
        account.add("file-truncated", totals.damaged)
    if totals.cut_lines:
        account.add("line-cut", "lines longer than can be read were cut", None, (), count=totals.cut_lines)
    observation.watches = _watches(core, totals.lines, declared)
    observation.clock = times.clock
    observation.begin_ns, observation.end_ns = times.begin, times.end
    if times.clock == "none":
        account.add("no-clock", "the log has no times", None, (), note=True)
    if declared is not None:
        observation.proof = "declared"
        observation.tool = declared.tool
        observation.options = list(declared.options or [])
        observation.scope = declared.scope
        observation.begin_ns = declared.begin_ns if declared.begin_ns is not None else observation.begin_ns
        observation.end_ns = declared.end_ns if declared.end_ns is not None else observation.end_ns
    truncated = account.count("file-truncated") > 0
    observation.complete = promised or (ended and not truncated and not totals.attached)
    observation.counts = {
        "lines": totals.lines,
        "bytes": totals.size,
        "unparsed": core.unparsed,
        "orphan-resumed": core.orphans,
        "unfinished": account.count("unfinished"),
        "exits": core.exits,
    }
    observation.losses = [*(declared.losses if declared is not None else ()), *account.losses()]
    if core.recorder.stdio is not None:
        core.recorder.stdio.finish(observation)


def _watches(core: Core, lines: int, declared: Declared | None) -> dict[str, Proof]:
    account = core.account
    names = core.names
    watches: dict[str, Proof] = {}
    options = declared.options if declared is not None else None
    chosen = Filter(options) if options is not None else None
    if chosen is not None and not chosen.unknown:
        for kind in SHOWN:
            if not chosen.covers(kind):
                continue
            watches[kind] = "declared"
            missing = chosen.missing(kind)
            if missing:
                account.add("filtered", f"{kind}: not traced: {', '.join(missing)}", None, (kind,))
        if chosen.partial:
            account.add("filtered", f"strace was told to leave lines out: {' '.join(chosen.partial)}", None, ())
    else:
        for kind in CALLS:
            if names & CALLS[kind]:
                watches[kind] = "inferred"
        if core.exits:
            watches["process.exit"] = "inferred"
        if lines >= _MANY_LINES and not names & _EVERYWHERE:
            for kind in watches:
                missing = sorted(_USUAL.get(kind, frozenset()) - names)
                if missing:
                    account.add(
                        "filtered",
                        f"{kind}: the log looks filtered, and has no {', '.join(missing)}",
                        None,
                        (kind,),
                    )
    for kind, carriers in DERIVED.items():
        proofs = [watches.get(carrier) for carrier in carriers]
        if all(proofs):
            watches[kind] = "declared" if all(proof == "declared" for proof in proofs) else "inferred"
    return watches
