"""Small corpora made of recorded cases, to be changed at will."""

from __future__ import annotations

import shutil
from pathlib import Path

from mcpdetect.engine.discovery import detectors
from mcpdetect.score.corpus import Case, Corpus, load_cases

ROOT = Path(__file__).parents[2]
FIRES = "egress/direct-ip/c-tcp4"
SILENT = "egress/direct-ip/c-named-dual"
BLIND = "egress/direct-ip/c-tcp4-untraced-child-no-capture"
THREE = (FIRES, SILENT, BLIND)


def repository() -> Corpus:
    """Return the whole corpus."""
    return Corpus("corpus", ROOT / "corpus", ROOT / "labels")


def copied(folder: Path, *cases: str) -> Corpus:
    """Return a corpus of copies of recorded cases."""
    corpus = Corpus("copy", folder / "corpus", folder / "labels")
    for case in cases or THREE:
        shutil.copytree(ROOT / "corpus" / case, corpus.bundles / case)
        label_file(corpus, case).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "labels" / "cases" / f"{case}.yaml", label_file(corpus, case))
    return corpus


def label_file(corpus: Corpus, case: str) -> Path:
    """Return the file of a label."""
    return corpus.labels / "cases" / f"{case}.yaml"


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text that occurs once in a file."""
    text = path.read_text("utf-8")
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new), "utf-8")


def cases_of(corpus: Corpus) -> list[Case]:
    """Return the cases of a corpus."""
    return load_cases(corpus, list(detectors()))
