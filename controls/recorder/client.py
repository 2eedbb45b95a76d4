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

from controls.recorder.errors import RecorderError
from controls.recorder.probes import Probes

__all__ = ["drive"]

_PROTOCOL = "2025-06-18"
_LINE_LIMIT = 1 << 20


class _Session:
    def __init__(self, to_server: IO[bytes], from_server: IO[bytes], transcript: IO[str], seconds: float) -> None:
        self._to = to_server
        self._from = from_server
        self._transcript = transcript
        self._end = time.monotonic() + seconds
        self._buffer = bytearray()
        self._next = 0

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
            while True:
                line, found, rest = bytes(self._buffer).partition(b"\n")
                if found:
                    self._buffer = bytearray(rest)
                    yield line
                    continue
                left = self._end - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise RecorderError("the server did not answer in time")
                part = self._from.read1(65536)  # type: ignore[attr-defined]
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


def drive(
    to_server: IO[bytes],
    from_server: IO[bytes],
    transcript: Path,
    seconds: float = 30.0,
    probes: Probes | None = None,
) -> None:
    """Hold one session: initialize, list tools (all pages), prompts and resources, call every tool, close.

    Args:
        to_server: the server's standard input; closed at the end.
        from_server: its standard output.
        transcript: file the messages are written to.
        seconds: time for the whole session.
        probes: probes that the session has its part in: a ping after its start and one before its end.

    Raises:
        RecorderError: the server does not answer as an MCP server would.
    """
    with transcript.open("w", encoding="utf-8") as out:
        session = _Session(to_server, from_server, out, seconds)
        try:
            client = {"name": "recorder", "version": "0"}
            params = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}
            started = session.ask("initialize", params)
            session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            if probes is not None:
                session.ask("ping", message_id=probes.acts["before"].message_id)
            capabilities = started.get("result", {}).get("capabilities", {})
            tools: list[dict[str, Any]] = []
            for kind in ("tools", "prompts", "resources"):
                if kind not in capabilities:
                    continue
                cursor: dict[str, Any] = {}
                while True:
                    page = session.ask(f"{kind}/list", cursor).get("result", {})
                    if kind == "tools":
                        tools.extend(page.get("tools", []))
                    if not page.get("nextCursor"):
                        break
                    cursor = {"cursor": page["nextCursor"]}
            for tool in tools:
                arguments = _arguments(tool.get("inputSchema"))
                session.ask("tools/call", {"name": tool.get("name"), "arguments": arguments})
            if probes is not None:
                session.ask("ping", message_id=probes.acts["after"].message_id)
        except BrokenPipeError as error:
            raise RecorderError("the server went away") from error
        finally:
            to_server.close()
