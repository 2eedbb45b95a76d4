"""``mcpdetect new``: the first files of a check."""

from __future__ import annotations

from pathlib import Path

import click

from mcpdetect.cli.console import tell
from mcpdetect.cli.evidence import FILE
from mcpdetect.errors import ConfigError
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


@click.command("new", short_help="Write the first files of a new check: detector, control, tests.")
@click.argument("check", metavar="ID")
@click.option("--into", type=FILE, default=Path(), metavar="DIR", help="The checkout. Default: the current folder.")
def command(check: str, into: Path) -> int:
    """Write a small check that works, with a control that fires and one that stays silent, to be replaced.

    ID is category.behaviour. Nothing that exists is overwritten. docs/new-check.md leads through the steps.
    """
    from mcpdetect.report.scaffold import next_steps, scaffold

    made = scaffold(check)
    if not (into / "mcpdetect" / "detectors").is_dir() or not (into / "controls" / "planted").is_dir():
        raise ConfigError(
            "is no checkout of mcpdetect",
            file=str(into.absolute()),
            cause="mcpdetect/detectors or controls/planted is missing there",
            hint="run it at the top of a clone, or name that with --into; own packages: docs/python-api.md",
        )
    there = [into / path for path in made if (into / path).exists()]
    if there:
        raise ConfigError("exists already", file=str(there[0]), hint="choose another id, or remove what is there first")
    for path, text in made.items():
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_text(text, "utf-8")
        click.echo(str(into / path))
    tell("next:")
    for step in next_steps(check):
        tell(f"  {step}")
    return EXIT_OK
