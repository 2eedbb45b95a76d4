"""What the commands do with one case, in whatever process: plain values in, plain values out."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from controls.auditing import Audit, audit
from controls.catalog import Control, Variant
from controls.recorder.record import record
from controls.recorder.resume import inputs_of, kept
from controls.recorder.shells import Shell
from controls.recorder.tools import scratch
from controls.verifying import differences
from mcpdetect.labels.loader import load_label

__all__ = ["AuditTask", "Recorded", "Task", "audit_target", "record_case", "verify_case"]


@dataclass(frozen=True, slots=True)
class Task:
    """One case to be recorded.

    Attributes:
        control, variant: which.
        out: root of the bundles; None for a folder that goes away.
        seed: what canaries are derived from.
        probe: run probes around the target.
        resume: keep a whole bundle of the same inputs.
        labels: root of the labels, for verifying.
    """

    control: Control
    variant: Variant
    out: Path | None
    seed: int = 0
    probe: bool = True
    resume: bool = False
    labels: Path = Path("labels")

    @property
    def case(self) -> str:
        """The case's id."""
        return f"{self.control.id}/{self.variant.name}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording: its bundle, the size of that, and whether it was there already."""

    folder: Path
    size: int
    kept: bool


@dataclass(frozen=True, slots=True)
class AuditTask:
    """One server to be audited.

    Attributes:
        target: the server, as ``audit`` takes it.
        out: root of the bundles.
        arguments: for the server, instead of those of the list.
        resume: keep whole bundles of the same inputs.
        record_install: record the installation too.
        scripts: install scripts run in that recording.
    """

    target: str
    out: Path
    arguments: tuple[str, ...] = ()
    resume: bool = False
    record_install: bool = False
    scripts: bool = False


def record_case(task: Task, shell: Shell) -> Recorded:
    """Record one case, unless that is not needed.

    Raises:
        RecorderError: the recording is worth nothing.
    """
    return _recorded(task, shell, task.out or Path("corpus"))


def _recorded(task: Task, shell: Shell, out: Path) -> Recorded:
    folder, old = out / task.case, False
    if task.resume:
        inputs = inputs_of(task.control, task.variant, seed=task.seed, probe=task.probe, where=shell.name)
        old = kept(folder, inputs)
    if not old:
        folder = record(task.control, task.variant, out, seed=task.seed, probe=task.probe, shell=shell)
    return Recorded(folder, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()), old)


def verify_case(task: Task, shell: Shell) -> list[str] | None:
    """Record one case and return what its verdicts say otherwise than its label, None where it has no label.

    Raises:
        RecorderError: the recording is worth nothing.
        McpDetectError: the label or the bundle cannot be read.
    """
    path = task.labels / "cases" / f"{task.case}.yaml"
    if not path.exists():
        return None
    label = load_label(path)
    if task.out is not None:
        return differences(_recorded(task, shell, task.out).folder, label)
    with tempfile.TemporaryDirectory(prefix=scratch("verify")) as folder:
        return differences(_recorded(task, shell, Path(folder)).folder, label)


def audit_target(task: AuditTask, shell: Shell) -> Audit:
    """Install, record and check one server; whatever breaks is a step of the result."""
    return audit(
        task.target,
        shell,
        task.out,
        arguments=task.arguments,
        resume=task.resume,
        record_install=task.record_install,
        scripts=task.scripts,
    )
