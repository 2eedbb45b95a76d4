"""``mcpdetect baseline``: the description of a server that its runs show, for a person to approve."""

from __future__ import annotations

from pathlib import Path

import click

from mcpdetect.cli.console import require_writable, tell, write_output
from mcpdetect.cli.evidence import FILE, Asked, evidence_options, explained, runs_of
from mcpdetect.cli.progress import Progress
from mcpdetect.errors import ConfigError, InputError
from mcpdetect.report.layout import counted
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


@click.command("baseline", short_help="Describe a server by its runs, to be approved and compared with.")
@click.argument("traces", nargs=-1, type=FILE, metavar="[TRACE]...")
@evidence_options
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the description to this file instead of stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about what was read.")
def command(
    traces: tuple[Path, ...],
    manifest: Path | None,
    output: Path | None,
    *,
    quiet: bool,
    **evidence: tuple[Path, ...],
) -> int:
    """Write what one or several runs of a server show it to be: what it lists, contacts, starts and changes.

    Read it before you approve it: whatever is in it will not be told as new by mcpdetect check --baseline FILE. Hosts
    may be replaced by patterns such as *.example.com, paths by patterns with *.
    """
    require_writable(output)
    given = {name: list(files) for name, files in evidence.items()}
    runs = runs_of(Asked(list(traces), given, manifest))
    from mcpdetect import api
    from mcpdetect.data.baseline import baseline_text

    files = [path for run in runs for path in run.files]
    try:
        with Progress(files, wanted=not quiet):
            found = api.describe([run.open() for run in runs])
    except (InputError, ConfigError) as error:
        raise explained(error, files, given) from error
    write_output(baseline_text(found), output)
    if not quiet and output is not None:
        parts = (
            counted(len(found.definitions), "definition"),
            counted(len(found.hosts), "host"),
            counted(len(found.children), "program"),
            counted(len(found.files), "path"),
        )
        tell(f"{output}: {', '.join(parts)}; read it before you approve it")
    return EXIT_OK
