"""``mcpdetect recheck``: withdraw from old reports what no longer stands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcpdetect.cli.console import fail, style_of, write_output
from mcpdetect.cli.evidence import FILE
from mcpdetect.errors import ConfigError, InputError, McpDetectError
from mcpdetect.report.outcome import EXIT_FINDING, EXIT_OK, EXIT_UNREADABLE

if TYPE_CHECKING:
    from mcpdetect.model.result import Result
    from mcpdetect.score.recheck import Recheck

__all__ = ["command"]

_EXAMPLES = (
    "\b\nExamples:\n  mcpdetect recheck report.json\n  mcpdetect recheck report.json --evidence bundle/ --format json"
)


@click.command("recheck", short_help="Withdraw from old reports what no longer stands.", epilog=_EXAMPLES)
@click.argument("reports", nargs=-1, required=True, type=FILE, metavar="REPORT...")
@click.option(
    "--evidence",
    multiple=True,
    type=FILE,
    metavar="TRACE",
    help="The evidence of a run in the reports: the installed checks look at it again. Repeatable.",
)
@click.option("--errata", type=FILE, metavar="FILE", help="Errata to judge by, instead of those of this version.")
@click.option("--secrets", type=FILE, metavar="FILE", help="YAML that names planted secrets, for --evidence.")
@click.option("--expect", type=FILE, metavar="FILE", help="YAML of what the server documents, for --evidence.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--color/--no-color", default=None, help="Colour the text. Default: on a terminal only.")
def command(
    reports: tuple[Path, ...],
    evidence: tuple[Path, ...],
    errata: Path | None,
    secrets: Path | None,
    expect: Path | None,
    form: str,
    color: bool | None,
) -> int:
    """Read JSON reports of mcpdetect check and say which of their verdicts no longer stand.

    A verdict falls by the errata of the check and version that gave it, and, where the evidence is at hand, when the
    installed version comes to another one. A line that fell is never claimed anew.

    Exit codes: 0 every verdict stands; 1 one was withdrawn; 4 a report, the errata or evidence could not be read.
    """
    from mcpdetect.engine.discovery import detectors
    from mcpdetect.labels.errata import load_errata, shipped_errata
    from mcpdetect.report.claim_report import recheck_json, recheck_text
    from mcpdetect.score.recheck import read_report, recheck

    known = load_errata(errata) if errata is not None else shipped_errata()
    installed = list(detectors())
    again = _again(evidence, secrets, expect)
    done: list[Recheck] = []
    unreadable = False
    for path in reports:
        try:
            done.append(recheck(str(path), read_report(path), known, installed, again))
        except InputError as error:
            fail(error)
            unreadable = True
    if evidence:
        _require_used(again, done)
    document = recheck_json(done) if form == "json" else recheck_text(done, style_of(sys.stdout, color))
    write_output(document, None)
    if unreadable:
        return EXIT_UNREADABLE
    return EXIT_FINDING if any(one.withdrawn for one in done) else EXIT_OK


def _again(evidence: tuple[Path, ...], secrets: Path | None, expect: Path | None) -> dict[str, Result]:
    """Run the installed checks over the evidence at hand; by run id."""
    from mcpdetect import api
    from mcpdetect.data.inputs import load_expectations

    found: dict[str, Result] = {}
    for path in evidence:
        expectations = load_expectations(expect) if expect is not None else None
        result = api.check(path, secrets=secrets, expectations=expectations)
        if result.run.id in found:
            raise ConfigError("two pieces of evidence are of one run", file=str(path), value=result.run.id)
        found[result.run.id] = result
    return found


def _require_used(again: dict[str, Result], done: list[Recheck]) -> None:
    told = {line.run for one in done for line in one.lines}
    for run in again:
        if run not in told:
            raise McpDetectError(
                "no report speaks of the run that this evidence is of",
                value=run,
                hint="give the report that was made from it, or leave the evidence out",
            )
