"""network.blocked: every way of denying, what each channel adds, and what may not be claimed."""

from __future__ import annotations

import pytest
from hand_sources import where
from made_events import (
    MS,
    S,
    answer,
    asked,
    calls,
    check,
    connect,
    dropped,
    expecting,
    flow,
    logged,
    packet,
    received,
    sent,
    state,
    turned_over,
    walled,
    wire,
)

from mcpdetect.correlate import contacts as contacts_module
from mcpdetect.model.event import Event
from mcpdetect.model.net import HttpRequest, SocketOpen
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Limit
from mcpdetect.model.trace import Run

ID = "network.blocked"
CLAIM = "no attempt to reach the network was denied"


def run(events: list[Event], *observations: Observation, mode: str = "unknown") -> CheckResult:
    return check(ID, events, list(observations) or [calls(), walled()], run=Run(mode=mode))


def only(result: CheckResult) -> Finding:
    assert result.verdict == "detected"
    assert len(result.findings) == 1
    return result.findings[0]


def silent(line: int = 1, address: str = "203.0.113.7", socket: str = "s1", t: int = S) -> list[Event]:
    return [
        connect(line, address, pending=True, socket=socket, t=t),
        state(line + 1, "close", socket=socket, t=t + 5 * S),
    ]


def test_a_run_whose_attempts_all_worked_is_not_detected() -> None:
    result = run([connect(1, pending=True), state(2, "so_error", "0"), sent(3), received(4)])
    assert (result.verdict, result.reason, result.limits) == ("not_detected", CLAIM, [])


def test_calls_alone_cannot_tell_a_drop_from_a_slow_network() -> None:
    timed_out = connect(31, error="ETIMEDOUT", socket="s2", process="31", t=9 * S)
    result = run([*silent(), timed_out])
    assert result.verdict == "not_observable"
    assert result.limits == [
        Limit(
            "outcome-unknown",
            "203.0.113.7:443/tcp: it stayed without result until it was given up: blocked or slow, the calls alone "
            "cannot tell",
            True,
            where(1),
        ),
        Limit(
            "outcome-unknown",
            "203.0.113.7:443/tcp: it timed out: blocked or slow, the calls alone cannot tell",
            True,
            where(31),
        ),
    ]


def test_an_empty_capture_that_ran_makes_it_a_drop_at_the_sender() -> None:
    finding = only(run(silent(), calls(), wire()))
    assert finding.title == "203.0.113.7:443/tcp: one attempt blocked, output-drop"
    assert (finding.level, finding.where, finding.process, finding.t_ns) == ("suspicious", [where(1)], "7", S)
    assert finding.facts == {
        "address": "203.0.113.7",
        "port": 443,
        "transport": "tcp",
        "names": [],
        "denial": "output-drop",
        "modes": ["output-drop"],
        "attempts": 1,
        "count": 1,
    }


def test_the_firewalls_log_confirms_and_its_retransmissions_are_one_flow() -> None:
    lines = [dropped(1), dropped(2)]
    finding = only(run([*silent(), *lines]))
    assert (finding.facts["denial"], finding.facts["count"]) == ("output-drop", 1)
    assert finding.where == [where(1), Where("firewall.log", 1)]


def test_a_firewall_log_without_any_other_evidence_is_enough_to_detect() -> None:
    firewall = Observation("firewall", "firewall.log", "nft", watches={"firewall.drop": "inferred"})
    finding = only(run([dropped(1), dropped(2), dropped(3, source_port=35771)], firewall))
    assert finding.title == "203.0.113.7:443/tcp: blocked, output-drop"
    assert (finding.facts["count"], finding.facts["attempts"]) == (2, 0)
    assert (finding.level, finding.explanations) == ("suspicious", [])
    assert finding.where == [Where("firewall.log", line) for line in (1, 2, 3)]


def test_a_firewall_line_that_no_traced_process_caused_is_not_blamed_on_the_server() -> None:
    finding = only(run([dropped(1)], calls()))
    assert (finding.level, [item.rule for item in finding.explanations]) == ("info", ["unattributed"])


def test_a_counter_without_attempts_is_reported_once_with_its_number() -> None:
    finding = only(run([dropped(1, None, port=None, packets=3), dropped(2, None, port=None, packets=4)], calls()))
    assert finding.title == "7 packets counted by a denying firewall rule, destinations unknown"
    assert (finding.level, finding.facts["count"]) == ("info", 7)


def test_no_firewall_evidence_at_all_is_no_claim() -> None:
    result = run([], wire())
    assert (result.verdict, [limit.what for limit in result.limits]) == ("not_observable", ["missing-channel"])


def test_a_capture_alone_shows_what_was_dropped_on_the_way() -> None:
    finding = only(run([flow(1, syn=4), flow(3, syn=2, source_port=40001)], wire()))
    assert finding.title == "203.0.113.7:443/tcp: blocked, dropped-on-path"
    assert (finding.facts["count"], finding.where) == (2, [packet(1)])


def test_fast_refusals_are_told_apart_by_the_packets() -> None:
    refused: list[Event] = [connect(1, error="ECONNREFUSED")]
    reset = run([*refused, flow(1, rst_in=1)], calls(), wire())
    icmp = only(run([*refused, flow(1, icmp=(3, 3))], calls(), wire()))
    alone = run(refused)
    assert (reset.verdict, alone.verdict) == ("not_observable", "not_observable")
    assert reset.limits[0].detail == "203.0.113.7:443/tcp: answered with RST: a closed port or a resetting filter"
    assert (icmp.facts["denial"], icmp.where) == ("rejected-on-path", [where(1), packet(1), packet(2)])


def test_udp_sends_that_met_eperm_are_blocked_whatever_connect_said() -> None:
    events: list[Event] = [
        connect(1, transport="udp", port=53, socket="s4"),
        sent(2, error="EPERM", transport="udp", port=53, socket="s4"),
        sent(3, error="EPERM", transport="udp", port=53, socket="s3", source="argument"),
    ]
    finding = only(run(events))
    assert finding.title == "203.0.113.7:53/udp: 2 attempts blocked, output-drop"
    assert (finding.facts["count"], finding.where) == (2, [where(2), where(3)])


def test_landlock_blocks_tcp_and_its_datagram_stays_open() -> None:
    events: list[Event] = [connect(1, error="EACCES"), sent(2, transport="udp", socket="s5", source="argument", size=1)]
    result = run(events)
    assert [finding.facts["denial"] for finding in result.findings] == ["policy"]
    assert [limit.detail for limit in result.limits] == [
        "203.0.113.7:443/udp: 1 datagrams sent, no reply seen: lost, blocked or one-way"
    ]


def test_a_metadata_probe_without_route_is_one_blocked_attempt_and_ordinary() -> None:
    finding = only(run([connect(1, "169.254.169.254", "ENETUNREACH", port=80)]))
    assert (finding.level, finding.facts["denial"]) == ("info", "no-route")
    assert [item.rule for item in finding.explanations] == ["cloud-metadata-probe"]


def test_multicast_is_no_row_among_blocked_connections() -> None:
    mdns = sent(1, "224.0.0.251", error="EPERM", transport="udp", port=5353, source="argument")
    line = dropped(1, "224.0.0.251", port=5353, transport="udp")
    assert run([mdns, line]).verdict == "not_detected"
    unicast = sent(1, "198.51.100.5", error="EPERM", transport="udp", port=5353, source="argument")
    assert only(run([unicast])).facts["address"] == "198.51.100.5"


@pytest.mark.parametrize(
    ("error", "mode"),
    [
        ("EPERM", "output-drop"),
        ("ENETUNREACH", "no-route"),
        ("EHOSTUNREACH", "route-unreachable"),
        ("EACCES", "route-prohibit"),
        ("EINVAL", "route-blackhole"),
    ],
)
def test_a_question_that_could_not_be_sent_is_a_blocked_attempt(error: str, mode: str) -> None:
    query = asked(1, "api.vendor.test", error=error)
    finding = only(run([query, sent(1, "10.77.0.1", error=error, transport="udp", port=53, socket="s9")]))
    assert finding.title == f"api.vendor.test: the name was never resolved, {mode}"
    assert (finding.level, finding.facts["host"], finding.where) == ("info", "api.vendor.test", [where(1)])
    assert finding.identity == "name api.vendor.test"


def test_a_resolver_without_route_is_information_and_any_other_server_is_not() -> None:
    def failed(address: str) -> CheckResult:
        event = connect(3, address, "ENETUNREACH", transport="udp", port=53)
        return check(ID, [event], [calls()], run=Run(resolvers=["10.77.0.1"]))

    resolver, other = only(failed("10.77.0.1")), only(failed("10.77.0.66"))
    assert (resolver.level, [item.rule for item in resolver.explanations]) == ("info", ["configured-resolver"])
    assert (other.level, other.explanations) == ("suspicious", [])


def test_questions_without_answer_on_the_wire_are_blocked() -> None:
    events: list[Event] = [
        asked(1, "api.vendor.test"),
        asked(2, "api.vendor.test", t=6 * S),
        asked(1, "api.vendor.test", seen_in="packets"),
        asked(2, "api.vendor.test", seen_in="packets", t=6 * S),
    ]
    finding = only(run(events, calls(), wire()))
    assert (finding.facts["denial"], finding.facts["count"]) == ("dropped-on-path", 2)
    assert finding.where == [where(1), packet(1)]


def test_a_name_refused_by_the_resolvers_configuration_is_blocked_and_a_missing_one_is_not() -> None:
    def answered(source: str) -> list[Event]:
        line = answer(2, "exfil.test", seen_in="dns", rcode="NXDOMAIN", source=source)  # type: ignore[arg-type]
        return [asked(1, "exfil.test"), asked(1, "exfil.test", seen_in="dns"), line]

    finding = only(run(answered("policy"), calls(), logged()))
    assert finding.facts["denial"] == "policy"
    assert run(answered("upstream"), calls(), logged(), walled()).verdict == "not_detected"
    assert only(run(answered("upstream"), calls(), logged(), mode="denied")).facts["denial"] == "name-service"


def test_a_foreign_question_is_stated_and_not_blamed_on_the_server() -> None:
    foreign = [asked(1, "evil.test", seen_in="packets"), answer(2, "evil.test", seen_in="packets", rcode="SERVFAIL")]
    finding = only(run(list(foreign), calls(), wire()))
    assert (finding.level, [item.rule for item in finding.explanations]) == ("info", ["unattributed"])
    assert finding.process is None


def test_local_names_are_no_attempts_to_reach_the_network() -> None:
    assert (
        run([asked(1, "printer.local", error="EPERM"), asked(2, "localhost", error="EPERM")]).verdict == "not_detected"
    )


def through_proxy(status: bytes | None) -> list[Event]:
    request = HttpRequest(
        where(2), 2 * S, seen_in="syscalls", method="CONNECT", target="exfil.test:443", address="10.77.0.1", port=3128,
        socket="s3", process="7",
    )  # fmt: skip
    events: list[Event] = [
        connect(1, "10.77.0.1", port=3128, socket="s3"),
        sent(2, "10.77.0.1", 60, port=3128, socket="s3"),
        request,
    ]
    if status is not None:
        events.append(received(3, "10.77.0.1", b"HTTP/1.1 " + status, port=3128, socket="s3"))
    return events


@pytest.mark.parametrize("status", [403, 407, 451])
def test_a_proxy_that_refuses_blocks_the_destination_and_not_itself(status: int) -> None:
    finding = only(run(through_proxy(b"%d No\r\n" % status)))
    assert finding.title == f"exfil.test:443: the proxy refused it with status {status}"
    assert (finding.facts, finding.where) == (
        {"host": "exfil.test:443", "denial": "proxy", "count": 1},
        [where(2), where(3)],
    )


def test_a_proxy_that_connects_blocks_nothing_and_one_whose_answer_is_unseen_is_told() -> None:
    assert run(through_proxy(b"200 OK\r\n")).verdict == "not_detected"
    result = run(through_proxy(None), calls(without=["socket.receive"]), walled())
    assert (result.verdict, result.reason) == (
        "not_observable",
        "exfil.test:443: the evidence does not show what the proxy answered",
    )


def test_an_unreachable_host_behind_icmp_is_blocked_at_packet_level() -> None:
    events: list[Event] = [connect(1, error="EHOSTUNREACH"), flow(1, icmp=(3, 13))]
    assert only(run(events, calls(), wire())).facts["denial"] == "rejected-on-path"


def test_sockets_that_a_policy_refuses_are_blocked_attempts_without_destination() -> None:
    refused = SocketOpen(where(5), S, "socket", None, "EPERM", family="inet", type="stream", process="7")
    finding = only(run([refused]))
    assert finding.title == "making an IP socket was refused with EPERM, policy"
    assert (finding.level, finding.where, finding.facts) == ("info", [where(5)], {"denial": "policy", "count": 1})


def test_a_lost_race_between_addresses_of_one_name_is_no_denial() -> None:
    events: list[Event] = [
        asked(1, "api.test"),
        answer(2, "api.test", "203.0.113.7", "2001:db8::7"),
        connect(3, "2001:db8::7", pending=True, socket="s6", family="inet6"),
        connect(4, "203.0.113.7", socket="s4"),
        state(5, "close", socket="s6"),
    ]
    assert run(events).verdict == "not_detected"


def test_a_missing_ipv6_network_is_a_note() -> None:
    result = run([connect(1, "2001:db8::7", "ENETUNREACH", family="inet6"), connect(2, socket="s2")])
    assert result.verdict == "not_detected"
    assert result.limits == [
        Limit("not-denied", "[2001:db8::7]:443: this network has no IPv6; IPv4 went on", False, where(1))
    ]


def test_a_datagram_connect_that_only_sorted_addresses_is_no_second_attempt() -> None:
    tcp = connect(2, error="ENETUNREACH", socket="s2")
    result = run([connect(1, error="ENETUNREACH", transport="udp"), tcp])
    assert [finding.facts["transport"] for finding in result.findings] == ["tcp"]
    alone = only(run([connect(1, error="ENETUNREACH", transport="udp")]))
    assert (alone.facts["transport"], alone.facts["denial"]) == ("udp", "no-route")


@pytest.mark.parametrize(
    ("expectations", "level"),
    [(None, "info"), (expecting("api.test"), "info"), (expecting("other.test"), "suspicious")],
)
def test_a_blocked_named_host_is_suspicious_only_where_documentation_leaves_it_out(
    expectations: object, level: str
) -> None:
    events: list[Event] = [asked(1, "api.test", error="EPERM")]
    finding = only(check(ID, events, [calls()], expectations=expectations))  # type: ignore[arg-type]
    assert finding.level == level


def test_a_capture_that_began_later_proves_no_drop() -> None:
    result = run(silent(), calls(), wire(begin_ns=50 * S))
    assert result.verdict == "not_observable"


def test_a_capture_that_lost_packets_proves_no_drop() -> None:
    lost = wire(Loss("dropped", "12 packets were dropped by the kernel", 12, touches=["net.flow"]))
    assert run(silent(), calls(), lost).verdict == "not_observable"


def test_the_first_denial_after_many_connections_is_found() -> None:
    events: list[Event] = [connect(n + 1, socket=f"s{n}", t=n * MS) for n in range(200)]
    events.append(connect(999, error="EPERM", socket="last", t=S))
    finding = only(run(events))
    assert (finding.facts["count"], finding.facts["attempts"], finding.where) == (1, 201, [where(999)])


def test_more_attempts_or_destinations_than_room_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts_module, "MAX_KEPT", 1)
    pending: list[Event] = [connect(n, pending=True, socket=f"s{n}") for n in range(1, 5)]
    assert ("overflow", 2) in [(limit.what, limit.count) for limit in run(pending).limits]
    monkeypatch.setattr(contacts_module, "MAX_TARGETS", 1)
    many = run([connect(n, f"203.0.113.{n}", socket=f"s{n}") for n in range(1, 5)])
    assert (many.verdict, [(limit.what, limit.count) for limit in many.limits]) == ("not_observable", [("overflow", 3)])


def test_an_unknown_destination_forbids_the_claim() -> None:
    result = run([connect(4, None, family="")])
    assert (result.verdict, [(limit.what, limit.where) for limit in result.limits]) == (
        "not_observable",
        [("unknown-destination", where(4))],
    )


SCENES: dict[str, tuple[list[Event], list[Observation]]] = {
    "output drop": (silent(), [calls(), wire()]),
    "gateway drop": ([*silent(), flow(1, syn=3)], [calls(), wire()]),
    "gateway reject": ([*silent(), flow(1, icmp=(3, 3))], [calls(), wire()]),
    "firewall": (
        [*silent(), dropped(1)],
        [calls(), Observation("firewall", "firewall.log", "nft", watches={"firewall.drop": "inferred"})],
    ),
    "policy of the resolver": (
        [
            asked(1, "x.test"),
            asked(1, "x.test", seen_in="dns"),
            answer(2, "x.test", seen_in="dns", rcode="NXDOMAIN", source="policy"),
        ],
        [calls(), logged()],
    ),
    "name denied": ([asked(1, "x.test", error="EPERM")], [calls(), wire(), logged()]),
    "proxy": (through_proxy(b"403 Forbidden\r\n"), [calls(), wire()]),
    "open": (
        [asked(1, "x.test"), answer(2, "x.test", "203.0.113.7"), connect(3), sent(4), received(5), flow(1, syn_ack=1)],
        [calls(), wire(), logged()],
    ),
    "quiet": ([], [calls(), wire(), logged()]),
    "udp on the wire": (
        [sent(1, transport="udp"), received(2, transport="udp"), flow(1, transport="udp", packets_in=1)],
        [calls(), wire()],
    ),
}


@pytest.mark.parametrize("scene", SCENES)
def test_less_evidence_never_turns_the_verdict_over(scene: str) -> None:
    events, observations = SCENES[scene]
    assert turned_over(ID, events, observations) == []
