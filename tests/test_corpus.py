"""The recorded corpus: every case says exactly what its label says."""

from __future__ import annotations

from pathlib import Path

import pytest

import mcpdetect
from controls.catalog import controls
from mcpdetect.ingest.manifest import load_manifest
from mcpdetect.labels.loader import load_labels
from mcpdetect.labels.model import Label
from mcpdetect.score.corpus import Case
from mcpdetect.score.runner import run_case

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "corpus"
LABELS = load_labels(ROOT / "labels", CORPUS)
CHECKS = mcpdetect.installed_detectors()
by_case = pytest.mark.parametrize("label", LABELS, ids=lambda label: str(label.case))


def test_there_are_cases_of_every_truth_in_every_control() -> None:
    found = {(label.subject, label.truth) for label in LABELS}
    for subject in ("egress.direct-ip", "egress.unexplained-host", "network.blocked", "secrets.canary-read"):
        assert {truth for one, truth in found if one == subject} == {"fires", "silent", "blind"}
    assert {truth for one, truth in found if one == "mcp.exfil-instruction"} == {"fires", "silent"}


def test_controls_bundles_and_labels_are_the_same_cases() -> None:
    planted = {f"{control.id}/{name}" for control in controls() for name in control.variants}
    assert planted == {label.case for label in LABELS}
    assert len(planted) == len(LABELS) > 100


def test_a_label_repeats_what_its_control_was_built_to_be() -> None:
    planted = {
        f"{control.id}/{name}": (variant.truth, variant.axes)
        for control in controls()
        for name, variant in control.variants.items()
    }
    assert {label.case: (label.truth, label.axes) for label in LABELS} == planted


def test_no_file_of_the_corpus_is_an_orphan() -> None:
    listed = set()
    for label in LABELS:
        bundle = load_manifest(CORPUS / label.case)
        names = [CORPUS / label.case / "manifest.json", *(item.path for item in bundle.evidence)]
        listed.update(names + ([bundle.expect] if bundle.expect else []))
    present = {path for path in CORPUS.rglob("*") if path.is_file()}
    assert present == listed


@by_case
def test_a_label_speaks_of_every_installed_check(label: Label) -> None:
    assert set(label.checks) == set(mcpdetect.installed_detectors())


@by_case
def test_every_check_says_what_the_label_says(label: Label) -> None:
    outcome = run_case(Case("corpus", CORPUS / label.case, label, ROOT / f"labels/cases/{label.case}.yaml"), CHECKS)
    told = [f"{said.check}: expected {said.expected}, got {said.got}" for said in outcome.checks if not said.agrees]
    assert outcome.ok, f"{outcome.state}: {outcome.error or told or label.todo}"
    assert outcome.whole
