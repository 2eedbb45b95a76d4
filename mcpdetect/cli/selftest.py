"""``mcpdetect selftest``: the labelled corpus against the installed checks."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcpdetect.cli.console import style_of, write_output
from mcpdetect.errors import SpecError

if TYPE_CHECKING:
    from mcpdetect.contract import Detector
    from mcpdetect.score.corpus import Corpus

__all__ = ["command"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_EXAMPLES = (
    "\b\nExamples:\n"
    "  mcpdetect selftest\n"
    "  mcpdetect selftest --category egress\n"
    "  mcpdetect selftest --corpus corpus --labels labels"
)


def _complete_check(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from mcpdetect.engine.discovery import detectors

    return [name for name in detectors() if name.startswith(incomplete)]


def _complete_category(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from mcpdetect.engine.discovery import detectors

    names = sorted({item.spec.category for item in detectors().values()})
    return [name for name in names if name.startswith(incomplete)]


@click.command("selftest", short_help="Run the labelled corpus against the installed checks.", epilog=_EXAMPLES)
@click.option(
    "--category",
    "categories",
    multiple=True,
    metavar="C",
    shell_complete=_complete_category,
    help="Only the checks of this category; repeatable.",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="ID",
    shell_complete=_complete_check,
    help="Only this check; repeatable.",
)
@click.option("--corpus", type=_FOLDER, metavar="DIR", help="Folder of bundles, instead of what is installed.")
@click.option("--labels", type=_FOLDER, metavar="DIR", help="Folder of their labels; goes with --corpus.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--color/--no-color", default=None, help="Colour the text. Default: on a terminal only.")
def command(
    categories: tuple[str, ...],
    checks: tuple[str, ...],
    corpus: Path | None,
    labels: Path | None,
    form: str,
    color: bool | None,
) -> int:
    """Run labelled cases and compare every verdict, finding and place with what the labels say.

    Without --corpus it takes the compact corpus that this installation carries and those of installed plug-ins.

    Exit codes: 0 every case came out as labelled; 1 one did not; 3 no case shows that a check fires, or that it
    stays silent; 4 evidence or a label could not be read; 5 a check crashed.
    """
    from mcpdetect.report.selftest_report import selftest_json, selftest_outcome, selftest_text
    from mcpdetect.score.corpus import Corpus, compact_corpus, load_cases, plugin_corpora
    from mcpdetect.score.selftest import selftest

    if (corpus is None) != (labels is None):
        raise click.UsageError("--corpus and --labels go together")
    chosen = _chosen(categories, checks)
    with ExitStack() as stack:
        corpora: list[Corpus] = []
        if corpus is not None and labels is not None:
            corpora.append(Corpus(corpus.name or str(corpus), corpus, labels))
        else:
            corpora += [stack.enter_context(compact_corpus()), *plugin_corpora()]
        known = _installed()
        result = selftest([case for one in corpora for case in load_cases(one, known)], chosen)
    if form == "json":
        write_output(selftest_json(result), None)
    else:
        write_output(selftest_text(result, style_of(sys.stdout, color)), None)
    return selftest_outcome(result).code


def _installed() -> list[str]:
    from mcpdetect.engine.discovery import detectors

    return list(detectors())


def _chosen(categories: tuple[str, ...], checks: tuple[str, ...]) -> dict[str, type[Detector]]:
    """Return the checks asked for by id or category; all of them when none is named."""
    from mcpdetect.engine.discovery import detectors, select

    every = detectors()
    for category in categories:
        known = sorted({item.spec.category for item in every.values()})
        if category not in known:
            raise click.BadParameter(
                f"there is no category {category!r}; categories are {', '.join(known)}", param_hint="--category"
            )
    for check in checks:
        if check not in every:
            try:
                select([check])
            except SpecError as error:
                hint = f"; {error.hint}" if error.hint else ""
                raise click.BadParameter(f"{error.problem}{hint}", param_hint="--check") from error
            raise click.BadParameter(f"{check!r} is a category; use --category", param_hint="--check")
    if not categories and not checks:
        return every
    return {name: item for name, item in every.items() if name in checks or item.spec.category in categories}
