"""Where messages, definitions and outputs break the protocol, and where they only use its freedom."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpdetect.ingest.mcp import McpTranscript
from mcpdetect.ingest.mcp_conformance import (
    MOST_BREACHES,
    Outputs,
    message_breaches,
    result_breaches,
    tool_breaches,
    tool_hints,
)
from mcpdetect.model.mcp import McpMessage, McpTool

OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("message", "form", "breaches"),
    [
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, "response", []),
        ({"id": 1, "result": {}}, "response", ['/jsonrpc is not "2.0"']),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": None}, "response", ["both /result and /error are given"]),
        ({"jsonrpc": "2.0", "error": {"code": -1, "message": "x"}}, "error", ["an answer without /id"]),
        (
            {"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}},
            "error",
            ["/error/code is no integer", "/error/message is no string"],
        ),
        ({"jsonrpc": "2.0", "id": 1, "error": "x"}, "error", ["/error is no object"]),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, "request", ["/id is neither a string nor an integer"]),
        ({"jsonrpc": "2.0", "id": [1], "method": "ping"}, "request", ["/id is neither a string nor an integer"]),
        ({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}}, "error", []),
    ],
)
def test_messages(message: dict[str, Any], form: str, breaches: list[str]) -> None:
    assert message_breaches(message, form) == breaches


@pytest.mark.parametrize(
    ("method", "result", "breaches"),
    [
        ("tools/list", {"tools": []}, []),
        ("tools/list", {"tools": {}, "nextCursor": 3}, ["/result/tools is no list", "/result/nextCursor is no string"]),
        ("tools/call", {"content": []}, []),
        ("tools/call", {}, ["/result/content is no list"]),
        ("tools/call", {"content": [{"type": "text"}]}, ["/result/content/0/text is missing"]),
        (
            "tools/call",
            {"content": [{"type": "video"}, "x"], "isError": "no"},
            [
                "/result/content/0/type is no type of content",
                "/result/content/1/type is no type of content",
                "/result/isError is no boolean",
            ],
        ),
        (
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}},
            [],
        ),
        (
            "initialize",
            {"protocolVersion": 1, "serverInfo": {"name": "a"}},
            [
                "/result/protocolVersion is no string",
                "/result/capabilities is no object",
                "/result/serverInfo/version is no string",
            ],
        ),
        ("ping", {}, []),
        (None, {"content": "x"}, []),
    ],
)
def test_results(method: str | None, result: dict[str, Any], breaches: list[str]) -> None:
    assert result_breaches(method, result) == breaches


@pytest.mark.parametrize(
    ("item", "breaches"),
    [
        ({"name": "a", "inputSchema": OBJECT}, []),
        (
            {
                "name": "a",
                "inputSchema": {
                    "type": "object",
                    "properties": {"p": True, "q": {"type": ["string", "null"]}},
                    "required": ["p"],
                },
            },
            [],
        ),
        ("a", ["the definition is no object"]),
        ({"inputSchema": OBJECT}, ["/name is missing"]),
        ({"name": "a"}, ["/inputSchema is missing"]),
        ({"name": "a", "inputSchema": {"type": "string"}}, ["/inputSchema is no schema of an object"]),
        (
            {"name": "a", "inputSchema": OBJECT, "outputSchema": []},
            ["/outputSchema is no schema of an object", "/outputSchema is no schema"],
        ),
        (
            {"name": "a", "inputSchema": {"type": "object", "properties": {"p": {"type": "text"}}}},
            ["/inputSchema/properties/p/type is no type of JSON Schema"],
        ),
        ({"name": "a", "inputSchema": {"type": "object", "properties": []}}, ["/inputSchema/properties is no object"]),
        (
            {"name": "a", "inputSchema": {"type": "object", "properties": {"p": {}}, "required": ["q"]}},
            ["/inputSchema/required names a property that is not there"],
        ),
        (
            {"name": "a", "inputSchema": {"type": "object", "required": "p"}},
            ["/inputSchema/required is no list of names"],
        ),
        (
            {"name": "a", "inputSchema": {"type": "object", "properties": {"p": {"enum": "x"}}}},
            ["/inputSchema/properties/p/enum is no list"],
        ),
        (
            {"name": "a", "inputSchema": {"type": "object", "properties": {"p": {"items": {"anyOf": 3}}}}},
            ["/inputSchema/properties/p/items/anyOf is no list"],
        ),
        (
            {"name": "a", "inputSchema": {"type": "object", "properties": {"p": {"$ref": "#/$defs/X"}}}},
            ["/inputSchema/properties/p/$ref leads nowhere"],
        ),
        (
            {
                "name": "a",
                "inputSchema": {"type": "object", "$defs": {"X": {}}, "properties": {"p": {"$ref": "#/$defs/X"}}},
            },
            [],
        ),
        (
            {"name": "a", "inputSchema": OBJECT, "annotations": {"readOnlyHint": "yes"}},
            ["/annotations/readOnlyHint is no boolean"],
        ),
    ],
)
def test_definitions(item: object, breaches: list[str]) -> None:
    assert tool_breaches(item) == breaches


def test_never_more_than_a_bound() -> None:
    properties = {f"p{number}": {"type": "text"} for number in range(500)}
    assert (
        len(tool_breaches({"name": "a", "inputSchema": {"type": "object", "properties": properties}})) == MOST_BREACHES
    )


def test_hints_are_boolean_annotations() -> None:
    notes = {"readOnlyHint": True, "openWorldHint": False, "title": "x", "idempotentHint": "yes"}
    assert tool_hints({"annotations": notes}) == ["openWorldHint=false", "readOnlyHint=true"]
    assert tool_hints({"annotations": [1]}) == []


@pytest.mark.parametrize(
    ("schema", "content", "breaches"),
    [
        ({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, {"n": 1}, []),
        ({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, {"n": 1.0}, []),
        (
            {"type": "object", "properties": {"n": {"type": "integer"}}},
            {"n": True},
            ["/result/structuredContent/n is no integer"],
        ),
        ({"type": "object", "required": ["n"]}, {}, ["/result/structuredContent/n is missing"]),
        (
            {"type": "object", "properties": {}, "additionalProperties": False},
            {"x": 1},
            ["/result/structuredContent/x is not allowed"],
        ),
        (
            {"type": "object", "properties": {"a": {"items": {"type": "string"}}}},
            {"a": ["x", 1]},
            ["/result/structuredContent/a/1 is no string"],
        ),
        (
            {"type": "object", "properties": {"a": {"enum": ["x"]}, "b": {"const": 1}}},
            {"a": "y", "b": 2},
            [
                "/result/structuredContent/a is none of the values allowed",
                "/result/structuredContent/b is not the value asked for",
            ],
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "array"}]},
            {},
            ["/result/structuredContent is nothing that anyOf allows"],
        ),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1}, ["/result/structuredContent/b is missing"]),
        ({"$ref": "#/$defs/T", "$defs": {"T": {"type": "array"}}}, {}, ["/result/structuredContent is no array"]),
        ({"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}, {"a": "a" * 40 + "!"}, []),
        ({"$ref": "#/$defs/T", "$defs": {"T": {"$ref": "#/$defs/T"}}}, {}, []),
    ],
)
def test_outputs(schema: object, content: object, breaches: list[str]) -> None:
    outputs = Outputs()
    outputs.define({"name": "t", "outputSchema": schema})
    assert outputs.breaches("t", {"content": [], "structuredContent": content}) == breaches


def test_a_promised_output_is_owed_by_answers_and_not_by_failures() -> None:
    outputs = Outputs()
    outputs.define({"name": "t", "outputSchema": OBJECT})
    missing = ["/result/structuredContent is missing, which the tool's outputSchema promises"]
    assert outputs.breaches("t", {"content": []}) == missing
    assert outputs.breaches("t", {"content": [], "isError": True}) == []
    assert outputs.breaches("other", {"content": []}) == []
    outputs.define({"name": "t"})
    assert outputs.breaches("t", {"content": []}) == []


def test_capabilities_are_held_against_what_follows(tmp_path: Path) -> None:
    start = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"prompts": {}},
        "serverInfo": {"name": "a", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "result": start},
        {"jsonrpc": "2.0", "id": 2, "method": "prompts/list"},
        {"jsonrpc": "2.0", "id": 2, "error": {"code": -32601, "message": "method not found"}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "result": {"tools": []}},
    ]
    path = tmp_path / "mcp.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    events = [event for event in McpTranscript(path).events() if isinstance(event, McpMessage | McpTool)]
    found = [(event.where.at, event.breaches) for event in events if event.breaches]
    assert found == [
        (4, ["prompts/list is refused, which the server's capabilities offer"]),
        (6, ["tools/list is answered, which the server's capabilities do not offer"]),
    ]
