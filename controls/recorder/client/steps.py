"""What became of each step of a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Status", "Step"]

Status = Literal["answered", "error", "bad-answer", "no-answer", "closed", "flooded", "unusable", "done"]
"""How a step ended.

``answered``: as the protocol says; ``error``: by a JSON-RPC error; ``bad-answer``: by something the protocol does not
allow; ``no-answer``: not in time; ``closed``: the server went away; ``flooded``: it sent more than is taken;
``unusable``: what the server offered cannot be asked for; ``done``: a step that asks nothing.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a session.

    Attributes:
        name: the method, or ``shutdown``.
        status: how it ended.
        detail: what it was about (the tool, the page), and why it went wrong where it did.
    """

    name: str
    status: Status
    detail: str = ""

    @property
    def failed(self) -> bool:
        """Whether the server gave no answer at all."""
        return self.status in ("closed", "flooded", "no-answer")
