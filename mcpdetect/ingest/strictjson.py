"""Reading a small JSON document into dataclasses, strictly: every mistake named by file and JSON place.

For documents people and recorders write by hand or program (a manifest), not for evidence in bulk.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import types
import typing
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, cast

from mcpdetect.errors import ConfigError

__all__ = ["MAX_JSON", "fail", "load_json", "read_value"]

MAX_JSON = 16 * 1024 * 1024
"""Most bytes of one document; a larger one is no manifest."""

_SHOWN = 80
T = TypeVar("T")


def fail(file: str, place: str, problem: str, value: object = None, *, cause: str = "", hint: str = "") -> NoReturn:
    """Raise the one kind of error of this module.

    Raises:
        ConfigError: always.
    """
    shown = None if value is None else repr(value)
    if shown is not None and len(shown) > _SHOWN:
        shown = shown[:_SHOWN] + "..."
    raise ConfigError(problem, file=file, place=place or None, value=shown, cause=cause or None, hint=hint or None)


def _pairs(file: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            fail(file, "", f"the key {key!r} occurs twice in one object", key, hint="remove one of them")
        found[key] = value
    return found


def load_json(path: Path, name: str, *, exact_numbers: bool = False) -> object:
    """Return what a JSON file holds; duplicate keys, NaN and huge or deep documents are errors.

    Args:
        path: the file.
        name: its name in errors.
        exact_numbers: fractions become ``str`` of their decimal text instead of floats.

    Raises:
        ConfigError: it cannot be read, or is no such JSON.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_JSON + 1)
    except OSError as error:
        fail(name, "", f"cannot be read: {error.strerror}", hint="check the path and its permissions")
    if len(data) > MAX_JSON:
        fail(name, "", f"is larger than {MAX_JSON} bytes", cause="this is not a manifest")

    def constant(word: str) -> NoReturn:
        fail(name, "", f"{word} is no JSON number", word)

    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=lambda pairs: _pairs(name, pairs),
            parse_constant=constant,
            parse_float=str if exact_numbers else None,
        )
    except UnicodeDecodeError as error:
        fail(name, f"offset {error.start}", "is not UTF-8", cause="the file is damaged or something else")
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        fail(name, place, f"is no JSON: {error.msg}", hint="it was cut short, or edited by hand; record it again")
    except (RecursionError, ValueError) as error:
        fail(name, "", f"is no usable JSON: {str(error)[:_SHOWN]}", cause="it is nested or its numbers are too large")


def read_value(kind: type[T], value: object, name: str, place: str = "") -> T:
    """Return ``value`` as the type ``kind``: dataclasses, lists, dicts of str, literals, unions with None.

    Args:
        kind: the type wanted.
        value: what JSON held.
        name: the file's name in errors.
        place: JSON Pointer of the value.

    Raises:
        ConfigError: an unknown or missing key, or a value of another type.
    """
    return cast("T", _read(kind, value, name, place))


def _read(kind: object, value: object, name: str, place: str) -> object:
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _read_class(cast("type", kind), value, name, place)
    if origin in (typing.Union, types.UnionType):
        inner = [one for one in typing.get_args(kind) if one is not type(None)]
        return None if value is None else _read(inner[0], value, name, place)
    if origin is Literal:
        allowed = typing.get_args(kind)
        if value not in allowed or isinstance(value, bool):
            fail(name, place, f"must be one of {', '.join(map(str, allowed))}", value, hint=_near(value, allowed))
        return value
    if origin is list:
        if not isinstance(value, list):
            fail(name, place, "must be a list", value)
        return [_read(typing.get_args(kind)[0], one, name, f"{place}/{at}") for at, one in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            fail(name, place, "must be an object", value)
        inner_kind = typing.get_args(kind)[1]
        return {key: _read(inner_kind, one, name, f"{place}/{_escape(key)}") for key, one in value.items()}
    if type(value) is not kind:
        words = {str: "text", int: "a whole number", bool: "true or false"}
        fail(name, place, f"must be {words[cast('type', kind)]}", value)
    return value


def _read_class(kind: type, value: object, name: str, place: str) -> object:
    if not isinstance(value, dict):
        fail(name, place, "must be an object", value)
    fields = {one.name: one for one in dataclasses.fields(kind)}
    for key in value:
        if key not in fields:
            fail(name, f"{place}/{_escape(key)}", f"unknown key {key!r}", value[key], hint=_near(key, tuple(fields)))
    hints = typing.get_type_hints(kind)
    arguments = {}
    for key, one in fields.items():
        if key in value:
            arguments[key] = _read(hints[key], value[key], name, f"{place}/{key}")
        elif one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
            fail(name, place, f"the key {key!r} is missing", cause="another version of the recorder, or an edit")
    return kind(**arguments)


def _escape(key: str) -> str:
    """Return a key as a JSON Pointer token (RFC 6901 §3)."""
    return key.replace("~", "~0").replace("/", "~1")


def _near(value: object, known: tuple[Any, ...]) -> str:
    close = difflib.get_close_matches(str(value), [str(one) for one in known], n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(map(str, known))}"
