"""Guests for real: the same verdicts as in namespaces, no way out, and a word for whatever goes wrong."""

import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from qemu.qmp import QMPClient

from controls.catalog import controls
from controls.recorder.errors import RecorderError
from controls.recorder.job import Job
from controls.recorder.microvm import guest as guests
from controls.recorder.microvm.frames import MAX_FRAME, Port, code_frame, unpack
from controls.recorder.microvm.guest import Guest, GuestLost
from controls.recorder.microvm.image import Image, image_folder
from controls.recorder.microvm.shell import MicroVM
from controls.recorder.prune import prune
from controls.recorder.record import record
from controls.verifying import differences
from mcpdetect.api import check
from mcpdetect.labels.loader import load_label

ROOT = Path(__file__).parents[2]


def problem() -> str | None:
    """Return what keeps this machine from running guests."""
    try:
        MicroVM().require(["gcc"])
    except RecorderError as error:
        return str(error)
    return None if image_folder().exists() else "there is no image yet (python -m controls image)"


PROBLEM = problem()
guest_needed = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot run guests here: {PROBLEM}")


def job(case: str) -> Job:
    return Job(case=case, argv=["/bin/true"], tag="0", options=[], folder="/")


def image() -> Image:
    folder = image_folder()
    return Image(folder / "vmlinuz", folder / "initramfs.gz", folder / "root.squashfs")


@pytest.fixture
def acting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guest]:
    """A guest that does as ``guest_acts`` says."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(code_frame())) as old, tarfile.open(fileobj=out, mode="w") as new:
        for info in old:
            content = old.extractfile(info)
            assert content is not None
            data = content.read()
            if info.name == "controls/recorder/microvm/inside.py":
                data = (Path(__file__).parent / "guest_acts.py").read_bytes()
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))
    monkeypatch.setattr(guests, "code_frame", out.getvalue)
    with Guest(image()) as guest:
        yield guest


def qemu_of(guest: Guest) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(b"qemu-system") and str(guest.folder).encode() in line:
                return int(entry.name)
    raise AssertionError("no qemu runs")


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


@guest_needed
def test_there_is_no_way_out_of_a_guest_and_qemu_itself_has_none(acting: Guest, tmp_path: Path) -> None:
    watch = tmp_path / "watch"
    programs = tmp_path / "programs"
    watch.mkdir()
    programs.mkdir()
    with pytest.raises(GuestLost, match="babbled: escape"):  # what it tells is no recording
        acting.capture(job("escape"), programs, watch, seconds=300.0)
    told = json.loads((watch / "captured.json").read_text())
    assert len(told["tried"]) == 94
    assert {key: value for key, value in told["tried"].items() if value == "reached"} == {}
    assert {told["tried"][f"{address}:53/SOCK_DGRAM"] for address in ("10.0.2.3", "1.1.1.1")} == {
        "Network is unreachable"
    }
    assert told["tried"]["name"] == "gaierror"
    assert (told["interfaces"], told["routes"], told["pci"]) == (["eth0", "eth1", "lo"], [], [])
    # Cards (1), disk (2), console (3) and entropy (4) (virtio 1.2 §5): no vsock (0x13), no shared folder (9, 0x1a).
    assert told["virtio"] == ["0x0001", "0x0001", "0x0002", "0x0003", "0x0004"]
    # The cards are joined with each other alone: with an address and a route there is still nobody, and no lease.
    assert len(told["wired"]) == 34
    assert {key: value for key, value in told["wired"].items() if value in ("reached", "nothing")} == {}
    assert (len(told["ports"]), told["disks"], told["root disk read-only"]) == (1, ["vda"], "1")
    # What it sent besides its answer lies nowhere.
    assert sorted(path.name for path in watch.iterdir()) == ["captured.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["programs", "watch"]

    pid = qemu_of(acting)
    status = status_of(pid)
    assert (status["Uid"], status["Groups"]) == ("65534\t65534\t65534\t65534", "")
    assert (status["CapEff"], status["CapBnd"]) == ("0" * 16, "0" * 16)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]


@guest_needed
def test_whatever_a_guest_does_ends_in_a_word_and_the_next_job_runs(acting: Guest, tmp_path: Path) -> None:
    ends = []
    for number, (act, seconds) in enumerate([("hang", 4.0), ("nonsense", 60.0), ("fill", 300.0), ("die", 60.0)]):
        watch = tmp_path / str(number)
        watch.mkdir()
        (tmp_path / "programs").mkdir(exist_ok=True)
        with pytest.raises(RecorderError) as caught:
            acting.capture(job(act), tmp_path / "programs", watch, seconds=seconds)
        ends.append(getattr(caught.value, "status", str(caught.value)))
        assert acting.alive is (act != "die")
    assert ends == ["hung", "babbled", "in the guest: [Errno 28] No space left on device", "panicked"]
    # Put back three times to the same moment.
    assert len(acting.timings["load"]) == 4


@guest_needed
def test_controls_come_to_the_same_verdicts_in_a_guest_with_every_channel_proved(tmp_path: Path) -> None:
    known = {control.id: control for control in controls()}
    with MicroVM() as shell:
        for case in ("egress/direct-ip/c-tcp4", "network/blocked/c-tcp4-output-drop"):
            control, variant = known[case.rpartition("/")[0]], case.rpartition("/")[2]
            bundle = record(control, control.variants[variant], tmp_path, probe=True, shell=shell)
            assert differences(bundle, load_label(ROOT / "labels/cases" / f"{case}.yaml")) == []
            manifest = json.loads((bundle / "manifest.json").read_text())
            observations = check(bundle).observations
            assert {item.proof for item in observations} == {"proved"}
            # tcpdump in the guest, and QEMU at the card; calls, names, files, and the rule's counter if there is one.
            assert [item.source for item in observations if item.channel == "packets"] == [
                name for name in (one["path"] for one in manifest["evidence"]) if name.startswith(("capture", "nic"))
            ]
            assert len(observations) == (5 if "direct" in case else 6)
        assert shell.boots == 1
        assert json.loads((bundle / "manifest.json").read_text())["host"]["shell"] == "microvm"


@guest_needed
def test_two_guests_side_by_side_do_not_meet_and_one_that_is_killed_leaves_the_other(tmp_path: Path) -> None:
    known = {control.id: control for control in controls()}

    def recorded(shell: MicroVM, case: str) -> Path:
        control, _, variant = case.rpartition("/")
        return record(known[control], known[control].variants[variant], tmp_path, probe=True, shell=shell)

    # On an open network, and where QEMU pulls the plug (set_link).
    cases = ("egress/direct-ip/c-tcp4", "network/blocked/c-tcp4-link-down")
    with MicroVM() as first, MicroVM() as second, ThreadPoolExecutor(2) as workers:
        guests_of_both = [shell.ready() for shell in (first, second)]
        pids = [qemu_of(guest) for guest in guests_of_both]
        assert len(set(pids)) == len({guest.folder for guest in guests_of_both}) == 2
        bundles = list(workers.map(recorded, (first, second), cases))
        for case, bundle in zip(cases, bundles, strict=True):
            assert differences(bundle, load_label(ROOT / "labels/cases" / f"{case}.yaml")) == []
        proofs = [{one.channel: one.proof for one in check(bundle).observations} for bundle in bundles]
        channels = dict.fromkeys(("syscalls", "packets", "dns", "files"), "proved")
        # No packet crosses a wire without a plug, so none can prove its capture.
        assert proofs == [channels, {**channels, "packets": "declared"}]

        threading.Timer(1.0, os.kill, (pids[1], signal.SIGKILL)).start()
        with pytest.raises(GuestLost, match="the guest ended") as lost:
            recorded(second, "network/blocked/c-tcp4-gateway-drop")
        assert lost.value.status == "ended"
        assert guests_of_both[0].alive
        assert recorded(first, cases[0]) == bundles[0]
        assert (first.boots, second.boots) == (1, 1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@guest_needed
def test_a_killed_recorder_takes_its_guest_along() -> None:
    source = (
        "from controls.recorder.microvm.shell import MicroVM\n"
        "with MicroVM() as shell:\n"
        "    print(shell.ready().folder, flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    ) as recorder:
        assert recorder.stdout is not None
        folder = recorder.stdout.readline().strip()
        guest = Guest(image())
        guest._folder = Path(folder)
        pid = qemu_of(guest)
        os.kill(recorder.pid, signal.SIGKILL)
    end = time.monotonic() + 10.0
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def test_an_interrupted_wait_for_an_answer_leaves_no_task_that_complains() -> None:
    class Silent:
        async def receive(self) -> bytes:
            await asyncio.sleep(600)
            return b""

        def listen(self, _: object) -> contextlib.nullcontext[None]:
            return contextlib.nullcontext()

    async def scenario() -> set[str]:
        guest = Guest(Image(Path("k"), Path("i"), Path("r")))
        guest._port = cast("Port", Silent())
        guest._qmp = cast("QMPClient", Silent())
        with pytest.raises(GuestLost, match=r"hung: no answer within 0\.01 s"):
            await guest._answer(0.01)
        waiting = asyncio.ensure_future(guest._answer(600.0))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()} if task is not None}

    assert asyncio.run(scenario()) == set()


def test_a_frame_that_announces_too_much_is_refused(tmp_path: Path) -> None:
    async def exchange() -> None:
        async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((MAX_FRAME + 1).to_bytes(8, "big"))
            await writer.drain()
            writer.close()

        async with await asyncio.start_unix_server(say, tmp_path / "port"):
            port = await Port.open(tmp_path / "port")
            with pytest.raises(ValueError, match=f"a frame of {MAX_FRAME + 1} bytes"):
                await port.receive()
            await port.close()

    asyncio.run(exchange())


def test_only_plain_files_of_a_guest_are_unpacked(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("./strace.log", "a/b", "/c", "..", "../d"):
            info = tarfile.TarInfo(name)
            info.size = 1
            archive.addfile(info, io.BytesIO(b"x"))
        device = tarfile.TarInfo("null")
        device.type = tarfile.CHRTYPE
        archive.addfile(device)
    unpack(out.getvalue(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["strace.log"]
    with pytest.raises(tarfile.TarError):
        unpack(b"no tar", tmp_path)


@guest_needed
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_boot_leaves_no_process_and_no_more_than_a_folder_to_prune(
    how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    # QEMU runs as nobody: pytest's own folders are closed to it.
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        command = [sys.executable, "-m", "controls", "record", "egress/direct-ip/c-tcp4", "--shell", "microvm"]
        with subprocess.Popen(
            [*command, "--out", f"{scratch}/out"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": scratch},
            stderr=subprocess.PIPE,
            text=True,
            # A job that a shell puts in the background starts with SIGINT ignored, and its children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as recorder:
            guest = Guest(image())
            end = time.monotonic() + 60.0
            while not (folders := list(Path(scratch).glob("mcpdetect-vm-*"))):
                assert time.monotonic() < end
                time.sleep(0.01)
            guest._folder = folders[0]
            pid = 0
            while not pid:
                assert time.monotonic() < end
                with contextlib.suppress(AssertionError):
                    pid = qemu_of(guest)
            recorder.send_signal(how)
            assert recorder.stderr is not None
            said = recorder.stderr.read()
            assert recorder.wait(60) == (-9 if how == signal.SIGKILL else 130)
        if how != signal.SIGKILL:
            assert said.splitlines()[-1:] == ["interrupted; what was under way is taken down"], said
            assert list(Path(scratch).iterdir()) == []
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        left = sorted(Path(scratch).glob("mcpdetect-*"))
        assert bool(left) is (how == signal.SIGKILL)
        monkeypatch.setattr(tempfile, "tempdir", scratch)
        monkeypatch.setenv(
            "MCPDETECT_CACHE", f"{scratch}/cache"
        )  # an image of another version is not this test's to remove
        # Others may be at work on the machine, and leave control groups of their own.
        assert [path for path in prune() if path.is_relative_to(scratch)] == left
        assert list(Path(scratch).glob("mcpdetect-*")) == []
