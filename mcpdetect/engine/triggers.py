"""Which call of a tool a finding belongs to."""

from __future__ import annotations

from collections.abc import Iterable

from mcpdetect.contract import Spec
from mcpdetect.correlate.calls import Calls
from mcpdetect.model.result import CheckResult

__all__ = ["name_triggers", "triggered"]

_MOST = 8


def triggered(spec: Spec) -> bool:
    """Return whether findings of a check are acts that a call may have brought about; texts are not."""
    return any(need.channel != "mcp" for group in spec.needs for need in group.needs) and spec.category != "mcp"


def name_triggers(checks: Iterable[CheckResult], calls: Calls) -> None:
    """Name with every finding that is an act the calls during which it happened.

    ``facts["triggered_by"]`` becomes a list of ``tool at place``, each call that was under way at the finding's time:
    several where a client did not wait, none where no call was.
    """
    if not calls.calls:
        return
    for check in checks:
        for finding in check.findings:
            if finding.check.startswith("mcp.") or "triggered_by" in finding.facts:
                continue
            under_way = calls.during(finding.t_ns)[:_MOST]
            if under_way:
                finding.facts["triggered_by"] = [f"{call.tool} at {call.where}" for call in under_way]
