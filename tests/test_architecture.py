"""The rules of the design that no reader should have to trust: layers, fences, cycles, sizes, docstrings."""

from __future__ import annotations

import ast
import sys

import pytest
from source_tree import Module, modules

PACKAGE = modules("mcpdetect")
EVERYTHING = modules("mcpdetect", "controls", "tests")

# Who may import whom inside mcpdetect (imports for types only and inside functions count). What stands above the
# detectors joins the parts; what stands below knows neither formats (ingest) nor answers (labels).
_VALUES = {"errors", "model"}
_KNOWLEDGE = _VALUES | {"contract", "correlate", "data"}
ALLOWED: dict[str, set[str]] = {
    "version": set(),
    "errors": set(),
    "model": {"errors"},
    "data": _VALUES,
    "ingest": _VALUES | {"version"},
    "contract": _VALUES,
    "labels": _VALUES,
    "correlate": _VALUES | {"contract", "data"},
    "detectors": _KNOWLEDGE,
    "engine": _KNOWLEDGE | {"detectors"},
    "score": _KNOWLEDGE | {"detectors", "engine", "ingest", "labels", "version"},
    "report": _KNOWLEDGE | {"detectors", "engine", "labels", "score", "version"},
    "api": _KNOWLEDGE | {"detectors", "engine", "ingest", "labels", "score", "report", "version"},
    "cli": _KNOWLEDGE | {"api", "detectors", "engine", "ingest", "labels", "score", "report", "version"},
    "__init__": {"api", "engine", "errors", "model", "version"},
    "__main__": {"cli"},
}

# Third-party libraries and the only parts of mcpdetect that may import them.
FENCES: dict[str, set[str]] = {
    "click": {"cli"},
    "dpkt": {"ingest"},
    "elftools": {"ingest"},
    "jsonschema": {"labels", "report"},
    "msgspec": {"ingest", "model", "report", "score"},
    "pydantic": {"labels", "model", "report"},
    "ruamel": {"data", "labels"},
    "zstandard": {"ingest", "correlate"},
}

# Nothing of the analysis library opens a connection or runs a program.
FORBIDDEN = {"asyncio", "ftplib", "http", "multiprocessing", "pty", "requests", "smtplib", "socketserver", "subprocess"}
FORBIDDEN |= {"httpx", "telnetlib", "urllib.request", "xmlrpc"}

CRASH_BOUNDARY = "mcpdetect/engine/boundary.py"
MOST_LINES = 400


def none_of(wrong: list[str]) -> None:
    """Fail with every fault on a line of its own."""
    assert not wrong, "\n".join(["", *wrong])


def test_the_table_has_a_row_for_every_part() -> None:
    assert {module.part for module in PACKAGE} <= set(ALLOWED)
    assert ALLOWED["detectors"].isdisjoint({"ingest", "labels"})
    assert "ingest" not in ALLOWED["engine"]


@pytest.mark.parametrize("part", ALLOWED)
def test_a_part_imports_only_what_the_table_allows(part: str) -> None:
    wrong = []
    for module in PACKAGE:
        if module.part != part:
            continue
        for item in module.imports():
            assert not item.name.startswith("."), f"{module.path}:{item.line}: relative import"
            top, _, rest = item.name.partition(".")
            target = rest.partition(".")[0]
            if top == "mcpdetect" and target not in ALLOWED[part] | {part}:
                wrong.append(f"{module.path}:{item.line} imports {item.name}")
    none_of(wrong)


def test_third_party_libraries_stay_behind_their_fences() -> None:
    wrong, seen = [], 0
    for module in PACKAGE:
        for item in module.imports():
            top = item.name.partition(".")[0]
            if top in sys.stdlib_module_names or top == "mcpdetect":
                continue
            seen += 1
            if module.part not in FENCES.get(top, set()):
                wrong.append(f"{module.path}:{item.line} imports {item.name}")
    none_of(wrong)
    assert seen > 10


def test_the_library_reaches_for_no_network_and_runs_no_program() -> None:
    names = FORBIDDEN | {"socket"}
    wrong = [
        f"{module.path}:{item.line} imports {item.name}"
        for module in PACKAGE
        for item in module.imports()
        if any(item.name == name or item.name.startswith(f"{name}.") for name in names)
        # constants and address parsing are no connection
        and item.name not in {"socket.inet_ntop", "socket.AF_INET", "socket.AF_INET6"}
    ]
    calls = [
        f"{module.path}:{node.lineno} calls os.{node.func.attr}"
        for module in PACKAGE
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "os"
        and (
            node.func.attr in {"system", "popen", "fork"} or node.func.attr.startswith(("exec", "spawn", "posix_spawn"))
        )
    ]
    none_of(wrong + calls)


def test_the_library_imports_neither_controls_nor_tests() -> None:
    wrong = [
        f"{module.path}:{item.line}"
        for module in PACKAGE
        for item in module.imports()
        if item.name.partition(".")[0] in {"controls", "tests"}
    ]
    none_of(wrong)


def _edges(found: tuple[Module, ...]) -> dict[str, set[str]]:
    """Return which module imports which, packages resolved to the module named."""
    known = {module.name for module in found}
    edges: dict[str, set[str]] = {module.name: set() for module in found}
    for module in found:
        for item in module.imports():
            name = item.name if item.name in known else item.name.rpartition(".")[0]
            if name in known and name != module.name:
                edges[module.name].add(name)
    return edges


def _cycle(edges: dict[str, set[str]]) -> list[str]:
    """Return one cycle, ``[]`` where there is none."""
    done: set[str] = set()
    path: list[str] = []

    def visit(name: str) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        path.append(name)
        for target in sorted(edges[name]):
            found = visit(target)
            if found:
                return found
        path.pop()
        done.add(name)
        return []

    for name in sorted(edges):
        found = visit(name)
        if found:
            return found
    return []


@pytest.mark.parametrize("top", ["mcpdetect", "controls"])
def test_no_import_cycle_exists(top: str) -> None:
    edges = _edges(modules(top))
    assert sum(map(len, edges.values())) > 10
    assert _cycle(edges) == []


def test_a_cycle_would_be_found() -> None:
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_no_module_is_longer_than_a_reader_s_reach() -> None:
    long = [f"{module.path}: {lines}" for module in EVERYTHING if (lines := module.text.count("\n")) > MOST_LINES]
    none_of(long)


def _is_broad(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler takes anything; one that cleans up and raises it again does not."""
    if ast.unparse(handler.body[-1]) == "raise":
        return False
    names = (
        {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else {"Exception"}
    )
    return bool(names & {"Exception", "BaseException"})


def test_no_broad_except_outside_the_crash_boundary() -> None:
    handlers = [
        (module.path, node)
        for module in EVERYTHING
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler)
    ]
    broad = [f"{path}:{node.lineno}" for path, node in handlers if _is_broad(node) and path != CRASH_BOUNDARY]
    none_of(broad)
    assert len([path for path, node in handlers if _is_broad(node)]) == 1
    assert len(handlers) > 50


def test_no_suppression_hides_an_exception() -> None:
    wrong = [
        f"{module.path}:{node.lineno}"
        for module in EVERYTHING
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"suppress", "contextlib.suppress"}
        and any(ast.unparse(argument) in {"Exception", "BaseException"} for argument in node.args)
    ]
    none_of(wrong)


def _public(module: Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Return the public functions and classes, and the public methods of public classes."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = []
    for node in module.tree.body:
        if not isinstance(node, kinds) or node.name.startswith("_"):
            continue
        found.append(node)
        if isinstance(node, ast.ClassDef):
            found += [inner for inner in node.body if isinstance(inner, kinds) and not inner.name.startswith("_")]
    return found


def test_every_public_name_has_a_docstring() -> None:
    names = [(module, node) for module in modules("mcpdetect", "controls") for node in _public(module)]
    bare = [f"{module.path}:{node.lineno} {node.name}" for module, node in names if not ast.get_docstring(node)]
    bare += [module.path for module in EVERYTHING if not ast.get_docstring(module.tree)]
    none_of(bare)
    assert len(names) > 200


def _listed(module: Module) -> list[str] | None:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed: list[str] = ast.literal_eval(node.value)
            return listed
    return None


def test_every_module_says_what_it_offers_in_order() -> None:
    wrong, seen = [], 0
    for module in PACKAGE:
        names = _listed(module)
        body = module.tree.body
        if len(body) == 1 or module.path.endswith("__main__.py"):
            continue
        seen += 1
        if names is None:
            wrong.append(f"{module.path}: no __all__")
            continue
        # constants, then classes, then the rest: the order that ruff keeps
        order = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
        if names != order and names != sorted(names):
            wrong.append(f"{module.path}: __all__ is not sorted")
    none_of(wrong)
    assert seen > 40


def test_every_public_class_and_function_is_offered_or_private() -> None:
    wrong = []
    for module in PACKAGE:
        offered = set(_listed(module) or ())
        for node in _public(module):
            if node in module.tree.body and node.name not in offered:
                wrong.append(f"{module.path}:{node.lineno} {node.name}")
    none_of(wrong)
