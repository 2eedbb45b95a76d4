"""What a target may take of the machine: memory and processes by control groups, file sizes by rlimits.

Control groups of version 2 are used where their controllers are at hand, of version 1 where a machine still has those,
and rlimits where neither can be written; the manifest then says so, since an rlimit counts a user's processes together
and knows no memory that is shared.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

from controls.recorder.tools import scratch

__all__ = ["CGROUPS", "FILE_BYTES", "MEMORY_BYTES", "PROCESSES", "Limits"]

MEMORY_BYTES = 2 << 30
"""Most memory of the target and its children, files in the room's temporary folders included."""
PROCESSES = 1024
"""Most processes and threads of the target."""
FILE_BYTES = 1 << 30
"""Longest file it may write (RLIMIT_FSIZE)."""
CGROUPS = Path("/sys/fs/cgroup")
"""Where control groups are mounted."""


class Limits:
    """The control groups of one target.

    Args:
        memory: most bytes of memory.
        processes: most processes and threads.
        root: where control groups are mounted.

    Attributes:
        how: ``cgroup v2``, ``cgroup v1`` or ``rlimits``.
    """

    def __init__(self, memory: int = MEMORY_BYTES, processes: int = PROCESSES, root: Path = CGROUPS) -> None:
        self._memory = memory
        self._processes = processes
        self._groups: list[Path] = []
        self._sealed = False
        self._refused = 0
        self.how = "rlimits"
        try:
            if self._second(root):
                self.how = "cgroup v2"
            elif self._first(root):
                self.how = "cgroup v1"
        except OSError:
            self.close()

    def _make(self, parent: Path) -> Path:
        group = Path(tempfile.mkdtemp(prefix=scratch("cell"), dir=parent))
        self._groups.append(group)
        return group

    def _second(self, root: Path) -> bool:
        controllers = root / "cgroup.controllers"
        if not controllers.is_file() or not {"memory", "pids"} <= set(controllers.read_text().split()):
            return False
        (root / "cgroup.subtree_control").write_text("+memory +pids")
        group = self._make(root)
        (group / "memory.max").write_text(str(self._memory))
        (group / "pids.max").write_text(str(self._processes))
        with contextlib.suppress(OSError):  # a kernel without swap has no such file
            (group / "memory.swap.max").write_text("0")
        return True

    def _first(self, root: Path) -> bool:
        if not (root / "memory/memory.limit_in_bytes").exists() or not (root / "pids").is_dir():
            return False
        (self._make(root / "memory") / "memory.limit_in_bytes").write_text(str(self._memory))
        (self._make(root / "pids") / "pids.max").write_text(str(self._processes))
        return True

    @property
    def doors(self) -> list[Path]:
        """The files to which a process writes 0 to come under the limits."""
        return [group / "cgroup.procs" for group in self._groups]

    def prefix(self) -> list[str]:
        """Return the command that sets the rlimits for what follows it."""
        limits = [f"--fsize={FILE_BYTES}", "--core=0"]
        if self.how == "rlimits":
            limits += [f"--nproc={self._processes}", f"--data={self._memory}"]
        return ["/usr/bin/prlimit", *limits, "--"]

    def release(self, pid: int) -> None:
        """Take a process out of the limits: strace, which must live on when its target has used them up."""
        for group in self._groups:
            with contextlib.suppress(OSError):
                (group.parent / "cgroup.procs").write_text(str(pid))

    def seal(self, *, closed: bool = True) -> None:
        """Allow no more processes, so that a target that forks without end can be ended; or allow them again."""
        if closed and not self._sealed:
            self._refused = self._count(("pids.events",), "max")
            self._sealed = True
        for group in self._groups:
            with contextlib.suppress(OSError):
                if (group / "pids.max").exists():
                    (group / "pids.max").write_text("0" if closed else str(self._processes))

    def notes(self) -> list[str]:
        """Return what a reader of the bundle should know: limits by rlimits alone, and limits that were met."""
        found = []
        if self.how == "rlimits":
            found.append("control groups cannot be written here: memory and processes are limited by rlimits alone")
        if (killed := self._count(("memory.events", "memory.oom_control"), "oom_kill")) > 0:
            found.append(f"the memory limit of {self._memory >> 20} MB ended {killed} processes")
        if not self._sealed:
            self._refused = self._count(("pids.events",), "max")
        if self._refused > 0:
            found.append(f"the limit of {self._processes} processes refused {self._refused} more")
        return found

    def _count(self, names: tuple[str, ...], key: str) -> int:
        for group in self._groups:
            for name in names:
                with contextlib.suppress(OSError):
                    # oom_kill 3
                    for line in (group / name).read_text().splitlines():
                        words = line.split()
                        if len(words) == 2 and words[0] == key:
                            return int(words[1])
        return 0

    def close(self) -> None:
        """Remove the groups; what still runs in them was ended with its process namespace."""
        end = time.monotonic() + 2.0
        while self._groups:
            group = self._groups.pop()
            while True:
                try:
                    group.rmdir()
                except FileNotFoundError:
                    break
                except OSError:  # busy: the kernel has not yet buried the last process
                    if time.monotonic() > end:
                        break
                    time.sleep(0.02)
                else:
                    break
