"""Review records: what a person made of an accusing finding, so that it may be published."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from mcpdetect.errors import LabelError
from mcpdetect.labels.reader import Reader
from mcpdetect.model.place import STRICT

__all__ = ["REVIEW_SCHEMA", "ReviewRecord", "load_reviews"]

REVIEW_SCHEMA = "mcpdetect.review/0"
"""Name and version of the format; the number grows when a reader of the old one would misread it."""

# the first 16 hexadecimal digits of sha256 over check and identity
_KEY = re.compile(r"[0-9a-f]{16}")


@dataclass(slots=True)
class ReviewRecord:
    """One decision about one finding.

    Attributes:
        schema: ``REVIEW_SCHEMA``.
        check: id of the check.
        key: the finding's key.
        run: id of the run that was looked at, as the report names it.
        by: the reviewer's role, no name.
        date: ISO date.
        decision: ``confirmed`` or ``dismissed``.
        why: in plain words.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    schema: str
    check: str
    key: str
    run: str
    by: str
    date: str
    decision: Literal["confirmed", "dismissed"]
    why: str


def load_reviews(path: Path) -> dict[tuple[str, str, str], ReviewRecord]:
    """Read one record, or every ``.yaml`` file of a folder.

    Args:
        path: the file or folder.

    Returns:
        The records by run, check and key. A finding of the same key in another server's run is another finding.

    Raises:
        LabelError: naming file, line and value; two records about one finding are an error, whatever they say.
    """
    found: dict[tuple[str, str, str], ReviewRecord] = {}
    origin: dict[tuple[str, str, str], Path] = {}
    if path.is_dir():
        strangers = [one for one in sorted(path.rglob("*")) if one.is_file() and one.suffix not in (".yaml", ".md")]
        if strangers:
            raise LabelError("is no review record", file=str(strangers[0]), hint="a record is a .yaml file")
    for file in sorted(path.rglob("*.yaml")) if path.is_dir() else [path]:
        reader = Reader(file)
        record = cast("ReviewRecord", reader.read(ReviewRecord))
        if record.schema != REVIEW_SCHEMA:
            reader.fail(("schema",), f"is not a record this version reads ({REVIEW_SCHEMA})", record.schema)
        if not _KEY.fullmatch(record.key):
            reader.fail(("key",), "is no key of a finding", record.key, hint="copy it from the JSON report")
        try:
            datetime.date.fromisoformat(record.date)
        except ValueError:
            reader.fail(("date",), "is no ISO date", record.date)
        identity = (record.run, record.check, record.key)
        if identity in found:
            reader.fail(("key",), f"was reviewed in {origin[identity]} already", record.key, hint="keep one record")
        found[identity] = record
        origin[identity] = file
    return found
