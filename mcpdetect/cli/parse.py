"""``mcpdetect parse``: evidence of one run, normalized and written as a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from mcpdetect.cli.console import binary_stdout, require_writable, tell
from mcpdetect.cli.evidence import FILE, Asked, RunInput, evidence_options, explained, runs_of
from mcpdetect.cli.progress import Progress
from mcpdetect.errors import ConfigError, InputError
from mcpdetect.model.text import shown
from mcpdetect.model.trace import TraceSource
from mcpdetect.report.layout import counted
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


@click.command("parse", short_help="Normalize evidence into a trace.json.")
@click.argument("files", nargs=-1, type=FILE, metavar="[FILE]...")
@evidence_options
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    required=True,
    help="The trace to write: .json or .jsonl, compressed when it ends in .gz or .zst; - for stdout.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about what was read.")
def command(
    files: tuple[Path, ...],
    manifest: Path | None,
    output: Path,
    *,
    quiet: bool,
    **evidence: tuple[Path, ...],
) -> int:
    """Read the evidence of one run once and write it as a trace, which check reads in its place.

    FILE is a bundle, or evidence files whose first bytes tell what they are.
    """
    to_stdout = str(output) == "-"
    if not to_stdout:
        require_writable(output)
    given = {name: list(paths) for name, paths in evidence.items()}
    runs = runs_of(Asked(list(files), given, manifest))
    if len(runs) > 1:
        raise click.UsageError("parse makes one trace of one run: name one bundle, or the evidence files of one run")
    run = runs[0]
    try:
        with Progress(run.files, wanted=not quiet):
            written = _to_stdout(run) if to_stdout else _to_file(run, output)
    except (InputError, ConfigError) as error:
        raise explained(error, run.files, given) from error
    if written is not None and not quiet:
        _told(*written, output)
    return EXIT_OK


def _form(name: str) -> Literal["json", "jsonl"]:
    bare = name.removesuffix(".gz").removesuffix(".zst")
    return "jsonl" if bare.endswith((".jsonl", ".ndjson")) else "json"


def _to_file(run: RunInput, output: Path) -> tuple[TraceSource, int]:
    from mcpdetect.ingest.tracefile import write_trace

    source = run.open()
    return source, write_trace(output, source, form=_form(output.name))


def _to_stdout(run: RunInput) -> tuple[TraceSource, int] | None:
    """Write to stdout; None when its reader went away."""
    from mcpdetect.ingest.tracefile import write_trace

    source = run.open()
    with binary_stdout() as stream:
        return source, write_trace(stream, source, form="json")
    return None


def _told(source: TraceSource, count: int, output: Path) -> None:
    """Say on stderr what was read, so that nothing lost passes unseen."""
    tell(f"{shown(str(output))}: {counted(count, 'event')}")
    for item in source.observations():
        counts = ", ".join(f"{shown(name)} {number:,}" for name, number in item.counts.items() if number)
        tell(f"  {item.channel:<8}  {shown(item.source)}  {counts or 'nothing'}")
        for loss in item.losses:
            where = f" (first at {shown(str(loss.where))})" if loss.where else ""
            times = f" ×{loss.count:,}" if loss.count > 1 else ""
            tell(f"    {shown(loss.what)}{times}: {shown(loss.detail, 400)}{where}")
