"""Reading YAML into label values, strictly: every mistake named by file and line."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from mcpdetect.errors import LabelError

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node

__all__ = ["MAX_LABEL", "Reader"]

MAX_LABEL = 1024 * 1024
"""Most bytes of one label."""

_SHOWN = 80
_TAG = "tag:yaml.org,2002:"


class Reader:
    """One label file, composed but not yet understood.

    Args:
        path: the file.

    Raises:
        LabelError: it cannot be read, is not UTF-8, or is no YAML.
    """

    def __init__(self, path: Path) -> None:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        self._name = str(path)
        self._lines: dict[tuple[str, ...], int] = {}
        self._seen: set[int] = set()
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_LABEL + 1)
            text = data.decode("utf-8")
        except OSError as error:
            self.fail((), f"cannot be read: {error.strerror}", hint="check the path and its spelling")
        except UnicodeDecodeError as error:
            self.fail((), "is not UTF-8", line=data.count(b"\n", 0, error.start) + 1)
        if len(data) > MAX_LABEL:
            self.fail((), f"is larger than {MAX_LABEL} bytes", cause="this is no label")
        try:
            root: Node | None = YAML(typ="safe", pure=True).compose(text)
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = str(getattr(error, "problem", None) or error).splitlines()[0]
            self.fail((), problem, line=mark.line + 1 if mark is not None else None)
        except (RecursionError, ValueError) as error:
            self.fail((), "is no usable YAML", str(error))
        if root is None:
            self.fail((), "is empty", hint="write the label, or remove the file")
        self._root = root

    def fail(
        self,
        place: tuple[str, ...],
        problem: str,
        value: object = None,
        *,
        line: int | None = None,
        cause: str | None = None,
        hint: str | None = None,
    ) -> NoReturn:
        """Raise an error about a value.

        Args:
            place: keys from the root to the value.
            problem: what is wrong.
            value: the value.
            line: its line, where no value was read yet.
            cause: the likely cause.
            hint: what to try.

        Raises:
            LabelError: always.
        """
        while line is None and place:
            line = self._lines.get(place)
            place = place[:-1]
        shown = None if value is None else str(value)[:_SHOWN]
        where = f"line {line}" if line is not None else None
        raise LabelError(problem, file=self._name, place=where, value=shown, cause=cause, hint=hint)

    def read(self, kind: type) -> object:
        """Return the file's content as a dataclass ``kind``.

        Raises:
            LabelError: an unknown, missing or repeated key, or a value of another type.
        """
        return self._read(kind, self._root, ())

    def _read(self, kind: object, node: Node, place: tuple[str, ...]) -> object:
        self._lines.setdefault(place, int(node.start_mark.line) + 1)
        if id(node) in self._seen:
            self.fail(place, "an alias: write the value out", hint="anchors and aliases are not used in labels")
        self._seen.add(id(node))
        origin = typing.get_origin(kind)
        if dataclasses.is_dataclass(kind):
            return self._read_class(typing.cast("type", kind), node, place)
        if origin in (typing.Union, types.UnionType):
            inner = next(one for one in typing.get_args(kind) if one is not type(None))
            if node.tag == f"{_TAG}null":
                return None
            self._seen.discard(id(node))
            return self._read(inner, node, place)
        if origin is list:
            if node.tag != f"{_TAG}seq":
                self.fail(place, "must be a list", node.value if isinstance(node.value, str) else "a mapping")
            inner = typing.get_args(kind)[0]
            return [self._read(inner, one, (*place, str(at))) for at, one in enumerate(node.value)]
        if origin is dict:
            inner = typing.get_args(kind)[1]
            return {key: self._read(inner, one, (*place, key)) for key, one in self._pairs(node, place)}
        return self._scalar(kind, node, place)

    def _pairs(self, node: Node, place: tuple[str, ...]) -> list[tuple[str, Node]]:
        if node.tag != f"{_TAG}map":
            self.fail(place, "must be a mapping of keys to values", node.value if isinstance(node.value, str) else "")
        found: dict[str, Node] = {}
        for key, value in node.value:
            line = int(key.start_mark.line) + 1
            if not isinstance(key.value, str):
                self.fail((), "a key must be text", line=line)
            if key.value in found:
                self.fail((), f"the key {key.value!r} is given twice", key.value, line=line)
            found[key.value] = value
            self._lines[(*place, key.value)] = line
        return list(found.items())

    def _read_class(self, kind: type, node: Node, place: tuple[str, ...]) -> object:
        fields = {one.name: one for one in dataclasses.fields(kind)}
        hints = typing.get_type_hints(kind)
        arguments: dict[str, Any] = {}
        for key, value in self._pairs(node, place):
            if key not in fields:
                near = difflib.get_close_matches(key, fields, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(fields))}"
                self.fail((*place, key), "unknown key", key, hint=hint)
            arguments[key] = self._read(hints[key], value, (*place, key))
        for key, one in fields.items():
            required = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
            if required and key not in arguments:
                line = int(node.start_mark.line) + 1
                self.fail((), f"the key {key!r} is missing", line=self._lines.get(place, line))
        return kind(**arguments)

    def _scalar(self, kind: object, node: Node, place: tuple[str, ...]) -> object:
        if not isinstance(node.value, str):
            self.fail(place, "must be one value, not a list or mapping")
        if typing.get_origin(kind) is Literal:
            allowed = typing.get_args(kind)
            if node.value not in allowed:
                self.fail(place, f"must be one of {', '.join(allowed)}", node.value)
            return node.value
        if kind is int:
            if node.tag != f"{_TAG}int" or not node.value.isascii() or not node.value.isdigit():
                self.fail(place, "must be a whole number, 0 or more", node.value)
            return int(node.value)
        if node.tag == f"{_TAG}null" or not node.value.strip():
            self.fail(place, "must say something", node.value)
        return node.value
