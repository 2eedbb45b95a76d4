"""Places in evidence: what a finding points at and a person can open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

__all__ = ["STRICT", "Unit", "Where"]

STRICT: dict[str, Any] = {"extra": "forbid", "ser_json_bytes": "base64", "val_json_bytes": "base64"}
"""The pydantic configuration of every model value: unknown keys are errors, bytes are base64."""

Unit = Literal["line", "packet", "message", "record", "offset"]


@dataclass(slots=True, unsafe_hash=True)
class Where:
    """One exact place in one evidence file.

    Attributes:
        file: the file's name as it was given, relative to its bundle where there is one.
        at: 1-based number of the line, packet, message or record; 0-based byte for ``offset``.
        end: the other half of a call that the evidence shows in two pieces, else None.
        unit: what ``at`` counts.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    file: str
    at: int
    end: int | None = None
    unit: Unit = "line"

    def __str__(self) -> str:
        """Return the short form: ``trace.log:41``, ``trace.log:41+57``, ``capture.pcap#12``."""
        mark = "@" if self.unit == "offset" else ":" if self.unit == "line" else "#"
        tail = f"+{self.end}" if self.end is not None else ""
        return f"{self.file}{mark}{self.at}{tail}"
