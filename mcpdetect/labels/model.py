"""What a label says about one recorded case: the exact verdicts, and the exact places in the evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mcpdetect.model.place import STRICT
from mcpdetect.model.vocabulary import Level, VerdictWord

__all__ = ["LABEL_SCHEMA", "TRUTHS", "ExpectedCheck", "Label", "Provenance", "Review", "Truth"]

LABEL_SCHEMA = "mcpdetect.label/0"
"""Name and version of the label format; the number grows when a reader of the old one would misread it."""

Truth = Literal["fires", "silent", "blind"]
"""What a case is by construction: the behaviour happened and shows, did not happen, or happened out of sight."""

TRUTHS: dict[Truth, VerdictWord] = {"fires": "detected", "silent": "not_detected", "blind": "not_observable"}
"""The verdict that a case's own check must come to."""


@dataclass(slots=True)
class ExpectedCheck:
    """What one check must say about a case.

    Attributes:
        verdict: its verdict.
        findings: exactly how many findings; 0 unless it is ``detected``.
        places: every place of every finding, as ``Where`` prints it (``strace.log.zst:412``, ``capture.pcap#3``), in
            any order, none twice.
        level: the gravest level among the findings, for ``detected``.
        limits: exactly the words of the limits that hide, sorted: why nothing could be denied. None pins nothing.
        explained: exactly the rules that explain the findings, sorted. None pins nothing.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    verdict: VerdictWord
    findings: int = 0
    places: list[str] = field(default_factory=list)
    level: Level | None = None
    limits: list[str] | None = None
    explained: list[str] | None = None


@dataclass(slots=True)
class Provenance:
    """Where the evidence comes from: the control, the tools and kernel it was recorded with, the ISO date."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    control: str
    tools: list[str]
    kernel: str
    recorded: str


@dataclass(slots=True)
class Review:
    """Who compared the label with the evidence, by role, and when (ISO date)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    by: str
    date: str


@dataclass(slots=True)
class Label:
    """The label of one case.

    Attributes:
        schema: ``LABEL_SCHEMA``.
        case: ``<category>/<control>/<variant>``, the same as its path below ``labels/cases`` and its bundle's below
            ``corpus``.
        truth: what the case is, for the check of its own control (``subject``).
        why: in plain words what happens in it and why the verdict is right.
        checks: check id to what that check must say.
        axes: what coverage counts by: runtime, api, family, denial, ...
        evidence: file of the bundle to its sha256; at least ``manifest.json``, which pins the others.
        provenance, reviewed: see there.
        todo: a known weakness: today the verdict is wrong. The suite fails once it comes right.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    schema: str
    case: str
    truth: Truth
    why: str
    checks: dict[str, ExpectedCheck]
    axes: dict[str, str]
    evidence: dict[str, str]
    provenance: Provenance
    reviewed: Review
    todo: str | None = None

    @property
    def subject(self) -> str:
        """Id of the check that the case's control is about: ``egress/direct-ip/c-tcp4`` is about egress.direct-ip."""
        return ".".join(self.case.split("/")[:2])
