"""The recorded corpus: every case says exactly what its label says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import mcpdetect
from controls.catalog import controls
from mcpdetect.ingest.manifest import load_manifest
from mcpdetect.labels.loader import load_labels
from mcpdetect.labels.model import Label
from mcpdetect.score.corpus import Case
from mcpdetect.score.promote_write import PROMOTED
from mcpdetect.score.runner import run_case

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "corpus"
LABELS = load_labels(ROOT / "labels", CORPUS)
CHECKS = mcpdetect.installed_detectors()
# A trace that was promoted to a case (mcpdetect label promote) has no control that could record it again.
RECORDED = [label for label in LABELS if label.provenance.control != PROMOTED]
by_case = pytest.mark.parametrize("label", LABELS, ids=lambda label: str(label.case))


def test_there_are_cases_of_every_truth_in_every_control() -> None:
    found = {(label.subject, label.truth) for label in LABELS}
    for subject in ("egress.direct-ip", "egress.unexplained-host", "network.blocked", "secrets.canary-read"):
        assert {truth for one, truth in found if one == subject} == {"fires", "silent", "blind"}
    assert {truth for one, truth in found if one == "mcp.exfil-instruction"} == {"fires", "silent"}


def test_controls_bundles_and_labels_are_the_same_cases() -> None:
    planted = {f"{control.id}/{name}" for control in controls() for name in control.variants}
    assert planted == {label.case for label in RECORDED}
    assert len(planted) == len(RECORDED) > 100


def test_a_label_repeats_what_its_control_was_built_to_be() -> None:
    planted = {
        f"{control.id}/{name}": (variant.truth, variant.axes)
        for control in controls()
        for name, variant in control.variants.items()
    }
    assert {label.case: (label.truth, label.axes) for label in RECORDED} == planted


def test_no_file_of_the_corpus_is_an_orphan() -> None:
    listed = set()
    for label in LABELS:
        bundle = load_manifest(CORPUS / label.case)
        names = [CORPUS / label.case / "manifest.json", *(item.path for item in bundle.evidence)]
        listed.update(names + ([bundle.expect] if bundle.expect else []))
        for entry in json.loads((CORPUS / label.case / "manifest.json").read_text()).get("truth", []):
            path = CORPUS / label.case / entry["path"]
            assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"], path
            listed.add(path)
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


MODES = {
    "output-drop": "output-drop",
    "output-reject": "output-reject",
    "output-reject-admin": "output-reject",
    "output-reject-reset": "output-reject",
    "input-drop": "input-drop",
    "gateway-drop": "dropped-on-path",
    "gateway-drop-dns-open": "dropped-on-path",
    "gateway-reject": "rejected-on-path",
    "gateway-reject-admin": "rejected-on-path",
    "gateway-reject-reset": "rejected-on-path",
    "no-route": "no-route",
    "unreachable": "route-unreachable",
    "prohibit": "route-prohibit",
    "blackhole": "route-blackhole",
    "link-down": "link-down",
    "dns-nxdomain": "name-service",
    "dns-servfail": "name-service",
    "dns-refused": "name-service",
}
"""How the network was denied to the word a finding must use for it."""
# A datagram that a local filter rejects gets EPERM, as one that it drops does: nothing tells them apart.
ALIKE = {"network/blocked/c-udp4-output-reject": "output-drop"}
DENIED = [label for label in LABELS if label.subject == "network.blocked" and label.truth == "fires"]


def test_every_way_of_denying_is_seen_in_some_case() -> None:
    assert {label.axes["denial"] for label in DENIED} == set(MODES)


@pytest.mark.parametrize("label", [one for one in DENIED if one.todo is None], ids=lambda label: str(label.case))
def test_the_way_of_denying_is_told_from_the_evidence(label: Label) -> None:
    result = mcpdetect.check(CORPUS / label.case, checks=["network.blocked"])
    wanted = ALIKE.get(label.case, MODES[label.axes["denial"]])
    assert [finding.facts["denial"] for finding in result.checks[0].findings] == [wanted]
