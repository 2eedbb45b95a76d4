"""mcp.drift: definitions that differ from what the same server showed before."""

from __future__ import annotations

from collections.abc import Iterable

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.text.compared import Change, changes
from mcpdetect.correlate.text.hidden import hidden
from mcpdetect.correlate.text.says import says
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpText, McpTool
from mcpdetect.model.place import Where
from mcpdetect.model.result import Finding
from mcpdetect.model.vocabulary import Level

__all__ = ["McpDrift"]

MAX_KEPT = 10_000
"""Most definitions whose last text is kept for comparison."""

_QUOTE = 200


class McpDrift(Detector):
    """A tool, prompt, resource or instruction that changed after it was first shown."""

    spec = Spec(
        id="mcp.drift",
        version=1,
        claim="nothing that the server lists changed while it ran",
        kinds=("mcp.tool",),
        needs=(AnyOf("the server's listed texts", Need("mcp", ("mcp.tool",)), Need("syscalls", ("mcp.tool",))),),
        blind_to=(
            "a change that is shown to another client, at another time, or on a later listing that was not asked for",
            "a definition that is gone from a later listing",
            "another behaviour behind the same texts",
        ),
        complete_run=False,
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._last: dict[tuple[str, str], McpTool] = {}
        baseline = context.baseline
        self._source = baseline.source if baseline is not None else ""
        self._approved = {
            (tool.part, tool.name): McpTool(
                Where(self._source, 0),
                None,
                name=tool.name,
                texts=[McpText(text.pointer, text.text) for text in tool.texts],
                digest=tool.digest,
            )
            for tool in (baseline.definitions if baseline is not None else ())
        }

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Compare a definition with the one of the same name that was shown before."""
        if not isinstance(event, McpTool):
            return
        key = (event.part, event.name)
        before = self._last.get(key)
        if before is not None or len(self._last) < MAX_KEPT:
            self._last[key] = event
        else:
            self.context.limit("overflow", f"more than {MAX_KEPT} definitions: later ones are not compared")
        if event.revision > 1 and before is not None and before.where != event.where:
            yield self._found(before, event, "after it was shown")
        elif before is None and self._source:
            approved = self._approved.get(key)
            if approved is None:
                yield self._unknown(event)
            elif approved.digest != event.digest:
                yield self._found(approved, event, "since it was approved")

    def finish(self) -> Iterable[Finding]:
        """Tell what the approved description names and the server no longer lists."""
        gone = [name for part, name in self._approved if (part, name) not in self._last]
        if gone:
            self.context.limit(
                "not-listed", f"approved and no longer listed: {', '.join(gone[:20])}", hides=False, count=len(gone)
            )
        return ()

    def _unknown(self, now: McpTool) -> Finding:
        new = " ".join(text.text for text in now.texts)
        orders = sorted(says(new))
        return self.finding(
            now,
            title=f"the {now.part} {now.name!r} is new: the approved description does not name it",
            reason=f"{self._source} was approved without it.",
            identity=f"{now.part}\0{now.name}\0new",
            level="accusing" if orders else "suspicious",
            part=now.part,
            name=now.name,
            revision=now.revision,
            kind="new",
            pointers=[],
            orders=orders,
        )

    def _found(self, before: McpTool, now: McpTool, since: str) -> Finding:
        found = changes(before, now)
        cosmetic = all(change.cosmetic for change in found)
        new = " ".join(change.after or "" for change in found)
        orders = sorted({*says(new), *(item.how for item in hidden(new))})
        level: Level = "accusing" if orders else "info" if cosmetic else "suspicious"
        what = "only in spelling" if cosmetic else "in what it says"
        listed = "; ".join(_shown(change) for change in found[:8]) or "values that are no texts"
        grave = f" The new text holds an order to the agent ({', '.join(orders)})." if orders else ""
        subject = "the server's instructions" if now.part == "instructions" else f"the {now.part} {now.name!r}"
        return self.finding(
            now,
            *([before] if before.where.at else []),
            title=f"{subject} changed {what} {since}",
            reason=f"Changed: {listed}. Whoever approved the first text did not approve this one.{grave}",
            identity=f"{now.part}\0{now.name}\0{now.digest}",
            level=level,
            part=now.part,
            name=now.name,
            revision=now.revision,
            kind="cosmetic" if cosmetic else "semantic",
            pointers=[change.pointer for change in found[:32]],
            orders=orders,
        )


def _shown(change: Change) -> str:
    before, after = (text if len(text) <= _QUOTE else text[: _QUOTE - 1] + "…" for text in change.both)
    if change.before is None:
        return f"{change.pointer} is new: “{after}”"
    if change.after is None:
        return f"{change.pointer} is gone: “{before}”"
    return f"{change.pointer} was “{before}” and is “{after}”"
