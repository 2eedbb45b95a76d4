"""Errors of mcpdetect: one small tree, every member naming place, value, cause and what to try.

::

    McpDetectError
    ├── InputError          an evidence file, or a trace, could not be used at all
    │   ├── UnknownFormat   it is not what it was said to be
    │   └── Malformed       it is of the right kind, but breaks its format beyond use
    ├── ConfigError         a manifest, secrets, expectations or option file is wrong
    ├── LabelError          a label file under ``labels/`` is wrong
    └── SpecError           a detector declares something impossible (its author's fault)

A fault that leaves the rest of a file usable is never raised: it becomes an ``unparsed`` event and a
``Loss`` of its observation.
"""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "InputError",
    "LabelError",
    "Malformed",
    "McpDetectError",
    "SpecError",
    "UnknownFormat",
]


class McpDetectError(Exception):
    """Base of every error raised on purpose.

    Args:
        problem: what is wrong, one sentence without a full stop.
        file: name of the file concerned, as the user gave it.
        place: where in the file, such as ``line 12``, ``offset 40`` or ``/tools/0/name``.
        value: the offending value, shortened by the caller.
        cause: the likely cause.
        hint: what to try.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        place: str | None = None,
        value: str | None = None,
        cause: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.file = file
        self.place = place
        self.value = value
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        """Return every known part, the place first, ready for one or more output lines."""
        where = ": ".join(part for part in (self.file, self.place) if part)
        head = f"{where}: {self.problem}" if where else self.problem
        lines = [head]
        if self.value is not None:
            lines.append(f"  value: {self.value}")
        if self.cause:
            lines.append(f"  likely cause: {self.cause}")
        if self.hint:
            lines.append(f"  try: {self.hint}")
        return "\n".join(lines)


class InputError(McpDetectError):
    """An evidence file could not be used at all."""


class UnknownFormat(InputError):
    """A file is not of the kind it was said to be."""


class Malformed(InputError):
    """A file is of the right kind but breaks its format beyond use."""


class ConfigError(McpDetectError):
    """A manifest, secrets, expectations or other option file is wrong."""


class LabelError(McpDetectError):
    """A label file is wrong."""


class SpecError(McpDetectError):
    """A detector's declaration is wrong or impossible."""
