"""What can be claimed, and what no longer stands: claims and rechecks as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from mcpdetect.model.place import STRICT
from mcpdetect.model.text import shown
from mcpdetect.report.layout import Role, Style, counted, wrapped
from mcpdetect.score.claims import Claims, ClaimWord
from mcpdetect.score.recheck import LineWord, Recheck
from mcpdetect.version import GENERATOR

__all__ = [
    "CLAIMS_SCHEMA",
    "RECHECK_SCHEMA",
    "ClaimsReport",
    "RecheckReport",
    "claims_json",
    "claims_text",
    "recheck_json",
    "recheck_text",
]

CLAIMS_SCHEMA = "mcpdetect.claims/1"
"""Name and version of what ``check --claims --format json`` writes."""

RECHECK_SCHEMA = "mcpdetect.recheck/1"
"""Name and version of what ``recheck --format json`` writes."""

_CLAIMS: dict[ClaimWord, tuple[str, Role]] = {
    "supported": ("supported", "hint"),
    "contradicted": ("contradicted", "grave"),
    "not_claimable": ("not claimable", "warn"),
}
_LINES: dict[LineWord, tuple[str, Role]] = {
    "stands": ("stands", "quiet"),
    "withdrawn": ("withdrawn", "grave"),
    "unknown": ("unknown", "warn"),
}


@dataclass(slots=True)
class ClaimsReport:
    """The claims about every run that was examined; ``schema`` is ``CLAIMS_SCHEMA``."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    runs: list[Claims]
    generator: str = GENERATOR
    schema: str = CLAIMS_SCHEMA


@dataclass(slots=True)
class RecheckReport:
    """What became of every report that was read again; ``schema`` is ``RECHECK_SCHEMA``."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    reports: list[Recheck]
    generator: str = GENERATOR
    schema: str = RECHECK_SCHEMA


def _json(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(msgspec.to_builtins(document)), indent=2) + b"\n"


def claims_json(claims: Sequence[Claims]) -> bytes:
    """Return the claims as one JSON document."""
    return _json(ClaimsReport(list(claims)))


def claims_text(claims: Sequence[Claims], style: Style) -> str:
    """Return the claims for people, ending in a line break."""
    lines: list[str] = []
    for one in claims:
        lines += [style.paint(f"What can be claimed of {shown(one.run)}", "title"), ""]
        for claim in one.claims:
            word, role = _CLAIMS[claim.outcome]
            lines.append(f"  {style.paint(word, role)}: {shown(claim.sentence)}")
            lines += wrapped(shown(claim.reason, 2000), style.prose, "      ")
            rests = f"{', '.join(claim.checks)}; {claim.window}" if claim.checks else claim.window
            lines += [f"      {style.paint(shown(rests), 'quiet')}", ""]
    return style.encode("\n".join(lines).rstrip("\n") + "\n")


def recheck_json(done: Sequence[Recheck]) -> bytes:
    """Return the rechecks as one JSON document."""
    return _json(RecheckReport(list(done)))


def recheck_text(done: Sequence[Recheck], style: Style) -> str:
    """Return the rechecks for people, ending in a line break."""
    lines: list[str] = []
    for one in done:
        lines += [style.paint(shown(one.report), "title"), ""]
        for line in one.lines:
            word, role = _LINES[line.outcome]
            old = f"{line.check} (version {line.version}) of {line.run}: {line.verdict.replace('_', ' ')}"
            lines.append(f"  {style.paint(word, role)}: {shown(old)}")
            lines += wrapped(shown(line.reason, 2000), style.prose, "      ")
            if line.now is not None:
                lines.append(f"      the installed version says {line.now.replace('_', ' ')}")
        lines += ["", f"{counted(len(one.lines), 'verdict')}, {len(one.withdrawn)} withdrawn", ""]
    return style.encode("\n".join(lines).rstrip("\n") + "\n")
