"""``mcpdetect events``: the normalized events of a file, one a line, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from mcpdetect.cli.console import write_lines
from mcpdetect.cli.evidence import FILE, Asked, RunInput, evidence_options, explained, runs_of
from mcpdetect.errors import ConfigError, InputError
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


def _complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from mcpdetect.model.kinds import EVENT_TYPES

    return [kind for kind in EVENT_TYPES if kind.startswith(incomplete)]


@click.command("events", short_help="Show the normalized events of evidence, one a line with its place.")
@click.argument("files", nargs=-1, type=FILE, metavar="[FILE]...")
@evidence_options
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    shell_complete=_complete_kind,
    help="Only events of this kind (file.open) or group (file). Repeatable.",
)
@click.option("--limit", type=click.IntRange(min=0), help="Stop after this many events.")
def command(
    files: tuple[Path, ...],
    manifest: Path | None,
    kinds: tuple[str, ...],
    limit: int | None,
    **evidence: tuple[Path, ...],
) -> int:
    """Show the normalized events of one run: time, place, process, kind, and what happened.

    FILE is an evidence file of any kind, a trace, or a bundle; several evidence files are merged by time. What could
    not be understood is shown as unparsed, each with its reason.
    """
    wanted = _wanted(kinds)
    given = {name: list(paths) for name, paths in evidence.items()}
    runs = runs_of(Asked(list(files), given, manifest))
    if len(runs) > 1:
        raise click.UsageError("events shows one run at a time: name one trace, or the evidence files of one run")
    run = runs[0]
    try:
        write_lines(islice(_lines(run, wanted), limit))
    except (InputError, ConfigError) as error:
        raise explained(error, run.files, given) from error
    return EXIT_OK


def _lines(run: RunInput, wanted: frozenset[str] | None) -> Iterator[str]:
    from mcpdetect.report.event_line import event_line

    for event in run.open().events(wanted):
        yield event_line(event, run.base)


def _wanted(kinds: tuple[str, ...]) -> frozenset[str] | None:
    from mcpdetect.model.kinds import EVENT_TYPES

    if not kinds:
        return None
    chosen: set[str] = set()
    for name in kinds:
        matching = {kind for kind in EVENT_TYPES if kind == name or kind.startswith(f"{name}.")}
        if not matching:
            import difflib

            near = difflib.get_close_matches(name, EVENT_TYPES, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"kinds are {', '.join(EVENT_TYPES)}"
            raise click.BadParameter(f"there is no event kind {name!r}; {hint}", param_hint="--kind")
        chosen |= matching
    return frozenset(chosen)
