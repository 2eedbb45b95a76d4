"""A session held by the official ``mcp`` SDK over any wire, which ends in a recorded status a step, whatever is said.

The SDK speaks: it negotiates, numbers, validates and answers what the server asks back. What it cannot understand is
taken from the wire, so a server that breaks the protocol is still called and still recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from controls.recorder.arguments import arguments
from controls.recorder.canaries import PROJECT
from controls.recorder.client.plan import Call, calls_of, prompt_arguments
from controls.recorder.client.steps import Status, Step
from controls.recorder.client.wire import Answers
from controls.recorder.probes import Probes

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp import ClientSession, types
    from mcp.shared.message import SessionMessage

__all__ = ["Wire", "hold", "sdk_version"]

_PATIENCE = 15.0
_MOST_PAGES = 100
_VALIDATION = 0.5
"""How long the SDK may think about an answer that lies there, in seconds."""
_GRACE = 3.0


class Wire(Protocol):
    """What carries messages between the SDK and a server, and writes them down."""

    @property
    def over(self) -> asyncio.Future[tuple[str, str]]:
        """Done once nothing more comes, with a status and the reason."""
        ...

    @property
    def answers(self) -> Answers:
        """Who waits for what."""
        ...

    async def pump(self, into: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Hand what the server says to the SDK."""
        ...

    async def carry(self, out: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send what the SDK says."""
        ...

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message of our own."""
        ...

    async def drain(self, seconds: float) -> bool:
        """Close the server's input and take what it still says; return whether it ended in time."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


def sdk_version() -> str | None:
    """Return name and version of the SDK, such as ``mcp 1.30.0``, None where it is not installed."""
    import importlib.metadata

    try:
        return f"mcp {importlib.metadata.version('mcp')}"
    except importlib.metadata.PackageNotFoundError:
        return None


class _Held:
    """A session under way."""

    def __init__(self, wire: Wire, session: ClientSession, end: float) -> None:
        self._wire = wire
        self._session = session
        self._end = end
        self.steps: list[Step] = []

    def _left(self, patience: float) -> float:
        return max(0.0, min(self._end - time.monotonic(), patience))

    def note(self, name: str, status: Status, detail: str = "") -> None:
        self.steps.append(Step(name, status, detail))

    async def ask(
        self, method: str, params: dict[str, Any] | None, about: str = "", patience: float = math.inf
    ) -> dict[str, Any] | None:
        """Ask through the SDK; return the answer's ``result`` as it came, None without one."""
        try:
            request, result = _typed(method, params)
        except ValueError:  # the SDK's types refuse what this server offered
            return await self.ask_raw(method, params, f"own-{len(self.steps)}", about, patience)
        answer = self._wire.answers.expect_next()
        task = asyncio.ensure_future(
            self._session.initialize() if method == "initialize" else self._session.send_request(request, result)
        )
        return await self._outcome(method, about, answer, task, patience)

    async def ask_raw(
        self, method: str, params: object, identity: str, about: str = "", patience: float = math.inf
    ) -> dict[str, Any] | None:
        """Ask what the SDK has no words for."""
        answer = self._wire.answers.expect(identity)
        message = {"jsonrpc": "2.0", "id": identity, "method": method}
        sending = asyncio.ensure_future(self._wire.send(message if params is None else {**message, "params": params}))
        return await self._outcome(method, about, answer, sending, patience, raw=True)

    async def _outcome(
        self,
        method: str,
        about: str,
        answer: asyncio.Future[dict[str, Any]],
        task: asyncio.Future[Any],
        patience: float,
        *,
        raw: bool = False,
    ) -> dict[str, Any] | None:
        over = self._wire.over
        either: set[asyncio.Future[Any]] = {answer, over}
        await asyncio.wait(either, timeout=self._left(patience), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done() and over.done():
            await asyncio.wait({answer}, timeout=0.2)  # what lay in the queue is being read
        if answer.done() and not raw:
            await asyncio.wait({task}, timeout=_VALIDATION)
        trouble = _trouble(task) if task.done() else "the SDK made nothing of it"
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not answer.done():
            status, why = over.result() if over.done() else ("no-answer", "the server did not answer in time")
            self.note(method, status, f"{about}: {why}" if about else why)  # type: ignore[arg-type]
            return None
        found = answer.result()
        if found.get("error") is not None:
            self.note(method, "error", about)
        elif not isinstance(found.get("result"), dict) or (trouble and not raw):
            self.note(method, "bad-answer", f"{about}: {trouble}" if about and trouble else about or trouble)
        else:
            self.note(method, "answered", about)
        return found["result"] if isinstance(found.get("result"), dict) else {}

    async def pages(self, kind: str, patience: float) -> list[dict[str, Any]]:
        """Return what the server lists of one kind, page by page, as long as the cursors are new."""
        params: dict[str, Any] | None = None
        items: list[dict[str, Any]] = []
        seen: set[str] = set()
        while True:
            page = await self.ask(f"{kind}/list", params, "" if params is None else f"page {len(seen) + 1}", patience)
            found = (page or {}).get("resourceTemplates" if kind == "resources/templates" else kind)
            items += [one for one in (found if isinstance(found, list) else []) if isinstance(one, dict)]
            cursor = (page or {}).get("nextCursor")
            if not isinstance(cursor, str) or not cursor or cursor in seen or len(seen) >= _MOST_PAGES:
                return items
            seen.add(cursor)
            params = {"cursor": cursor}

    @property
    def lost(self) -> bool:
        """Whether the server is gone, or the time is up."""
        return self._wire.over.done() or time.monotonic() >= self._end


def _trouble(task: asyncio.Future[Any]) -> str:
    """Return why the SDK did not take an answer, ``""`` when it did."""
    error = None if task.cancelled() else task.exception()
    # McpError, ValidationError, RuntimeError (protocol version): the first line says it.
    return f"{type(error).__name__}: {error}".splitlines()[0][:300] if error is not None else ""


def _typed(method: str, params: dict[str, Any] | None) -> tuple[types.ClientRequest, type[Any]]:
    """Return a request and its answer's type in the SDK's own words.

    Raises:
        ValueError: it has no such words.
    """
    from mcp import types

    results: dict[str, type[Any]] = {
        "initialize": types.InitializeResult,
        "tools/list": types.ListToolsResult,
        "tools/call": types.CallToolResult,
        "prompts/list": types.ListPromptsResult,
        "prompts/get": types.GetPromptResult,
        "resources/list": types.ListResourcesResult,
        "resources/templates/list": types.ListResourceTemplatesResult,
        "resources/read": types.ReadResourceResult,
    }
    if method == "initialize":
        return types.ClientRequest(types.PingRequest()), results[method]  # the SDK makes its own
    request = {"method": method} if params is None else {"method": method, "params": params}
    return types.ClientRequest.model_validate(request), results[method]


def _callbacks(tag: str) -> dict[str, Any]:
    """Return what answers a server that asks back."""
    from mcp import types

    async def roots(context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=f"file://{PROJECT}", name="project")])  # type: ignore[arg-type]

    async def sampled(context: object, params: object) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="A short answer.")
        return types.CreateMessageResult(role="assistant", content=text, model="recorder", stopReason="endTurn")

    async def elicited(context: object, params: object) -> types.ElicitResult:
        schema = getattr(params, "requestedSchema", None)
        if schema is None:  # a page to be opened by a person
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=arguments(schema, 0, tag=tag))

    return {"list_roots_callback": roots, "sampling_callback": sampled, "elicitation_callback": elicited}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the SDK from logging what a hostile server made it meet."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.asynccontextmanager
async def _session(wire: Wire, tag: str) -> AsyncIterator[ClientSession]:
    import anyio
    from mcp import ClientSession, types

    into, read = anyio.create_memory_object_stream["SessionMessage | Exception"](math.inf)
    write, out = anyio.create_memory_object_stream["SessionMessage"](math.inf)
    client = types.Implementation(name="recorder", version="0")
    tasks = [asyncio.ensure_future(wire.pump(into)), asyncio.ensure_future(wire.carry(out))]
    try:
        async with ClientSession(read, write, client_info=client, **_callbacks(tag)) as session:
            yield session
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for stream in (into, read, write, out):
            stream.close()


async def hold(
    wire: Wire,
    seconds: float,
    *,
    thorough: bool = False,
    given: Sequence[Call] = (),
    tag: str = "",
    probes: Probes | None = None,
) -> list[Step]:
    """Hold one session from initialize to shutdown.

    Args:
        wire: carries it.
        seconds: time for the whole session.
        thorough: see ``controls.recorder.client.drive``.
        given: calls to make instead of those made from the schemas.
        tag: the canary tag of the run.
        probes: probes that the session has its part in.

    Returns:
        What became of every step; it never raises for what a server does.
    """
    end = time.monotonic() + seconds
    with _quiet():
        try:
            async with _session(wire, tag) as session:
                held = _Held(wire, session, end)
                await _talk(held, wire, seconds, thorough=thorough, given=given, tag=tag, probes=probes)
                ended = await wire.drain(min(_GRACE, max(0.2, seconds / 4)))
                held.note("shutdown", "done" if ended else "no-answer", "" if ended else "the server stays")
        finally:
            wire.close()
    return held.steps


async def _talk(
    held: _Held,
    wire: Wire,
    seconds: float,
    *,
    thorough: bool,
    given: Sequence[Call],
    tag: str,
    probes: Probes | None,
) -> None:
    patience = max(_PATIENCE, seconds / 6) if thorough else math.inf
    started = await held.ask("initialize", {})
    if started is None:
        return
    if held.steps[-1].status == "bad-answer":  # the SDK does not go on, but a server may
        await wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    if probes is not None:
        await held.ask_raw("ping", None, probes.acts["before"].message_id)
    capabilities = started.get("capabilities")
    listed: dict[str, list[dict[str, Any]]] = {"tools": [], "prompts": [], "resources": []}
    for kind, items in listed.items():
        if isinstance(capabilities, dict) and kind in capabilities:
            items += await held.pages(kind, patience)
    if listed["resources"] and thorough and not held.lost:
        await held.pages("resources/templates", patience)
    calls = calls_of(listed["tools"], thorough=thorough, given=given, tag=tag)
    for number, call in enumerate(calls):
        if held.lost:
            status, why = wire.over.result() if wire.over.done() else ("no-answer", "the time is up")
            held.note("tools/call", status, f"{len(calls) - number} calls not made: {why}")  # type: ignore[arg-type]
            return
        if call.pause:
            await asyncio.sleep(call.pause)
        await held.ask("tools/call", {"name": call.tool, "arguments": call.arguments}, str(call.tool)[:80], patience)
    if thorough:
        await _rest(held, listed, patience)
        if listed["tools"] and not held.lost:
            # Once it was approved, a server may say something else.
            await held.pages("tools", patience)
    if probes is not None and not held.lost:
        await held.ask_raw("ping", None, probes.acts["after"].message_id)


async def _rest(held: _Held, listed: dict[str, list[dict[str, Any]]], patience: float) -> None:
    """Get the prompts, read the resources, and send one call that is wrong."""
    for prompt in listed["prompts"]:
        if not held.lost:
            asked = {"name": prompt.get("name"), "arguments": prompt_arguments(prompt)}
            await held.ask("prompts/get", asked, str(prompt.get("name"))[:80], patience)
    for resource in listed["resources"]:
        if not held.lost:
            await held.ask("resources/read", {"uri": resource.get("uri")}, str(resource.get("uri"))[:80], patience)
    if listed["tools"] and not held.lost:
        await held.ask_raw("tools/call", {"name": 7, "arguments": "none"}, "malformed-1", "malformed", patience)
