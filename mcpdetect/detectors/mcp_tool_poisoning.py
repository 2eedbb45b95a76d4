"""mcp.tool-poisoning: texts that instruct the agent behind the user's back instead of describing a tool."""

from __future__ import annotations

from collections.abc import Iterable

from mcpdetect.contract import Detector, Spec
from mcpdetect.correlate.text.exfil import exfil_orders
from mcpdetect.correlate.text.fold import Folded, fold
from mcpdetect.correlate.text.poisoning import Order, orders
from mcpdetect.correlate.text.said import ASKED_AND_ANSWERED, LISTED, Said, said
from mcpdetect.correlate.text.words import vocabulary
from mcpdetect.model.event import Event
from mcpdetect.model.result import Finding

__all__ = ["McpToolPoisoning"]

_QUOTE = 400


class McpToolPoisoning(Detector):
    """A text of the server that gives the agent orders which describe no tool."""

    spec = Spec(
        id="mcp.tool-poisoning",
        version=1,
        claim="no text that the server lists, asks or answers with gives the agent orders behind the user's back",
        kinds=("mcp.tool", "mcp.message"),
        needs=(LISTED, ASKED_AND_ANSWERED),
        blind_to=(
            "paraphrase: an order that uses none of the known words",
            "languages other than English, and beyond a core of German, French and Spanish words",
            "an order quoted as an example of something: words such as 'detects' in front of it make it one",
            "a standing order to call this tool first or always, which honest tools give too",
            "results of calls and contents of resources, which may be others' words: mcp.output-injection reads them",
            "another text shown to another client or at another time",
        ),
        complete_run=False,
    )

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Judge every text of the server's own."""
        for item in said(event):
            if item.voice == "own":
                yield from self._judge(item)

    def _judge(self, item: Said) -> Iterable[Finding]:
        folded = fold(item.text)
        found = orders(folded)
        if not found:
            return
        carried = any(True for _ in exfil_orders(item.text, vocabulary()))
        # One order may be clumsy wording; several together, or one that is hidden or threatens, are a plan.
        grave = len(found) > 1 or carried or bool(folded.disguises)
        for order in found:
            yield self._found(item, order, folded, grave=grave or order.threatened)

    def _found(self, item: Said, order: Order, folded: Folded, *, grave: bool) -> Finding:
        quote = folded.quote(order.start, order.end)
        quote = quote if len(quote) <= _QUOTE else quote[: _QUOTE - 1] + "…"
        place = f"At {item.pointer} it says" if item.pointer else "It says"
        hidden = f" The text was disguised ({', '.join(folded.disguises)})." if folded.disguises else ""
        return self.finding(
            item.event,
            title=f"{item.subject} {order.says}",
            reason=f"{place} “{quote}”. An agent follows such words as if the user had said them; they describe "
            f"nothing that the tool does.{hidden}",
            identity=f"{item.part}\0{item.name}\0{item.pointer}\0{order.rule}",
            level="accusing" if grave else "suspicious",
            part=item.part,
            name=item.name,
            pointer=item.pointer,
            rule=order.rule,
            quote=quote,
            reads=folded.text[order.start : order.end][:_QUOTE] if folded.disguises else None,
            disguises=list(folded.disguises),
        )
