"""One JSON-RPC message of an MCP session: its form, its direction, the texts it carries."""

from __future__ import annotations

from typing import Any, Literal

from mcpdetect.ingest.mcp_json import compact, plain, readings

__all__ = ["TEXT_LIMIT", "Direction", "Form", "bounded", "direction_of", "form_of", "message_text"]

TEXT_LIMIT = 65_536
"""Most characters of text or arguments one message event keeps."""

Direction = Literal["c2s", "s2c"]
Form = Literal["request", "response", "error", "notification", "noise"]

# Methods only a client sends (MCP 2024-11-05 to 2025-06-18). Everything else with a method is the server's.
_FROM_CLIENT = frozenset(
    [
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
        "logging/setLevel",
        "notifications/initialized",
        "notifications/roots/list_changed",
    ]
)


def form_of(message: object) -> Form:
    """Return what a JSON value is in JSON-RPC 2.0 (section 4 and 5); a missing ``jsonrpc`` member is forgiven."""
    if not isinstance(message, dict):
        return "noise"
    if isinstance(message.get("method"), str):
        return "request" if "id" in message else "notification"
    if "error" in message and message["error"] is not None:
        return "error"
    return "response" if "result" in message and "id" in message else "noise"


def direction_of(message: dict[str, Any]) -> Direction:
    """Return who sends such a message, where the transcript does not say: the server, unless only a client does."""
    return "c2s" if message.get("method") in _FROM_CLIENT else "s2c"


def message_text(message: dict[str, Any], form: Form) -> str | None:
    """Return the texts a message carries to the other side, joined by line ends; None where it carries none."""
    if form == "error":
        parts = [part for error in readings(message, "error") for part in _error_texts(error)]
    elif form == "response":
        parts = [part for result in readings(message, "result") for part in _texts(result)]
    else:
        parts = [part for params in readings(message, "params") for part in _texts(params)]
    return "\n".join(parts) if parts else None


def _error_texts(error: object) -> list[str]:
    # {"code":-32601,"message":"Method not found","data":{"method":"prompts/list"}}
    if not isinstance(error, dict):
        return [error if isinstance(error, str) else compact(error)]
    parts = [error["message"]] if isinstance(error.get("message"), str) else []
    if error.get("data") is not None:
        parts.append(error["data"] if isinstance(error["data"], str) else compact(error["data"]))
    return parts


def _texts(body: object) -> list[str]:
    """Return the texts of a result or of params that people or an agent get to read."""
    if not isinstance(body, dict):
        return []
    parts: list[str] = []
    # initialize; elicitation/create and notifications/progress; sampling/createMessage
    for key in ("instructions", "message", "systemPrompt"):
        parts.extend(value for value in readings(body, key) if isinstance(value, str))
    # {"content":[{"type":"text","text":"..."}]}, {"contents":[{"uri":"...","text":"..."}]},
    # {"messages":[{"role":"user","content":{"type":"text","text":"..."}}]}
    for key in ("content", "contents", "messages"):
        for value in readings(body, key):
            for item in value if isinstance(value, list) else [value]:
                parts.extend(_item_texts(item))
    # roots/list: {"roots":[{"uri":"file:///home/dev/project","name":"project"}]}
    for value in readings(body, "roots"):
        for item in value if isinstance(value, list) else []:
            parts.extend(
                uri for uri in (readings(item, "uri") if isinstance(item, dict) else []) if isinstance(uri, str)
            )
    # notifications/message: {"level":"info","data":"..."}; a tool's structuredContent
    for key in ("data", "structuredContent"):
        for value in readings(body, key):
            if value is not None:
                parts.append(value if isinstance(value, str) else compact(value))
    return parts


def _item_texts(item: object) -> list[str]:
    if not isinstance(item, dict):
        return []
    parts = [value for value in readings(item, "text") if isinstance(value, str)]
    for key in ("resource", "content"):
        inner = item.get(key)
        for part in inner if isinstance(inner, list) else [inner]:
            if isinstance(part, dict):
                parts.extend(value for value in readings(part, "text") if isinstance(value, str))
    return parts


def bounded(text: str, broken: bool = False) -> tuple[str, bool]:
    """Return ``text`` as event text of at most ``TEXT_LIMIT`` characters of the original, and whether it was cut."""
    cut = len(text) > TEXT_LIMIT
    return plain(text[:TEXT_LIMIT] if cut else text, broken), cut
