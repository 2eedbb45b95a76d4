"""mcp.output-nondeterminism: the same call of a read-only tool, another answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.correlate.calls import Calls, ToolCall
from mcpdetect.correlate.text.normal import normal_result
from mcpdetect.model.result import Finding

__all__ = ["McpOutputNondeterminism"]


class McpOutputNondeterminism(Detector):
    """A tool that says it only reads, and answers one call in two ways."""

    spec = Spec(
        id="mcp.output-nondeterminism",
        version=1,
        claim="a tool that says it only reads gave every repeated call the same answer",
        kinds=("mcp.message", "mcp.tool"),
        needs=(AnyOf("calls and their answers", Need("mcp", ("mcp.message", "mcp.tool", "data:mcp.message"))),),
        facts=(Calls,),
        blind_to=(
            "a call that was made only once: no repetition, no comparison",
            "times, dates, counters of seconds and identifiers, which are set aside before comparing",
            "an answer that differs only for another client, at another time, or after more calls",
        ),
        complete_run=False,
    )

    def finish(self) -> Iterator[Finding]:
        """Compare the answers to equal calls."""
        calls = self.context.fact(Calls)
        tools = set(calls.annotated("readOnlyHint=true"))
        groups: dict[tuple[str, str], list[ToolCall]] = {}
        for call in calls.calls:
            if call.tool in tools and call.answer is not None and call.answer.form == "response":
                groups.setdefault((call.tool, call.arguments or ""), []).append(call)
        if tools and not any(len(group) > 1 for group in groups.values()):
            self.context.limit("not-repeated", "no call of a read-only tool was made twice and answered twice")
        for (tool, arguments), group in groups.items():
            seen: dict[str, ToolCall] = {}
            for call in group:
                text = call.answer.text or "" if call.answer is not None else ""
                seen.setdefault(hashlib.sha256(normal_result(text).encode("utf-8", "surrogatepass")).hexdigest(), call)
            if len(seen) > 1:
                places = [call.answer for call in seen.values() if call.answer is not None]
                yield self.finding(
                    *places,
                    title=f"{tool!r} gave {len(seen)} different answers to one call made {len(group)} times",
                    reason="The tool says that it only reads (readOnlyHint). What it reads may change; an answer may "
                    "also depend on who asks, and when.",
                    identity=f"{tool}\0{arguments[:200]}",
                    level="info",
                    tool=tool,
                    arguments=arguments[:200],
                    answers=len(seen),
                )
