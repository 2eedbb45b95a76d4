"""The project's own sources, as the tests of its architecture read them."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "Import", "Module", "modules", "tracked"]

ROOT = Path(__file__).parents[1]
# Programs that are recorded as they stand, for other interpreters and versions; they are data.
_PLANTED = ("controls/planted/", "corpus/")


@dataclass(frozen=True)
class Import:
    """One imported name, wherever in a module the import stands: ``mcpdetect.model.event.Event``."""

    name: str
    line: int


@dataclass(frozen=True)
class Module:
    """One Python file of the project."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """Return the dotted name: ``mcpdetect.model.event``, ``mcpdetect.model`` for its ``__init__``."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def part(self) -> str:
        """Return the subpackage or top-level module of ``mcpdetect`` it belongs to, ``__init__`` for the root's own."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else "__init__"

    @property
    def tree(self) -> ast.Module:
        """Return the syntax tree."""
        return _parsed(self.text)

    def imports(self) -> list[Import]:
        """Return every import, those for types only and those inside functions too."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [Import(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                found += [Import(f"{base}.{alias.name}", node.lineno) for alias in node.names]
        return found


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def tracked() -> tuple[str, ...]:
    """Return the path of every file that git tracks, or, in an unpacked archive, of every file below the root."""
    if not (ROOT / ".git").exists():
        return tuple(sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()))
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=60)
    listed = [name for name in done.stdout.decode().split("\0") if name]
    return tuple(sorted(name for name in listed if (ROOT / name).is_file()))


@cache
def modules(*tops: str) -> tuple[Module, ...]:
    """Return the tracked Python files below the given folders, planted programs left out."""
    found = tuple(
        Module(name, (ROOT / name).read_text("utf-8"))
        for name in tracked()
        if name.endswith(".py") and name.partition("/")[0] in tops and not name.startswith(_PLANTED)
    )
    assert found
    return found
