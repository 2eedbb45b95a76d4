"""The one YAML loader of data and option files: plain values, every mistake named by file and line."""

from __future__ import annotations

import difflib
import json
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcpdetect.data.overlay import own_file
from mcpdetect.errors import ConfigError

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node

__all__ = ["MAX_YAML", "Shape", "compiled_text", "line_of", "load_yaml", "read_text"]

MAX_YAML = 4 * 1024 * 1024
"""Most bytes of one YAML file; a larger one is no configuration."""

Shape: TypeAlias = "dict[str, Shape] | list[Shape] | None"
"""Which keys a file may have: a mapping of key to the shape of its value, ``[shape]`` for a list whose items all have
that shape, None for any value. A key that ends in ``?`` may be missing; the key ``*`` allows any other key."""

_SHOWN = 80


def load_yaml(source: str | Path, shape: Shape = None, *, name: str | None = None) -> dict[str, Any]:
    """Return the mapping that a YAML 1.2 file holds, as plain dicts, lists and scalars.

    Args:
        source: a ``Path`` to any file, or, as ``str``, the name of a file shipped in ``mcpdetect/data``
            (``"exfil.yaml"``); the user's own file of that name counts with it (``mcpdetect.data.overlay``).
        shape: the keys that are allowed and required at every level.
        name: the file's name in errors; ``source`` otherwise.

    Raises:
        ConfigError: the file is missing, too large, not UTF-8, not YAML, no mapping, or has a duplicate, unknown or
            missing key. The error names the file and the line.
    """
    if isinstance(source, str):
        values = _compiled(source)
        if values is None:
            shown, text = _text(source, name)
            values = _loaded(text, shown, shape)
        own = own_file(source)
        return values if own is None else _merged(values, own, shape)
    shown, text = _text(source, name)
    return _loaded(text, shown, shape)


def _merged(shipped: dict[str, Any], path: Path, shape: Shape) -> dict[str, Any]:
    """Return a shipped file's values with the user's own: added to them, or instead of those that ``replace`` names."""
    loose: Shape = None
    if isinstance(shape, dict):
        loose = {key if key.endswith(("?", "*")) else f"{key}?": item for key, item in shape.items()}
        loose["replace?"] = [None]
    own = load_yaml(path, loose)
    replaced = own.pop("replace", [])
    for at, key in enumerate(replaced):
        if key not in own:
            problem = "what is to be replaced is not given"
            place = f"line {line_of(path, ('replace', at))}"
            raise ConfigError(problem, file=str(path), place=place, value=str(key), hint=f"add the key {key!r}")
    return {
        **shipped,
        **{key: item if key in replaced else _added(shipped.get(key), item) for key, item in own.items()},
    }


def _added(shipped: object, own: object) -> object:
    if isinstance(shipped, list) and isinstance(own, list):
        return [*shipped, *own]
    if isinstance(shipped, dict) and isinstance(own, dict):
        return {**shipped, **{key: _added(shipped.get(key), item) for key, item in own.items()}}
    return own


def compiled_text(source: str) -> str:
    """Return what ``mcpdetect/data/compiled`` must hold for a shipped YAML file: the same values as JSON.

    Parsing YAML in Python takes 15 ms a kilobyte, which every start would pay; JSON takes next to nothing. The copies
    are committed, compared in a test, and written by ``python -m mcpdetect.data.compile``.

    Raises:
        ConfigError: the YAML is wrong.
    """
    return json.dumps(_loaded(_packaged(source), source, None), ensure_ascii=False, indent=0, sort_keys=True) + "\n"


def _compiled(source: str) -> dict[str, Any] | None:
    """Return the values of a shipped file from its JSON copy, None where it has none."""
    copy = resources.files("mcpdetect.data").joinpath("compiled", source.removesuffix(".yaml") + ".json")
    try:
        return cast("dict[str, Any]", json.loads(copy.read_text("utf-8")))
    except FileNotFoundError:
        return None


def line_of(source: str | Path, path: tuple[str | int, ...], *, name: str | None = None) -> int:
    """Return the 1-based line on which a value of a YAML file begins, for errors about that value.

    Args:
        source: as for ``load_yaml``.
        path: keys and indexes from the root to the value; the line is the key's own in a mapping. A part that is
            not there ends the walk: the line of the last part found is returned.
        name: the file's name in errors.

    Raises:
        ConfigError: the file cannot be read or is no YAML.
    """
    shown, text = _text(source, name)
    return _line(text, shown, path)


def _text(source: str | Path, name: str | None) -> tuple[str, str]:
    shown = name or str(source)
    if isinstance(source, Path):
        return shown, read_text(source, shown)
    try:
        return shown, _packaged(source)
    except OSError as error:
        raise _unreadable(error, shown) from error


def _unreadable(error: OSError, shown: str) -> ConfigError:
    return ConfigError(f"cannot be read: {error.strerror}", file=shown, hint="check the path and its spelling")


def read_text(path: Path, shown: str) -> str:
    """Return the text of a file that a user names.

    Args:
        path: the file.
        shown: its name in errors.

    Raises:
        ConfigError: it cannot be read, has more than ``MAX_YAML`` bytes, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_YAML + 1)
    except OSError as error:
        raise _unreadable(error, shown) from error
    if len(raw) > MAX_YAML:
        raise ConfigError(f"is larger than {MAX_YAML} bytes", file=shown, cause="another kind of file was named")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8", file=shown, place=f"line {line}", hint="save it as UTF-8") from error


@lru_cache(maxsize=32)
def _packaged(name: str) -> str:
    return resources.files("mcpdetect.data").joinpath(name).read_text("utf-8")


def _loaded(text: str, shown: str, shape: Shape) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        data = YAML(typ="safe").load(text)
    except YAMLError as error:
        raise _syntax(error, shown) from error
    except (ValueError, RecursionError) as error:  # a scalar such as 2020-13-01, or nesting without end
        raise ConfigError("is no usable YAML", file=shown, value=str(error)[:_SHOWN]) from error
    if not isinstance(data, dict):
        raise ConfigError("must be a mapping of keys to values", file=shown, place="line 1", value=type(data).__name__)
    _check(data, shape, (), text, shown, set())
    return data


def _syntax(error: Exception, shown: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).splitlines()[0]
    if type(error).__name__ == "DuplicateKeyError":
        # ruamel's words: found duplicate key "a" with value "2" (original value: "1")
        problem = f"the key {problem.partition(chr(34))[2].partition(chr(34))[0]!r} is given twice"
    return ConfigError(problem, file=shown, place=f"line {mark.line + 1}" if mark is not None else None)


def _check(
    value: object, shape: Shape, path: tuple[str | int, ...], text: str, shown: str, seen: set[tuple[int, int]]
) -> None:
    # YAML aliases make one value stand in many places, and even inside itself; each is looked at once a shape.
    if (id(value), id(shape)) in seen or (not isinstance(value, dict | list) and shape is None):
        return
    seen.add((id(value), id(shape)))
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise _wrong("a key must be text", key, path, text, shown)
    if shape is None:
        items = value.items() if isinstance(value, dict) else enumerate(cast("list[Any]", value))
        for key, item in items:
            _check(item, None, (*path, key), text, shown, seen)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise _wrong("must be a list", value, path, text, shown)
        for at, item in enumerate(value):
            _check(item, shape[0], (*path, at), text, shown, seen)
    else:
        _check_mapping(value, shape, path, text, shown, seen)


def _check_mapping(
    value: object,
    shape: dict[str, Shape],
    path: tuple[str | int, ...],
    text: str,
    shown: str,
    seen: set[tuple[int, int]],
) -> None:
    if not isinstance(value, dict):
        raise _wrong("must be a mapping of keys to values", value, path, text, shown)
    known = {key.removesuffix("?"): key for key in shape if key != "*"}
    for key, item in value.items():
        if key in known:
            _check(item, shape[known[key]], (*path, key), text, shown, seen)
        elif "*" in shape:
            _check(item, shape["*"], (*path, key), text, shown, seen)
        else:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known)) or 'none'}"
            raise _wrong("unknown key", key, (*path, key), text, shown, hint)
    for key, written in known.items():
        if key not in value and not written.endswith("?"):
            raise _wrong(f"the key {key!r} is missing", None, path, text, shown)


def _wrong(
    problem: str, value: object, path: tuple[str | int, ...], text: str, shown: str, hint: str | None = None
) -> ConfigError:
    shown_value = None if value is None else (value if isinstance(value, str) else repr(value))[:_SHOWN]
    return ConfigError(problem, file=shown, place=f"line {_line(text, shown, path)}", value=shown_value, hint=hint)


def _line(text: str, shown: str, path: tuple[str | int, ...]) -> int:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except YAMLError as error:
        raise _syntax(error, shown) from error
    if node is None:
        return 1
    line = int(node.start_mark.line) + 1
    for part in path:
        found: Node | None = None
        if isinstance(part, int):
            items = node.value if isinstance(node.value, list) else []
            if part < len(items) and not isinstance(items[part], tuple):
                found = items[part]
                line = int(items[part].start_mark.line) + 1
        elif isinstance(node.value, list):
            for pair in node.value:
                if isinstance(pair, tuple) and pair[0].value == part:
                    line, found = int(pair[0].start_mark.line) + 1, pair[1]
        if found is None:
            break
        node = found
    return line
