"""``mcpdetect documented``: the hosts that a server's own papers name, as an expectations file to be read."""

from __future__ import annotations

from pathlib import Path

import click

from mcpdetect.cli.console import require_writable, tell, write_output
from mcpdetect.cli.evidence import FILE
from mcpdetect.report.layout import counted
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


@click.command("documented", short_help="List the hosts that a README, server.json or package metadata names.")
@click.argument("papers", nargs=-1, type=FILE, required=True, metavar="FILE...")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the list to this file instead of stdout.")
def command(papers: tuple[Path, ...], output: Path | None) -> int:
    """Write the hosts that a server's papers name as a file for mcpdetect check --expect, each with its line.

    FILE is a README or another text, a server.json, package.json or pyproject.toml, or the METADATA of a wheel. Pages
    for people (homepage, repository, badges), examples and loopback do not count.
    """
    require_writable(output)
    from mcpdetect.data.documented import documented_text, load_documented

    found = load_documented(papers)
    write_output(documented_text(found), output)
    if output is not None:
        tell(f"{output}: {counted(len(found.hosts), 'host')}; take out what the server does not use")
    return EXIT_OK
