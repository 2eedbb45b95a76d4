"""mcp.output-injection: results that instruct the agent, hide text from the user, or carry data out in a link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.correlate.text.exfil import exfil_orders
from mcpdetect.correlate.text.fold import fold
from mcpdetect.correlate.text.hidden import hidden
from mcpdetect.correlate.text.links import carrying_links
from mcpdetect.correlate.text.poisoning import orders
from mcpdetect.correlate.text.said import Said, said
from mcpdetect.correlate.text.words import vocabulary
from mcpdetect.model.event import Event
from mcpdetect.model.result import Finding
from mcpdetect.model.vocabulary import Level

__all__ = ["McpOutputInjection"]

_QUOTE = 300
# In a result these have no honest use; all other hiding counts only where it hides an order.
_NEVER_HONEST = frozenset({"tag-characters", "variation-selectors"})


class McpOutputInjection(Detector):
    """A result of a call, or the content of a resource, that gives the agent orders or carries its data out."""

    spec = Spec(
        id="mcp.output-injection",
        version=1,
        claim="no result and no resource gives the agent orders, hides text from the user or carries data in a link",
        kinds=("mcp.message",),
        needs=(
            AnyOf(
                "what calls and resources return",
                Need("mcp", ("mcp.message", "data:mcp.message")),
                Need("syscalls", ("mcp.message", "data:mcp.message")),
            ),
        ),
        blind_to=(
            "whose words they are: a server that passes on what a page says is told no different from one that says it",
            "paraphrase, and languages beyond a core of English, German, French and Spanish words",
            "an order quoted as an example of something",
            "pictures and sounds, whose bytes are not kept",
            "results that no call of this run brought about",
        ),
        complete_run=False,
    )

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Judge every text that a call or a resource returned."""
        for item in said(event):
            if item.voice == "returned":
                yield from self._judge(item)

    def _judge(self, item: Said) -> Iterator[Finding]:
        folded = fold(item.text)
        rules = {order.rule: folded.quote(order.start, order.end) for order in orders(folded)}
        for hit, text, _ in exfil_orders(item.text, vocabulary()):
            rules.setdefault(hit.rule, text.quote(hit.first.sentence.start, hit.last.sentence.end))
        level: Level = "accusing" if len(rules) > 1 or (rules and folded.disguises) else "suspicious"
        for rule, quote in rules.items():
            yield self._found(item, f"gives the agent an order ({rule})", quote, rule, level)
        for found in hidden(item.text):
            if found.orders or found.how in _NEVER_HONEST:
                grave: Level = "accusing" if found.orders else "suspicious"
                yield self._found(item, f"hides text ({found.how})", found.reveals or "?", f"hidden-{found.how}", grave)
        for link in carrying_links(item.text):
            yield self._found(
                item, f"holds a link that carries data to {link.host}", link.address, "link", "suspicious"
            )

    def _found(self, item: Said, what: str, quote: str, rule: str, level: Level) -> Finding:
        quote = quote if len(quote) <= _QUOTE else quote[: _QUOTE - 1] + "…"
        return self.finding(
            item.event,
            title=f"{item.subject} {what}",
            reason=f"It says “{quote}”. What a tool returns is data; an agent that takes it for an order acts for "
            "whoever wrote it.",
            identity=f"{item.part}\0{item.name}\0{rule}\0{quote[:80]}",
            level=level,
            part=item.part,
            name=item.name,
            rule=rule,
            quote=quote,
        )
