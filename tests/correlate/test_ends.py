"""Which end of a flow is the run itself."""

from __future__ import annotations

from dataclasses import replace

from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.ends import outward
from mcpdetect.model.net import NetFlow, SocketConnect
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

OWN, RESOLVER, SITE = "10.200.0.2", "10.200.0.1", "203.0.113.5"


def flow(at: int, source: str, address: str, port: int, source_port: int = 40_000) -> NetFlow:
    where = Where("capture.pcap", at, unit="packet")
    return NetFlow(where, at, transport="udp", source=source, source_port=source_port, address=address, port=port)


def destinations(*flows: NetFlow | SocketConnect, resolvers: tuple[str, ...] = ()) -> list[str]:
    contacts = Contacts(Run(resolvers=list(resolvers)))
    for one in flows:
        contacts.on_event(one)
    return [target.address for target in contacts.targets()]


def test_an_answer_whose_question_was_lost_makes_no_destination_of_the_run_itself() -> None:
    lost = flow(3, RESOLVER, OWN, 40_001, source_port=53)
    assert destinations(lost, flow(4, OWN, SITE, 443)) == [SITE]
    assert destinations(flow(4, OWN, SITE, 443), lost) == [SITE]
    assert destinations(flow(4, OWN, SITE, 443), lost, flow(5, "fd00::2", "2001:db8::1", 443)) == [SITE, "2001:db8::1"]


def test_a_destination_is_kept_where_the_own_address_is_not_certain() -> None:
    # one flow alone: either end may be the run
    assert destinations(flow(3, RESOLVER, OWN, 40_001, source_port=53)) == [OWN]
    # every flow is between the same two
    assert destinations(flow(1, SITE, OWN, 9), flow(2, OWN, SITE, 443)) == [OWN, SITE]
    # two interfaces: no address is at every flow
    other = flow(2, "192.168.7.7", "198.51.100.9", 443)
    assert destinations(flow(1, OWN, SITE, 443), other) == [SITE, "198.51.100.9"]


def test_whom_a_configured_resolver_answers_is_the_run() -> None:
    lost = flow(3, RESOLVER, OWN, 40_001, source_port=53)
    assert destinations(lost, resolvers=(RESOLVER,)) == [RESOLVER]
    assert destinations(flow(3, SITE, OWN, 40_001, source_port=53), resolvers=(RESOLVER,)) == [OWN]
    assert destinations(flow(3, RESOLVER, OWN, 40_001, source_port=54), resolvers=(RESOLVER,)) == [OWN]


def test_a_connection_whose_beginning_was_lost_is_turned_by_its_ports() -> None:
    answer = replace(
        flow(1, SITE, OWN, 40_000, source_port=443),
        transport="tcp",
        midstream=True,
        packets_out=3,
        packets_in=1,
        bytes_out=90,
        bytes_in=7,
        data_out=2,
        data_in=1,
        rst_out=1,
    )
    assert outward(answer, ()) == replace(
        answer,
        source=OWN,
        source_port=40_000,
        address=SITE,
        port=443,
        packets_out=1,
        packets_in=3,
        bytes_out=7,
        bytes_in=90,
        data_out=1,
        data_in=2,
        rst_out=0,
        rst_in=1,
    )
    assert outward(replace(answer, midstream=False), ()).source == SITE
    assert outward(replace(answer, source_port=8443), ()).source == SITE
    assert outward(replace(answer, port=32_767), ()).source == SITE
    assert destinations(answer) == [SITE]


def test_a_stranger_that_sends_first_stays_a_destination() -> None:
    assert destinations(flow(1, SITE, OWN, 9), flow(2, OWN, SITE, 443), flow(3, OWN, RESOLVER, 53)) == [SITE, RESOLVER]


def test_an_address_that_a_call_names_is_a_destination_whatever_the_flows_say() -> None:
    call = SocketConnect(Where("strace.log", 1), 1, "5", 0, transport="tcp", address=OWN, port=80)
    assert destinations(flow(1, OWN, SITE, 443), flow(2, OWN, RESOLVER, 53), call) == [SITE, RESOLVER, OWN]
