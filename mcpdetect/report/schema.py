"""The published JSON Schemas (2020-12) of every document that mcpdetect reads or writes."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from mcpdetect.labels.blindspots import BLINDSPOTS_SCHEMA, BlindSpots
from mcpdetect.labels.errata import ERRATA_SCHEMA, Errata
from mcpdetect.labels.model import LABEL_SCHEMA, Label
from mcpdetect.labels.reviews import REVIEW_SCHEMA, ReviewRecord
from mcpdetect.model.inputs import BASELINE_SCHEMA, Baseline
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.manifest import MANIFEST_SCHEMA, Manifest
from mcpdetect.model.observation import Observation
from mcpdetect.model.result import RESULT_SCHEMA, Result
from mcpdetect.model.trace import TRACE_SCHEMA, Run
from mcpdetect.report.claim_report import CLAIMS_SCHEMA, RECHECK_SCHEMA, ClaimsReport, RecheckReport
from mcpdetect.report.describe import field_meanings, summary
from mcpdetect.report.json_report import RESULTS_SCHEMA, Results
from mcpdetect.report.schema_inputs import EXPECTATIONS, SECRETS
from mcpdetect.report.selftest_report import SELFTEST_SCHEMA, SelfTestReport
from mcpdetect.score.coverage import COVERAGE_SCHEMA, Coverage

__all__ = ["KINDS", "schema"]

Schema: TypeAlias = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(kind: str) -> Schema:
    """Return the JSON Schema of one kind of document, as plain values.

    Args:
        kind: one of ``KINDS``.

    Raises:
        KeyError: there is no such kind.
    """
    build = _BUILDERS[kind]
    return {"$schema": _DIALECT, "$id": f"urn:mcpdetect:schema:{kind}", **build()}


def _definitions(*models: type) -> Schema:
    """Return the definitions of classes of the model and of all that they hold.

    Pydantic makes them from the same annotations that the readers are made from; what it cannot know is added: the
    meaning of each field, that an event says its kind, and that bytes are plain base64 (pydantic says base64url).
    """
    from pydantic import TypeAdapter

    adapters: list[tuple[str, Literal["validation"], TypeAdapter[Any]]] = [
        (model.__name__, "validation", TypeAdapter(model)) for model in models
    ]
    _, found = TypeAdapter.json_schemas(adapters)
    definitions: Schema = found["$defs"]
    for model in _held(models):
        described = definitions[model.__name__]
        described.pop("title")
        described["description"] = summary(model)
        meanings = field_meanings(model)
        properties = described["properties"]
        described["properties"] = {
            field.name: _described(properties[field.name], meanings.get(field.name))
            for field in dataclasses.fields(model)
        }
        if model in EVENT_TYPES.values():
            described["required"] = ["kind", *described["required"]]
    return definitions


def _held(models: tuple[type, ...]) -> list[type]:
    """Return the dataclasses that stand in the annotations of ``models``, themselves included."""
    found: list[type] = []

    def visit(hint: object) -> None:
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            if hint not in found:
                found.append(hint)
                for inner in typing.get_type_hints(hint).values():
                    visit(inner)
            return
        for part in typing.get_args(hint):
            visit(part)

    for model in models:
        visit(model)
    return found


def _described(value: Schema, meaning: str | None) -> Schema:
    value = {key: part for key, part in value.items() if key != "title"}
    if value.get("format") == "base64url":
        del value["format"]
        value["contentEncoding"] = "base64"
    return {"description": meaning, **value} if meaning else value


def _reference(model: type) -> Schema:
    return {"$ref": f"#/$defs/{model.__name__}"}


def _one_of_the_events() -> Schema:
    return {"oneOf": [_reference(model) for model in EVENT_TYPES.values()]}


def _event() -> Schema:
    return {
        "title": "An event",
        "description": "One normalized fact of a trace; docs/event-model.md describes every kind.",
        **_one_of_the_events(),
        "$defs": _definitions(*EVENT_TYPES.values()),
    }


def _trace() -> Schema:
    return {
        "title": "A trace",
        "description": "One run, normalized: trace.json. The layout that streams has one event a line; any is read.",
        "type": "object",
        "properties": {
            "schema": {"const": TRACE_SCHEMA},
            "generator": {"description": "The program that wrote the file.", "type": "string"},
            "run": _reference(Run),
            "events": {"type": "array", "items": _one_of_the_events()},
            "observations": {
                "description": "What each evidence file could show. Without it the absence of events means nothing.",
                "type": "array",
                "items": _reference(Observation),
            },
        },
        "required": ["schema", "run", "events", "observations"],
        "additionalProperties": False,
        "$defs": _definitions(*EVENT_TYPES.values(), Run, Observation),
    }


def _document(model: type, title: str, version: str) -> Callable[[], Schema]:
    """Return the builder of a document that is one value of the model and names its version in ``schema``."""

    def build() -> Schema:
        definitions = _definitions(model)
        own = definitions[model.__name__]
        own["properties"]["schema"] = {"const": version}
        own["required"] = list(dict.fromkeys(["schema", *own.get("required", [])]))
        return {"title": title, **_reference(model), "$defs": definitions}

    return build


_BUILDERS: dict[str, Callable[[], Schema]] = {
    "trace": _trace,
    "event": _event,
    "result": _document(Result, "The result of one run or audit", RESULT_SCHEMA),
    "results": _document(Results, "The results of several runs", RESULTS_SCHEMA),
    "manifest": _document(Manifest, "The manifest of a bundle", MANIFEST_SCHEMA),
    "secrets": lambda: SECRETS,
    "expectations": lambda: EXPECTATIONS,
    "baseline": _document(Baseline, "The approved description of a server", BASELINE_SCHEMA),
    "label": _document(Label, "The label of a recorded case", LABEL_SCHEMA),
    "review": _document(ReviewRecord, "A review of one finding", REVIEW_SCHEMA),
    "errata": _document(Errata, "Which verdicts no longer stand", ERRATA_SCHEMA),
    "blindspots": _document(BlindSpots, "What evidence does not show", BLINDSPOTS_SCHEMA),
    "claims": _document(ClaimsReport, "Which sentences can be claimed", CLAIMS_SCHEMA),
    "recheck": _document(RecheckReport, "Which verdicts of old reports stand", RECHECK_SCHEMA),
    "selftest": _document(SelfTestReport, "The outcome of a self-test", SELFTEST_SCHEMA),
    "coverage": _document(Coverage, "What a labelled corpus proves", COVERAGE_SCHEMA),
}

KINDS: tuple[str, ...] = tuple(_BUILDERS)
"""The kinds of documents that have a schema."""
