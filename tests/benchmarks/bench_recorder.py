"""What a recording costs: ``python tests/benchmarks/bench_recorder.py [--cases N] [--microvm]`` (root).

Goals: in namespaces, less than 1.5 s a case over the traced program alone, on an open network; a guest put back and
ready in less than 1 s after its first boot. How many cases a minute each shell records is told without a goal. Wall
time is what users wait for, but a busy machine stretches it: processor time, the recorder's and that of all its
helpers, stands beside it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from controls.catalog import Control, Variant, controls
from controls.recorder.building import build
from controls.recorder.record import record
from controls.recorder.room import STRACE_OPTIONS
from controls.recorder.shells import Netns, Shell

CASES = ("egress/direct-ip/c-tcp4", "egress/direct-ip/python-tcp4", "mcp/exfil-instruction/python-token-counts")


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall and processor seconds of some work, its ended helpers included."""
    wall, before = time.monotonic(), os.times()
    work()
    after = os.times()
    return time.monotonic() - wall, sum(after[:4]) - sum(before[:4])


def planted(case: str) -> tuple[Control, Variant]:
    """Return a control and its variant."""
    name, _, variant = case.rpartition("/")
    control = next(one for one in controls() if one.id == name)
    return control, control.variants[variant]


def alone(control: Control, variant: Variant, folder: Path) -> tuple[float, float]:
    """Return what a case's program costs under the same strace outside of any cell, with no network at all."""
    programs = folder / "programs"
    shutil.copytree(control.folder, programs, dirs_exist_ok=True)
    for name in variant.build:
        build(programs / name, variant.link)
    program = [word.format(control=programs, home=folder, project=folder) for word in variant.run]
    command = ["unshare", "--net", "strace", *STRACE_OPTIONS, "-o", str(folder / "alone.log"), *program]
    none = subprocess.DEVNULL
    return min(
        timed(lambda: subprocess.run(command, check=False, stdin=none, stdout=none, stderr=none)) for _ in range(3)
    )


def cases(shell: Shell, folder: Path, number: int) -> None:
    """Record cases one after the other and print what each cost."""
    for case in CASES:
        control, variant = planted(case)
        record(control, variant, folder, probe=True, shell=shell)  # compilers and caches are warm from here on
        walls, processor = [], []
        for _ in range(number):
            wall, used = timed(partial(record, control, variant, folder, probe=True, shell=shell))
            walls.append(wall)
            processor.append(used)
        base = alone(control, variant, folder)
        goal = "  (goal: under 1.5 s)" if shell.name == "netns" else ""
        print(
            f"{shell.name:8} {case:41} {min(walls):6.2f} s wall, {min(processor):5.2f} s processor; over the program "
            f"alone {min(walls) - base[0]:5.2f} s wall, {min(processor) - base[1]:5.2f} s processor{goal}"
        )
        print(f"{shell.name:8} {case:41} {60 * number / sum(walls):6.1f} cases a minute", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5, help="recordings of each case (default: 5)")
    parser.add_argument("--microvm", action="store_true", help="in a guest too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mcpdetect-benchmarks-") as folder:
        print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors")
        cases(Netns(), Path(folder), options.cases)
        if options.microvm:
            # Loaded where a guest is wanted: it brings QEMU's protocol along.
            from controls.recorder.microvm.shell import MicroVM

            with MicroVM(lambda text: print(text, flush=True)) as guest:
                cases(guest, Path(folder), options.cases)
            # "ready" is from a case's start until the guest, put back, has answered.
            for name, values in guest.timings.items():
                print(f"guest    {name:30} {min(values):6.2f} s best, {max(values):6.2f} s worst of {len(values)}")
            print("         (goal: ready under 1 s)")


if __name__ == "__main__":
    main()
