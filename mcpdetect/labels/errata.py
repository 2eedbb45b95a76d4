"""Errata: what earlier versions of a check got wrong, and which of their verdicts no longer stand."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from mcpdetect.labels.reader import Reader
from mcpdetect.model.place import STRICT
from mcpdetect.model.vocabulary import Channel

__all__ = ["ERRATA_SCHEMA", "Errata", "Erratum", "load_errata", "shipped_errata"]

ERRATA_SCHEMA = "mcpdetect.errata/0"
"""Name and version of the format; the number grows when a reader of the old one would misread it."""


@dataclass(slots=True)
class Erratum:
    """One fault of a check that was released, or published with.

    Attributes:
        id: stable name.
        check: the check's id.
        versions: its versions that have the fault; 0 stands for what was published before this program existed.
        verdicts: which of their verdicts fall.
        wrong: what was wrong, in plain words.
        date: ISO date on which it was found out.
        without: the verdicts fall only where none of these channels was in evidence; empty means always.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    id: str
    check: str
    versions: list[int]
    verdicts: list[Literal["detected", "not_detected", "not_observable"]]
    wrong: str
    date: str
    without: list[Channel] = field(default_factory=list)


@dataclass(slots=True)
class Errata:
    """The list, ``labels/errata.yaml``; ``schema`` is ``ERRATA_SCHEMA``."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    schema: str
    entries: list[Erratum]


def load_errata(path: Path) -> list[Erratum]:
    """Read a list of errata.

    Raises:
        LabelError: naming file, line and value.
    """
    reader = Reader(path)
    errata = cast("Errata", reader.read(Errata))
    if errata.schema != ERRATA_SCHEMA:
        reader.fail(("schema",), f"is not a list this version reads ({ERRATA_SCHEMA})", errata.schema)
    seen: set[str] = set()
    for number, entry in enumerate(errata.entries):
        place = ("entries", str(number))
        if entry.id in seen:
            reader.fail((*place, "id"), "is given twice", entry.id)
        seen.add(entry.id)
        for key, values in (("versions", entry.versions), ("verdicts", entry.verdicts)):
            if not values:
                reader.fail((*place, key), "names none", hint="an erratum that nothing falls by is none")
        try:
            datetime.date.fromisoformat(entry.date)
        except ValueError:
            reader.fail((*place, "date"), "is no ISO date", entry.date)
    return errata.entries


def shipped_errata() -> list[Erratum]:
    """Return the errata that this installation carries.

    Raises:
        LabelError: the installation is broken.
    """
    with resources.as_file(resources.files("mcpdetect.data") / "errata.yaml") as path:
        return load_errata(path)
