"""Targets that will not, and helpers that do not: every fault ends in a recorded status or an error that says why."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard

from controls.catalog import Control, Variant
from controls.recorder import cell as cell_module
from controls.recorder import programs as programs_module
from controls.recorder.cell import Cell
from controls.recorder.errors import RecorderError
from controls.recorder.job import Job
from controls.recorder.packing import pieces
from controls.recorder.programs import executed, packages_of, refused
from controls.recorder.record import record
from controls.recorder.tools import missing
from mcpdetect.api import check
from mcpdetect.ingest.manifest import load_manifest

ROOT = Path(__file__).parents[2]
PROBLEM = missing(["gcc"])
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")


def planned(folder: Path, source: str, name: str = "sh", **changes: Any) -> tuple[Control, Variant]:
    programs = folder / "made/up"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / "program.sh").write_text(source)
    settings: dict[str, Any] = {
        "name": name,
        "truth": "silent",
        "why": "made up",
        "run": ("/bin/sh", "{control}/program.sh"),
        "axes": {"runtime": "sh"},
        "expect": {},
        **changes,
    }
    return Control("made/up", programs, "nothing"), Variant(**settings)


def ran(folder: Path, source: str, probe: bool = False, **changes: Any) -> tuple[dict[str, Any], str, Path]:
    """Record a shell script; return the manifest, strace's log and the bundle."""
    bundle = record(*planned(folder, source, **changes), folder / "out", probe=probe)
    packed = bundle / "strace.log.zst"
    log = zstandard.ZstdDecompressor().stream_reader(packed.read_bytes()).read() if packed.exists() else b""
    text = (log or (bundle / "strace.log").read_bytes()).decode("utf-8", "backslashreplace")
    return json.loads((bundle / "manifest.json").read_text()), text, bundle


@pytest.mark.parametrize("probe", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "mode", "why"),
    [
        ("plain", b"#!/bin/sh\n", 0o644, r"EACCES \(Permission denied\)"),
        (
            "arm",
            b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0\xb7\0" + bytes(100),
            0o755,
            r"ENOEXEC \(Exec format error\)",
        ),
        ("lost", b"#!/usr/bin/no-such-interpreter\n", 0o755, r"ENOENT \(No such file or directory\); it, its interp"),
    ],
)
def test_a_program_that_cannot_start_is_an_error_that_says_why(
    tmp_path: Path, name: str, content: bytes, mode: int, why: str, probe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, variant = planned(tmp_path, "", run=(f"{{control}}/{name}",))
    (control.folder / name).write_bytes(content)
    # What is built is made executable: here it must stay as it is.
    real = Path.chmod
    monkeypatch.setattr(Path, "chmod", lambda path, bits: real(path, mode if path.name == name else bits))
    with pytest.raises(RecorderError, match=rf"made/up/sh: the program did not start: /srv/control/{name}: {why}"):
        record(control, variant, tmp_path / "out", probe=probe)
    assert not (tmp_path / "out").exists()


def test_why_a_program_did_not_start_is_read_from_arguments_and_results_alone() -> None:
    log = [
        b'7 17.5 execve("/a b", ["x"], 0x7 /* 1 var */) = -1 EACCES (Permission denied) <0.00001>\n',
        b'7 17.5 write(1, "execve(\\"/w\\", [], 0x0) = 0", 20) = 20\n',
        b'8 17.5 execve("/n\\303\\251", ["x"], 0x7 <unfinished ...>\n',
        b'execve("/first", [], 0x0) = 0\n',
    ]
    assert list(executed(log)) == ["/né".encode(), b"/first"]
    assert refused(log, "/a b") == "the program did not start: /a b: EACCES (Permission denied)"
    assert [refused(log, one) for one in ("/w", "/né", "/first", "/other")] == [None] * 4


def test_programs_by_names_that_no_client_can_bear_are_told_all_the_same(tmp_path: Path) -> None:
    source = r"""
cp /bin/true "$(printf '/tmp/\377x')"
"$(printf '/proc/self/root/tmp/\377x')"
p=/usr/bin
i=0
while [ $i -lt 190 ]; do p=$p/././././././.; i=$((i+1)); $p/true; done
i=0
while [ $i -lt 1000 ]; do i=$((i+1)); $p/./././$i/../true 2>/dev/null || /usr/../usr/bin/true; done
"""
    manifest, _, _ = ran(tmp_path, source, seconds=120.0)
    programs = {one["path"]: one["package"] for one in manifest["run"]["programs"]}
    assert manifest["run"]["exit"] == 0
    assert len(programs) == 194
    assert programs.pop("/proc/self/root/tmp/\\xffx") is None
    assert programs.pop("/bin/sh") == "dash"
    assert set(programs.values()) == {"coreutils"}


def test_a_package_is_asked_for_once_and_not_for_too_many_paths_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = subprocess.run

    def run(command: list[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(len(command))
        return real(command, **more)

    monkeypatch.setattr(programs_module, "_packages", {})
    monkeypatch.setattr(subprocess, "run", run)
    paths = ["/bin/sh", "/usr/bin/sh", *(f"/usr/bin/{'./' * at}cat" for at in range(60)), "/nowhere"]
    found = packages_of(paths)
    assert found == {path: "dash" if path.endswith("sh") else "coreutils" for path in paths[:-1]}
    assert len(asked) == 2
    assert packages_of(paths) == found
    assert len(asked) == 2


def test_a_client_of_packages_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        raise subprocess.TimeoutExpired(command, 120)

    monkeypatch.setattr(programs_module, "_packages", {})
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(RecorderError, match=r"dpkg-query: no answer within 120 s"):
        packages_of(["/bin/sh"])


def test_a_target_that_daemonizes_is_followed_and_stopped(tmp_path: Path) -> None:
    source = (
        "(setsid sh -c 'echo $$ >/tmp/daemon; trap \"\" HUP TERM; sleep 60' </dev/null >/dev/null 2>&1 &) &\nexit 3\n"
    )
    manifest, log, bundle = ran(tmp_path, source, seconds=1.0)
    assert manifest["run"]["exit"] is None
    assert manifest["evidence"][0]["complete"] is True
    assert re.search(r"setsid\(\) += \d+", log)
    assert "killed by SIGKILL" in log
    assert [one["path"] for one in json.loads((bundle / "files.json").read_text())["entries"]] == ["/tmp/daemon"]


def test_a_target_that_closes_its_standard_streams_is_recorded_to_its_end(tmp_path: Path) -> None:
    manifest, log, _ = ran(tmp_path, "exec 0<&- 1<&- 2<&-\n: >/tmp/after\nexit 4\n")
    assert (manifest["run"]["exit"], manifest["evidence"][0]["complete"]) == (4, True)
    assert '"/tmp/after"' in log


def test_a_target_cannot_kill_its_tracer(tmp_path: Path) -> None:
    source = "t=$(sed -n 's/TracerPid:[^0-9]*//p' /proc/self/status)\nkill -9 $t 1 -1\necho still here\n"
    manifest, log, _ = ran(tmp_path, source)
    # kill(1, SIGKILL) = -1 EPERM (Operation not permitted) <0.000005>
    assert re.search(r"kill\(1, SIGKILL\) += -1 EPERM", log)
    assert manifest["evidence"][0]["complete"] is True


def test_a_gigabyte_on_standard_output_is_borne(tmp_path: Path) -> None:
    manifest, _, bundle = ran(tmp_path, "dd if=/dev/zero bs=1M count=1024 2>/dev/null\n", seconds=60.0)
    assert (manifest["run"]["exit"], manifest["run"]["notes"]) == (0, [])
    assert sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file()) < 1 << 20


def test_a_server_that_floods_its_client_ends_in_a_status(tmp_path: Path) -> None:
    manifest, _, _ = ran(tmp_path, "exec yes flood\n", mcp=True, thorough=True, seconds=30.0)
    steps = [(one["name"], one["status"], one["detail"]) for one in manifest["run"]["session"]]
    assert steps[0][:2] == ("initialize", "flooded")
    assert re.fullmatch(r"the server sent more than (64 MB|200000 lines)", steps[0][2])
    assert manifest["run"]["notes"][0] == f"the session failed: initialize: {steps[0][2]}"


def test_a_server_that_hangs_is_stopped_and_its_session_says_so(tmp_path: Path) -> None:
    manifest, _, _ = ran(tmp_path, "trap '' TERM\nwhile :; do sleep 5; done\n", mcp=True, thorough=True, seconds=2.0)
    assert [(one["name"], one["status"]) for one in manifest["run"]["session"]] == [
        ("initialize", "no-answer"),
        ("shutdown", "no-answer"),
    ]
    assert manifest["run"]["exit"] is None


def test_a_name_server_that_dies_in_the_middle_is_a_channel_that_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Cell.__enter__

    def enter(cell: Cell) -> Cell:
        made = real(cell)
        assert cell._dnsmasq is not None
        threading.Timer(0.7, cell._dnsmasq.process.kill).start()
        return made

    monkeypatch.setattr(cell_module.Cell, "__enter__", enter)
    _, _, bundle = ran(tmp_path, "sleep 3\n", probe=True)
    (dns,) = (item for item in check(bundle).observations if item.channel == "dns")
    assert [loss.what for loss in dns.losses if not loss.note] == ["channel-died"]
    assert (dns.proof, dns.complete) == ("declared", False)


def test_packets_the_capture_lost_are_losses_of_the_bundle(tmp_path: Path) -> None:
    (tmp_path / "strace.log").write_bytes(b"7 +++ exited with 0 +++\n")
    (tmp_path / "capture.pcap").write_bytes(b"")
    (tmp_path / "dnsmasq.log").write_bytes(b"")
    job = Job("a/b/c", ["/bin/true"], "0", ["-f"], "/")
    for said, losses, complete in (
        ("9 packets captured\n3 packets dropped by kernel\n1 packet dropped by interface\n", [3, 1], True),
        ("9 packets captured\n0 packets dropped by kernel\n", [], True),
        ("listening on eth0\n", [], False),
    ):
        (tmp_path / "tcpdump.txt").write_text(said)
        found = pieces(job, tmp_path, dict.fromkeys(("strace", "tcpdump", "dnsmasq"), "x"))
        (packets,) = (piece for piece in found if piece.channel == "packets")
        assert ([loss.count for loss in packets.losses], packets.complete) == (losses, complete)


def test_a_capture_that_cannot_keep_up_is_a_loss_that_checks_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ended = Cell.__enter__, Cell.settle

    def enter(cell: Cell) -> Cell:
        made = began(cell)
        assert cell._tcpdump is not None
        cell._tcpdump.process.send_signal(signal.SIGSTOP)
        return made

    def settle(cell: Cell) -> None:
        assert cell._tcpdump is not None
        cell._tcpdump.process.send_signal(signal.SIGCONT)
        ended(cell)

    monkeypatch.setattr(Cell, "__enter__", enter)
    monkeypatch.setattr(Cell, "settle", settle)
    # More than its buffer holds.
    flood = 'perl -MSocket -e \'socket S, AF_INET, SOCK_DGRAM, 0; $to = sockaddr_in 9, inet_aton "203.0.113.9"; '
    manifest, _, bundle = ran(tmp_path, flood + 'send S, "x", 0, $to for 1 .. 1000\'\n')
    (packets,) = (one for one in manifest["evidence"] if one["channel"] == "packets")
    assert [(one["what"], one["detail"]) for one in packets["losses"]] == [
        ("dropped", "tcpdump: packets dropped by kernel")
    ]
    assert packets["losses"][0]["count"] > 100
    (seen,) = (item for item in check(bundle).observations if item.channel == "packets")
    assert [loss.count for loss in seen.losses if loss.what == "dropped"] == [packets["losses"][0]["count"]]


@pytest.mark.parametrize("size", ["600k", "1600k", "1800k"])
def test_a_full_disk_is_an_error_that_says_so(tmp_path: Path, size: str) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    script = "mount -t tmpfs -o size=" + size + ' small "$1" && export TMPDIR="$1" && shift && exec "$@"'
    command = [sys.executable, "-m", "controls", "record", "egress/direct-ip/c-tcp4", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(planted), *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    fill = done.stderr
    assert done.returncode == 1, fill
    assert "No space left on device" in fill
    assert "Traceback" not in fill
    assert not (tmp_path / "out/egress/direct-ip/c-tcp4").exists()


def test_two_recordings_at_once_do_not_meet(tmp_path: Path) -> None:
    found: dict[str, dict[str, Any]] = {}
    errors: list[BaseException] = []

    def one(name: str) -> None:
        try:
            source = f"echo {name} >/tmp/mine; sleep 1; ls /tmp\n"
            control, variant = planned(tmp_path / name, source, name=name)
            found[name] = json.loads((record(control, variant, tmp_path / "out", seed=1) / "files.json").read_text())
        except RecorderError as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    sizes = {name: [(entry["path"], entry["size"]) for entry in files["entries"]] for name, files in found.items()}
    assert sizes == {"first": [("/tmp/mine", 6)], "second": [("/tmp/mine", 7)]}
    bundles = [load_manifest(tmp_path / "out/made/up" / name) for name in sizes]
    digests = [{one.value for one in bundle.secrets.canaries} for bundle in bundles if bundle.secrets is not None]
    assert len(digests) == 2
    assert not digests[0] & digests[1]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    control, _ = planned(tmp_path, "sleep 60\n")
    (control.folder / "run.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom controls.catalog import Control, Variant\n"
        "from controls.recorder.record import record\n"
        "folder = Path(sys.argv[1])\n"
        "variant = Variant('sh', 'silent', 'x', ('/bin/sh', '{control}/program.sh'), {}, {}, seconds=60.0)\n"
        "record(Control('made/up', folder, 'x'), variant, folder / 'out')\n"
    )
    command = [sys.executable, str(control.folder / "run.py"), str(control.folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as recorder:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("mcpdetect-cell-*/record/strace.log")):
            assert time.monotonic() < end
            time.sleep(0.05)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(30) != 0
    assert list(tmp_path.glob("mcpdetect-*")) == []
    groups = [path for path in Path("/sys/fs/cgroup").glob("**/mcpdetect-cell-*") if f"-{recorder.pid}-" in path.name]
    assert groups == []
