"""How fast mcpdetect reads evidence, against yardsticks measured in the same run.

    python tests/benchmarks/run.py [--quick] [--peers PYTHON] [--write] [WORKLOAD...]

Each side runs in a process of its own, by turns, three times; the best counts, in processor seconds, which a busy
machine changes least. The sides in Python count without their start-up, programs with it.

``--peers`` names the interpreter of an environment that holds the Python peers (``python -m venv peers &&
peers/bin/pip install --no-deps dpkt strace-process-tree mcp-behave``). Without it, or without tshark, tcpdump,
capinfos or strace-log-merge, those rows are left out, and a line says so. The goals are for an idle core and a
gigabyte of input; small inputs and a busy machine miss some. ``--write`` keeps the numbers in ``results.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from workloads import WORKLOADS, Row, Setting

RESULTS = Path(__file__).with_name("results.json")
_PROGRAMS = ("strace", "strace-log-merge", "grep", "tshark", "tcpdump", "capinfos")


def shown(row: Row) -> str:
    """Return a row of the table."""
    goal = "" if row.goal is None else f"{'<=' if row.at_most else '>='} {row.goal:g}"
    verdict = {None: "", True: "met", False: "MISSED"}[row.met]
    times = " / ".join(f"{value:.3f}" for value in (row.ours, row.theirs) if value is not None)
    figure = f"{row.value:.2f} {row.unit}"
    return f"{row.workload:34} {row.against:36} {figure:>20} {goal:>8} {verdict:6} {times:>17}  {row.note}".rstrip()


def main() -> int:
    """Measure, print, and say with the exit code whether every goal was met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="*", help=", ".join(WORKLOADS))
    parser.add_argument("--quick", action="store_true", help="a fifth of the input")
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter that has dpkt, strace-process-tree, mcp-behave")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    unknown = set(options.workload) - set(WORKLOADS)
    if unknown:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    for name in _PROGRAMS:
        if shutil.which(name) is None:
            print(f"NOT INSTALLED: {name}; its rows are left out")
    if options.peers is None:
        print("NO --peers: dpkt, strace-process-tree and mcp-behave are left out")
    rows: list[Row] = []
    failed: list[str] = []
    print(f"{'workload':34} {'against':36} {'':>20} {'goal':>8} {'':6} {'seconds':>17}")
    with tempfile.TemporaryDirectory(prefix="mcpdetect-benchmarks-") as folder:
        setting = Setting(Path(folder), options.quick, options.peers)
        for name in options.workload or WORKLOADS:
            try:
                for row in WORKLOADS[name](setting):
                    rows.append(row)
                    print(shown(row), flush=True)
            except RuntimeError as error:
                failed.append(name)
                print(f"FAILED: {name}: {error}", flush=True)
    missed = [row for row in rows if row.met is False]
    print(f"{len(rows)} rows, {sum(row.met is True for row in rows)} goals met, {len(missed)} missed")
    if options.write:
        machine = {"machine": platform.machine(), "python": platform.python_version(), "quick": options.quick}
        RESULTS.write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
