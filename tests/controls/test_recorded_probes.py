"""Probes recorded for real: what they prove, and what a watcher that dies or a target that fights does to that."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from controls.catalog import Control, Variant, controls
from controls.recorder import difference
from controls.recorder.capture import _mark
from controls.recorder.cell import Cell
from controls.recorder.denial import DENIALS
from controls.recorder.probes import SOURCE, Probes, fresh_nonces, probe_program
from controls.recorder.record import record
from controls.recorder.room import Room
from controls.recorder.tools import missing
from controls.verifying import differences
from mcpdetect.api import check
from mcpdetect.engine.discovery import detectors
from mcpdetect.ingest.open import open_evidence_files
from mcpdetect.labels.loader import load_label
from mcpdetect.model.probe_acts import Phase, ProbeActs
from mcpdetect.score.ablation import channel_ablations, class_ablations, violations
from mcpdetect.score.calibration import calibrate
from mcpdetect.score.recording import Recording

ROOT = Path(__file__).parents[2]
PROBLEM = missing(["gcc"])
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")
KNOWN = {control.id: control for control in controls()}


def recorded(case: str, out: Path) -> Path:
    control, _, variant = case.rpartition("/")
    return record(KNOWN[control], KNOWN[control].variants[variant], out, probe=True)


@pytest.mark.parametrize(
    ("case", "proofs"),
    [
        ("egress/direct-ip/c-tcp4", {"syscalls": "proved", "packets": "proved", "dns": "proved", "files": "proved"}),
        (
            "network/blocked/c-tcp4-output-drop",
            {"syscalls": "proved", "packets": "proved", "dns": "proved", "firewall": "proved", "files": "proved"},
        ),
        (
            "network/blocked/c-tcp4-link-down",
            {"syscalls": "proved", "packets": "declared", "dns": "proved", "files": "proved"},
        ),
        (
            "secrets/canary-read/c-passed",
            {"syscalls": "proved", "packets": "proved", "dns": "proved", "files": "proved"},
        ),
        (
            "mcp/exfil-instruction/python-token-counts",
            {"syscalls": "proved", "packets": "proved", "dns": "proved", "mcp": "proved", "files": "proved"},
        ),
    ],
)
def test_probes_prove_channels_and_change_no_verdict(case: str, proofs: dict[str, str], tmp_path: Path) -> None:
    bundle = recorded(case, tmp_path)
    assert differences(bundle, load_label(ROOT / "labels/cases" / f"{case}.yaml")) == []
    assert {item.channel: item.proof for item in check(bundle).observations} == proofs


@pytest.mark.parametrize("denial", [name for name, one in DENIALS.items() if one.hook])
def test_a_program_that_does_nothing_is_silent_under_every_firewall_whose_counters_the_probes_prove(
    denial: str, tmp_path: Path
) -> None:
    folder = tmp_path / "made" / "up"
    folder.mkdir(parents=True)
    variant = Variant(name="true", truth="silent", why="made up", run=("/bin/true",), axes={}, expect={}, denial=denial)
    told = check(record(Control("made/up", folder, "nothing"), variant, tmp_path / "out", probe=True))
    (blocked,) = (one for one in told.checks if one.check == "network.blocked")
    assert (blocked.verdict, blocked.findings) == ("not_detected", [])
    proofs = {item.channel: item.proof for item in told.observations}
    # The probes' ports are none of those that a denial of some ports denies.
    firewall = "declared" if DENIALS[denial].only == "port" else "proved"
    channels = dict.fromkeys(("syscalls", "packets", "dns", "files"), "proved")
    assert proofs == {**channels, "firewall": firewall}


def test_a_look_that_does_not_see_every_file_proves_nothing_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(difference, "_MOST_FILES", 3)
    bundle = recorded("egress/direct-ip/c-tcp4", tmp_path)
    (files,) = (item for item in check(bundle).observations if item.channel == "files")
    assert (files.proof, [(loss.what, loss.detail) for loss in files.losses]) == (
        "declared",
        [("dropped", "there were more files than are looked at")],
    )


def test_where_no_mark_can_be_made_there_is_none(tmp_path: Path) -> None:
    def room(place: Path) -> Room:
        return cast("Room", SimpleNamespace(folders={tmp_path / "home": "/home/dev", place: "/tmp"}))

    acts = {phase: ProbeActs(phase, nonce) for phase, nonce in fresh_nonces().items()}
    (tmp_path / "tmp").mkdir()
    assert _mark(room(tmp_path / "tmp"), None, "before") is None
    made = _mark(room(tmp_path / "tmp"), Probes(acts), "before")
    assert made == tmp_path / "tmp" / Path(acts["before"].mark).name
    assert (made.read_bytes(), made.stat().st_mode & 0o777) == (b"", 0o600)
    # A full file system, or something of the target's in its place.
    assert _mark(room(tmp_path / "tmp"), Probes(acts), "before") is None
    assert _mark(room(tmp_path / "gone"), Probes(acts), "after") is None


def test_a_name_server_that_died_is_found_out_by_the_second_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Cell.probe

    def probe(cell: Cell, phase: Phase) -> None:
        if phase == "after":
            assert cell._dnsmasq is not None
            cell._dnsmasq.process.kill()
            cell._dnsmasq.process.wait()
        real(cell, phase)

    monkeypatch.setattr(Cell, "probe", probe)
    bundle = recorded("egress/direct-ip/c-tcp4", tmp_path)
    (dns,) = (item for item in check(bundle).observations if item.channel == "dns")
    assert [(loss.what, loss.touches) for loss in dns.losses if not loss.note] == [("channel-died", [])]
    assert dns.proof == "declared"


def test_a_target_that_leaves_children_behind_is_stopped_and_the_second_probe_still_runs(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "up"
    folder.mkdir(parents=True)
    (folder / "program.sh").write_text("trap '' TERM\n(trap '' TERM; while :; do sleep 1; done) &\nkill -9 1 $PPID\n")
    variant = Variant(
        name="sh",
        truth="silent",
        why="made up",
        run=("/bin/sh", "{control}/program.sh"),
        axes={"runtime": "sh"},
        expect={},
        seconds=3.0,
    )
    bundle = record(Control("made/up", folder, "nothing"), variant, tmp_path / "out", probe=True)
    assert json.loads((bundle / "manifest.json").read_text())["run"]["exit"] is None
    proofs = {item.channel: item.proof for item in check(bundle).observations}
    assert proofs == {"syscalls": "proved", "packets": "proved", "dns": "proved", "files": "proved"}


@pytest.mark.parametrize("program", ["c", "sh"])
def test_the_printed_probe_calibrates_any_sandbox(program: str, tmp_path: Path) -> None:
    probe = [str(probe_program())] if program == "c" else ["/bin/sh", str(SOURCE.with_suffix(".sh"))]

    def command(phase: str, nonce: str) -> str:
        return " ".join([*probe, phase, nonce])

    around = f"{command('before', '0123456789abcdef')}; true; {command('after', 'fedcba9876543210')}"
    log = tmp_path / "own.log"
    argv: Sequence[str] = ["unshare", "--net", "strace", "-f", "-ttt", "-yy", "-o", str(log), "sh", "-c", around]
    subprocess.run(argv, check=True, timeout=60)
    found = calibrate(lambda: open_evidence_files(strace=[log]))
    assert [(probe.phase, probe.nonce) for probe in found.probes] == [
        ("before", "0123456789abcdef"),
        ("after", "fedcba9876543210"),
    ]
    (own,) = found.files
    assert own.observation.proof == "proved"
    least = {"file.change", "file.open", "file.read", "process.start", "process.exec_failed", "socket.connect"}
    assert least | {"socket.open", "socket.send", "dns.query"} <= set(own.before) & set(own.after)
    assert found.denial == ["no-route"]
    sights = {item.check: item for item in found.checks}
    assert (sights["secrets.canary-read"].observable, sights["secrets.canary-read"].proof) == (True, "proved")
    assert not sights["mcp.exfil-instruction"].observable


def test_ablation_says_the_same_of_a_recording_with_probes_and_one_without(tmp_path: Path) -> None:
    control = KNOWN["egress/direct-ip"]
    said = []
    for probe in (True, False):
        bundle = record(control, control.variants["c-tcp4"], tmp_path / str(probe), probe=probe)
        recording = Recording(bundle, detectors())
        ablated = [*channel_ablations(recording), *class_ablations(recording)]
        assert len(ablated) == 28
        said.append(
            [{name: (one.verdict, len(one.findings)) for name, one in item.results.items()} for item in ablated]
        )
        assert violations("egress/direct-ip/c-tcp4", recording.whole, ablated) == []
    assert said[0] == said[1]
