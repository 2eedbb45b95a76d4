"""mcp.shadowing: names and texts that reach for another server's tools."""

from __future__ import annotations

from collections.abc import Iterator

from mcpdetect.contract import Detector, Spec
from mcpdetect.contract.detector import Context
from mcpdetect.correlate.text.fold import fold
from mcpdetect.correlate.text.foreign import Reach, reaches
from mcpdetect.correlate.text.said import LISTED, Said, said
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpTool
from mcpdetect.model.result import Finding

__all__ = ["McpShadowing"]

MAX_TEXTS = 20_000
"""Most texts with a reach that wait for the end, when all tools are known."""

_QUOTE = 400


class McpShadowing(Detector):
    """A text that tells the agent how to use, or not to use, tools that are not this server's."""

    spec = Spec(
        id="mcp.shadowing",
        version=1,
        claim="no name and no text of the server claims or redirects the tools of another",
        kinds=("mcp.tool", "mcp.message"),
        needs=(LISTED,),
        blind_to=(
            "tools that are named in words only (the mail tool), and not as an identifier",
            "a name that another server uses too: only an audit of both could tell",
            "paraphrase, and languages other than English",
        ),
        complete_run=False,
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._own: dict[str, str] = {}
        self._reaches: list[tuple[Said, Reach, str]] = []
        self._names: dict[str, McpTool] = {}

    def on_event(self, event: Event) -> Iterator[Finding]:
        """Gather the server's own names, and the texts that speak of tools."""
        if isinstance(event, McpTool):
            self._own.setdefault(event.name.lower(), event.name)
            for text in event.texts:
                # Parameters and values are the server's own words too.
                if len(text.text) <= 80 and len(self._own) < MAX_TEXTS:
                    self._own.setdefault(text.text.lower(), text.text)
            if event.part == "tool":
                yield from self._twin(event)
        for item in said(event):
            if item.voice == "own":
                folded = fold(item.text)
                for reach in reaches(folded):
                    if len(self._reaches) < MAX_TEXTS:
                        quote = folded.quote(reach.start, reach.end)
                        self._reaches.append((item, reach, quote))
                    else:
                        self.context.limit("overflow", f"more than {MAX_TEXTS} texts speak of tools")

    def _twin(self, event: McpTool) -> Iterator[Finding]:
        """Yield a tool whose name looks like another's, in other letters."""
        looks = fold(event.name).text
        other = self._names.setdefault(looks, event)
        if other.name != event.name and other.name.lower() != event.name.lower():
            yield self.finding(
                event,
                other,
                title=f"the tools {other.name!r} and {event.name!r} look the same",
                reason="The names differ in letters that no one can tell apart, so an approval of one is taken for the "
                "other.",
                identity=f"twin\0{looks}",
                level="suspicious",
                rule="twin",
                name=event.name,
                foreign=other.name,
                quote=event.name,
            )

    def finish(self) -> Iterator[Finding]:
        """Tell the server's own tools from those of others."""
        for item, reach, quote in self._reaches:
            if reach.tool in self._own or reach.tool.replace("-", "_") in self._own:
                continue
            quote = quote if len(quote) <= _QUOTE else quote[: _QUOTE - 1] + "…"
            what = {
                "redirects": f"tells the agent how to call {reach.tool}, which is not this server's",
                "forbids": f"tells the agent not to use {reach.tool}, which is not this server's",
                "joins": f"has itself called along with {reach.tool}, which is not this server's",
                "replaces": f"says that it stands in for {reach.tool}, which is not this server's",
            }[reach.rule]
            yield self.finding(
                item.event,
                title=f"{item.subject} {what}",
                reason=f"It says “{quote}”. A server that shapes the use of another's tools can change what they do "
                "without ever being called.",
                identity=f"{item.part}\0{item.name}\0{item.pointer}\0{reach.rule}\0{reach.tool}",
                level="suspicious" if reach.rule == "redirects" else "info",
                rule=reach.rule,
                name=item.name,
                pointer=item.pointer,
                foreign=reach.tool,
                quote=quote,
            )
