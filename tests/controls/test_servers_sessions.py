"""What a recorded session tells: asked, answered, and a failing server's last words."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from controls.sessions import Answer, last_words, place, session_of

TRANSCRIPT = b"""{"t":1.0,"dir":"c2s","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}}
{"t":1.1,"dir":"s2c","raw":"starting"}
{"t":1.2,"dir":"s2c","msg":{"jsonrpc":"2.0","id":0,"result":{}}}
{"t":1.3,"dir":"c2s","msg":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
{"t":1.4,"dir":"s2c","msg":{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":7},"x",{"name":"b"}]}}}
{"t":1.5,"dir":"c2s","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}}
{"t":1.6,"dir":"c2s","msg":{"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"name":7}}}
{"t":1.7,"dir":"s2c","msg":{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
{"t":1.8,"dir":"s2c","msg":{"jsonrpc":"2.0","id":"3","error":{"code":-32602,"message":"x"}}}
{"t":1.9,"dir":"s2c","msg":{"jsonrpc":"2.0","id":2,"result":{"isError":true}}}
{"t":2.0,"dir":"s2c","msg":{"jsonrpc":"2.0","id":2,"result":{}}}
{"t":2.1,"dir":"s2c","msg":[1]}
no JSON
{"t":2.2,"dir":"c2s","msg":{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"b"}}}
"""

LOG = rb"""17    1.000001 execve("/usr/bin/node", ["node"], 0x7ffd /* 9 vars */) = 0 <0.000100>
17    1.000002 write(2<pipe:[7]>, "listening\n", 10) = 10 <0.000010>
17    1.000003 write(1<pipe:[6]>, "Error: not this\n", 16) = 16 <0.000010>
17    1.000004 write(2<pipe:[7]>, "at x (y.js)\nTypeError: \"\303\244\" is\tundefined\n    at z\n", 48) = 48 <0.000010>
18    1.000005 write(2, "bye\n", 4) = 4 <0.000010>
18    1.000005 write(2, "throw new Error(x)\n  Error.capture(e)\n", 40) = 40 <0.000010>
17    1.000006 read(3</x>, "write(2, \"Error: text of a file\"", 32) = 32 <0.000010>
"""


def bundle(folder: Path, name: str, data: bytes) -> Path:
    path = folder / "open"
    path.mkdir(exist_ok=True)
    (path / name).write_bytes(zstandard.compress(data) if name.endswith(".zst") else data)
    return path


@pytest.mark.parametrize("name", ["mcp.jsonl", "mcp.jsonl.zst"])
def test_a_transcript_is_counted_by_method_with_its_lines(tmp_path: Path, name: str) -> None:
    session = session_of(bundle(tmp_path, name, TRANSCRIPT))
    assert session.asked == {"initialize": 1, "tools/list": 1, "tools/call": 3}
    assert session.answers == {
        "initialize": [Answer(3, failed=False)],
        "tools/list": [Answer(5, failed=False)],
        "tools/call": [Answer(9, failed=True, error="x"), Answer(10, failed=True, tool="a")],
    }
    assert (session.tools, session.good("tools/list"), session.good("tools/call")) == (["a", "b"], 1, 0)
    assert session.lines == 14


def test_a_bundle_without_transcript_is_an_empty_session(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    assert (session.asked, session.answers, session.tools, session.lines) == ({}, {}, [], 0)
    assert last_words(tmp_path) is None


@pytest.mark.parametrize("name", ["strace.log", "strace.log.zst"])
def test_the_last_error_on_standard_error_is_the_last_word(tmp_path: Path, name: str) -> None:
    assert last_words(bundle(tmp_path, name, LOG)) == ('TypeError: "ä" is\tundefined', 4)


def test_without_an_error_the_last_line_is(tmp_path: Path) -> None:
    lines = [line for line in LOG.splitlines(keepends=True) if b"TypeError" not in line]
    assert last_words(bundle(tmp_path, "strace.log", b"".join(lines))) == ("Error.capture(e)", 5)


def test_a_last_line_without_its_end_counts(tmp_path: Path) -> None:
    log = b"x" * 3_000_000 + b'\n17 1.0 write(2, "ab", 2) = 2'
    assert last_words(bundle(tmp_path, "strace.log.zst", log)) == ("ab", 2)


def test_a_place_names_run_file_and_line(tmp_path: Path) -> None:
    made = bundle(tmp_path, "mcp.jsonl.zst", TRANSCRIPT)
    assert place(made, "mcp.jsonl", 3) == "open/mcp.jsonl.zst:3"
    assert place(made, "strace.log", 1) == "open/strace.log:1"
