"""The compact corpus: the smallest part of the corpus that shows every check fire, stay silent and be blind."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from mcpdetect.labels.loader import CASES
from mcpdetect.score.corpus import Case

__all__ = ["choose", "pack", "unpacked"]

# The earliest time that a zip archive can hold: the archive's bytes do not depend on when it was made.
_TIME = (1980, 1, 1, 0, 0, 0)


def choose(cases: Iterable[Case]) -> list[Case]:
    """Return the cases, few bytes in all, whose labels hold every verdict of every check that any label holds.

    Greedy weighted set cover (most new verdicts a byte first), then without the cases that later ones made needless.
    A case with a known weakness proves nothing and is never taken.

    Args:
        cases: the whole corpus.
    """
    shows = {case.label.case: _shown(case) for case in cases if case.label.todo is None}
    by_name = {case.label.case: case for case in cases if case.label.todo is None}
    weight = {name: sum(path.stat().st_size for path in _files(case).values()) for name, case in by_name.items()}
    wanted = set().union(*shows.values()) if shows else set()
    taken: list[str] = []
    missing = set(wanted)
    while missing:
        best = min(
            (name for name in shows if shows[name] & missing),
            key=lambda name: (weight[name] / len(shows[name] & missing), name),
        )
        taken.append(best)
        missing -= shows[best]
    for name in sorted(taken, key=lambda name: (-weight[name], name)):
        if set().union(*(shows[other] for other in taken if other != name)) == wanted:
            taken.remove(name)
    return [by_name[name] for name in sorted(taken)]


def _shown(case: Case) -> set[tuple[str, str]]:
    return {(check, one.verdict) for check, one in case.label.checks.items()}


def _files(case: Case) -> dict[str, Path]:
    """Return the files of a case by their name in the archive."""
    found = {
        f"corpus/{case.label.case}/{path.relative_to(case.bundle).as_posix()}": path
        for path in sorted(case.bundle.rglob("*"))
        if path.is_file()
    }
    return {**found, f"labels/{CASES}/{case.label.case}.yaml": case.file}


def unpacked(cases: Sequence[Case]) -> dict[str, bytes]:
    """Return what the archive of these cases holds: name to content."""
    return {name: path.read_bytes() for case in cases for name, path in _files(case).items()}


def pack(cases: Sequence[Case]) -> bytes:
    """Return the archive of these cases; the same cases give the same content."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in sorted(unpacked(cases).items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, compresslevel=9)
    return packed.getvalue()
