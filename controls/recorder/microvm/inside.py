"""The guest's side of a recording: the same capture as anywhere, answered before anything is cleared away."""

from __future__ import annotations

import compileall
import io
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from controls.recorder.capture import capture
from controls.recorder.client import warm_up
from controls.recorder.errors import RecorderError
from controls.recorder.internet.authority import authority_file
from controls.recorder.internet.process import load_one
from controls.recorder.job import Captured, Job
from controls.recorder.microvm.nic import cards
from controls.recorder.probes import cache_folder
from controls.recorder.programs import packages_of
from controls.recorder.tools import require, version_of

__all__ = ["prepare", "run"]


def prepare() -> None:
    """Do what every job needs and no job changes, so that the saved guest has it done."""
    require()
    # The agent's code comes without compiled copies, and a process that imports it would compile it again.
    compileall.compile_dir(Path(__file__).parents[2], quiet=2)
    warm_up()
    authority_file(cache_folder())
    load_one()
    for program in ("strace", "tcpdump", "dnsmasq", "nft", "python3", "node"):
        version_of(program)
    packages_of([f"/usr/bin/{name}" for name in ("bash", "cat", "curl", "env", "node", "python3", "sh")] + ["/bin/sh"])


def run(folder: Path, answer: Callable[[bytes], None]) -> None:
    """Run a job and answer with a tar of its files, or of a file ``failed`` that says why there are none.

    Args:
        folder: holds ``job.json``, the control's programs under ``programs``, the time ``now`` and random bytes
            ``seed``.
        answer: sends the answer; the guest is put back afterwards, so what the cell leaves does not matter.
    """
    # The clock stood still in the snapshot, and the random numbers would be the last guest's.
    time.clock_settime_ns(time.CLOCK_REALTIME, int((folder / "now").read_text()))
    Path("/dev/urandom").write_bytes((folder / "seed").read_bytes())
    watch = folder / "watch"
    watch.mkdir()

    def done(captured: Captured) -> None:
        captured.save(watch)
        answer(_packed(watch))

    try:
        capture(Job.of((folder / "job.json").read_text()), folder / "programs", watch, done, wire=cards())
    except (RecorderError, OSError) as error:  # OSError: a full disk above all
        answer(_told(str(error)))


def _packed(folder: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(folder, arcname=".")
    return out.getvalue()


def _told(why: str) -> bytes:
    out = io.BytesIO()
    content = why.encode("utf-8", "backslashreplace")
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("failed")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return out.getvalue()
