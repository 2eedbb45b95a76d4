"""The MCP client over stdio: the official SDK and the client of our own, with servers good, odd and hostile."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controls.recorder import client
from controls.recorder.client import Call, Step, drive, driver
from controls.recorder.client import wire as wire_module
from controls.recorder.client.plan import calls_of
from controls.recorder.errors import RecorderError

PLANTED = Path(__file__).parents[2] / "controls/planted/mcp/exfil-instruction/server.py"

SERVER = """
import json, sys
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def answer(identity, result):
    say(id=identity, result=result)
STARTED = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "1"}, "capabilities": {"tools": {}}}
TOOL = {"name": "one", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
def messages():
    for line in sys.stdin:
        yield json.loads(line)
def usual(message, tools=(TOOL,)):
    method, identity = message.get("method"), message.get("id")
    if method == "initialize":
        answer(identity, STARTED)
    elif method == "tools/list":
        answer(identity, {"tools": list(tools)})
    elif method == "tools/call" and isinstance(message["params"].get("name"), str):
        answer(identity, {"content": [{"type": "text", "text": "done"}]})
    elif method is not None and identity is not None:
        say(id=identity, error={"code": -32602, "message": "no"})
"""
Held = Callable[..., tuple[list[Step], list[dict[str, Any]]]]


@pytest.fixture(params=["sdk", "own"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "own":
        monkeypatch.setattr(client, "sdk_version", lambda: None)
    return str(request.param)


@pytest.fixture
def held(tmp_path: Path) -> Held:
    def run(program: str, seconds: float = 10.0, **options: Any) -> tuple[list[Step], list[dict[str, Any]]]:
        with subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SERVER + program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            try:
                steps = drive(server.stdin, server.stdout, tmp_path / "mcp.jsonl", seconds, **options)
            finally:
                server.kill()
        return steps, transcript(tmp_path)

    return run


def transcript(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "mcp.jsonl").read_bytes().splitlines()]


def test_the_sdk_holds_sessions_here() -> None:
    assert driver().startswith("mcp 1.")


def test_a_session_calls_every_tool_and_writes_every_message(held: Held, way: str) -> None:
    steps, lines = held("for message in messages(): usual(message)")
    assert [(step.name, step.status, step.detail) for step in steps][:3] == [
        ("initialize", "answered", ""),
        ("tools/list", "answered", ""),
        ("tools/call", "answered", "one"),
    ]
    assert [(line["dir"], line["msg"].get("method")) for line in lines] == [
        ("c2s", "initialize"),
        ("s2c", None),
        ("c2s", "notifications/initialized"),
        ("c2s", "tools/list"),
        ("s2c", None),
        ("c2s", "tools/call"),
        ("s2c", None),
    ]
    assert lines[5]["msg"]["params"] == {"name": "one", "arguments": {"city": "hello"}}
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)


def test_a_thorough_session_calls_twice_reads_and_sends_one_wrong_call(held: Held, way: str) -> None:
    program = """
STARTED["capabilities"] = {"tools": {}, "prompts": {}, "resources": {}}
for message in messages():
    method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "tools/list":
        page = params.get("cursor")
        tools = [{"name": "close_it", "inputSchema": {}}] if page is None else [TOOL]
        answer(identity, {"tools": tools, "nextCursor": "2"} if page is None else {"tools": tools})
    elif method == "prompts/list":
        answer(identity, {"prompts": [{"name": "p", "arguments": [{"name": "x"}]}]})
    elif method == "resources/list":
        answer(identity, {"resources": [{"uri": "file:///a", "name": "a"}]})
    elif method == "resources/templates/list":
        answer(identity, {"resourceTemplates": []})
    elif method == "prompts/get":
        answer(identity, {"messages": []})
    elif method == "resources/read":
        answer(identity, {"contents": [{"uri": "file:///a", "text": "a"}]})
    else:
        usual(message)
"""
    steps, lines = held(program, thorough=True, tag="0123")
    asked = [(step.name, step.status, step.detail) for step in steps if step.name != "resources/templates/list"]
    assert [one for one in asked if one[0] != "shutdown"] == [
        ("initialize", "answered", ""),
        ("tools/list", "answered", ""),
        ("tools/list", "answered", "page 2" if way == "sdk" else ""),
        ("prompts/list", "answered", ""),
        ("resources/list", "answered", ""),
        ("tools/call", "answered", "one"),
        ("tools/call", "answered", "close_it"),
        ("tools/call", "answered", "one"),
        ("tools/call", "answered", "close_it"),
        ("prompts/get", "answered", "p"),
        ("resources/read", "answered", "file:///a"),
        ("tools/call", "error", "malformed"),
        ("tools/list", "answered", ""),
        ("tools/list", "answered", "page 2" if way == "sdk" else ""),
    ]
    calls = [line["msg"]["params"] for line in lines if line["msg"].get("method") == "tools/call"]
    assert calls == [
        {"name": "one", "arguments": {"city": "Paris"}},
        {"name": "close_it", "arguments": {}},
        {"name": "one", "arguments": {"city": "Paris"}},
        {"name": "close_it", "arguments": {}},
        {"name": 7, "arguments": "none"},
    ]


def test_what_was_said_is_kept_letter_for_letter(held: Held, way: str, tmp_path: Path) -> None:
    text = (
        '{ "id":%s,"jsonrpc":"2.0",  "result": {"capabilities":{}, "capabilities":{}, "protocolVersion":"2025-06-18",'
    )
    text += '"serverInfo":{"name":"\\\\u00e9","version":"1.0"}, "x": 1.00} }'
    program = f"""
message = next(messages())
sys.stdout.buffer.write(b"starting \\xff up\\n" + b"\\n")
print('{text}' % message["id"], flush=True)
next(messages(), None)
"""
    held(program)
    lines = (tmp_path / "mcp.jsonl").read_bytes().splitlines()
    identity = b"0" if way == "sdk" else b"1"
    assert lines[1].partition(b'"raw":')[2] == b'"starting \\udcff up"}'
    wanted = text.replace("\\\\", "\\").encode() % identity
    assert lines[2].partition(b'"msg":')[2] == wanted + b"}"


def test_a_server_that_asks_back_is_answered(held: Held) -> None:
    program = """
for message in messages():
    if message.get("method") == "tools/call":
        call = message["id"]
        say(id="r", method="roots/list")
        say(id="s", method="sampling/createMessage", params={"maxTokens": 5, "messages": [
            {"role": "user", "content": {"type": "text", "text": "hi"}}]})
        say(id="e", method="elicitation/create", params={"message": "who?", "requestedSchema": {
            "type": "object", "properties": {"email": {"type": "string"}}}})
        say(id="x", method="no/such/thing")
        got = [next(messages()) for _ in range(4)]
        answer(call, {"content": []})
    else:
        usual(message)
"""
    _, lines = held(program)
    got = {one["msg"]["id"]: one["msg"] for one in lines if one["dir"] == "c2s" and "method" not in one["msg"]}
    assert got == {
        "r": {
            "jsonrpc": "2.0",
            "id": "r",
            "result": {"roots": [{"uri": "file:///home/dev/project", "name": "project"}]},
        },
        "s": {
            "jsonrpc": "2.0",
            "id": "s",
            "result": {
                "role": "assistant",
                "content": {"type": "text", "text": "A short answer."},
                "model": "recorder",
                "stopReason": "endTurn",
            },
        },
        "e": {"jsonrpc": "2.0", "id": "e", "result": {"action": "accept", "content": {"email": "dev@example.com"}}},
        "x": {
            "jsonrpc": "2.0",
            "id": "x",
            "error": {"code": -32602, "message": "Invalid request parameters", "data": ""},
        },
    }


def test_our_own_client_refuses_what_is_asked_back(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "sdk_version", lambda: None)
    program = """
message = next(messages())
say(id=7, method="roots/list")
next(messages())
answer(message["id"], {})
"""
    _, lines = held(program)
    assert lines[2]["msg"] == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "method not found"}}


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("next(messages())", "the server closed its output before it answered"),
        ("pass", r"the server (closed its output before it answered|went away)"),
        ("next(messages()); print('x' * 9_000_000, flush=True)", "the server sent a line of more than 7 MB"),
        ("import os, time; os.close(0); time.sleep(9)", r"the server (went away|closed its output|did not answer)"),
        ("import os, time; os.close(1); time.sleep(9)", "the server closed its output before it answered"),
        ("import time; time.sleep(9)", "the server did not answer in time"),
        ("while True: print('y' * 1000)", "the server sent more than 64 MB"),
    ],
)
def test_a_server_that_does_not_speak_mcp_is_an_error_that_says_so(
    held: Held, way: str, program: str, why: str
) -> None:
    with pytest.raises(RecorderError, match=why):
        held(program, 1.0 if "did not answer in time" in why else 120.0)


def test_a_flood_of_short_lines_ends_the_session(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "MOST_LINES", 100)
    with pytest.raises(RecorderError, match="the server sent more than 100 lines"):
        held("while True: print('y')", 20.0)


def test_where_a_real_server_is_recorded_its_failure_is_a_step(held: Held, way: str) -> None:
    program = """
for message in messages():
    if message.get("method") == "tools/call":
        break
    usual(message, (TOOL, {"name": "two"}, {"name": "three"}))
"""
    steps, lines = held(program, thorough=True)
    assert [(step.name, step.status) for step in steps][:2] == [
        ("initialize", "answered"),
        ("tools/list", steps[1].status),
    ]
    gone = [(step.status, step.detail) for step in steps if step.status == "closed"]
    if way == "sdk":
        assert gone == [
            ("closed", "one: the server closed its output before it answered"),
            ("closed", "5 calls not made: the server closed its output before it answered"),
        ]
    else:
        assert gone == [("closed", "the server closed its output before it answered")]
    assert len(lines) == 6


def test_a_call_that_is_not_answered_does_not_end_a_thorough_session(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controls.recorder.client.sdk._PATIENCE", 2.0)
    program = """
for message in messages():
    if message.get("method") != "tools/call" or message["params"]["name"] != "one":
        usual(message, (TOOL, {"name": "two", "inputSchema": {}}))
"""
    steps, _ = held(program, 12.0, thorough=True)
    assert [(step.status, step.detail) for step in steps if step.name == "tools/call"] == [
        ("no-answer", "one: the server did not answer in time"),
        ("answered", "two"),
        ("no-answer", "one: the server did not answer in time"),
        ("answered", "two"),
        ("error", "malformed"),
    ]


def test_answers_the_sdk_does_not_take_are_used_all_the_same(held: Held) -> None:
    program = """
for message in messages():
    method, identity = message.get("method"), message.get("id")
    if method == "initialize":
        print(json.dumps({"id": identity, "result": {"capabilities": {"tools": 1}}}), flush=True)
    elif method == "tools/list":
        answer(identity, {"tools": [{"name": "a"}, {"name": 5}, 7]})
    elif method == "tools/call":
        say(id=identity, result=[])
"""
    steps, lines = held(program)
    assert [(step.name, step.status) for step in steps][:4] == [
        ("initialize", "bad-answer"),
        ("tools/list", "bad-answer"),
        ("tools/call", "bad-answer"),
        ("tools/call", "bad-answer"),
    ]
    asked = [one["msg"] for one in lines if one["dir"] == "c2s" and one["msg"]["method"] == "tools/call"]
    assert [one["params"] for one in asked] == [{"name": "a", "arguments": {}}, {"name": 5, "arguments": {}}]


def test_noise_in_every_shape_is_written_down_and_passed_over(held: Held, way: str) -> None:
    program = r"""
noise = ["null", "3", "[]", "[1]", "NaN", "{", '{"a":' * 3000, '"\\ud800"', '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","method":7}', '{"jsonrpc":"2.0","method":"notifications/none"}',
    '{"jsonrpc":"2.0","id":99,"result":{}}', '{"jsonrpc":"2.0","id":{"a":[]},"result":{}}', '[{"id":77}]']
for message in messages():
    for one in noise:
        print(one)
    usual(message)
"""
    steps, lines = held(program)
    assert [(step.name, step.status) for step in steps][:3] == [
        ("initialize", "answered"),
        ("tools/list", "answered"),
        ("tools/call", "answered"),
    ]
    heard = [one for one in lines if one["dir"] == "s2c"]
    assert len(heard) == 4 * 14 + 3
    assert sum("raw" in one for one in heard) == 4 * 3


def test_a_server_that_reads_nothing_does_not_hold_the_recorder_up(held: Held) -> None:
    program = """
import time
message = next(messages())
answer(message["id"], STARTED)
next(messages())
schema = {"properties": {"a": {"default": "y" * 300_000}}}
answer(next(messages())["id"], {"tools": [{"name": "x", "inputSchema": schema}]})
time.sleep(60)
"""
    steps, _ = held(program, 6.0, thorough=True)
    assert [(step.name, step.status) for step in steps][-2:] == [("tools/call", "no-answer"), ("shutdown", "no-answer")]


def test_what_a_server_says_while_it_ends_is_kept(held: Held) -> None:
    program = """
for message in messages():
    usual(message)
print("good bye " + "x" * 200_000, flush=True)
"""
    steps, lines = held(program)
    assert steps[-1] == Step("shutdown", "done")
    assert lines[-1]["raw"] == "good bye " + "x" * 200_000


def test_given_calls_are_made_instead(held: Held, way: str) -> None:
    calls = [Call("one", {"city": "Rome"}), Call("one", {"city": "Rome"}, 0.2), Call("other", {})]
    _, lines = held("for message in messages(): usual(message)", calls=calls)
    asked = [one for one in lines if one["msg"].get("method") == "tools/call"]
    assert [one["msg"]["params"] for one in asked] == [
        {"name": "one", "arguments": {"city": "Rome"}},
        {"name": "one", "arguments": {"city": "Rome"}},
        {"name": "other", "arguments": {}},
    ]
    assert asked[1]["t"] - asked[0]["t"] >= 0.2


def test_what_opens_is_called_first_and_what_closes_last() -> None:
    tools = [{"name": name} for name in ("deleteItem", "list", "browser_navigate", "CREATE_x", "close", None, "reopen")]
    calls = calls_of(tools, thorough=True)
    once = ["browser_navigate", "CREATE_x", "list", None, "reopen", "deleteItem", "close"]
    assert [call.tool for call in calls] == once * 2


def test_a_planted_server_is_held_by_the_sdk(tmp_path: Path) -> None:
    listed = [{"name": "one", "inputSchema": {"type": "object"}}]
    (tmp_path / "tools.json").write_text(json.dumps(listed))
    command = [sys.executable, "-I", "-S", str(PLANTED), str(tmp_path / "tools.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        steps = drive(server.stdin, server.stdout, tmp_path / "mcp.jsonl")
        assert server.wait(5) == 0
    assert [(step.name, step.status) for step in steps] == [
        ("initialize", "answered"),
        ("tools/list", "answered"),
        ("tools/call", "answered"),
        ("shutdown", "done"),
    ]
