"""What a user states beside the evidence: planted secrets and expectations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from mcpdetect.model.place import STRICT

__all__ = [
    "BASELINE_SCHEMA",
    "Baseline",
    "BaselineText",
    "BaselineTool",
    "Canary",
    "Expectations",
    "ExpectedHost",
    "Secrets",
]

BASELINE_SCHEMA = "mcpdetect.baseline/0"
"""Name and version of an approved description."""


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


@dataclass(slots=True)
class BaselineText:
    """One approved string: its JSON Pointer within the definition, and the string."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    pointer: str
    text: str


@dataclass(slots=True)
class BaselineTool:
    """One approved definition: ``part`` and ``name`` as in ``mcp.tool`` events, the digest, every string."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    part: str
    name: str
    digest: str
    texts: list[BaselineText] = field(default_factory=list)


@dataclass(slots=True)
class Baseline:
    """An approved description of a server, as ``mcpdetect baseline`` writes it and people may edit it.

    Attributes:
        schema: ``BASELINE_SCHEMA``.
        source: the file it was read from, shown with findings; ``""`` in the file itself.
        runs: names of the runs it was made of.
        definitions: what the server lists.
        hosts: hosts it may contact; patterns as in expectations are allowed.
        children: executables it may start.
        files: paths it may change, ``*`` for what varies.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    schema: str = BASELINE_SCHEMA
    source: str = ""
    runs: list[str] = field(default_factory=list)
    definitions: list[BaselineTool] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
