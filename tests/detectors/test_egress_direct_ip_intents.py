"""egress.direct-ip: contacts that were only meant, hostile names, and more of everything than there is room for."""

from __future__ import annotations

import pytest
from hand_sources import where
from made_events import S, answer, asked, calls, check, connect, execed, flow, flows_only, logged, turned_over, wire

from mcpdetect.correlate import contacts as contacts_module
from mcpdetect.correlate import names as names_module
from mcpdetect.model.event import Event, ProcessExecFailed
from mcpdetect.model.net import HttpRequest
from mcpdetect.model.observation import Observation
from mcpdetect.model.result import CheckResult, Finding
from mcpdetect.model.trace import Run

ID = "egress.direct-ip"
A = "203.0.113.20"


def run(events: list[Event], *observations: Observation) -> CheckResult:
    return check(ID, events, list(observations) or [calls(), flows_only()], run=Run(resolvers=["10.77.0.1"]))


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


def test_more_destinations_or_names_than_room_forbid_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts_module, "MAX_TARGETS", 1)
    named: list[Event] = [asked(1, "vendor.test"), answer(2, "vendor.test", "203.0.113.1")]
    result = run([*named, *(connect(n + 2, f"203.0.113.{n}", socket=f"s{n}") for n in range(1, 5))])
    assert (result.verdict, [(limit.what, limit.count) for limit in result.limits]) == (
        "not_observable",
        [("overflow", 3)],
    )
    monkeypatch.setattr(contacts_module, "MAX_TARGETS", 9)
    monkeypatch.setattr(names_module, "MAX_NAMES", 1)
    crowd: list[Event] = [answer(n, f"h{n}.test", f"198.51.100.{n}") for n in range(1, 4)]
    assert [limit.what for limit in run([*crowd, connect(9, A)]).limits] == ["overflow"]


def test_hostile_names_travel_unchanged_and_do_no_harm() -> None:
    name = "\u202e\x1b[31mmoc.rodnev\n<script>"
    request = HttpRequest(where(2), S, seen_in="packets", method="GET", target="/", host=name, address=A)
    finding = only(run([connect(1, A), flow(1, A, syn_ack=1), request], calls(), wire()))
    assert finding.facts["claimed"] == [name]
