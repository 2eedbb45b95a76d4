"""mcp.hidden-text: texts that carry more than a person sees."""

from __future__ import annotations

from collections.abc import Iterable

from mcpdetect.contract import Detector, Spec
from mcpdetect.correlate.text.hidden import Hidden, hidden
from mcpdetect.correlate.text.said import ASKED_AND_ANSWERED, LISTED, Said, said
from mcpdetect.model.event import Event
from mcpdetect.model.result import Finding
from mcpdetect.model.vocabulary import Level

__all__ = ["McpHiddenText"]

_QUOTE = 400

_WAYS = {
    "tag-characters": "in tag characters, which no font draws (U+E0000 to U+E007F)",
    "variation-selectors": "in a row of variation selectors, which no font draws",
    "zero-width": "with characters of no width inside words",
    "bidi-override": "with marks that turn the order of letters round",
    "look-alikes": "with letters of another script that look the same",
    "terminal-escape": "with terminal escapes that conceal, move or overwrite what is shown",
    "comment": "in a comment that is not shown",
    "unseen-markup": "in markup that is not shown",
    "whitespace-wall": "behind a wall of blank space",
    "encoded": "in an encoding that nobody reads",
    "disguised-order": "in letters that only a machine takes for an order",
}
# These have no use in a text for people, whatever they hide.
_NEVER_HONEST = frozenset({"tag-characters", "variation-selectors", "bidi-override", "look-alikes"})


class McpHiddenText(Detector):
    """A text of the server that hides something from the person who approves it."""

    spec = Spec(
        id="mcp.hidden-text",
        version=1,
        claim="no text that the server lists, asks or answers with hides anything from a reader",
        kinds=("mcp.tool", "mcp.message"),
        needs=(LISTED, ASKED_AND_ANSWERED),
        blind_to=(
            "a plain text that is merely long, or shown by a client only in part",
            "words spelled entirely with letters of one other script, as that script's own words are",
            "Latin letters that resemble each other",
            "encodings beyond base64, base32, hexadecimal, percent, backslash and character references, three deep",
            "comments, unseen markup and encoded blocks whose content is no order that is known",
            "a single soft hyphen or joiner where scripts and line breaking need them",
            "results of calls and contents of resources: mcp.output-injection reads them",
        ),
        complete_run=False,
    )

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Look at every text of the server's own."""
        for item in said(event):
            if item.voice == "own":
                for found in hidden(item.text):
                    yield self._found(item, found)

    def _found(self, item: Said, found: Hidden) -> Finding:
        reveals = found.reveals if len(found.reveals) <= _QUOTE else found.reveals[: _QUOTE - 1] + "…"
        place = f" at {item.pointer}" if item.pointer else ""
        says = f"It reads “{reveals}” there. " if reveals else ""
        ordered = f"That is an order to the agent ({', '.join(found.orders)}). " if found.orders else ""
        level: Level = "accusing" if found.orders else "suspicious"
        honest = (
            "No text meant for people needs that."
            if found.how in _NEVER_HONEST
            else "What a person approves is then not what the agent reads."
        )
        return self.finding(
            item.event,
            title=f"{item.subject} hides text {_WAYS[found.how]}",
            reason=f"Characters {found.start} to {found.end}{place} are hidden. {says}{ordered}{honest}",
            identity=f"{item.part}\0{item.name}\0{item.pointer}\0{found.how}\0{reveals}",
            level=level,
            part=item.part,
            name=item.name,
            pointer=item.pointer,
            how=found.how,
            start=found.start,
            end=found.end,
            reveals=reveals or None,
            orders=list(found.orders),
        )
