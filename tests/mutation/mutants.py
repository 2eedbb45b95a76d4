"""Mutants of a Python module: one small fault each, at the level of conditions, comparisons, constants, statements.

What is left alone, by rule:

- docstrings, annotations, ``__all__`` and prose (text with a space in it, f-strings, the arguments in ``PROSE``, the
  purpose of a need): labels pin verdicts, findings, places, levels, limits and explanations, not wording;
- bounds against floods (``MAX_...``, ``_MOST_...``, ``.overflow`` and what is compared with them): no recording is that
  long, and the tests of each module hold them;
- the empty value behind ``x or ""``: without it the value is None, which means the same.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["PROSE", "Mutant", "essence", "mutants"]

PROSE = frozenset(
    {"title", "reason", "detail", "why", "purpose", "claim", "blind_to", "text", "source", "version", "technique"}
)
"""Keyword arguments that hold wording or bookkeeping."""

_SWAPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_REMOVED = (ast.Expr, ast.AugAssign, ast.Continue, ast.Break, ast.Raise, ast.Delete)
_SHOWN = 90
_BOUNDS = ("MAX_", "_MAX_", "_MOST", "MOST_")


@dataclass(slots=True)
class Mutant:
    """One fault.

    Attributes:
        line, column: where it stands, 1-based line.
        function: the innermost function, ``""`` at the level of the module or of a class body.
        kind: ``condition``, ``comparison``, ``logic``, ``constant``, ``arithmetic`` or ``statement``.
        before, after: the code, shortened.
        span: first and last line of the statement around it without its body, None where it runs on import.
    """

    line: int
    column: int
    function: str
    kind: str
    before: str
    after: str
    span: tuple[int, int] | None
    _holder: ast.AST
    _field: str
    _index: int | None
    _replacement: ast.AST

    def plant(self) -> None:
        """Put the fault into the tree that it was made from; there is no way back."""
        if self._index is None:
            setattr(self._holder, self._field, self._replacement)
        else:
            getattr(self._holder, self._field)[self._index] = self._replacement


def essence(text: str) -> str:
    """Return what a module does without comments, layout and docstrings: what its mutants depend on."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def mutants(tree: ast.Module) -> list[Mutant]:
    """Return every mutant of a module, in the order of the text."""
    found = list(_visit(tree, "", None))
    return sorted(found, key=lambda one: (one.line, one.column, one.kind, one.after))


def _visit(node: ast.AST, function: str, span: tuple[int, int] | None) -> Iterator[Mutant]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = f"{function}.{node.name}" if function else node.name
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "type_comment", "type_params", "decorator_list"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _left_alone(node, child):
                around = _span(child, span) if isinstance(child, ast.stmt) and function else span
                for kind, replacement in _faults(child, field, node):
                    yield Mutant(
                        getattr(child, "lineno", getattr(node, "lineno", 0)),
                        getattr(child, "col_offset", 0),
                        function,
                        kind,
                        _short(child),
                        _short(replacement),
                        around,
                        node,
                        field,
                        index,
                        ast.copy_location(copy.copy(replacement), child),
                    )
                yield from _visit(child, function, around)


def _span(node: ast.stmt, around: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the lines of a statement, without the statements in it; a definition runs where it stands."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return around
    last = node.lineno
    for field, value in ast.iter_fields(node):
        if field not in ("body", "orelse", "finalbody", "handlers", "cases"):
            for child in value if isinstance(value, list) else [value]:
                last = max(last, getattr(child, "end_lineno", None) or last)
    return node.lineno, last


def _left_alone(holder: ast.AST, node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):  # a docstring, or one after a constant
            return True
        case ast.JoinedStr():
            return True
        case ast.keyword(arg=str(name)) if name in PROSE:
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.Import() | ast.ImportFrom():
            return True
        case ast.Call(func=ast.Name(id="TypeVar" | "cast")):
            return True
        case ast.AnnAssign(target=ast.Name(id="title" | "technique")):
            return True
        case ast.Assign(targets=[ast.Name(id=str(name))]) if name.startswith(_BOUNDS):
            return True
        case ast.Compare() | ast.Attribute() | ast.AugAssign() if _bounded(node):
            return True
    if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Name) and holder.func.id == "AnyOf":
        return bool(holder.args) and node is holder.args[0]
    return isinstance(holder, ast.Subscript) and isinstance(holder.value, ast.Name) and holder.value.id == "Literal"


def _bounded(node: ast.AST) -> bool:
    """Return whether a comparison, an attribute or a count is about a bound against floods."""
    return any(
        (isinstance(part, ast.Name) and part.id.startswith(_BOUNDS))
        or (isinstance(part, ast.Attribute) and part.attr == "overflow")
        for part in ast.walk(node)
    )


def _empty(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=None | "" | 0 | b"" | False) | ast.Tuple(elts=[]) | ast.List(elts=[]):
            return True
    return False


def _faults(node: ast.AST, field: str, holder: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if field == "test" or (field == "ifs" and isinstance(holder, ast.comprehension)):
        yield "condition", ast.Constant(value=False)
        if not isinstance(holder, ast.While):
            yield "condition", ast.Constant(value=True)
    if field == "guard" and isinstance(holder, ast.match_case):
        yield "condition", ast.Constant(value=True)
        yield "condition", ast.Constant(value=False)
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            changed = copy.copy(node)
            changed.ops = [*node.ops[:at], _SWAPS[type(operator)](), *node.ops[at + 1 :]]
            yield "comparison", changed
    elif isinstance(node, ast.BoolOp):
        yield "logic", ast.BoolOp(op=ast.Or() if isinstance(node.op, ast.And) else ast.And(), values=node.values)
        for at, value in enumerate(node.values):
            if _bounded(value) or (isinstance(node.op, ast.Or) and _empty(value)):
                continue
            rest = [*node.values[:at], *node.values[at + 1 :]]
            yield "logic", rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "logic", node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield "arithmetic", ast.BinOp(left=node.left, op=_ARITHMETIC[type(node.op)](), right=node.right)
    elif isinstance(node, ast.Constant):
        for value in _other_values(node.value):
            yield "constant", ast.Constant(value=value)
    elif (
        isinstance(node, _REMOVED)
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript))
        or (isinstance(node, ast.Return) and node.value is None)
    ):
        yield "statement", ast.Pass()


def _other_values(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        if value > 1:
            yield value - 1
    elif isinstance(value, str) and value and " " not in value:
        yield f"{value}~"
    elif isinstance(value, bytes) and value:
        yield value + b"~"


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
