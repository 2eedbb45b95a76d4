"""Attempts, connections and transfers kept apart; nothing outside the machine lost, nothing inside counted."""

from __future__ import annotations

from typing import Any

import pytest
from hand_sources import where
from made_events import MS, S, connect, dropped, flow, packet, received, sent, state

from mcpdetect.correlate import contacts as module
from mcpdetect.correlate.contacts import MAX_KEPT, Contacts
from mcpdetect.correlate.target import Attempt, Target
from mcpdetect.model.event import Event
from mcpdetect.model.net import HttpRequest, NetPacket, SocketOpen, SocketReceive
from mcpdetect.model.trace import Run


def met(*events: Event) -> Contacts:
    contacts = Contacts(Run())
    for event in events:
        assert event.kind in Contacts.kinds
        contacts.on_event(event)
    return contacts


def targets(*events: Event) -> list[Target]:
    return list(met(*events).targets())


def only(*events: Event) -> Attempt:
    found = targets(*events)
    assert len(found) == 1
    assert len(found[0].attempts) == 1
    return found[0].attempts[0]


def keys(*events: Event) -> list[tuple[str, str, int | None]]:
    return [(target.transport, target.address, target.port) for target in targets(*events)]


def test_attempt_connection_and_transfer_are_three_things() -> None:
    found = targets(
        connect(1, "203.0.113.7", pending=True, socket="s3"),
        state(3, "so_error", "ECONNREFUSED", socket="s3"),
        connect(4, "203.0.113.8", pending=True, socket="s5"),
        state(5, "so_error", "0", socket="s5"),
        sent(6, "203.0.113.8", 5, socket="s5"),
        connect(7, "203.0.113.9", pending=True, socket="s6"),
    )
    states = [(target.address, target.attempts[0].outcome, target.attempts[0].sent, target.sent) for target in found]
    assert states == [
        ("203.0.113.7", "refused", 0, False),
        ("203.0.113.8", "established", 5, True),
        ("203.0.113.9", "in_progress", 0, False),
    ]
    assert found[1].attempts[0].where == [where(4), where(5)]


@pytest.mark.parametrize("port", [443, 0])
def test_a_datagram_connect_alone_is_no_contact(port: int) -> None:
    assert targets(connect(1, transport="udp", port=port), state(2, "close")) == []


def test_a_datagram_connect_that_failed_is_an_attempt_except_on_port_zero() -> None:
    attempt = only(connect(1, error="ENETUNREACH", transport="udp"))
    assert (attempt.outcome, attempt.error, attempt.via) == ("unreachable", "ENETUNREACH", "connect")
    assert targets(connect(1, error="ENETUNREACH", transport="udp", port=0)) == []


def test_a_datagram_sent_after_connect_is_a_contact_with_what_left() -> None:
    attempt = only(connect(1, transport="udp"), sent(2, transport="udp", size=9), sent(3, transport="udp", size=4))
    assert (attempt.via, attempt.sends, attempt.sent, attempt.outcome) == ("send", 2, 13, "unanswered")
    assert attempt.where == [where(2), where(3)]


def test_two_sends_that_met_eperm_are_two_failed_sends() -> None:
    contacts = met(
        connect(1, transport="udp", port=53, socket="s4"),
        sent(2, transport="udp", port=53, error="EPERM", socket="s4"),
        sent(3, transport="udp", port=53, error="EPERM", socket="s3", source="argument"),
    )
    target = next(contacts.targets())
    assert (target.transport, target.port, len(target.attempts)) == ("udp", 53, 2)
    assert [(item.outcome, item.failed_sends, item.where) for item in target.attempts] == [
        ("denied", 1, [where(2)]),
        ("denied", 1, [where(3)]),
    ]
    assert contacts.udp_denied


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"])
def test_what_stays_on_this_machine_is_no_contact(address: str) -> None:
    assert targets(connect(1, address), sent(2, address), flow(3, address), dropped(4, address)) == []


@pytest.mark.parametrize("error", ["EFAULT", "EBADF", "ENOTSOCK", "EISCONN", "ENOENT"])
def test_the_callers_own_mistake_is_no_attempt(error: str) -> None:
    assert targets(connect(1, error=error)) == []


def test_a_unix_socket_is_no_contact_and_no_unknown_destination() -> None:
    contacts = met(connect(1, None, "ENOENT", family="unix", transport="unix", path="/var/run/nscd/socket"))
    assert (list(contacts.targets()), contacts.unknown_destination) == ([], [])


@pytest.mark.parametrize(
    ("event", "unknown"),
    [
        (connect(1, None, family="inet"), [where(1)]),
        (connect(1, None, family=""), [where(1)]),
        (connect(1, None, "EFAULT", family=""), []),
        (connect(1, None, "EINVAL", family=""), []),
        (connect(1, None, family="unspec", transport="udp"), []),
        (connect(1, None, family="vsock", transport="vsock", path="2:5000"), []),
        (sent(1, None, port=None), [where(1)]),
        (sent(1, None, port=None, error="EPIPE"), []),
    ],
)
def test_a_destination_that_is_not_in_the_evidence_is_kept_as_unknown(event: Event, unknown: list[Any]) -> None:
    assert met(event).unknown_destination == unknown


def test_a_second_connect_reports_the_fate_of_the_first() -> None:
    attempt = only(connect(1, pending=True), connect(2, error="ECONNREFUSED", t=2 * S))
    assert (attempt.outcome, attempt.late, attempt.where) == ("refused", True, [where(1), where(2)])
    assert only(connect(1, pending=True), connect(2, error="EISCONN")).outcome == "established"


def test_a_retry_after_a_failure_is_an_attempt_of_its_own() -> None:
    found = targets(connect(1, error="ENETUNREACH"), connect(2), sent(3, size=7))
    assert [(item.outcome, item.sent) for item in found[0].attempts] == [("unreachable", 0), ("established", 7)]


def test_data_through_fast_open_needs_no_connect() -> None:
    attempt = only(sent(1, size=12, source="argument"))
    assert (attempt.via, attempt.outcome, attempt.sent, attempt.remote_source) == (
        "send",
        "established",
        12,
        "argument",
    )


def test_data_on_an_accepted_connection_is_marked_as_inbound() -> None:
    attempt = only(sent(1, "198.51.100.9", 40, port=55000, source="accept"))
    assert (attempt.via, attempt.sent) == ("accept", 40)


@pytest.mark.parametrize("error", ["ECONNREFUSED", "ETIMEDOUT", "EHOSTUNREACH"])
def test_a_receive_brings_the_pending_error_of_its_socket(error: str) -> None:
    attempt = only(connect(1, pending=True), received(2, error=error, t=3 * S))
    assert (attempt.error, attempt.late, attempt.settled_ns) == (error, True, 3 * S)
    datagram = only(sent(1, transport="udp", port=5140), received(2, error=error, transport="udp", port=5140, t=3 * S))
    assert (datagram.error, datagram.late) == (error, True)


def test_a_receive_that_only_has_to_wait_says_nothing() -> None:
    assert only(connect(1, pending=True), received(2, error="EAGAIN")).outcome == "in_progress"


def test_a_connection_that_was_lost_later_stays_established() -> None:
    attempt = only(connect(1), sent(2), received(3, error="ECONNRESET"), sent(4, error="EPIPE"))
    assert (attempt.outcome, attempt.error) == ("established", None)


def test_closing_gives_the_descriptor_free_for_another_attempt() -> None:
    found = targets(
        connect(1, pending=True), state(2, "close", t=3 * S), connect(3, "203.0.113.8"), state(4, "so_error", "EPERM")
    )
    assert [(item.address, item.attempts[0].outcome, item.attempts[0].closed_ns) for item in found] == [
        ("203.0.113.7", "in_progress", 3 * S),
        ("203.0.113.8", "established", None),
    ]


def test_a_wait_that_timed_out_is_remembered() -> None:
    assert only(connect(1, pending=True), state(2, "poll", "timeout")).waited


def test_an_attempt_on_a_socket_of_unknown_make_joins_the_only_transport_of_the_wire() -> None:
    found = targets(connect(1, transport=None, pending=True), flow(2, syn=3))
    assert [(item.transport, len(item.attempts), len(item.flows)) for item in found] == [("tcp", 1, 1)]
    assert found[0].attempts[0].transport == "tcp"
    both = keys(connect(1, transport=None), flow(2), flow(3, transport="udp"))
    assert both == [("unknown", "203.0.113.7", 443), ("tcp", "203.0.113.7", 443), ("udp", "203.0.113.7", 443)]


def test_echo_requests_join_the_socket_that_made_them() -> None:
    ping = sent(1, "203.0.113.9", 64, port=0, transport="icmp", source="argument")
    request = NetPacket(packet(1), S, protocol="icmp", source="10.77.0.2", address="203.0.113.9", icmp_type=8)
    reply = NetPacket(packet(2), S, protocol="icmp", source="203.0.113.9", address="10.77.0.2", icmp_type=0)
    found = targets(ping, request, reply)
    assert [(item.transport, item.port, len(item.attempts), len(item.packets), item.answered) for item in found] == [
        ("icmp", None, 1, 1, 1)
    ]


@pytest.mark.parametrize(
    ("protocol", "kind", "address"),
    [("icmp", 3, "203.0.113.9"), ("icmp", 0, "203.0.113.9"), ("icmpv6", 135, "2001:db8::9"), ("arp", None, "10.77.0.1"),
     ("fragment", None, "203.0.113.9"), ("ip-2", None, "224.0.0.22")],
)  # fmt: skip
def test_packets_that_ask_for_nothing_are_no_contact(protocol: str, kind: int | None, address: str) -> None:
    event = NetPacket(packet(1), S, protocol=protocol, source="10.77.0.2", address=address, icmp_type=kind)
    assert targets(event) == []


def test_a_tunnel_protocol_is_a_contact_without_port() -> None:
    assert keys(NetPacket(packet(1), S, protocol="gre", address="203.0.113.9")) == [("gre", "203.0.113.9", None)]


def test_a_firewall_line_alone_makes_a_destination_and_an_accepted_one_does_not() -> None:
    assert keys(dropped(1), dropped(2, "203.0.113.8", action="accept")) == [("tcp", "203.0.113.7", 443)]


def test_a_raw_or_packet_socket_is_noted() -> None:
    def made(line: int, family: str, kind: str, error: str | None = None) -> SocketOpen:
        return SocketOpen(where(line), S, "socket", None if error else 3, error, family=family, type=kind)

    assert met(made(1, "netlink", "raw"), made(2, "packet", "dgram"), made(3, "inet", "raw")).raw_socket == where(2)
    assert met(made(1, "netlink", "raw"), made(3, "inet6", "raw")).raw_socket == where(3)
    assert met(made(1, "inet", "raw", "EPERM"), made(2, "inet", "stream")).raw_socket is None


def test_a_receive_without_address_answers_the_one_datagram_of_its_socket() -> None:
    def read(line: int, data: bytes = b"ok") -> SocketReceive:
        return SocketReceive(
            where(line),
            3 * S,
            "recvfrom",
            len(data),
            None,
            socket="s1",
            fd=3,
            transport="udp",
            data=data,
            size=len(data),
        )

    to = sent(1, transport="udp", port=5140)
    (only,) = [item.attempts[0] for item in targets(to, read(2))]
    assert (only.replies, only.outcome) == (1, "established")
    (only,) = [item.attempts[0] for item in targets(to, read(2, b""))]
    assert (only.replies, only.outcome) == (0, "unanswered")
    both = [item.attempts[0] for item in targets(to, sent(2, "198.51.100.9", transport="udp", port=5140), read(3))]
    assert [(item.replies, item.outcome) for item in both] == [(1, "unanswered"), (1, "unanswered")]
    other = SocketReceive(where(2), 3 * S, "recvfrom", 2, None, socket="s2", fd=4, transport="udp", data=b"ok", size=2)
    (only,) = [item.attempts[0] for item in targets(to, other)]
    assert (only.replies, only.outcome) == (0, "unanswered")


def test_a_wait_in_vain_is_noted_on_every_datagram_of_its_socket() -> None:
    sends = [sent(1, transport="udp", port=5140), sent(2, "198.51.100.9", transport="udp", port=5140)]
    found = [item.attempts[0].waited for item in targets(*sends, state(3, "poll", "timeout"))]
    assert found == [True, True]
    assert [item.attempts[0].waited for item in targets(*sends, state(3, "poll", "ready"))] == [False, False]


def request(line: int, method: str, target: str) -> HttpRequest:
    return HttpRequest(
        where(line), S, seen_in="syscalls", method=method, target=target, address="10.77.0.1", port=3128,
        socket="s1", process="7",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "target", "host"),
    [
        ("CONNECT", "exfil.test:443", "exfil.test:443"),
        ("GET", "http://user:pw@Exfil.test:8080/x?y", "exfil.test:8080"),
        ("POST", "HTTPS://exfil.test", "exfil.test"),
    ],
)
def test_a_request_through_a_proxy_names_its_real_destination(method: str, target: str, host: str) -> None:
    answer = received(3, "10.77.0.1", b"HTTP/1.1 403 Forbidden\r\n", port=3128)
    contacts = met(connect(1, "10.77.0.1", port=3128), request(2, method, target), answer)
    assert [(item.host, item.status, item.proxy, item.where) for item in contacts.proxied] == [
        (host, 403, "10.77.0.1", [where(2), where(3)])
    ]


def test_an_ordinary_request_is_not_taken_for_one_through_a_proxy() -> None:
    assert met(request(1, "GET", "/http://exfil.test/")).proxied == []


def test_attempts_beyond_the_kept_ones_stay_to_be_judged_unless_they_came_about() -> None:
    events: list[Event] = []
    for number in range(MAX_KEPT + 100):
        events.append(connect(number + 1, socket=f"s{number}", t=number * MS))
    events.append(connect(999, error="EPERM", socket="last", t=S))
    target = targets(*events)[0]
    assert (len(target.attempts), target.tried, target.unjudged) == (MAX_KEPT, MAX_KEPT + 101, 0)
    assert [item.outcome for item in target.later if item.outcome != "established"] == ["denied"]


def test_failures_beyond_all_room_are_counted_as_unjudged() -> None:
    events = [connect(number + 1, error="EPERM", socket=f"s{number}") for number in range(2 * MAX_KEPT + 7)]
    target = targets(*events)[0]
    assert (len(target.attempts), len(target.later), target.unjudged) == (MAX_KEPT, MAX_KEPT, 7)
    assert target.tried == 2 * MAX_KEPT + 7


def test_destinations_beyond_all_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TARGETS", 2)
    contacts = met(*(connect(number, f"203.0.113.{number}", socket=f"s{number}") for number in range(1, 6)))
    assert (len(list(contacts.targets())), contacts.overflow) == (2, 3)
    requests = met(*(request(number, "CONNECT", f"h{number}.test:443") for number in range(1, 6)))
    assert (len(requests.proxied), requests.overflow) == (2, 3)


def test_flows_and_packets_beyond_the_kept_ones_are_counted() -> None:
    flows = targets(*(flow(number, source_port=number) for number in range(1, MAX_KEPT + 4)))[0]
    assert (len(flows.flows), flows.more_flows) == (MAX_KEPT, 3)
    packets = targets(*(NetPacket(packet(n), S, protocol="gre", address="203.0.113.9") for n in range(MAX_KEPT + 2)))
    assert (len(packets[0].packets), packets[0].more_packets) == (MAX_KEPT, 2)


def test_the_first_time_of_a_destination_is_the_earliest_of_all_channels() -> None:
    assert targets(connect(1, t=5 * S), flow(2, t=4 * S))[0].first_ns == 4 * S
    assert targets(dropped(1))[0].first_ns is None
