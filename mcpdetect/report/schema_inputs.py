"""Schemas of the YAML files that users write by hand; their readers take shorthands, so no class is their shape."""

from __future__ import annotations

from typing import Any

__all__ = ["EXPECTATIONS", "SECRETS"]

_PLANTED: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"minLength": 1},
    "additionalProperties": {
        "anyOf": [
            {"description": "The kind; the value is made by the pattern.", "type": "string"},
            {
                "type": "object",
                "properties": {
                    "kind": {"description": "Names the canary in findings.", "type": "string"},
                    "value": {"description": "The planted text.", "type": "string", "minLength": 6},
                },
                "required": ["kind"],
                "additionalProperties": False,
            },
        ]
    },
}

SECRETS: dict[str, Any] = {
    "title": "Planted secrets",
    "description": "What was planted in the sandbox: the file given with --secrets.",
    "type": "object",
    "properties": {
        "home": {"description": "The planted home directory.", "type": "string", "pattern": "^/"},
        "files": {"description": "Path, absolute or below home (then home is needed), to what it holds.", **_PLANTED},
        "environment": {"description": "Variable to what it holds.", **_PLANTED},
        "pattern": {
            "description": "How a value is made from {kind} and {tag}; default CANARY-{kind}-{tag}.",
            "type": "string",
        },
        "tag": {"description": "The run's tag in the pattern.", "type": ["string", "integer"]},
        "not_secret": {
            "description": "Paths that lie in the same places and are no secret; they only document.",
            "type": "array",
            "items": {"type": "string"},
        },
    },
    "anyOf": [
        {"required": ["files"], "properties": {"files": {"minProperties": 1}}},
        {"required": ["environment"], "properties": {"environment": {"minProperties": 1}}},
    ],
    "if": {"not": {"required": ["home"]}},
    "then": {"properties": {"files": {"propertyNames": {"pattern": "^/"}}}},
    "additionalProperties": False,
}
"""The file given with ``--secrets``."""

EXPECTATIONS: dict[str, Any] = {
    "title": "Expectations",
    "description": "What a server documents: the file given with --expect.",
    "type": "object",
    "properties": {
        "hosts": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"$ref": "#/$defs/host"},
                    {
                        "type": "object",
                        "properties": {
                            "host": {"$ref": "#/$defs/host"},
                            "ports": {
                                "description": "Allowed ports; none means any.",
                                "type": "array",
                                "items": {"type": "integer", "minimum": 1, "maximum": 65535},
                            },
                            "why": {"description": "Where it is documented.", "type": "string"},
                            "publisher": {"description": "Who stands behind it.", "type": "string"},
                        },
                        "required": ["host"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
        "paths": {"description": "Glob patterns of files.", "type": "array", "items": {"type": "string"}},
        "children": {"description": "Glob patterns of programs.", "type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
    "$defs": {
        "host": {
            "description": (
                "A host name; *.example.com is any name below, .example.com that and the name itself; "
                "or an IP address or network in CIDR notation."
            ),
            "type": "string",
            "minLength": 1,
        }
    },
}
"""The file given with ``--expect``."""
