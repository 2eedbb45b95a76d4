"""``mcpdetect label``: draft, check, count and review labels, and promote a trace to a permanent case."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from mcpdetect.cli.console import tell, write_output
from mcpdetect.errors import ConfigError, LabelError
from mcpdetect.report.outcome import EXIT_OK

if TYPE_CHECKING:
    from mcpdetect.contract import Detector
    from mcpdetect.labels.model import Truth
    from mcpdetect.score.corpus import Case
    from mcpdetect.score.promote_write import Opinion

__all__ = ["command"]

_PATH = click.Path(path_type=Path)
_TRUTH = click.Choice(["fires", "silent", "blind"])
_NAME = re.compile(r"[a-z0-9-]++")


@click.group("label", short_help="Draft, check and count labels; make a trace a permanent case.")
def command() -> None:
    """Work with the labelled corpus: bundles, and the labels that say what every check must make of them."""


def _detectors() -> dict[str, type[Detector]]:
    from mcpdetect.engine.discovery import detectors

    return detectors()


def _axes(values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for (name, mark, text), value in zip(pairs, values, strict=True):
        if not (name and mark and text):
            raise click.BadParameter(f"{value!r} is not NAME=VALUE", param_hint="--axis")
    return {name: text for name, _, text in pairs}


@command.command("draft", short_help="Write the label of a bundle from a run.")
@click.argument("case")
@click.option("--why", required=True, help="What happens in the case, and why the verdict is right.")
@click.option("--by", required=True, help="Role of the person who compares the label with the evidence.")
@click.option("--truth", type=_TRUTH, help="What it really is, if the check is wrong.")
@click.option("--axis", "axes", multiple=True, metavar="NAME=VALUE", help="What coverage counts it by. Repeatable.")
@click.option("--corpus", type=_PATH, default=Path("corpus"), show_default=True)
@click.option("--labels", type=_PATH, default=Path("labels"), show_default=True)
def _draft(case: str, why: str, by: str, truth: str | None, axes: tuple[str, ...], corpus: Path, labels: Path) -> int:
    """Run every check over the bundle CASE (category/control/variant) and write what it says as its label.

    An existing label is never overwritten. Compare every place with the evidence before you commit the draft.
    """
    from mcpdetect.labels.loader import CASES, load_label
    from mcpdetect.labels.writer import write_label
    from mcpdetect.score.promote_write import Opinion, draft_label

    opinion = Opinion(why, by, cast("Truth | None", truth), _axes(axes))
    path = labels / CASES / f"{case}.yaml"
    if path.exists():
        raise LabelError("exists already", file=str(path), cause="the case is labelled", hint="edit or remove it")
    write_label(draft_label(case, corpus, _detectors(), opinion), path)
    load_label(path, bundle=corpus / case)
    write_output(f"{path}\n", None)
    return EXIT_OK


def _cases(corpus: Path, labels: Path) -> list[Case]:
    from mcpdetect.score.corpus import Corpus, load_cases

    return load_cases(Corpus(corpus.name or str(corpus), corpus, labels), list(_detectors()))


@command.command("check", short_help="See that labels and bundles are well formed and belong together.")
@click.option("--corpus", type=_PATH, default=Path("corpus"), show_default=True)
@click.option("--labels", type=_PATH, default=Path("labels"), show_default=True)
def _check(corpus: Path, labels: Path) -> int:
    """Read every label: form, hashes, checks that exist, no label without a bundle and no bundle without a label.

    The verdicts themselves are compared by mcpdetect selftest.
    """
    from mcpdetect.report.layout import counted

    cases = _cases(corpus, labels)
    write_output(f"{counted(len(cases), 'label')}, every one with its bundle\n", None)
    return EXIT_OK


@command.command("stats", short_help="Count labels by check and truth.")
@click.option("--corpus", type=_PATH, default=Path("corpus"), show_default=True)
@click.option("--labels", type=_PATH, default=Path("labels"), show_default=True)
def _stats(corpus: Path, labels: Path) -> int:
    """Count the cases of every check: fires, silent, blind, known weaknesses, and distinct values on each axis."""
    from mcpdetect.report.layout import columns

    cases = _cases(corpus, labels)
    rows = [["check", "fires", "silent", "blind", "todo", "axes"]]
    for subject in sorted({*_detectors(), *(case.label.subject for case in cases)}):
        own = [case.label for case in cases if case.label.subject == subject]
        truths = Counter(label.truth for label in own)
        values: dict[str, set[str]] = {}
        for label in own:
            for name, value in label.axes.items():
                values.setdefault(name, set()).add(value)
        axes = ", ".join(f"{name} {len(found)}" for name, found in sorted(values.items()))
        todo = sum(1 for label in own if label.todo is not None)
        rows.append([subject, *(str(truths[word]) for word in ("fires", "silent", "blind")), str(todo), axes])
    lines = ["".join(cells).rstrip() for cells in columns(rows, right=(1, 2, 3, 4))]
    write_output("".join(f"{line}\n" for line in lines), None)
    return EXIT_OK


@command.command("review", short_help="Record that a label was compared with its evidence again.")
@click.argument("case")
@click.option("--by", required=True, help="Role of the person who compared them.")
@click.option("--corpus", type=_PATH, default=Path("corpus"), show_default=True)
@click.option("--labels", type=_PATH, default=Path("labels"), show_default=True)
def _review(case: str, by: str, corpus: Path, labels: Path) -> int:
    """Write who compared the label of CASE with its evidence, today, and pin the bundle as it is now.

    Comments and everything else in the label stay as they are.
    """
    from mcpdetect.labels.loader import CASES, load_label
    from mcpdetect.labels.writer import edit

    path = labels / CASES / f"{case}.yaml"
    manifest = corpus / case / "manifest.json"
    load_label(path)
    try:
        digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
    except OSError as error:
        raise LabelError(f"cannot be read: {error.strerror}", file=str(manifest)) from error
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    edit(path, {("reviewed", "by"): by, ("reviewed", "date"): today, ("evidence", "manifest.json"): digest})
    load_label(path, bundle=corpus / case)
    write_output(f"{path}\n", None)
    return EXIT_OK


@command.command("pin", short_help="Pin limits and explanations that labels say nothing of yet.")
@click.argument("cases", nargs=-1, metavar="CASE...")
@click.option("--corpus", type=_PATH, default=Path("corpus"), show_default=True)
@click.option("--labels", type=_PATH, default=Path("labels"), show_default=True)
def _pin(cases: tuple[str, ...], corpus: Path, labels: Path) -> int:
    """Write into labels why a check is blind (limits) and what explains its findings, as the checks say it today.

    Without CASE for every label. What a label says already is never changed; read the change before you commit it.
    """
    from mcpdetect.labels.writer import add
    from mcpdetect.score.pinning import unpinned

    detectors = _detectors()
    found = {case.label.case: case for case in _cases(corpus, labels)}
    for name in cases:
        if name not in found:
            raise click.BadParameter(f"there is no case {name!r}", param_hint="CASE")
    for name in cases or found:
        if added := unpinned(found[name], detectors):
            add(found[name].file, added)
            write_output(f"{found[name].file}\n", None)
    return EXIT_OK


@command.command("extend", short_help="Let labels speak of checks that are newer than they are.")
@click.argument("checks", nargs=-1, required=True, metavar="CHECK...")
@click.option("--corpus", type=_PATH, default=Path("corpus"), show_default=True)
@click.option("--labels", type=_PATH, default=Path("labels"), show_default=True)
def _extend(checks: tuple[str, ...], corpus: Path, labels: Path) -> int:
    """Write into every label that does not speak of CHECK what the check says of its case today.

    Cases in which it detects something are listed: compare each with the evidence before you commit. What a label says
    already is never changed.
    """
    from mcpdetect.labels.writer import add_checks
    from mcpdetect.score.runner import as_expected, run_bundle

    detectors = _detectors()
    for check in checks:
        if check not in detectors:
            raise click.BadParameter(f"there is no check {check!r}", param_hint="CHECK")
    count = 0
    for case in _cases(corpus, labels):
        wanted = {check: detectors[check] for check in checks if check not in case.label.checks}
        if not wanted:
            continue
        results = run_bundle(case.bundle, wanted).checks
        add_checks(case.file, {result.check: as_expected(result) for result in results})
        count += 1
        for result in results:
            if result.verdict in ("detected", "error"):
                titles = "; ".join(finding.title for finding in result.findings[:3]) or result.reason
                write_output(f"{case.label.case}  {result.check} {result.verdict}: {titles}\n", None)
    write_output(f"{count} labels extended\n", None)
    return EXIT_OK


@command.command("promote", short_help="Make a reviewed trace a permanent, reduced case.")
@click.argument("traces", type=_PATH, nargs=-1, required=True, metavar="TRACE...")
@click.option("--check", "check", required=True, metavar="ID", help="The check that the case is about.")
@click.option("--why", required=True, help="What happens in it, and why the verdict is right or wrong.")
@click.option("--by", required=True, help="Role of the person who reviewed the trace.")
@click.option("--truth", type=_TRUTH, help="What it really is, if the check is wrong.")
@click.option("--name", help="Last part of the case's path. Default: promoted- and digits of the manifest's hash.")
@click.option("--keep", multiple=True, metavar="PLACE", help="A line or packet that must stay. Repeatable.")
@click.option("--axis", "axes", multiple=True, metavar="NAME=VALUE", help="What coverage counts it by. Repeatable.")
@click.option("--replace", "words", multiple=True, metavar="WORD", help="Another name to replace. Repeatable.")
@click.option("--secrets", type=_PATH, metavar="FILE", help="What was planted, where TRACE is no bundle.")
@click.option("--expect", type=_PATH, metavar="FILE", help="What the server documents, where TRACE is no bundle.")
@click.option("--seed", type=int, help="Draw replacements from this number, so that they can be repeated.")
@click.option("--corpus", type=_PATH, default=Path("corpus"), show_default=True)
@click.option("--labels", type=_PATH, default=Path("labels"), show_default=True)
def _promote(
    traces: tuple[Path, ...],
    check: str,
    why: str,
    by: str,
    truth: str | None,
    name: str | None,
    keep: tuple[str, ...],
    axes: tuple[str, ...],
    words: tuple[str, ...],
    secrets: Path | None,
    expect: Path | None,
    seed: int | None,
    corpus: Path,
    labels: Path,
) -> int:
    """Reduce TRACE to the smallest evidence about which the check says the same, and label it.

    TRACE is a bundle, a trace.json, or the evidence files of one run (strace log, captures, logs, transcript).

    Names of users and hosts and private addresses are replaced, consistently and at equal length. A false accusation
    is promoted with --truth silent: the label then says what is right, and its todo that the check is wrong today.
    What makes a verdict wrong is for a person to say: name those places with --keep, or nothing is taken out.
    """
    from mcpdetect.labels.loader import CASES
    from mcpdetect.score.promote_source import bundle_of
    from mcpdetect.score.promote_write import PROMOTED, Opinion

    detectors = _detectors()
    if check not in detectors:
        raise click.BadParameter(f"there is no check {check!r}", param_hint="--check")
    opinion = Opinion(why, by, cast("Truth | None", truth), {"origin": PROMOTED, **_axes(axes)})
    with bundle_of(traces, secrets=secrets, expect=expect) as bundle:
        named = name or f"promoted-{hashlib.sha256((bundle / 'manifest.json').read_bytes()).hexdigest()[:8]}"
        if not _NAME.fullmatch(named):
            raise click.BadParameter("lower-case letters, digits and hyphens make a name", param_hint="--name")
        case = f"{check.replace('.', '/')}/{named}"
        path = labels / CASES / f"{case}.yaml"
        if path.exists():
            raise LabelError("exists already", file=str(path), hint="choose another --name")
        folder = _promoted(bundle, case, opinion, keep, [word.encode() for word in words], seed, corpus, path)
    write_output(f"{folder}\n{path}\n", None)
    return EXIT_OK


def _promoted(
    bundle: Path,
    case: str,
    opinion: Opinion,
    keep: tuple[str, ...],
    words: list[bytes],
    seed: int | None,
    corpus: Path,
    path: Path,
) -> Path:
    """Write the reduced case and its label, both or none; return the case's folder."""
    from mcpdetect.labels.loader import load_label
    from mcpdetect.labels.writer import write_label
    from mcpdetect.score.promote import reduce
    from mcpdetect.score.promote_write import PROMOTED, discard, label_of, redaction_for, same, write_bundle
    from mcpdetect.score.runner import run_bundle

    detectors = _detectors()
    check = ".".join(case.split("/")[:2])
    whole = opinion.truth is not None and not keep
    reduced = reduce(bundle, detectors, check, keep=keep, whole=whole)
    redaction = redaction_for(reduced, words, seed)
    folder = write_bundle(reduced, redaction, case, corpus)
    kept = False
    try:
        after = next(one for one in run_bundle(folder, {check: detectors[check]}).checks)
        if not same(reduced.result, after):
            raise ConfigError(
                "shows something else once names are replaced",
                file=str(bundle),
                value=f"{reduced.result.verdict} before, {after.verdict} after",
                hint="another --seed, or record a control that shows the same",
            )
        write_label(label_of(case, folder, detectors, opinion, control=PROMOTED), path)
        load_label(path, bundle=folder)
        kept = True
    finally:
        if not kept:
            discard(folder)
            path.unlink(missing_ok=True)
    tell(
        f"{reduced.before:,} lines and packets reduced to {reduced.after:,} in {reduced.tries:,} tries; "
        f"{len(redaction.names)} names and {len(redaction.addresses)} private addresses replaced"
    )
    if whole:
        tell("nothing was taken out: name the places that make the verdict wrong with --keep, and the rest can go")
    if reduced.whole:
        tell(f"kept whole, look at them for personal details: {', '.join(reduced.whole)}")
    return folder
