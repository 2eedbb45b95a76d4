"""How many faults in the code the labels would catch: ``python tests/mutation/run_mutants.py [--changed] [MODULE...]``.

The result is ``coverage/mutation.json``, one row a module, each with the hash of what it was made from. ``--changed``
measures only the modules whose row is missing or stale; without it and without a MODULE everything is measured.

Why no mutation tool from outside. mutmut 3 and cosmic-ray were looked at: both start the whole test command once a
mutant, stop at the first failure, and know tests but no labels. A question here is *which* labels tell a mutant and
which alone, so that every case must be asked; and reading the evidence again for each of 5,000 mutants would take
ten hours where this takes minutes.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2])]

from kills import ROOT, Kill, Lab, dotted, parsed  # noqa: E402
from mutants import essence  # noqa: E402

from mcpdetect.engine.discovery import detectors  # noqa: E402
from mcpdetect.score.corpus import Case, Corpus, load_cases  # noqa: E402

__all__ = ["OUTPUT", "SCHEMA", "checks_of", "fingerprint", "main", "targets"]

SCHEMA = "mcpdetect.mutation/1"
OUTPUT = ROOT / "coverage" / "mutation.json"
_RESTING = ("correlate",)
_LAB: Lab


def targets() -> list[Path]:
    """Return the modules whose mutants count: every detector and the correlation code."""
    found = [path for part in ("detectors", *_RESTING) for path in sorted((ROOT / "mcpdetect" / part).glob("*.py"))]
    return [path for path in found if path.name != "__init__.py"]


def _imports() -> dict[str, set[str]]:
    """Return which module of the package imports which, as dotted names, directly."""
    found: dict[str, set[str]] = {}
    for path in targets():
        names = {
            node.module
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module
        }
        found[dotted(path)] = names
    return found


def checks_of(path: Path) -> list[str]:
    """Return the checks that a module could change: those whose detector is it or imports it, however far."""
    edges = _imports()
    reached: dict[str, set[str]] = {}
    for check, detector in detectors().items():
        seen: set[str] = set()
        pending = [detector.__module__]
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending += edges.get(name, set())
        reached[check] = seen
    return [check for check, seen in reached.items() if dotted(path) in seen]


def fingerprint(path: Path, cases: Sequence[Case]) -> str:
    """Return the hash of what a row is made from: what the module does, and the labels of the checks it decides.

    A detector's row rests on the labels of its own category, that of other code on every label. Comments, layout and
    wording of docstrings change nothing.
    """
    categories = {check.partition(".")[0] for check in checks_of(path)}
    own = path.parent.name == "detectors"
    digest = hashlib.sha256(essence(path.read_text("utf-8")).encode())
    for case in cases:
        label = case.label
        if label.todo is None and (not own or label.case.partition("/")[0] in categories):
            said = {check: one for check, one in label.checks.items() if check.partition(".")[0] in categories}
            digest.update(repr((label.case, sorted(label.evidence.items()), sorted(said.items()))).encode())
    return digest.hexdigest()


def _measure(task: tuple[str, int, list[str], list[str]]) -> tuple[int, Kill]:
    name, number, wanted, checks = task
    path = ROOT / name
    tree, found = parsed(path)
    cases = [case for case in _LAB.cases if case.label.case in set(wanted)]
    return number, _LAB.kill(path, tree, found[number], cases, checks)


def _row(path: Path, lines: dict[str, dict[str, list[int]]], pool: Any) -> dict[str, Any]:
    name = path.relative_to(ROOT).as_posix()
    checks = checks_of(path)
    _, found = parsed(path)
    reached = {case: set(modules.get(str(path), ())) for case, modules in lines.items()}
    tasks = []
    for number, mutant in enumerate(found):
        span = set(range(mutant.span[0], mutant.span[1] + 1)) if mutant.span else None
        wanted = [case for case, seen in reached.items() if (seen & span if span is not None else seen)]
        tasks.append((name, number, wanted, checks))
    kills = dict(pool.imap_unordered(_measure, tasks, chunksize=4))
    by_check: dict[str, int] = Counter()
    labels: dict[str, list[int]] = {}
    survivors = []
    for number, mutant in enumerate(found):
        kill = kills[number]
        for check in {check for told in kill.by.values() for check in told}:
            by_check[check] += 1
        for case in kill.by:
            if case != "*":
                counted = labels.setdefault(case, [0, 0])
                counted[0] += 1
                counted[1] += len(kill.by) == 1
        if kill.how == "survived":
            survivors.append(
                {
                    "line": mutant.line,
                    "function": mutant.function,
                    "kind": mutant.kind,
                    "before": mutant.before,
                    "after": mutant.after,
                    "ran": kill.ran,
                }
            )
    return {
        "module": name,
        "inputs": fingerprint(path, _LAB.cases),
        "mutants": len(found),
        "killed": len(found) - len(survivors),
        "unreached": sum(1 for one in survivors if not one["ran"]),
        "how": dict(sorted(Counter(kill.how for kill in kills.values()).items())),
        "checks": {check: by_check.get(check, 0) for check in checks},
        "labels": dict(sorted(labels.items())),
        "survivors": survivors,
    }


def _summary(rows: Iterable[dict[str, Any]], cases: Sequence[Case]) -> dict[str, Any]:
    """Return the sums over rows: by check, by category, by label."""
    rows = list(rows)
    checks: dict[str, dict[str, Any]] = {}
    for row in rows:
        for check, killed in row["checks"].items():
            one = checks.setdefault(check, {"mutants": 0, "killed": 0, "own_mutants": 0, "own_killed": 0})
            one["mutants"] += row["mutants"]
            one["killed"] += killed
            if len(row["checks"]) == 1 and "/detectors/" in row["module"]:
                one["own_mutants"] += row["mutants"]
                one["own_killed"] += row["killed"]
    categories: dict[str, dict[str, int]] = {}
    for check, one in checks.items():
        total = categories.setdefault(check.partition(".")[0], dict.fromkeys(one, 0))
        for key, value in one.items():
            total[key] += value
    kills = {case.label.case: [0, 0] for case in cases}
    for row in rows:
        for case, (number, alone) in row["labels"].items():
            if case in kills:
                kills[case][0] += number
                kills[case][1] += alone
    return {
        "mutants": sum(row["mutants"] for row in rows),
        "killed": sum(row["killed"] for row in rows),
        "checks": dict(sorted(checks.items())),
        "categories": dict(sorted(categories.items())),
        "only_killer": {case: alone for case, (_, alone) in sorted(kills.items()) if alone},
        "nothing_new": sorted(case for case, (_, alone) in kills.items() if not alone),
    }


def _load(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of an earlier run by module, ``{}`` where there is none."""
    if not path.is_file():
        return {}
    data = json.loads(path.read_text("utf-8"))
    return {row["module"]: row for row in data["rows"]} if data.get("schema") == SCHEMA else {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; 1 when the labels already contradict the unchanged code."""
    global _LAB
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path, metavar="MODULE", help="measure these modules only")
    parser.add_argument("--changed", action="store_true", help="measure only what is missing or stale")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    cases = load_cases(Corpus("corpus", ROOT / "corpus", ROOT / "labels"), list(detectors()))
    rows = _load(options.output)
    names = {path.relative_to(ROOT).as_posix() for path in targets()}
    rows = {name: row for name, row in rows.items() if name in names}
    chosen = [path.resolve() for path in options.modules] or targets()
    judged = [case for case in cases if case.label.todo is None]
    if options.changed:
        chosen = [
            path
            for path in chosen
            if rows.get(path.relative_to(ROOT).as_posix(), {}).get("inputs") != fingerprint(path, judged)
        ]
    if chosen:
        _LAB = Lab(cases)
        every = sorted({check for path in chosen for check in checks_of(path)})
        if wrong := _LAB.baseline(every):
            print(f"the labels contradict the unchanged code: {wrong}", file=sys.stderr)
            return 1
        lines = _LAB.lines(chosen, every)
        _LAB.prepare()
        with multiprocessing.get_context("fork").Pool(options.processes) as pool:
            for path in chosen:
                row = _row(path, lines, pool)
                rows[row["module"]] = row
                print(f"{row['module']}: {row['killed']} of {row['mutants']} killed", flush=True)
                _write(options.output, rows, judged)
    else:
        print("every row is current")
        _write(options.output, rows, judged)
    return 0


def _write(path: Path, rows: dict[str, dict[str, Any]], cases: Sequence[Case]) -> None:
    ordered = [rows[name] for name in sorted(rows)]
    document = {"schema": SCHEMA, "labels": len(cases), "summary": _summary(ordered, cases), "rows": ordered}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
