"""One QEMU guest: booted once, saved, and put back to that moment before every case.

The guest's two network cards are joined with each other and nothing else (``nic.py``). QEMU has an empty network
namespace, no rights and no way to start programs, and the only channel is one virtio port to the recorder. Whatever
happens inside ends in a word: ``panicked``, ``hung``, ``ended`` (QEMU itself), ``babbled`` (what came over the port was
no answer).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from qemu.qmp import EventListener, QMPClient
from qemu.qmp.error import QMPError
from qemu.qmp.protocol import ConnectError
from qemu.qmp.qmp_client import ExecuteError

from controls.recorder.background import Background
from controls.recorder.denial import DENIALS
from controls.recorder.errors import RecorderError
from controls.recorder.job import Captured, Job
from controls.recorder.microvm.frames import Port, code_frame, job_frame, unpack
from controls.recorder.microvm.image import Image
from controls.recorder.microvm.nic import CAPTURE, INSIDE, MAX_LENGTH, MISSED, aligned, qemu_options
from controls.recorder.tools import environment, scratch

__all__ = ["Guest", "GuestLost"]

_QEMU = "qemu-system-x86_64"
_TAG = "ready"
_NOBODY = "65534"
_BOOT_SECONDS = 300.0
_READY_SECONDS = 60.0
_CONSOLE_LINES = 25
_PANIC = "Kernel panic"
# The clock must not be calibrated: on a busy host, without acceleration, that can take forever (kernel-parameters). Nor
# may its watchdog compare it with the timer's ticks: an emulated machine loses those, and the clock would count them.
# QEMU never lets the counter go back, so the guest's clock leaps when it is put back; no other watchdog shall mind.
_COMMAND_LINE = (
    "console=ttyS0 quiet panic=-1 tsc_early_khz={khz} lpj=4000000 tsc=reliable nowatchdog "
    "rcupdate.rcu_cpu_stall_suppress=1 random.trust_cpu=on mitigations=off"
)
_USUAL_KHZ = 2_500_000
# cpu MHz		: 2100.000
_MEGAHERTZ = re.compile(r"^cpu MHz\s*+:\s*+(\d{3,5})\.", re.MULTILINE)


def _clock_khz() -> int:
    """Return the rate of this machine's time stamp counter; it is the guest's too, whose clock would run wrong."""
    found = _MEGAHERTZ.search(Path("/proc/cpuinfo").read_text())
    return int(found[1]) * 1000 if found else _USUAL_KHZ


class GuestLost(RecorderError):
    """A guest that did not bring its recording home.

    Attributes:
        status: ``panicked``, ``hung``, ``ended`` or ``babbled``.
    """

    def __init__(self, status: str, text: str) -> None:
        super().__init__(f"the guest {status}: {text}")
        self.status = status


class Guest:
    """A guest; use it as a context manager.

    Args:
        image: what it boots from.
        accel: QEMU's accelerator, ``tcg`` or ``kvm``.
        memory: megabytes.
        boot_seconds: how long it may take to boot.

    Attributes:
        accel: the accelerator.
        timings: seconds that ``boot``, ``save`` and each ``load`` took, and from a case's start to a guest that is put
            back and answers (``ready``).
    """

    def __init__(
        self, image: Image, *, accel: str = "tcg", memory: int = 768, boot_seconds: float = _BOOT_SECONDS
    ) -> None:
        self._image = image
        self.accel = accel
        self._memory = memory
        self._boot_seconds = boot_seconds
        self._runner = asyncio.Runner()
        self._folder = Path()
        self._qemu: Background | None = None
        self._qmp: QMPClient | None = None
        self._port: Port | None = None
        self._jobs = 0
        self._dumping = False
        self.timings: dict[str, list[float]] = {"boot": [], "save": [], "load": [], "ready": []}

    def __enter__(self) -> Guest:
        with contextlib.ExitStack() as undo:
            undo.callback(self._end)
            self._runner.run(self._boot())
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def alive(self) -> bool:
        """Whether QEMU runs."""
        return self._qemu is not None and self._qemu.process.poll() is None

    @property
    def folder(self) -> Path:
        """Where its sockets, its saved state and its console lie while it lives."""
        return self._folder

    def console(self) -> str:
        """Return the last lines that the guest's kernel and agent wrote to the console, of a panic the first ones."""
        text = self._said()
        at = text.find(_PANIC)
        if at >= 0:
            return "\n".join(text[text.rfind("\n", 0, max(0, at - 1000)) + 1 :].splitlines()[:_CONSOLE_LINES])
        return "\n".join(text.splitlines()[-_CONSOLE_LINES:])

    def _said(self) -> str:
        path = self._folder / "console.log"
        raw = path.read_bytes()[-65536:] if path.exists() else b""
        return raw.decode("utf-8", "backslashreplace").replace("\r", "")

    def capture(self, job: Job, programs: Path, watch: Path, *, seconds: float) -> Captured:
        """Put the guest back to its ready moment and record one job.

        Args:
            job: what to record.
            programs: folder with the control's programs, built here.
            watch: an empty folder for what is recorded.
            seconds: how long the guest may take in all.

        Raises:
            GuestLost: the guest did not answer.
            RecorderError: it answered that the recording failed.
        """
        try:
            self._runner.run(self._capture(job, programs, watch, seconds))
        except GuestLost as error:
            if error.status in ("panicked", "ended") and self._qemu is not None:
                self._qemu.stop(signal.SIGKILL)
            raise
        failed = watch / "failed"
        if failed.exists():
            raise RecorderError(f"in the guest: {failed.read_text(errors='backslashreplace').strip()}")
        try:
            return Captured.load(watch)
        except (OSError, ValueError, TypeError) as error:
            raise GuestLost("babbled", f"{job.case}: {error}") from error

    def command(self) -> list[str]:
        """Return QEMU's command line, with the walls around it."""
        folder = self._folder
        return [
            *("unshare", "--net", "--"),
            *("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", *self._groups(), "--no-new-privs"),
            *("--inh-caps=-all", "--bounding-set=-all", "--pdeathsig=KILL", "--"),
            _QEMU,
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *qemu_options(),
            *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
            *("-M", "microvm,acpi=on", "-accel", self.accel, "-cpu", "host" if self.accel == "kvm" else "max"),
            *("-smp", "1", "-m", str(self._memory)),
            *(
                "-kernel",
                str(self._image.kernel),
                "-initrd",
                str(self._image.initramfs),
                "-append",
                _COMMAND_LINE.format(khz=_clock_khz()),
            ),
            *("-chardev", f"file,id=console,path={folder}/console.log", "-serial", "chardev:console"),
            *("-blockdev", f"driver=raw,node-name=root,read-only=on,file.driver=file,file.filename={self._image.root}"),
            *("-device", "virtio-blk-device,drive=root"),
            *("-blockdev", f"driver=qcow2,node-name=saved,file.driver=file,file.filename={folder}/saved.qcow2"),
            *("-device", "virtio-rng-device", "-device", "virtio-serial-device"),
            *("-chardev", f"socket,id=port,path={folder}/port,server=on,wait=off"),
            *("-device", "virtserialport,chardev=port,name=mcpdetect"),
            *("-qmp", f"unix:{folder}/qmp,server=on,wait=off"),
        ]

    def _groups(self) -> tuple[str, ...]:
        """Return setpriv's option for groups: only the one that may open /dev/kvm, where that is used."""
        if self.accel == "kvm":
            return (f"--groups={Path('/dev/kvm').stat().st_gid}",)
        return ("--clear-groups",)

    async def _boot(self) -> None:
        began = time.monotonic()
        self._folder = Path(tempfile.mkdtemp(prefix=scratch("vm")))
        saved = self._folder / "saved.qcow2"
        made = subprocess.run(
            ["qemu-img", "create", "-q", "-f", "qcow2", str(saved), "4G"],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        if made.returncode:
            raise RecorderError(f"qemu-img: {made.stderr.strip()}")
        for path in (self._folder, saved):
            os.chown(path, int(_NOBODY), int(_NOBODY))
        with (self._folder / "qemu.txt").open("wb") as said:
            self._qemu = Background("qemu", self.command(), stderr=said, stdout=said)
        self._port = await self._connect()
        self._qmp = await self._monitor()
        await self._expect(b"booted", self._boot_seconds)
        await self._port.send(code_frame())
        await self._expect(b"ready", self._boot_seconds)
        self.timings["boot"].append(time.monotonic() - began)
        await self._job("save", "snapshot-save", {"tag": _TAG, "vmstate": "saved", "devices": ["saved"]})

    async def _connect(self) -> Port:
        end = time.monotonic() + 20.0
        while True:
            try:
                return await Port.open(self._folder / "port")
            except OSError as error:
                if not self.alive or time.monotonic() > end:
                    said = (self._folder / "qemu.txt").read_text(errors="backslashreplace").strip()
                    raise RecorderError(f"qemu did not start: {said or error}") from error
                await asyncio.sleep(0.01)

    async def _monitor(self) -> QMPClient:
        """Connect to QEMU's monitor, which may listen a moment later than the port does."""
        end = time.monotonic() + 20.0
        while True:
            client = QMPClient("recorder")
            try:
                await client.connect(str(self._folder / "qmp"))
            except (ConnectError, OSError) as error:
                if not self.alive or time.monotonic() > end:
                    raise RecorderError(f"qemu's monitor cannot be reached: {error}") from error
                await asyncio.sleep(0.01)
            else:
                return client

    async def _expect(self, wanted: bytes, seconds: float) -> None:
        got = await self._answer(seconds)
        if got != wanted:
            raise GuestLost("babbled", f"{got[:80]!r} instead of {wanted!r}")

    async def _answer(self, seconds: float) -> bytes:
        """Wait for the guest's next frame, its end, or the end of patience."""
        if self._port is None or self._qmp is None:
            raise RecorderError("the guest was not started")
        events = EventListener(("SHUTDOWN", "RESET", "GUEST_PANICKED"))
        with self._qmp.listen(events):
            answer = asyncio.ensure_future(self._port.receive())
            gone = asyncio.ensure_future(events.get())
            try:
                done, _ = await asyncio.wait({answer, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                # Also when the recorder is interrupted: what is left waiting would complain of the port's end.
                answer.cancel()
                gone.cancel()
                await asyncio.gather(answer, gone, return_exceptions=True)
        if answer in done:
            try:
                return answer.result()
            except (asyncio.IncompleteReadError, OSError) as error:
                raise GuestLost(self._why(), self.console()) from error
            except ValueError as error:
                raise GuestLost("babbled", str(error)) from error
        if gone in done:
            raise GuestLost(self._why(), self.console())
        raise GuestLost("hung", f"no answer within {seconds:g} s\n{self.console()}")

    def _why(self) -> str:
        return "panicked" if _PANIC in self._said() else "ended"

    async def _job(self, name: str, command: str, arguments: dict[str, object]) -> None:
        if self._qmp is None:
            raise RecorderError("the guest was not started")
        began = time.monotonic()
        self._jobs += 1
        identity = f"{name}{self._jobs}"
        try:
            await self._qmp.execute(command, {"job-id": identity, **arguments})
            while True:
                jobs = await self._qmp.execute("query-jobs")
                mine = next((one for one in jobs if one["id"] == identity), None) if isinstance(jobs, list) else None
                if mine is None or mine["status"] == "concluded":
                    break
                await asyncio.sleep(0.005)
            if mine is not None and "error" in mine:
                raise RecorderError(f"qemu {command}: {mine['error']}")
            await self._qmp.execute("job-dismiss", {"id": identity})
        except (ExecuteError, QMPError, OSError) as error:
            raise GuestLost("ended" if not self.alive else "hung", f"{command}: {error}") from error
        self.timings[name].append(time.monotonic() - began)

    async def _capture(self, job: Job, programs: Path, watch: Path, seconds: float) -> None:
        began = time.monotonic()
        if self._port is not None:
            # A new connection: nothing that an earlier case may still say can be taken for this one's.
            await self._port.close()
        self._port = await self._connect()
        await self._job("load", "snapshot-load", {"tag": _TAG, "vmstate": "saved", "devices": ["saved"]})
        await self._port.send(b"")
        await self._expect(b"ready", _READY_SECONDS)
        self.timings["ready"].append(time.monotonic() - began)
        # Loading puts the link up again, as it was when the guest was saved.
        down = job.denial is not None and DENIALS[job.denial].link
        if down:
            await self._execute("set_link", {"name": INSIDE, "up": False})
        wire = self._folder / CAPTURE
        if self._dumping:
            await self._execute("object-del", {"id": "dump"})
        self._dumping = job.capture
        if job.capture:
            wire.unlink(missing_ok=True)
            dump = {"qom-type": "filter-dump", "id": "dump", "netdev": INSIDE, "file": str(wire), "maxlen": MAX_LENGTH}
            await self._execute("object-add", dump)
        await self._port.send(job_frame(job, programs))
        content = await self._answer(seconds)
        try:
            unpack(content, watch)
        except tarfile.TarError as error:
            raise GuestLost("babbled", str(error)) from error
        inner = watch / "capture.pcap"
        if job.capture and inner.exists():
            found = aligned(wire.read_bytes(), inner.read_bytes())
            if found is not None:
                (watch / CAPTURE).write_bytes(found[0])
                (watch / MISSED).write_text(str(found[1]))

    async def _execute(self, command: str, arguments: dict[str, object]) -> None:
        if self._qmp is None:
            raise RecorderError("the guest was not started")
        try:
            await self._qmp.execute(command, arguments)
        except (ExecuteError, QMPError, OSError) as error:
            raise GuestLost("ended" if not self.alive else "hung", f"{command}: {error}") from error

    def _end(self) -> None:
        try:
            self._runner.run(self._close())
        finally:
            self._runner.close()
            if self._qemu is not None:
                self._qemu.stop(signal.SIGKILL)
            if self._folder != Path():
                shutil.rmtree(self._folder, ignore_errors=True)

    async def _close(self) -> None:
        if self._port is not None:
            await self._port.close()
        if self._qmp is not None:
            # EOFError: QEMU had ended by itself.
            with contextlib.suppress(asyncio.TimeoutError, EOFError, OSError, QMPError):
                await asyncio.wait_for(self._qmp.disconnect(), 2.0)
