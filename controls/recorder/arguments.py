"""Arguments for a tool from its JSON Schema: deterministic, typical in the first round, at the edge in the second."""

from __future__ import annotations

from typing import Any

__all__ = ["arguments", "value_of"]

_DEPTH = 6
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
    "url": "https://example.com/page",
    "email": "dev@example.com",
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "path": "/home/dev/project/notes.txt",
    "file": "/home/dev/project/notes.txt",
    "directory": "/home/dev/project",
    "query": "weather in Paris",
    "city": "Paris",
}


def arguments(schema: object, round_number: int = 0) -> dict[str, Any]:
    """Return arguments for a tool.

    Args:
        schema: its ``inputSchema``; whatever it really is.
        round_number: 0 gives every property a typical value; 1 gives the required ones a value at the edge.
    """
    if not isinstance(schema, dict):
        return {}
    return _object(schema, schema, round_number, 0)


def value_of(schema: object, root: dict[str, Any], round_number: int, depth: int = 0, name: str = "") -> Any:  # noqa: ANN401
    """Return a value that a schema allows, as far as it is understood.

    Args:
        schema: the schema of one value.
        root: the schema that ``$ref`` starts from.
        round_number: as for ``arguments``.
        depth: how deep it lies.
        name: the property's name.
    """
    if not isinstance(schema, dict) or depth > _DEPTH:
        return "hello"
    if isinstance(schema.get("$ref"), str):
        return value_of(_pointed(root, schema["$ref"]), root, round_number, depth + 1, name)
    for key in ("const", "default"):
        if key in schema and (key == "const" or round_number == 0):
            return schema[key]
    for key in ("enum", "examples"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            return choices[min(round_number, len(choices) - 1)]
    for key in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(key)
        if isinstance(branches, list) and branches:
            return value_of(branches[0], root, round_number, depth + 1, name)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object" or "properties" in schema:
        return _object(schema, root, round_number, depth + 1)
    if kind == "array":
        least = schema.get("minItems")
        many = max(least if isinstance(least, int) else 0, 1 if round_number == 0 else 0)
        return [value_of(schema.get("items"), root, round_number, depth + 1) for _ in range(min(many, 20))]
    return _scalar(schema, kind, round_number, name)


def _object(schema: dict[str, Any], root: dict[str, Any], round_number: int, depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    required = schema.get("required")
    wanted = required if round_number and isinstance(required, list) else list(properties)
    return {
        str(name): value_of(properties[name], root, round_number, depth + 1, str(name))
        for name in wanted
        if isinstance(name, str) and name in properties
    }


def _scalar(schema: dict[str, Any], kind: object, round_number: int, name: str) -> Any:  # noqa: ANN401
    kind = kind if isinstance(kind, str) else "string"
    if kind == "string":
        known = _FORMATS.get(str(schema.get("format"))) or _FORMATS.get(name.lower())
        text = str(known or (_TYPICAL if round_number == 0 else _EDGE)["string"])
        least, most = schema.get("minLength"), schema.get("maxLength")
        if isinstance(least, int) and len(text) < least:
            text += "x" * (min(least, 10_000) - len(text))
        return text[:most] if isinstance(most, int) and most >= 0 else text
    value = (_TYPICAL if round_number == 0 else _EDGE).get(kind, "hello")
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
        if isinstance(low, int | float) and value <= low:
            value = low + 1 if "exclusiveMinimum" in schema else low
        if isinstance(high, int | float) and value > high:
            value = high
    return value


def _pointed(root: dict[str, Any], reference: str) -> object:
    # #/$defs/Point
    found: object = root
    for part in reference.removeprefix("#").split("/")[1:]:
        if not isinstance(found, dict):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found
