"""The guest's side of a recording: the same capture as anywhere, its errors told by name."""

from __future__ import annotations

from pathlib import Path

from controls.recorder.capture import capture
from controls.recorder.errors import RecorderError
from controls.recorder.job import Job
from controls.recorder.tools import require

__all__ = ["run"]


def run(folder: Path, watch: Path) -> None:
    """Run the job in ``folder`` and leave its files in ``watch``.

    Args:
        folder: holds ``job.json`` and the control's programs under ``programs``.
        watch: an empty folder.
    """
    try:
        require()
        capture(Job.of((folder / "job.json").read_text()), folder / "programs", watch).save(watch)
    except RecorderError as error:
        (watch / "failed").write_text(str(error))
