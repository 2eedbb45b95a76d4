"""Which labels tell a mutant from the real code: the shared runner over evidence that was read once.

Evidence is parsed one time and kept as events; a forked child plants one fault, imports again what rests
on the faulty module, and runs the labelled cases that execute the faulty line. A fault in the code that reads evidence
is another matter: there every case is read anew. Nothing is written to the source tree.
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutants import Mutant, mutants

from mcpdetect.data.inputs import load_expectations
from mcpdetect.ingest.open import open_bundle
from mcpdetect.model.event import Event
from mcpdetect.model.observation import Observation

if TYPE_CHECKING:
    from mcpdetect.score.corpus import Case

__all__ = ["ROOT", "Kill", "Lab", "Reached", "dotted", "parsed"]

ROOT = Path(__file__).parents[2]
_CPU_SECONDS = 20
_WHOLE_SECONDS = 600
_MEMORY = 2 << 30
_TOLD = "__told__"

Reached = dict[str, dict[str, list[int]]]
"""Case to module (by file name) to the lines that it executes."""


@dataclass(slots=True)
class Kill:
    """What became of one mutant.

    Attributes:
        ran: how many cases execute the faulty line.
        by: case -> the checks whose verdict, findings or places it changed; ``*`` stands for every case where the
            module cannot even be imported.
        how: ``label``, ``broken`` (the module cannot be imported), ``endless`` (its time ran out), or ``survived``.
    """

    ran: int
    by: dict[str, list[str]] = field(default_factory=dict)
    how: str = "survived"


class _Recorded:
    """A run whose events are in memory: a ``TraceSource`` that can be read again and again."""

    def __init__(self, bundle: Path) -> None:
        source = open_bundle(bundle / "manifest.json")
        self._events = list(source.events())
        self._observations = source.observations()
        self.run = source.run
        self.secrets, self.tag, self.expect = source.secrets, source.tag, source.expect
        self.baseline = source.baseline

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        return (event for event in self._events if wanted is None or event.kind in wanted)

    def observations(self) -> list[Observation]:
        return self._observations


class _Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module a tree of ours instead of its file."""

    def __init__(self, name: str, path: Path, tree: ast.Module, given: dict[str, Any] | None = None) -> None:
        self._name, self._path, self._tree, self._given = name, path, tree, given or {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        package = self._path.name == "__init__.py"
        spec = importlib.util.spec_from_loader(fullname, self, origin=str(self._path), is_package=package)
        if package and spec is not None:
            spec.submodule_search_locations = [str(self._path.parent)]
        return spec

    def exec_module(self, module: types.ModuleType) -> None:
        code = compile(ast.fix_missing_locations(self._tree), str(self._path), "exec", dont_inherit=True)
        module.__dict__.update(self._given)
        exec(code, module.__dict__)  # noqa: S102  the mutant itself


class _Telling(ast.NodeTransformer):
    """Makes every statement in a function tell its line before it runs; docstrings stay first."""

    def __init__(self) -> None:
        self._inside = 0

    def visit(self, node: ast.AST) -> Any:
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self._inside += function
        self.generic_visit(node)
        if self._inside:
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, None)
                if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                    setattr(node, field, [one for statement in body for one in self._told(statement)])
        self._inside -= function
        return node

    def _told(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.Nonlocal | ast.Global):
            return [statement]
        call = ast.Call(ast.Name(_TOLD, ast.Load()), [ast.Constant(statement.lineno)], [])
        return [ast.copy_location(ast.Expr(call), statement), statement]


class Lab:
    """The labelled cases, read once, and the code that they are run against.

    Args:
        cases: the labelled cases; those with a ``todo`` cannot tell right from wrong and are left out.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = [case for case in cases if case.label.todo is None]
        self._sources = {case.bundle: _Recorded(case.bundle) for case in self.cases}
        files = [source.expect for source in self._sources.values() if source.expect is not None]
        self._expectations = {path: load_expectations(path) for path in files}

    def lines(self, modules: Sequence[Path], checks: Sequence[str], *, reading: bool = False) -> Reached:
        """Return, case by case, the first lines of the statements in functions that the case executes, by module.

        Args:
            modules: the modules; each statement in them is made to tell that it runs.
            checks: the checks that run.
            reading: the modules read evidence, so that it is read anew.
        """
        importers = list(dict.fromkeys(name for path in modules for name in _importers(dotted(path))))

        def ask() -> Reached:
            found: dict[str, set[int]] = {}
            for path in modules:
                told = found.setdefault(str(path), set())
                tree = _Telling().visit(ast.parse(path.read_text("utf-8")))
                sys.meta_path.insert(0, _Planted(dotted(path), path, tree, {_TOLD: told.add}))
            run = self._runner(None, checks, importers, reading=reading)
            result: Reached = {}
            for case in self.cases:
                for told in found.values():
                    told.clear()
                run(case)
                result[case.label.case] = {name: sorted(told) for name, told in found.items() if told}
            return result

        told = _in_child(ask, seconds=_WHOLE_SECONDS)
        if not isinstance(told, dict):
            raise SystemExit(f"the labelled cases cannot be run: {told}")
        return told

    def prepare(self) -> None:
        """Import everything once, so that a child has to import only what rests on its mutant."""
        importlib.import_module("mcpdetect.score.runner")
        importlib.import_module("mcpdetect.engine.discovery").detectors()
        gc.collect()
        gc.freeze()  # children share these values: collecting garbage would copy them

    def _runner(
        self,
        planted: _Planted | None,
        checks: Sequence[str] | None,
        again: Iterable[str] = (),
        *,
        reading: bool = False,
    ) -> Callable[[Case], list[str]]:
        """Plant a mutant, import ``again`` what rests on it, and return the function that runs a case.

        That function returns the checks that are wrong about the case. For a child process only: nothing is undone.
        """
        if planted is not None:
            sys.meta_path.insert(0, planted)
        for name in again:
            sys.modules.pop(name, None)
        runner = importlib.import_module("mcpdetect.score.runner")
        if not reading:
            runner.open_bundle = lambda path: self._sources[path.parent]  # type: ignore[attr-defined]
        runner.load_expectations = self._expectations.__getitem__  # type: ignore[attr-defined]
        select = importlib.import_module("mcpdetect.engine.discovery").select
        detectors = select(list(checks) if checks is not None else None)

        def run(case: Case) -> list[str]:
            outcome = runner.run_case(case, detectors)
            if outcome.error is not None:
                return sorted(case.label.checks)
            return [said.check for said in outcome.checks if not said.agrees]

        return run

    def baseline(self, checks: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return the cases whose labels the real code contradicts, with the checks concerned: ``{}`` if all is well."""

        def ask() -> dict[str, list[str]]:
            run = self._runner(None, checks)
            said = {case.label.case: run(case) for case in self.cases}
            return {case: wrong for case, wrong in said.items() if wrong}

        told = _in_child(ask, seconds=_WHOLE_SECONDS)
        if not isinstance(told, dict):
            raise SystemExit(f"the real code does not run: {told}")
        return told

    def kill(
        self,
        path: Path,
        tree: ast.Module,
        mutant: Mutant,
        cases: Sequence[Case],
        checks: Sequence[str],
        *,
        reading: bool = False,
    ) -> Kill:
        """Run ``cases`` against one mutant of the module at ``path`` and say which labels tell.

        With ``reading`` the evidence is read anew, and the first label that tells is enough.
        """
        if not cases:
            return Kill(0)
        importers = _importers(dotted(path))  # asked before the fork, which would forget it

        def ask() -> dict[str, list[str]]:
            mutant.plant()
            run = self._runner(_Planted(dotted(path), path, tree), checks, importers, reading=reading)
            said: dict[str, list[str]] = {}
            for case in cases:
                wrong = run(case)
                if wrong:
                    said[case.label.case] = wrong
                    if reading:
                        break
            return said

        told = _in_child(ask)
        if not isinstance(told, dict):
            return Kill(len(cases), {"*": list(checks)}, told)
        return Kill(len(cases), told, "label" if told else "survived")


@functools.cache
def _importers(module: str) -> tuple[str, ...]:
    """Return a module and all that import it, however far, within the package."""
    users: dict[str, set[str]] = {}
    for path in (ROOT / "mcpdetect").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                # from mcpdetect.ingest.strace import on_socket: what is named may be a module itself
                for name in (node.module, *(f"{node.module}.{one.name}" for one in node.names)):
                    users.setdefault(name, set()).add(dotted(path))
    found: list[str] = []
    pending = [module]
    while pending:
        name = pending.pop()
        if name not in found:
            found.append(name)
            pending += sorted(users.get(name, ()))
    return tuple(found)


def _in_child(ask: Callable[[], Any], *, seconds: int = _CPU_SECONDS) -> Any:
    """Return what ``ask`` returns in a forked child, as JSON; how it ended when the child did not live to say it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            with os.fdopen(write, "wb") as stream:
                stream.write(json.dumps(ask()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(child, 0)
    if status == 0 and data:
        return json.loads(data)
    return "endless" if os.WIFSIGNALED(status) else "broken"


def dotted(path: Path) -> str:
    """Return the name under which a source file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(path: Path) -> tuple[ast.Module, list[Mutant]]:
    """Return a module's tree and its mutants; the tree stays whole, since faults are planted in children alone."""
    tree = ast.parse(path.read_text("utf-8"))
    return tree, mutants(tree)
