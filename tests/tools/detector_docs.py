"""The pages of ``docs/detectors``: coverage from ``coverage/coverage.json``, examples from the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from pydantic import TypeAdapter

from mcpdetect.contract import Detector
from mcpdetect.engine.discovery import detectors
from mcpdetect.ingest.open import open_trace
from mcpdetect.labels.loader import load_label
from mcpdetect.labels.model import Label
from mcpdetect.model.place import Where
from mcpdetect.report.detector_guide import Example, detector_guide, detector_index
from mcpdetect.report.event_line import event_line
from mcpdetect.score.coverage import CheckCoverage, Coverage
from mcpdetect.score.recording import Recording

__all__ = ["detector_documents"]

_WORD = {"fires": "detected", "silent": "not_detected", "blind": "not_observable"}
_MOST_LINES = 6
_LOOKED_AT = 40


def detector_documents(root: Path) -> dict[Path, str]:
    """Return the pages by their path."""
    known = detectors()
    text = (root / "coverage" / "coverage.json").read_bytes()
    coverage = TypeAdapter(Coverage).validate_json(text).checks
    folder = root / "docs" / "detectors"
    made = {folder / "README.md": detector_index(known, coverage)}
    for name, kind in known.items():
        pictures = sorted((root / "docs" / "thresholds").glob(f"{name}.*.svg"))
        made[folder / f"{name}.md"] = _page(root, kind, coverage.get(name), pictures)
    return made


def _page(root: Path, kind: type[Detector], row: CheckCoverage | None, pictures: Sequence[Path]) -> str:
    chosen = [_example(root, kind, label) for label in _chosen(root, kind.spec.id)]
    return detector_guide(kind, row, chosen, [f"../thresholds/{path.name}" for path in pictures])


def _chosen(root: Path, check: str) -> Iterator[Label]:
    """Yield the smallest own cases: two that fire, in different runtimes where there are, one silent, one blind."""
    folder = root / "labels" / "cases" / check.replace(".", "/", 1)
    files = sorted(folder.glob("*.yaml"), key=lambda path: (_size(root / "corpus" / _case(folder, path)), path.name))
    texts = {path: path.read_text("utf-8") for path in files}  # a label takes long to load: those that fit only
    for truth, word in _WORD.items():
        fitting = (load_label(path) for path in files if f"\ntruth: {truth}\n" in texts[path])
        right = (one for one in fitting if one.todo is None and one.checks[check].verdict == word)
        first = next(right, None)
        if first is None:
            continue
        yield first
        if truth == "fires":
            others = islice(right, _LOOKED_AT)
            other = next((one for one in others if one.axes.get("runtime") != first.axes.get("runtime")), None)
            if other is not None:
                yield other


def _case(folder: Path, path: Path) -> str:
    return f"{folder.parent.name}/{folder.name}/{path.stem}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _example(root: Path, kind: type[Detector], label: Label) -> Example:
    check = kind.spec.id
    bundle = root / "corpus" / label.case
    result = Recording(bundle, {check: kind}).whole[check]
    if not result.findings:
        return Example(label.case, label.truth, label.why, result.verdict, _named(root, result.reason))
    finding = result.findings[0]
    title, reason = _named(root, finding.title), _named(root, finding.reason)
    return Example(label.case, label.truth, label.why, result.verdict, title, reason, _lines(bundle, finding.where))


def _named(root: Path, text: str) -> str:
    """Return a text with files named by their paths in the repository."""
    return text.replace(f"{root}/", "")


def _lines(bundle: Path, places: Sequence[Where]) -> list[str]:
    """Return the events at some places of a bundle, one line each, in the order of the places."""
    wanted = list(places[:_MOST_LINES])
    found: dict[Where, str] = {}
    for event in open_trace(bundle).events(None):
        if event.where in wanted:
            found.setdefault(event.where, event_line(event))
    return [found[place] for place in wanted if place in found]
