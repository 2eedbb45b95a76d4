"""Where a cell stands: on this machine, or in a guest. Both run the very same code on the very same job."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from controls.recorder.capture import capture
from controls.recorder.errors import RecorderError
from controls.recorder.job import Captured, Job
from controls.recorder.tools import require

__all__ = ["Netns", "Shell", "open_shell"]


class Shell(Protocol):
    """A place for cells."""

    @property
    def name(self) -> str:
        """Its name in manifests."""
        ...

    def require(self, programs: Sequence[str]) -> None:
        """Check that recording is possible here.

        Args:
            programs: what is needed beside the recorder's own tools.

        Raises:
            RecorderError: it is not; the message says what to install.
        """
        ...

    def capture(self, job: Job, programs: Path, watch: Path) -> Captured:
        """Record a job; see ``controls.recorder.capture.capture``."""
        ...


class Netns:
    """Namespaces of this machine: fast, needs root, shares the kernel with the target."""

    name = "netns"

    def require(self, programs: Sequence[str]) -> None:
        """Check for root and every tool."""
        require(programs)

    def capture(self, job: Job, programs: Path, watch: Path) -> Captured:
        """Record a job in namespaces of this machine."""
        return capture(job, programs, watch)


@contextlib.contextmanager
def open_shell(name: str, say: Callable[[str], None] = lambda text: None) -> Iterator[Shell]:
    """Give the shell of a name; a guest ends with it.

    Args:
        name: one of ``options.SHELLS``.
        say: told what takes long.

    Raises:
        RecorderError: a guest is wanted, and the package that drives it is not installed.
    """
    if name == "netns":
        yield Netns()
        return
    # Loaded where a guest is wanted: it brings asyncio and QEMU's protocol along.
    try:
        from controls.recorder.microvm.shell import MicroVM
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "qemu":
            raise
        raise RecorderError("guests are driven by a Python package that is not here (pip install qemu.qmp)") from error

    with MicroVM(say) as shell:
        yield shell
