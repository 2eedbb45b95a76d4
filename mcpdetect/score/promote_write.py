"""Writing a reduced bundle and the label of a case that was made from it."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcpdetect.contract import Detector
from mcpdetect.errors import ConfigError, LabelError
from mcpdetect.ingest.opener import open_evidence
from mcpdetect.labels.model import LABEL_SCHEMA, TRUTHS, ExpectedCheck, Label, Provenance, Review, Truth
from mcpdetect.model.result import CheckResult
from mcpdetect.score.cuts import Content
from mcpdetect.score.promote import Reduced
from mcpdetect.score.promote_pcapng import redacted_pcapng
from mcpdetect.score.promote_redact import Redaction, find_details
from mcpdetect.score.runner import as_expected, run_bundle

__all__ = ["PROMOTED", "Opinion", "discard", "draft_label", "label_of", "redaction_for", "same", "write_bundle"]

PROMOTED = "promoted"
"""What stands as the control in the provenance of a case that no control of ours made."""

_MOST = 256 * 1024 * 1024
_RECORD_HEADER = 16


@dataclasses.dataclass(slots=True)
class Opinion:
    """What a person says about a case.

    Attributes:
        why: what happens in it and why the verdict is right, or wrong.
        by: the person's role.
        truth: what it really is, where that is another thing than the check says today; None where the check is right.
        axes: what coverage counts it by.
    """

    why: str
    by: str
    truth: Truth | None = None
    axes: dict[str, str] = dataclasses.field(default_factory=dict)


def redaction_for(reduced: Reduced, words: list[bytes], seed: int | None) -> Redaction:
    """Return the replacement of every detail that the whole bundle gives away, and of more words.

    Args:
        reduced: the bundle.
        words: further names.
        seed: see ``Redaction``.
    """
    texts = [b"".join(content.parts) for content in reduced.contents.values()]
    texts.append((reduced.recording.bundle.root / "manifest.json").read_bytes())
    redaction = Redaction([*find_details(texts), *words], seed)
    redaction.learn(texts)
    # Headers give addresses away that stand nowhere as text; what is made of them here is thrown away.
    for name in (*reduced.contents, *reduced.whole):
        _content(reduced, redaction, name)
    return redaction


def write_bundle(reduced: Reduced, redaction: Redaction, case: str, corpus: Path) -> Path:
    """Write what is left of a bundle as a case of its own.

    Args:
        reduced: what is left.
        redaction: what personal details become.
        case: ``<category>/<control>/<variant>``.
        corpus: root of the bundles.

    Returns:
        The new bundle's folder.

    Raises:
        LabelError: it exists already.
    """
    folder = corpus / case
    if folder.exists():
        raise LabelError("exists already", file=str(folder), hint="choose another --name")
    bundle = reduced.recording.bundle
    data: dict[str, Any] = json.loads((bundle.root / "manifest.json").read_bytes())
    folder.mkdir(parents=True)
    entries = []
    for entry in data["evidence"]:
        raw = _content(reduced, redaction, entry["path"])
        if raw is None:
            continue
        entry["path"] = entry["path"].removesuffix(".zst").removesuffix(".gz")
        entry["bytes"], entry["sha256"] = len(raw), hashlib.sha256(raw).hexdigest()
        target = folder / entry["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(raw)
        entries.append(entry)
    data["evidence"] = entries
    if reduced.after < reduced.before:
        # What is left of the evidence no longer shows the probes, which would read as channels that died.
        data.pop("probes", None)
    if bundle.secrets is not None:  # derived from the old id, so the new manifest must write them down
        for planted, canary in zip(data["secrets"], bundle.secrets.canaries, strict=True):
            planted["value"] = canary.value
    for other in ("truth", "inputs"):  # of the whole recording, and no evidence
        data.pop(other, None)
    data["id"], data["control"], data["variant"] = case, case.rpartition("/")[0], case.rpartition("/")[2]
    data["run"].setdefault("notes", []).append(
        f"reduced from {reduced.before} to {reduced.after} lines and packets; names and private addresses replaced"
    )
    (folder / "manifest.json").write_bytes(redaction.text(json.dumps(data, indent=1).encode()) + b"\n")
    if bundle.expect is not None and data.get("expect"):
        target = folder / data["expect"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(redaction.text(bundle.expect.read_bytes()))
    return folder


def _content(reduced: Reduced, redaction: Redaction, name: str) -> bytes | None:
    """Return a file's new bytes, None when it was left out."""
    content = reduced.contents.get(name)
    if content is not None and content.item.format == "trace":
        return redaction.events(content.head + b"".join(content.parts) + content.tail)
    if content is not None and content.item.channel == "packets":
        return _packets(content, redaction)
    if content is not None:
        return redaction.log(b"".join(content.parts))
    if name not in reduced.whole:
        return None
    item = next(item for item in reduced.recording.bundle.evidence if item.name == name)
    with open_evidence(item.path, item.name) as stream:
        data = stream.read_exactly(_MOST)
    if item.channel == "packets":
        return redacted_pcapng(data, redaction) or redaction.binary(data)
    return redaction.binary(data) if item.channel == "binaries" else redaction.log(data)


def _packets(content: Content, redaction: Redaction) -> bytes:
    order = "little" if content.head[:1] in (b"\xd4", b"\x4d") else "big"
    link = int.from_bytes(content.head[20:24], order) & 0xFFFF  # type: ignore[arg-type]
    return content.head + b"".join(redaction.packet(part, _RECORD_HEADER, link) for part in content.parts)


def label_of(
    case: str, bundle: Path, detectors: Mapping[str, type[Detector]], opinion: Opinion, *, control: str
) -> Label:
    """Return the label of a bundle: what every check says today, and what a person says is right.

    Args:
        case: ``<category>/<control>/<variant>``.
        bundle: the bundle's folder.
        detectors: every installed check.
        opinion: the person's word.
        control: for the provenance.

    Raises:
        LabelError: no check is of this name, or it crashed.
        InputError: the evidence cannot be used.
    """
    subject = ".".join(case.split("/")[:2])
    said = {one.check: as_expected(one) for one in run_bundle(bundle, detectors).checks}
    if subject not in said:
        raise LabelError(
            "is about no installed check", file=case, value=subject, hint="a case is <category>/<check>/..."
        )
    today = next((truth for truth, verdict in TRUTHS.items() if verdict == said[subject].verdict), None)
    if today is None:
        raise LabelError("cannot be labelled: the check crashed", file=case, value=subject)
    todo = None
    truth = opinion.truth or today
    if truth != today:
        if truth == "fires":
            raise LabelError(
                "the tool cannot know which evidence the check should have found",
                file=case,
                hint="draft the label as it is, then write verdict, findings, places, level and todo by hand",
            )
        todo = f"{subject} says {said[subject].verdict.replace('_', ' ')} today: {opinion.why}"
        said[subject] = ExpectedCheck(TRUTHS[truth])
    data: dict[str, Any] = json.loads((bundle / "manifest.json").read_bytes())
    digest = hashlib.sha256((bundle / "manifest.json").read_bytes()).hexdigest()
    versions = {*(entry["tool"] for entry in data["evidence"]), *data["host"]["versions"].values()}
    return Label(
        schema=LABEL_SCHEMA,
        case=case,
        truth=truth,
        why=opinion.why,
        checks=dict(sorted(said.items())),
        axes=dict(opinion.axes) or {"origin": control},
        evidence={"manifest.json": digest},
        provenance=Provenance(control, sorted(versions), data["host"]["kernel"], data["recorded"]),
        reviewed=Review(opinion.by, datetime.datetime.now(datetime.UTC).date().isoformat()),
        todo=todo,
    )


def draft_label(case: str, corpus: Path, detectors: Mapping[str, type[Detector]], opinion: Opinion) -> Label:
    """Return the label of a bundle that lies in a corpus.

    Raises:
        ConfigError: there is no such bundle.
    """
    bundle = corpus / case
    if not (bundle / "manifest.json").is_file():
        raise ConfigError("there is no bundle here", file=str(bundle), hint="record the case first")
    control = json.loads((bundle / "manifest.json").read_bytes()).get("control") or case.rpartition("/")[0]
    return label_of(case, bundle, detectors, opinion, control=str(control))


def discard(folder: Path) -> None:
    """Remove a bundle that turned out to show something else."""
    shutil.rmtree(folder)


def same(before: CheckResult, after: CheckResult) -> bool:
    """Return whether two results say the same but for names: verdict, number of findings, levels."""
    levels = [sorted(finding.level for finding in one.findings) for one in (before, after)]
    return before.verdict == after.verdict and levels[0] == levels[1]
