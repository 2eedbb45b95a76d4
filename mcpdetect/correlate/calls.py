"""Calls of tools: from the request to its answer, and which of them was under way at a given time."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpdetect.contract import Fact
from mcpdetect.correlate.clock import comparable
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpMessage, McpTool
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Channel

__all__ = ["MAX_CALLS", "Calls", "ToolCall", "strings_of"]

MAX_CALLS = 20_000
"""Most calls of one run that are remembered."""

_MOST_STRINGS = 1000


@dataclass(slots=True)
class ToolCall:
    """One call of a tool.

    Attributes:
        tool: its name.
        arguments: as compact JSON, None where none were given.
        where: place of the request.
        begin_ns, end_ns: its time, and that of its answer; None where unknown, or where no answer came.
        answer: the answer, as far as its text is kept.
        strings: every string in the arguments; see ``strings_of``.
    """

    tool: str
    arguments: str | None
    where: Where
    begin_ns: int | None
    end_ns: int | None = None
    answer: McpMessage | None = None
    strings: list[str] = field(default_factory=list)

    def under_way(self, t_ns: int | None, slack_ns: int = 0) -> bool:
        """Return whether the call was under way at a time; one without an answer is until the run ends.

        Args:
            t_ns: the time; None is in no call.
            slack_ns: how long after its answer its work may still show.
        """
        if t_ns is None or self.begin_ns is None or not comparable(self.begin_ns, t_ns):
            return False
        return self.begin_ns <= t_ns and (self.end_ns is None or t_ns <= self.end_ns + slack_ns)


class Calls(Fact):
    """The calls of one run, in order, and the last definition of every tool.

    Where the conversation is seen twice, in a transcript and in the program's own reads and writes, the first that
    speaks of a call counts.
    """

    kinds = ("mcp.message", "mcp.tool")

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.calls: list[ToolCall] = []
        self.tools: dict[str, McpTool] = {}
        self.dropped = 0
        self._answered: ToolCall | None = None
        self._open: dict[tuple[str, int], ToolCall] = {}
        self._channel: Channel | None = None
        self._begins: list[int] = []

    def on_event(self, event: Event) -> None:
        """Take a request, an answer or a definition."""
        if isinstance(event, McpTool):
            if event.part == "tool" and (event.name in self.tools or len(self.tools) < MAX_CALLS):
                self.tools[event.name] = event
            return
        if not isinstance(event, McpMessage) or (event.method != "tools/call" and event.answers is None):
            return
        self._channel = self._channel or event.seen_in
        if event.seen_in != self._channel:
            return
        if event.form == "request" and event.direction == "c2s":
            if len(self.calls) >= MAX_CALLS:
                self.dropped += 1
                return
            call = ToolCall(event.tool or "", event.arguments, event.where, event.t_ns)
            call.strings = strings_of(event.arguments)
            self.calls.append(call)
            self._begins = []
            self._open[event.where.file, event.where.at] = call
        elif event.answers is not None and event.direction == "s2c":
            call_made = self._open.pop((event.where.file, event.answers), None)
            if call_made is not None:
                call_made.end_ns, call_made.answer = event.t_ns, event
                self._answered = call_made

    def during(self, t_ns: int | None, slack_ns: int = 0) -> list[ToolCall]:
        """Return the calls under way at a time, in order; several at once where a client did not wait.

        Args:
            t_ns: the time.
            slack_ns: how long after its answer a call's work may still show.
        """
        if t_ns is None:
            return []
        if len(self._begins) != len(self.calls):
            self._begins = [call.begin_ns or 0 for call in self.calls]
        return [call for call in self.calls[: bisect_right(self._begins, t_ns)] if call.under_way(t_ns, slack_ns)]

    def answered_by(self, event: Event) -> ToolCall | None:
        """Return the call that the last answer read ended, if ``event`` is that answer."""
        last = self._answered
        return last if last is not None and last.answer is event else None

    def annotated(self, hint: str) -> Iterator[str]:
        """Yield the names of the tools whose last definition carries an annotation such as ``readOnlyHint=true``."""
        for name, tool in self.tools.items():
            if hint in (tool.hints or ()):
                yield name


def strings_of(arguments: str | None) -> list[str]:
    """Return every string in a call's arguments in the order written, keys left out; at most 1,000.

    Args:
        arguments: as JSON; of JSON that was cut the text itself is all there is.
    """
    if not arguments:
        return []
    try:
        stack: list[object] = [json.loads(arguments)]
    except (ValueError, RecursionError):
        return [arguments]
    found: list[str] = []
    while stack and len(found) < _MOST_STRINGS:
        item = stack.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
    return found
