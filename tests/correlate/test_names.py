"""Names of addresses over time: who asked, when it was known, and what proves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_sources import where
from made_events import MS, S, answer, asked, changed, connect, flow, hello, opened, read

from mcpdetect.correlate import names as module
from mcpdetect.correlate.names import MAX_PER_ADDRESS, Names
from mcpdetect.model.event import Event
from mcpdetect.model.net import DnsAnswer, DnsRecord, HttpRequest
from mcpdetect.model.trace import Run

A = "203.0.113.10"


def met(*events: Event, run: Run | None = None) -> Names:
    names = Names(run or Run())
    for event in events:
        assert event.kind in Names.kinds
        names.on_event(event)
    return names


def known(names: Names, address: str = A, t: int | None = S, *, claimed: bool = False) -> list[tuple[str, str]]:
    return [(name.name, name.source) for name in names.names_of(address, t, claimed=claimed)]


def test_an_answer_names_its_addresses_and_the_aliases_between() -> None:
    names = met(asked(1, "vendor.test"), answer(2, "vendor.test", A, "2001:db8::1", alias="edge.cdn.test"))
    assert known(names) == [("vendor.test", "dns"), ("edge.cdn.test", "dns")]
    assert known(names, "2001:db8::1") == [("vendor.test", "dns"), ("edge.cdn.test", "dns")]
    assert names.lookups["vendor.test"].addresses == [A, "2001:db8::1"]


def test_an_answer_that_comes_after_the_contact_explains_it_only_within_the_second_of_a_log() -> None:
    late = met(answer(1, "vendor.test", A, t=3 * S))
    assert known(late, t=S) == []
    assert known(late, t=2 * S) == [("vendor.test", "dns")]
    assert known(late, t=None) == [("vendor.test", "dns")]
    assert late.other_holders(A, S) == ["vendor.test"]


def test_times_of_different_clocks_are_not_compared() -> None:
    logged = met(answer(1, "vendor.test", A, t=1_700_000_000 * S))
    assert known(logged, t=11 * 3600 * S) == [("vendor.test", "dns")]


def test_the_earliest_of_several_answers_counts() -> None:
    names = met(answer(1, "vendor.test", A, t=9 * S), answer(2, "vendor.test", A, t=2 * S))
    assert [(name.t_ns, name.where) for name in names.names_of(A, 2 * S)] == [(2 * S, where(2))]


def test_an_answer_to_another_client_is_no_name_of_ours() -> None:
    other = answer(1, "cdn.test", A, seen_in="dns", client="10.77.0.9")
    names = met(flow(1, "203.0.113.99"), other)
    assert known(names) == []
    assert names.other_holders(A, S) == ["cdn.test"]
    mine = answer(2, "cdn.test", A, seen_in="dns", client="10.77.0.2")
    assert known(met(flow(1, "203.0.113.99"), other, mine)) == [("cdn.test", "dns")]
    assert known(met(flow(1), answer(1, "cdn.test", A, seen_in="dns", client="127.0.0.1"))) == [("cdn.test", "dns")]


def test_a_hosts_file_that_was_read_names_addresses() -> None:
    content = b"127.0.0.1 localhost\n  203.0.113.10\tVendor.test www.vendor.test # x.test\n#203.0.113.11 no.test\nbad"
    names = met(opened(1, "/etc/hosts"), read(2, "/etc/hosts", content))
    assert known(names) == [("vendor.test", "hosts"), ("www.vendor.test", "hosts")]
    assert known(names, "203.0.113.11") == []
    assert (names.hosts_hidden, names.hosts_unread()) == (None, None)


@pytest.mark.parametrize("hidden", [read(2, "/etc/hosts", b"", mapped=True), read(2, "/etc/hosts", b"127", cut=True)])
def test_a_hosts_file_whose_content_is_not_in_the_evidence_is_told(hidden: Event) -> None:
    assert met(hidden).hosts_hidden == where(2)


def test_a_hosts_file_that_was_opened_and_not_seen_read_is_told() -> None:
    assert met(opened(4, "/etc/hosts")).hosts_unread() == where(4)
    assert met(opened(4, "/etc/hosts", error="ENOENT")).hosts_unread() is None


@pytest.mark.parametrize("change", ["write", "rename", "link", "symlink"])
def test_a_hosts_file_that_the_run_changed_proves_nothing(change: str) -> None:
    content = read(2, "/etc/hosts", b"203.0.113.10 vendor.test\n")
    event = changed(3, change, "/etc/hosts") if change != "rename" else changed(3, "rename", "/tmp/h", "/etc/hosts")  # type: ignore[arg-type]
    names = met(content, event)
    assert known(names) == []
    assert names.hosts_changed == where(3)


def test_names_that_the_client_only_claims_are_kept_apart() -> None:
    request = HttpRequest(
        where(5), S, seen_in="syscalls", method="GET", target="/", host="API.vendor.test:8080", address=A
    )
    names = met(hello(1, A, "Front.vendor.test."), request)
    assert known(names) == []
    assert known(names, claimed=True) == [("front.vendor.test", "sni"), ("api.vendor.test", "host-header")]


@pytest.mark.parametrize("host", ["203.0.113.10", "203.0.113.10:80", "[2001:db8::1]:80", "[2001:db8::1]", "127.0.0.1"])
def test_an_address_in_a_host_header_is_no_name(host: str) -> None:
    request = HttpRequest(where(1), S, seen_in="syscalls", host=host, address=A)
    assert known(met(request), claimed=True) == []


@pytest.mark.parametrize("sni", ["203.0.113.10", "2001:db8::1", "", None])
def test_an_address_in_a_hello_is_no_name(sni: str | None) -> None:
    assert known(met(hello(2, A, sni)), claimed=True) == []


def test_resolvers_are_declared_or_read_from_resolv_conf() -> None:
    content = b"# nameserver 9.9.9.9\nsearch lab\nnameserver 10.77.0.1\n nameserver fe80::1%eth0\nnameserver nonsense\n"
    names = met(read(1, "/etc/resolv.conf", content), run=Run(resolvers=["::ffff:10.200.0.1"]))
    assert names.resolvers == {"10.200.0.1", "10.77.0.1", "fe80::1%eth0"}


@pytest.mark.parametrize(
    "path",
    ["/var/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve", "/run/avahi-daemon/socket"],
)
def test_a_name_service_that_answered_is_told_and_one_that_is_not_there_is_nothing(path: str) -> None:
    missing = connect(1, None, "ENOENT", family="unix", transport="unix", path=path)
    answered = connect(2, None, family="unix", transport="unix", path=path)
    assert met(missing).asked_elsewhere is None
    assert met(missing, answered).asked_elsewhere == where(2)


def test_a_lookup_gathers_questions_answers_errors_and_servers() -> None:
    names = met(
        asked(1, "a.test", error="EPERM"),
        asked(2, "a.test", kind="AAAA", t=S, server="9.9.9.9"),
        asked(7, "a.test", seen_in="packets", t=S + MS),
        answer(8, "a.test", rcode="SERVFAIL", seen_in="packets"),
    )
    lookup = names.lookups["a.test"]
    assert (lookup.asked, lookup.errors, lookup.servers, lookup.types) == (
        {"syscalls": 2, "packets": 1},
        {"EPERM": 1},
        ["10.77.0.1", "9.9.9.9"],
        ["A", "AAAA"],
    )
    assert (lookup.t_ns, lookup.last_ns, lookup.processes) == (S // 2, S + MS, ["7"])
    assert (lookup.rcodes, lookup.answered, lookup.resolved) == ({"packets": ["SERVFAIL"]}, [], False)
    assert [str(place) for place in lookup.where] == ["strace.log:1", "capture.pcap#7"]


def test_a_name_without_such_a_record_exists_all_the_same() -> None:
    event = answer(2, "a.test")
    event.rcode, event.no_data = "", True
    assert met(asked(1, "a.test"), event).lookups["a.test"].resolved


def test_an_answer_without_a_question_has_a_place_all_the_same() -> None:
    lookup = met(answer(3, "a.test", rcode="SERVFAIL", seen_in="dns")).lookups["a.test"]
    assert (lookup.asked, [str(place) for place in lookup.where]) == ({}, ["dns.log:3"])


def test_hidden_names_and_unreadable_answers_are_counted() -> None:
    names = met(asked(1, None), answer(2, None))
    assert names.lookups[""].asked == {"syscalls": 1}
    assert names.unreadable_answers == 1
    cut = DnsAnswer(where(3), S, seen_in="syscalls", name="a.test", rcode="NOERROR")
    assert met(cut).unreadable_answers == 1
    assert met(replace(cut, no_data=True)).unreadable_answers == 0
    assert met(replace(cut, rcode="NXDOMAIN")).unreadable_answers == 0
    assert met(replace(cut, seen_in="dns")).unreadable_answers == 0


def test_address_hints_of_https_records_are_names_too() -> None:
    record = DnsRecord("vendor.test", "HTTPS", "svc.vendor.test", hints=[A])
    event = DnsAnswer(
        where(1), S, seen_in="packets", name="vendor.test", type="HTTPS", rcode="NOERROR", records=[record]
    )
    assert known(met(event)) == [("vendor.test", "dns"), ("svc.vendor.test", "dns")]


def test_an_address_that_is_none_is_left_out() -> None:
    record = DnsRecord("vendor.test", "A", "not an address")
    names = met(DnsAnswer(where(1), S, seen_in="dns", name="vendor.test", records=[record]))
    assert known(names, "not an address") == []


def test_names_beyond_all_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NAMES", 3)
    names = met(*(answer(n, f"h{n}.test", f"203.0.113.{n}") for n in range(1, 7)))
    assert (len(names.lookups), names.overflow) == (3, 6)
    assert [known(names, f"203.0.113.{n}") != [] for n in range(1, 7)] == [True] * 3 + [False] * 3


def test_an_address_keeps_a_bounded_number_of_names_and_counts_the_rest() -> None:
    crowd = met(*(answer(n, f"h{n}.test", A) for n in range(MAX_PER_ADDRESS + 5)))
    assert (len(crowd.names_of(A, S)), crowd.overflow) == (MAX_PER_ADDRESS, 5)


def test_a_resolv_conf_that_the_run_wrote_names_no_resolver() -> None:
    events = [changed(1, "write", "/etc/resolv.conf"), read(2, "/etc/resolv.conf", b"nameserver 9.9.9.9\n")]
    assert (met(*events).resolvers, met(*events[::-1]).resolvers) == (set(), {"9.9.9.9"})


def test_mapped_addresses_join_their_ipv4_form() -> None:
    assert known(met(answer(1, "vendor.test", "::ffff:203.0.113.10"))) == [("vendor.test", "dns")]
