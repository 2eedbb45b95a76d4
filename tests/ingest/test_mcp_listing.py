"""What a server lists: tools, prompts, resources, pages, changes, every string addressed."""

import json
from pathlib import Path

import pytest
from mcp_lines import INIT, ask, frame, losses, messages, read, reply, tool, tools

from mcpdetect.ingest.mcp_json import texts_of
from mcpdetect.model.mcp import McpText, McpTool
from mcpdetect.model.text import bytes_of


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
