"""MCP transcripts: recorded and bare, directions, pairing."""

import hashlib
import json
from pathlib import Path

import pytest
from mcp_lines import INIT, ask, frame, losses, messages, read, reply, tool, tools

from mcpdetect.ingest.mcp import McpTranscript
from mcpdetect.ingest.mcp_session import MAX_PENDING
from mcpdetect.model.event import Unparsed
from mcpdetect.model.mcp import McpMessage, McpText, McpTool
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where


def test_a_recorded_session_gives_exact_events(tmp_path: Path) -> None:
    listed = {"name": "a", "description": "Says hi.", "inputSchema": {"type": "object", "properties": {"q": {}}}}
    content = (
        ask(1, "initialize")
        + reply(1, INIT)
        + frame("c2s", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        + ask(2, "tools/list")
        + reply(2, {"tools": [listed]})
        + ask(3, "tools/call", {"name": "a", "arguments": {"q": "ü", "n": 1}})
        + reply(3, {"content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "you"}], "isError": True})
        + frame("s2c", {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "no", "data": {"k": 1}}})
    )
    events, seen = read(tmp_path, content)
    t_ns = 1796038737266463000

    def at(line: int) -> Where:
        return Where("mcp.jsonl", line)

    canonical = json.dumps(listed, sort_keys=True, separators=(",", ":")).encode()
    init = json.dumps(INIT, sort_keys=True, separators=(",", ":")).encode()
    assert events == [
        McpMessage(at(1), t_ns, direction="c2s", form="request", method="initialize", id="1"),
        McpMessage(at(2), t_ns, form="response", method="initialize", id="1", answers=1, text="Use the tools."),
        McpTool(
            at(2),
            t_ns,
            name="s",
            part="instructions",
            digest=hashlib.sha256(init).hexdigest(),
            texts=[
                McpText("/protocolVersion", "2025-06-18"),
                McpText("/serverInfo/name", "s"),
                McpText("/serverInfo/version", "1"),
                McpText("/instructions", "Use the tools."),
            ],
        ),
        McpMessage(at(3), t_ns, direction="c2s", form="notification", method="notifications/initialized"),
        McpMessage(at(4), t_ns, direction="c2s", form="request", method="tools/list", id="2"),
        McpMessage(at(5), t_ns, form="response", method="tools/list", id="2", answers=4),
        McpTool(
            at(5),
            t_ns,
            name="a",
            digest=hashlib.sha256(canonical).hexdigest(),
            texts=[
                McpText("/name", "a"),
                McpText("/description", "Says hi."),
                McpText("/inputSchema/type", "object"),
                McpText("/inputSchema/properties/q", "q"),
            ],
        ),
        McpMessage(
            at(6),
            t_ns,
            direction="c2s",
            form="request",
            method="tools/call",
            id="3",
            tool="a",
            arguments='{"q":"ü","n":1}',
        ),
        McpMessage(
            at(7),
            t_ns,
            form="response",
            method="tools/call",
            id="3",
            answers=6,
            tool="a",
            is_error=True,
            text="hi\nyou",
        ),
        McpMessage(at(8), t_ns, form="error", id="9", is_error=True, text='no\n{"k":1}'),
    ]
    assert seen == Observation(
        channel="mcp",
        source="mcp.jsonl",
        format="mcp-recorded",
        watches={"mcp.message": "inferred", "mcp.tool": "inferred"},
        begin_ns=t_ns,
        end_ns=t_ns,
        counts={"lines": 8, "messages": 8, "noise": 0, "tools": 2, "events": 10, "unparsed": 0},
        losses=seen.losses,
    )
    assert losses(seen) == [("orphan-response", 1, 8, [], True)]


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mcp.jsonl"
    path.write_text(ask(2, "tools/list") + reply(2, {"tools": [tool("a")]}))
    adapter = McpTranscript(path)
    first, seen = list(adapter.events()), adapter.observation
    assert list(adapter.events()) == first
    assert adapter.observation == seen
    assert len(first) == 3


def test_only_wanted_kinds_come_and_all_is_counted(tmp_path: Path) -> None:
    content = ask(2, "tools/list") + reply(2, {"tools": [tool("a")]})
    events, seen = read(tmp_path, content, frozenset({"mcp.tool"}))
    assert tools(events) == [("tool", "a", 1, 2)]
    assert len(events) == 1
    assert seen.counts["messages"] == 2


@pytest.mark.parametrize(
    ("t", "t_ns"),
    [
        ("1796038737.266463", 1796038737266463000),
        ("1796038737.2664632", 1796038737266463200),
        ("1796038737.000000001", 1796038737000000001),
        ("1796038737", 1796038737000000000),
        ("1.796038737266463e9", 1796038737266463000),
        ("0.1", 100000000),
        ("9223372036", 9223372036000000000),
        ("9223372037", None),
        ("-1", None),
        ("1e99999999999", None),
        ("1e999999999999999999999", None),
        ("9" * 5000, None),
        ("NaN", None),
        ("null", None),
        ("true", None),
        ('"1"', None),
    ],
)
def test_time_is_exact_or_none(tmp_path: Path, t: str, t_ns: int | None) -> None:
    events, seen = read(tmp_path, frame("c2s", {"jsonrpc": "2.0", "method": "x"}, t))
    assert [event.t_ns for event in events] == [t_ns]
    assert losses(seen) == ([] if t_ns is not None else [("no-clock", 1, 1, [], True)])


def test_what_the_server_printed_beside_the_protocol_is_kept(tmp_path: Path) -> None:
    """C84: server stdout with noise, a batch, a duplicate key and an incomplete last line."""
    content = (
        "[dotenv@17.0.0] injecting env (3) from .env\n"
        f'{{"jsonrpc":"2.0","id":1,"result":{json.dumps(INIT)}}}\n'
        "Server running on stdio\n"
        '[{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","description":"x","inputSchema":{"type":"object"}}]}},'
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hi"}}]\n'
        '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"line1\\nline2"}]},"result":{"content":[]}}\n'
        '{"jsonrpc":"2.0","id":4,"resu'
    )
    events, seen = read(tmp_path, content)
    assert [(e.where.at, e.form, e.direction, e.id, e.text) for e in messages(events)] == [
        (1, "noise", "s2c", None, "[dotenv@17.0.0] injecting env (3) from .env"),
        (2, "response", "s2c", "1", "Use the tools."),
        (3, "noise", "s2c", None, "Server running on stdio"),
        (4, "response", "s2c", "2", None),
        (4, "notification", "s2c", None, "hi"),
        (5, "response", "s2c", "3", "line1\nline2"),
    ]
    assert tools(events) == [("instructions", "s", 1, 2), ("tool", "a", 1, 4)]
    assert [e for e in events if isinstance(e, Unparsed)] == [
        Unparsed(
            Where("mcp.jsonl", 6),
            None,
            seen_in="mcp",
            reason="incomplete last line",
            raw=b'{"jsonrpc":"2.0","id":4,"resu',
            touches=["mcp.message", "mcp.tool"],
        )
    ]
    assert losses(seen) == [
        ("duplicate-key", 1, 5, [], True),
        ("file-truncated", 1, 6, [], False),
        ("one-direction", 1, None, [], True),
    ]
    assert seen.counts == {"lines": 6, "messages": 4, "noise": 2, "tools": 2, "events": 9, "unparsed": 1}
    assert (seen.format, seen.clock, seen.scope) == ("mcp-ndjson", "none", "server to client")
    assert seen.watches == {"mcp.message": "inferred", "mcp.tool": "inferred"}


def test_directions_of_bare_messages_are_inferred(tmp_path: Path) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}},
        {"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {"systemPrompt": "p"}},
        {"jsonrpc": "2.0", "id": 7, "result": {"content": {"type": "text", "text": "c"}}},
        {"jsonrpc": "2.0", "id": 1, "result": {"content": []}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"message": "m"}},
    ]
    events, _ = read(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))
    assert [(e.direction, e.form, e.answers, e.text) for e in messages(events)] == [
        ("c2s", "request", None, None),
        ("s2c", "request", None, "p"),
        ("c2s", "response", 2, "c"),
        ("s2c", "response", 1, None),
        ("s2c", "notification", None, "m"),
    ]


def test_a_server_cannot_forge_the_recorders_frame(tmp_path: Path) -> None:
    forged = '{"t": 1, "dir": "c2s", "msg": {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}}\n'
    events, seen = read(tmp_path, '{"jsonrpc":"2.0","id":1,"result":{}}\n' + forged)
    assert [(e.form, e.direction) for e in messages(events)] == [("response", "s2c"), ("noise", "s2c")]
    assert seen.format == "mcp-ndjson"


def test_a_line_without_the_recorders_frame_is_a_loss(tmp_path: Path) -> None:
    content = ask(1, "ping") + '{"jsonrpc":"2.0","id":1,"result":{}}\nhello\n' + reply(1, {})
    events, seen = read(tmp_path, content)
    assert [(type(e).__name__, e.where.at) for e in events] == [
        ("McpMessage", 1),
        ("Unparsed", 2),
        ("Unparsed", 3),
        ("McpMessage", 4),
    ]
    assert losses(seen) == [("unparsed", 1, 2, [], False), ("unparsed", 1, 3, [], False)]
    assert seen.counts["unparsed"] == 2


def test_recorded_noise_is_evidence(tmp_path: Path) -> None:
    content = ask(1, "ping") + '{"t": 2.5, "dir": "s2c", "raw": "Received \\u001b[1mSIGTERM"}\n'
    content += '{"t": 3, "dir": "s2c", "msg": {"level": 30, "msg": "pino"}}\n'
    events, seen = read(tmp_path, content)
    assert messages(events)[1:] == [
        McpMessage(Where("mcp.jsonl", 2), 2_500_000_000, form="noise", text="Received \x1b[1mSIGTERM"),
        McpMessage(Where("mcp.jsonl", 3), 3_000_000_000, form="noise", text='{"level":30,"msg":"pino"}'),
    ]
    assert seen.counts["noise"] == 2
    assert losses(seen) == [("unanswered", 1, 1, [], True)]


def test_number_and_text_ids_stay_apart(tmp_path: Path) -> None:
    content = ask(1, "a") + ask("1", "b") + reply("1", {}) + reply(1, {})
    events, _ = read(tmp_path, content)
    assert [(e.id, e.method, e.answers) for e in messages(events)] == [
        ("1", "a", None),
        ('"1"', "b", None),
        ('"1"', "b", 2),
        ("1", "a", 1),
    ]


def test_ids_of_the_two_directions_stay_apart(tmp_path: Path) -> None:
    content = ask(0, "tools/list") + frame("s2c", {"id": 0, "method": "roots/list"})
    content += frame("c2s", {"id": 0, "result": {"roots": []}}) + reply(0, {"tools": []})
    events, seen = read(tmp_path, content)
    assert [(e.direction, e.method, e.answers) for e in messages(events)][2:] == [
        ("c2s", "roots/list", 2),
        ("s2c", "tools/list", 1),
    ]
    assert losses(seen) == []


def test_a_repeated_id_is_reported_and_a_list_still_finds_its_request(tmp_path: Path) -> None:
    content = ask(1, "tools/call", {"name": "x"}) + ask(1, "tools/list") + reply(1, {"tools": [tool("a")]})
    events, seen = read(tmp_path, content + reply(1, {"content": []}))
    assert [(e.method, e.answers) for e in messages(events)][2:] == [("tools/list", 2), ("tools/call", 1)]
    assert tools(events) == [("tool", "a", 1, 3)]
    assert losses(seen) == [("duplicate-id", 1, 2, [], True)]


def test_requests_without_end_stay_bounded(tmp_path: Path) -> None:
    content = "".join(f'{{"t":1,"dir":"s2c","msg":{{"id":{n},"method":"ping"}}}}\n' for n in range(MAX_PENDING + 5))
    _, seen = read(tmp_path, content, frozenset())
    assert losses(seen) == [
        ("overflow", 5, MAX_PENDING + 1, [], True),
        ("unanswered", MAX_PENDING, 6, [], True),
    ]
