"""MCP overheard on standard input and output in a log of system calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strace_tools import NAME, shown

from mcpdetect.ingest.adapter import CARRIERS, OVERHEARD
from mcpdetect.ingest.evidence import Evidence
from mcpdetect.ingest.mcp import McpTranscript
from mcpdetect.ingest.strace import StraceLog
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import channel_of
from mcpdetect.model.mcp import McpTool
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

HELLO = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
WELCOME = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}'
LIST = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
LISTED = '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"add","description":"Adds."}]}}'
CALL = '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}'
CALLED = '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"2"}]}}'
TALK = (("c2s", HELLO), ("s2c", WELCOME), ("c2s", LIST), ("s2c", LISTED), ("c2s", CALL), ("s2c", CALLED))
IN, OUT = "0<pipe:[71]>", "1<pipe:[72]>"


def quoted(text: str, cut: bool = False) -> str:
    """Return text as strace writes a string."""
    return json.dumps(text, ensure_ascii=False) + ("..." if cut else "")


def reading(text: str, fd: str = IN, size: int | None = None, cut: bool = False) -> str:
    """Return a read of text."""
    return f"read({fd}, {quoted(text, cut)}, 65536) = {len(text) if size is None else size}"


def writing(text: str, fd: str = OUT, size: int | None = None, cut: bool = False) -> str:
    """Return a write of text."""
    size = len(text) if size is None else size
    return f"write({fd}, {quoted(text, cut)}, {size}) = {size}"


def log(*calls: str, pid: int = 9) -> str:
    """Return a log of one process; a call that begins with a number has its own pid."""
    lines = [f'{pid} 100.000000 execve("/srv/s", ["s"], 0x7ffd /* 1 var */) = 0']
    for number, call in enumerate(calls, 1):
        own = call if call[0].isdigit() else f"{pid} {call}"
        owner, _, rest = own.partition(" ")
        lines.append(f"{owner} {1796000000 + number}.000000 {rest}")
    lines.append(f"{pid} {1796000000 + len(calls) + 1}.000000 exit_group(0) = ?")
    lines.append(f"{pid} {1796000000 + len(calls) + 1}.000001 +++ exited with 0 +++")
    return "".join(f"{line}\n" for line in lines)


def talk(pairs: tuple[tuple[str, str], ...] = TALK, ins: str = IN, outs: str = OUT) -> list[str]:
    """Return the calls of a conversation, one message a call."""
    return [
        reading(f"{text}\n", ins) if direction == "c2s" else writing(f"{text}\n", outs) for direction, text in pairs
    ]


def overheard(folder: Path, text: str, wanted: frozenset[str] | None = None) -> tuple[list[Event], Observation]:
    """Return the MCP events of a log, and what it could show."""
    path = folder / NAME
    path.write_text(text, encoding="utf-8")
    adapter = StraceLog(path, NAME)
    events = [event for event in adapter.events(wanted) if event.kind in OVERHEARD]
    assert all(channel_of(event) == "syscalls" for event in events)
    return events, adapter.observation


def lines_of(events: list[Event]) -> list[str]:
    """Return events as lines, without times and the words that all have."""
    found = []
    for event in events:
        event.t_ns = None
        found.append(shown(event).replace(" process='9'", "").replace(" seen_in='syscalls'", ""))
    return found


def hiding(observation: Observation) -> list[tuple[str, int]]:
    """Return the losses that hide tools."""
    return [
        (loss.what, loss.count)
        for loss in observation.losses
        if not loss.note and (not loss.touches or "mcp.tool" in loss.touches)
    ]


def test_a_conversation_is_read_with_the_lines_of_its_calls_as_places(tmp_path: Path) -> None:
    events, observation = overheard(tmp_path, log(*talk()))
    assert [line.partition("digest=")[0] + "digest=" * ("digest=" in line) for line in lines_of(events)] == [
        "mcp.message@2 direction='c2s' method='initialize' id='1'",
        (
            "mcp.message@3 form='response' method='initialize' id='1' answers=2 "
            "breaches=['/result/serverInfo/name is no string', '/result/serverInfo/version is no string']"
        ),
        "mcp.message@4 direction='c2s' method='tools/list' id='2'",
        "mcp.message@5 form='response' method='tools/list' id='2' answers=4",
        (
            "mcp.tool@5 name='add' texts=[McpText(pointer='/name', text='add'), "
            "McpText(pointer='/description', text='Adds.')] digest="
        ),
        "mcp.message@6 direction='c2s' method='tools/call' id='3' tool='add' arguments='{\"a\":1}'",
        "mcp.message@7 form='response' method='tools/call' id='3' answers=6 tool='add' text='2'",
    ]
    assert (observation.watches["mcp.message"], observation.watches["mcp.tool"]) == ("inferred", "inferred")
    assert hiding(observation) == []
    assert (observation.counts["mcp-messages"], observation.counts["mcp-tools"]) == (6, 1)


def test_it_is_what_a_transcript_of_the_same_conversation_gives(tmp_path: Path) -> None:
    events, _ = overheard(tmp_path, log(*talk()))
    path = tmp_path / "mcp.jsonl"
    path.write_text("".join(f'{{"t":1,"dir":"{way}","msg":{text}}}\n' for way, text in TALK))
    heard = []
    for event in McpTranscript(path, NAME).events(OVERHEARD):
        event.t_ns = None
        heard.append(event)
    for event in events:
        event.t_ns, event.process, event.seen_in = None, None, "mcp"  # type: ignore[attr-defined]
        event.where = Where(NAME, event.where.at - 1)
        if getattr(event, "answers", None):
            event.answers -= 1  # type: ignore[attr-defined]
    assert events == heard
    assert len(events) == 7


def test_messages_are_cut_at_line_ends_not_at_calls(tmp_path: Path) -> None:
    said = "".join(f"{text}\n" for way, text in TALK if way == "s2c")
    asked = "".join(f"{text}\n" for way, text in TALK if way == "c2s")
    whole, _ = overheard(tmp_path, log(reading(asked), writing(said)))
    for size in (1, 7, 64):
        calls = [reading(asked[at : at + size]) for at in range(0, len(asked), size)]
        calls += [writing(said[at : at + size]) for at in range(0, len(said), size)]
        pieces, observation = overheard(tmp_path, log(*calls))
        assert any(event.where.end is not None for event in pieces)
        for one in (*whole, *pieces):
            one.t_ns = one.where = None  # type: ignore[assignment]
            if hasattr(one, "answers"):
                one.answers = None
        assert pieces == whole
        assert hiding(observation) == []


@pytest.mark.parametrize(
    ("ins", "outs"),
    [
        ("0", "1"),
        ("0<UNIX-STREAM:[7->8]>", "1<UNIX-STREAM:[9->10]>"),
        ("0</dev/pts/3<char 136:3>>", "1</tmp/out>"),
        ("0<socket:[7]>", "1<socket:[9]>"),
    ],
)
def test_standard_streams_of_every_sort_are_heard(tmp_path: Path, ins: str, outs: str) -> None:
    events, observation = overheard(tmp_path, log(*talk(ins=ins, outs=outs)))
    assert len(events) == 7
    assert hiding(observation) == []


def test_vectors_messages_and_sends_carry_it_as_well(tmp_path: Path) -> None:
    half = len(LISTED) // 2
    a, b = LISTED[:half], LISTED[half:] + "\n"
    calls = talk(TALK[:3], "0<UNIX-STREAM:[7->8]>", "1<UNIX-STREAM:[9->10]>")
    vector = f"[{{iov_base={quoted(a)}, iov_len={len(a)}}}, {{iov_base={quoted(b)}, iov_len={len(b)}}}]"
    ways = [
        f"writev(1<UNIX-STREAM:[9->10]>, {vector}, 2) = {len(a + b)}",
        (
            f"sendmsg(1<UNIX-STREAM:[9->10]>, {{msg_name=NULL, msg_namelen=0, msg_iov={vector}, msg_iovlen=2, "
            f"msg_controllen=0, msg_flags=0}}, 0) = {len(a + b)}"
        ),
        f"sendto(1<UNIX-STREAM:[9->10]>, {quoted(a + b)}, {len(a + b)}, 0, NULL, 0) = {len(a + b)}",
    ]
    for way in ways:
        events, observation = overheard(tmp_path, log(*calls, way))
        assert [event.kind for event in events] == ["mcp.message"] * 4 + ["mcp.tool"], way
        assert hiding(observation) == []


def test_a_peek_is_not_heard_twice(tmp_path: Path) -> None:
    fd = "0<UNIX-STREAM:[7->8]>"
    text = f"{HELLO}\n"
    calls = [
        f"recvfrom({fd}, {quoted(text)}, 4096, MSG_PEEK, NULL, NULL) = {len(text)}",
        f"recvfrom({fd}, {quoted(text)}, 4096, 0, NULL, NULL) = {len(text)}",
    ]
    assert len(overheard(tmp_path, log(*calls))[0]) == 1


def test_a_failed_call_and_a_short_write_say_what_passed(tmp_path: Path) -> None:
    text = f"{LISTED}\n"
    calls = [
        *talk(TALK[:3]),
        f"write({OUT}, {quoted(text)}, {len(text)}) = -1 EAGAIN (Resource temporarily unavailable)",
        f"write({OUT}, {quoted(text)}, {len(text)}) = 30",
        f"write({OUT}, {quoted(text[30:])}, {len(text) - 30}) = {len(text) - 30}",
    ]
    events, observation = overheard(tmp_path, log(*calls))
    assert [event.kind for event in events] == ["mcp.message"] * 4 + ["mcp.tool"]
    assert (events[4].where.at, events[4].where.end) == (6, 7)
    assert hiding(observation) == []


def test_a_cut_string_hides_its_message_and_the_line_after_it(tmp_path: Path) -> None:
    text = f"{LISTED}\n"
    calls = [*talk(TALK[:3]), writing(text[:32], size=len(text), cut=True), *talk(TALK[4:]), writing(f"{CALLED}\n")]
    events, observation = overheard(tmp_path, log(*calls))
    assert lines_of(events)[3:] == [
        "mcp.message@6 direction='c2s' method='tools/call' id='3' tool='add' arguments='{\"a\":1}'",
        "mcp.message@8 form='response' method='tools/call' id='3' answers=6 tool='add' text='2'",
    ]
    assert "mcp.tool" not in observation.watches
    assert dict(hiding(observation)) == {"string-cut": 1, "not-listed": 1, "listing-incomplete": 1}


def test_a_listing_after_which_something_is_cut_is_no_clean_listing(tmp_path: Path) -> None:
    cut = writing(CALLED[:32], size=len(CALLED) + 1, cut=True)
    _, observation = overheard(tmp_path, log(*talk(TALK[:5]), cut))
    assert observation.watches["mcp.tool"] == "inferred"
    assert hiding(observation) == [("string-cut", 1)]


def test_a_log_of_short_strings_watches_nothing(tmp_path: Path) -> None:
    calls = [
        call(f"{text}\n"[:32], size=len(text) + 1, cut=True)
        for way, text in TALK
        for call in [reading if way == "c2s" else writing]
    ]
    events, observation = overheard(tmp_path, log(*calls))
    assert events == []
    assert not OVERHEARD & observation.watches.keys()


def test_what_a_child_says_into_a_pipe_of_its_parent_is_apart(tmp_path: Path) -> None:
    calls = [
        "pipe2([3<pipe:[80]>, 4<pipe:[80]>], 0) = 0",
        "clone(child_stack=NULL, flags=SIGCHLD) = 10",
        "10 dup2(4<pipe:[80]>, 1<pipe:[72]>) = 1<pipe:[80]>",
        *(f"10 {call}" for call in talk(TALK, outs="1<pipe:[80]>") if call.startswith("write")),
    ]
    events, observation = overheard(tmp_path, log(*calls))
    assert events == []
    assert not OVERHEARD & observation.watches.keys()


def test_a_child_that_inherits_the_streams_is_the_server(tmp_path: Path) -> None:
    calls = ["clone(child_stack=NULL, flags=SIGCHLD) = 10", *(f"10 {call}" for call in talk())]
    events, _ = overheard(tmp_path, log(*calls))
    assert [event.process for event in events] == ["10"] * 7


def test_a_duplicate_of_a_stream_is_the_stream(tmp_path: Path) -> None:
    calls = [
        f"dup({IN}) = 20{IN[1:]}",
        f"dup({OUT}) = 21{OUT[1:]}",
        *talk(ins=f"20{IN[1:]}", outs=f"21{OUT[1:]}"),
    ]
    events, observation = overheard(tmp_path, log(*calls))
    assert len(events) == 7
    assert hiding(observation) == []


def test_a_program_that_speaks_no_json_is_not_overheard(tmp_path: Path) -> None:
    calls = [writing("Hello.\n"), writing('{"level":"info"}\n'), writing('{"method":"x"}\n'), reading("ls\n")]
    events, observation = overheard(tmp_path, log(*calls))
    assert events == []
    assert not OVERHEARD & observation.watches.keys()
    assert hiding(observation) == []


def test_noise_between_messages_is_told_and_a_broken_message_is_counted(tmp_path: Path) -> None:
    events, observation = overheard(tmp_path, log(*talk(TALK[:2]), writing("ready\n"), writing('{"jsonrpc":\n')))
    assert lines_of(events)[2] == "mcp.message@4 form='noise' text='ready'"
    assert hiding(observation) == [("unparsed", 1), ("not-listed", 1)]


def test_bytes_copied_without_a_buffer_leave_a_hole(tmp_path: Path) -> None:
    copy = f"sendfile({OUT}, 5</srv/answer.json>, NULL, 100) = 100"
    events, observation = overheard(tmp_path, log(*talk(TALK[:5]), copy, *talk(TALK[5:])))
    assert len(events) == 6
    assert hiding(observation) == [("string-cut", 1)]


def test_a_lost_half_of_a_write_hides_tools(tmp_path: Path) -> None:
    calls = [*talk(TALK[:5]), f"write({OUT}, {quoted(CALLED)}, 70 <unfinished ...>", "getpid() = 9"]
    _, observation = overheard(tmp_path, log(*calls))
    assert "unfinished" in dict(hiding(observation))


def test_a_message_without_an_end_is_not_invented(tmp_path: Path) -> None:
    events, observation = overheard(tmp_path, log(*talk(TALK[:3]), writing(LISTED)))
    assert [event.kind for event in events] == ["mcp.message"] * 3
    assert ("file-truncated", 1) in hiding(observation)


def test_it_is_overheard_only_where_the_calls_that_carry_it_are_wanted(tmp_path: Path) -> None:
    text = log(*talk())
    assert overheard(tmp_path, text, OVERHEARD)[0] == []
    assert "mcp.tool" not in overheard(tmp_path, text, OVERHEARD)[1].watches
    assert len(overheard(tmp_path, text, OVERHEARD | CARRIERS)[0]) == 7
    assert overheard(tmp_path, text, CARRIERS)[0] == []


def test_a_run_asks_for_the_carriers_and_hands_on_only_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(log(*talk()))
    run = Evidence(Run("r"), [StraceLog(tmp_path / NAME, NAME)])
    assert [event.kind for event in run.events(frozenset({"mcp.tool"}))] == ["mcp.tool"]
    assert run.observations()[0].watches["mcp.tool"] == "inferred"


@pytest.mark.parametrize("wanted", [None, OVERHEARD, OVERHEARD | CARRIERS])
def test_a_transcript_wins_over_what_is_overheard(tmp_path: Path, wanted: frozenset[str] | None) -> None:
    (tmp_path / NAME).write_text(log(*talk()))
    (tmp_path / "m").write_text("".join(f'{{"t":1,"dir":"{way}","msg":{text}}}\n' for way, text in TALK))
    run = Evidence(Run("r"), [StraceLog(tmp_path / NAME, NAME), McpTranscript(tmp_path / "m", "m")])
    tools = [event for event in run.events(wanted) if isinstance(event, McpTool)]
    assert [(event.where.file, event.seen_in) for event in tools] == [("m", "mcp")]
    assert "mcp.tool" not in run.observations()[0].watches


def test_every_cut_of_a_log_gives_a_beginning_of_the_whole(tmp_path: Path) -> None:
    text = log(*talk())
    whole = [shown(event) for event in overheard(tmp_path, text)[0]]
    tried = 0
    for end in range(150, len(text), 9):
        cut = [shown(event) for event in overheard(tmp_path, text[:end])[0]]
        assert cut == whole[: len(cut)]
        tried += 1
    assert tried > 80


@given(pieces=st.lists(st.tuples(st.booleans(), st.binary(max_size=40), st.integers(0, 60)), max_size=12))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_in_any_pieces_make_no_message_that_was_not_said(
    tmp_path: Path, pieces: list[tuple[bool, bytes, int]]
) -> None:
    calls = [reading(f"{HELLO}\n")]
    for out, data, size in pieces:
        body = "".join(f"\\{byte:03o}" for byte in data)
        name, fd = ("write", OUT) if out else ("read", IN)
        calls.append(f'{name}({fd}, "{body}"{"..." if size > len(data) else ""}, 99) = {size}')
    events, _ = overheard(tmp_path, log(*calls))
    said = [event for event in events if getattr(event, "form", "noise") != "noise"]
    assert [event.where.at for event in said] == [2]
