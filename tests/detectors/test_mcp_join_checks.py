"""Checks that join calls with acts: annotations that are denied, arguments that lead out of the root, breaches."""

import pytest
from text_sources import Bench, run, tool

from mcpdetect.correlate.calls import Calls
from mcpdetect.detectors.mcp_annotation_mismatch import McpAnnotationMismatch
from mcpdetect.detectors.mcp_path_escape import McpPathEscape
from mcpdetect.detectors.mcp_schema_conformance import McpSchemaConformance
from mcpdetect.model.event import Event, FileChange, FileOpen, FileOperation
from mcpdetect.model.mcp import McpMessage, McpTool
from mcpdetect.model.place import Where
from mcpdetect.model.sockets import SocketConnect
from mcpdetect.model.trace import Run

S = 1_000_000_000
ROOT = "/home/dev/project"


def call(at: int, tool_name: str = "t", arguments: str = "{}", end: int | None = None) -> list[Event]:
    begun = McpMessage(
        Where("mcp.jsonl", at),
        at * S,
        direction="c2s",
        form="request",
        method="tools/call",
        tool=tool_name,
        id=str(at),
        arguments=arguments,
    )
    if end is None:
        return [begun]
    ended = McpMessage(
        Where("mcp.jsonl", end), end * S, form="response", method="tools/call", tool=tool_name, text="done", answers=at
    )
    return [begun, ended]


def hinted(*hints: str, name: str = "t") -> McpTool:
    listed = tool("Shows.", name=name)
    listed.hints = list(hints)
    return listed


def wrote(
    path: str, at: int, operation: FileOperation = "write", fd: int | None = 3, error: str | None = None
) -> FileChange:
    return FileChange(
        Where("strace.log", at),
        at * S,
        operation,
        None if error else 1,
        error,
        operation=operation,
        path=path,
        fd=fd,
    )


def connected(address: str, at: int, port: int = 443) -> SocketConnect:
    return SocketConnect(Where("strace.log", at), at * S, "connect", 0, address=address, port=port)


def opened(path: str, at: int, written: str | None = None, flags: str = "O_RDONLY") -> FileOpen:
    return FileOpen(Where("strace.log", at), at * S, "openat", 3, None, path, True, "read", flags, 3, written=written)


def test_a_write_during_a_read_only_call_is_told_with_both_places() -> None:
    events = [hinted("readOnlyHint=true"), *call(10, end=20), wrote("/home/dev/notes.txt", 15)]
    (found,) = run(McpAnnotationMismatch, events)
    assert (found.title, found.level, found.where) == (
        "'t' says that it only reads, and its calls changed /home/dev/notes.txt",
        "suspicious",
        [Where("strace.log", 15), Where("mcp.jsonl", 10)],
    )
    assert (found.facts["hint"], found.facts["paths"], found.facts["operations"]) == (
        "readOnlyHint",
        ["/home/dev/notes.txt"],
        ["write"],
    )


@pytest.mark.parametrize(
    ("path", "level"),
    [
        ("/home/dev/.cache/t/x", "info"),
        ("/home/dev/.tool/settings.json", "info"),
        ("/tmp/x", "info"),
        ("/home/dev/.ssh/authorized_keys", "suspicious"),
        ("/home/dev/.config/autostart/x.desktop", "suspicious"),
        ("/home/dev/project/a.log", "info"),
    ],
)
def test_what_a_program_keeps_for_itself_is_information(path: str, level: str) -> None:
    (found,) = run(McpAnnotationMismatch, [hinted("readOnlyHint=true"), *call(10, end=20), wrote(path, 15)])
    assert found.level == level


def test_what_is_written_outside_of_calls_too_is_the_programs_own() -> None:
    events = [hinted("readOnlyHint=true"), *call(10, end=20), wrote("/data/x", 5), wrote("/data/x", 15)]
    (found,) = run(McpAnnotationMismatch, events)
    assert found.level == "info"


@pytest.mark.parametrize(
    "act",
    [
        wrote("/home/dev/notes.txt", 25),
        wrote("/home/dev/notes.txt", 15, fd=2),
        wrote("pipe:[3]", 15),
        wrote("/etc/hostname", 15, error="EACCES"),
        connected("203.0.113.7", 15),
    ],
    ids=["after the call", "standard error", "a pipe", "refused", "a connection"],
)
def test_other_acts_contradict_no_read_only_hint(act: Event) -> None:
    assert run(McpAnnotationMismatch, [hinted("readOnlyHint=true"), *call(10, end=20), act]) == []


@pytest.mark.parametrize(
    ("address", "port", "count"), [("203.0.113.7", 443, 1), ("127.0.0.1", 443, 0), ("203.0.113.7", 0, 0)]
)
def test_a_connection_during_a_closed_call_is_told(address: str, port: int, count: int) -> None:
    found = run(McpAnnotationMismatch, [hinted("openWorldHint=false"), *call(10, end=20), connected(address, 15, port)])
    assert [one.title for one in found] == [
        f"'t' says that its world is closed, and during its call {address} was contacted"
    ] * count


def test_of_calls_that_overlap_each_must_deny_the_act() -> None:
    tools = [hinted("readOnlyHint=true"), hinted(name="w")]
    events = [*tools, *call(10, end=20), *call(12, "w", end=18), wrote("/home/dev/x", 15), wrote("/home/dev/y", 19)]
    assert [one.facts["paths"] for one in run(McpAnnotationMismatch, events)] == [["/home/dev/y"]]


def test_without_annotated_calls_nothing_is_claimed() -> None:
    bench = Bench()
    run(McpAnnotationMismatch, [hinted(), *call(10, end=20)], bench)
    assert [(one.what, one.hides) for one in bench.limits] == [("not-annotated", True)]


def rooted(*target: str) -> Bench:
    return Bench(run=Run(target=["/usr/bin/node", *target]))


def escaped(events: list[Event], bench: Bench | None = None) -> list[tuple[object, object, object]]:
    found = run(McpPathEscape, events, bench or rooted("/srv/server.js", ROOT))
    return [(one.facts["argument"], one.facts["path"], one.facts["link"]) for one in found]


@pytest.mark.parametrize(
    ("argument", "path", "written", "found"),
    [
        ("../.npmrc", "/home/dev/.npmrc", None, [("/home/dev/.npmrc", "/home/dev/.npmrc", False)]),
        ("/etc/hostname", "/etc/hostname", None, [("/etc/hostname", "/etc/hostname", False)]),
        ("home/.netrc", "/home/dev/.netrc", f"{ROOT}/home/.netrc", [(f"{ROOT}/home/.netrc", "/home/dev/.netrc", True)]),
        (
            "../project-old/a",
            "/home/dev/project-old/a",
            None,
            [("/home/dev/project-old/a", "/home/dev/project-old/a", False)],
        ),
        ("notes.txt", f"{ROOT}/notes.txt", None, []),
        ("notes.txt", "/home/dev/.npmrc", None, []),
        ("../x", "/usr/lib/x", None, []),
    ],
)
def test_what_an_argument_leads_to(
    argument: str, path: str, written: str | None, found: list[tuple[str, str, bool]]
) -> None:
    events = [*call(10, arguments=f'{{"p":["{argument}"]}}', end=20), opened(path, 15, written)]
    assert escaped(events) == found


def test_a_file_opened_at_another_time_was_not_led_to() -> None:
    events = [
        *call(10, arguments='{"p":"../.npmrc"}', end=20),
        opened("/home/dev/.npmrc", 5),
        opened("/home/dev/.npmrc", 23),
    ]
    assert escaped(events) == []


def test_roots_of_the_client_count() -> None:
    roots = McpMessage(
        Where("mcp.jsonl", 3), 3, direction="c2s", form="response", method="roots/list", text=f"file://{ROOT}"
    )
    events = [roots, *call(10, arguments='{"p":"../.npmrc"}', end=20), opened("/home/dev/.npmrc", 15)]
    assert escaped(events, rooted("/srv/server.js")) == [("/home/dev/.npmrc", "/home/dev/.npmrc", False)]


def test_without_a_root_or_a_call_nothing_is_claimed() -> None:
    for bench, events, what in (
        (rooted("/srv/server.js"), call(10, end=20), "no-root"),
        (rooted("/srv/server.js", ROOT), [], "no-calls"),
        # the script itself, opened to be read, is no root
        (rooted("/srv/bin/server"), [opened("/srv/bin/server", 1), *call(10, end=20)], "no-root"),
    ):
        assert escaped(events, bench) == []
        assert [(one.what, one.hides) for one in bench.limits] == [(what, True)]


def test_breaches_and_noise_are_told_as_information() -> None:
    listed = tool("x")
    listed.breaches = ["/inputSchema is missing"]
    noise = McpMessage(Where("m", 1), 1, form="noise", text="server ready")
    wrong = McpMessage(
        Where("m", 2), 2, form="response", method="tools/call", tool="t", breaches=["/result/content is no list"]
    )
    asked = McpMessage(Where("m", 3), 3, direction="c2s", form="request", method="ping", breaches=["/id is missing"])
    assert [(one.title, one.level) for one in run(McpSchemaConformance, [listed, noise, wrong, asked])] == [
        ("the tool 't': /inputSchema is missing", "info"),
        ("standard output: carries a line that is no message", "info"),
        ("an answer to tools/call (t): /result/content is no list", "info"),
    ]


def test_calls_are_known_by_time_and_by_the_first_channel_that_speaks_of_them() -> None:
    calls = Calls(Run())
    overheard = call(11, "t", end=19)
    for event in overheard:
        event.seen_in = "syscalls"  # type: ignore[attr-defined]
    for event in [*call(10, end=20), *overheard, *call(30, "late")]:
        calls.on_event(event)
    assert [(one.tool, one.begin_ns, one.end_ns) for one in calls.calls] == [
        ("t", 10 * S, 20 * S),
        ("late", 30 * S, None),
    ]
    assert [[one.tool for one in calls.during(at)] for at in (9 * S, 10 * S, 20 * S, 21 * S, 40 * S)] == [
        [],
        ["t"],
        ["t"],
        [],
        ["late"],
    ]
    assert calls.during(None) == []
    assert [[one.tool for one in calls.during(at, 2 * S)] for at in (22 * S, 23 * S)] == [["t"], []]


def test_calls_beyond_all_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpdetect.correlate.calls.MAX_CALLS", 2)
    calls = Calls(Run())
    for number in (10, 20, 30):
        for event in call(number, end=number + 1):
            calls.on_event(event)
    assert ([one.begin_ns for one in calls.calls], calls.dropped) == ([10 * S, 20 * S], 1)
