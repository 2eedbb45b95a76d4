"""egress.direct-ip: an address is direct only where names were watched and none explains it."""

from __future__ import annotations

import pytest
from hand_sources import where
from made_events import (
    S,
    answer,
    asked,
    calls,
    changed,
    check,
    connect,
    dropped,
    execed,
    expecting,
    flow,
    flows_only,
    hello,
    logged,
    opened,
    packet,
    read,
    sent,
    state,
    turned_over,
    wire,
)

from mcpdetect.model.addresses import canonical
from mcpdetect.model.event import Event
from mcpdetect.model.net import NetPacket, SocketOpen
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Limit
from mcpdetect.model.trace import Run

ID = "egress.direct-ip"
CLAIM = "no traffic to an address without a name was seen or tried"
A = "203.0.113.20"


def run(events: list[Event], *observations: Observation, resolvers: list[str] | None = None) -> CheckResult:
    return check(
        ID, events, list(observations) or [calls(), flows_only()], run=Run(resolvers=resolvers or ["10.77.0.1"])
    )


def only(result: CheckResult) -> Finding:
    assert result.verdict == "detected"
    assert len(result.findings) == 1
    return result.findings[0]


def rules(finding: Finding) -> list[str]:
    return [item.rule for item in finding.explanations]


def test_a_connection_with_data_to_a_bare_address_is_detected_with_its_places() -> None:
    events: list[Event] = [execed(1, "/usr/bin/node"), connect(2, A), sent(3, A, 33), flow(1, A, syn_ack=1, data_out=1)]
    finding = only(run(events, calls(), wire()))
    assert finding.title == f"Data or a connection reached {A}:443/tcp, an address no name explains"
    assert (finding.level, finding.process, finding.program, finding.t_ns) == ("suspicious", "7", "/usr/bin/node", S)
    assert (finding.where, finding.identity) == ([where(2), packet(1)], f"tcp {A}:443")
    assert finding.facts == {
        "address": A,
        "port": 443,
        "transport": "tcp",
        "outcome": "established",
        "attempts": 1,
        "flows": 1,
        "sent": 33,
        "claimed": [],
        "count": 1,
    }


def test_attempt_connection_and_unknown_outcome_are_all_intents() -> None:
    events: list[Event] = [
        connect(1, "203.0.113.7", pending=True, socket="s3"),
        state(3, "so_error", "ECONNREFUSED", socket="s3"),
        connect(4, "203.0.113.8", pending=True, socket="s5"),
        state(5, "so_error", "0", socket="s5"),
        sent(6, "203.0.113.8", 5, socket="s5"),
        connect(7, "203.0.113.9", pending=True, socket="s6"),
    ]
    found = [
        (f.facts["address"], f.facts["outcome"], f.facts["sent"], f.title.split(" ")[0]) for f in run(events).findings
    ]
    assert found == [
        ("203.0.113.7", "refused", 0, "A"),
        ("203.0.113.8", "established", 5, "Data"),
        ("203.0.113.9", "in_progress", 0, "A"),
    ]


def test_addresses_that_getaddrinfo_only_sorts_are_no_egress() -> None:
    events: list[Event] = [
        connect(1, None, "ENOENT", family="unix", transport="unix", path="/var/run/nscd/socket"),
        connect(3, "203.0.113.10", transport="udp"),
        connect(5, None, family="unspec", transport="udp"),
        connect(6, "203.0.113.11", transport="udp", port=0),
        state(8, "close"),
    ]
    result = run(events)
    assert (result.verdict, result.reason) == ("not_detected", CLAIM)
    followed = run([*events[:2], sent(4, "203.0.113.10", 3, transport="udp")])
    assert only(followed).facts["address"] == "203.0.113.10"


def test_a_name_from_the_calls_own_buffers_explains() -> None:
    events: list[Event] = [asked(1, "vendor.test"), answer(2, "vendor.test", A), connect(3, A)]
    assert run(events).verdict == "not_detected"
    late: list[Event] = [connect(1, A), asked(2, "vendor.test", t=8 * S), answer(3, "vendor.test", A, t=9 * S)]
    finding = only(run(late))
    assert finding.reason.endswith("Others know the address as vendor.test.")


def test_a_name_from_a_hosts_file_explains() -> None:
    hosts = read(5, "/etc/hosts", b"203.0.113.20 vendor.test\n")
    assert run([opened(4, "/etc/hosts"), hosts, connect(6, A)]).verdict == "not_detected"


def test_a_hosts_file_that_the_run_wrote_explains_nothing() -> None:
    hosts = read(5, "/etc/hosts", b"203.0.113.20 vendor.test\n")
    assert only(run([changed(4, "write", "/etc/hosts"), hosts, connect(6, A)])).facts["address"] == A
    unwatched = run([hosts, connect(6, A)], calls(without=["file.change"]), flows_only())
    assert (unwatched.verdict, [limit.what for limit in unwatched.limits]) == ("not_observable", ["names-unknown"])


def test_an_answer_that_only_another_container_asked_for_clears_nobody() -> None:
    others: list[Event] = [
        asked(1, "cdn.test", seen_in="dns", client="10.77.0.9"),
        answer(2, "cdn.test", A, seen_in="dns", client="10.77.0.9"),
        connect(3, A, process="91"),
    ]
    finding = only(run(others, calls(), logged()))
    assert (finding.process, finding.facts["address"]) == ("91", A)
    on_the_wire = only(run([*others, flow(1, A)], calls(), wire(), logged()))
    assert on_the_wire.reason.endswith("Others know the address as cdn.test.")
    asked_too = run([*others, asked(4, "cdn.test")], calls(), logged(), flows_only())
    assert asked_too.verdict == "not_detected"


def test_evidence_of_names_that_begins_after_the_contact_leaves_the_name_unknown() -> None:
    cut = calls(Loss("string-cut", "buffers are cut", touches=["data:socket.send", "socket.receive"]))
    result = run([connect(1, A, t=S)], cut, logged(begin_ns=5 * S), flows_only())
    assert result.verdict == "not_observable"
    assert result.limits == [
        Limit("names-late", f"{A}:443: it was contacted before the evidence of names begins", True, where(1))
    ]


def test_without_any_evidence_of_names_the_name_is_unknown_and_a_claimed_one_is_a_hint() -> None:
    deaf = calls(without=["socket.receive"])
    wire_without_names = Observation(
        "packets", "capture.pcap", "pcap", watches={"net.flow": "inferred", "net.packet": "inferred"}
    )
    result = run([connect(1, A), hello(4, A, "api.vendor.test")], deaf, wire_without_names)
    assert result.limits == [
        Limit(
            "names-unknown",
            f"{A}:443: no evidence of name resolution covers this run; the client itself named api.vendor.test",
            True,
            where(1),
        )
    ]


def test_a_claimed_name_proves_nothing_where_names_were_watched() -> None:
    finding = only(run([connect(1, A), flow(1, A, syn_ack=1), hello(4, A, "api.vendor.test")], calls(), wire()))
    assert finding.facts["claimed"] == ["api.vendor.test"]
    assert finding.reason.endswith("The client itself claimed the name api.vendor.test, which proves nothing.")


@pytest.mark.parametrize(
    "event",
    [
        answer(2, None),
        connect(2, None, family="unix", transport="unix", path="/run/systemd/resolve/io.systemd.Resolve"),
        read(2, "/etc/hosts", b"", mapped=True),
    ],
)
def test_names_that_the_evidence_hides_leave_the_name_unknown(event: Event) -> None:
    result = run([event, connect(3, A)])
    assert (result.verdict, [limit.what for limit in result.limits]) == ("not_observable", ["names-unknown"])


def test_a_hosts_file_that_was_opened_and_whose_reads_were_not_watched_leaves_the_name_unknown() -> None:
    result = run([opened(2, "/etc/hosts"), connect(3, A)], calls(without=["file.read"]), flows_only())
    assert (result.verdict, [limit.what for limit in result.limits]) == ("not_observable", ["names-unknown"])
    assert run([opened(2, "/etc/hosts"), connect(3, A)]).verdict == "detected"


@pytest.mark.parametrize(
    ("address", "verdict"),
    [
        ("127.0.0.1", "not_detected"),
        ("::ffff:127.0.0.1", "not_detected"),
        ("64:ff9b::7f00:1", "detected"),
        ("224.0.0.251", "not_detected"),
        ("255.255.255.255", "not_detected"),
        ("169.254.169.254", "not_detected"),
        ("fe80::1%eth0", "not_detected"),
        ("10.0.0.9", "detected"),
        ("198.51.100.5", "detected"),
        ("2001:db8::9", "detected"),
    ],
)
def test_where_an_address_leads_decides_whether_it_is_egress(address: str, verdict: str) -> None:
    assert run([sent(1, address, transport="udp", port=5353, source="argument")]).verdict == verdict


@pytest.mark.parametrize("written", ["::ffff:203.0.113.20", "64:ff9b::cb00:7114", A])
def test_ipv4_inside_ipv6_joins_its_names(written: str) -> None:
    events: list[Event] = [asked(1, "vendor.test"), answer(2, "vendor.test", A), connect(3, canonical(written))]
    assert run(events).verdict == "not_detected"


def test_a_metadata_service_is_a_class_of_its_own() -> None:
    result = run([connect(1, "169.254.169.254", "ENETUNREACH", port=80)])
    assert result.verdict == "not_detected"
    assert result.limits == [
        Limit("other-class", "169.254.169.254:80 was contacted; metadata is no internet egress", False)
    ]


def test_the_configured_resolver_is_no_direct_address_and_a_foreign_one_is() -> None:
    events: list[Event] = [
        asked(1, "vendor.test"),
        sent(1, "10.77.0.1", transport="udp", port=53, socket="s4"),
        asked(2, "vendor.test", server="203.0.113.53"),
        sent(2, "203.0.113.53", transport="udp", port=53, socket="s5", source="argument"),
    ]
    assert only(run(events)).facts["address"] == "203.0.113.53"
    configured = read(0, "/etc/resolv.conf", b"nameserver 10.77.0.1\n")
    assert only(check(ID, [configured, *events], [calls()])).facts["address"] == "203.0.113.53"


def test_an_unknown_resolver_is_taken_for_one_and_forbids_the_claim() -> None:
    events: list[Event] = [
        asked(1, "vendor.test", server="203.0.113.53"),
        sent(1, "203.0.113.53", transport="udp", port=53, socket="s4"),
    ]
    result = check(ID, events, [calls(), flows_only()])
    assert (result.verdict, [(limit.what, limit.hides) for limit in result.limits]) == (
        "not_observable",
        [("resolver-unknown", True)],
    )
    own_log = asked(1, "vendor.test", seen_in="dns", server=None)
    noted = check(ID, [*events, own_log], [calls(), logged(), flows_only()])
    assert (noted.verdict, [(limit.what, limit.hides) for limit in noted.limits]) == (
        "not_detected",
        [("resolver-unknown", False)],
    )


def test_another_port_of_a_resolver_is_a_contact_like_any_other() -> None:
    assert only(run([sent(1, "10.77.0.1", transport="udp", port=5300, source="argument")])).facts["port"] == 5300


def test_packets_without_any_call_are_stated_and_not_blamed_on_the_server() -> None:
    finding = only(run([flow(3, A, transport="udp", port=4000)], calls(), wire()))
    assert (finding.level, rules(finding), finding.process) == ("info", ["unattributed"], None)
    assert finding.where == [packet(3)]


@pytest.mark.parametrize(
    "event",
    [
        SocketOpen(where(1), S, "socket", 3, family="packet", type="raw", fd=3, socket="s1"),
        connect(1, None, family=""),
    ],
)
def test_packets_are_not_excused_while_a_call_may_have_made_them(event: Event) -> None:
    finding = only(run([event, flow(3, A)], calls(), wire()))
    assert (finding.level, rules(finding)) == ("suspicious", [])


def test_a_raw_socket_needs_a_capture_before_anything_is_claimed() -> None:
    raw = SocketOpen(where(1), S, "socket", 3, family="packet", type="raw", fd=3, socket="s1")
    assert run([raw], calls()).verdict == "not_observable"
    result = run([raw], calls(), wire())
    assert (result.verdict, [(limit.what, limit.hides) for limit in result.limits]) == (
        "not_detected",
        [("raw-socket", False)],
    )


def test_a_lossy_trace_excuses_nothing_and_the_capture_still_detects() -> None:
    rings = calls(Loss("io_uring", "rings in use", touches=["socket.connect", "socket.send"]))
    finding = only(run([flow(3, A)], rings, wire()))
    assert (finding.level, rules(finding)) == ("suspicious", [])
    assert run([], rings, wire()).verdict == "not_observable"


def test_a_capture_alone_detects_and_never_claims_that_nothing_was_tried() -> None:
    assert only(check(ID, [flow(3, A)], [wire(), logged()])).facts["outcome"] == "unanswered"
    result = check(ID, [], [wire(), logged()])
    assert (result.verdict, [limit.what for limit in result.limits]) == ("not_observable", ["missing-channel"])


def test_a_claimed_name_without_sight_of_hosts_files_leaves_the_name_unknown() -> None:
    result = check(ID, [flow(3, A), hello(4, A, "intranet.test")], [wire(), logged()])
    assert [limit.what for limit in result.limits] == ["missing-channel", "names-unknown"]


def test_a_firewall_line_for_a_bare_address_is_a_try() -> None:
    finding = only(run([dropped(7, A)], calls(), wire()))
    assert (finding.facts["outcome"], finding.where) == ("denied", [Where("firewall.log", 7)])


def test_fast_open_and_echo_data_are_contacts() -> None:
    assert only(run([sent(1, A, 12, source="argument")])).facts["sent"] == 12
    request = NetPacket(packet(1), S, protocol="icmp", source="10.77.0.2", address=A, icmp_type=8)
    finding = only(run([sent(1, A, 64, transport="icmp", port=0, source="argument"), request], calls(), wire()))
    assert (finding.facts["transport"], finding.facts["port"]) == ("icmp", None)


def test_traffic_on_connections_that_others_opened_is_not_direct_egress() -> None:
    assert run([sent(1, "198.51.100.9", 40, port=55000, source="accept")]).verdict == "not_detected"


@pytest.mark.parametrize(
    ("target", "hosts", "rule"),
    [(["node", "server.js", A], [], "operator-argument"), ([], ["203.0.113.0/24"], "documented-host")],
)
def test_an_address_that_operator_or_documentation_names_is_information(
    target: list[str], hosts: list[str], rule: str
) -> None:
    result = check(ID, [connect(1, A)], [calls()], run=Run(target=target), expectations=expecting(*hosts))
    finding = only(result)
    assert (finding.level, rules(finding)) == ("info", [rule])


SCENES: dict[str, tuple[list[Event], list[Observation]]] = {
    "bare address": ([connect(1, A), sent(2, A), flow(1, A, syn_ack=1)], [calls(), wire(), logged()]),
    "bare address, denied": ([connect(1, A, pending=True)], [calls(), wire(), logged()]),
    "bare address, datagram denied": ([sent(1, A, error="EPERM", transport="udp")], [calls(), wire(), logged()]),
    "named": (
        [
            asked(1, "vendor.test"),
            answer(2, "vendor.test", A),
            asked(1, "vendor.test", seen_in="packets"),
            answer(2, "vendor.test", A, seen_in="packets"),
            asked(1, "vendor.test", seen_in="dns", client="10.77.0.2"),
            answer(2, "vendor.test", A, seen_in="dns", client="10.77.0.2"),
            connect(3, A),
            flow(4, A, syn_ack=1),
        ],
        [calls(), wire(), logged()],
    ),
    "foreign resolver": (
        [asked(1, "x.test", server="9.9.9.9"), sent(1, "9.9.9.9", transport="udp", port=53)],
        [calls(), wire()],
    ),
    "hosts file by name": (
        [opened(1, "/etc/hosts"), read(2, "/etc/hosts", b"203.0.113.20 vendor.test\n"), connect(3, A)],
        [calls()],
    ),
    "hosts file, and the hello says so": (
        [
            opened(1, "/etc/hosts"),
            read(2, "/etc/hosts", b"203.0.113.20 vendor.test\n"),
            connect(3, A),
            flow(4, A, syn_ack=1),
            hello(5, A, "vendor.test"),
        ],
        [calls(), wire(), logged()],
    ),
    "hosts file changed": (
        [changed(1, "write", "/etc/hosts"), read(2, "/etc/hosts", b"203.0.113.20 vendor.test\n"), connect(3, A)],
        [calls()],
    ),
    "other container's name": (
        [
            asked(1, "cdn.test", seen_in="dns", client="10.77.0.9"),
            answer(2, "cdn.test", A, seen_in="dns", client="10.77.0.9"),
            connect(3, A),
            flow(1, A),
        ],
        [calls(), wire(), logged()],
    ),
    "quiet": ([], [calls(), wire(), logged()]),
}


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("scene", SCENES)
def test_less_evidence_never_turns_the_verdict_over(scene: str, declared: bool) -> None:
    events, observations = SCENES[scene]
    resolvers = ["10.77.0.1"] if declared else []
    turned = turned_over(ID, events, observations, run=Run(resolvers=resolvers))
    assert turned == []
