"""JSON as hostile evidence: bounded, exact, with duplicate keys kept and every string addressed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from mcpdetect.model.mcp import McpText
from mcpdetect.model.text import text_of

__all__ = [
    "MAX_DEPTH",
    "MAX_VALUES",
    "Exact",
    "Reading",
    "Shadowed",
    "compact",
    "digest_of",
    "plain",
    "read_json",
    "readings",
    "texts_of",
]

MAX_DEPTH = 128
"""Deepest nesting read; the deepest message of some 1,000 recorded tools has 19 levels."""

MAX_VALUES = 1_000_000
"""Most values in one line: about 100 MB once parsed."""

# Keys that JSON Schema (draft 2020-12) and the Model Context Protocol define; any other key is the server's own words.
_KEYWORDS = frozenset(
    [
        "$anchor",
        "$comment",
        "$defs",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$ref",
        "$schema",
        "$vocabulary",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "annotations",
        "anyOf",
        "arguments",
        "audience",
        "const",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "dependentRequired",
        "dependentSchemas",
        "deprecated",
        "description",
        "destructiveHint",
        "else",
        "enum",
        "examples",
        "execution",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "icons",
        "idempotentHint",
        "if",
        "inputSchema",
        "instructions",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "mimeType",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "name",
        "not",
        "oneOf",
        "openWorldHint",
        "outputSchema",
        "pattern",
        "patternProperties",
        "prefixItems",
        "priority",
        "properties",
        "propertyNames",
        "readOnly",
        "readOnlyHint",
        "required",
        "size",
        "sizes",
        "src",
        "taskSupport",
        "then",
        "title",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "uri",
        "uriTemplate",
        "websiteUrl",
        "writeOnly",
        "_meta",
        "protocolVersion",
        "capabilities",
        "serverInfo",
        "version",
        "tools",
        "prompts",
        "resources",
        "logging",
        "completions",
        "experimental",
        "listChanged",
        "subscribe",
        "lastModified",
    ]
)
# Objects whose keys are names of the server's choosing, whatever they are.
_NAMING = frozenset(
    [
        "properties",
        "patternProperties",
        "$defs",
        "definitions",
        "dependentSchemas",
        "dependentRequired",
        "_meta",
        "experimental",
    ]
)

# A whole string, or the rest of the line behind a quote that is never closed: linear, as every attempt matches.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+')
_BRACKET = re.compile(rb"[\[\]{}]")
# A byte that was no UTF-8 was decoded to U+DC80..U+DCFF (surrogateescape), which surrogatepass writes as ED B2/B3 xx.
_ESCAPED_BYTE = re.compile(rb"\xed([\xb2\xb3])([\x80-\xbf])")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Exact(float):
    """A JSON number with a fraction or exponent, which keeps its decimal text."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Exact:
        """Return the number that ``text`` writes."""
        number = super().__new__(cls, text)
        number.text = text
        return number


class Shadowed(dict[str, Any]):
    """An object in which a key was given more than once. The last value is the dict's, ``earlier`` holds the others."""

    earlier: list[tuple[str, Any]]


class Reading:
    """One line read as JSON.

    Attributes:
        value: the parsed value.
        broken: the line was not valid UTF-8; the bytes survive in ``plain``.
        duplicates: keys that were given more than once, in the order met.
    """

    __slots__ = ("broken", "duplicates", "value")

    def __init__(self, value: Any, broken: bool, duplicates: list[str]) -> None:  # noqa: ANN401
        self.value = value
        self.broken = broken
        self.duplicates = duplicates


def read_json(line: bytes) -> Reading:
    """Return a line's value; of duplicate keys the last wins, as in most readers, and the others are kept.

    Raises:
        ValueError: it is no JSON, is nested deeper than ``MAX_DEPTH`` or holds more than ``MAX_VALUES`` values; the
            message says which.
    """
    opened = line.count(b"[") + line.count(b"{")
    if opened > MAX_DEPTH and _depth(line) > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if opened + line.count(b",") > MAX_VALUES and _values(line) > MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES} values in one line")
    try:
        text, broken = line.decode("utf-8"), False
    except UnicodeDecodeError:
        text, broken = line.decode("utf-8", "surrogateescape"), True
    duplicates: list[str] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        kept = Shadowed(built)
        kept.earlier = []
        last = {key: at for at, (key, _) in enumerate(pairs)}
        for at, (key, value) in enumerate(pairs):
            if last[key] != at:
                kept.earlier.append((key, value))
                duplicates.append(key)
        return kept

    value = json.loads(text, object_pairs_hook=build, parse_float=Exact, parse_int=_integer)
    return Reading(value, broken, duplicates)


def _integer(text: str) -> int | Exact:
    # Python refuses to convert more than 4,300 digits; no number of that size means anything here.
    return int(text) if len(text) < 1000 else Exact(text)


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", line)):
        if bracket in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def _values(line: bytes) -> int:
    bare = _STRING.sub(b"", line)
    return bare.count(b",") + bare.count(b"[") + bare.count(b"{")


def plain(text: str, broken: bool = False) -> str:
    """Return a parsed JSON string as event text (``text_of`` of its UTF-8 bytes).

    Args:
        text: the string; a lone surrogate (JSON can write one, UTF-8 cannot) comes out as its three bytes.
        broken: the line had bytes that are not UTF-8; they come out as they were.
    """
    if text.isascii():
        return text.replace("\\", "\\\\")
    raw = text.encode("utf-8", "surrogatepass")
    if broken:
        raw = _ESCAPED_BYTE.sub(lambda match: bytes([(match[1][0] - 0xB2) * 0x40 + match[2][0]]), raw)
    return text_of(raw)


def compact(value: object) -> str:
    """Return a value as JSON text without white space; where it holds a lone surrogate, in ASCII with escapes."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if _SURROGATE.search(text):
        return json.dumps(value, separators=(",", ":"))
    return text


def digest_of(value: object) -> str:
    """Return the sha256 of a value's canonical JSON: keys sorted, no white space, ASCII with escapes."""
    digest = hashlib.sha256(json.dumps(value, separators=(",", ":"), sort_keys=True).encode())
    for pointer, earlier in _earlier(value):
        digest.update(f"\n{pointer}\n{json.dumps(earlier, separators=(',', ':'), sort_keys=True)}".encode())
    return digest.hexdigest()


def readings(holder: dict[str, Any], key: str) -> list[Any]:
    """Return every value that some reader may take for ``key``: the last first, then the earlier ones."""
    found = [holder[key]] if key in holder else []
    if isinstance(holder, Shadowed):
        found.extend(value for name, value in holder.earlier if name == key)
    return found


def texts_of(value: object, broken: bool = False) -> list[McpText]:
    """Return every string of a value in document order, each with its JSON Pointer (RFC 6901).

    The keys that the server chose are strings too, with the pointer of their value: those of ``properties`` and its
    like, and any that neither JSON Schema nor the protocol defines. Earlier values of a duplicate key come last.
    """
    return [McpText(plain(pointer, broken), plain(text, broken)) for pointer, text in _strings(value)]


def _strings(value: object) -> Iterator[tuple[str, str]]:
    stack: list[tuple[str, str, object]] = [("", "", value)]
    while stack:
        pointer, key, item = stack.pop()
        if isinstance(item, str):
            yield pointer, item
        elif isinstance(item, list):
            stack.extend((f"{pointer}/{at}", "", item[at]) for at in range(len(item) - 1, -1, -1))
        elif isinstance(item, dict):
            naming = key in _NAMING
            children: list[tuple[str, str, object]] = []
            for name, child in [*item.items(), *(item.earlier if isinstance(item, Shadowed) else ())]:
                below = f"{pointer}/{_token(name)}"
                if naming or name not in _KEYWORDS:
                    children.append((below, "", name))
                # A property may be called "properties": its value is a schema, not a map of names.
                children.append((below, "" if naming else name, child))
            stack.extend(reversed(children))


def _earlier(value: object) -> Iterator[tuple[str, object]]:
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        pointer, item = stack.pop()
        if isinstance(item, list):
            stack.extend((f"{pointer}/{at}", child) for at, child in enumerate(item))
        elif isinstance(item, dict):
            if isinstance(item, Shadowed):
                yield from ((f"{pointer}/{_token(name)}", child) for name, child in item.earlier)
            stack.extend((f"{pointer}/{_token(name)}", child) for name, child in item.items())


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
