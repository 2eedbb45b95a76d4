"""``mcpdetect coverage``: build, check, diff, history, badge, plot."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mcpdetect.cli.console import OutputError, tell, write_output
from mcpdetect.report.outcome import EXIT_FINDING, EXIT_OK

if TYPE_CHECKING:
    from mcpdetect.score.coverage import Coverage
    from mcpdetect.score.history import Row

__all__ = ["command"]

_ROOT = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _root_option(function: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--root",
        type=_ROOT,
        default=Path(),
        metavar="DIR",
        help="Folder that holds corpus, labels and coverage. Default: the current one.",
    )(function)


@click.group("coverage", short_help="What the labelled corpus proves: build, check, diff, history, badge, plot.")
def command() -> None:
    """Measure a labelled corpus, publish the numbers, and refuse a change that makes one of them worse."""


@command.command("build")
@_root_option
def _build(root: Path) -> int:
    """Measure the corpus and write everything that is published of it.

    In DIR/coverage: coverage.json, README.md, badge.json and one SVG a category. Where DIR is the source of mcpdetect,
    also what the package ships (data/coverage.json, data/corpus.zip) and the numbers in docs/coverage.md. The history
    is not touched.
    """
    from mcpdetect.report.coverage_page import coverage_summary

    files, coverage = _made(root)
    for path, content in files.items():
        _write(path, content)
    write_output(coverage_summary(coverage), None)
    return EXIT_OK


@command.command("check")
@_root_option
def _check(root: Path) -> int:
    """Measure the corpus and compare with what is published and with the last row of the history.

    Exits 1 when a number fell, unless coverage/exceptions.yaml says why, and when what is published is out of date.
    """
    from mcpdetect.score.history import changes, excused, facts, load_coverage, load_excuses, load_history

    folder = root / "coverage"
    excuses = load_excuses(folder / "exceptions.yaml")
    history = load_history(folder / "history.jsonl")
    published = load_coverage(folder / "coverage.json")
    files, coverage = _made(root)
    now = facts(coverage)
    falls = {}
    for before in (*(row.facts for row in history[-1:]), facts(published)):
        falls.update({change.what: change for change in changes(before, now) if change.fall})
    meant = [change for change in falls.values() if excused(change, excuses)]
    bad = [change for change in falls.values() if change not in meant]
    lines = [f"fell: {change}" for change in bad] + [f"fell, and excused: {change}" for change in meant]
    if bad:
        lines.append("a fall that is meant needs its name, its new number and a reason in coverage/exceptions.yaml")
    stale = [path for path, content in files.items() if not path.is_file() or not _same(path, content)]
    lines += [f"out of date: {path.relative_to(root)}" for path in stale]
    if stale:
        lines.append("make it again: mcpdetect coverage build")
    write_output("".join(f"{line}\n" for line in lines or ["nothing fell, and what is published is current"]), None)
    return EXIT_FINDING if bad or stale else EXIT_OK


@command.command("diff")
@click.argument("before", type=_FILE, metavar="A")
@click.argument("after", type=_FILE, metavar="B")
def _diff(before: Path, after: Path) -> int:
    """Say which numbers differ between two coverage.json files; exit 1 when one of them fell."""
    from mcpdetect.score.history import changes, facts, load_coverage

    found = changes(facts(load_coverage(before)), facts(load_coverage(after)))
    write_output("".join(f"{change}\n" for change in found) or "no difference\n", None)
    return EXIT_FINDING if any(change.fall for change in found) else EXIT_OK


@command.command("history")
@_root_option
@click.option("--append", "add", is_flag=True, help="Add a row with the numbers of coverage.json.")
@click.option("--commit", metavar="SHA", help="With --append: the commit that was measured, 40 hexadecimal digits.")
@click.option("--date", metavar="DATE", help="With --append: its date (ISO). Default: today, UTC.")
def _history(root: Path, commit: str | None, date: str | None, *, add: bool) -> int:
    """Show the rows of the history, or add one and draw the page and the trends again.

    A row that is there is never written again.
    """
    from mcpdetect.score.history import append_row, load_coverage, load_history

    folder = root / "coverage"
    path = folder / "history.jsonl"
    if add:
        if commit is None:
            raise click.UsageError("--append needs --commit")
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        coverage = load_coverage(folder / "coverage.json")
        append_row(path, coverage, commit, date or today)
        for page, content in _published(folder, coverage, load_history(path)).items():
            _write(page, content)
        return EXIT_OK
    if commit or date:
        raise click.UsageError("--commit and --date go with --append")
    rows = load_history(path)
    told = "".join(
        f"{row.date} {row.commit[:12]} {row.version}: {row.facts.get('corpus cases', 0):g} cases\n" for row in rows
    )
    write_output(told or "the history is empty\n", None)
    return EXIT_OK


@command.command("badge")
@_root_option
def _badge(root: Path) -> int:
    """Print the badge of coverage.json in the endpoint schema of shields.io."""
    from mcpdetect.report.coverage_page import badge_json
    from mcpdetect.score.history import load_coverage

    write_output(badge_json(load_coverage(root / "coverage" / "coverage.json")), None)
    return EXIT_OK


@command.command("plot")
@click.argument("category")
@_root_option
def _plot(category: str, root: Path) -> int:
    """Print the trend of CATEGORY over the history as an SVG."""
    from mcpdetect.report.coverage_plot import trend_svg
    from mcpdetect.score.history import load_coverage, load_history

    coverage = load_coverage(root / "coverage" / "coverage.json")
    if category not in coverage.categories:
        raise click.BadParameter(
            f"there is no category {category!r}; categories are {', '.join(coverage.categories)}", param_hint="CATEGORY"
        )
    write_output(trend_svg(category, load_history(root / "coverage" / "history.jsonl")), None)
    return EXIT_OK


def _made(root: Path) -> tuple[dict[Path, bytes], Coverage]:
    """Measure the corpus below ``root``; return the published files and the numbers."""
    from mcpdetect.engine.discovery import detectors
    from mcpdetect.report.coverage_page import guide_with_numbers, statuses_json
    from mcpdetect.score.compact import choose, pack
    from mcpdetect.score.corpus import COMPACT, Corpus, load_cases
    from mcpdetect.score.history import load_history
    from mcpdetect.score.measure import load_mutants, measure

    folder = root / "coverage"
    rows = load_history(folder / "history.jsonl")
    mutants, reading = load_mutants(folder / "mutation.json")
    every = detectors()
    cases = load_cases(Corpus("corpus", root / "corpus", root / "labels"), list(every))
    spoken = {check for case in cases for check in case.label.checks}
    data = root / "mcpdetect" / "data"
    chosen = {
        name: kind
        for name, kind in every.items()
        if name in spoken or (data.is_dir() and kind.__module__.startswith("mcpdetect."))
    }
    coverage = measure(cases, chosen, mutants=mutants, reading=reading)
    files = _published(folder, coverage, rows)
    if data.is_dir():
        files[data / "coverage.json"] = statuses_json(coverage)
        guide = root / "docs" / "coverage.md"
        if guide.is_file():
            files[guide] = guide_with_numbers(guide.read_text("utf-8"), coverage).encode()
        files[data / COMPACT] = pack(choose(cases))
    return files, coverage


def _published(folder: Path, coverage: Coverage, rows: list[Row]) -> dict[Path, bytes]:
    from mcpdetect.report.coverage_page import badge_json, coverage_json, coverage_page
    from mcpdetect.report.coverage_plot import trend_svg

    files = {
        folder / "coverage.json": coverage_json(coverage),
        folder / "README.md": coverage_page(coverage, rows).encode(),
        folder / "badge.json": badge_json(coverage),
    }
    for category in coverage.categories:
        files[folder / f"{category}.svg"] = trend_svg(category, rows).encode()
    return files


def _same(path: Path, content: bytes) -> bool:
    """Compare a file with what it should hold; of an archive what it holds, since compressors differ."""
    import io
    import zipfile

    held = path.read_bytes()
    if held == content or path.suffix != ".zip":
        return held == content
    try:
        with zipfile.ZipFile(io.BytesIO(held)) as old, zipfile.ZipFile(io.BytesIO(content)) as new:
            names = sorted(old.namelist())
            return names == sorted(new.namelist()) and all(old.read(name) == new.read(name) for name in names)
    except zipfile.BadZipFile:
        return False


def _write(path: Path, content: bytes) -> None:
    if path.is_file() and _same(path, content):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
    tell(f"wrote {path}")
