"""``mcpdetect detectors``: what each check needs and is blind to."""

from __future__ import annotations

import sys

import click

from mcpdetect.cli.console import style_of, write_output
from mcpdetect.errors import SpecError
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


def _complete_id(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from mcpdetect.engine.discovery import detectors

    return [name for name in detectors() if name.startswith(incomplete)]


@click.command("detectors", short_help="List the checks, or show what one needs and is blind to.")
@click.argument("check", required=False, metavar="[ID]", shell_complete=_complete_id)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--color/--no-color", default=None, help="Colour the text. Default: on a terminal only.")
def command(check: str | None, form: str, color: bool | None) -> int:
    """List the installed checks; with an ID (or a category), show what each needs and what it cannot see."""
    from mcpdetect.engine.discovery import detectors, select
    from mcpdetect.report.detector_pages import detector_list, detector_page, detectors_json

    found = detectors()
    if check is not None:
        try:
            found = select([check])
        except SpecError as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise click.BadParameter(f"{error.problem}{hint}", param_hint="ID") from error
    style = style_of(sys.stdout, color)
    if form == "json":
        write_output(detectors_json(found), None)
    elif check is None:
        write_output(detector_list(found, style), None)
    else:
        write_output("\n".join(detector_page(item, style) for item in found.values()), None)
    return EXIT_OK
