"""What an audit prints about one server."""

from __future__ import annotations

from pathlib import Path

from controls.asked import Asked, Denied
from controls.auditing import Audit, Step
from controls.auditreport import told
from controls.sessions import Session
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level


def finding(level: Level, title: str) -> Finding:
    facts: dict[str, str | int | bool | list[str] | None] = {"run": "servers/npm-x/denied"}
    return Finding("a.b", title, "r", level, [Where("strace.log", 7, 9)], facts=facts)


def test_an_audit_is_told_step_by_step_and_ends_in_what_broke() -> None:
    grave = [finding("suspicious", f"a\x1b[31m{number}") for number in range(6)]
    checks = [
        CheckResult("a.b", 1, "T", "detected", "proved", "r", findings=[finding("info", "i"), *grave]),
        CheckResult("c.d", 1, "T", "not_observable", "absent", "joined"),
    ]
    parts = [
        Result(Run(), [CheckResult("c.d", 1, "T", "not_observable", "absent", why)], [], "declared")
        for why in ("no packets", "no names")
    ]
    audit = Audit(
        "npm:x@1",
        "1",
        [Step("installs", True, "1, 2 packages"), Step("calls", False, "none made: \u202eno", "open/mcp.jsonl:3")],
        Result(Run(), checks, [], "declared", parts=parts),
        [Path("out/servers/npm-x/open"), Path("out/servers/npm-x/denied")],
        [Session(), Session()],
        [
            Asked("api.example", True, "its README", (), "open/strace.log:7"),
            Asked("b.example", False, "", (), "open/strace.log:8"),
            Asked("c.example", None),
            Asked("d.example", False, "", ("caller-argument", "x")),
        ],
        [Denied("output-drop", "names", 3, "denied/strace.log:7"), Denied("unknown", "tcp", 1)],
    )
    assert list(told(audit)) == [
        "npm:x@1  1",
        "  installs         ok     1, 2 packages",
        "  calls            broke  none made: \\u202eno  (open/mcp.jsonl:3)",
        "  hosts asked for  api.example (documented, its README)  (open/strace.log:7)",
        "                   b.example (not documented)  (open/strace.log:8)",
        "                   c.example (nobody looked up whether it is documented)",
        "                   d.example (named by the caller)",
        "  denial shows     names: output-drop ×3  (denied/strace.log:7); tcp: unknown ×1",
        "  a.b                       detected (6 suspicious, 1 info)",
        *(f"    [suspicious] a\\x1b[31m{number}  (denied/strace.log:7+9)" for number in range(5)),
        "    and 1 more",
        "  c.d                       not_observable",
        "    no names",
        "    no packets",
        "  broke at calls: none made: \\u202eno",
        "  evidence in out/servers/npm-x; all of it: mcpdetect check --audit out/servers/npm-x/*",
    ]


def test_a_server_that_was_not_installed_has_nothing_more_to_tell() -> None:
    audit = Audit("npm:x@1", steps=[Step("installs", False, "no such package")])
    assert list(told(audit)) == [
        "npm:x@1",
        "  installs         broke  no such package",
        "  broke at installs: no such package",
    ]


def test_an_installation_is_told_apart_from_the_runs(tmp_path: Path) -> None:
    bundles = [tmp_path / name for name in ("open", "denied", "install")]
    audit = Audit(
        "npm:x@1", "1", [Step("records the install", False, "why", "install/strace.log:2")], None, bundles[:2]
    )
    assert list(told(audit))[-1] == f"  evidence in {tmp_path}; all of it: mcpdetect check --audit {tmp_path}/*"
    bundles[2].mkdir()
    runs = f"{tmp_path}/open {tmp_path}/denied"
    # Recorded before, and not by this audit.
    assert list(told(audit))[-1] == f"  evidence in {tmp_path}; all of it: mcpdetect check --audit {runs}"
    audit.install = bundles[2]
    assert list(told(audit))[1:] == [
        "  records the install broke  why  (install/strace.log:2)",
        "  broke at records the install: why",
        f"  evidence in {tmp_path}; all of it: mcpdetect check --audit {runs}",
        f"  evidence of the installation: mcpdetect check {tmp_path}/install",
    ]


def test_a_quiet_server_is_told_as_quiet() -> None:
    audit = Audit("npm:x@1", "1", [Step("installs", True, "1")], sessions=[Session(), Session()])
    assert list(told(audit))[2:] == [
        "  hosts asked for  none",
        "  denial shows     nothing was asked of the network",
    ]
