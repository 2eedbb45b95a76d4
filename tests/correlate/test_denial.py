"""The denial table, row by row: what calls alone, calls with packets, and calls with firewall evidence must say."""

from __future__ import annotations

from typing import Literal

import pytest
from made_events import MS, S, connect, dropped, flow, packet, received, sent, state

from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.denial import Denial, Judgement, RunView
from mcpdetect.correlate.policies import Policies
from mcpdetect.model.event import Event
from mcpdetect.model.net import FirewallDrop, NetPacket
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import DenialMode

Window = tuple[int | None, int | None]


def judged(
    events: list[Event],
    *,
    packets: bool = False,
    window: Window = (0, 100 * S),
    mode: Literal["open", "denied"] = "open",
    answers: bool = True,
) -> list[Judgement]:
    """Feed a run to the facts and return the judgements of every attempt, in order."""
    run = Run(mode=mode)
    contacts = Contacts(run)
    policies = Policies(run)
    denial = Denial(run, contacts, policies)
    for event in events:
        for fact in (contacts, policies, denial):
            if event.kind in fact.kinds:
                fact.on_event(event)
    view = denial.view(packets, window, answers_watched=answers)
    return [judgement for target in contacts.targets() for _, judgement in denial.judge(target, view)]


def one(
    events: list[Event], *, packets: bool = False, mode: Literal["open", "denied"] = "open", answers: bool = True
) -> tuple[bool | None, DenialMode | None]:
    results = judged(events, packets=packets, mode=mode, answers=answers)
    assert len(results) == 1
    return results[0].blocked, results[0].mode


def silent() -> list[Event]:
    """A non-blocking connect without any later word, given up after five seconds."""
    return [connect(1, pending=True), state(2, "close", t=6 * S)]


def refusal(status: str, after: int = MS) -> list[Event]:
    return [connect(1, pending=True), state(2, "so_error", status, t=S + after)]


def datagram(error: str | None = None, *, count: int = 1) -> list[Event]:
    return [sent(line, transport="udp", error=error, port=5140) for line in range(1, count + 1)]


def arp(number: int, t: int, source: str = "10.77.0.2", address: str = "10.77.0.1") -> NetPacket:
    return NetPacket(packet(number), t, protocol="arp", source=source, address=address)


UDP_REFUSED = sent(90, "10.77.0.1", error="EPERM", transport="udp", port=53, socket="s9")

CALLS_ALONE: list[tuple[str, list[Event], bool | None, DenialMode | None]] = [
    ("output drop, tcp", silent(), None, None),
    ("output drop, tcp blocking", [connect(1, error="ETIMEDOUT")], None, None),
    ("output drop, udp", datagram("EPERM"), True, "output-drop"),
    ("gateway drop, udp", datagram(), None, None),
    ("link down, tcp", refusal("EHOSTUNREACH", 3 * S), True, "link-down"),
    ("output reject, tcp", refusal("ECONNREFUSED"), None, "refused"),
    ("output reject, udp", datagram("EPERM"), True, "output-drop"),
    ("output reject admin, tcp", refusal("EHOSTUNREACH"), True, "rejected-on-path"),
    ("output reject no-route, tcp", [connect(1, error="ENETUNREACH")], True, "no-route"),
    ("tcp reset or closed port", [connect(1, error="ECONNREFUSED")], None, "refused"),
    ("gateway reject, udp second send", [*datagram(), *datagram("ECONNREFUSED")], None, "refused"),
    ("gateway reject admin, udp second send", [*datagram(), *datagram("EHOSTUNREACH")], True, "route-unreachable"),
    ("blackhole route, tcp", [connect(1, error="EINVAL")], True, "route-blackhole"),
    ("blackhole route, udp", datagram("EINVAL"), True, "route-blackhole"),
    ("unreachable route, tcp", [connect(1, error="EHOSTUNREACH")], None, None),
    ("unreachable route, udp", datagram("EHOSTUNREACH"), True, "route-unreachable"),
    ("prohibit route, tcp", [connect(1, error="EACCES")], True, "route-prohibit"),
    ("prohibit route, udp", datagram("EACCES"), True, "route-prohibit"),
    ("no route, tcp", [connect(1, error="ENETUNREACH")], True, "no-route"),
    ("no route, udp", datagram("ENETUNREACH"), True, "no-route"),
    ("no route, connected udp", [connect(1, error="ENETUNREACH", transport="udp", port=5140)], True, "no-route"),
    ("interface down", [connect(1, error="ENETDOWN")], True, "no-route"),
    ("seccomp on connect, tcp", [connect(1, error="EPERM")], True, "policy"),
    ("seccomp on connect, udp", [connect(1, error="EPERM", transport="udp", port=5140)], True, "policy"),
    ("output reject no-route, tcp, later", refusal("ENETUNREACH"), True, "rejected-on-path"),
    ("open, tcp", [connect(1)], False, None),
    ("open, tcp non-blocking, then a byte", [*refusal("0"), sent(3)], False, None),
    ("SO_ERROR 0 and not a byte: a socket that still waits says the same", refusal("0"), None, None),
    ("SO_ERROR 0, then its peer's name", [*refusal("0"), state(3, "peer", "0")], False, None),
    ("open, udp answered", [*datagram(), received(2, transport="udp", port=5140)], False, None),
]


@pytest.mark.parametrize(("row", "events", "blocked", "mode"), CALLS_ALONE, ids=[row[0] for row in CALLS_ALONE])
def test_what_the_calls_alone_say(row: str, events: list[Event], blocked: bool | None, mode: DenialMode | None) -> None:
    assert one(events) == (blocked, mode)


WITH_PACKETS: list[tuple[str, list[Event], bool | None, DenialMode | None]] = [
    ("output drop: no packet at all", silent(), True, "output-drop"),
    ("output drop, blocking", [connect(1, error="ETIMEDOUT")], True, "output-drop"),
    ("output reject: refused without a packet", refusal("ECONNREFUSED"), True, "output-reject"),
    ("output reject admin: unreachable at once", refusal("EHOSTUNREACH"), True, "output-reject"),
    ("output reject no-route: later than a route would say it", refusal("ENETUNREACH"), True, "output-reject"),
    ("gateway reject no-route: ICMP 3/0", [*refusal("ENETUNREACH"), flow(1, icmp=(3, 0))], True, "rejected-on-path"),
    ("something rejects on the way, its ICMP unseen", [*refusal("ENETUNREACH"), flow(1)], True, "rejected-on-path"),
    ("link down: one address request and nothing else", [*silent(), arp(1, S)], True, "link-down"),
    ("link down: told at once, as others had asked before", [arp(1, S), *refusal("EHOSTUNREACH")], True, "link-down"),
    (
        "output reject admin: the address request was answered",
        [arp(1, S), arp(2, S, source="10.77.0.1", address="10.77.0.2"), *refusal("EHOSTUNREACH")],
        True,
        "output-reject",
    ),
    ("gateway drop: the SYN repeats", [*silent(), flow(1, syn=3)], True, "dropped-on-path"),
    ("gateway drop: one SYN, kept open", [*silent(), flow(1)], True, "dropped-on-path"),
    (
        "gateway drop: given up early",
        [connect(1, pending=True), state(2, "close", t=S + 300 * MS), flow(1)],
        None,
        None,
    ),
    ("gateway reject: ICMP 3/3", [*refusal("ECONNREFUSED"), flow(1, icmp=(3, 3))], True, "rejected-on-path"),
    ("gateway reject admin: ICMP 3/13", [*refusal("EHOSTUNREACH"), flow(1, icmp=(3, 13))], True, "rejected-on-path"),
    ("gateway reject, udp", [*datagram(), flow(1, transport="udp", port=5140, icmp=(3, 3))], True, "rejected-on-path"),
    ("reset: closed port or filter", [*refusal("ECONNREFUSED"), flow(1, rst_in=1)], None, "refused"),
    ("input drop: answers come, nothing works", [*silent(), flow(1, syn=3, syn_ack=3)], True, "input-drop"),
    ("link down: only address requests", [*silent(), arp(1, S), arp(2, 2 * S), arp(3, 3 * S)], True, "link-down"),
    (
        "output drop: address requests of others were answered",
        [*silent(), arp(1, S), arp(2, 2 * S), arp(3, 2 * S, source="10.77.0.1", address="10.77.0.2")],
        True,
        "output-drop",
    ),
    ("unreachable route", [connect(1, error="EHOSTUNREACH")], True, "route-unreachable"),
    (
        "closed udp port of the destination",
        [*datagram(), flow(1, transport="udp", port=5140, icmp=(3, 3), icmp_from="203.0.113.7")],
        None,
        "refused",
    ),
    (
        "tcp refused by ICMP of the destination",
        [*refusal("ECONNREFUSED"), flow(1, icmp=(3, 3), icmp_from="203.0.113.7")],
        True,
        "rejected-on-path",
    ),
    ("udp lost on the way", [*datagram(), flow(1, transport="udp", port=5140)], None, None),
    ("udp answered on the wire", [*datagram(), flow(1, transport="udp", port=5140, packets_in=1)], False, None),
    ("established on the wire", [*silent(), flow(1, syn_ack=1, packets_out=2)], False, None),
    ("answered, and the answer never acknowledged", [*silent(), flow(1, syn=1, syn_ack=1, packets_out=1)], None, None),
]


@pytest.mark.parametrize(("row", "events", "blocked", "mode"), WITH_PACKETS, ids=[row[0] for row in WITH_PACKETS])
def test_what_calls_and_packets_say(
    row: str, events: list[Event], blocked: bool | None, mode: DenialMode | None
) -> None:
    assert one(events, packets=True) == (blocked, mode)


WITH_FIREWALL: list[tuple[str, list[Event], bool | None, DenialMode | None]] = [
    ("a log line for the destination", [*silent(), dropped(1)], True, "output-drop"),
    ("a log line that names no action", [*silent(), dropped(1, action="logged")], True, "output-drop"),
    ("a log line of a reject", [*refusal("ECONNREFUSED"), dropped(1, action="reject")], True, "output-reject"),
    ("a log line of the gateway", [*silent(), dropped(1, prefix="FWD")], True, "dropped-on-path"),
    ("a log line that says accept", [*silent(), dropped(1, action="accept")], None, None),
    ("a log line for another port", [*silent(), dropped(1, port=80)], None, None),
    ("a counter that grew", [*silent(), dropped(1, None, port=None, packets=4)], True, "output-drop"),
    ("a line for an established connection", [connect(1), dropped(1)], False, None),
]


@pytest.mark.parametrize(("row", "events", "blocked", "mode"), WITH_FIREWALL, ids=[row[0] for row in WITH_FIREWALL])
def test_what_calls_and_the_firewall_say(
    row: str, events: list[Event], blocked: bool | None, mode: DenialMode | None
) -> None:
    assert one(events) == (blocked, mode)


def test_a_datagram_that_met_eperm_explains_a_silent_connection_of_the_same_run() -> None:
    results = judged([*silent(), UDP_REFUSED])
    assert [(item.blocked, item.mode) for item in results] == [(True, "output-drop"), (True, "output-drop")]
    assert results[0].why.endswith("datagram sends of this run met EPERM: a local filter")


def test_landlock_refuses_tcp_while_datagrams_leave() -> None:
    results = judged([connect(1, error="EACCES"), sent(2, transport="udp", source="argument", socket="s2")])
    assert [(item.blocked, item.mode) for item in results] == [(True, "policy"), (None, None)]


def test_a_prohibiting_route_is_told_though_the_resolver_is_reached() -> None:
    question = sent(1, "10.77.0.1", transport="udp", port=53, socket="s9")
    answered = received(2, "10.77.0.1", transport="udp", port=53, socket="s9")
    results = judged([question, answered, connect(3, error="EACCES")])
    assert [(item.blocked, item.mode) for item in results] == [(False, None), (True, "route-prohibit")]


def test_a_missing_ipv6_network_is_no_denial_while_ipv4_goes_on() -> None:
    six = connect(1, "2001:db8::9", "ENETUNREACH", family="inet6")
    results = judged([six, connect(2, socket="s2")])
    assert [(item.blocked, item.mode) for item in results] == [(False, None), (False, None)]
    assert one([six]) == (True, "no-route")


def test_a_capture_that_ran_at_another_time_proves_no_drop() -> None:
    late = judged(silent(), packets=True, window=(10 * S, 20 * S))
    early = judged(silent(), packets=True, window=(0, S // 2 - 2 * S))
    inside = judged(silent(), packets=True, window=(2 * S, 20 * S))
    assert [item.blocked for item in (*late, *early, *inside)] == [None, None, True]


def test_times_of_another_clock_are_not_compared_with_the_captures() -> None:
    epoch = 1_700_000_000 * S
    results = judged([*silent(), flow(1, t=epoch, syn=3)], packets=True, window=(epoch, epoch + 9 * S))
    assert [(item.blocked, item.mode) for item in results] == [(True, "dropped-on-path")]


def test_flows_are_dealt_to_attempts_by_time() -> None:
    events: list[Event] = [
        connect(1, pending=True, t=S),
        state(2, "so_error", "0", t=S + MS),
        connect(3, pending=True, t=20 * S, socket="s2"),
        state(4, "close", t=26 * S, socket="s2"),
        flow(1, t=S, syn_ack=1, packets_out=2),
        flow(5, t=20 * S, syn=4, source_port=40001),
    ]
    results = judged(events, packets=True)
    assert [(item.blocked, item.mode) for item in results] == [(False, None), (True, "dropped-on-path")]
    assert results[1].where == [Where("capture.pcap", 5, unit="packet")]


def test_an_icmp_error_is_pointed_at_with_its_sender() -> None:
    result = judged([*refusal("ECONNREFUSED"), flow(1, icmp=(3, 3))], packets=True)[0]
    assert result.why == "10.77.0.1 answered with ICMP type 3 code 3"
    assert result.where == [Where("capture.pcap", 1, unit="packet"), Where("capture.pcap", 2, unit="packet")]


def wire_alone(events: list[Event]) -> tuple[bool | None, DenialMode | None] | None:
    run = Run()
    contacts = Contacts(run)
    for event in events:
        contacts.on_event(event)
    targets = list(contacts.targets())
    assert len(targets) == 1
    judgement = Denial(run, contacts, Policies(run)).judge_wire(targets[0])
    return None if judgement is None else (judgement.blocked, judgement.mode)


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([dropped(1)], (True, "output-drop")),
        ([dropped(1, action="reject", prefix="FWD")], (True, "rejected-on-path")),
        ([dropped(1, action="logged")], (None, None)),
        ([dropped(1, action="logged"), flow(1, syn_ack=1, packets_out=2)], None),
        ([flow(1, syn=3)], (True, "dropped-on-path")),
        ([flow(1)], (None, None)),
        ([flow(1, syn_ack=1, packets_out=2)], None),
        ([flow(1, icmp=(3, 13))], (True, "rejected-on-path")),
        ([flow(1, icmp=(3, 3), packets_in=1)], None),
        ([flow(1, midstream=True, syn=0)], None),
        ([flow(1, transport="udp")], None),
        ([flow(1, transport="udp", icmp=(3, 3))], (True, "rejected-on-path")),
        ([flow(1), flow(3, syn=2)], (True, "dropped-on-path")),
    ],
)
def test_what_wire_and_firewall_say_without_any_call(
    events: list[Event], outcome: tuple[bool | None, DenialMode | None] | None
) -> None:
    assert wire_alone(events) == outcome


@pytest.mark.parametrize(
    ("t_ns", "window", "captured"),
    [
        (S, (None, None), True),
        (S, (0, 2 * S), True),
        (None, (0, 2 * S), False),
        (S, (5 * S, None), False),
        (9 * S, (None, S), False),
        (2 * S, (None, S), True),
    ],
)
def test_a_capture_covers_its_window_and_a_little(
    t_ns: int | None, window: tuple[int | None, int | None], captured: bool
) -> None:
    assert RunView(True, False, False, False, False, window).captured(t_ns) is captured
    assert RunView(False, False, False, False, False, window).captured(t_ns) is False


def test_denial_without_contacts_is_a_fault_of_the_caller() -> None:
    contacts, policies = Contacts(Run()), Policies(Run())
    for facts in ((policies, policies), (contacts, contacts)):
        with pytest.raises(TypeError, match="Denial reads Contacts and Policies"):
            Denial(Run(), *facts)


def test_the_wire_decides_what_an_so_error_of_zero_means() -> None:
    waiting: list[Event] = [connect(1, pending=True), state(2, "so_error", "0", t=5 * S)]
    assert one([*waiting, flow(1, syn=4)], packets=True) == (True, "dropped-on-path")
    assert one([*waiting, flow(1, syn=1, syn_ack=1, packets_out=2)], packets=True) == (False, None)
    assert one(waiting, packets=True) == (True, "output-drop")


NSCD = connect(80, None, "EACCES", family="unix", path="/var/run/nscd/socket", transport="unix", socket="s8")
ELSEWHERE = sent(70, "198.51.100.9", transport="udp", port=5140, socket="s7")


def test_a_policy_on_calls_refuses_whatever_the_destination() -> None:
    for error in ("EPERM", "EACCES"):
        assert one([connect(1, error=error), NSCD]) == (True, "policy")
        assert one([*datagram(error), NSCD]) == (True, "policy")
    other = connect(80, None, "EACCES", family="unix", path="/run/docker.sock", transport="unix", socket="s8")
    absent = connect(80, None, "ENOENT", family="unix", path="/var/run/nscd/socket", transport="unix", socket="s8")
    for event in (other, absent):
        assert one([connect(1, error="EACCES"), event]) == (True, "route-prohibit")


def test_eacces_where_a_route_leads_is_a_policy() -> None:
    sorting = connect(1, transport="udp", socket="s2")  # getaddrinfo asks for a route before it hands addresses out
    assert one([sorting, connect(2, error="EACCES")]) == (True, "policy")
    elsewhere = connect(1, "198.51.100.9", transport="udp", socket="s2")
    assert one([elsewhere, connect(2, error="EACCES")]) == (True, "route-prohibit")
    refused = connect(1, transport="udp", socket="s2", error="EACCES")
    both = judged([refused, connect(2, error="EACCES")])
    assert [item.mode for item in both] == ["route-prohibit", "route-prohibit"]


def test_a_link_that_carries_not_even_datagrams_is_down() -> None:
    def first(*events: Event) -> tuple[bool | None, DenialMode | None]:
        judgement = judged([*silent(), *events], packets=True)[0]
        return judgement.blocked, judgement.mode

    assert first(ELSEWHERE) == (True, "link-down")
    seen = flow(1, "198.51.100.9", port=5140, transport="udp", t=2 * S)
    assert first(ELSEWHERE, seen) == (True, "output-drop")
    lost = judged([*silent(), ELSEWHERE], packets=True, mode="denied")[1]
    assert (lost.blocked, lost.mode) == (True, "link-down")
    for found in (
        judged([*silent(), ELSEWHERE], packets=True),  # nothing says that the network was denied
        judged([*silent(), ELSEWHERE], mode="denied"),
        judged([*silent(), ELSEWHERE], packets=True, mode="denied", window=(0, 0)),
        judged([*silent(), ELSEWHERE, flow(1, "192.0.2.1")], packets=True, mode="denied"),
    ):
        assert (found[1].blocked, found[1].mode) == (None, None)
    refused = sent(70, "198.51.100.9", error="EPERM", transport="udp", port=5140, socket="s7")
    assert first(refused) == (True, "output-drop")


def test_no_route_over_ipv6_is_no_denial_only_where_ipv4_goes_on() -> None:
    six = connect(1, "2001:db8:7::7", error="ENETUNREACH", family="inet6", socket="s2")
    assert [item.blocked for item in judged([six, connect(2)])] == [False, False]
    without = judged(
        [six, connect(2, error="ENETUNREACH"), sent(3, "10.77.0.1", transport="udp", port=53, socket="s3")]
    )
    assert [(item.blocked, item.mode) for item in without[:2]] == [(True, "no-route"), (True, "no-route")]


def test_an_answered_datagram_whose_answer_the_program_waited_for_in_vain_was_dropped_on_arrival() -> None:
    answered = flow(1, transport="udp", port=5140, t=2 * S, packets_in=1)
    wait = state(5, "poll", "timeout", t=3 * S)
    assert one([*datagram(), wait, answered], packets=True, mode="denied") == (True, "input-drop")
    # It may never have looked; the counters of a rule cannot tell either.
    assert one([*datagram(), answered], packets=True, mode="denied") == (None, "input-drop")
    counted = dropped(9, None, transport=None, port=None)
    assert one([*datagram(), answered, counted], packets=True, mode="denied") == (None, "input-drop")
    # Nobody watched whether it did; nothing was denied; it was read.
    assert one([*datagram(), wait, answered], packets=True, mode="denied", answers=False) == (False, None)
    assert one([*datagram(), wait, answered], packets=True) == (False, None)
    read = received(6, transport="udp", port=5140, t=3 * S)
    assert one([*datagram(), read, wait, answered], packets=True, mode="denied") == (False, None)


def test_a_name_server_that_rejects_is_noted() -> None:
    run = Run()
    contacts = Contacts(run)
    contacts.on_event(flow(1, "10.77.0.1", transport="udp", port=53, icmp=(3, 3)))
    contacts.on_event(flow(2, "10.77.0.9", transport="udp", port=53, packets_in=1))
    assert Denial(run, contacts, Policies(run)).view(True).rejecting == {"10.77.0.1"}


def test_of_several_counting_rules_the_one_that_does_what_was_seen_names_the_mode() -> None:
    def counted(line: int, action: Literal["drop", "reject"]) -> FirewallDrop:
        return dropped(line, None, transport=None, port=None, action=action, prefix="inet deny")

    rules = [counted(8, "reject"), counted(9, "drop")]
    assert one([*datagram(), *rules]) == (True, "dropped-on-path")
    assert one([*refusal("ECONNREFUSED"), *rules]) == (True, "rejected-on-path")
    assert one([*datagram(), rules[0]]) == (True, "rejected-on-path")
