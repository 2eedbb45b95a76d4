"""Explanations: habits, callers, operators, launchers; and what must not be explained away."""

from __future__ import annotations

import json

import pytest
from hand_sources import where
from made_events import MS, S, execed, opened

from mcpdetect.correlate.calls import Calls, strings_of
from mcpdetect.correlate.explain import Explanations, level_with
from mcpdetect.correlate.processes import Processes
from mcpdetect.model.event import Event, FileProbe, ProcessStart
from mcpdetect.model.mcp import McpMessage
from mcpdetect.model.place import Where
from mcpdetect.model.result import Explanation
from mcpdetect.model.trace import Run

NODE = "/usr/bin/node"
PYTHON = "/usr/bin/python3"
LIBS = "/usr/lib/python3/site-packages"


def met(*events: Event, run: Run | None = None) -> Explanations:
    run = run or Run()
    processes, calls = Processes(run), Calls(run)
    explanations = Explanations(run, processes, calls)
    for event in events:
        for fact in (processes, calls, explanations):
            if event.kind in fact.kinds:
                fact.on_event(event)
    return explanations


def rules(found: list[Explanation]) -> list[str]:
    return [item.rule for item in found]


def of_file(
    explanations: Explanations, path: str, *, process: str = "7", t: int = 5 * S, written: str | None = None
) -> list[str]:
    return rules(explanations.of_file(path, process, t, written))


def call(number: int, tool: str, arguments: str | None, *, t: int = 4 * S) -> McpMessage:
    return McpMessage(
        Where("mcp.jsonl", number, unit="message"), t, direction="c2s", form="request", method="tools/call", tool=tool,
        arguments=arguments,
    )  # fmt: skip


def response(number: int, answers: int, *, t: int) -> McpMessage:
    place = Where("mcp.jsonl", number, unit="message")
    return McpMessage(
        place, t, direction="s2c", form="response", method="tools/call",
        answers=answers,
    )  # fmt: skip


def probed(line: int, path: str, process: str = "7") -> FileProbe:
    return FileProbe(where(line), S, "newfstatat", None, "ENOENT", operation="stat", path=path, process=process)


HABITS = [
    ("dotenv, relative path", [execed(1, PYTHON)], "/home/u/project/.env", ".env", ["dotenv-search"]),
    (
        "dotenv, library",
        [execed(1, NODE), opened(2, "/srv/node_modules/dotenv/lib/main.js")],
        "/srv/.env",
        "/srv/.env",
        ["dotenv-search"],
    ),
    ("dotenv, nothing", [execed(1, NODE)], "/srv/.env", "/srv/.env", []),
    (
        "netrc, requests",
        [execed(1, PYTHON), opened(2, f"{LIBS}/requests/utils.py")],
        "/home/u/.netrc",
        None,
        ["netrc-by-http-library"],
    ),
    ("netrc, curl", [execed(1, "/usr/bin/curl")], "/home/u/.netrc", None, ["netrc-by-http-library"]),
    ("netrc, cat", [execed(1, "/bin/cat")], "/home/u/.netrc", None, []),
    (
        "npmrc, npm",
        [execed(1, NODE), opened(2, "/usr/lib/node_modules/npm/bin/npm-cli.js")],
        "/home/u/.npmrc",
        None,
        ["npm-configuration"],
    ),
    ("npmrc, some script", [execed(1, NODE), opened(2, "/srv/server.js")], "/home/u/.npmrc", None, []),
    (
        "aws, botocore",
        [execed(1, PYTHON), opened(2, f"{LIBS}/botocore/session.py")],
        "/home/u/.aws/credentials",
        None,
        ["aws-credential-chain"],
    ),
    (
        "aws, a library of somebody else",
        [execed(1, PYTHON), opened(2, f"{LIBS}/requests/utils.py")],
        "/home/u/.aws/credentials",
        None,
        [],
    ),
    ("ps", [execed(1, "/usr/bin/ps")], "/proc/36/environ", None, ["process-listing"]),
    ("history, shell", [execed(1, "/bin/bash")], "/home/u/.bash_history", None, ["interactive-shell"]),
]


@pytest.mark.parametrize(("row", "events", "path", "written", "expected"), HABITS, ids=[row[0] for row in HABITS])
def test_habits_explain_what_they_are_about_and_nothing_else(
    row: str, events: list[Event], path: str, written: str | None, expected: list[str]
) -> None:
    assert of_file(met(*events), path, written=written) == expected


def test_a_library_that_could_not_be_opened_was_not_used() -> None:
    events = [execed(1, NODE), opened(2, "/srv/node_modules/dotenv/lib/main.js", error="ENOENT")]
    assert of_file(met(*events), "/srv/.env", written="/srv/.env") == []


def test_what_a_program_loaded_is_gone_when_another_begins() -> None:
    npx = [execed(1, NODE, "npx"), opened(2, "/usr/lib/node_modules/npm/bin/npx-cli.js")]
    assert of_file(met(*npx), "/home/u/.npmrc") == ["npm-configuration"]
    assert of_file(met(*npx, execed(3, NODE, "server.js")), "/home/u/.npmrc") == []


def test_a_launcher_above_the_server_explains_nothing_of_the_servers() -> None:
    shell = execed(1, "/bin/bash", process="6")
    npx = [execed(2, NODE, process="6"), opened(3, "/usr/lib/node_modules/npm/bin/npx-cli.js", process="6")]
    server = execed(4, NODE, "server.js", process="7", parent="6")
    explanations = met(shell, *npx, server)
    assert of_file(explanations, "/home/u/.npmrc") == []
    assert of_file(explanations, "/home/u/.bash_history") == []


def test_a_worker_without_exec_shares_what_its_parent_loaded() -> None:
    parent = [execed(1, PYTHON, process="6"), opened(2, f"{LIBS}/dotenv/main.py", process="6")]
    child = ProcessStart(where(3), S, "clone", 7, how="clone", process="7", parent="6")
    assert of_file(met(*parent, child), "/srv/.env", written="/srv/.env") == ["dotenv-search"]


def test_children_of_npm_count_as_npm() -> None:
    events = [execed(1, "/usr/bin/pnpm", process="6"), execed(2, "/bin/sh", process="7", parent="6")]
    assert of_file(met(*events), "/home/u/.npmrc") == ["npm-configuration"]


def test_an_upward_search_for_a_dotenv_file_is_told_by_the_looks_below() -> None:
    looks = [probed(1, "/home/u/work/srv/.env"), probed(2, "/home/u/work/.env"), probed(3, "/home/u/.env")]
    assert of_file(met(*looks), "/home/u/.env", written="/home/u/.env") == ["dotenv-upward-search"]
    assert of_file(met(looks[2]), "/home/u/.env", written="/home/u/.env") == []
    assert of_file(met(probed(1, "/home/user2/.env")), "/home/u/.env", written="/home/u/.env") == []
    assert of_file(met(probed(1, "/home/u/work/.env", "8")), "/home/u/.env", written="/home/u/.env") == []
    assert of_file(met(*looks), "/home/u/.netrc") == []


@pytest.mark.parametrize(
    ("arguments", "path", "explained"),
    [
        ('{"path": "/home/u/project/.env"}', "/home/u/project/.env", True),
        ('{"path": "/home/u/project"}', "/home/u/project/.env", True),
        ('{"a": {"b": ["file:///home/u/project/"]}}', "/home/u/project/.env", True),
        ('{"path": "project/.env"}', "/home/u/project/.env", True),
        ('{"path": "./project/.env"}', "/home/u/project/.env", True),
        ('{"path": "/home"}', "/home/u/project/.env", False),
        ('{"path": "/"}', "/home/u/project/.env", False),
        ('{"path": "env"}', "/home/u/project/.env", False),
        ('{"path": "/home/u/proj"}', "/home/u/project/.env", False),
        ('{"path": ""}', "/home/u/project/.env", False),
        ('{"n": 1, "ok": true, "none": null}', "/home/u/project/.env", False),
        (None, "/home/u/project/.env", False),
    ],
)
def test_a_file_that_the_caller_named_is_explained(arguments: str | None, path: str, explained: bool) -> None:
    found = met(call(3, "read_file", arguments)).of_file(path, "7", 5 * S, path)
    assert rules(found) == (["caller-argument"] if explained else [])
    assert [item.source for item in found] == (["mcp.jsonl#3"] if explained else [])


def test_a_call_explains_only_while_it_runs_and_a_moment_after() -> None:
    explanations = met(call(1, "read", '{"path": "/home/u/.netrc"}', t=4 * S), response(2, 1, t=5 * S))
    times = [3 * S, 4 * S, 6 * S, 7 * S, 7 * S + MS]
    assert [of_file(explanations, "/home/u/.netrc", t=t) for t in times] == [
        [],
        ["caller-argument"],
        ["caller-argument"],
        ["caller-argument"],
        [],
    ]
    assert explanations.of_file("/home/u/.netrc", "7", None, None) == []


@pytest.mark.parametrize(
    ("argument", "explained"),
    [
        ("https://api.test/x", True),
        ("see API.test.", True),
        ("me@api.test", True),
        ("https://api.test.evil.example/", False),
        ("notapi.test", False),
        ("my-api.test", False),
        ("x.api.test", False),
    ],
)
def test_a_host_that_the_caller_named_is_explained_as_a_whole_word(argument: str, explained: bool) -> None:
    found = met(call(3, "fetch", f'{{"url": "{argument}"}}')).of_destination(
        "203.0.113.7", 443, ["api.test"], "7", 5 * S
    )
    assert rules(found) == (["caller-argument"] if explained else [])


def test_what_came_before_the_call_was_not_asked_for_by_it() -> None:
    explanations = met(call(3, "fetch", '{"url": "https://203.0.113.7/"}', t=60 * S))
    assert explanations.of_destination("203.0.113.7", 443, [], "7", 5 * S) == []
    assert rules(explanations.of_destination("203.0.113.7", 443, [], "7", 61 * S)) == ["caller-argument"]
    assert rules(explanations.of_destination("203.0.113.7", 443, [], "7")) == ["caller-argument"]


def test_the_operators_command_line_explains_but_not_the_programs_own_name() -> None:
    run = Run(target=["/srv/api.test/server", "--db", "postgres://db.test:5432/x", "/data"])
    explanations = met(run=run)
    assert rules(explanations.of_destination("203.0.113.7", 5432, ["db.test"], "7")) == ["operator-argument"]
    assert explanations.of_destination("203.0.113.7", 443, ["api.test"], "7") == []
    assert of_file(explanations, "/data/.env", written="/data/.env") == ["operator-argument"]


@pytest.mark.parametrize(
    ("address", "port", "program", "expected"),
    [
        ("169.254.169.254", 80, NODE, ["cloud-metadata-probe"]),
        ("fd00:ec2::254", 80, NODE, ["cloud-metadata-probe"]),
        ("2001:4860:4860::8888", 443, "/opt/chrome/chrome", ["browser-reachability-probe"]),
        ("8.8.8.8", 53, "/usr/lib/chromium/chromium", ["browser-reachability-probe"]),
        ("8.8.8.8", 53, NODE, []),
        ("203.0.113.7", 443, "/opt/chrome/chrome", []),
        ("fe80::1%eth0", 443, NODE, []),
    ],
)
def test_probes_of_clouds_and_browsers_are_known(address: str, port: int, program: str, expected: list[str]) -> None:
    assert rules(met(execed(1, program)).of_destination(address, port, [], "7")) == expected


def test_a_helper_of_a_browser_counts_as_the_browser() -> None:
    helper = execed(2, "/proc/self/exe", process="7", parent="6")
    explanations = met(execed(1, "/opt/chrome/chrome", process="6"), helper)
    assert rules(explanations.of_destination("8.8.8.8", 53, [], "7")) == ["browser-reachability-probe"]


def test_what_happened_before_the_entry_is_the_launchers() -> None:
    run = Run(entry="/srv/server")
    explanations = met(execed(1, NODE, t=S), execed(2, "/srv/server", t=10 * S), run=run)
    assert of_file(explanations, "/home/u/.netrc", t=5 * S) == ["launcher"]
    assert of_file(explanations, "/home/u/.netrc", t=11 * S) == []
    assert rules(explanations.of_destination("203.0.113.7", 443, [], "7", 5 * S)) == ["launcher"]


def test_an_entry_that_never_began_makes_nobody_a_launcher() -> None:
    explanations = met(execed(1, NODE, t=S), run=Run(entry="/no/such/server"))
    assert of_file(explanations, "/home/u/.netrc", t=5 * S) == []


@pytest.mark.parametrize("arguments", ["{not json", "[" * 100_000, '{"path": "/home/u/.net'])
def test_arguments_that_are_no_json_are_taken_as_text(arguments: str) -> None:
    assert strings_of(arguments) == [arguments]


def test_the_strings_of_arguments_come_in_their_order_without_keys() -> None:
    assert strings_of('{"a": ["x", {"b": "y", "n": 1}], "c": "z"}') == ["x", "y", "z"]
    assert strings_of(None) == []
    assert len(strings_of(json.dumps(["x"] * 1200))) == 1000


def test_a_level_is_info_as_soon_as_something_explains() -> None:
    assert level_with([]) == "suspicious"
    assert level_with([], otherwise="accusing") == "accusing"
    assert level_with([Explanation("r", "t", "s")], otherwise="accusing") == "info"


def test_explanations_without_processes_are_a_fault_of_the_caller() -> None:
    with pytest.raises(TypeError, match="Explanations reads Processes"):
        Explanations(Run(), met(), met())
