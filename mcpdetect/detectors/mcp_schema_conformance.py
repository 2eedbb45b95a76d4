"""mcp.schema-conformance: definitions, messages and outputs that are not what the protocol asks for."""

from __future__ import annotations

from collections.abc import Iterable

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpMessage, McpTool
from mcpdetect.model.result import Finding

__all__ = ["McpSchemaConformance"]

_SHOWN = 120


class McpSchemaConformance(Detector):
    """A message, a definition or an output that breaks JSON-RPC, JSON Schema or the protocol."""

    spec = Spec(
        id="mcp.schema-conformance",
        version=1,
        claim="every message, definition and structured output of the server is what JSON-RPC 2.0 and MCP ask for",
        kinds=("mcp.tool", "mcp.message"),
        needs=(
            AnyOf("the server's listed tools", Need("mcp", ("mcp.tool",))),
            AnyOf("the server's messages", Need("mcp", ("mcp.message",))),
        ),
        blind_to=(
            "keywords of JSON Schema other than those by which types, properties, values and combinations are told",
            "rules of the protocol about time and order other than that capabilities come before what they offer",
            "what a transport of its own (HTTP headers, sessions) asks for",
        ),
        complete_run=False,
    )

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Report what the adapter met."""
        if isinstance(event, McpTool):
            for breach in event.breaches or ():
                yield self._found(event, f"the tool {event.name!r}", event.name, breach)
        elif isinstance(event, McpMessage) and event.direction == "s2c":
            if event.form == "noise":
                yield self._found(
                    event, "standard output", "", "carries a line that is no message", (event.text or "")[:_SHOWN]
                )
            for breach in event.breaches or ():
                about = f"an answer to {event.method}" if event.method else f"a {event.form}"
                name = event.tool or event.method or ""
                yield self._found(event, f"{about} ({event.tool})" if event.tool else about, name, breach)

    def _found(self, event: Event, subject: str, name: str, breach: str, line: str = "") -> Finding:
        shown = f" The line: “{line}”." if line else ""
        return self.finding(
            event,
            title=f"{subject}: {breach}",
            reason="A strict client refuses it, a lenient one guesses; two readers may then see two different things."
            + shown,
            identity=f"{subject}\0{name}\0{breach}",
            level="info",
            name=name,
            breach=breach,
        )
