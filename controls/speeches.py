"""Controls that speak or act as a file says: each entry of it becomes a variant of one of the small MCP servers.

``speaks: texts.yaml`` in a ``control.yaml`` names the file. Its keys ``fires``, ``silent`` and ``blind`` hold one entry
a variant: the ``text`` and the ``part`` where it stands, or a ``speech`` that replaces whole parts of what the server
says; what coverage counts by, and why. The server's other words are plain and honest. ``deeds`` make it the server
whose tools act; ``calls`` are made instead of one of each.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from controls.recorder.room import STRACE_OPTIONS
from mcpdetect.data.loader import Shape, line_of, load_yaml
from mcpdetect.errors import ConfigError

__all__ = ["PARTS", "SPEAKER", "SPEECH", "UPSTREAM", "Speech", "speeches"]

SPEAKER = Path(__file__).resolve().parent / "planted" / "speaker"
"""Folder of the servers that say a speech."""

SPEECH = "speech.json"
"""Name of the speech beside the server."""

UPSTREAM = "pay.service.test"
"""The host whose page an entry may give."""

Speech = dict[str, Any]

_ENTRY: Final[Shape] = {
    "why": None,
    "form": None,
    "part?": None,
    "text?": None,
    "language?": None,
    "speech?": {"*": None},
    "deeds?": {"*": None},
    "calls?": [{"tool": None, "arguments?": {"*": None}, "pause?": None, "repeat?": None}],
    "root?": None,
    "page?": None,
    "denial?": None,
    "approved?": None,
    "runtime?": None,
    "whole?": None,
    "shell?": None,
}
_SHAPE: Final[Shape] = {"fires": {"*": _ENTRY}, "silent": {"*": _ENTRY}, "blind?": {"*": _ENTRY}}

_BASE: Final[Speech] = {
    "instructions": None,
    "tools": [
        {
            "name": "list_notes",
            "description": "Lists the notes of a folder.",
            "inputSchema": {
                "type": "object",
                "properties": {"folder": {"type": "string", "description": "Its name."}},
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


_KEYS: Final = frozenset({*_BASE, "relisted", "roots", "start", "odd", "noise", "capabilities"})


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
    """Yield the variants of a file: name, entry as ``control.yaml`` would hold it, speech.

    Every fourth text or so, by its name, is said by the server in Node; the others by the one in Python.

    Raises:
        ConfigError: naming file, line and value.
    """
    data = load_yaml(path, _SHAPE)
    for truth in ("fires", "silent", "blind"):
        for name, item in (data.get(truth) or {}).items():
            yield name, _entry(name, truth, item), _speech(path, truth, name, item)


def _speech(path: Path, truth: str, name: str, item: dict[str, Any]) -> Speech:
    def wrong(problem: str, key: str, value: object) -> ConfigError:
        place = f"line {line_of(path, (truth, name, key))}"
        return ConfigError(problem, file=str(path), place=place, value=str(value))

    speech = copy.deepcopy(_BASE)
    if "part" in item:
        if item["part"] not in PARTS:
            raise wrong(f"a part is one of {', '.join(PARTS)}", "part", item["part"])
        if "text" not in item:
            raise wrong("a part needs a text", "part", item["part"])
        PARTS[item["part"]](speech, str(item["text"]))
    elif "speech" not in item and "deeds" not in item:
        raise wrong("an entry needs a part with a text, a speech or deeds", "why", name)
    unknown = set(item.get("speech") or ()) - _KEYS
    if unknown:
        raise wrong(f"a speech holds {', '.join(sorted(_KEYS))}", "speech", sorted(unknown)[0])
    speech.update(copy.deepcopy(dict(item.get("speech") or {})))
    if "deeds" in item:
        speech["deeds"] = copy.deepcopy(dict(item["deeds"]))
        known = {tool.get("name") for tool in speech["tools"] if isinstance(tool, dict)}
        speech["tools"] += [
            {"name": tool, "description": "Works.", "inputSchema": {"type": "object", "properties": {}}}
            for tool in speech["deeds"]
            if tool not in known
        ]
    return speech


def _entry(name: str, truth: str, item: dict[str, Any]) -> dict[str, Any]:
    acts = "deeds" in item
    chosen = "node" if zlib.crc32(name.encode()) % 4 == 0 and not acts else "python"
    runtime = item.get("runtime") or chosen
    program = ["/usr/bin/node"] if runtime == "node" else ["/usr/bin/python3", "-I", "-S"]
    server = "worker.py" if acts else "speaker.js" if runtime == "node" else "speaker.py"
    # The whole log of a start says nothing about a text; what acts, and a few that speak, keep it.
    options = [] if item.get("whole") or acts else [*STRACE_OPTIONS, "-e", "trace=process"]
    axes = {key: item[key] for key in ("part", "form", "language", "denial") if key in item} | {"runtime": runtime}
    root = [item["root"]] if "root" in item else []
    return {
        "truth": truth,
        "why": item["why"],
        "run": [*program, f"{{control}}/{server}", f"{{control}}/{SPEECH}", *root],
        "axes": axes,
        "expect": {},
        "mcp": True,
        "strace": options,
        **({"calls": item["calls"]} if "calls" in item else {}),
        **{key: item[key] for key in ("denial", "shell") if key in item},
        **({"approved": item["approved"]} if "approved" in item else {}),
        # What the one host answers that deeds may fetch from.
        **({"cell": {"names": {UPSTREAM: {"http": [{"path": "*", "text": item["page"]}]}}}} if "page" in item else {}),
    }
