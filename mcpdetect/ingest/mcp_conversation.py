"""The messages of one transcript in order: paired, listed, counted."""

from __future__ import annotations

from typing import Any

from mcpdetect.ingest.mcp_conformance import MOST_BREACHES, Outputs, message_breaches, result_breaches
from mcpdetect.ingest.mcp_json import Reading, compact, plain, readings
from mcpdetect.ingest.mcp_message import TEXT_LIMIT, Direction, Form, bounded, direction_of, form_of, message_text
from mcpdetect.ingest.mcp_session import Listings, Losses, Pending, Requests
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpMessage, McpTool
from mcpdetect.model.place import Where

__all__ = ["Conversation"]


class Conversation:
    """What was said so far between one client and one server.

    Args:
        file: the transcript's name, for places.
        losses: where losses are counted.
        counts: where ``messages``, ``noise`` and ``tools`` are counted.
    """

    def __init__(self, file: str, losses: Losses, counts: dict[str, int]) -> None:
        self._file = file
        self._losses = losses
        self._counts = counts
        self._requests: dict[Direction, Requests] = {"c2s": Requests(losses), "s2c": Requests(losses)}
        self._orphans = 0
        self._first_orphan: Where | None = None
        self._outputs = Outputs()
        self._listings = Listings(losses, self._outputs)
        self._started = False

    @property
    def one_sided(self) -> bool:
        """Whether responses were seen, but never a request of the client."""
        return bool(self._orphans) and not self._requests["c2s"].seen

    @property
    def listed(self) -> bool:
        """Whether the server listed its tools at least once."""
        return self._listings.listed("tools/list")

    def messages(
        self, where: Where, t_ns: int | None, direction: Direction | None, value: object, reading: Reading
    ) -> list[Event]:
        """Return the events of one message or batch; ``direction`` None is inferred for each message."""
        events: list[Event] = []
        for item in value if isinstance(value, list) and value else [value]:
            form = form_of(item)
            if form == "noise" or not isinstance(item, dict):
                events.append(self.noise(where, t_ns, direction or "s2c", compact(item), reading.broken))
                continue
            sender = direction or direction_of(item)
            if direction is None and form in ("response", "error"):
                key = compact(item.get("id"))
                theirs, ours = self._requests["s2c"], self._requests["c2s"]
                sender = "c2s" if theirs.waits(key) and not ours.waits(key) else "s2c"
            events.extend(self._message(where, t_ns, sender, form, item, reading.broken))
        if reading.duplicates:
            # {"jsonrpc":"2.0","id":3,"result":{"content":[]},"result":{"content":[]}}: readers differ on which wins.
            self._losses.add(
                "duplicate-key", "an object gives a key twice; both values were examined", where, note=True
            )
        return events

    def noise(self, where: Where, t_ns: int | None, direction: Direction, raw: str, broken: bool) -> McpMessage:
        """Return the event of a line that is no JSON-RPC; what a server prints there is evidence too."""
        self._counts["noise"] += 1
        text, cut = self._bounded(raw, broken, where)
        return McpMessage(where, t_ns, direction=direction, form="noise", text=text, cut=cut)

    def _message(
        self, where: Where, t_ns: int | None, direction: Direction, form: Form, item: dict[str, Any], broken: bool
    ) -> list[Event]:
        self._counts["messages"] += 1
        event = McpMessage(where, t_ns, direction=direction, form=form)
        if direction == "s2c":
            event.breaches = message_breaches(item, form) or None
        if "id" in item:
            event.id = compact(item["id"])
        text = message_text(item, form)
        if text is not None:
            event.text, event.cut = self._bounded(text, broken, where)
        if form in ("request", "notification"):
            self._asked(event, item, broken)
            return [event]
        results = [result for result in readings(item, "result") if isinstance(result, dict)]
        asker: Direction = "s2c" if direction == "c2s" else "c2s"
        keys = frozenset(key for result in results for key in result)
        request, ambiguous = self._requests[asker].answer(event.id or "null", keys)
        if request is None:
            self._orphans += 1
            self._first_orphan = self._first_orphan or where
        else:
            event.method, event.answers, event.tool = request.method, request.at, request.tool
        event.is_error = form == "error" or any(result.get("isError") is True for result in results)
        tools: list[McpTool] = []
        if direction == "s2c":
            event.breaches = [*(event.breaches or ()), *self._breaches(event, results)] or None
            for result in results:
                guess = request is None or ambiguous
                tools.extend(self._listings.response(result, request, guess, where, t_ns, broken))
        self._counts["tools"] += len(tools)
        return [event, *tools]

    def _breaches(self, event: McpMessage, results: list[dict[str, Any]]) -> list[str]:
        """Return where an answer of the server is not what its request asks for."""
        found = [breach for result in results for breach in result_breaches(event.method, result)]
        if event.method == "tools/call":
            found += [breach for result in results for breach in self._outputs.breaches(event.tool, result)]
        if event.method == "initialize" and results:
            self._started = True
        if self._listings.refused(event.method, answered=bool(results)):
            found.append(f"{event.method} is refused, which the server's capabilities offer")
        if results and self._started and self._listings.unoffered(event.method):
            found.append(f"{event.method} is answered, which the server's capabilities do not offer")
        return found[:MOST_BREACHES]

    def _asked(self, event: McpMessage, item: dict[str, Any], broken: bool) -> None:
        method = str(item["method"])
        event.method = plain(method, broken)
        params = item.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "tools/call":
            if isinstance(params.get("name"), str):
                event.tool = plain(params["name"], broken)
            if "arguments" in params:
                arguments = compact(params["arguments"])
                event.arguments = arguments[:TEXT_LIMIT]
                if len(arguments) > TEXT_LIMIT:
                    event.cut = True
                    self._cut(event.where)
        if event.form == "request" and event.id is not None:
            cursor = None if params.get("cursor") is None else compact(params["cursor"])
            waiting = Pending(event.where.at, event.method, event.tool, cursor)
            self._requests[event.direction].ask(event.id, waiting, event.where)
        elif event.direction == "s2c" and method.startswith("notifications/"):
            # notifications/tools/list_changed
            self._listings.changed(method.removeprefix("notifications/").removesuffix("_changed"), event.where)

    def _bounded(self, text: str, broken: bool, where: Where) -> tuple[str, bool]:
        kept, cut = bounded(text, broken)
        if cut:
            self._cut(where)
        return kept, cut

    def _cut(self, where: Where) -> None:
        self._losses.add(
            "string-cut",
            f"a message carries more than {TEXT_LIMIT} characters of text; the rest was not kept",
            where,
            ("data:mcp.message",),
        )

    def finish(self) -> None:
        """Count what was left open, once the whole transcript was read."""
        left = [*self._requests["c2s"].left()]
        for request in (*left, *self._requests["s2c"].left()):
            place = Where(self._file, request.at)
            self._losses.add("unanswered", "a request was never answered in the transcript", place, note=True)
        if self._requests["c2s"].seen and self._orphans:
            detail = "a response answers no request of the transcript"
            self._losses.add("orphan-response", detail, self._first_orphan, note=True, count=self._orphans)
        self._listings.finish(self._file, left)
