"""One MCP session: requests paired with responses, listings followed page by page."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from mcpdetect.ingest.mcp_conformance import Outputs, tool_breaches, tool_hints
from mcpdetect.ingest.mcp_json import compact, digest_of, plain, readings, texts_of
from mcpdetect.model.mcp import McpText, McpTool
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

__all__ = ["MAX_KNOWN", "MAX_PENDING", "Listings", "Losses", "Pending", "Requests"]

MAX_PENDING = 65_536
"""Most requests waiting for their response; beyond it the oldest is given up and counted."""

MAX_KNOWN = 100_000
"""Most tools (prompts, resources) whose last definition is remembered, and most cursors of one listing."""

Part = Literal["tool", "instructions", "prompt", "resource"]

# Method -> the key of its list, what the things are, the key that identifies one (MCP 2025-06-18, "Server Features").
_LISTS: dict[str, tuple[str, Part, str]] = {
    "tools/list": ("tools", "tool", "name"),
    "prompts/list": ("prompts", "prompt", "name"),
    "resources/list": ("resources", "resource", "uri"),
    "resources/templates/list": ("resourceTemplates", "resource", "uriTemplate"),
}


class Losses:
    """Losses of one evidence file by their word, each counted, with its first place."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Loss] = {}

    def add(
        self,
        what: str,
        detail: str,
        where: Where | None,
        touches: tuple[str, ...] = (),
        *,
        note: bool = False,
        count: int = 1,
    ) -> None:
        """Count one loss; ``detail`` is one of a few fixed sentences, never evidence."""
        known = self._known.get((what, detail))
        if known is None:
            self._known[what, detail] = Loss(what, detail, count, where, list(touches), note)
        else:
            known.count += count

    def all(self) -> list[Loss]:
        """Return them in the order first met."""
        return list(self._known.values())


@dataclass(slots=True)
class Pending:
    """A request that waits for its response: its place, method, tool and cursor."""

    at: int
    method: str
    tool: str | None = None
    cursor: str | None = None


class Requests:
    """Requests of one direction by id."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._waiting: OrderedDict[str, list[Pending]] = OrderedDict()
        self._count = 0
        self.seen = 0

    def ask(self, key: str, request: Pending, where: Where) -> None:
        """Remember a request."""
        self.seen += 1
        same = self._waiting.setdefault(key, [])
        if same:
            self._losses.add(
                "duplicate-id",
                "a request repeats the id of one still unanswered, so pairing is by order",
                where,
                note=True,
            )
        same.append(request)
        self._count += 1
        if self._count > MAX_PENDING:
            oldest = next(iter(self._waiting))
            self._drop(oldest)
            self._losses.add(
                "overflow",
                f"more than {MAX_PENDING} unanswered requests: the oldest are no longer paired",
                where,
                note=True,
            )

    def waits(self, key: str) -> bool:
        """Return whether a request with this id waits for its response."""
        return key in self._waiting

    def answer(self, key: str, result_keys: frozenset[str]) -> tuple[Pending | None, bool]:
        """Return the request that a response answers, None where there is none, and whether several could be meant."""
        same = self._waiting.get(key)
        if not same:
            return None, False
        ambiguous = len(same) > 1
        at = 0
        if ambiguous:  # a list answers a request for a list
            at = next((n for n, r in enumerate(same) if r.method in _LISTS and _LISTS[r.method][0] in result_keys), 0)
        return self._drop(key, at), ambiguous

    def _drop(self, key: str, at: int = 0) -> Pending:
        same = self._waiting[key]
        request = same.pop(at)
        self._count -= 1
        if not same:
            del self._waiting[key]
        return request

    def left(self) -> Iterator[Pending]:
        """Yield the requests that were never answered."""
        for same in self._waiting.values():
            yield from same


@dataclass(slots=True)
class _Listing:
    """How far the listing of one method has come."""

    answered: int = 0
    open_at: Where | None = None
    stale_at: Where | None = None
    cursors: set[str] = field(default_factory=set)


class Listings:
    """What a server lists: every definition once, and whether each listing came to its end.

    Args:
        losses: where losses are counted.
        outputs: what remembers the output schemas.
    """

    def __init__(self, losses: Losses, outputs: Outputs | None = None) -> None:
        self._losses = losses
        self._outputs = outputs or Outputs()
        self._known: dict[tuple[Part, str, int], tuple[str, int]] = {}
        self._by_method = {method: _Listing() for method in _LISTS}
        self._offered: set[str] = set()
        self.distinct = 0

    def listed(self, method: str) -> bool:
        """Return whether at least one page of this listing was seen."""
        return self._by_method[method].answered > 0

    def refused(self, method: str | None, *, answered: bool) -> bool:
        """Return whether a listing that the server's capabilities offer came back as an error."""
        return not answered and method in self._offered

    def unoffered(self, method: str | None) -> bool:
        """Return whether a listing was answered that the server's capabilities do not offer."""
        return method in _LISTS and method != "resources/templates/list" and method not in self._offered

    def changed(self, method: str, where: Where) -> None:
        """Note a ``list_changed`` notification: what is listed from now on is unknown until it is asked again."""
        listing = self._by_method.get(method)
        if listing is not None:
            listing.stale_at = where

    def response(
        self, result: dict[str, Any], request: Pending | None, guess: bool, where: Where, t_ns: int | None, broken: bool
    ) -> Iterator[McpTool]:
        """Yield what a result newly defines.

        Args:
            result: the result object.
            request: the request that it answers, where known.
            guess: judge by the keys of the result (no request was recorded, or several could be meant).
            where: place of the response.
            t_ns: its time.
            broken: the line was not UTF-8.
        """
        method = request.method if request is not None else None
        if method == "initialize" or (guess and "protocolVersion" in result and "capabilities" in result):
            yield from self._initialize(result, where, t_ns, broken)
        for name, (key, part, identity) in _LISTS.items():
            if key in result and (method == name or guess):
                yield from self._page(name, result, part, identity, request, where, t_ns, broken)

    def _initialize(self, result: dict[str, Any], where: Where, t_ns: int | None, broken: bool) -> Iterator[McpTool]:
        for capabilities in readings(result, "capabilities"):
            if isinstance(capabilities, dict):
                self._offered.update(
                    f"{name}/list" for name in ("tools", "prompts", "resources") if name in capabilities
                )
        info = result.get("serverInfo")
        name = info.get("name") if isinstance(info, dict) else None
        if "instructions" in result or isinstance(info, dict):
            yield from self._define(
                result,
                "instructions",
                name if isinstance(name, str) else "",
                ("instructions", "", 0),
                where,
                t_ns,
                broken,
            )

    def _page(
        self,
        method: str,
        result: dict[str, Any],
        part: Part,
        identity: str,
        request: Pending | None,
        where: Where,
        t_ns: int | None,
        broken: bool,
    ) -> Iterator[McpTool]:
        self._turn(method, result, request, where)
        times: dict[str, int] = {}
        for items in readings(result, _LISTS[method][0]):
            if not isinstance(items, list):
                self._losses.add("odd-listing", "a listing is no list", where, ("mcp.tool",))
                continue
            for item in items:
                named = item.get(identity) if isinstance(item, dict) else None
                called = item.get("name", named) if isinstance(item, dict) else None
                key = named if isinstance(named, str) else ""
                times[key] = times.get(key, 0) + 1
                yield from self._define(
                    item, part, called if isinstance(called, str) else key, (part, key, times[key]), where, t_ns, broken
                )

    def _turn(self, method: str, result: dict[str, Any], request: Pending | None, where: Where) -> None:
        listing = self._by_method[method]
        listing.answered += 1
        listing.stale_at = None
        if request is not None and request.cursor is None:
            listing.cursors.clear()
        cursor = result.get("nextCursor")
        if cursor is None or cursor == "":
            listing.open_at = None
            listing.cursors.clear()
            return
        listing.open_at = where
        written = compact(cursor)
        if written in listing.cursors or (request is not None and request.cursor == written):
            self._losses.add(
                "cursor-stuck", f"the cursor of {method} does not advance: the listing cannot end", where, note=True
            )
        elif len(listing.cursors) < MAX_KNOWN:
            listing.cursors.add(written)

    def _define(
        self,
        item: object,
        part: Part,
        name: str,
        key: tuple[Part, str, int],
        where: Where,
        t_ns: int | None,
        broken: bool,
    ) -> Iterator[McpTool]:
        digest = digest_of(item)
        before, revision = self._known.get(key, ("", 0))
        if before == digest:
            return
        if revision or len(self._known) < MAX_KNOWN:
            self._known[key] = (digest, revision + 1)
        else:
            self._losses.add(
                "overflow",
                f"more than {MAX_KNOWN} definitions: later ones are judged each time, revisions not counted",
                where,
                note=True,
            )
        self.distinct += 1
        texts: list[McpText] = texts_of(item, broken)
        tool = McpTool(
            where, t_ns, name=plain(name, broken), texts=texts, digest=digest, revision=revision + 1, part=part
        )
        if part == "tool":
            self._outputs.define(item)
            tool.hints = tool_hints(item) or None
            tool.breaches = [plain(breach, broken) for breach in tool_breaches(item)] or None
        yield tool

    def finish(self, file: str, unanswered: list[Pending]) -> None:
        """Count what the listings left open, once the whole transcript was read."""
        for method, listing in self._by_method.items():
            if listing.open_at is not None:
                self._losses.add(
                    "listing-incomplete",
                    f"{method} announced more pages that were never read",
                    listing.open_at,
                    ("mcp.tool",),
                )
            if listing.stale_at is not None and listing.answered:
                self._losses.add(
                    "listing-stale",
                    f"the server said that {method} changed, and it was not asked again",
                    listing.stale_at,
                    ("mcp.tool",),
                )
            if method in self._offered and not listing.answered:
                self._losses.add(
                    "not-listed",
                    f"the server offers {method}, which was never asked or never answered",
                    None,
                    ("mcp.tool",) if method == "tools/list" else (),
                    note=method != "tools/list",
                )
        for request in unanswered:
            if request.method in _LISTS:
                self._losses.add(
                    "listing-incomplete",
                    f"a {request.method} was never answered",
                    Where(file, request.at),
                    ("mcp.tool",),
                )
