"""Running the sides of a comparison by turns, each in a process of its own, with processor time and peak memory.

Processor seconds, not those of the clock: other work on the machine changes them least.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Run", "Runner", "alternate", "program", "side"]

_SIDES = str(Path(__file__).with_name("sides.py"))


@dataclass(frozen=True)
class Runner:
    """How one side is run.

    Attributes:
        command: the program and its arguments.
        inner: it prints its own time (see ``sides.py``), start-up left out; else the whole process counts.
        files: most files it may have open, 0 for no limit.
    """

    command: list[str]
    inner: bool = False
    files: int = 0


@dataclass
class Run:
    """What running a side took: the best time, the peak of memory in MB (of our sides), and what they found."""

    seconds: float = float("inf")
    memory: float = 0.0
    count: int | None = None
    times: list[float] = field(default_factory=list)


def side(name: str, *files: Path, python: str = sys.executable, limit: int = 0) -> Runner:
    """Return a runner of a side in ``sides.py``."""
    return Runner([python, _SIDES, name, *map(str, files)], inner=True, files=limit)


def program(*command: str | Path, limit: int = 0) -> Runner:
    """Return a runner of a program, whose output is thrown away."""
    return Runner([str(part) for part in command], files=limit)


def _once(runner: Runner) -> tuple[float, float, int | None]:
    def limit() -> None:
        if runner.files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (runner.files, runner.files))

    with subprocess.Popen(
        runner.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,  # grep writing to /dev/null stops at the first match
        stderr=subprocess.PIPE if runner.inner else subprocess.DEVNULL,
        preexec_fn=limit if runner.files else None,
    ) as running:
        said = b""
        while running.stdout is not None and (block := running.stdout.read(1 << 20)):
            said = (said + block)[-(1 << 16) :]
        errors = running.stderr.read() if running.stderr is not None else b""
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if runner.inner:
        if running.returncode != 0:
            raise RuntimeError(f"{' '.join(runner.command)}\n{errors.decode('utf-8', 'replace')[-2000:]}")
        answer = json.loads(said)
        return float(answer["seconds"]), float(answer["memory"]), int(answer["count"])
    if running.returncode not in (0, 1):  # grep says 1 when it found nothing
        raise RuntimeError(f"{' '.join(runner.command)} ended with {running.returncode}")
    return used.ru_utime + used.ru_stime, 0.0, None


def alternate(sides: Mapping[str, Runner], turns: int = 3) -> dict[str, Run]:
    """Run every side ``turns`` times, by turns, so that a busy moment of the machine meets them all.

    Raises:
        RuntimeError: a side failed.
    """
    runs = {name: Run() for name in sides}
    for _ in range(turns):
        for name, runner in sides.items():
            seconds, memory, count = _once(runner)
            run = runs[name]
            run.times.append(round(seconds, 4))
            run.seconds, run.memory, run.count = min(run.seconds, seconds), max(run.memory, memory), count
    return runs
