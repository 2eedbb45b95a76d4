"""A small MCP client over stdio of the standard library alone, for where the official SDK is not installed.

It asks a server the same things; what a server asks back is refused.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from controls.recorder.client.plan import Call, calls_of, prompt_arguments
from controls.recorder.client.steps import Status, Step
from controls.recorder.client.transcript import NOTHING, Transcript
from controls.recorder.client.wire import LINE_LIMIT, MOST_BYTES
from controls.recorder.errors import RecorderError
from controls.recorder.probes import Probes

__all__ = ["drive_plain"]

_PROTOCOL = "2025-06-18"
_MOST_PAGES = 100
_PATIENCE = 15.0


class _NoAnswer(RecorderError):
    """One request was not answered in its time; the session may go on."""


class _Session:
    def __init__(
        self,
        to_server: IO[bytes],
        from_server: IO[bytes],
        transcript: Transcript,
        seconds: float,
        ended: int | None = None,
    ) -> None:
        # strace and the launcher hold the server's output open, so its end is told by this descriptor.
        self._ended = ended
        self._to = to_server
        self._from = from_server
        self._transcript = transcript
        self._end = time.monotonic() + seconds
        self._buffer = bytearray()
        self._taken = 0
        self._next = 0
        self.steps: list[Step] = []
        self.patient_until = self._end

    def attempt(self, method: str, params: dict[str, Any], about: str) -> None:
        """Send a request whose answer may stay out: after a while the session goes on without it."""
        self.patient_until = time.monotonic() + _PATIENCE
        try:
            self.ask(method, params, about=about)
        except _NoAnswer as error:
            self.steps.append(Step(method, "no-answer", f"{about}: {error}"))
        finally:
            self.patient_until = self._end

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, separators=(",", ":")).encode()
        self._transcript.note("c2s", data)
        self._to.write(data + b"\n")
        self._to.flush()

    def _lines(self) -> Iterator[bytes]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._from, selectors.EVENT_READ)
            if self._ended is not None:
                selector.register(self._ended, selectors.EVENT_READ)
            while True:
                line, found, rest = bytes(self._buffer).partition(b"\n")
                if found:
                    self._buffer = bytearray(rest)
                    yield line
                    continue
                now = time.monotonic()
                left = min(self._end, self.patient_until) - now
                ready = {key.fileobj for key, _ in selector.select(left)} if left > 0 else set()
                if not ready:
                    late = now < self._end and self.patient_until < self._end
                    raise (_NoAnswer if late else RecorderError)("the server did not answer in time")
                part = self._from.read1(65536) if self._from in ready else b""  # type: ignore[attr-defined]
                if not part:
                    raise RecorderError("the server closed its output before it answered")
                self._buffer += part
                self._taken += len(part)
                if self._taken > MOST_BYTES:
                    raise RecorderError(f"the server sent more than {MOST_BYTES >> 20} MB")
                if len(self._buffer) > LINE_LIMIT:
                    raise RecorderError(f"the server sent a line of more than {LINE_LIMIT >> 20} MB")

    def ask(
        self, method: str, params: dict[str, Any] | None = None, *, message_id: str | None = None, about: str = ""
    ) -> dict[str, Any]:
        """Send a request and return its response; requests of the server are refused, notifications noted."""
        self._next += 1
        wanted: str | int = message_id or self._next
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": wanted, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        for line in self._lines():
            answer = self._transcript.note("s2c", line) if line.strip() else NOTHING
            if answer is NOTHING or not isinstance(answer, dict):
                continue
            if answer.get("id") == wanted and "method" not in answer:
                status: Status = "error" if answer.get("error") is not None else "answered"
                self.steps.append(Step(method, status, about))
                return answer
            if "id" in answer and "method" in answer:
                error = {"code": -32601, "message": "method not found"}
                self.send({"jsonrpc": "2.0", "id": answer["id"], "error": error})
        raise RecorderError("the server sent no answer")


def _pages(session: _Session, kind: str) -> Iterator[dict[str, Any]]:
    """Yield what a server lists of one kind, page by page, as long as the cursors are new."""
    params: dict[str, Any] = {}
    seen: set[str] = set()
    while True:
        page = session.ask(f"{kind}/list", params).get("result")
        if not isinstance(page, dict):
            return
        items = page.get(kind)
        yield from (one for one in (items if isinstance(items, list) else []) if isinstance(one, dict))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor or cursor in seen or len(seen) >= _MOST_PAGES:
            return
        seen.add(cursor)
        params = {"cursor": cursor}


def _thoroughly(session: _Session, listed: dict[str, list[dict[str, Any]]]) -> None:
    for prompt in listed["prompts"]:
        asked = {"name": prompt.get("name"), "arguments": prompt_arguments(prompt)}
        session.attempt("prompts/get", asked, str(prompt.get("name"))[:80])
    for resource in listed["resources"]:
        session.attempt("resources/read", {"uri": resource.get("uri")}, str(resource.get("uri"))[:80])
    if listed["tools"]:
        session.attempt("tools/call", {"name": 7, "arguments": "none"}, "malformed")


def drive_plain(
    to_server: IO[bytes],
    from_server: IO[bytes],
    transcript: Path,
    seconds: float = 30.0,
    probes: Probes | None = None,
    *,
    thorough: bool = False,
    calls: Sequence[Call] = (),
    tag: str = "",
) -> list[Step]:
    """Hold one session without the SDK; see ``controls.recorder.client.drive``."""
    with transcript.open("wb") as out:
        session = _Session(
            to_server, from_server, Transcript(out), seconds, probes.report if probes is not None else None
        )
        try:
            _hold(session, probes, thorough=thorough, calls=calls, tag=tag)
        except BrokenPipeError as error:
            if not thorough:
                raise RecorderError("the server went away") from error
            session.steps.append(Step("session", "closed", "the server went away"))
        except RecorderError as error:
            if not thorough:
                raise
            session.steps.append(Step("session", "closed", str(error)))
        finally:
            with contextlib.suppress(OSError):
                to_server.close()
    return session.steps


def _hold(session: _Session, probes: Probes | None, *, thorough: bool, calls: Sequence[Call], tag: str) -> None:
    client = {"name": "recorder", "version": "0"}
    params = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}
    started = session.ask("initialize", params)
    session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    if probes is not None:
        session.ask("ping", message_id=probes.acts["before"].message_id)
    result = started.get("result")
    capabilities = result.get("capabilities") if isinstance(result, dict) else None
    listed: dict[str, list[dict[str, Any]]] = {"tools": [], "prompts": [], "resources": []}
    for kind, items in listed.items():
        if isinstance(capabilities, dict) and kind in capabilities:
            items.extend(_pages(session, kind))
    for call in calls_of(listed["tools"], thorough=thorough, given=calls, tag=tag):
        time.sleep(call.pause)
        asked = {"name": call.tool, "arguments": call.arguments}
        if thorough:
            session.attempt("tools/call", asked, str(call.tool)[:80])
        else:
            session.ask("tools/call", asked, about=str(call.tool)[:80])
    if thorough:
        _thoroughly(session, listed)
        if listed["tools"]:
            list(_pages(session, "tools"))
    if probes is not None:
        session.ask("ping", message_id=probes.acts["after"].message_id)
