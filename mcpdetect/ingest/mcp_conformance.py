"""Where messages and definitions are not what JSON-RPC 2.0 and the Model Context Protocol ask for.

Rules are of JSON-RPC 2.0 §4 and §5 and of MCP revision 2025-06-18 ("Base protocol", "Lifecycle", "Tools"); older
revisions ask for less, and nothing here is asked of them that they do not have. Every breach is one of a few fixed
sentences with a JSON Pointer; never more than 32 a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from mcpdetect.ingest.mcp_json import readings

__all__ = ["MOST_BREACHES", "Outputs", "message_breaches", "result_breaches", "tool_breaches", "tool_hints"]

MOST_BREACHES = 32
"""Most breaches kept of one message or definition."""

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_CONTENT = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": ("resource",),
    "resource_link": ("uri",),
}
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_MOST_SCHEMAS = 2_000  # sub-schemas looked at in one definition
_MOST_STEPS = 20_000  # of one output against its schema
_DEEPEST = 32


def message_breaches(item: dict[str, Any], form: str) -> list[str]:
    """Return where one message is not JSON-RPC 2.0.

    Args:
        item: the message.
        form: what it is taken for (``request``, ``response``, ``error``, ``notification``).
    """
    found = []
    if item.get("jsonrpc") != "2.0":
        found.append('/jsonrpc is not "2.0"')
    if form in ("response", "error"):
        if "result" in item and "error" in item:
            found.append("both /result and /error are given")
        if "id" not in item:
            found.append("an answer without /id")
    error = item.get("error")
    if form == "error":
        if not isinstance(error, dict):
            found.append("/error is no object")
        else:
            if not isinstance(error.get("code"), int) or isinstance(error.get("code"), bool):
                found.append("/error/code is no integer")
            if not isinstance(error.get("message"), str):
                found.append("/error/message is no string")
    identity = item.get("id")
    if "id" in item and (isinstance(identity, (bool, float, list, dict)) or (identity is None and form == "request")):
        found.append("/id is neither a string nor an integer")
    return found


def result_breaches(method: str | None, result: dict[str, Any]) -> list[str]:
    """Return where the result of a request is not what its method promises.

    Args:
        method: the method of the request; None where it is unknown.
        result: the result object.
    """
    return list(islice(_result(method, result), MOST_BREACHES))


def _result(method: str | None, result: dict[str, Any]) -> Iterator[str]:
    if method == "initialize":
        if not isinstance(result.get("protocolVersion"), str):
            yield "/result/protocolVersion is no string"
        if not isinstance(result.get("capabilities"), dict):
            yield "/result/capabilities is no object"
        info = result.get("serverInfo")
        for key in ("name", "version"):
            if not isinstance(info, dict) or not isinstance(info.get(key), str):
                yield f"/result/serverInfo/{key} is no string"
    lists = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}
    if method in lists:
        if not isinstance(result.get(lists[method]), list):
            yield f"/result/{lists[method]} is no list"
        if not isinstance(result.get("nextCursor", ""), str):
            yield "/result/nextCursor is no string"
    if method == "tools/call":
        yield from _content(result)


def _content(result: dict[str, Any]) -> Iterator[str]:
    content = result.get("content")
    if not isinstance(content, list):
        yield "/result/content is no list"
        return
    for at, item in enumerate(content):
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(kind, str) or kind not in _CONTENT:
            yield f"/result/content/{at}/type is no type of content"
            continue
        for key in _CONTENT[kind]:
            if key not in item:
                yield f"/result/content/{at}/{key} is missing"
    if not isinstance(result.get("isError", False), bool):
        yield "/result/isError is no boolean"


def tool_hints(item: object) -> list[str]:
    """Return the boolean annotations of a tool, sorted, as ``readOnlyHint=true``."""
    notes = item.get("annotations") if isinstance(item, dict) else None
    if not isinstance(notes, dict):
        return []
    return sorted(f"{key}={str(notes[key]).lower()}" for key in _HINTS if isinstance(notes.get(key), bool))


def tool_breaches(item: object) -> list[str]:
    """Return where a tool's definition is not what the protocol and JSON Schema ask for."""
    return list(islice(_tool(item), MOST_BREACHES))


def _tool(item: object) -> Iterator[str]:
    if not isinstance(item, dict):
        yield "the definition is no object"
        return
    if not isinstance(item.get("name"), str) or not item["name"]:
        yield "/name is missing"
    for key in ("inputSchema", "outputSchema"):
        if key not in item:
            if key == "inputSchema":
                yield "/inputSchema is missing"
            continue
        schema = item[key]
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"/{key} is no schema of an object"
        yield from _schema(schema, f"/{key}")
    notes = item.get("annotations", {})
    if not isinstance(notes, dict):
        yield "/annotations is no object"
    else:
        yield from (f"/annotations/{key} is no boolean" for key in _HINTS if not isinstance(notes.get(key, True), bool))


def _schema(schema: object, at: str) -> Iterator[str]:
    """Yield where a schema is malformed (JSON Schema 2020-12, "Validation" §6)."""
    root = schema
    stack = [(schema, at)]
    for _ in range(_MOST_SCHEMAS):
        if not stack:
            return
        item, place = stack.pop()
        if isinstance(item, bool):
            continue
        if not isinstance(item, dict):
            yield f"{place} is no schema"
            continue
        kinds = item.get("type", [])
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if not isinstance(kind, str) or kind not in _TYPES:
                yield f"{place}/type is no type of JSON Schema"
        properties = item.get("properties", {})
        if isinstance(properties, dict):
            stack.extend((child, f"{place}/properties/{name}") for name, child in properties.items())
        else:
            yield f"{place}/properties is no object"
        required = item.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            yield f"{place}/required is no list of names"
        elif isinstance(properties, dict) and properties and not {*required} <= properties.keys():
            yield f"{place}/required names a property that is not there"
        if not isinstance(item.get("enum", []), list):
            yield f"{place}/enum is no list"
        if isinstance(item.get("items"), (dict, bool)):
            stack.append((item["items"], f"{place}/items"))
        for key in ("anyOf", "oneOf", "allOf"):
            some = item.get(key, [])
            if isinstance(some, list):
                stack.extend((child, f"{place}/{key}/{n}") for n, child in enumerate(some))
            else:
                yield f"{place}/{key} is no list"
        target = item.get("$ref")
        if isinstance(target, str) and target.startswith("#/") and _resolved(root, target) is None:
            yield f"{place}/$ref leads nowhere"


def _resolved(root: object, target: str) -> object:
    found: object = root
    for part in target[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


class Outputs:
    """The output schemas of a server's tools, and whether its results keep to them."""

    def __init__(self) -> None:
        self._schemas: dict[str, object] = {}

    def define(self, item: object) -> None:
        """Remember a tool's output schema; at most 10,000 are kept."""
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            if "outputSchema" not in item:
                self._schemas.pop(item["name"], None)
            elif len(self._schemas) < 10_000:
                self._schemas[item["name"]] = item["outputSchema"]

    def breaches(self, tool: str | None, result: dict[str, Any]) -> list[str]:
        """Return where a result is not what its tool's output schema promises."""
        if tool is None or tool not in self._schemas or result.get("isError") is True:
            return []
        if "structuredContent" not in result:
            return ["/result/structuredContent is missing, which the tool's outputSchema promises"]
        found: list[str] = []
        for value in readings(result, "structuredContent"):
            check = _Check(self._schemas[tool])
            found += check.compare(value, self._schemas[tool], "/result/structuredContent", 0)
        return found[:MOST_BREACHES]


class _Check:
    """One value against one schema: the keywords that matter, within a budget; what is unknown is fulfilled."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._steps = 0

    def compare(self, value: object, schema: object, at: str, depth: int) -> list[str]:
        """Return where ``value`` does not keep to ``schema``."""
        self._steps += 1
        if self._steps > _MOST_STEPS or depth > _DEEPEST or schema is True:
            return []
        if schema is False:
            return [f"{at} is not allowed"]
        if not isinstance(schema, dict):
            return []
        target = schema.get("$ref")
        if isinstance(target, str):
            return self.compare(
                value, _resolved(self._root, target) if target.startswith("#/") else True, at, depth + 1
            )
        kinds = schema.get("type")
        kinds = kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else []
        if kinds and not any(_is(value, kind) for kind in kinds):
            return [f"{at} is no {' or '.join(str(kind) for kind in kinds if kind in _TYPES) or 'such thing'}"]
        found: list[str] = []
        if isinstance(schema.get("enum"), list) and value not in schema["enum"]:
            found.append(f"{at} is none of the values allowed")
        if "const" in schema and value != schema["const"]:
            found.append(f"{at} is not the value asked for")
        if isinstance(value, dict):
            found += self._object(value, schema, at, depth)
        if isinstance(value, list) and isinstance(schema.get("items"), (dict, bool)):
            for number, item in enumerate(value):
                found += self.compare(item, schema["items"], f"{at}/{number}", depth + 1)
        return found + self._some(value, schema, at, depth)

    def _object(self, value: dict[str, Any], schema: dict[str, Any], at: str, depth: int) -> list[str]:
        found = []
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        for name in required if isinstance(required, list) else []:
            if isinstance(name, str) and name not in value:
                found.append(f"{at}/{name} is missing")
        for name, item in value.items():
            if name in properties:
                found += self.compare(item, properties[name], f"{at}/{name}", depth + 1)
            elif schema.get("additionalProperties") is False and "patternProperties" not in schema:
                found.append(f"{at}/{name} is not allowed")
        return found

    def _some(self, value: object, schema: dict[str, Any], at: str, depth: int) -> list[str]:
        found: list[str] = []
        every = schema.get("allOf")
        for one in every if isinstance(every, list) else []:
            found += self.compare(value, one, at, depth + 1)
        for key in ("anyOf", "oneOf"):
            some = schema.get(key)
            if isinstance(some, list) and some and all(self.compare(value, one, at, depth + 1) for one in some):
                found.append(f"{at} is nothing that {key} allows")
        return found


def _is(value: object, kind: object) -> bool:
    if kind == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    known: dict[object, type | tuple[type, ...]] = {
        "array": list,
        "boolean": bool,
        "null": type(None),
        "object": dict,
        "string": str,
    }
    return kind in known and isinstance(value, known[kind])
