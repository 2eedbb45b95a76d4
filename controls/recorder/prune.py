"""Clearing away what killed recordings left: folders of guests and cells, and images of other versions."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from controls.recorder.microvm.image import image_folder
from controls.recorder.probes import cache_folder

__all__ = ["prune"]

_PREFIXES = ("mcpdetect-vm-", "mcpdetect-", "mcpdetect-image-")


def prune() -> list[Path]:
    """Remove leftovers that no process uses any more, and return them.

    Processes and namespaces need no clearing: the kernel ends them with the recorder.
    """
    used = _used()
    candidates = [
        path
        for root in (Path(tempfile.gettempdir()), cache_folder())
        for prefix in _PREFIXES
        for path in root.glob(f"{prefix}*")
        if path.is_dir() and not any(str(path) in one for one in used)
    ]
    candidates += [path for path in cache_folder().glob("image-*") if path != image_folder()]
    gone = sorted(set(candidates))
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    return gone


def _used() -> list[str]:
    """Return what living processes hold: their command lines, mounts and open files, as far as they can be read."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        for name in ("cmdline", "mountinfo"):
            try:
                found.append((entry / name).read_text(errors="replace"))
            except OSError:
                continue
    return found
