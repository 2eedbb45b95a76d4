"""Detectors for what MCP servers really did, honest about what the evidence could not show.

``open_trace`` or ``open_evidence_files`` gives a run, ``check`` or ``audit`` a ``Result`` of typed verdicts and
findings.
What ``__all__`` names is the promise; everything else may change.
"""

from mcpdetect.api import (
    audit,
    check,
    describe,
    load_baseline,
    load_expectations,
    load_secrets,
    open_evidence_files,
    open_trace,
)
from mcpdetect.engine.discovery import detectors as installed_detectors
from mcpdetect.errors import (
    ConfigError,
    InputError,
    LabelError,
    Malformed,
    McpDetectError,
    SpecError,
    UnknownFormat,
)
from mcpdetect.model.result import CheckResult, Explanation, Finding, Limit, Result
from mcpdetect.version import VERSION as __version__  # noqa: N811  the name PEP 8 gives to it

__all__ = [
    "CheckResult",
    "ConfigError",
    "Explanation",
    "Finding",
    "InputError",
    "LabelError",
    "Limit",
    "Malformed",
    "McpDetectError",
    "Result",
    "SpecError",
    "UnknownFormat",
    "__version__",
    "audit",
    "check",
    "describe",
    "installed_detectors",
    "load_baseline",
    "load_expectations",
    "load_secrets",
    "open_evidence_files",
    "open_trace",
]
