"""Controls that only speak: each text of a file becomes a variant, said by a small MCP server in one part of its words.

``speaks: texts.yaml`` in a ``control.yaml`` names the file. Its keys ``fires`` and ``silent`` hold one entry a variant:
the text, the ``part`` where it stands, what coverage counts by, and why. The server's other words are plain and honest.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from mcpdetect.data.loader import Shape, line_of, load_yaml
from mcpdetect.errors import ConfigError

__all__ = ["PARTS", "SPEAKER", "SPEECH", "Speech", "speeches"]

SPEAKER = Path(__file__).resolve().parent / "planted" / "speaker"
"""Folder of the servers that say a speech."""

SPEECH = "speech.json"
"""Name of the speech beside the server."""

Speech = dict[str, Any]

_ENTRY: Final[Shape] = {
    "part": None,
    "form": None,
    "language": None,
    "text": None,
    "why": None,
    "todo?": None,
    "runtime?": None,
    "whole?": None,
}
_SHAPE: Final[Shape] = {"fires": {"*": _ENTRY}, "silent": {"*": _ENTRY}}

_BASE: Final[Speech] = {
    "instructions": None,
    "tools": [
        {
            "name": "list_notes",
            "description": "Lists the notes of a folder.",
            "inputSchema": {
                "type": "object",
                "properties": {"folder": {"type": "string", "description": "The folder."}},
            },
        },
        {
            "name": "find",
            "description": "Finds a note by a word in it.",
            "inputSchema": {
                "type": "object",
                "properties": {"word": {"type": "string"}, "mode": {"type": "string", "enum": ["exact", "loose"]}},
            },
        },
    ],
    "prompts": [{"name": "summary", "description": "A short summary."}],
    "messages": {"summary": "Sum up the note."},
    "resources": [{"uri": "notes://list", "name": "list", "description": "All notes."}],
    "contents": {"notes://list": "milk, bread"},
    "results": {"list_notes": ["milk, bread"], "find": ["milk"]},
    "errors": {},
    "asks": [],
}


def _tool(speech: Speech) -> dict[str, Any]:
    found: dict[str, Any] = speech["tools"][1]
    return found


def _properties(speech: Speech) -> dict[str, Any]:
    found: dict[str, Any] = _tool(speech)["inputSchema"]["properties"]
    return found


def _renamed(speech: Speech, text: str) -> None:
    speech["results"][text] = speech["results"].pop("find")
    _tool(speech)["name"] = text


def _output(speech: Speech, text: str) -> None:
    _tool(speech)["outputSchema"] = {
        "type": "object",
        "properties": {"count": {"type": "integer", "description": text}},
        "required": ["count"],
    }


def _question(speech: Speech, text: str) -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    speech["asks"].append(
        {"id": "q1", "method": "elicitation/create", "params": {"message": text, "requestedSchema": schema}}
    )


def _sampling(speech: Speech, text: str) -> None:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    speech["asks"].append(
        {"id": "s1", "method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 10}}
    )


PARTS: Final[dict[str, Callable[[Speech, str], None]]] = {
    "description": lambda speech, text: _tool(speech).update(description=text),
    "title": lambda speech, text: _tool(speech).update(title=text),
    "name": _renamed,
    "annotation": lambda speech, text: _tool(speech).update(annotations={"title": text}),
    "parameter": lambda speech, text: _properties(speech)["word"].update(description=text),
    "parameter-name": lambda speech, text: _tool(speech)["inputSchema"]["properties"].update(
        {text: {"type": "string"}}
    ),
    "enum": lambda speech, text: _tool(speech)["inputSchema"]["properties"]["mode"]["enum"].append(text),
    "default": lambda speech, text: _properties(speech)["word"].update(default=text),
    "output-schema": _output,
    "instructions": lambda speech, text: speech.update(instructions=text),
    "prompt": lambda speech, text: speech["prompts"][0].update(description=text),
    "prompt-message": lambda speech, text: speech["messages"].update(summary=text),
    "resource": lambda speech, text: speech["resources"][0].update(description=text),
    "resource-content": lambda speech, text: speech["contents"].update({"notes://list": text}),
    "result": lambda speech, text: speech["results"].update(find=[text]),
    "error": lambda speech, text: speech["errors"].update(find=text),
    "sampling": _sampling,
    "elicitation": _question,
    "notification": lambda speech, text: speech["asks"].append(
        {"method": "notifications/message", "params": {"level": "info", "data": text}}
    ),
}
"""Where a text may stand, and how it is put there."""


def speeches(path: Path) -> Iterator[tuple[str, dict[str, Any], Speech]]:
    """Yield the variants of a file of texts: name, entry as ``control.yaml`` would hold it, speech.

    Every fourth text or so, by its name, is said by the server in Node; the others by the one in Python.

    Raises:
        ConfigError: naming file, line and value.
    """
    data = load_yaml(path, _SHAPE)
    for truth in ("fires", "silent"):
        for name, item in data[truth].items():
            if item["part"] not in PARTS:
                place = f"line {line_of(path, (truth, name, 'part'))}"
                raise ConfigError(
                    f"a part is one of {', '.join(PARTS)}", file=str(path), place=place, value=item["part"]
                )
            speech = copy.deepcopy(_BASE)
            PARTS[item["part"]](speech, str(item["text"]))
            runtime = item.get("runtime") or ("node" if zlib.crc32(name.encode()) % 4 == 0 else "python")
            program = ["/usr/bin/node"] if runtime == "node" else ["/usr/bin/python3", "-I", "-S"]
            server = "speaker.js" if runtime == "node" else "speaker.py"
            # The whole log of a start says nothing about a text; a few cases keep it.
            options = [] if item.get("whole") else ["-f", "-ttt", "-T", "-yy", "-s", "4096", "-e", "trace=process"]
            entry = {
                "truth": truth,
                "why": item["why"],
                "run": [*program, f"{{control}}/{server}", f"{{control}}/{SPEECH}"],
                "axes": {key: item[key] for key in ("part", "form", "language")} | {"runtime": runtime},
                "expect": {},
                "mcp": True,
                "thorough": True,
                "strace": options,
            }
            yield name, entry, speech
