"""What is asked of a server: which tools in which order, with which arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from controls.recorder.arguments import arguments

__all__ = ["Call", "calls_of", "plain_arguments", "prompt_arguments"]

# create_entities, browserNavigate, list-tables -> words
_WORDS = re.compile(r"[A-Z]?[a-z]++|[A-Z]++|\d++")
_FIRST = frozenset({"connect", "create", "init", "initialize", "launch", "navigate", "new", "open", "start", "write"})
_LAST = frozenset({"clear", "close", "delete", "disconnect", "drop", "kill", "quit", "remove", "shutdown", "stop"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool.

    Attributes:
        tool: its name; whatever the server gave.
        arguments: what it is called with.
        pause: seconds to wait before it.
    """

    tool: Any
    arguments: dict[str, Any] = field(default_factory=dict)
    pause: float = 0.0


def plain_arguments(schema: object) -> dict[str, Any]:
    """Return arguments that satisfy a tool's simple input schema: every property gets a plain value."""
    values = {"string": "hello", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {
        name: values.get(str(one.get("type")) if isinstance(one, dict) else "", "hello")
        for name, one in properties.items()
    }


def _rank(tool: dict[str, Any]) -> int:
    words = {word.lower() for word in _WORDS.findall(str(tool.get("name"))[:200])}
    return -1 if words & _FIRST and not words & _LAST else 1 if words & _LAST else 0


def calls_of(
    tools: Sequence[dict[str, Any]], *, thorough: bool, given: Sequence[Call] = (), tag: str = ""
) -> list[Call]:
    """Return the calls to make.

    Args:
        tools: as the server listed them.
        thorough: every tool twice with arguments made from its schema, what opens first and what closes last; else
            once with plain ones, as listed.
        given: calls to make instead.
        tag: the canary tag of the run; a canary goes along in one argument a call of the second round.
    """
    if given:
        return list(given)
    if not thorough:
        return [Call(tool.get("name"), plain_arguments(tool.get("inputSchema"))) for tool in tools]
    ordered = sorted(tools, key=_rank)
    return [
        Call(tool.get("name"), arguments(tool.get("inputSchema"), number, tool=str(tool.get("name")), tag=tag))
        for number in range(2)
        for tool in ordered
    ]


def prompt_arguments(prompt: dict[str, Any]) -> dict[str, str]:
    """Return a value for every argument of a prompt."""
    wanted = prompt.get("arguments")
    names = [one.get("name") for one in wanted if isinstance(one, dict)] if isinstance(wanted, list) else []
    return {str(name): "hello" for name in names}
