"""The query log of dnsmasq as a file: time without a year, life signs, losses, hostile lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from dnsmasq_tools import BOTH, FORMS, NOON, SECOND, SORTS, queries, read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.model.event import Unparsed

# time

STAMPED = """\
Nov 30 12:13:00 dnsmasq[7]: started, version 2.90 cachesize 150
Nov 30 12:13:05 dnsmasq[7]: query[A] a.test from 10.77.0.2
Nov 30 12:13:07 dnsmasq[7]: exiting on receipt of SIGTERM
"""


def test_a_stamp_without_a_year_is_no_time(tmp_path: Path) -> None:
    events, observation = read(tmp_path, STAMPED)
    assert [event.t_ns for event in events] == [None]
    assert (observation.clock, observation.begin_ns, observation.end_ns) == ("none", None, None)


@pytest.mark.parametrize("offset", [0, 1, -5, 5.5, 5.75])
def test_the_declared_window_gives_year_and_zone(tmp_path: Path, offset: float) -> None:
    begin = NOON - int(offset * 3600) * SECOND
    declared = Declared(begin_ns=begin - SECOND, end_ns=begin + 60 * SECOND)
    events, observation = read(tmp_path, STAMPED, declared)
    assert [event.t_ns for event in events] == [begin + 5 * SECOND]
    assert observation.clock == "epoch"
    assert observation.proof == "declared"


def test_a_window_elsewhere_gives_no_time(tmp_path: Path) -> None:
    declared = Declared(begin_ns=NOON + 86400 * 10 * SECOND, end_ns=NOON + 86400 * 11 * SECOND)
    events, observation = read(tmp_path, STAMPED, declared)
    assert [event.t_ns for event in events] == [None]
    assert observation.clock == "none"


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-11-30T12:13:05.000000+00:00 host dnsmasq[7]: ",
        "2026-11-30T13:13:05+0100 host dnsmasq[7]: ",
        "1796040785.000000 dnsmasq[7]: ",
        "<30>1 2026-11-30T12:13:05Z host dnsmasq 7 - - ",
    ],
)
def test_a_full_stamp_is_a_time(tmp_path: Path, prefix: str) -> None:
    events, observation = read(tmp_path, f"{prefix}query[A] a.test from 10.77.0.2\n")
    assert [(event.t_ns, event.kind) for event in events] == [(NOON + 5 * SECOND, "dns.query")]
    assert observation.clock == "epoch"


# life signs and losses


def test_a_banner_shows_that_it_ran_but_not_that_it_logs_queries(tmp_path: Path) -> None:
    text = STAMPED.splitlines(keepends=True)
    events, observation = read(tmp_path, text[0] + text[2])
    assert events == []
    assert (observation.proof, observation.watches, observation.tool) == ("inferred", {}, "dnsmasq 2.90")
    assert observation.complete is True
    _, observation = read(tmp_path, text[0], Declared(tool="dnsmasq", options=["log-queries"]))
    assert (observation.proof, observation.watches) == ("declared", dict.fromkeys(BOTH, "declared"))
    assert (observation.tool, observation.options, observation.complete) == ("dnsmasq", ["log-queries"], False)


def test_a_log_without_one_line_of_dnsmasq_is_none(tmp_path: Path) -> None:
    for text in ("hello\n", "Nov 30 12:13:00 host cron[7]: query[A] a.test from 10.0.0.1\n", "\n\n", "\0" * 100):
        with pytest.raises(UnknownFormat) as caught:
            read(tmp_path, text)
        assert caught.value.file == "dnsmasq.log"


def test_lines_of_other_programs_are_counted_and_lose_nothing(tmp_path: Path) -> None:
    text = """\
Nov 30 12:13:00 host cron[7]: (root) CMD (true)
Nov 30 12:13:01 host dnsmasq-dhcp[8]: DHCPACK(br0) 10.77.0.2
Nov 30 12:13:02 host dnsmasq[8]: query[A] a.test from 10.77.0.2
"""
    events, observation = read(tmp_path, text)
    assert queries(events) == [("a.test", "A", "10.77.0.2")]
    assert observation.counts["foreign"] == 1
    assert observation.losses == []


def test_an_unknown_line_is_counted_and_located(tmp_path: Path) -> None:
    events, observation = read(tmp_path, "dnsmasq[1]: brand new message\nnothing at all\ndnsmasq[1]: cleared cache\n")
    assert [(event.where.at, event.reason) for event in events if isinstance(event, Unparsed)] == [
        (1, "an unknown message of dnsmasq"),
        (2, "no line of dnsmasq"),
    ]
    assert [(loss.what, loss.count, loss.touches) for loss in observation.losses] == [
        ("unparsed", 1, BOTH),
        ("unparsed", 1, BOTH),
    ]
    assert observation.counts["unparsed"] == 2


def test_what_dnsmasq_says_about_itself_loses_nothing(tmp_path: Path) -> None:
    said = [
        "started, version 2.90 cachesize 150",
        "compile time options: IPv6 GNU-getopt",
        "warning: no upstream servers configured",
        "using 15 more nameservers",
        "using nameserver 1.1.1.1#53",
        "reading /etc/resolv.conf",
        "read /etc/hosts - 8 names",
        "cleared cache",
        "validation a.test is INSECURE",
        "dnssec-query[DS] test to 10.77.0.1",
        "exiting on receipt of SIGTERM",
    ]
    events, observation = read(tmp_path, "".join(f"dnsmasq[1]: {line}\n" for line in said))
    assert events == []
    assert observation.losses == []


def test_a_question_that_is_under_way_already_loses_nothing(tmp_path: Path) -> None:
    text = """\
Nov 30 12:13:05 dnsmasq[7]: 1 10.77.0.2/57022 query[A] a.test from 10.77.0.2
Nov 30 12:13:05 dnsmasq[7]: 1 10.77.0.2/57022 forwarded a.test to 127.0.0.1#5300
Nov 30 12:13:05 dnsmasq[7]: 3 10.77.0.2/57465 query[A] a.test from 10.77.0.2
Nov 30 12:13:05 dnsmasq[7]: 1 10.77.0.2/57022 reply a.test is 44.1.2.3
Nov 30 12:13:05 dnsmasq[7]: 3 10.77.0.2/57465 reply query is duplicate
Nov 30 12:13:05 dnsmasq[7]: 4 10.77.0.2/57465 reply query is duplicated
"""
    events, observation = read(tmp_path, text)
    assert [event.kind for event in events] == ["dns.query", "dns.query", "dns.answer", "unparsed"]
    assert events[-1].where.at == 6
    assert observation.counts["unparsed"] == 1


def test_lost_lines_and_refused_questions_are_losses(tmp_path: Path) -> None:
    text = """\
dnsmasq[1]: overflow: 17 log entries lost
dnsmasq[1]: Maximum number of concurrent DNS queries reached (max: 150)
dnsmasq[1]: ignoring query from non-local network 203.0.113.9
"""
    events, observation = read(tmp_path, text)
    assert events == []
    assert [(loss.what, loss.count, loss.touches) for loss in observation.losses] == [
        ("dropped", 17, BOTH),
        ("dropped", 2, BOTH),
    ]


def test_a_folded_line_counts_as_often_as_it_came(tmp_path: Path) -> None:
    text = "Nov 30 12:13:02 h dnsmasq[8]: message repeated 3 times: [ query[A] a.test from 10.77.0.2]\n"
    events, observation = read(tmp_path, text)
    assert queries(events) == [("a.test", "A", "10.77.0.2")]
    assert observation.counts["queries"] == 3
    assert [(loss.what, loss.note) for loss in observation.losses] == [("repeated", True)]


def test_a_cut_anywhere_gives_a_beginning_of_the_questions(tmp_path: Path) -> None:
    whole = queries(read(tmp_path, FORMS)[0])
    seen = 0
    for size in range(len(FORMS.splitlines()[0]) + 1, len(FORMS)):
        events, observation = read(tmp_path, FORMS[:size])
        assert queries(events) == whole[: len(queries(events))]
        ended = FORMS[size - 1] == "\n"
        assert [loss.what for loss in observation.losses] == ([] if ended else ["file-truncated"])
        seen += 1
    assert seen > 500


def test_wanted_kinds_change_no_account(tmp_path: Path) -> None:
    events, everything = read(tmp_path, SORTS)
    for kind in ("dns.query", "dns.answer", "unparsed"):
        some, observation = read(tmp_path, SORTS, None, frozenset({kind}))
        assert some == [event for event in events if event.kind == kind]
        assert observation == everything


WORDS = st.sampled_from(
    [
        b"query[A] ",
        b" from ",
        b" is ",
        b"reply ",
        b"10.77.0.2",
        b"<CNAME>",
        b"a.test",
        b"3 ",
        b"/4 ",
        b"\n",
        b"dnsmasq[1]: ",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(WORDS | st.binary(max_size=12), max_size=40))
def test_any_line_is_read_or_counted(tmp_path: Path, parts: list[bytes]) -> None:
    events, observation = read(tmp_path, b"dnsmasq[1]: cleared cache\n" + b"".join(parts) + b"\n")
    assert observation.counts["events"] == len(events)
    for event in events:
        assert 1 < event.where.at <= observation.counts["lines"]
        name = getattr(event, "name", None)
        assert name is None or name.isascii()


def test_a_long_line_is_no_trap(tmp_path: Path) -> None:
    for word in (b" from ", b" is ", b"1 ", b"a", b"<", b"(", b"message repeated 2 times: [ "):
        line = b"dnsmasq[1]: query[A] " + word * (200_000 // len(word)) + b"\n"
        events, observation = read(tmp_path, line + b"dnsmasq[1]: config " + word * (200_000 // len(word)) + b"\n")
        assert observation.counts["lines"] == 2
        assert len(events) == observation.counts["events"]
