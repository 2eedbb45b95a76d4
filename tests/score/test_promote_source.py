"""What can be promoted: loose evidence files, a trace of events, a run with meta.json; each becomes a case."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

import mcpdetect
from mcpdetect.cli.main import main
from mcpdetect.errors import ConfigError, Malformed
from mcpdetect.ingest.tracefile.part import TracePart
from mcpdetect.labels.loader import load_labels
from mcpdetect.labels.model import Label
from mcpdetect.score.cuts import content_of
from mcpdetect.score.promote_redact import Redaction
from mcpdetect.score.promote_source import bundle_of
from mcpdetect.score.recording import Recording

ROOT = Path(__file__).parents[2]
CASE = ROOT / "corpus" / "egress" / "direct-ip" / "c-tcp4"
FILES = [CASE / "strace.log", CASE / "capture.pcap", CASE / "dnsmasq.log"]


def promoted(tmp_path: Path, *traces: Path, check: str = "egress.direct-ip", more: tuple[str, ...] = ()) -> Label:
    corpus, labels = tmp_path / "corpus", tmp_path / "labels"
    folders = ["--corpus", str(corpus), "--labels", str(labels), "--name", "one", "--seed", "1"]
    named = [str(trace) for trace in traces]
    assert main(["label", "promote", *named, "--check", check, "--why", "so", "--by", "tester", *folders, *more]) == 0
    (label,) = load_labels(labels, corpus)
    return label


def parsed(tmp_path: Path, *more: str) -> Path:
    trace = tmp_path / "trace.json"
    flags = ["--strace", str(FILES[0]), "--pcap", str(FILES[1]), "--dns", str(FILES[2])]
    assert main(["parse", *flags, *more, "-o", str(trace)]) == 0
    return trace


def test_loose_evidence_files_become_a_case(tmp_path: Path) -> None:
    label = promoted(tmp_path, *FILES)
    assert (label.truth, label.checks["egress.direct-ip"].places) == ("fires", ["strace.log:1"])
    manifest = json.loads((tmp_path / "corpus/egress/direct-ip/one/manifest.json").read_text())
    assert [(one["path"], one["channel"], one["format"], one["tool"]) for one in manifest["evidence"]] == [
        ("strace.log", "syscalls", "strace", "unknown")
    ]
    assert manifest["run"]["notes"] == [
        "the manifest was made from what the evidence shows; nobody declared how it was recorded",
        "reduced from 39 to 1 lines and packets; names and private addresses replaced",
    ]
    assert (manifest["host"]["kernel"], label.provenance.recorded) == ("unknown", "2026-11-30")


def test_a_trace_of_events_becomes_a_case_of_events(tmp_path: Path) -> None:
    label = promoted(tmp_path, parsed(tmp_path))
    folder = tmp_path / "corpus/egress/direct-ip/one"
    assert sorted(path.name for path in folder.iterdir()) == ["2-packets.trace.jsonl", "manifest.json"]
    head, event, tail = (folder / "2-packets.trace.jsonl").read_text().splitlines()
    assert json.loads(head)["schema"] == "mcpdetect.trace/1"
    assert json.loads(event)["kind"] == "net.flow"
    assert [one["source"] for one in json.loads(tail)["observations"]] == [str(FILES[1])]
    assert "10.200.0." not in event
    assert label.checks["egress.direct-ip"].places == [f"{FILES[1]}#3"]


def test_a_trace_says_the_same_as_the_evidence_it_was_made_from(tmp_path: Path) -> None:
    detectors = mcpdetect.installed_detectors()
    with bundle_of([parsed(tmp_path)]) as made:
        events = Recording(made, detectors).whole
    raw = Recording(CASE, detectors).whole
    assert {name: one.verdict for name, one in events.items() if one.findings} == {
        name: one.verdict for name, one in raw.items() if one.findings
    }
    assert [one.key for one in events["egress.direct-ip"].findings] == [
        one.key for one in raw["egress.direct-ip"].findings
    ]


def test_planted_secrets_are_named_beside_loose_evidence(tmp_path: Path) -> None:
    case = ROOT / "corpus" / "secrets" / "canary-read" / "c-hardlink"
    secrets = tmp_path / "secrets.yaml"
    secrets.write_text("files:\n  /home/dev/.ssh/id_ed25519: {kind: SSHKEY, value: CANARY-x}\n")
    label = promoted(tmp_path, case / "strace.log", check="secrets.canary-read", more=("--secrets", str(secrets)))
    assert label.checks["secrets.canary-read"].verdict == "detected"
    manifest = json.loads((tmp_path / "corpus/secrets/canary-read/one/manifest.json").read_text())
    assert [one["value"] for one in manifest["secrets"]] == ["CANARY-x"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["README.md"], "is no bundle, no trace and no evidence file"),
        (["labels"], "is no bundle, no trace and no evidence file"),
        (["corpus/egress/direct-ip/c-tcp4/strace.log"] * 2, "only one log of system calls can be promoted"),
        (["corpus/egress/direct-ip/c-tcp4/capture.pcap"] * 2, "two evidence files have one name"),
        (["corpus/egress/direct-ip/c-tcp4/manifest.json"], "is a bundle's manifest, no evidence"),
    ],
)
def test_what_is_no_evidence_of_one_run_is_told(names: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told), bundle_of([ROOT / name for name in names]):
        pass


def test_a_bundle_says_itself_what_was_planted(tmp_path: Path) -> None:
    with bundle_of([CASE]) as folder:
        assert folder == CASE
    with pytest.raises(ConfigError, match="a bundle says itself"), bundle_of([CASE], secrets=tmp_path / "s.yaml"):
        pass


def test_a_made_bundle_is_gone_afterwards() -> None:
    with bundle_of(FILES) as folder:
        assert (folder / "manifest.json").is_file()
    assert not folder.exists()


def test_a_part_is_about_one_evidence_file(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match="must be about one evidence file"):
        TracePart(parsed(tmp_path), "trace.json")


def test_a_trace_of_another_layout_is_left_whole(tmp_path: Path) -> None:
    with bundle_of([parsed(tmp_path)]) as folder:
        items = Recording(folder, mcpdetect.installed_detectors()).bundle.evidence
        counts = [len(found.parts) for item in items for found in [content_of(item)] if found is not None]
        assert counts == [8, 3, 0]
        items[0].path.write_text(json.dumps({"a": [1]}, indent=1))
        assert content_of(items[0]) is None


def test_bytes_of_events_are_searched_too() -> None:
    change = Redaction([b"alice"], seed=1)
    line = b'{"kind":"socket.send","data":"' + base64.b64encode(b"GET /home/alice 10.200.0.2") + b'","cut":false}\n'
    new = change.events(line)
    assert len(new) == len(line)
    held = base64.b64decode(json.loads(new)["data"])
    assert held == b"GET /home/" + change.names[b"alice"] + b" " + change.addresses[b"10.200.0.2"]
