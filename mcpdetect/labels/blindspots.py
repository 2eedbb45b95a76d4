"""Blind spots: ways to act that some kind of evidence does not show, and the recorded cases that demonstrate them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from mcpdetect.labels.reader import Reader
from mcpdetect.model.place import STRICT
from mcpdetect.model.vocabulary import Channel

__all__ = ["BLINDSPOTS_SCHEMA", "BlindSpot", "BlindSpots", "load_blindspots"]

BLINDSPOTS_SCHEMA = "mcpdetect.blindspots/0"
"""Name and version of the format; the number grows when a reader of the old one would misread it."""

# io-uring-poller
_ID = re.compile(r"[a-z][a-z0-9]*+(?:-[a-z0-9]++)*+")


@dataclass(slots=True)
class BlindSpot:
    """One way to act out of some channel's sight.

    Attributes:
        id: stable name.
        group: the heading it stands under.
        title: what is done.
        blind: channels that do not show it, or show it wrongly.
        residue: what is left in the evidence.
        verdict: what a correct check says where nothing else shows the act: ``detected`` (the residue is enough),
            ``not_observable``, or ``not_detected`` (nothing tells; the statement holds for this run only).
        then: the verdict in words.
        checks: ids of the checks whose word about absence it spoils.
        controls: recorded cases that show it; none means that there is no control yet.
        losses: words of limits (``Limit.what``) by which a trace tells of it.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    id: str
    group: str
    title: str
    blind: list[Channel]
    residue: str
    verdict: Literal["detected", "not_observable", "not_detected"]
    then: str
    checks: list[str]
    controls: list[str]
    losses: list[str] = field(default_factory=list)


@dataclass(slots=True)
class BlindSpots:
    """The list, ``labels/blindspots.yaml``; ``schema`` is ``BLINDSPOTS_SCHEMA``."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    schema: str
    entries: list[BlindSpot]

    @property
    def shown(self) -> list[BlindSpot]:
        """Return the entries that a recorded case demonstrates."""
        return [entry for entry in self.entries if entry.controls]


def load_blindspots(path: Path, *, checks: Collection[str], cases: Collection[str]) -> BlindSpots:
    """Read the list of blind spots.

    Args:
        path: the file.
        checks: ids of the installed checks.
        cases: ids of the recorded cases.

    Raises:
        LabelError: naming file, line and value: the form is wrong, an id is given twice, or a check or case does not
            exist.
    """
    reader = Reader(path)
    spots = cast("BlindSpots", reader.read(BlindSpots))
    if spots.schema != BLINDSPOTS_SCHEMA:
        reader.fail(("schema",), f"is not a list this version reads ({BLINDSPOTS_SCHEMA})", spots.schema)
    seen: set[str] = set()
    for number, entry in enumerate(spots.entries):
        place = ("entries", str(number))
        if not _ID.fullmatch(entry.id):
            reader.fail((*place, "id"), "is no id", entry.id, hint="write lower-case words with hyphens")
        if entry.id in seen:
            reader.fail((*place, "id"), "is given twice", entry.id)
        seen.add(entry.id)
        if not entry.blind:
            reader.fail((*place, "blind"), "names no channel", hint="what every channel shows is no blind spot")
        for key, values, known, what in (
            ("checks", entry.checks, checks, "check"),
            ("controls", entry.controls, cases, "recorded case"),
        ):
            for at, value in enumerate(values):
                if value not in known:
                    reader.fail((*place, key, str(at)), f"is no {what}", value, cause="it was renamed or removed")
                if value in values[:at]:
                    reader.fail((*place, key, str(at)), "is given twice", value)
    return spots
