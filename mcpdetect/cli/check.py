"""``mcpdetect check``: run the detectors over evidence and report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from mcpdetect.cli.console import error_text, fail, require_writable, style_of, write_output
from mcpdetect.cli.evidence import FILE, Asked, RunInput, evidence_options, explained, runs_of
from mcpdetect.cli.progress import Progress
from mcpdetect.errors import ConfigError, InputError, SpecError
from mcpdetect.model.inputs import Baseline, Expectations
from mcpdetect.model.result import Result
from mcpdetect.model.vocabulary import LEVELS, PROOFS, Level, Proof
from mcpdetect.report.outcome import Unreadable, outcome

if TYPE_CHECKING:
    from mcpdetect.report.layout import Style
    from mcpdetect.score.publish import Reviews

__all__ = ["command"]


_EXAMPLES = (
    "\b\nExamples:\n"
    "  mcpdetect check bundle/\n"
    "  mcpdetect check --strace trace.log --pcap capture.pcap --dns dnsmasq.log\n"
    "  mcpdetect check trace.log capture.pcap mcp.jsonl --secrets secrets.yaml"
)


def _complete_check(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from mcpdetect.engine.discovery import detectors

    found = detectors()
    names = sorted({*found, *(item.spec.category for item in found.values())})
    return [name for name in names if name.startswith(incomplete)]


@click.command("check", short_help="Run the detectors over a bundle, a trace or evidence files.", epilog=_EXAMPLES)
@click.argument("traces", nargs=-1, type=FILE, metavar="[TRACE]...")
@evidence_options
@click.option("--secrets", type=FILE, metavar="FILE", help="YAML that names planted secrets and canaries.")
@click.option(
    "--expect", type=FILE, metavar="FILE", help="YAML that names the hosts, paths and children the server documents."
)
@click.option(
    "--documented",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="README, server.json, package.json or METADATA: hosts it names are expected too. Repeatable.",
)
@click.option(
    "--data", type=FILE, metavar="DIR", help="Data files of your own, added to the shipped ones of the same names."
)
@click.option("--baseline", type=FILE, metavar="FILE", help="Approved description, as mcpdetect baseline writes it.")
@click.option(
    "--check",
    "checks",
    multiple=True,
    shell_complete=_complete_check,
    metavar="ID",
    help="Run this check, or this category, and require that it is observable. Repeatable; without it all checks run.",
)
@click.option(
    "--assurance",
    type=click.Choice(PROOFS[1:]),
    help="Least proof a not detected may rest on. Default: declared with a manifest, else inferred.",
)
@click.option(
    "--fail-on",
    type=click.Choice(LEVELS),
    default="suspicious",
    show_default=True,
    help="Least level of a finding that makes the exit code 1.",
)
@click.option("--strict", is_flag=True, help="Exit 3 when any check is not observable.")
@click.option("--audit", is_flag=True, help="The TRACEs are runs of one server: join them into one result.")
@click.option("--claims", is_flag=True, help="Write which sentences can be claimed, instead of the report.")
@click.option("--publish", is_flag=True, help="Hold accusing findings back that nobody has reviewed.")
@click.option("--reviews", type=FILE, metavar="PATH", help="Review records, a file or a folder; goes with --publish.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the report to this file instead of stdout.")
@click.option("--color/--no-color", default=None, help="Colour the text report. Default: on a terminal only.")
@click.option("-v", "--verbose", is_flag=True, help="List every finding, place and fact, and what checks are blind to.")
@click.option("-q", "--quiet", is_flag=True, help="Write no report to stdout and no progress; the exit code tells.")
def command(
    traces: tuple[Path, ...],
    manifest: Path | None,
    secrets: Path | None,
    expect: Path | None,
    documented: tuple[Path, ...],
    data: Path | None,
    baseline: Path | None,
    checks: tuple[str, ...],
    assurance: str | None,
    fail_on: str,
    reviews: Path | None,
    form: str,
    output: Path | None,
    color: bool | None,
    *,
    strict: bool,
    audit: bool,
    claims: bool,
    publish: bool,
    verbose: bool,
    quiet: bool,
    **evidence: tuple[Path, ...],
) -> int:
    """Run the detectors over evidence and say what was detected, what was not, and what could not be seen.

    TRACE is a bundle folder, its manifest.json, or a trace written by mcpdetect parse; each is a run of its own.
    Evidence files may be given by option, or as TRACE when their first bytes tell what they are; together they are one
    run.
    """
    require_writable(output)
    given = {name: list(files) for name, files in evidence.items()}
    runs = runs_of(Asked(list(traces), given, manifest))
    if audit and len(runs) < 2:
        raise click.UsageError("--audit joins several runs of one server: name two TRACEs or more")
    if reviews is not None and not publish:
        raise click.UsageError("--reviews goes with --publish")
    if claims and publish:
        raise click.UsageError("--claims writes no findings that --publish could hold back; ask for one of them")
    if data is not None:
        from mcpdetect.data.overlay import own_data

        click.get_current_context().with_resource(own_data(data))
    records = _reviews(reviews)
    required = _required(checks)
    options = _options(required, secrets, expect, baseline, assurance)
    if documented:
        from mcpdetect.data.documented import load_documented, with_documented

        options.expectations = with_documented(options.expectations, load_documented(documented))
    results: list[Result] = []
    bases: list[str] = []
    unreadable: list[Unreadable] = []
    with Progress([path for run in runs for path in run.files], wanted=not quiet) as progress:
        if audit:
            results.append(options.join(runs))
            bases = [run.base for run in runs]
        else:
            for run in runs:
                try:
                    results.append(options.examine(run))
                    bases.append(run.base)
                except (InputError, ConfigError) as error:
                    told = explained(error, run.files, given)
                    if len(runs) == 1:
                        raise told from error
                    progress.clear()
                    fail(told)
                    unreadable.append(Unreadable(run.name, error_text(told)))
    end = outcome(results, fail_on=cast("Level", fail_on), required=required, strict=strict, unreadable=unreadable)
    style = style_of(None if output else sys.stdout, color)
    if publish:
        from mcpdetect.score.publish import published

        results = [published(result, records) for result in results]
    document: str | bytes
    if claims:
        document = _claims(results, form, style)
    elif form == "json":
        from mcpdetect.report.json_report import json_report

        document = json_report(results, unreadable)
    else:
        from mcpdetect.report.text import text_report

        document = text_report(results, end, style, bases=bases, verbose=verbose)
    if output is not None or not quiet:
        write_output(document, output)
    return end.code


def _reviews(path: Path | None) -> Reviews:
    if path is None:
        return {}
    from mcpdetect.labels.reviews import load_reviews

    return load_reviews(path)


def _claims(results: Sequence[Result], form: str, style: Style) -> str | bytes:
    from mcpdetect.report.claim_report import claims_json, claims_text
    from mcpdetect.score.claims import claims_of

    told = [claims_of(result) for result in results]
    return claims_json(told) if form == "json" else claims_text(told, style)


@dataclass(slots=True)
class _Options:
    """What is the same for every run."""

    checks: list[str] | None
    secrets: Path | None
    expectations: Expectations | None
    baseline: Baseline | None
    assurance: Proof | None

    def examine(self, run: RunInput) -> Result:
        """Open one run and check it."""
        from mcpdetect import api

        return api.check(
            run.open(),
            checks=self.checks,
            secrets=self.secrets,
            expectations=self.expectations,
            baseline=self.baseline,
            assurance=self.assurance,
        )

    def join(self, runs: Sequence[RunInput]) -> Result:
        """Open several runs of one server and check them together."""
        from mcpdetect import api

        return api.audit(
            [run.open() for run in runs],
            checks=self.checks,
            secrets=self.secrets,
            expectations=self.expectations,
            baseline=self.baseline,
            assurance=self.assurance,
        )


def _options(
    checks: list[str], secrets: Path | None, expect: Path | None, baseline: Path | None, assurance: str | None
) -> _Options:
    options = _Options(checks or None, secrets, None, None, cast("Proof | None", assurance))
    if baseline is not None:
        from mcpdetect.data.baseline import load_baseline

        options.baseline = load_baseline(baseline)
    if secrets is not None or expect is not None:
        from mcpdetect.data.inputs import load_expectations, load_secrets

        if secrets is not None:
            load_secrets(secrets)  # a mistake in it is told before anything long is read
        options.expectations = load_expectations(expect) if expect is not None else None
    return options


def _required(checks: Sequence[str]) -> list[str]:
    """Return the ids that ``--check`` names, a category standing for its checks."""
    if not checks:
        return []
    from mcpdetect.engine.discovery import detectors, select

    detectors()
    try:
        return list(select(list(checks)))
    except SpecError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise click.BadParameter(f"{error.problem}{hint}", param_hint="--check") from error
