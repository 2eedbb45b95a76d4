"""The page that describes every event: ``docs/event-model.md``, made from the model itself."""

from __future__ import annotations

import dataclasses
import re
import types
import typing

from mcpdetect.model.binary import ElfFacts
from mcpdetect.model.event import CallEvent, Event, Frame
from mcpdetect.model.kinds import CALLS, EVENT_TYPES
from mcpdetect.model.mcp import McpText
from mcpdetect.model.net import DnsRecord, IcmpError
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.report.describe import field_meanings, summary

__all__ = ["event_model_page"]

_HEAD = """\
# The event model

<!-- Made from mcpdetect/model by `python tests/tools/refresh_docs.py`; edit the docstrings there. -->

Every adapter turns one format into these events, every detector reads nothing else, and `trace.json` is nothing else
on disk (`mcpdetect schema trace` prints its JSON Schema). An event is one fact with a time, a process where it is
known, and the place in the evidence where a person can look it up. Field values are never guessed: what the evidence
does not show is null (None in Python).

In JSON every key of an event may be left out whose default is given below; `kind` may not. Bytes are base64 (RFC 4648
§4). Text that came as bytes keeps them: valid UTF-8 stays as it is, any other byte is `\\xNN`, and a backslash is
doubled.
"""
_COMMON = """
## Every event

"""
_VALUES = (Where, Frame, IcmpError, DnsRecord, McpText, ElfFacts)


def event_model_page() -> str:
    """Return the page as Markdown, ending in a line break."""
    parts = [_HEAD, _COMMON, _table(Event)]
    parts += ["\n## Every system call\n\n", f"{_plain(summary(CallEvent))}\n\n", _table(CallEvent, Event)]
    parts.append("\n## Kinds\n\n| kind | seen in | what it is |\n| --- | --- | --- |\n")
    parts += [
        f"| [`{kind}`](#{_anchor(kind)}) | {_channel(model)} | {_first(model)} |\n"
        for kind, model in EVENT_TYPES.items()
    ]
    for kind, model in EVENT_TYPES.items():
        parts.append(f"\n### {kind}\n\n{_plain(summary(model))}\n\n")
        if kind in CALLS:
            parts.append(f"System calls: {', '.join(f'`{name}`' for name in sorted(CALLS[kind]))}.\n\n")
        parts.append(_table(model, CallEvent if issubclass(model, CallEvent) else Event))
    parts.append("\n## Values inside events\n")
    parts += [f"\n### {model.__name__}\n\n{_plain(summary(model))}\n\n{_table(model)}" for model in _VALUES]
    parts.append("\n## Around the events\n")
    parts += [
        f"\n### {model.__name__}\n\n{_plain(summary(model))}\n\n{_table(model)}" for model in (Run, Observation, Loss)
    ]
    return "".join(parts)


def _names(model: type) -> set[str]:
    return {field.name for field in dataclasses.fields(model)}


def _channel(model: type[Event]) -> str:
    return "as it says (`seen_in`)" if "seen_in" in _names(model) else str(model.channel)


def _first(model: type) -> str:
    return _plain(summary(model)).partition("\n")[0]


def _anchor(kind: str) -> str:
    return kind.replace(".", "")


def _table(model: type, base: type | None = None) -> str:
    """Return a table of the fields that are not of a base already described, or mean something else here."""
    known = field_meanings(base) if base else {}
    hints = typing.get_type_hints(model)
    meanings = field_meanings(model)
    rows = [
        f"| `{field.name}` | {_type(hints[field.name])} | {_default(field)} | {_plain(meanings[field.name])} |\n"
        for field in dataclasses.fields(model)
        if meanings[field.name] != known.get(field.name)
    ]
    if not rows:
        return "No fields of its own.\n"
    return "| field | type | default | meaning |\n| --- | --- | --- | --- |\n" + "".join(rows)


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        shown = {None: "null", True: "true", False: "false", "": '""', b"": '""'}
        return f"`{shown.get(field.default, field.default)}`"  # type: ignore[call-overload]
    if field.default_factory is not dataclasses.MISSING:
        return "`[]`" if field.default_factory is list else "`{}`"
    return "required"


def _type(hint: object) -> str:
    """Return a type as a reader of JSON knows it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is type(None):
        return "null"
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" if value else '`""`' for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(part) for part in arguments)
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"object of {_type(arguments[1])}"
    return {str: "text", int: "integer", bool: "boolean", bytes: "base64"}[hint]  # type: ignore[index]


def _plain(text: str) -> str:
    """Return docstring markup as Markdown that stays in one table cell."""
    return re.sub(r"``([^`]*)``", r"`\1`", text).replace("|", "\\|")
