"""How many faults in the code the labels would catch: ``python tests/mutation/run_mutants.py [--changed] [MODULE...]``.

The result is ``coverage/mutation.json``, one row a module, each with the hash of what it was made from: what the module
does, and the labels that were asked. ``--changed`` measures only the modules whose row is missing or stale; without it
and without a MODULE everything is measured. A label or a check that is newer than a row makes it no older: it can only
catch more.

Detectors and the correlation code have some 9,000 faults, and more than a thousand labels could tell each: a sample of
a module's faults (``--faults``, by a hash of the fault, so that it is the same tomorrow) is planted, and at most
``--labels`` of the labels that execute it are asked, those of the check's own cases first. ``--faults 0 --labels 0`` is
everything, for a machine with a night to spend. The code that reads evidence has some 25,000 faults, and each label
would have to be read anew for each: there the faults that no label executes are counted, of the others a smaller sample
(``--sample``) is planted, and at most ``--asked`` labels are asked until one tells. What survives may be caught by a
label that was not asked: all these numbers are lower bounds.

Why no mutation tool from outside. mutmut 3 and cosmic-ray were looked at: both start the whole test command once a
mutant, stop at the first failure, and know tests but no labels. A question here is *which* labels tell a mutant and
which alone, so that every case must be asked; and reading the evidence again for each of 5,000 mutants would take
ten hours where this takes minutes.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2])]

from kills import ROOT, Kill, Lab, Reached, dotted, parsed  # noqa: E402
from mutants import Mutant, essence  # noqa: E402

from mcpdetect.correlate.residues import Residues, spoils  # noqa: E402
from mcpdetect.data.residues import residues  # noqa: E402
from mcpdetect.engine.discovery import detectors  # noqa: E402
from mcpdetect.score.corpus import Case, Corpus, load_cases  # noqa: E402

__all__ = ["OUTPUT", "SCHEMA", "checks_of", "fingerprint", "load_rows", "main", "stale", "targets"]

SCHEMA = "mcpdetect.mutation/3"
OUTPUT = ROOT / "coverage" / "mutation.json"
_SAMPLE, _ASKED = 5, 4
_FAULTS, _LABELS = 40, 40
_SETS = ("asked_labels", "asked_checks")  # many rows have the same: each is written once
_READ = ("mutants", "unreached", "planted", "killed")
_LAB: Lab


def targets(*parts: str) -> list[Path]:
    """Return the modules whose mutants count: detectors, the correlation code, and the code that reads evidence.

    Args:
        parts: the packages asked for; all three without any.
    """
    wanted = parts or ("detectors", "correlate", "ingest")
    found = [path for part in wanted for path in sorted((ROOT / "mcpdetect" / part).rglob("*.py"))]
    return [path for path in found if path.name != "__init__.py"]


def _reads(path: Path) -> bool:
    return path.is_relative_to(ROOT / "mcpdetect" / "ingest")


@functools.cache
def _imports() -> dict[str, set[str]]:
    """Return which module of the package imports which, as dotted names, directly."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "mcpdetect").rglob("*.py")):
        found[dotted(path)] = {
            name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module
            for name in (node.module, *(f"{node.module}.{one.name}" for one in node.names))
        }
    return found


def checks_of(path: Path) -> list[str]:
    """Return the checks that a module could change: those whose detector is it or imports it, however far.

    What reads evidence could change all of them.
    """
    if _reads(path):
        return sorted(detectors())
    edges = _imports()
    reached: dict[str, set[str]] = {}
    for check, detector in detectors().items():
        seen: set[str] = set()
        pending = [detector.__module__]
        # The engine looks for residues wherever one could spoil the check's claim.
        if any(spoils(residue, detector.spec) for residue in residues()):
            pending.append(Residues.__module__)
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending += edges.get(name, set())
        reached[check] = seen
    return [check for check, seen in reached.items() if dotted(path) in seen]


def fingerprint(path: Path, cases: Mapping[str, Case], asked: Iterable[str], checks: Iterable[str]) -> str | None:
    """Return the hash of what a row is made from: what the module does, and what the labels say that were asked.

    Comments, layout and wording of docstrings change nothing.

    Args:
        path: the module.
        cases: the labelled cases by name.
        asked: names of the cases that were asked.
        checks: the checks that could have told a fault in it then.

    Returns:
        The hash, None where a case that was asked is no more.
    """
    could = set(checks)
    digest = hashlib.sha256(essence(path.read_text("utf-8")).encode())
    for name in sorted(asked):
        if name not in cases:
            return None
        label = cases[name].label
        said = {check: one for check, one in label.checks.items() if check in could}
        digest.update(repr((label.case, sorted(label.evidence.items()), sorted(said.items()))).encode())
    return digest.hexdigest()


def stale(rows: Mapping[str, dict[str, Any]], cases: Sequence[Case], paths: Iterable[Path]) -> list[Path]:
    """Return the modules whose row is missing, or was made from something else than there is now."""
    named = {case.label.case: case for case in cases if case.label.todo is None}
    found = []
    for path in paths:
        row = rows.get(path.relative_to(ROOT).as_posix())
        if row is None or row["inputs"] != fingerprint(path, named, row["asked_labels"], row["asked_checks"]):
            found.append(path)
    return found


def _measure(task: tuple[str, int, list[str], list[str]]) -> tuple[int, Kill]:
    name, number, wanted, checks = task
    path = ROOT / name
    tree, found = parsed(path)
    by_name = {case.label.case: case for case in _LAB.cases}
    cases = [by_name[case] for case in wanted]
    return number, _LAB.kill(path, tree, found[number], cases, checks, reading=_reads(path))


def _order(*words: object) -> str:
    """Return where something stands in an order that is random and the same every day."""
    return hashlib.sha256(repr(words).encode()).hexdigest()


def _tasks(path: Path, found: Sequence[Mutant], lines: Reached, options: argparse.Namespace) -> dict[int, list[str]]:
    """Return which mutants are planted, and for each the cases that execute its line, in the order of asking."""
    name = path.relative_to(ROOT).as_posix()
    reached = {case: set(modules.get(str(path), ())) for case, modules in lines.items()}
    wanted: dict[int, list[str]] = {}
    for number, mutant in enumerate(found):
        span = set(range(mutant.span[0], mutant.span[1] + 1)) if mutant.span else None
        wanted[number] = [case for case, seen in reached.items() if (seen & span if span is not None else seen)]
    if not _reads(path):
        chosen = sorted(wanted, key=lambda at: _order(name, *_mark(found[at])))
        chosen = sorted(chosen[: options.faults or None])
        own = {check.replace(".", "/") for check in checks_of(path)}

        def rank(case: str) -> tuple[bool, str]:
            return case.rpartition("/")[0] not in own, _order(name, case)

        return {at: sorted(wanted[at], key=rank)[: options.labels or None] for at in chosen}
    executed = [number for number, cases in wanted.items() if cases]
    if options.sample:
        executed.sort(key=lambda at: _order(name, *_mark(found[at])))
        executed = sorted(executed[: options.sample])
    return {at: sorted(wanted[at], key=lambda case: _order(name, case))[: options.asked] for at in executed}


def _mark(mutant: Mutant) -> tuple[object, ...]:
    """Return what makes a fault the same one tomorrow, wherever its line is then."""
    return mutant.function, mutant.kind, mutant.before, mutant.after


def _row(path: Path, lines: Reached, pool: Any, options: argparse.Namespace) -> dict[str, Any]:
    name = path.relative_to(ROOT).as_posix()
    checks = checks_of(path)
    _, found = parsed(path)
    wanted = _tasks(path, found, lines, options)
    tasks = [(name, number, cases, checks) for number, cases in wanted.items()]
    kills = dict(pool.imap_unordered(_measure, tasks, chunksize=4))
    by_check: dict[str, int] = Counter()
    labels: dict[str, list[int]] = {}
    survivors = []
    for number, mutant in enumerate(found):
        if number not in kills:
            continue
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
    cases = {case.label.case: case for case in _LAB.cases}
    asked = sorted({case for names in wanted.values() for case in names})
    row = {
        "module": name,
        "inputs": fingerprint(path, cases, asked, checks),
        "asked_labels": asked,
        "asked_checks": checks,
        "mutants": len(found),
        "planted": len(kills),
        "killed": len(kills) - len(survivors),
        "how": dict(sorted(Counter(kill.how for kill in kills.values()).items())),
        "survivors": survivors,
    }
    if _reads(path):
        reached = {case: set(modules.get(str(path), ())) for case, modules in lines.items()}
        row["unreached"] = sum(1 for mutant in found if not _executed(mutant, reached.values()))
        return row
    row["unreached"] = sum(1 for one in survivors if not one["ran"])
    row["checks"] = {check: by_check.get(check, 0) for check in checks}
    row["labels"] = dict(sorted(labels.items()))
    return row


def _executed(mutant: Mutant, lines: Iterable[set[int]]) -> bool:
    span = range(mutant.span[0], mutant.span[1] + 1) if mutant.span else None
    return any(bool(seen) if span is None else not seen.isdisjoint(span) for seen in lines)


def _summary(rows: Iterable[dict[str, Any]], cases: Sequence[Case]) -> dict[str, Any]:
    """Return the sums over rows: by check, by category, by label, and by format for what reads evidence."""
    every = list(rows)
    rows = [row for row in every if "checks" in row]
    checks: dict[str, dict[str, Any]] = {}
    for row in rows:
        for check, killed in row["checks"].items():
            one = checks.setdefault(check, {"mutants": 0, "killed": 0, "own_mutants": 0, "own_killed": 0})
            one["mutants"] += row["planted"]
            one["killed"] += killed
            if len(row["checks"]) == 1 and "/detectors/" in row["module"]:
                one["own_mutants"] += row["planted"]
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
        "mutants": sum(row["planted"] for row in rows),
        "killed": sum(row["killed"] for row in rows),
        "checks": dict(sorted(checks.items())),
        "categories": dict(sorted(categories.items())),
        "only_killer": {case: alone for case, (_, alone) in sorted(kills.items()) if alone},
        "nothing_new": sorted(case for case, (_, alone) in kills.items() if not alone),
        "reading": _reading([row for row in every if "checks" not in row]),
    }


def _reading(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the sums over what reads evidence, by format: the folder or the module below ``ingest``."""
    formats: dict[str, dict[str, int]] = {}
    for row in rows:
        name = row["module"].removeprefix("mcpdetect/ingest/").partition("/")
        one = formats.setdefault(name[0] if name[1] else "shared", dict.fromkeys(_READ, 0))
        for key in _READ:
            one[key] += row[key]
    return dict(sorted(formats.items()))


def load_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of an earlier run by module, ``{}`` where there is none."""
    if not path.is_file():
        return {}
    data = json.loads(path.read_text("utf-8"))
    if data.get("schema") != SCHEMA:
        return {}
    return {row["module"]: {**row, **{key: data[key][row[key]] for key in _SETS}} for row in data["rows"]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; 1 when the labels already contradict the unchanged code."""
    global _LAB
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path, metavar="MODULE", help="measure these modules only")
    parser.add_argument("--changed", action="store_true", help="measure only what is missing or stale")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--faults", type=int, default=_FAULTS, help="faults of another module; 0: all of them")
    parser.add_argument("--labels", type=int, default=_LABELS, help="labels asked about one of those; 0: all of them")
    parser.add_argument("--sample", type=int, default=_SAMPLE, help="faults of a module that reads; 0: all of them")
    parser.add_argument("--asked", type=int, default=_ASKED, help="labels asked about a fault of what reads")
    options = parser.parse_args(arguments)
    cases = load_cases(Corpus("corpus", ROOT / "corpus", ROOT / "labels"), list(detectors()))
    names = {path.relative_to(ROOT).as_posix() for path in targets()}
    rows = {name: row for name, row in load_rows(options.output).items() if name in names}
    chosen = [path.resolve() for path in options.modules] or targets()
    judged = [case for case in cases if case.label.todo is None]
    if options.changed:
        chosen = stale(rows, cases, chosen)
    if not chosen:
        print("every row is current")
        _write(options.output, rows, judged)
        return 0
    _LAB = Lab(cases)
    every = sorted({check for path in chosen for check in checks_of(path)})
    if wrong := _LAB.baseline(every):
        print(f"the labels contradict the unchanged code: {wrong}", file=sys.stderr)
        return 1
    halves = [path for path in chosen if not _reads(path)], [path for path in chosen if _reads(path)]
    lines = [_LAB.lines(half, every, reading=at == 1) if half else {} for at, half in enumerate(halves)]
    _LAB.prepare()
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        for path in (*halves[0], *halves[1]):
            row = _row(path, lines[_reads(path)], pool, options)
            rows[row["module"]] = row
            print(f"{row['module']}: {row['killed']} of {row['planted']} killed", flush=True)
            _write(options.output, rows, judged)
    return 0


def _write(path: Path, rows: dict[str, dict[str, Any]], cases: Sequence[Case]) -> None:
    ordered = [rows[name] for name in sorted(rows)]
    document = {
        "schema": SCHEMA,
        "labels": len(cases),
        "summary": _summary(ordered, cases),
        **{key: dict(sorted((_order(row[key])[:8], row[key]) for row in ordered)) for key in _SETS},
        "rows": [{**row, **{key: _order(row[key])[:8] for key in _SETS}} for row in ordered],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
