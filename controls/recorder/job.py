"""What one recording is asked to do, and what it brought home: plain values that cross into a guest as JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpdetect.model.probe_acts import Phase
from mcpdetect.model.vocabulary import Channel

__all__ = ["Captured", "Job"]


@dataclass(slots=True)
class Job:
    """One recording.

    Attributes:
        case: its name in errors.
        argv: the target, its program by absolute path.
        tag: the tag in every canary.
        options: strace's options.
        denial, ipv6, dns, names, capture, counters: the cell.
        keylog: the target is asked to keep the keys of its TLS connections.
        log: a denying firewall logs the packets that it denies.
        hosts: lines of ``/etc/hosts`` besides localhost.
        resolver: lines of ``/etc/resolv.conf`` besides the cell's own name server.
        folder: working directory.
        mcp: speak MCP with it.
        thorough: every tool twice, prompts, resources, a wrong call; and a session that fails is a note, no error.
        environment: variables besides the usual ones.
        seconds: how long it may take.
        url: where it speaks MCP over HTTP, None for standard input and output.
        binaries: small programs that belong to no package are copied into the bundle.
        clock: how far the target's clock is shifted.
        calls: calls of tools to make instead of generated ones: tool, arguments, pause.
        nonces: of its probes; None runs none.
        tools: programs whose versions are wanted.
    """

    case: str
    argv: list[str]
    tag: str
    options: list[str]
    folder: str
    denial: str | None = None
    ipv6: bool = True
    dns: str = "answer"
    names: dict[str, Any] = field(default_factory=dict)
    keylog: bool = False
    log: bool = False
    capture: bool = True
    counters: bool = True
    hosts: list[str] = field(default_factory=list)
    resolver: list[str] = field(default_factory=list)
    mcp: bool = False
    thorough: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    seconds: float = 20.0
    url: str | None = None
    binaries: bool = False
    clock: str | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    nonces: dict[Phase, str] | None = None
    tools: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def of(cls, text: str) -> Job:
        """Return the job that ``text`` made the JSON of."""
        return cls(**json.loads(text))


@dataclass(slots=True)
class Captured:
    """What a recording brought home beside its files.

    Attributes:
        opened_ns, closed_ns: when the watchers began and ended.
        started_ns, ended_ns: when the target did.
        exit: its exit status, None when it had to be stopped.
        kernel, machine: where it ran.
        versions: program -> name and version.
        reached: probes that were run, with the channels that must show them.
        notes: what a reader of the bundle should know.
        programs: the programs that ran, as ``recorder.programs.Program``.
        positions: path of a planted file -> where its canary begins.
        session: the steps of the MCP session: name, status, detail.
        clocks: the machine's clocks when the watchers began and when they ended, as ``ManifestClock``.
    """

    opened_ns: int
    started_ns: int
    ended_ns: int
    closed_ns: int
    exit: int | None
    kernel: str
    machine: str
    versions: dict[str, str]
    reached: dict[Phase, list[Channel]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    programs: list[dict[str, Any]] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    session: list[dict[str, str]] = field(default_factory=list)
    clocks: list[dict[str, Any]] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write it beside the files of the recording."""
        (folder / "captured.json").write_text(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> Captured:
        """Return what ``save`` wrote."""
        return cls(**json.loads((folder / "captured.json").read_text()))
