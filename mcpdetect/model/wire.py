"""Model values as JSON: one encoder, and decoders that refuse whatever the model does not say.

msgspec does the work. It reads a dataclass loosely (unknown keys are skipped), but a ``Struct`` strictly and faster, so
each model class gets a mirror ``Struct`` derived from its fields, and a constructor from one to the other.
``schema`` publishes the same rules through pydantic; a test holds the two to the same answers.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, TypeVar

import msgspec

__all__ = ["Refused", "decoder", "encode", "encode_into"]

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder()
# Expected `int`, got `str` - at `$.icmp[0].type`
_AT = re.compile(r"(?s)(.*) - at `(?:key in )?\$(.*)`$")
# Object contains unknown field `adress`
_UNKNOWN = re.compile(r"(?s)Object contains unknown field `(.*)`$")
# .icmp[0].type
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_SHOWN = 120


class Refused(ValueError):
    """A JSON text is not the model value it should be.

    Attributes:
        problem: what is wrong, without place.
        pointer: JSON Pointer (RFC 6901) to the offending value, ``""`` for the whole.
        value: the offending value as JSON, shortened; None where the text is not JSON at all.
        cut: the text ends too early.
    """

    def __init__(self, problem: str, pointer: str = "", value: str | None = None, *, cut: bool = False) -> None:
        super().__init__(f"{pointer}: {problem}" if pointer else problem)
        self.problem = problem
        self.pointer = pointer
        self.value = value
        self.cut = cut


def encode(value: object) -> bytes:
    """Return a model value as compact JSON: keys in the order of the fields, ``kind`` first, bytes in base64.

    Raises:
        UnicodeEncodeError: a text holds a lone surrogate, which JSON in UTF-8 cannot carry.
    """
    return _ENCODER.encode(value)


encode_into = _ENCODER.encode_into
"""Write as ``encode`` does, into a bytearray: ``encode_into(value, buffer, offset)``."""


def decoder(model: type[T]) -> Callable[[bytes], T]:
    """Return a strict decoder of ``model``: a dataclass of the model, or a list of one.

    Strict means: no unknown key, no missing required key, no conversion between types, ``Literal`` values only as
    listed, bytes as base64 with the standard alphabet and padding (RFC 4648 §4).

    The decoder raises ``Refused`` and nothing else.
    """
    return typing.cast("Callable[[bytes], T]", _decoder(typing.cast("Hashable", model)))


@cache
def _decoder(model: Hashable) -> Callable[[bytes], object]:
    decode = msgspec.json.Decoder(_mirrored(model)).decode
    convert = _converter(model)
    if convert is None:
        raise TypeError(f"{model!r} is neither a class of the model nor a list of one")

    def strict(raw: bytes) -> object:
        try:
            return convert(decode(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _refusal(raw, error) from error

    return strict


def _refusal(raw: bytes, error: Exception) -> Refused:
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        if isinstance(error, RecursionError):
            return Refused("is nested too deeply")
        return Refused(f"is no valid JSON: {text}"[:300], cut=text == "Input data was truncated")
    match = _AT.match(text)
    problem, path = (match[1], match[2]) if match else (text, "")
    keys = [name or index for name, index in _STEP.findall(path)]
    unknown = _UNKNOWN.match(problem)
    if unknown:
        problem = "unknown key"
        keys.append(unknown[1])
    try:
        value: Any = msgspec.json.decode(raw)
        for key in keys:
            value = value[int(key)] if isinstance(value, list) else value[key]
        shown: str | None = encode(value).decode()[:_SHOWN]
    except (msgspec.MsgspecError, LookupError, ValueError, TypeError, RecursionError):
        shown = None
    if problem.startswith("Object missing"):
        shown = None
    return Refused(problem[:300], "".join(f"/{_pointed(key[:80])}" for key in keys), shown)


def _pointed(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@cache
def _mirror(model: type) -> type[msgspec.Struct]:
    """Return a ``Struct`` with the fields of a dataclass, required ones first, that forbids any other key."""
    hints = typing.get_type_hints(model)
    required: list[tuple[str, Any]] = []
    optional: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(model):
        hint = _mirrored(hints[field.name])
        if field.default is not dataclasses.MISSING:
            optional.append((field.name, hint, field.default))
        elif field.default_factory is not dataclasses.MISSING:
            optional.append((field.name, hint, msgspec.field(default_factory=field.default_factory)))
        else:
            required.append((field.name, hint))
    return msgspec.defstruct(model.__name__, [*required, *optional], forbid_unknown_fields=True)


def _mirrored(hint: object) -> Any:  # noqa: ANN401  a type made at run time
    """Return a type with every model dataclass in it replaced by its mirror."""
    if dataclasses.is_dataclass(hint):
        return _mirror(typing.cast("type", hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_mirrored(part) for part in arguments)]  # noqa: UP007  built from a tuple
    if origin is list:
        return list[_mirrored(arguments[0])]  # type: ignore[misc]  # a type made at run time
    return hint


@cache
def _converter(hint: Hashable) -> Callable[[Any], object] | None:
    """Return what turns a decoded value of ``_mirrored(hint)`` into one of ``hint``; None where they are the same."""
    if dataclasses.is_dataclass(hint):
        return _constructor(typing.cast("type", hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    parts = [convert for part in arguments if (convert := _converter(part))] if origin is not dict else []
    if not parts:
        return None
    (convert,) = parts  # the model has no union of two classes
    if origin is list:
        return lambda values: [convert(value) for value in values]
    return lambda value: None if value is None else convert(value)


def _constructor(model: type) -> Callable[[Any], object]:
    """Return a function from a mirror to its dataclass.

    It is compiled from the names of the fields, as ``dataclasses`` compiles ``__init__``, and sets the slots without
    calling that: the mirror has every field, and twenty keyword arguments cost more than reading the JSON did.
    """
    hints = typing.get_type_hints(model)
    names: dict[str, Any] = {"new": object.__new__, "model": model}
    lines = ["def construct(mirror):", " made = new(model)"]
    for field in dataclasses.fields(model):
        convert = _converter(hints[field.name])
        value = f"mirror.{field.name}"
        if convert is not None:
            names[f"to_{field.name}"] = convert
            value = f"to_{field.name}({value})"
        lines.append(f" made.{field.name} = {value}")
    exec("\n".join([*lines, " return made"]), names)  # noqa: S102  nothing in the text comes from outside the model
    return typing.cast("Callable[[Any], object]", names["construct"])
