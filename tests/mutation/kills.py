"""Which labels tell a mutant from the real code: the shared runner over evidence that was read once.

Evidence is parsed one time and kept as events; a forked child plants one fault, imports again what rests
on the faulty module, and runs the labelled cases that execute the faulty line. Nothing is written to the source tree.
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

__all__ = ["ROOT", "Kill", "Lab", "dotted", "parsed"]

ROOT = Path(__file__).parents[2]
_CPU_SECONDS = 20
_WHOLE_SECONDS = 600
_MEMORY = 2 << 30


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

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        return (event for event in self._events if wanted is None or event.kind in wanted)

    def observations(self) -> list[Observation]:
        return self._observations


class _Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module a tree of ours instead of its file."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(self._path))

    def exec_module(self, module: types.ModuleType) -> None:
        code = compile(ast.fix_missing_locations(self._tree), str(self._path), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102  the mutant itself


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

    def lines(self, modules: Sequence[Path], checks: Sequence[str]) -> dict[str, dict[str, list[int]]]:
        """Return, case by case, the lines of each module (by file name) that the case executes in functions."""
        wanted = {str(path) for path in modules}

        def ask() -> dict[str, dict[str, list[int]]]:
            found: dict[str, set[int]] = {}

            def local(frame: types.FrameType, event: str, _: object) -> Any:
                if event == "line":
                    found.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
                return local

            def entered(frame: types.FrameType, _event: str, _: object) -> Any:
                code = frame.f_code
                return local if code.co_filename in wanted and code.co_name != "<module>" else None

            run = self._runner(None, checks)
            result = {}
            for case in self.cases:
                found = {}
                sys.settrace(entered)
                run(case)
                sys.settrace(None)
                result[case.label.case] = {name: sorted(numbers) for name, numbers in found.items()}
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
        self, planted: _Planted | None, checks: Sequence[str] | None, again: Iterable[str] = ()
    ) -> Callable[[Case], dict[str, bool]]:
        """Plant a mutant, import ``again`` what rests on it, and return the function that runs a case.

        For a child process only: nothing is undone.
        """
        if planted is not None:
            sys.meta_path.insert(0, planted)
        for name in again:
            sys.modules.pop(name, None)
        runner = importlib.import_module("mcpdetect.score.runner")
        runner.open_bundle = lambda path: self._sources[path.parent]  # type: ignore[attr-defined]
        runner.load_expectations = self._expectations.__getitem__  # type: ignore[attr-defined]
        select = importlib.import_module("mcpdetect.engine.discovery").select
        detectors = select(list(checks) if checks is not None else None)

        def run(case: Case) -> dict[str, bool]:
            outcome = runner.run_case(case, detectors)
            return {said.check: said.agrees for said in outcome.checks}

        return run

    def baseline(self, checks: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return the cases whose labels the real code contradicts, with the checks concerned: ``{}`` if all is well."""

        def ask() -> dict[str, list[str]]:
            run = self._runner(None, checks)
            said = {case.label.case: [check for check, right in run(case).items() if not right] for case in self.cases}
            return {case: wrong for case, wrong in said.items() if wrong}

        told = _in_child(ask, seconds=_WHOLE_SECONDS)
        if not isinstance(told, dict):
            raise SystemExit(f"the real code does not run: {told}")
        return told

    def kill(self, path: Path, tree: ast.Module, mutant: Mutant, cases: Sequence[Case], checks: Sequence[str]) -> Kill:
        """Run ``cases`` against one mutant of the module at ``path`` and say which labels tell."""
        if not cases:
            return Kill(0)
        importers = _importers(dotted(path))  # asked before the fork, which would forget it

        def ask() -> dict[str, list[str]]:
            mutant.plant()
            run = self._runner(_Planted(dotted(path), path, tree), checks, importers)
            said = {case.label.case: [check for check, right in run(case).items() if not right] for case in cases}
            return {case: wrong for case, wrong in said.items() if wrong}

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
                users.setdefault(node.module, set()).add(dotted(path))
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
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@functools.cache
def parsed(path: Path) -> tuple[ast.Module, list[Mutant]]:
    """Return a module's tree and its mutants; the tree stays whole, since faults are planted in children alone."""
    tree = ast.parse(path.read_text("utf-8"))
    return tree, mutants(tree)
