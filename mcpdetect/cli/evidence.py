"""From the arguments of a command to the runs that it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from mcpdetect.cli.progress import BUNDLE_FILES
from mcpdetect.errors import InputError, McpDetectError, UnknownFormat
from mcpdetect.ingest.sniff import FLAGS, LOOKS, sniff
from mcpdetect.model.text import shown
from mcpdetect.model.trace import TraceSource

__all__ = ["CHANNEL_OPTIONS", "Asked", "RunInput", "evidence_options", "explained", "runs_of"]

F = TypeVar("F", bound=Callable[..., Any])

CHANNEL_OPTIONS: tuple[tuple[str, str], ...] = (
    ("strace", "strace log, or one file of a strace -ff set"),
    ("pcap", "packet capture, pcap or pcapng"),
    ("dns", "query log of a DNS server"),
    ("firewall", "kernel log with firewall lines, or an nftables listing"),
    ("mcp", "MCP transcript, one JSON message a line"),
)
"""The options that name evidence, and what they take."""

FILE = click.Path(path_type=Path)
"""A file name; whether it can be read is for the reader of its format to say, with its cause and what to try."""


@dataclass(slots=True)
class Asked:
    """What the command line names: whole traces, or the evidence files of one run.

    Attributes:
        traces: bundles and trace files, and evidence files given without an option.
        evidence: option name -> files.
        manifest: the manifest that declares the evidence.
    """

    traces: list[Path]
    evidence: dict[str, list[Path]] = field(default_factory=dict)
    manifest: Path | None = None


@dataclass(slots=True)
class RunInput:
    """One run to be examined.

    Attributes:
        name: what the user called it.
        base: the folder before the names of its evidence, ``""`` when they lead there as they are.
        files: the files that make it, for progress and hints.
        open: opens it.
    """

    name: str
    base: str
    files: list[Path]
    open: Callable[[], TraceSource]


def evidence_options(command: F) -> F:
    """Add the options that name evidence files to a command."""
    command = click.option(
        "--manifest", type=FILE, metavar="FILE", help="Manifest that declares how the evidence was recorded."
    )(command)
    for name, what in reversed(CHANNEL_OPTIONS):
        command = click.option(
            f"--{name}", multiple=True, type=FILE, metavar="FILE", help=f"{what[0].upper()}{what[1:]}."
        )(command)
    return command


def runs_of(asked: Asked) -> list[RunInput]:
    """Return the runs that the command line names, nothing opened yet.

    Evidence files given as TRACE are told from traces by their first bytes and joined into one run with those given by
    option; whole traces are runs of their own. The two do not mix, because nobody could say what belongs to what.

    Raises:
        click.UsageError: nothing was named, or traces and evidence together.
    """
    evidence = {name: list(files) for name, files in asked.evidence.items() if files}
    whole: list[Path] = []
    for path in asked.traces:
        kind = sniff(path)
        option = FLAGS[kind] if kind in FLAGS and kind != "manifest" else None
        if option is not None:
            evidence.setdefault(option.removeprefix("--"), []).append(path)
        else:
            whole.append(path)
    files = [path for paths in evidence.values() for path in paths]
    if whole and files:
        raise click.UsageError(
            f"{shown(str(whole[0]))} is a run of its own and {shown(str(files[0]))} is evidence of one: "
            "give whole traces, or the evidence files of one run, not both"
        )
    if asked.manifest is not None and not files:
        raise click.UsageError(
            "--manifest declares evidence files given with --strace, --pcap and so on; a bundle brings its own"
        )
    if whole:
        return [_trace(path) for path in whole]
    if not files:
        raise click.UsageError(
            "nothing to examine: name a TRACE, or evidence with --strace, --pcap, --dns, --firewall or --mcp"
        )
    return [_joined(evidence, asked.manifest)]


def _trace(path: Path) -> RunInput:
    def opened() -> TraceSource:
        from mcpdetect import api

        return api.open_trace(path)

    folder = path if path.is_dir() else path.parent if path.name in BUNDLE_FILES else None
    base = "" if folder is None or str(folder) == "." else f"{folder}/"
    return RunInput(str(path), base, [path], opened)


def _joined(evidence: dict[str, list[Path]], manifest: Path | None) -> RunInput:
    files = [path for paths in evidence.values() for path in paths]
    name = ", ".join(path.name for path in files)
    # Whatever options there are, the function has a parameter of each name.
    given: dict[str, Any] = dict(evidence)

    def opened() -> TraceSource:
        from mcpdetect import api

        return api.open_evidence_files(manifest=manifest, name=name, **given)

    return RunInput(name, "", files, opened)


def explained(error: McpDetectError, files: Sequence[Path], evidence: dict[str, list[Path]]) -> McpDetectError:
    """Return ``error`` with what its file really looks like, where that is something else than was said.

    Args:
        error: what reading raised.
        files: the files named without an option.
        evidence: option name -> files, as given.
    """
    if not isinstance(error, InputError) or error.file is None:
        return error
    option = next((name for name, paths in evidence.items() if error.file in map(str, paths)), None)
    if option is None and error.file not in map(str, files):
        return error
    kind = sniff(Path(error.file))
    if kind is None or FLAGS.get(kind) == f"--{option}":
        return error
    said = f", not what --{option} takes" if option else ""
    if kind in FLAGS:
        hint = f"give it with {FLAGS[kind]}"
    elif kind in ("trace", "meta"):
        hint = "give it as TRACE, without an option"
    elif kind == "result":
        hint = "give the trace or the evidence it was made from"
    else:
        hint = "leave it out: this version does not read that, and what it could show is then not observable"
    return UnknownFormat(
        f"looks like {LOOKS[kind]}{said}",
        file=error.file,
        place=error.place,
        value=error.value,
        cause="two options were swapped, or a file was misnamed" if option else None,
        hint=hint,
    )
