"""What a user states beside the evidence: planted secrets and expectations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from mcpdetect.model.place import STRICT

__all__ = ["Canary", "Expectations", "ExpectedHost", "Secrets"]


@dataclass(slots=True)
class Canary:
    """A planted value.

    ``kind`` names it in findings; ``value`` is what to look for; ``path`` or ``variable`` is where it was planted
    (absolute path in ``text_of`` form, or environment variable).
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    kind: str
    value: str | None = None
    path: str | None = None
    variable: str | None = None


@dataclass(slots=True)
class Secrets:
    """What was planted in the sandbox, and where the user told us so."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    source: str
    canaries: list[Canary] = field(default_factory=list)


@dataclass(slots=True)
class ExpectedHost:
    """A documented destination.

    Attributes:
        host: a host name; ``*.example.com`` stands for any name below, ``.example.com`` for that and the
            name itself; or an IP address or network in CIDR notation.
        ports: allowed ports; empty for any.
        why: where it is documented, shown with the finding.
        publisher: who stands behind it, for grouping.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    host: str
    ports: list[int] = field(default_factory=list)
    why: str = ""
    publisher: str | None = None


@dataclass(slots=True)
class Expectations:
    """What a server documents: where it connects, which files it touches, which children it starts."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    source: str
    hosts: list[ExpectedHost] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
