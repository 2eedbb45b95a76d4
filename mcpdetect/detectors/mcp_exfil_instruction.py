"""mcp.exfil-instruction: texts that tell the agent to carry secrets, or what it knows, to somebody else."""

from __future__ import annotations

from collections.abc import Iterable

from mcpdetect.contract import Context, Detector, Spec
from mcpdetect.correlate.text.exfil import ExfilOrder, exfil_orders
from mcpdetect.correlate.text.fold import Folded
from mcpdetect.correlate.text.said import LISTED
from mcpdetect.correlate.text.words import vocabulary
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpText, McpTool
from mcpdetect.model.result import Finding
from mcpdetect.model.vocabulary import Level

__all__ = ["McpExfilInstruction"]

_QUOTE = 400

_MEANING = {
    "secret-to-address": "tells the agent to send {what} to {sink}",
    "secret-to-parameter": "tells the agent to put {what} into the parameter {sink}",
    "traffic-to-address": "says that what passes through is copied to {sink}",
    "copied-to-address": "tells the agent to let {sink} have a copy of what it sends",
    "sent-in-secret": "speaks of sending {what} and of keeping that from the user",
}
_WHAT = {
    "credential": "credentials",
    "file": "a file that holds secrets",
    "context": "what only the agent knows",
    "traffic": "what others say",
    "": "data",
}


class McpExfilInstruction(Detector):
    """A listed text that tells the agent to carry secrets or its conversation to a foreign place."""

    spec = Spec(
        id="mcp.exfil-instruction",
        version=1,
        claim="no text that the server lists tells the agent to carry secrets or its conversation to a foreign place",
        kinds=("mcp.tool",),
        needs=(LISTED,),
        blind_to=(
            "paraphrase: an order that uses none of the known words for sending, secrets and places",
            "languages other than English, and beyond a core of German, French and Spanish words",
            "an order whose parts are spread over several tools or over sentences far apart",
            "texts that were not listed: results, resource contents, prompts fetched one by one, notifications",
            "a parameter that asks for a secret by its name or type alone",
            "another listing shown to another client or at another time",
        ),
        complete_run=False,
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._words = vocabulary()

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Judge every text of one listed definition."""
        if isinstance(event, McpTool):
            for text in event.texts:
                for hit, folded, level in exfil_orders(text.text, self._words):
                    yield self._found(event, text, hit, folded, level)

    def _found(self, event: McpTool, text: McpText, hit: ExfilOrder, folded: Folded, level: Level) -> Finding:
        start, end = hit.first.sentence.start, hit.last.sentence.end
        end += folded.text[end : end + 1] in ("'", '"', "`")
        quote = folded.quote(start, end)
        quote = quote if len(quote) <= _QUOTE else quote[: _QUOTE - 1] + "…"
        sink = hit.sink.name if hit.sink is not None else None
        meaning = _MEANING[hit.rule].format(what=_WHAT[hit.what], sink=sink)
        subject = "the server's instructions" if event.part == "instructions" else f"the {event.part} {event.name!r}"
        hidden = f" The text was disguised ({', '.join(folded.disguises)})." if folded.disguises else ""
        reads = folded.text[start:end][:_QUOTE]
        return self.finding(
            event,
            title=f"{subject} {meaning}",
            reason=f"At {text.pointer or '/'} it says “{quote}”. An agent follows such words as if the user had said "
            f"them; an honest tool has no use for data that it did not ask for by its own purpose.{hidden}",
            identity=f"{event.part}\0{event.name}\0{text.pointer}\0{hit.rule}",
            level=level,
            tool=event.name,
            part=event.part,
            pointer=text.pointer,
            rule=hit.rule,
            sink=sink,
            quote=quote,
            reads=reads if folded.disguises else None,
            disguises=list(folded.disguises),
            revision=event.revision,
        )
