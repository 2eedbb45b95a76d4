"""Arguments for a tool from its JSON Schema: deterministic, typical in the first round, at the edge in the second.

A generator of our own rather than ``hypothesis-jsonschema``: that one looks for counterexamples, so its values are
odd from the start and differ by version; it refuses schemas that are not quite valid, which many servers publish and
a hostile one surely does; and it needs packages a guest does not have. What a tool call needs is the contrary: the
value a person would give, the same one every time, for any schema at all.
"""

from __future__ import annotations

import math
import re
from typing import Any

__all__ = ["arguments"]

_DEPTH = 6
_MOST_VALUES = 2_000
"""Most values in one call: a schema that contains itself many times over would grow without end."""
_PROJECT = "/home/dev/project"
_TYPICAL: dict[str, Any] = {"string": "hello", "integer": 1, "number": 1.5, "boolean": True, "null": None}
_EDGE: dict[str, Any] = {
    "string": "é\U0001f600 'x' \"y\" ../..",
    "integer": 0,
    "number": -1.5,
    "boolean": False,
    "null": None,
}
# JSON Schema validation, 7.3; names of properties that speak for themselves are treated alike.
_FORMATS = {
    "uri": "https://example.com/page",
    "uri-reference": "https://example.com/page",
    "iri": "https://example.com/page",
    "url": "https://example.com/page",
    "urls": "https://example.com/page",
    "link": "https://example.com/page",
    "website": "https://example.com/page",
    "email": "dev@example.com",
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "duration": "PT1H",
    "hostname": "example.com",
    "host": "example.com",
    "domain": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "ip": "192.0.2.1",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "regex": "hello",
    "sql": "SELECT 1",
    "statement": "SELECT 1",
    "command": "echo hello",
    "cmd": "echo hello",
    "timezone": "Europe/Paris",
    "language": "en",
    "currency": "EUR",
    "country": "FR",
    "city": "Paris",
    "location": "Paris",
    "latitude": "48.85",
    "longitude": "2.35",
    "symbol": "ACME",
    "ticker": "ACME",
    "owner": "example",
    "repo": "project",
    "branch": "main",
    "encoding": "utf-8",
}
# read_text_file, listDirectory, outputPath -> words
_WORDS = re.compile(r"[A-Z]?[a-z]++|[A-Z]++(?![a-z])|\d++")
_FOLDERS = frozenset({"dir", "directory", "directories", "folder", "cwd", "root", "workspace", "repository"})
_FILES = frozenset({"path", "paths", "file", "files", "filename", "filepath", "pathname"})
_WRITES = frozenset(
    {"create", "write", "save", "export", "download", "output", "destination", "dest", "target", "copy"}
)
_LISTS = frozenset({"list", "tree", "directory", "search", "git", "find", "watch", "scan"})
_DATABASE = frozenset({"sql", "database", "db", "postgres", "mysql", "sqlite", "duckdb", "clickhouse", "table"})


def arguments(schema: object, round_number: int = 0, *, tool: str = "", tag: str = "") -> dict[str, Any]:
    """Return arguments for a tool.

    Args:
        schema: its ``inputSchema``; whatever it really is.
        round_number: 0 gives every property a typical value; 1 gives the required ones a value at the edge.
        tool: its name, which tells whether a path is to be listed, read or written.
        tag: the canary tag of the run: free text of the second round carries a canary of its own, so that what a tool
            does with its input can be followed.
    """
    if not isinstance(schema, dict):
        return {}
    return _Maker(schema, round_number, tool, tag).members(schema, 0)


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(name[:200]))


class _Maker:
    """Makes the values of one call.

    Args:
        root: the schema that ``$ref`` starts from.
        round_number, tool, tag: as for ``arguments``.
    """

    def __init__(self, root: dict[str, Any], round_number: int, tool: str, tag: str) -> None:
        self._root = root
        self._round = round_number
        self._tool = _words(tool)
        self._tag = tag
        self._left = _MOST_VALUES

    def members(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return an object: every property in the first round, the required ones in the second."""
        properties = schema.get("properties")
        required = schema.get("required")
        if not isinstance(properties, dict):
            return {}
        names = required if self._round and isinstance(required, list) else list(properties)
        wanted = [name for name in names if isinstance(name, str) and name in properties]
        return {name: self.value(properties[name], depth + 1, name) for name in wanted if self._left > 0}

    def value(self, schema: object, depth: int, name: str = "") -> Any:  # noqa: ANN401
        """Return a value that a schema allows, as far as it is understood."""
        self._left -= 1
        if not isinstance(schema, dict) or depth > _DEPTH or self._left < 0:
            return "hello"
        if isinstance(schema.get("$ref"), str):
            return self.value(self._pointed(schema["$ref"]), depth + 1, name)
        for key in ("const", "default"):
            if key in schema and (key == "const" or (self._round == 0 and schema[key] is not None)):
                return schema[key]
        for key in ("enum", "examples"):
            choices = schema.get(key)
            if isinstance(choices, list) and choices:
                return choices[min(self._round, len(choices) - 1)]
        for key in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(key)
            if isinstance(branches, list) and branches:
                first = next((one for one in branches if one != {"type": "null"}), branches[0])
                return self.value(first, depth + 1, name)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind == "object" or "properties" in schema:
            return self.members(schema, depth + 1)
        if kind == "array":
            least = schema.get("minItems")
            many = max(least if isinstance(least, int) else 0, 1 if self._round == 0 else 0)
            return [self.value(schema.get("items"), depth + 1, name) for _ in range(min(many, 20))]
        kind = kind if isinstance(kind, str) else "string"
        return self._text(schema, name) if kind == "string" else self._number(schema, kind)

    def _text(self, schema: dict[str, Any], name: str) -> str:
        text = self._known(schema, name)
        if text is None:
            text = str((_TYPICAL if self._round == 0 else _EDGE)["string"])
            if self._round and self._tag:
                text += f" CANARY-ARGUMENT-{self._tag}"
        least, most = schema.get("minLength"), schema.get("maxLength")
        if isinstance(least, int) and len(text) < least:
            text += "x" * (min(least, 10_000) - len(text))
        return text[:most] if isinstance(most, int) and most >= 0 else text

    def _known(self, schema: dict[str, Any], name: str) -> str | None:
        """Return what a format, or a name that speaks for itself, asks for."""
        known = _FORMATS.get(str(schema.get("format"))) or _FORMATS.get(name.lower())
        if known is not None:
            return known
        words = _words(name)
        last = _words(name.rpartition("_")[2]) or words
        if words & _FOLDERS and not words & {"file", "filename"}:
            return _PROJECT
        if words & _FILES:
            if (words | self._tool) & _WRITES:
                return f"{_PROJECT}/new-{self._round}.txt"
            return _PROJECT if self._tool & _LISTS and not self._tool & {"file"} else f"{_PROJECT}/notes.txt"
        if words & {"url", "uri", "link", "href", "endpoint", "website"}:
            return "https://example.com/page"
        if words & {"email", "mail"}:
            return "dev@example.com"
        if last & {"date", "day"}:
            return "2026-01-02"
        if words & {"query", "search", "q"}:
            return "SELECT 1" if self._tool & _DATABASE else "weather in Paris"
        return None

    def _number(self, schema: dict[str, Any], kind: str) -> Any:  # noqa: ANN401
        value = (_TYPICAL if self._round == 0 else _EDGE).get(kind, "hello")
        if kind not in ("integer", "number"):
            return value
        low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
        if isinstance(low, int | float) and math.isfinite(low) and value <= low:
            value = low + 1 if "exclusiveMinimum" in schema else low
        if isinstance(high, int | float) and math.isfinite(high) and value > high:
            value = high
        return value

    def _pointed(self, reference: str) -> object:
        # #/$defs/Point
        found: object = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            if not isinstance(found, dict):
                return None
            found = found.get(part.replace("~1", "/").replace("~0", "~"))
        return found
