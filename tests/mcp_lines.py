"""Lines of MCP transcripts, made by hand, and short forms of what was read from them."""

import json
from pathlib import Path
from typing import Any

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.mcp import McpTranscript
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpMessage, McpTool
from mcpdetect.model.observation import Observation

INIT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
    "instructions": "Use the tools.",
}


def tool(name: str, description: str = "x", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


def frame(direction: str, message: object, t: str = "1796038737.266463") -> str:
    return f'{{"t": {t}, "dir": "{direction}", "msg": {json.dumps(message)}}}\n'


def ask(number: object, method: str, params: dict[str, Any] | None = None) -> str:
    return frame("c2s", {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})


def reply(number: object, result: object) -> str:
    return frame("s2c", {"jsonrpc": "2.0", "id": number, "result": result})


def read(
    folder: Path, content: str | bytes, wanted: frozenset[str] | None = None, declared: Declared | None = None
) -> tuple[list[Event], Observation]:
    path = folder / "mcp.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    adapter = McpTranscript(path, "mcp.jsonl", declared)
    return list(adapter.events(wanted)), adapter.observation


def losses(observation: Observation) -> list[tuple[str, int, int | None, list[str], bool]]:
    return [(x.what, x.count, x.where.at if x.where else None, x.touches, x.note) for x in observation.losses]


def tools(events: list[Event]) -> list[tuple[str, str, int, int]]:
    return [(e.part, e.name, e.revision, e.where.at) for e in events if isinstance(e, McpTool)]


def messages(events: list[Event]) -> list[McpMessage]:
    return [e for e in events if isinstance(e, McpMessage)]
