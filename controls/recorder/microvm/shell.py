"""The microVM shell: cells in a guest that boots once and is put back to its ready moment for every case."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from controls.recorder.building import COMPILERS
from controls.recorder.errors import RecorderError
from controls.recorder.job import Captured, Job
from controls.recorder.microvm.guest import Guest, GuestLost
from controls.recorder.microvm.image import Image, build_image
from controls.recorder.probes import cache_folder
from controls.recorder.tools import PACKAGES, environment, version_of

__all__ = ["MicroVM", "usable_kvm"]

_SLOW = 4.0
"""How much longer a traced program may take in an emulated machine."""
_OVERHEAD_SECONDS = 120.0
_KVM_SECONDS = 20.0
_OLDEST_QEMU = (6, 0)
"""snapshot-save over QMP came with QEMU 6.0."""
_PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils"}


def usable_kvm(image: Image) -> bool:
    """Return whether a guest really boots with KVM here; the answer is kept until the next boot of this machine.

    A ``/dev/kvm`` may exist, even make a machine, and still hang it, so only a boot proves it.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK) or not Path("/dev/kvm").stat().st_mode & 0o060:
        return False
    now = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = cache_folder() / f"kvm-{now}"
    if not known.exists():
        try:
            with Guest(image, accel="kvm", boot_seconds=_KVM_SECONDS):
                answer = "yes"
        except RecorderError:
            answer = "no"
        known.write_text(answer)
    return known.read_text() == "yes"


class MicroVM:
    """A guest for one case after the other; use it as a context manager.

    Args:
        say: told what takes long.

    Attributes:
        boots: how often a guest was booted: once, and again after each that was lost.
    """

    name = "microvm"

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self._say = say
        self._guest: Guest | None = None
        self.boots = 0
        self.timings: dict[str, list[float]] = {name: [] for name in ("boot", "save", "load", "ready")}

    def __enter__(self) -> MicroVM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the guest."""
        if self._guest is not None:
            guest, self._guest = self._guest, None
            for name, values in guest.timings.items():
                self.timings[name].extend(values)
            guest.__exit__()

    def require(self, programs: Sequence[str]) -> None:
        """Check for QEMU, and for the compilers that build controls here."""
        path = environment()["PATH"]
        table = {**PACKAGES, **_PACKAGES}
        here = [*_PACKAGES, *(name for name in programs if name in COMPILERS.values())]
        absent = [name for name in here if shutil.which(name, path=path) is None]
        if absent:
            packages = " ".join(sorted({table[name] for name in absent}))
            raise RecorderError(f"not found: {', '.join(absent)} (apt-get install {packages})")
        if os.geteuid() != 0:
            raise RecorderError("the guest's process is put behind walls of its own, which needs root")
        # qemu-system-x86_64 7.2.22
        words = version_of("qemu-system-x86_64").rpartition(" ")[2].split(".")
        number = tuple(int(word) for word in words[:2] if word.isdigit())
        if len(number) == 2 and number < _OLDEST_QEMU:
            told = f"QEMU {'.'.join(words)} cannot save a guest over QMP; 6.0 or later is needed"
            raise RecorderError(f"{told} (apt-get install {_PACKAGES['qemu-system-x86_64']})")

    def ready(self) -> Guest:
        """Return the guest, booted if there is none.

        Raises:
            RecorderError: no image could be built, or no guest booted.
        """
        if self._guest is not None and not self._guest.alive:
            self.close()
        if self._guest is None:
            image = build_image(self._say)
            accel = "kvm" if usable_kvm(image) else "tcg"
            self._say(f"booting a guest ({accel})")
            guest = Guest(image, accel=accel)
            guest.__enter__()
            self._guest = guest
            self.boots += 1
        return self._guest

    def capture(self, job: Job, programs: Path, watch: Path) -> Captured:
        """Record a job in the guest; a guest that is lost is thrown away, and the next case gets a new one."""
        guest = self.ready()
        if guest.accel == "tcg":
            job = dataclasses.replace(job, seconds=job.seconds * _SLOW)
        try:
            return guest.capture(job, programs, watch, seconds=_OVERHEAD_SECONDS + 2 * job.seconds)
        except GuestLost:
            self.close()
            raise
