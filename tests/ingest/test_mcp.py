"""MCP transcripts: recorded and bare, paired, listed, hostile."""

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.mcp import MAX_LINE, McpTranscript
from mcpdetect.ingest.mcp_json import MAX_DEPTH, MAX_VALUES, texts_of
from mcpdetect.ingest.mcp_message import TEXT_LIMIT
from mcpdetect.ingest.mcp_session import MAX_PENDING
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.mcp import McpMessage, McpText, McpTool
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.text import bytes_of

INIT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
    "instructions": "Use the tools.",
}


def tool(name: str, description: str = "x", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


def frame(direction: str, message: object, t: str = "1796038737.266463") -> str:
    return f'{{"t": {t}, "dir": "{direction}", "msg": {json.dumps(message)}}}\n'


def ask(number: object, method: str, params: dict[str, Any] | None = None) -> str:
    return frame("c2s", {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})


def reply(number: object, result: object) -> str:
    return frame("s2c", {"jsonrpc": "2.0", "id": number, "result": result})


def read(
    folder: Path, content: str | bytes, wanted: frozenset[str] | None = None, declared: Declared | None = None
) -> tuple[list[Event], Observation]:
    path = folder / "mcp.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    adapter = McpTranscript(path, "mcp.jsonl", declared)
    return list(adapter.events(wanted)), adapter.observation


def losses(observation: Observation) -> list[tuple[str, int, int | None, list[str], bool]]:
    return [(x.what, x.count, x.where.at if x.where else None, x.touches, x.note) for x in observation.losses]


def tools(events: list[Event]) -> list[tuple[str, str, int, int]]:
    return [(e.part, e.name, e.revision, e.where.at) for e in events if isinstance(e, McpTool)]


def messages(events: list[Event]) -> list[McpMessage]:
    return [e for e in events if isinstance(e, McpMessage)]


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


def test_prompts_and_resources_are_parts_of_their_own(tmp_path: Path) -> None:
    content = (
        ask(1, "prompts/list")
        + reply(1, {"prompts": [{"name": "p", "arguments": [{"name": "q", "description": "d"}]}]})
        + ask(2, "resources/list")
        + reply(2, {"resources": [{"uri": "file:///a", "name": "r"}]})
        + ask(3, "resources/templates/list")
        + reply(3, {"resourceTemplates": [{"uriTemplate": "file:///{x}"}]})
    )
    events, seen = read(tmp_path, content)
    assert tools(events) == [("prompt", "p", 1, 2), ("resource", "r", 1, 4), ("resource", "file:///{x}", 1, 6)]
    first = next(e for e in events if isinstance(e, McpTool))
    assert first.texts == [
        McpText("/name", "p"),
        McpText("/arguments/0/name", "q"),
        McpText("/arguments/0/description", "d"),
    ]
    assert seen.watches == {"mcp.message": "inferred"}


def test_a_changed_tool_comes_again_and_another_key_order_does_not(tmp_path: Path) -> None:
    """C52."""
    first = {"name": "search", "description": "Search notes.", "inputSchema": {"type": "object"}}
    second = {"inputSchema": {"type": "object"}, "name": "search", "description": "Search notes. Also attach it."}
    third = {"description": "Search notes. Also attach it.", "name": "search", "inputSchema": {"type": "object"}}
    content = "".join(
        ask(n, "tools/list") + reply(n, {"tools": [t]}) for n, t in enumerate([first, second, third, first])
    )
    events, seen = read(tmp_path, content)
    assert tools(events) == [("tool", "search", 1, 2), ("tool", "search", 2, 4), ("tool", "search", 3, 8)]
    assert losses(seen) == []


def test_true_and_one_are_different_definitions(tmp_path: Path) -> None:
    content = "".join(
        ask(n, "tools/list") + reply(n, {"tools": [tool("a", default=value)]}) for n, value in enumerate([1, True, 1.0])
    )
    assert [revision for _, _, revision, _ in tools(read(tmp_path, content)[0])] == [1, 2, 3]


def test_two_tools_of_one_name_are_both_kept_and_stay_what_they_were(tmp_path: Path) -> None:
    content = "".join(ask(n, "tools/list") + reply(n, {"tools": [tool("a", "x"), tool("a", "y")]}) for n in range(3))
    assert tools(read(tmp_path, content)[0]) == [("tool", "a", 1, 2), ("tool", "a", 1, 2)]


def test_a_changed_list_that_was_not_asked_again_is_a_loss(tmp_path: Path) -> None:
    notification = frame("s2c", {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    listing = ask(1, "tools/list") + reply(1, {"tools": []})
    assert losses(read(tmp_path, notification + listing)[1]) == []
    assert losses(read(tmp_path, listing + notification)[1]) == [("listing-stale", 1, 3, ["mcp.tool"], False)]
    assert losses(read(tmp_path, listing + notification + listing)[1]) == []


def test_pages_read_to_the_end_are_complete(tmp_path: Path) -> None:
    first = ask(1, "tools/list") + reply(1, {"tools": [tool("a")], "nextCursor": "c"})
    second = ask(2, "tools/list", {"cursor": "c"}) + reply(2, {"tools": [tool("b")]})
    events, seen = read(tmp_path, first + second)
    assert tools(events) == [("tool", "a", 1, 2), ("tool", "b", 1, 4)]
    assert losses(seen) == []
    assert losses(read(tmp_path, first)[1]) == [("listing-incomplete", 1, 2, ["mcp.tool"], False)]
    assert losses(read(tmp_path, first + ask(2, "tools/list", {"cursor": "c"}))[1]) == [
        ("unanswered", 1, 3, [], True),
        ("listing-incomplete", 1, 2, ["mcp.tool"], False),
        ("listing-incomplete", 1, 3, ["mcp.tool"], False),
    ]


def test_a_list_that_never_ends_gives_each_tool_once(tmp_path: Path) -> None:
    """C85: as many listings as there are lines, eight tools, one cursor."""
    listed = [tool(f"t{n}", "y" * 50) for n in range(8)]
    result = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": listed, "nextCursor": "abc"}})
    events, seen = read(tmp_path, (result + "\n") * 10_000, frozenset({"mcp.tool"}))
    assert tools(events) == [("tool", f"t{n}", 1, 1) for n in range(8)]
    assert seen.counts == {"lines": 10_000, "messages": 10_000, "noise": 0, "tools": 8, "events": 10_008, "unparsed": 0}
    assert losses(seen) == [
        ("cursor-stuck", 9_999, 2, [], True),
        ("one-direction", 1, None, [], True),
        ("listing-incomplete", 1, 10_000, ["mcp.tool"], False),
    ]


def test_cursors_in_a_circle_are_stuck(tmp_path: Path) -> None:
    pages = [(None, "a"), ("a", "b"), ("b", "a"), ("a", "b")]
    content = "".join(
        ask(n, "tools/list", {"cursor": asked} if asked else {}) + reply(n, {"tools": [], "nextCursor": following})
        for n, (asked, following) in enumerate(pages)
    )
    assert losses(read(tmp_path, content)[1])[0] == ("cursor-stuck", 2, 6, [], True)


def test_tools_that_were_offered_and_never_listed_are_a_loss(tmp_path: Path) -> None:
    _, seen = read(tmp_path, ask(1, "initialize") + reply(1, INIT))
    assert losses(seen) == [("not-listed", 1, None, ["mcp.tool"], False)]
    assert seen.watches == {"mcp.message": "inferred"}


def test_a_refused_listing_watched_no_tool(tmp_path: Path) -> None:
    content = ask(1, "tools/list") + frame("s2c", {"id": 1, "error": {"code": -32601, "message": "no"}})
    events, seen = read(tmp_path, content)
    assert [(e.method, e.is_error) for e in messages(events)] == [("tools/list", False), ("tools/list", True)]
    assert seen.watches == {"mcp.message": "inferred"}


@pytest.mark.parametrize("listed", ['"text"', "7", "null", '{"a": {"name": "b"}}'])
def test_a_listing_that_is_no_list_is_a_loss(tmp_path: Path, listed: str) -> None:
    content = ask(1, "tools/list") + f'{{"t":1,"dir":"s2c","msg":{{"id":1,"result":{{"tools":{listed}}}}}}}\n'
    assert losses(read(tmp_path, content)[1]) == [("odd-listing", 1, 2, ["mcp.tool"], False)]


def test_odd_tools_are_judged_all_the_same(tmp_path: Path) -> None:
    content = ask(1, "tools/list") + reply(1, {"tools": ["plain", 3, None, {"description": "d"}, {"name": 5}]})
    events, _ = read(tmp_path, content, frozenset({"mcp.tool"}))
    found = [e for e in events if isinstance(e, McpTool)]
    assert [(e.name, e.texts) for e in found] == [
        ("", [McpText("", "plain")]),
        ("", []),
        ("", []),
        ("", [McpText("/description", "d")]),
        ("", []),
    ]


def test_both_values_of_a_duplicate_key_are_examined(tmp_path: Path) -> None:
    line = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"first","description":"last"}]}}\n'
    events, seen = read(tmp_path, line, frozenset({"mcp.tool"}))
    assert [e.texts for e in events if isinstance(e, McpTool)] == [
        [McpText("/name", "a"), McpText("/description", "last"), McpText("/description", "first")]
    ]
    assert losses(seen)[0] == ("duplicate-key", 1, 1, [], True)
    two = '{"id":1,"result":{"tools":[{"name":"a"}]},"result":{"tools":[{"name":"b"}]}}\n'
    assert tools(read(tmp_path, two)[0]) == [("tool", "b", 1, 1), ("tool", "a", 1, 1)]


def test_a_change_in_a_shadowed_value_is_a_change(tmp_path: Path) -> None:
    line = '{"id":1,"result":{"tools":[{"name":"a","description":"%s","description":"last"}]}}\n'
    events, _ = read(tmp_path, line % "one" + line % "one" + line % "two")
    assert tools(events) == [("tool", "a", 1, 1), ("tool", "a", 2, 3)]


def test_every_string_is_addressed() -> None:
    thing = {
        "name": "n",
        "inputSchema": {
            "type": "object",
            "properties": {
                "opt": {"properties": {"mode": {"enum": ["fast", 1, "safe"]}}},
                "type": {"anyOf": [{"const": "c"}, {"$comment": "k"}]},
                "properties": {"type": "string"},
            },
            "$defs": {"a/b~c": {"title": "t"}},
        },
        "_meta": {"description": "m"},
        "x-own": [["deep"]],
    }
    assert [(text.pointer, text.text) for text in texts_of(thing)] == [
        ("/name", "n"),
        ("/inputSchema/type", "object"),
        ("/inputSchema/properties/opt", "opt"),
        ("/inputSchema/properties/opt/properties/mode", "mode"),
        ("/inputSchema/properties/opt/properties/mode/enum/0", "fast"),
        ("/inputSchema/properties/opt/properties/mode/enum/2", "safe"),
        ("/inputSchema/properties/type", "type"),
        ("/inputSchema/properties/type/anyOf/0/const", "c"),
        ("/inputSchema/properties/type/anyOf/1/$comment", "k"),
        ("/inputSchema/properties/properties", "properties"),
        ("/inputSchema/properties/properties/type", "string"),
        ("/inputSchema/$defs/a~1b~0c", "a/b~c"),
        ("/inputSchema/$defs/a~1b~0c/title", "t"),
        ("/_meta/description", "description"),
        ("/_meta/description", "m"),
        ("/x-own", "x-own"),
        ("/x-own/0/0", "deep"),
    ]


@pytest.mark.parametrize(
    ("raw", "text", "broken"),
    [
        (rb"a\\b", "a\\\\b", False),
        (rb"\ud83d\ude00", "\U0001f600", False),
        (rb"\ud800x", "\\xed\\xa0\\x80x", False),
        (b"\xff\x80", "\\xff\\x80", True),
        (b"\xc3\xbc", "ü", False),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80", True),
        (rb"\u0000\u001b[31m", "\x00\x1b[31m", False),
    ],
)
def test_texts_are_well_formed_and_keep_their_bytes(tmp_path: Path, raw: bytes, text: str, broken: bool) -> None:
    content = b'{"id":1,"result":{"content":[{"type":"text","text":"' + raw + b'"}]}}\n'
    events, seen = read(tmp_path, content)
    assert [e.text for e in messages(events)] == [text]
    text.encode()
    assert [x.what for x in seen.losses] == (["invalid-utf8"] if broken else []) + ["one-direction"]
    if broken:
        assert bytes_of(text) == raw


def test_nesting_without_end_is_unparsed(tmp_path: Path) -> None:
    deep = b'{"id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    good = b'{"id":2,"result":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}\n"
    quoted = b'{"id":3,"result":{"content":"' + b"[{" * 500 + b'"}}\n'
    events, seen = read(tmp_path, good + deep + quoted)
    assert [(type(e).__name__, e.where.at) for e in events] == [("McpMessage", 1), ("Unparsed", 2), ("McpMessage", 3)]
    assert isinstance(events[1], Unparsed)
    assert events[1].reason == f"nested deeper than {MAX_DEPTH} levels"
    assert losses(seen)[0] == ("unparsed", 1, 2, [], False)


def test_values_without_end_are_unparsed(tmp_path: Path) -> None:
    content = b'{"id":1,"result":{}}\n{"id":1,"result":[' + b"1," * MAX_VALUES + b"1]}\n"
    events, seen = read(tmp_path, content)
    assert [type(e).__name__ for e in events] == ["McpMessage", "Unparsed"]
    assert losses(seen)[0] == ("unparsed", 1, 2, [], False)


def test_a_huge_line_is_cut_and_the_next_one_read(tmp_path: Path) -> None:
    content = b'{"id":1,"result":{}}\n{"id":1,"result":"' + b"x" * MAX_LINE + b'"}\n{"id":2,"result":{}}\n'
    events, seen = read(tmp_path, content)
    assert [(type(e).__name__, e.where.at) for e in events] == [("McpMessage", 1), ("Unparsed", 2), ("McpMessage", 3)]
    assert losses(seen)[0] == ("line-cut", 1, 2, [], False)
    assert isinstance(events[1], Unparsed)
    assert len(events[1].raw) == 4096


def test_long_texts_are_cut_and_spoil_only_the_data(tmp_path: Path) -> None:
    content = ask(1, "tools/call", {"name": "a", "arguments": {"q": "z" * TEXT_LIMIT}})
    content += reply(1, {"content": [{"type": "text", "text": "y" * (TEXT_LIMIT + 1)}]})
    events, seen = read(tmp_path, content)
    first, second = messages(events)
    assert (first.arguments, first.cut) == ('{"q":"' + "z" * (TEXT_LIMIT - 6), True)
    assert (second.text, second.cut) == ("y" * TEXT_LIMIT, True)
    assert losses(seen) == [("string-cut", 2, 1, ["data:mcp.message"], False)]


def test_a_message_look_alike_that_is_no_json_is_a_loss(tmp_path: Path) -> None:
    content = '{"id":1,"result":{}}\n{"id":2,"result":{,}}\n{broken}\n[1\n'
    events, seen = read(tmp_path, content)
    assert [(type(e).__name__, e.where.at) for e in events] == [
        ("McpMessage", 1),
        ("Unparsed", 2),
        ("McpMessage", 3),
        ("McpMessage", 4),
    ]
    assert losses(seen)[0] == ("unparsed", 1, 2, [], False)
    assert [e.text for e in messages(events)] == [None, "{broken}", "[1"]


def test_other_protocol_versions_and_missing_members_are_read(tmp_path: Path) -> None:
    result = {**INIT, "protocolVersion": "2099-01-01"}
    del result["instructions"]
    content = frame("c2s", {"id": None, "method": "initialize"}) + frame("s2c", {"id": None, "result": result})
    events, _ = read(tmp_path, content)
    assert [(e.form, e.id, e.answers) for e in messages(events)] == [
        ("request", "null", None),
        ("response", "null", 1),
    ]
    assert tools(events) == [("instructions", "s", 1, 2)]


@pytest.mark.parametrize(
    "content", ["hello\n", "{}\n", "[]\n", '"x"\n', "3\n", "\n\n", '{"t":1,"dir":"up","msg":{}}\n']
)
def test_another_kind_of_file_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnknownFormat, match="is no MCP transcript"):
        read(tmp_path, content)


def test_noise_of_any_length_before_the_first_message_is_read(tmp_path: Path) -> None:
    events, seen = read(
        tmp_path, "noise\n" * 300_000 + '{"id":1,"result":{"tools":[{"name":"a"}]}}\n', frozenset({"mcp.tool"})
    )
    assert tools(events) == [("tool", "a", 1, 300_001)]
    assert seen.counts["noise"] == 300_000


def test_only_recorded_noise_watches_nothing(tmp_path: Path) -> None:
    _, seen = read(tmp_path, '{"t":1,"dir":"s2c","raw":"x"}\n')
    assert (seen.proof, seen.watches) == ("absent", {})


def test_a_manifest_makes_the_watch_declared(tmp_path: Path) -> None:
    declared = Declared(tool="recorder 1", begin_ns=1, end_ns=2, complete=True)
    content = ask(1, "tools/list") + reply(1, {"tools": []})
    _, seen = read(tmp_path, content, declared=declared)
    assert seen.watches == {"mcp.message": "declared", "mcp.tool": "declared"}
    assert (seen.tool, seen.begin_ns, seen.end_ns, seen.complete, seen.proof) == ("recorder 1", 1, 2, True, "declared")


def test_compressed_and_broken_off_transcripts(tmp_path: Path) -> None:
    content = "".join(ask(n, "ping", {"x": hashlib.sha256(b"%d" % n).hexdigest()}) for n in range(2000)).encode()
    packed = gzip.compress(content)
    events, seen = read(tmp_path, packed)
    assert len(events) == 2000
    assert losses(seen) == [("unanswered", 2000, 1, [], True)]
    events, seen = read(tmp_path, packed[: len(packed) // 2])
    assert 0 < len(events) < 2000
    assert "file-truncated" in [x.what for x in seen.losses]


def test_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    events, _ = read(tmp_path, b'\xef\xbb\xbf{"id":1,"result":{}}\r\n\r\n{"id":2,"result":{}}\r\n')
    assert [(e.where.at, e.id) for e in messages(events)] == [(1, "1"), (3, "2")]


def test_cut_at_any_byte_it_gives_a_prefix_and_says_so(tmp_path: Path) -> None:
    content = (ask(1, "initialize") + reply(1, INIT) + ask(2, "tools/list") + reply(2, {"tools": [tool("a")]})).encode()
    whole, _ = read(tmp_path, content)
    refused = prefixes = 0
    for end in range(1, len(content)):
        try:
            events, seen = read(tmp_path, content[:end])
        except InputError:
            refused += 1
            continue
        prefixes += 1
        kept = [event for event in events if not isinstance(event, Unparsed)]
        assert kept == whole[: len(kept)]
        complete = (content[:end].endswith(b"}") and content[end : end + 1] == b"\n") or content[:end].endswith(b"\n")
        assert ("file-truncated" in [x.what for x in seen.losses]) is not complete
    assert refused == content.index(b"\n") - 1
    assert prefixes == len(content) - 1 - refused


PIECES = [ask(1, "tools/list").encode(), b"\n", b'{"id":1', b'[{"', reply(1, {"tools": [tool("a")]}).encode()]


@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from(PIECES)), max_size=12))
def test_any_bytes_give_events_or_an_input_error(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("any")
    content = b"".join(parts)
    try:
        events, seen = read(folder, content)
    except InputError:
        return
    lines = [line for line in re.split(rb"\n", content) if line.strip(b" \t\r")]
    assert len({event.where.at for event in events}) == len(lines)
    assert seen.counts["events"] == len(events)
