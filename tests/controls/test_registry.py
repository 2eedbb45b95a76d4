"""The registry of audited servers: its rows, what changed, what is withheld, its schema, and the page made of it."""

import datetime
import json
import runpy
from pathlib import Path

import jsonschema
import pytest

from controls.asked import Asked, Denied
from controls.auditing import Audit, Step
from controls.recorder.errors import RecorderError
from controls.registry import Registry, load, registry_schema, update
from controls.registrypage import registry_page
from controls.serverlist import Server
from controls.servers import resolved_digest
from controls.sessions import Answer, Session
from mcpdetect.model.result import CheckResult, Finding, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level
from mcpdetect.version import VERSION

ROOT = Path(__file__).parents[2]
DAY = datetime.date(2026, 12, 1)


def audited(ok: bool = True, level: Level = "info", version: str = "1.0") -> Audit:
    found = Finding(check="a.b", title="t", reason="r", level=level, where=[], facts={"host": "x.example"})
    check = CheckResult("a.b", 1, "T", "detected", "proved", "r", findings=[found])
    answers = {"tools/call": [Answer(9, False, "one"), Answer(11, True, "two")]}
    session = Session({"tools/call": 2}, answers, ["one", "two"], 12)
    last = "open/mcp.jsonl:11"
    steps = [
        Step("installs", True, "1.0, 2 packages"),
        Step("starts", ok, "it ran" if ok else "ended with status 1 before it answered: no\n token"),
        Step("initializes", True if ok else None, "answered", "open/mcp.jsonl:2"),
        Step("lists", True if ok else None, "2 tools", "open/mcp.jsonl:4"),
        Step("calls", True if ok else None, "2 made, 2 answered, 1 without an error", last),
        Step("survives denial", True if ok else None, "2 calls made, 2 answered, 0 without an error (open: 1)"),
        Step("shuts down", True if ok else None, "ended with status 0 after its input was closed"),
    ]
    return Audit(
        f"npm:x@{version}",
        version,
        steps,
        Result(Run(), [check], [], "declared"),
        [],
        [session, Session({"tools/call": 2}, {"tools/call": [Answer(9, True), Answer(11, True)]}, ["one"], 12)],
        [
            Asked("api.example", True, "its README", (), "open/strace.log:7"),
            Asked("registry.npmjs.org", False, "", ("npm-configuration",), "open/strace.log:8"),
            Asked("x.example", False, "", ("caller-argument",), "open/strace.log:9"),
        ],
        [Denied("output-drop", "names", 3, "denied/strace.log:7")],
        ("x@1.0", "y@2"),
        Server("npm:x@1.0", notes="a note"),
        "npm-x",
        "6.18",
    )


def test_a_server_is_written_with_what_became_of_it(tmp_path: Path) -> None:
    path = tmp_path / "coverage" / "servers.json"
    (row,) = update(path, [audited()], "netns", DAY).model_dump(mode="json")["servers"]
    steps = {step["step"]: (step["status"], step["detail"], step["where"]) for step in row.pop("steps")}
    assert steps == {
        "installs": ("ok", "1.0, 2 packages", ""),
        "starts": ("ok", "it ran", ""),
        "initializes": ("ok", "answered", "open/mcp.jsonl:2"),
        "lists": ("ok", "2 tools", "open/mcp.jsonl:4"),
        "calls": ("ok", "2 made, 2 answered, 1 without an error", "open/mcp.jsonl:11"),
        "survives denial": ("ok", "2 calls made, 2 answered, 0 without an error (open: 1)", ""),
        "shuts down": ("ok", "ended with status 0 after its input was closed", ""),
    }
    assert row == {
        "server": "npm:x@1.0",
        "version": "1.0",
        "shell": "netns",
        "date": "2026-12-01",
        "command": "python -m controls audit --shell netns npm:x@1.0",
        "mcpdetect": VERSION,
        "kernel": "6.18",
        "works": True,
        "status": "ok",
        "step": None,
        "reason": None,
        "tools": 2,
        "calls": {"made": 2, "answered": 2, "good": 1},
        "denial": "output-drop",
        "survives": True,
        "denied_calls": {"made": 2, "answered": 2, "good": 0},
        "denial_shows": [{"mode": "output-drop", "what": "names", "destinations": 3, "where": "denied/strace.log:7"}],
        "hosts": [
            {
                "host": "api.example",
                "documented": True,
                "source": "its README",
                "explained": [],
                "where": "open/strace.log:7",
            },
            {
                "host": "the npm registry",
                "documented": False,
                "source": "",
                "explained": ["npm-configuration"],
                "where": "open/strace.log:8",
            },
            {
                "host": "x.example",
                "documented": False,
                "source": "",
                "explained": ["caller-argument"],
                "where": "open/strace.log:9",
            },
        ],
        "verdicts": {"a.b": "detected"},
        "packages": {"count": 2, "sha256": resolved_digest(("x@1.0", "y@2"))},
        "notes": "a note",
        "changed": [],
    }
    assert (path.parent / "servers" / "npm-x.txt").read_text() == "# npm:x@1.0\nx@1.0\ny@2\n"


def test_what_changed_since_the_last_run_is_told_across_versions(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    update(path, [audited()], "netns", DAY)
    (row,) = update(path, [audited(ok=False, version="1.1")], "netns", DAY).servers
    assert (row.status, row.step, row.works) == ("broke", "starts", False)
    assert row.reason == "ended with status 1 before it answered: no token"
    assert [(one.fact, one.before, one.now) for one in row.changed] == [
        ("version", "1.0", "1.1"),
        ("works", "True", "False"),
        ("step that broke", "None", "starts"),
        ("survives denial", "True", "None"),
    ]
    assert load(path).servers == [row]


def test_each_shell_has_a_row_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    update(path, [audited()], "netns", DAY)
    assert [row.shell for row in update(path, [audited()], "microvm", DAY).servers] == ["microvm", "netns"]


def test_what_accuses_is_withheld_and_so_are_its_hosts(tmp_path: Path) -> None:
    (row,) = update(tmp_path / "s.json", [audited(level="accusing")], "netns", DAY).servers
    assert row.verdicts == {"a.b": "withheld"}
    assert [one.host for one in row.hosts] == ["api.example", "the npm registry"]


def test_a_server_that_was_not_installed_has_a_row_of_unreached_steps(tmp_path: Path) -> None:
    failed = Audit("npm:gone@1", steps=[Step("installs", False, "npm could not install it: 404")])
    (row,) = update(tmp_path / "s.json", [failed], "netns", DAY).servers
    assert [step.status for step in row.steps] == ["broke", *["unreached"] * 6]
    assert (row.step, row.reason, row.tools) == ("installs", "npm could not install it: 404", 0)
    assert not (tmp_path / "servers").exists()


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for text, place in (("no JSON", "/: "), ('{"schema": "other", "servers": []}', "/schema: "), ("{}", "/schema: ")):
        path.write_text(text)
        with pytest.raises(RecorderError, match=rf"is no mcpdetect\.servers/1: {place}"):
            update(path, [], "netns", DAY)
        assert path.read_text() == text


def test_the_page_tells_rows_breaks_and_changes_and_nothing_active(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    update(path, [audited()], "netns", DAY)
    broken = audited(ok=False, version="1.1")
    broken.steps[1] = Step("starts", False, "<b>|`x`", "open/strace.log:3")
    page = registry_page(update(path, [broken], "netns", DAY))
    assert page.startswith("<!-- Made from coverage/servers.json by tests/tools/refresh_servers.py; do not edit. -->\n")
    assert "| servers audited | 1 | 0 |\n" in page
    assert "| `npm:x@1.1` | 2026-12-01 | no | 2 | 1 / 2 / 2 | 0 / 2 / 2 | - | - | documented: api.example; " in page
    assert "named by the caller: x.example; not documented: the npm registry |\n" in page
    assert "| `npm:x@1.1` | netns | starts | &lt;b&gt;\\|'x' | `open/strace.log:3` |\n" in page
    assert "- `npm:x@1.1` (netns), version: 1.0 → 1.1\n" in page
    empty = registry_page(Registry(schema_="mcpdetect.servers/1", servers=[]))
    assert empty.endswith("## What broke\n\nNothing.\n\n## What changed since the run before\n\nNothing.\n")


def test_the_committed_registry_is_of_its_schema_and_page_and_schema_are_current() -> None:
    made: dict[Path, str] = runpy.run_path(str(ROOT / "tests" / "tools" / "refresh_servers.py"))["documents"]()
    assert [path.relative_to(ROOT).as_posix() for path in made] == ["docs/servers.md", "coverage/servers.schema.json"]
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, "run: python tests/tools/refresh_servers.py"
    data = json.loads((ROOT / "coverage" / "servers.json").read_text())
    jsonschema.Draft202012Validator(json.loads(registry_schema())).validate(data)
    rows = load(ROOT / "coverage" / "servers.json").servers
    assert sum(row.works for row in rows if row.shell == "netns") >= 80
    assert sum(row.works for row in rows if row.shell == "microvm") >= 10


def test_every_installation_of_the_registry_is_written_down() -> None:
    rows = load(ROOT / "coverage" / "servers.json").servers
    locks = {path.read_text().splitlines()[0] for path in (ROOT / "coverage" / "servers").glob("*.txt")}
    assert {f"# {row.server}" for row in rows if row.packages.count} == locks
