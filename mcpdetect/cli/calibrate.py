"""``mcpdetect calibrate``: what a sandbox that ran the probe lets each check see."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import click

from mcpdetect.cli.console import style_of, write_output
from mcpdetect.cli.evidence import FILE, Asked, evidence_options, runs_of
from mcpdetect.ingest.evidence import Evidence
from mcpdetect.model.probe_acts import NONCE, Phase, ProbeRun
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


def _nonce(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and NONCE.fullmatch(value) is None:
        raise click.BadParameter("a nonce is 16 lower-case hexadecimal digits")
    return value


@click.command("calibrate", short_help="Say what your sandbox lets each check see, from a run of the probe.")
@click.argument("traces", nargs=-1, type=FILE, metavar="[BUNDLE]")
@evidence_options
@click.option("--before", callback=_nonce, metavar="NONCE", help="Nonce of the first probe, where several ran.")
@click.option("--after", callback=_nonce, metavar="NONCE", help="Nonce of the second probe.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write to this file instead of stdout.")
@click.option("--color/--no-color", default=None, help="Colour the text. Default: on a terminal only.")
def command(
    traces: tuple[Path, ...],
    manifest: Path | None,
    before: str | None,
    after: str | None,
    form: str,
    output: Path | None,
    color: bool | None,
    **evidence: tuple[Path, ...],
) -> int:
    """Say what a sandbox lets each check see, from what it recorded while the probe ran in it.

    Which channels are proved to have watched, what each check could claim from them, and how the network was denied.
    Print the probe with mcpdetect probe. Nonces are found in the evidence, or named; a bundle's manifest declares its
    own.
    """
    runs = runs_of(Asked(list(traces), {name: list(files) for name, files in evidence.items()}, manifest))
    if len(runs) != 1:
        raise click.UsageError("calibrate looks at one run at a time")
    named: list[tuple[Phase, str | None]] = [("before", before), ("after", after)]
    from mcpdetect.score.calibration import calibrate

    def opened() -> Evidence:
        source = runs[0].open()
        if not isinstance(source, Evidence):
            raise click.UsageError("calibrate needs the raw evidence: a trace has the probes taken out already")
        return source

    found = calibrate(opened, [ProbeRun(phase, nonce, ()) for phase, nonce in named if nonce is not None])
    if form == "json":
        document = json.dumps(dataclasses.asdict(found), indent=1, ensure_ascii=True) + "\n"
    else:
        from mcpdetect.report.calibration_report import calibration_text

        document = calibration_text(found, style_of(None if output else sys.stdout, color))
    write_output(document, output)
    return EXIT_OK
