"""Loading labels: one by one, or the whole tree with the corpus it mirrors."""

from __future__ import annotations

import datetime
import hashlib
import re
from pathlib import Path
from typing import cast

from mcpdetect.errors import LabelError
from mcpdetect.labels.model import LABEL_SCHEMA, TRUTHS, Label
from mcpdetect.labels.reader import Reader

__all__ = ["CASES", "load_label", "load_labels"]

CASES = "cases"
"""Folder below the label root that mirrors the corpus; other trees beside it have forms of their own."""

_MANIFEST = "manifest.json"
# strace.log.zst:412, strace.log.zst:41+57, capture.pcap#3, capture.pcap@24
_PLACE = re.compile(r"(?P<file>[^\s:#@]++)[:#@][0-9]++(?:\+[0-9]++)?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# egress/direct-ip/c-tcp4
_CASE = re.compile(r"[a-z0-9-]++/[a-z0-9-]++/[a-z0-9-]++")
# egress.direct-ip
_CHECK = re.compile(r"[a-z0-9-]++\.[a-z0-9-]++")


def load_label(path: Path, *, bundle: Path | None = None) -> Label:
    """Read one label.

    Args:
        path: the file, ``.../<category>/<control>/<variant>.yaml``.
        bundle: the folder of its evidence; when given, the pinned hashes are compared with the files.

    Raises:
        LabelError: naming file, line, value and what to try.
    """
    reader = Reader(path)
    label = cast("Label", reader.read(Label))
    if label.schema != LABEL_SCHEMA:
        reader.fail(("schema",), f"is not a label this version reads ({LABEL_SCHEMA})", label.schema)
    parts = path.resolve().parts
    expected = "/".join((*parts[-3:-1], path.name.removesuffix(".yaml")))
    if not _CASE.fullmatch(label.case) or label.case != expected:
        reader.fail(("case",), "does not say where the file lies", label.case, hint=f"write {expected}")
    _check_verdicts(reader, label)
    for name, digest in label.evidence.items():
        if not _SHA256.fullmatch(digest):
            reader.fail(("evidence", name), "is no sha256 in hexadecimal", digest)
    if _MANIFEST not in label.evidence:
        reader.fail(("evidence",), f"must pin {_MANIFEST}", hint="it pins every other file of the bundle")
    for key, date in (("provenance", label.provenance.recorded), ("reviewed", label.reviewed.date)):
        try:
            datetime.date.fromisoformat(date)
        except ValueError:
            reader.fail((key, "recorded" if key == "provenance" else "date"), "is no ISO date", date)
    if bundle is not None:
        _check_evidence(reader, label, bundle)
    return label


def _check_verdicts(reader: Reader, label: Label) -> None:
    if label.subject not in label.checks:
        reader.fail(("checks",), f"says nothing about {label.subject}, which the case is about")
    for check, wanted in label.checks.items():
        place = ("checks", check)
        if not _CHECK.fullmatch(check):
            reader.fail(place, "is no check id", check, hint="write category.behaviour")
        detected = wanted.verdict == "detected"
        if {wanted.findings > 0, bool(wanted.places), wanted.level is not None} != {detected}:
            reader.fail(
                place,
                "a detected check has findings, places and a level, any other has none",
                f"{wanted.verdict}, {wanted.findings} findings, {len(wanted.places)} places, level {wanted.level}",
            )
        if wanted.limits and wanted.verdict in ("not_detected", "error"):
            reader.fail((*place, "limits"), "what hides something allows no such verdict", ", ".join(wanted.limits))
        if wanted.explained is not None and not detected:
            reader.fail((*place, "explained"), "a check without findings has nothing to explain")
        for key in ("limits", "explained"):
            words = getattr(wanted, key) or []
            if words != sorted(set(words)):
                reader.fail((*place, key), "must be sorted, none twice", ", ".join(words))
        for at, written in enumerate(wanted.places):
            if not _PLACE.fullmatch(written):
                reader.fail((*place, "places", str(at)), "is no place in a file", written, hint="write strace.log:41")
            if written in wanted.places[:at]:
                reader.fail((*place, "places", str(at)), "is given twice", written)
    right = TRUTHS[label.truth]
    if label.checks[label.subject].verdict != right:
        reader.fail(
            ("checks", label.subject, "verdict"),
            f"a case that is {label.truth} must be {right}",
            label.checks[label.subject].verdict,
            hint="a label states what is right; where the check is wrong today, say so in todo",
        )


def _check_evidence(reader: Reader, label: Label, bundle: Path) -> None:
    for name, digest in label.evidence.items():
        file = bundle / name
        if "/" in name or not file.is_file():
            reader.fail(("evidence", name), "is not in the bundle", str(file), cause="it was moved or never recorded")
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != digest:
            reader.fail(
                ("evidence", name),
                f"the bundle's file has sha256 {found}",
                digest,
                cause="it was recorded again or changed since the label was reviewed",
                hint="compare the label with the new evidence, then pin the new hash",
            )


def load_labels(root: Path, corpus: Path) -> list[Label]:
    """Read every label below ``root/cases`` and see that labels and bundles belong to each other.

    Args:
        root: the label root (``labels``).
        corpus: root of the bundles.

    Returns:
        The labels, sorted by case.

    Raises:
        LabelError: a label is wrong, a label has no bundle, a bundle no label, or a file is no label at all.
    """
    cases = root / CASES
    labels = []
    for path in sorted(cases.rglob("*")):
        if path.is_dir():
            continue
        relative = path.relative_to(cases)
        if path.suffix != ".yaml" or len(relative.parts) != 3:
            raise LabelError(
                "is no label",
                file=str(path),
                hint="a label is <category>/<control>/<variant>.yaml; remove anything else",
            )
        bundle = corpus / relative.with_suffix("")
        if not (bundle / _MANIFEST).is_file():
            raise LabelError(
                "labels a bundle that does not exist",
                file=str(path),
                value=str(bundle),
                hint="record the case, or remove the label",
            )
        labels.append(load_label(path, bundle=bundle))
    known = {label.case for label in labels}
    for manifest in sorted(corpus.rglob(_MANIFEST)):
        case = manifest.parent.relative_to(corpus).as_posix()
        if case not in known:
            raise LabelError(
                "no label says what this bundle shows",
                file=str(manifest),
                value=case,
                hint=f"write {cases / case}.yaml, or remove the bundle",
            )
    return sorted(labels, key=lambda label: label.case)
