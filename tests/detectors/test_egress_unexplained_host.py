"""egress.unexplained-host: every name asked for is judged by itself, and no claimed name excuses another."""

from __future__ import annotations

import pytest
from hand_sources import where
from made_events import (
    S,
    answer,
    asked,
    calls,
    check,
    connect,
    expecting,
    flow,
    hello,
    logged,
    packet,
    sent,
    turned_over,
    wire,
)

from mcpdetect.correlate import names as names_module
from mcpdetect.model.event import Event
from mcpdetect.model.inputs import Expectations, ExpectedHost
from mcpdetect.model.mcp import McpMessage
from mcpdetect.model.net import HttpRequest
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Limit
from mcpdetect.model.trace import Run

ID = "egress.unexplained-host"
A, B = "203.0.113.20", "203.0.113.66"


def run(
    events: list[Event],
    *observations: Observation,
    hosts: tuple[str, ...] = ("api.vendor.test",),
    mode: str = "unknown",
) -> CheckResult:
    return check(ID, events, list(observations) or [calls()], run=Run(mode=mode), expectations=expecting(*hosts))


def only(result: CheckResult) -> Finding:
    assert result.verdict == "detected"
    assert len(result.findings) == 1
    return result.findings[0]


def visit(name: str, address: str, line: int = 1, socket: str = "s1") -> list[Event]:
    return [
        asked(line, name),
        answer(line + 1, name, address),
        connect(line + 2, address, socket=socket),
        sent(line + 3, address, 9, socket=socket),
    ]


def test_a_documented_host_is_explained_and_said() -> None:
    result = run(visit("api.vendor.test", A))
    assert (result.verdict, result.reason) == (
        "not_detected",
        "every host asked for or contacted by name is in the expectations",
    )
    assert result.limits == [
        Limit("explained", "api.vendor.test:443 is documented: api.vendor.test", False),
    ]


def test_an_undocumented_host_is_detected_once_with_question_and_contact() -> None:
    finding = only(run(visit("collector.test", B)))
    assert finding.title == f"collector.test at {B}:443 was sent data, and nothing documents it"
    assert (finding.level, finding.process, finding.where) == ("suspicious", "7", [where(3), where(2)])
    assert finding.facts == {
        "host": "collector.test",
        "names": ["collector.test"],
        "address": B,
        "port": 443,
        "count": 1,
    }


def test_without_expectations_the_check_is_not_configured() -> None:
    result = check(ID, visit("collector.test", B), [calls()])
    assert (result.verdict, result.reason) == ("not_observable", "not configured: expectations")


def test_a_name_that_was_only_asked_for_counts_denied_or_not() -> None:
    finding = only(run([asked(4, "collector.test", error="EPERM")]))
    assert (finding.title, finding.where) == (
        "collector.test was asked for, and nothing documents it",
        [where(4)],
    )


@pytest.mark.parametrize(
    ("name", "hosts", "verdict"),
    [
        ("api.vendor.test.evil.test", (), "detected"),
        ("vendor.test", (), "detected"),
        ("API.vendor.test", (), "not_detected"),
        ("eu.api.vendor.test", ("*.vendor.test",), "not_detected"),
        ("localhost", (), "not_detected"),
        ("_services._dns-sd._udp.local", (), "not_detected"),
        ("localhost.evil.test", (), "detected"),
        ("4.3.2.1.in-addr.arpa", (), "not_detected"),
        ("secret.113.0.203.in-addr.arpa", (), "detected"),
    ],
)
def test_names_are_compared_on_whole_labels(name: str, hosts: tuple[str, ...], verdict: str) -> None:
    assert run([asked(1, name.lower())], hosts=("api.vendor.test", *hosts)).verdict == verdict


def test_data_hidden_in_questions_for_pointers_is_not_skipped() -> None:
    assert only(run([asked(1, "c2vjcmv0.evil.test", kind="PTR")])).facts["host"] == "c2vjcmv0.evil.test"


def test_the_name_in_a_hello_excuses_no_other_host() -> None:
    events = [*visit("evil.test", B), flow(1, B, syn_ack=1), hello(2, B, "api.vendor.test")]
    finding = only(run(events, calls(), wire()))
    assert finding.facts["names"] == ["evil.test", "api.vendor.test"]


def test_an_undocumented_name_in_a_hello_is_found_behind_a_documented_host() -> None:
    events = [*visit("api.vendor.test", A), flow(1, A, syn_ack=1), hello(2, A, "hidden.evil.test")]
    finding = only(run(events, calls(), wire()))
    assert (finding.facts["host"], finding.facts["address"]) == ("hidden.evil.test", A)


def test_a_host_header_that_is_an_address_is_no_name() -> None:
    request = HttpRequest(packet(2), S, seen_in="packets", method="GET", target="/", host=B, address=B, port=80)
    assert run([connect(1, B, port=80), request], calls(), wire(), mode="open").verdict == "not_detected"


def test_a_name_that_resolves_to_a_documented_hosts_address_is_judged_by_itself() -> None:
    events = [*visit("api.vendor.test", A), asked(8, "c2vjcmv0.evil.test"), answer(9, "c2vjcmv0.evil.test", A)]
    finding = only(run(events))
    assert (finding.facts["host"], finding.facts["address"], finding.where) == ("c2vjcmv0.evil.test", None, [where(8)])


def test_steps_of_a_documented_hosts_alias_chain_are_not_accused() -> None:
    events: list[Event] = [
        asked(1, "api.vendor.test"),
        answer(2, "api.vendor.test", A, alias="edge.cdn.test"),
        answer(2, "edge.cdn.test", A, seen_in="dns"),
        connect(3, A),
    ]
    assert run(events, calls(), logged()).verdict == "not_detected"
    asked_itself = run([*events, asked(4, "edge.cdn.test")], calls(), logged())
    assert only(asked_itself).facts["host"] == "edge.cdn.test"


def test_a_documented_network_covers_the_contact_and_its_names() -> None:
    expectations = Expectations("e", [ExpectedHost("203.0.113.0/24"), ExpectedHost("collector.test")])
    result = check(ID, visit("collector.test", B), [calls()], expectations=expectations)
    assert result.verdict == "not_detected"


def test_a_documented_host_on_another_port_is_undocumented() -> None:
    expectations = Expectations("e", [ExpectedHost("api.vendor.test", [80])])
    finding = only(check(ID, visit("api.vendor.test", A), [calls()], expectations=expectations))
    assert finding.facts["port"] == 443


def test_a_question_that_no_call_asked_is_not_blamed_on_the_server() -> None:
    foreign = asked(3, "evil.example.test", seen_in="packets", client="10.77.0.2")
    finding = only(run([foreign], calls(), wire()))
    assert (finding.level, [item.rule for item in finding.explanations]) == ("info", ["unattributed"])
    assert (finding.process, finding.where) == (None, [packet(3)])
    cut = calls(Loss("string-cut", "buffers are cut", touches=["data:socket.send"]))
    assert only(run([foreign], cut, wire())).level == "suspicious"
    helper = connect(1, None, family="unix", transport="unix", path="/run/nscd/socket")
    assert only(run([helper, foreign], calls(), wire())).level == "suspicious"


def proxied(target: str) -> list[Event]:
    request = HttpRequest(where(2), S, seen_in="syscalls", method="CONNECT", target=target, process="7")
    request.address, request.port = "10.77.0.1", 3128
    return [request]


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("exfil.test:443", "exfil.test"),
        ("api.vendor.test.:443", None),
        ("api.vendor.test:443", None),
        ("[::1]:80", None),
        ("localhost:80", None),
        ("203.0.113.9:443", None),
    ],
)
def test_a_host_asked_of_a_proxy_is_judged(target: str, host: str | None) -> None:
    result = run(proxied(target))
    assert [finding.facts["host"] for finding in result.findings] == ([host] if host else [])


def test_a_hidden_name_forbids_the_claim() -> None:
    result = run([asked(5, None)])
    assert (result.verdict, [(limit.what, limit.where) for limit in result.limits]) == (
        "not_observable",
        [("name-hidden", where(5))],
    )


def test_a_name_that_the_log_hides_forbids_the_claim_and_never_hides_another() -> None:
    hidden = asked(2, None, seen_in="dns")
    assert run([hidden], logged()).verdict == "not_observable"
    assert only(run([hidden, asked(3, "evil.test", seen_in="dns")], logged())).where == [Where("dns.log", 3)]


def test_names_beyond_all_room_forbid_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names_module, "MAX_NAMES", 1)
    result = run([asked(1, "api.vendor.test"), *(asked(n, f"x{n}.test") for n in range(2, 5))])
    assert (result.verdict, [(limit.what, limit.count) for limit in result.limits if limit.hides]) == (
        "not_observable",
        [("overflow", 3)],
    )


def test_logs_and_captures_of_a_silent_network_do_not_show_what_was_tried() -> None:
    result = run([], wire(), logged())
    assert (result.verdict, [limit.what for limit in result.limits]) == ("not_observable", ["attempts-unseen"])
    question = asked(1, "api.vendor.test", seen_in="dns")
    reply = answer(2, "api.vendor.test", A, seen_in="dns")
    assert run([question, reply], wire(), logged()).verdict == "not_detected"
    assert run([question, reply], wire(), logged(), mode="denied").verdict == "not_observable"


def test_a_host_that_the_caller_asked_for_is_information() -> None:
    place = Where("mcp.jsonl", 3, unit="message")
    call = McpMessage(
        place, S // 4, direction="c2s", form="request", method="tools/call", tool="fetch",
        arguments='{"url":"https://collector.test/x"}',
    )  # fmt: skip
    finding = only(run([call, *visit("collector.test", B)]))
    assert (finding.level, [item.rule for item in finding.explanations]) == ("info", ["caller-argument"])


def test_hostile_names_come_out_as_they_are() -> None:
    name = "a\\032b\u202e.evil.test"
    assert only(run([asked(1, name)])).facts["names"] == [name]


SCENES: dict[str, tuple[list[Event], list[Observation]]] = {
    "documented": (
        [
            *visit("api.vendor.test", A),
            asked(1, "api.vendor.test", seen_in="dns"),
            answer(2, "api.vendor.test", A, seen_in="dns"),
            asked(1, "api.vendor.test", seen_in="packets"),
            answer(2, "api.vendor.test", A, seen_in="packets"),
            flow(3, A, syn_ack=1),
            hello(4, A, "api.vendor.test"),
        ],
        [calls(), wire(), logged()],
    ),
    "undocumented": (
        [
            *visit("evil.test", B),
            asked(1, "evil.test", seen_in="dns"),
            answer(2, "evil.test", B, seen_in="dns"),
            asked(1, "evil.test", seen_in="packets"),
            answer(2, "evil.test", B, seen_in="packets"),
            flow(3, B, syn_ack=1),
            hello(4, B, "api.vendor.test"),
        ],
        [calls(), wire(), logged()],
    ),
    "denied before the wire": ([asked(1, "evil.test", error="EPERM")], [calls(), wire(), logged()]),
    "quiet": ([], [calls(), wire(), logged()]),
}


@pytest.mark.parametrize("scene", SCENES)
def test_less_evidence_never_turns_the_verdict_over(scene: str) -> None:
    events, observations = SCENES[scene]
    assert turned_over(ID, events, observations, expectations=expecting("api.vendor.test")) == []
