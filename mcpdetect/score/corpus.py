"""Corpora: labelled cases of this project, of a plug-in, or the compact one that the wheel carries."""

from __future__ import annotations

import difflib
import inspect
import re
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path

from mcpdetect.errors import LabelError, SpecError
from mcpdetect.labels.loader import CASES, load_labels
from mcpdetect.labels.model import Label

__all__ = ["COMPACT", "ENTRY_POINT_GROUP", "Case", "Corpus", "compact_corpus", "load_cases", "plugin_corpora"]

ENTRY_POINT_GROUP = "mcpdetect.corpora"
"""Entry-point group through which a package of detectors offers its corpus; each entry names a function without
arguments that returns two ``pathlib.Path``: the folder of the bundles and the folder of the labels."""

COMPACT = "corpus.zip"
"""Name, in ``mcpdetect/data``, of the smallest part of the corpus that shows every check fire, stay silent and be
blind: ``corpus/`` and ``labels/`` as in the repository."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Bundles and their labels.

    Attributes:
        name: for people: ``corpus``, ``compact``, or a plug-in's entry point.
        bundles: folder of the bundles.
        labels: folder of the labels, the one that has ``cases`` in it.
    """

    name: str
    bundles: Path
    labels: Path


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case.

    Attributes:
        corpus: name of its corpus.
        bundle: folder of its evidence.
        label: what must come out.
        file: the label's file.
    """

    corpus: str
    bundle: Path
    label: Label
    file: Path


def load_cases(corpus: Corpus, known: Collection[str]) -> list[Case]:
    """Read the labels of a corpus and see that they and the bundles belong to each other.

    Args:
        corpus: the corpus.
        known: ids of the installed checks.

    Returns:
        The cases, sorted by name; never none.

    Raises:
        LabelError: a label is wrong, its evidence changed since, it has no bundle or a bundle no label; it speaks of
            a check that is not installed; or the corpus is empty.
    """
    for folder, what in ((corpus.bundles, "bundles"), (corpus.labels / CASES, "labels")):
        if not folder.is_dir():
            raise LabelError(
                f"there is no folder of {what} here", file=str(folder), hint="name the folder that holds them"
            )
    cases = [
        Case(corpus.name, corpus.bundles / label.case, label, corpus.labels / CASES / f"{label.case}.yaml")
        for label in load_labels(corpus.labels, corpus.bundles)
    ]
    if not cases:
        raise LabelError(
            "there is no case here", file=str(corpus.labels / CASES), cause="an empty corpus proves nothing"
        )
    for case in cases:
        for check in case.label.checks:
            if check not in known:
                _unknown(case, check, known)
    return cases


def _unknown(case: Case, check: str, known: Collection[str]) -> None:
    near = difflib.get_close_matches(check, known, n=1)
    # "  egress.direct-ip:" or "  egress.direct-ip: {verdict: not_detected}"
    found = re.search(rf"(?m)^\s*+['\"]?{re.escape(check)}['\"]?\s*+:", case.file.read_text("utf-8"))
    line = case.file.read_text("utf-8").count("\n", 0, found.end()) + 1 if found else None
    raise LabelError(
        "speaks of a check that is not installed",
        file=str(case.file),
        place=f"line {line}" if line else None,
        value=check,
        cause="the check was renamed or removed, or its plug-in is not installed",
        hint=f"did you mean {near[0]}?" if near else "take the check out of the label, or install its plug-in",
    )


def plugin_corpora() -> list[Corpus]:
    """Return the corpora that installed packages offer, sorted by name.

    Raises:
        SpecError: one cannot be loaded, names no such function, or two have one name. None is left out in silence.
    """
    found: dict[str, Corpus] = {}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda item: (item.name, item.value)):
        origin = f"entry point {point.name!r} ({point.value})"
        try:
            offered = point.load()
        except (ImportError, AttributeError) as error:
            raise SpecError(
                f"the plug-in's corpus cannot be loaded: {error}",
                file=origin,
                cause="the package that offers it is broken or half installed",
                hint="repair or uninstall that package",
            ) from error
        folders = offered() if inspect.isfunction(offered) else None
        if not (isinstance(folders, tuple) and len(folders) == 2 and all(isinstance(one, Path) for one in folders)):
            raise SpecError(
                "the entry point must name a function that returns two paths: bundles and labels", file=origin
            )
        if point.name in found:
            raise SpecError("two corpora have one name", file=origin, hint="rename or uninstall one of them")
        found[point.name] = Corpus(point.name, *folders)
    return list(found.values())


@contextmanager
def compact_corpus() -> Iterator[Corpus]:
    """Unpack the corpus that comes with this package into a folder that is gone afterwards.

    Raises:
        LabelError: this installation has none.
    """
    packed = resources.files("mcpdetect.data") / COMPACT
    if not packed.is_file():
        raise LabelError(
            "this installation carries no corpus",
            file=str(packed),
            cause="an incomplete installation",
            hint="name one with --corpus and --labels",
        )
    with tempfile.TemporaryDirectory(prefix="mcpdetect-") as folder:
        with packed.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            archive.extractall(folder)
        yield Corpus("compact", Path(folder) / "corpus", Path(folder) / "labels")
