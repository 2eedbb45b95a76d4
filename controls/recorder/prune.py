"""Clearing away what killed recordings left: temporary folders of dead recorders, and images of other versions."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from pathlib import Path

from controls.recorder.limits import CGROUPS
from controls.recorder.microvm.image import image_folder
from controls.recorder.probes import cache_folder

__all__ = ["prune"]

# mcpdetect-vm-4711-x8f3k2_1, as tools.scratch names them
_OURS = re.compile(r"mcpdetect-(?:cell|image|record|verify|vm)-(\d{1,10})-\w++", re.ASCII)


def prune() -> list[Path]:
    """Remove leftovers whose recorder is gone, and return them.

    Processes and namespaces need no clearing: the kernel ends them with the recorder.
    """
    gone = [path for path in cache_folder().glob("image-*") if path != image_folder()]
    for root in (Path(tempfile.gettempdir()), cache_folder()):
        for path in root.glob("mcpdetect-*"):
            match = _OURS.fullmatch(path.name)
            if match is not None and path.is_dir() and not Path("/proc", match[1]).exists():
                gone.append(path)
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    return sorted([*gone, *_groups()])


def _groups() -> list[Path]:
    """Remove control groups whose recorder is gone: they hold no process, and are folders that only rmdir takes."""
    gone = []
    for path in (*CGROUPS.glob("mcpdetect-cell-*"), *CGROUPS.glob("*/mcpdetect-cell-*")):
        match = _OURS.fullmatch(path.name)
        if match is not None and not Path("/proc", match[1]).exists():
            with contextlib.suppress(OSError):
                path.rmdir()
                gone.append(path)
    return gone
