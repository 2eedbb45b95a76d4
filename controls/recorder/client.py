"""A small MCP client over stdio that writes down every message.

One JSON object a line: ``{"t": epoch seconds, "dir": "c2s" or "s2c", "msg": message}``; ``raw`` holds the text of
a line that is no JSON.
"""

from __future__ import annotations

import json
import selectors
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from controls.recorder.arguments import arguments
from controls.recorder.errors import RecorderError
from controls.recorder.probes import Probes

__all__ = ["drive"]

_PROTOCOL = "2025-06-18"
_LINE_LIMIT = 1 << 20
_MOST_PAGES = 100
_PATIENCE = 15.0


class _NoAnswer(RecorderError):
    """One request was not answered in its time; the session may go on."""


class _Session:
    def __init__(
        self,
        to_server: IO[bytes],
        from_server: IO[bytes],
        transcript: IO[str],
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
        self._next = 0
        self.patient_until = self._end

    def attempt(self, method: str, params: dict[str, Any]) -> None:
        """Send a request whose answer may stay out: after a while the session goes on without it."""
        self.patient_until = time.monotonic() + _PATIENCE
        try:
            self.ask(method, params)
        except _NoAnswer:
            pass
        finally:
            self.patient_until = self._end

    def _note(self, direction: str, message: object, key: str = "msg") -> None:
        record = {"t": round(time.time(), 6), "dir": direction, key: message}
        self._transcript.write(json.dumps(record, ensure_ascii=True, separators=(",", ":")) + "\n")

    def send(self, message: dict[str, Any]) -> None:
        self._note("c2s", message)
        self._to.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
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
                if len(self._buffer) > _LINE_LIMIT:
                    raise RecorderError("the server sent a line of more than 1 MB")

    def ask(
        self, method: str, params: dict[str, Any] | None = None, *, message_id: str | None = None
    ) -> dict[str, Any]:
        """Send a request and return its response; requests of the server are refused, notifications noted."""
        self._next += 1
        wanted: str | int = message_id or self._next
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": wanted, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        for line in self._lines():
            try:
                answer = json.loads(line)
            except ValueError:
                self._note("s2c", line.decode("utf-8", "backslashreplace"), "raw")
                continue
            self._note("s2c", answer)
            if not isinstance(answer, dict):
                continue
            if answer.get("id") == wanted and "method" not in answer:
                return answer
            if "id" in answer and "method" in answer:
                error = {"code": -32601, "message": "method not found"}
                self.send({"jsonrpc": "2.0", "id": answer["id"], "error": error})
        raise RecorderError("the server sent no answer")


def _arguments(schema: object) -> dict[str, Any]:
    """Return arguments that satisfy a tool's simple input schema: every property gets a plain value."""
    values = {"string": "hello", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {
        name: values.get(str(one.get("type")) if isinstance(one, dict) else "", "hello")
        for name, one in properties.items()
    }


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
    for number in range(2):
        for tool in listed["tools"]:
            given = arguments(tool.get("inputSchema"), number)
            session.attempt("tools/call", {"name": tool.get("name"), "arguments": given})
    for prompt in listed["prompts"]:
        wanted = prompt.get("arguments")
        names = [one.get("name") for one in wanted if isinstance(one, dict)] if isinstance(wanted, list) else []
        session.attempt(
            "prompts/get", {"name": prompt.get("name"), "arguments": {str(name): "hello" for name in names}}
        )
    for resource in listed["resources"]:
        session.attempt("resources/read", {"uri": resource.get("uri")})
    if listed["tools"]:
        session.attempt("tools/call", {"name": 7, "arguments": "none"})


def drive(
    to_server: IO[bytes],
    from_server: IO[bytes],
    transcript: Path,
    seconds: float = 30.0,
    probes: Probes | None = None,
    *,
    thorough: bool = False,
) -> None:
    """Hold one session: initialize, list tools (all pages), prompts and resources, call every tool, close.

    Args:
        to_server: the server's standard input; closed at the end.
        from_server: its standard output.
        transcript: file the messages are written to.
        seconds: time for the whole session.
        probes: probes that the session has its part in: a ping after its start and one before its end.
        thorough: call every tool twice with arguments made from its schema, get prompts and read resources, and send
            one call that is wrong.

    Raises:
        RecorderError: the server does not answer as an MCP server would.
    """
    with transcript.open("w", encoding="utf-8") as out:
        session = _Session(to_server, from_server, out, seconds, probes.report if probes is not None else None)
        try:
            client = {"name": "recorder", "version": "0"}
            params = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}
            started = session.ask("initialize", params)
            session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            if probes is not None:
                session.ask("ping", message_id=probes.acts["before"].message_id)
            capabilities = started.get("result", {}).get("capabilities", {})
            listed: dict[str, list[dict[str, Any]]] = {"tools": [], "prompts": [], "resources": []}
            for kind, items in listed.items():
                if kind in capabilities:
                    items.extend(_pages(session, kind))
            if thorough:
                _thoroughly(session, listed)
            else:
                for tool in listed["tools"]:
                    given = _arguments(tool.get("inputSchema"))
                    session.ask("tools/call", {"name": tool.get("name"), "arguments": given})
            if probes is not None:
                session.ask("ping", message_id=probes.acts["after"].message_id)
        except BrokenPipeError as error:
            raise RecorderError("the server went away") from error
        finally:
            to_server.close()
