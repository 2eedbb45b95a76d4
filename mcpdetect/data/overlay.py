"""The user's own data files, beside or instead of the shipped ones: lists of hosts, paths, resolvers, services."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from importlib import resources
from pathlib import Path
from typing import ParamSpec, TypeVar

from mcpdetect.errors import ConfigError

__all__ = ["cached", "own_data", "own_file", "shipped_names"]

Asked = ParamSpec("Asked")
Value = TypeVar("Value")

_MOST_KEPT = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """A folder of own files during one ``with`` block: what is kept of it ends with it, since files change."""

    folder: Path


_OWN: ContextVar[_Own | None] = ContextVar("mcpdetect-own-data", default=None)


def shipped_names() -> list[str]:
    """Return the names of the data files that the package ships, sorted."""
    return sorted(
        entry.name for entry in resources.files("mcpdetect.data").iterdir() if entry.name.endswith((".yaml", ".yml"))
    )


@contextmanager
def own_data(folder: Path) -> Iterator[None]:
    """Have the data files of a folder count within a ``with`` block, in this thread or task alone.

    A file there has the name and the form of a shipped one and needs only the keys it changes. Its lists are added to
    the shipped lists and its mappings to the shipped mappings; what its key ``replace`` names (a list of top-level
    keys) stands instead of the shipped value.

    Args:
        folder: the folder.

    Raises:
        ConfigError: it is no folder, holds no data file, or one of a name that nothing reads. What the files hold is
            checked when a check first needs it.
    """
    if not folder.is_dir():
        raise ConfigError("is no folder", file=str(folder), hint="name the folder that holds your data files")
    own = sorted(path.name for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))
    if not own:
        raise ConfigError("holds no data file", file=str(folder), hint=f"they are called {', '.join(shipped_names())}")
    for name in own:
        if name not in shipped_names():
            near = difflib.get_close_matches(name, shipped_names(), n=1)
            hint = f"did you mean {near[0]}?" if near else f"data files are {', '.join(shipped_names())}"
            raise ConfigError("nothing reads a file of this name", file=str(folder / name), hint=hint)
    token = _OWN.set(_Own(folder.absolute()))
    try:
        yield
    finally:
        _OWN.reset(token)


def own_file(name: str) -> Path | None:
    """Return the user's own file of a shipped name, None where there is none."""
    own = _OWN.get()
    path = own.folder / name if own is not None else None
    return path if path is not None and path.exists() else None


def cached(function: Callable[Asked, Value]) -> Callable[Asked, Value]:
    """Keep what a function makes of data files, once for each folder of own files (and its arguments, if any)."""
    known: dict[tuple[object, ...], Value] = {}

    @wraps(function)
    def read(*args: Asked.args, **options: Asked.kwargs) -> Value:
        key = (_OWN.get(), *args, *options.items())
        if key not in known:
            if len(known) >= _MOST_KEPT:
                known.clear()
            known[key] = function(*args, **options)
        return known[key]

    return read
