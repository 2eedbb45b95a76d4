"""What the model's docstrings say about its classes and fields, for schemas and the event model page."""

from __future__ import annotations

import dataclasses
import inspect
import re

__all__ = ["field_meanings", "summary"]

# begin_ns, end_ns: the window it covers, by manifest or by first and last time seen.
_ENTRY = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*): ")
_SECTION = "Attributes:"


def summary(model: type) -> str:
    """Return a class's docstring without its section of attributes, one line a paragraph."""
    text = inspect.cleandoc(model.__doc__ or "")
    before, _, section = text.partition(_SECTION)
    # what follows the section at the margin belongs to the class again
    after = re.split(r"\n(?=\S)", section, maxsplit=1)[1:]
    paragraphs = "\n\n".join([before, *after]).split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in paragraphs if part.strip())


def field_meanings(model: type) -> dict[str, str]:
    """Return the meaning of each field that the docstring of the class, or of a base, describes."""
    meanings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if dataclasses.is_dataclass(base):
            meanings.update(_entries(base))
    return meanings


def _entries(model: type) -> dict[str, str]:
    names = {field.name for field in dataclasses.fields(model)}
    section = inspect.cleandoc(model.__doc__ or "").partition(_SECTION)[2]
    indented = re.match(r"(?:\n(?: .*)?)*", section)
    text = " ".join((indented[0] if indented else "").split())
    # An entry begins where names of fields stand before a colon, at the beginning or after a full stop.
    starts = [
        found
        for found in _ENTRY.finditer(text)
        if set(found[1].split(", ")) <= names and (found.start() == 0 or text[found.start() - 2] in ".)")
    ]
    meanings = {}
    for number, found in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        for name in found[1].split(", "):
            meanings[name] = text[found.end() : end].strip()
    return meanings
