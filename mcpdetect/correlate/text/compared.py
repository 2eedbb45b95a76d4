"""Two definitions of one thing compared: which texts are new, gone or other words, and which only other spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcpdetect.correlate.text.fold import fold
from mcpdetect.model.mcp import McpTool

__all__ = ["Change", "changes"]

_WORD = re.compile(r"[^\W_]++")


@dataclass(slots=True)
class Change:
    """One text that differs.

    Attributes:
        pointer: its JSON Pointer.
        before, after: the text; None where there was none, or is none.
        cosmetic: the words are the same but for case, marks and spaces.
    """

    pointer: str
    before: str | None
    after: str | None
    cosmetic: bool

    @property
    def both(self) -> tuple[str, str]:
        """Both texts, ``""`` for none."""
        return self.before or "", self.after or ""


def changes(before: McpTool, after: McpTool) -> list[Change]:
    """Return the texts in which two definitions of one thing differ, in the order of the later one, the gone ones last.

    A place that holds several texts (a property's name and its value) is compared text by text.
    """
    old, new = _by_pointer(before), _by_pointer(after)
    found = []
    for pointer in [*new, *(pointer for pointer in old if pointer not in new)]:
        left, right = old.get(pointer, []), new.get(pointer, [])
        for at in range(max(len(left), len(right))):
            was = left[at] if at < len(left) else None
            now = right[at] if at < len(right) else None
            if was != now:
                found.append(
                    Change(pointer, was, now, was is not None and now is not None and _words(was) == _words(now))
                )
    return found


def _by_pointer(tool: McpTool) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for text in tool.texts:
        texts.setdefault(text.pointer, []).append(text.text)
    return texts


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text).text)
