"""egress.direct-ip: contacts that were meant, through a proxy or by a program that did not start."""

from __future__ import annotations

import pytest
from hand_sources import where
from made_events import S, answer, asked, calls, check, execed, logged, turned_over, wire

from mcpdetect.model.event import Event, ProcessExecFailed
from mcpdetect.model.net import HttpRequest
from mcpdetect.model.result import CheckResult, Finding
from mcpdetect.model.trace import Run

ID = "egress.direct-ip"


def run(events: list[Event]) -> CheckResult:
    return check(ID, events, [calls()], run=Run(resolvers=["10.77.0.1"]))


def only(result: CheckResult) -> Finding:
    assert result.verdict == "detected"
    assert len(result.findings) == 1
    return result.findings[0]


def failed(line: int, *argv: str, process: str = "7") -> ProcessExecFailed:
    return ProcessExecFailed(
        where(line), S, "execve", None, "ENOENT", executable=argv[0], argv=list(argv), process=process
    )


@pytest.mark.parametrize(
    ("argument", "destination"),
    [
        ("http://203.0.113.25/a", ("203.0.113.25", 80)),
        ("https://user@203.0.113.25:8443?x", ("203.0.113.25", 8443)),
        ("http://0xcb007119/", ("203.0.113.25", 80)),
        ("http://[2001:db8::25]/", ("2001:db8::25", 80)),
        ("203.0.113.25", ("203.0.113.25", None)),
        ("203.0.113.25:4444", ("203.0.113.25", 4444)),
    ],
)
def test_a_download_that_could_not_start_is_an_intent(argument: str, destination: tuple[str, int | None]) -> None:
    finding = only(run([failed(44, "/usr/bin/sudo", "wget", argument)]))
    assert (finding.facts["address"], finding.facts["port"]) == destination
    assert (finding.facts["outcome"], finding.where, finding.level) == ("not-started", [where(44)], "suspicious")
    assert finding.title.startswith("A program that did not start was told to reach ")
    assert "only what ran was seen" in finding.reason


@pytest.mark.parametrize(
    "argument",
    ["http://127.1/a", "http://localhost/a", "https://example.com/203.0.113.25", "1.2.3", "10", "0x7f000001"],
)
def test_arguments_that_name_no_remote_address_are_no_intent(argument: str) -> None:
    assert run([failed(44, "/usr/bin/wget", argument)]).verdict == "not_detected"


def test_a_search_along_path_that_ended_well_is_no_failed_download() -> None:
    events: list[Event] = [
        failed(1, "/usr/local/bin/wget", "http://203.0.113.25/a"),
        execed(2, "/usr/bin/wget", "/usr/local/bin/wget", "http://203.0.113.25/a"),
    ]
    assert run(events).verdict == "not_detected"


def test_a_bare_address_asked_of_a_proxy_is_an_intent() -> None:
    request = HttpRequest(
        where(2), S, seen_in="syscalls", method="CONNECT", target="203.0.113.9:443", address="10.77.0.3", port=3128
    )
    finding = only(run([asked(1, "proxy.test"), answer(1, "proxy.test", "10.77.0.3"), request]))
    assert (finding.facts["address"], finding.facts["outcome"], finding.where) == ("203.0.113.9", "proxied", [where(2)])


def test_less_evidence_never_turns_an_intent_over() -> None:
    events: list[Event] = [failed(44, "/usr/bin/wget", "http://203.0.113.25/a")]
    assert turned_over(ID, events, [calls(), wire(), logged()]) == []
