"""The files a target can write: its home and the temporary folders, on a file system of their own with a size limit.

It is mounted in a mount namespace that a keeper process holds, so that it cannot stay behind, and the recorder reaches
it through the keeper: before the target to plant, after it to see what has changed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from controls.recorder.background import Background, await_line

__all__ = ["FOLDERS", "WORLD_BYTES", "World"]

WORLD_BYTES = 512 << 20
"""Most bytes of all files a target can write."""
FOLDERS = {"home": "/home/dev", "tmp": "/tmp", "vartmp": "/var/tmp", "shm": "/dev/shm"}
"""Folder of the world -> where the target finds it."""

_MOUNT = r"""
set -eu
mount -t tmpfs -o "mode=755,nosuid,nodev,size=$2" world "$1"
cd "$1"
mkdir home tmp vartmp shm
chmod 1777 tmp vartmp shm
echo ready
exec sleep infinity
"""


class World:
    """The file system, mounted until ``close``.

    Args:
        place: an empty folder.
        size: most bytes of all files.
    """

    def __init__(self, place: Path, size: int = WORLD_BYTES) -> None:
        self.place = place
        self._keeper = Background(
            "room's files",
            ["unshare", "--mount", "--", "/bin/sh", "-c", _MOUNT, "world", str(place), str(size)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if self._keeper.process.stdout is not None:
            await_line(self._keeper.process.stdout, b"ready\n", "room's files")

    @property
    def enter(self) -> list[str]:
        """The command that enters the namespace in which it is mounted."""
        return ["nsenter", f"--mount=/proc/{self._keeper.pid}/ns/mnt", "--"]

    @property
    def root(self) -> Path:
        """Where it is found from outside."""
        return Path(f"/proc/{self._keeper.pid}/root{self.place}")

    def close(self) -> None:
        """Let it go."""
        self._keeper.stop()
