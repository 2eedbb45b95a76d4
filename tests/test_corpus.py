"""The recorded corpus: every case says exactly what its label says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import mcpdetect
from controls.catalog import controls
from controls.recorder.denial import DENIALS
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
        listed.update([*names, *(path for path in (bundle.expect, bundle.baseline) if path is not None)])
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
    "output-drop-tcp": "output-drop",
    "output-reject": "output-reject",
    "output-reject-admin": "output-reject",
    "output-reject-host": "output-reject",
    "output-reject-no-route": "output-reject",
    "output-reject-reset": "output-reject",
    "input-drop": "input-drop",
    "gateway-drop": "dropped-on-path",
    "gateway-drop-dns-open": "dropped-on-path",
    "gateway-drop-tcp": "dropped-on-path",
    "gateway-drop-udp": "dropped-on-path",
    "gateway-drop-port": "dropped-on-path",
    "gateway-reject": "rejected-on-path",
    "gateway-reject-admin": "rejected-on-path",
    "gateway-reject-host": "rejected-on-path",
    "gateway-reject-no-route": "rejected-on-path",
    "gateway-reject-reset": "rejected-on-path",
    "no-route": "no-route",
    "no-interface": "no-route",
    "unreachable": "route-unreachable",
    "prohibit": "route-prohibit",
    "blackhole": "route-blackhole",
    "link-down": "link-down",
    "dns-nxdomain": "name-service",
    "dns-servfail": "name-service",
    "dns-refused": "name-service",
    "dns-silent": "name-service",
    "seccomp-socket": "policy",
    "seccomp-family": "policy",
    "seccomp-connect": "policy",
    "seccomp-send": "policy",
    "landlock": "policy",
}
"""How the network was denied to the word a finding must use for it."""
# A datagram that a local filter rejects gets EPERM, as one that it drops does: nothing tells them apart.
ALIKE = {"network/blocked/c-udp4-output-reject": "output-drop"}
DENIED = [label for label in LABELS if label.subject == "network.blocked" and label.truth == "fires"]
EVERY = "tcp-and-udp"
"""The axis of cases that try an address by TCP, an address by UDP and a host by name."""


def every_mode(runtime: str, denial: str) -> dict[str, str]:
    """Return the word for each of the three attempts that is blocked, by how the network was denied."""
    mode = MODES[denial]
    wanted = {"tcp": mode, "udp": mode, "name": mode}
    if mode == "name-service":
        return {"name": mode}
    if denial in ("seccomp-socket", "seccomp-family"):
        return {"socket": mode}
    if denial in ("output-drop-tcp", "gateway-drop-tcp", "gateway-drop-port", "seccomp-connect", "landlock"):
        del wanted["udp"]
    elif denial == "gateway-drop-udp":
        del wanted["tcp"]
    elif mode == "output-reject":
        # The datagram and the question, itself a datagram, get EPERM, as from a filter that drops.
        wanted |= {"udp": "output-drop", "name": "output-drop"}
    elif denial == "gateway-reject-reset":
        wanted["udp"] = "dropped-on-path"  # a reset is an answer to TCP alone; the rest is dropped
    elif denial == "input-drop" and runtime in ("go", "node"):
        del wanted["udp"]  # their waiting is in no call that names the socket: it is a limit
    elif denial == "seccomp-send" and runtime == "go":
        # It asks no name service daemon, whose refusal would tell the policy from a route.
        wanted = dict.fromkeys(wanted, "route-prohibit")
    return wanted


def test_every_way_of_denying_is_seen_in_some_case() -> None:
    assert {label.axes["denial"] for label in DENIED} == set(MODES) == set(DENIALS)
    every = {(label.axes["runtime"], label.axes["denial"]) for label in DENIED if label.axes["transport"] == EVERY}
    assert every == {(runtime, denial) for runtime in ("python", "node", "go", "c", "curl") for denial in DENIALS}


@pytest.mark.parametrize("label", [one for one in DENIED if one.todo is None], ids=lambda label: str(label.case))
def test_the_way_of_denying_is_told_from_the_evidence(label: Label) -> None:
    result = mcpdetect.check(CORPUS / label.case, checks=["network.blocked"])
    facts = [finding.facts for finding in result.checks[0].findings]
    if label.axes["transport"] != EVERY:
        wanted = ALIKE.get(label.case, MODES[label.axes["denial"]])
        assert [one["denial"] for one in facts] == [wanted]
        return
    found = {}
    for one in facts:
        literal = one.get("address") == "203.0.113.7"
        found[str(one["transport"]) if literal else "name" if {"host", "address"} & one.keys() else "socket"] = one[
            "denial"
        ]
    assert (len(facts), found) == (len(found), every_mode(label.axes["runtime"], label.axes["denial"]))
