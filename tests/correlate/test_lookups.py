"""The fate of names: refused, unanswered, denied by policy, or simply not there."""

from __future__ import annotations

import pytest
from made_events import S, answer, asked

from mcpdetect.correlate.denial import RunView
from mcpdetect.correlate.lookups import judge_lookup
from mcpdetect.correlate.names import Names
from mcpdetect.model.net import DnsAnswer, DnsQuery
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import DenialMode

Row = tuple[str, list[DnsQuery | DnsAnswer], bool | None, DenialMode | None]


def fate(
    events: list[DnsQuery | DnsAnswer],
    *,
    denied: bool = False,
    answers: bool = True,
    name: str = "api.test",
    rejecting: str = "",
) -> tuple[bool | None, DenialMode | None]:
    names = Names(Run())
    for event in events:
        names.on_event(event)
    view = RunView(False, False, False, False, denied)
    view.rejecting.add(rejecting)
    judgement = judge_lookup(names.lookups[name], view, answers)
    return judgement.blocked, judgement.mode


ROWS: list[Row] = [
    ("drop at the sender", [asked(1, "api.test", error="EPERM")], True, "output-drop"),
    ("no route to the resolver", [asked(1, "api.test", error="ENETUNREACH")], True, "no-route"),
    ("unreachable route", [asked(1, "api.test", error="EHOSTUNREACH")], True, "route-unreachable"),
    ("prohibiting route", [asked(1, "api.test", error="EACCES")], True, "route-prohibit"),
    ("blackhole route", [asked(1, "api.test", error="EINVAL")], True, "route-blackhole"),
    ("reject on the way", [asked(1, "api.test", error="ECONNREFUSED")], True, "rejected-on-path"),
    ("dropped on the way, asked twice", [asked(1, "api.test"), asked(2, "api.test", t=6 * S)], True, "dropped-on-path"),
    ("asked once and then the end", [asked(1, "api.test")], None, None),
    (
        "both address types once, at once",
        [asked(1, "api.test"), asked(1, "api.test", kind="AAAA", t=S // 2 + 100)],
        None,
        None,
    ),
    ("servfail", [asked(1, "api.test"), answer(2, "api.test", rcode="SERVFAIL")], True, "name-service"),
    ("refused", [asked(1, "api.test"), answer(2, "api.test", rcode="REFUSED")], True, "name-service"),
    ("nxdomain", [asked(1, "api.test"), answer(2, "api.test", rcode="NXDOMAIN")], False, None),
    ("resolved", [asked(1, "api.test"), answer(2, "api.test", "203.0.113.7")], False, None),
    (
        "refused first, then resolved",
        [asked(1, "api.test", error="EPERM"), asked(2, "api.test"), answer(3, "api.test", "203.0.113.7")],
        False,
        None,
    ),
    (
        "policy of the resolver",
        [
            asked(1, "api.test", seen_in="dns"),
            answer(2, "api.test", seen_in="dns", rcode="NXDOMAIN", source="policy"),
        ],
        True,
        "policy",
    ),
    (
        "answers on the wire that never reach the program",
        [
            asked(1, "api.test"),
            asked(2, "api.test", t=6 * S),
            asked(1, "api.test", seen_in="packets"),
            answer(2, "api.test", "203.0.113.7", seen_in="packets"),
        ],
        True,
        "input-drop",
    ),
    ("a log that shows questions only", [asked(1, "api.test", seen_in="dns")], False, None),
]


@pytest.mark.parametrize(("row", "events", "blocked", "mode"), ROWS, ids=[row[0] for row in ROWS])
def test_the_fate_of_a_name(
    row: str, events: list[DnsQuery | DnsAnswer], blocked: bool | None, mode: DenialMode | None
) -> None:
    assert fate(events) == (blocked, mode)


def test_nxdomain_in_a_run_that_is_declared_denied_is_a_denial() -> None:
    events: list[DnsQuery | DnsAnswer] = [asked(1, "api.test"), answer(2, "api.test", rcode="NXDOMAIN")]
    assert fate(events, denied=True) == (True, "name-service")


def test_silence_means_nothing_where_answers_were_not_watched() -> None:
    assert fate([asked(1, "api.test"), asked(2, "api.test", t=6 * S)], answers=False) == (None, None)


def test_one_question_in_a_denied_run_is_enough() -> None:
    assert fate([asked(1, "api.test")], denied=True) == (True, "dropped-on-path")


def test_questions_with_a_hidden_name_are_judged_by_their_errors_alone() -> None:
    assert fate([asked(1, None), asked(2, None, t=9 * S)], name="") == (None, None)
    assert fate([asked(1, None, error="EPERM")], name="") == (True, "output-drop")


def test_an_errno_that_denies_nothing_leaves_the_fate_open() -> None:
    assert fate([asked(1, "api.test", error="EMSGSIZE")]) == (None, None)


def test_silence_of_a_name_server_that_got_the_question_is_its_own() -> None:
    twice: list[DnsQuery | DnsAnswer] = [asked(1, "api.test"), asked(2, "api.test", t=6 * S)]
    assert fate(twice) == (True, "dropped-on-path")
    assert fate([*twice, asked(1, "api.test", seen_in="dns")]) == (True, "name-service")


def test_questions_that_are_answered_with_icmp_errors_are_rejected() -> None:
    question: list[DnsQuery | DnsAnswer] = [asked(1, "api.test")]
    server = question[0].server
    assert server
    assert fate(question, rejecting=server) == (True, "rejected-on-path")
    assert fate(question, rejecting="198.51.100.9") == (None, None)


def test_an_answer_on_the_wire_alone_is_lost_in_a_denied_run() -> None:
    once: list[DnsQuery | DnsAnswer] = [asked(1, "api.test"), answer(2, "api.test", "203.0.113.7", seen_in="packets")]
    assert fate(once, denied=True) == (True, "input-drop")
    assert fate(once) == (False, None)
    assert fate(once, denied=True, answers=False) == (False, None)
    assert fate([*once, answer(3, "api.test", "203.0.113.7")], denied=True) == (False, None)
    assert fate(once[1:], denied=True) == (False, None)


def test_questions_of_a_run_whose_wire_is_empty_met_a_dead_link() -> None:
    names = Names(Run())
    for event in (asked(1, "api.test"), asked(2, "api.test", t=6 * S)):
        names.on_event(event)
    lookup = names.lookups["api.test"]
    view = RunView(True, False, False, False, True, (0, 10 * S))
    assert judge_lookup(lookup, view, True).mode == "dropped-on-path"
    view.lost_datagrams = True
    assert judge_lookup(lookup, view, True).mode == "link-down"
    view.packets = False
    assert judge_lookup(lookup, view, True).mode == "dropped-on-path"
    view.packets = True
    names.on_event(asked(3, "api.test", seen_in="packets"))
    assert judge_lookup(lookup, view, True).mode == "dropped-on-path"
