"""MCP over streamable HTTP: in JSON and in event streams, letter for letter, from inside the cell."""

import json
import os
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from controls.catalog import Control, Variant
from controls.recorder.client import Step, drive_http
from controls.recorder.errors import RecorderError
from controls.recorder.record import record
from controls.recorder.tools import missing
from mcpdetect.ingest.mcp import McpTranscript

PROBLEM = missing(["gcc"])

SERVER = r"""
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
TOOL = {"name": "one", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.reply(405)
    def do_DELETE(self): self.reply(200)
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
        if identity is None or method is None:
            return self.reply(202)
        def answer(result): return json.dumps({"jsonrpc": "2.0", "id": identity, "result": result})
        if method == "initialize":
            found = answer({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "s", "version": "1"}})
            return self.reply(200, found.encode(), mcp_session_id="s1")
        if method == "tools/list":
            return self.reply(200, answer({"tools": [TOOL]}).encode())
        if method == "tools/call" and params.get("arguments", {}) != "none":
            params = {"level": "info", "data": 1}
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
            first, second = answer({"content": []}).split(",", 1)
            body = f": hello\n\ndata: {note}\n\nevent: message\r\ndata: {first},\r\ndata: {second}\r\n\r\n"
            return self.reply(200, body.encode(), "text/event-stream")
        return self.reply(400, b"what is that?", "text/plain")
"""
RUN = "ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n"


@pytest.fixture
def port() -> Iterator[int]:
    scope: dict[str, Any] = {}
    exec(SERVER, scope)  # noqa: S102
    handler: type[BaseHTTPRequestHandler] = scope["Handler"]
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.skipif(PROBLEM is not None, reason=f"cannot enter a namespace here: {PROBLEM}")
def test_a_session_over_http_is_kept_letter_for_letter(tmp_path: Path, port: int) -> None:
    path = tmp_path / "mcp.jsonl"
    steps = drive_http(os.getpid(), f"http://127.0.0.1:{port}/mcp", path, 20.0, thorough=True)
    assert steps == [
        Step("initialize", "answered"),
        Step("tools/list", "answered"),
        Step("tools/call", "answered", "one"),
        Step("tools/call", "answered", "one"),
        Step("tools/call", "error", "malformed"),
        Step("tools/list", "answered"),
        Step("shutdown", "done"),
    ]
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    heard = [line.get("msg", line.get("raw")) for line in lines if line["dir"] == "s2c"]
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
    called: list[dict[str, Any]] = [{"jsonrpc": "2.0", "id": number, "result": {"content": []}} for number in (2, 3)]
    listed = {"jsonrpc": "2.0", "id": 4, "result": heard[1]["result"]}
    assert heard[2:] == [note, called[0], note, called[1], "what is that?", listed]
    assert [line["msg"]["method"] for line in lines if line["dir"] == "c2s"] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "tools/call",
        "tools/call",
        "tools/list",
    ]
    assert b'"msg":{"jsonrpc": "2.0",  "id": 2' in path.read_bytes()
    assert sum(event.kind == "mcp.message" for event in McpTranscript(path).events()) == len(lines)


@pytest.mark.skipif(PROBLEM is not None, reason=f"cannot enter a namespace here: {PROBLEM}")
def test_a_server_that_does_not_listen_is_an_error_or_a_step(tmp_path: Path) -> None:
    url = "http://127.0.0.1:1/mcp"
    with pytest.raises(RecorderError, match="the server did not listen in time"):
        drive_http(os.getpid(), url, tmp_path / "mcp.jsonl", 0.1)
    steps = drive_http(os.getpid(), url, tmp_path / "mcp.jsonl", 0.1, thorough=True)
    assert steps == [Step("listen", "no-answer", "the server did not listen in time")]


@pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")
def test_a_server_over_http_is_recorded_in_the_cell(tmp_path: Path) -> None:
    folder = tmp_path / "made/up"
    folder.mkdir(parents=True)
    (folder / "server.py").write_text(SERVER + RUN)
    variant = Variant(
        name="http",
        truth="silent",
        why="made up",
        run=("/usr/bin/python3", "-I", "-S", "{control}/server.py", "8123"),
        axes={"runtime": "python"},
        expect={},
        mcp=True,
        url="http://127.0.0.1:8123/mcp",
        calls=({"tool": "one", "arguments": {"city": "Rome"}, "pause": 0.0},),
    )
    bundle = record(Control("made/up", folder, "nothing"), variant, tmp_path / "out", probe=True)
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert [(one["name"], one["status"]) for one in manifest["run"]["session"]] == [
        ("initialize", "answered"),
        ("ping", "error"),
        ("tools/list", "answered"),
        ("tools/call", "answered"),
        ("ping", "error"),
        ("shutdown", "done"),
    ]
    entry = next(one for one in manifest["evidence"] if one["channel"] == "mcp")
    assert (entry["scope"], entry["tool"][:6]) == ("HTTP at http://127.0.0.1:8123/mcp", "mcp 1.")
    assert [one["phase"] for one in manifest["probes"]] == ["before", "after"]
