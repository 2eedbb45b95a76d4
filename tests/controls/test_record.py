"""Recording for real: one control a category again, the verdicts of its label, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zstandard

from controls.catalog import Control, Variant, controls
from controls.labelling import outcome
from controls.recorder.capture import _clock_notes
from controls.recorder.errors import RecorderError
from controls.recorder.record import record
from controls.recorder.tools import missing
from mcpdetect.ingest.manifest import load_manifest
from mcpdetect.labels.loader import load_label

ROOT = Path(__file__).parents[2]
PROBLEM = missing(["gcc"])
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")


def children() -> list[int]:
    """Return the processes below this one, but Python's own for workers, which lives as long as this one does."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(pid) for pid in (task / "children").read_text().split()]
    # /usr/bin/python3 -c "from multiprocessing.resource_tracker import main;main(14)"
    own = b"multiprocessing.resource_tracker"
    return [pid for pid in found if own not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def made(folder: Path, source: str, **changes: object) -> tuple[Control, Variant]:
    """Return a control of one shell script."""
    folder = folder / "made" / "up"
    folder.mkdir(parents=True)
    (folder / "program.sh").write_text(source)
    settings: dict[str, object] = {
        "name": "sh",
        "truth": "silent",
        "why": "made up",
        "run": ("/bin/sh", "{control}/program.sh"),
        "axes": {"runtime": "sh"},
        "expect": {},
        **changes,
    }
    return Control("made/up", folder, "nothing"), Variant(**settings)  # type: ignore[arg-type]


CHOSEN = [
    "egress/direct-ip/c-tcp4",
    "egress/unexplained-host/c-undocumented",
    "network/blocked/c-tcp4-output-drop",
    "network/blocked/c-udp4-prohibit",
    "secrets/canary-read/c-passed",
    "mcp/exfil-instruction/python-forward-conversation",
]


CLOCKS = ("realtime_ns", "monotonic_ns")


def category(case: str) -> str:
    return case.partition("/")[0]


def cases() -> list[str]:
    """Return the chosen cases, and the first that fires of every category that none of them is of."""
    found = list(CHOSEN)
    for control in controls():
        if category(control.id) not in map(category, found):
            found += [f"{control.id}/{one.name}" for one in control.variants.values() if one.truth == "fires"][:1]
    return found


def test_every_category_is_recorded_again() -> None:
    assert set(map(category, cases())) == {category(control.id) for control in controls()}


@pytest.mark.parametrize("case", cases())
def test_a_control_recorded_again_comes_to_its_label(case: str, tmp_path: Path) -> None:
    name, _, variant = case.rpartition("/")
    control = next(one for one in controls() if one.id == name)
    bundle = record(control, control.variants[variant], tmp_path, seed=7)
    label = load_label(ROOT / "labels/cases" / f"{case}.yaml")
    found = {check: (one.verdict, one.findings, one.level) for check, one in outcome(bundle).items()}
    assert found == {check: (one.verdict, one.findings, one.level) for check, one in label.checks.items()}
    assert children() == []
    old = json.loads((ROOT / "corpus" / case / "manifest.json").read_text())
    new = json.loads((bundle / "manifest.json").read_text())
    channels = [[one["channel"] for one in manifest["evidence"]] for manifest in (new, old)]
    assert [one for one in channels[0] if one != "files"] == [one for one in channels[1] if one != "files"]
    kinds = [{(one["kind"], one["path"]) for one in manifest["secrets"]} for manifest in (new, old)]
    assert kinds[0] >= kinds[1]
    assert all(one["value"] is None and one["offset"] >= 0 for one in new["secrets"])
    assert not {one["sha256"] for one in new["secrets"]} & {one["sha256"] for one in old["secrets"]}


def test_a_case_recorded_twice_differs_in_times_nonces_and_the_evidence_itself(tmp_path: Path) -> None:
    control = next(one for one in controls() if one.id == "egress/direct-ip")
    bundles = [
        record(control, control.variants["c-tcp4"], tmp_path / name, seed=7, probe=True) for name in ("first", "second")
    ]
    names = [[path.relative_to(one).as_posix() for path in sorted(one.rglob("*"))] for one in bundles]
    assert names[0] == names[1]
    manifests = [json.loads((one / "manifest.json").read_text()) for one in bundles]
    assert manifests[0] != manifests[1]
    for manifest in manifests:
        del manifest["recorded"]
        assert [one.pop("at") for one in manifest["run"]["clocks"]] == ["opened", "closed"]
        for entry in (
            manifest["run"],
            *manifest["run"]["clocks"],
            *manifest["evidence"],
            *manifest["truth"],
            *manifest["probes"],
        ):
            for key in ("started_ns", "ended_ns", "begin_ns", "end_ns", "sha256", "bytes", "nonce", *CLOCKS):
                entry.pop(key, None)
    assert json.dumps(manifests[0]) == json.dumps(manifests[1])


@pytest.mark.parametrize(("passed", "said"), [(10.0, None), (10.06, None), (10.7, "+0.700 s"), (9.0, "-1.000 s")])
def test_a_clock_that_is_set_in_the_middle_is_a_note(passed: float, said: str | None) -> None:
    opened = {"at": "opened", "realtime_ns": 5 * 10**12, "monotonic_ns": 7 * 10**9}
    closed = {"at": "closed", "realtime_ns": 5 * 10**12 + round(passed * 10**9), "monotonic_ns": 17 * 10**9}
    found = [f"the machine's clock was set by {said} while the run was recorded"] if said else []
    assert _clock_notes(opened, closed) == found


def test_a_target_that_stays_is_stopped_and_its_log_ends_properly(tmp_path: Path) -> None:
    control, variant = made(tmp_path, "trap '' TERM\nwhile :; do sleep 1; done\n", seconds=0.5)
    bundle = load_manifest(record(control, variant, tmp_path / "out"))
    manifest = json.loads((bundle.root / "manifest.json").read_text())
    assert manifest["run"]["exit"] is None
    assert [(item.channel, item.declared.complete) for item in bundle.evidence] == [
        ("syscalls", True),
        ("packets", True),
        ("dns", True),
        ("files", True),
    ]
    assert children() == []


def test_the_room_shows_nothing_of_the_machine(tmp_path: Path) -> None:
    source = "ls -a / /home /home/dev /root /tmp /srv /run/record 2>&1\nid -u\nhostname\ncat /proc/mounts\n"
    control, variant = made(tmp_path, source)
    bundle = record(control, variant, tmp_path / "out")
    log = (bundle / "strace.log.zst").read_bytes()
    text = zstandard.ZstdDecompressor().stream_reader(log).read().decode()
    for secret in (str(ROOT), str(tmp_path), os.environ.get("HOME", "/root") + "/."):
        assert secret not in text
    assert '"1000\\n"' in text
    # openat(AT_FDCWD</home/dev/project>, "/run/record", O_RDONLY|...) = -1 EACCES (Permission denied) <0.000012>
    assert re.search(r'"/run/record", [^=\n]*= -1 EACCES', text)


def test_a_target_that_does_not_exist_is_an_error_with_what_was_said(tmp_path: Path) -> None:
    control, variant = made(tmp_path, "", run=("/bin/nothing-here",))
    with pytest.raises(RecorderError, match=r"(?s)made/up/sh: strace wrote nothing.*nothing-here"):
        record(control, variant, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert children() == []


def test_a_server_that_does_not_speak_leaves_nothing_behind(tmp_path: Path) -> None:
    control, variant = made(tmp_path, "echo broken >&2\n", mcp=True)
    with pytest.raises(RecorderError, match=r"(?s)made/up/sh: the server (closed its output|went away).*broken"):
        record(control, variant, tmp_path / "out")
    assert children() == []


def _below(pid: int) -> set[int]:
    found: set[int] = set()
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return found
    for child in map(int, below):
        found |= {child} | _below(child)
    return found


def _name(pid: int) -> str | None:
    """Return the name of a living process; a dead one that nobody has waited for yet is gone."""
    try:
        head, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")
    except OSError:
        return None
    return None if rest[0] in "ZX" else head.partition("(")[2]


def test_nothing_outlives_a_recorder_that_is_killed(tmp_path: Path) -> None:
    case = "network/blocked/c-tcp4-gateway-drop"
    command = [sys.executable, "-m", "controls", "record", case, "--out", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}) as recorder:
        end = time.monotonic() + 30
        below: set[int] = set()
        while "attempt" not in {_name(pid) for pid in below}:
            assert time.monotonic() < end
            below = _below(recorder.pid)
            time.sleep(0.01)
        recorder.send_signal(signal.SIGKILL)
    names = sorted(name for name in map(_name, below) if name)
    assert len(below) >= 8, names
    while names := sorted(name for name in map(_name, below) if name):
        assert time.monotonic() < end, names
        time.sleep(0.01)
