"""``mcpdetect schema``: the published JSON Schemas."""

from __future__ import annotations

import click

from mcpdetect.cli.console import write_output
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


def _complete_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from mcpdetect.report.schema import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]


@click.command("schema", short_help="Print a JSON Schema.")
@click.argument("kind", required=False, shell_complete=_complete_kind)
@click.option("--list", "listed", is_flag=True, help="List the kinds.")
def command(kind: str | None, *, listed: bool) -> int:
    """Print the JSON Schema (2020-12) of a document that mcpdetect reads or writes."""
    import json

    from mcpdetect.report.schema import KINDS, schema

    if listed == (kind is not None):
        raise click.UsageError("name one KIND, or ask for --list")
    if kind is None:
        write_output("".join(f"{name}\n" for name in KINDS), None)
    elif kind not in KINDS:
        raise click.BadParameter(f"there is no schema {kind!r}; kinds are {', '.join(KINDS)}", param_hint="KIND")
    else:
        write_output(json.dumps(schema(kind), indent=2, ensure_ascii=False) + "\n", None)
    return EXIT_OK
