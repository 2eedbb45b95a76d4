"""What a server says to the agent, piece by piece: what it lists, what it asks, what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mcpdetect.contract import AnyOf, Need
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpMessage, McpTool
from mcpdetect.model.text import bytes_of

__all__ = ["ASKED_AND_ANSWERED", "LISTED", "Said", "said"]

Voice = Literal["own", "returned"]

LISTED = AnyOf("the server's listed texts", Need("mcp", ("mcp.tool",)), Need("syscalls", ("mcp.tool",)))
"""What must be watched to deny anything about the texts of tools, prompts and resources."""

ASKED_AND_ANSWERED = AnyOf(
    "what the server asks and answers",
    Need("mcp", ("mcp.message", "data:mcp.message")),
    Need("syscalls", ("mcp.message", "data:mcp.message")),
)
"""What must be watched to deny anything about its other words."""

# Methods whose answers carry what others wrote: web pages, files, records. All else is the server's own word.
_RETURNED = frozenset({"tools/call", "resources/read"})
# Their answers are listed definitions, which come as events of their own.
_LISTED = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list", "initialize"})
_ASKS = {
    "sampling/createMessage": "a sampling request",
    "elicitation/create": "a question to the user",
    "notifications/message": "a log message",
    "prompts/get": "a prompt",
    "resources/read": "the content of a resource",
}


@dataclass(slots=True)
class Said:
    r"""One text that a server said.

    Attributes:
        event: the event that carries it.
        voice: ``own`` for what the server wrote itself (definitions, instructions, prompts, errors of the protocol,
            requests, notifications), ``returned`` for results of calls and contents of resources, which may be
            somebody else's words.
        subject: whose text it is, as a sentence names it: ``the tool 'add'``.
        part: ``tool``, ``instructions``, ``prompt``, ``resource``, ``result``, ``error``, ``request`` or
            ``notification``.
        name: the tool, prompt or resource, or the method.
        pointer: JSON Pointer within a listed definition, ``""`` for a message.
        text: the text as the server wrote it; bytes that are no UTF-8 are written ``\xNN``.
        cut: it is only the beginning.
    """

    event: Event
    voice: Voice
    subject: str
    part: str
    name: str
    pointer: str
    text: str
    cut: bool = False


def said(event: Event) -> Iterator[Said]:
    """Yield the texts of an ``mcp.tool`` or ``mcp.message`` event that come from the server."""
    if isinstance(event, McpTool):
        subject = "the server's instructions" if event.part == "instructions" else f"the {event.part} {event.name!r}"
        for text in event.texts:
            yield Said(event, "own", subject, event.part, event.name, text.pointer, _plain(text.text))
    elif isinstance(event, McpMessage) and event.direction == "s2c" and event.text and event.form != "noise":
        method = event.method or ""
        if event.form == "response" and method not in _LISTED:
            # A response whose request is unknown may be the result of a call.
            voice: Voice = "returned" if method in _RETURNED or not method else "own"
            name = event.tool or method
            subject = _ASKS.get(method) or (f"a result of {event.tool!r}" if event.tool else "an answer")
            yield Said(event, voice, subject, "result", name, "", _plain(event.text), event.cut)
        elif event.form == "error":
            subject = f"an error of {event.tool!r}" if event.tool else "an error"
            yield Said(event, "own", subject, "error", event.tool or method, "", _plain(event.text), event.cut)
        elif event.form in ("request", "notification"):
            subject = _ASKS.get(method, f"the message {method!r}")
            yield Said(event, "own", subject, event.form, method, "", _plain(event.text), event.cut)


def _plain(text: str) -> str:
    """Return event text with its doubled backslashes undone."""
    return bytes_of(text).decode("utf-8", "backslashreplace") if "\\" in text else text
