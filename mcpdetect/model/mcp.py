"""Events of the MCP conversation (JSON-RPC 2.0; Model Context Protocol)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mcpdetect.model.event import Event
from mcpdetect.model.place import STRICT
from mcpdetect.model.vocabulary import Channel

__all__ = ["McpMessage", "McpText", "McpTool"]


@dataclass(slots=True)
class McpText:
    """One string of a tool.

    Attributes:
        pointer: its JSON Pointer (RFC 6901) within the tool object.
        text: the string.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    pointer: str
    text: str


@dataclass(slots=True)
class McpMessage(Event):
    r"""One JSON-RPC message.

    Attributes:
        direction: ``c2s`` (from the client) or ``s2c`` (from the server).
        form: ``request``, ``response``, ``error``, ``notification``, or ``noise`` for a line that is no JSON-RPC.
        method: for requests and notifications; for responses the method of the request they answer, where paired.
        id: the request id as JSON text (``"1"``, ``"\"abc\""``), so that 1 and "1" stay different.
        answers: evidence place number of the request a response answers.
        tool: for ``tools/call`` requests and their responses, the tool's name.
        arguments: for ``tools/call``, the arguments as compact JSON (bounded).
        is_error: the response reports a failure (JSON-RPC error, or a result with ``isError`` true).
        text: noise lines, server instructions, error messages and the text of results (bounded).
        cut: ``arguments`` or ``text`` is shortened.
        breaches: where it is not what JSON-RPC 2.0 and the protocol ask for, in fixed words with a JSON Pointer.
        seen_in: ``mcp`` for a transcript, ``syscalls`` for what was overheard in the program's reads and writes.
    """

    kind: Literal["mcp.message"] = field(default="mcp.message", kw_only=True)
    channel: ClassVar[Channel] = "mcp"
    direction: Literal["c2s", "s2c"] = "s2c"
    form: Literal["request", "response", "error", "notification", "noise"] = "request"
    method: str | None = None
    id: str | None = None
    answers: int | None = None
    tool: str | None = None
    arguments: str | None = None
    is_error: bool = False
    text: str | None = None
    cut: bool = False
    breaches: list[str] | None = field(default=None, kw_only=True)
    seen_in: Channel = field(default="mcp", kw_only=True)


@dataclass(slots=True)
class McpTool(Event):
    """One tool as listed by ``tools/list``; emitted anew when its definition differs from the last one.

    Attributes:
        name: the tool's name.
        texts: every string of the tool object, in document order: name, title, description, every string in the
            schemas (keys of ``properties`` too, with the pointer of their value), annotations, ``_meta``.
        digest: sha256 of the canonical JSON (keys sorted, no white space) of the tool object.
        revision: 1 for the first definition of this name, 2 for the next, ...
        hints: its boolean annotations, sorted: ``readOnlyHint=true``, ``openWorldHint=false``.
        breaches: where the definition is not what the protocol asks for, in fixed words with a JSON Pointer.
        part: ``tool``, or the other things a server tells the agent: ``instructions``, ``prompt``, ``resource``.
        seen_in: as in ``McpMessage``.
    """

    kind: Literal["mcp.tool"] = field(default="mcp.tool", kw_only=True)
    channel: ClassVar[Channel] = "mcp"
    name: str = ""
    texts: list[McpText] = field(default_factory=list)
    digest: str = ""
    revision: int = 1
    part: Literal["tool", "instructions", "prompt", "resource"] = "tool"
    hints: list[str] | None = field(default=None, kw_only=True)
    breaches: list[str] | None = field(default=None, kw_only=True)
    seen_in: Channel = field(default="mcp", kw_only=True)
