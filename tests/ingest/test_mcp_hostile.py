"""Hostile transcripts: nesting, length, cuts, other files, any bytes."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_lines import INIT, ask, frame, losses, messages, read, reply, tool, tools

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.mcp import MAX_LINE
from mcpdetect.ingest.mcp_json import MAX_DEPTH, MAX_VALUES
from mcpdetect.ingest.mcp_message import TEXT_LIMIT
from mcpdetect.model.event import Unparsed


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
