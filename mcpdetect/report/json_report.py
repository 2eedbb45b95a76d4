"""The JSON report: results as one JSON document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from mcpdetect.model.place import STRICT
from mcpdetect.model.result import Result
from mcpdetect.report.outcome import Unreadable

__all__ = ["RESULTS_SCHEMA", "Results", "json_report"]

RESULTS_SCHEMA = "mcpdetect.results/1"
"""Name and version of the document that holds the results of several independent runs."""

# A lone surrogate, which UTF-8 cannot hold: U+DC80..U+DCFF stands for a byte of a file name (PEP 383).
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Results:
    """The results of several independent runs.

    Attributes:
        results: one for every run that could be read, in the order asked for.
        unreadable: what could not be read.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    results: list[Result]
    unreadable: list[Unreadable]
    schema: str = RESULTS_SCHEMA


def json_report(results: Sequence[Result], unreadable: Sequence[Unreadable] = ()) -> bytes:
    """Return one JSON document, indented, ending in a line break.

    One result alone is the document itself (``mcpdetect.result/1``); several runs, or a run beside one that could not
    be read, are held in a ``mcpdetect.results/1``.

    Args:
        results: the results.
        unreadable: traces that gave none.
    """
    alone = len(results) == 1 and not unreadable
    document: Result | Results = results[0] if alone else Results(list(results), list(unreadable))
    try:
        raw = msgspec.json.encode(document)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(_well_formed(msgspec.to_builtins(document)))
    return msgspec.json.format(raw, indent=2) + b"\n"


def _well_formed(value: object) -> object:
    """Return ``value`` with every lone surrogate written out."""
    if isinstance(value, str):
        return _SURROGATE.sub(_written_out, value)
    if isinstance(value, list):
        return [_well_formed(item) for item in value]
    if isinstance(value, dict):
        return {_well_formed(key): _well_formed(item) for key, item in value.items()}
    return value


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
