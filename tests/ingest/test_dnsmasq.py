"""The query log of dnsmasq: every form of line, answers over several lines, time without a year, hidden names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.dnslog import DnsmasqLog
from mcpdetect.ingest.dnslog.names import name_of
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import DnsAnswer, DnsQuery, DnsRecord
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where

NOON = 1_796_040_780_000_000_000  # 2026-11-30 12:13:00 UTC
SECOND = 1_000_000_000
BOTH = ["dns.query", "dns.answer"]


def read(
    tmp_path: Path, text: str | bytes, declared: Declared | None = None, wanted: frozenset[str] | None = None
) -> tuple[list[Event], Observation]:
    path = tmp_path / "dnsmasq.log"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    log = DnsmasqLog(path, "dnsmasq.log", declared)
    return list(log.events(wanted)), log.observation


def queries(events: list[Event]) -> list[tuple[str | None, str, str | None]]:
    return [(event.name, event.type, event.client) for event in events if isinstance(event, DnsQuery)]


def answers(events: list[Event]) -> list[tuple[str | None, str, str, str, list[tuple[str, str, str]]]]:
    return [
        (
            event.name,
            event.type,
            event.rcode,
            event.source,
            [(record.name, record.type, record.value) for record in event.records],
        )
        for event in events
        if isinstance(event, DnsAnswer)
    ]


# cases C71

FORMS = """\
Nov 30 11:21:20 dnsmasq[27255]: query[A] www.example.test from 10.77.0.2
Nov 30 11:21:18 dnsmasq[27251]: 3 10.77.0.2/47605 query[A] www.example.test from 10.77.0.2
Nov 30 11:21:18 dnsmasq[27251]: 3 10.77.0.2/47605 config www.example.test is <CNAME>
Nov 30 11:21:18 dnsmasq[27251]: 3 10.77.0.2/47605 config api.example.test is 203.0.113.10
Nov 30 11:21:18 dnsmasq[27298]: 11 10.77.0.2/42025 query[A] api.example.test from 10.77.0.2
Dec 21 16:31:31 dnsmasq[2281585]: UDP 436 127.0.0.1/36363 query[PTR] 1.2.168.192.in-addr.arpa from 127.0.0.1
Nov 30 11:21:20 dnsmasq[27251]: 118 2001:db8:77::2/40071 query[A] api.example.test from 2001:db8:77::2
"""


def test_plain_extra_and_protocol_forms_give_five_questions_and_one_chain(tmp_path: Path) -> None:
    events, observation = read(tmp_path, FORMS)
    assert events == [
        DnsQuery(Where("dnsmasq.log", 1), None, "www.example.test", "A", seen_in="dns", client="10.77.0.2"),
        DnsQuery(
            Where("dnsmasq.log", 2),
            None,
            "www.example.test",
            "A",
            seen_in="dns",
            client="10.77.0.2",
            client_port=47605,
        ),
        DnsAnswer(
            Where("dnsmasq.log", 3, 4),
            None,
            "www.example.test",
            "A",
            "NOERROR",
            [
                DnsRecord("www.example.test", "CNAME", "api.example.test"),
                DnsRecord("api.example.test", "A", "203.0.113.10"),
            ],
            "policy",
            seen_in="dns",
            client="10.77.0.2",
        ),
        DnsQuery(
            Where("dnsmasq.log", 5),
            None,
            "api.example.test",
            "A",
            seen_in="dns",
            client="10.77.0.2",
            client_port=42025,
        ),
        DnsQuery(
            Where("dnsmasq.log", 6),
            None,
            "1.2.168.192.in-addr.arpa",
            "PTR",
            seen_in="dns",
            client="127.0.0.1",
            client_port=36363,
            transport="udp",
        ),
        DnsQuery(
            Where("dnsmasq.log", 7),
            None,
            "api.example.test",
            "A",
            seen_in="dns",
            client="2001:db8:77::2",
            client_port=40071,
        ),
    ]
    assert observation.counts == {
        "lines": 7,
        "events": 6,
        "unparsed": 0,
        "queries": 5,
        "answers": 1,
        "forwarded": 0,
        "foreign": 0,
    }
    assert observation.losses == []
    assert (observation.channel, observation.format, observation.clock) == ("dns", "dnsmasq", "none")
    assert (observation.proof, observation.watches) == ("inferred", dict.fromkeys(BOTH, "inferred"))


# cases C72

SORTS = """\
dnsmasq[1]: 4 10.77.0.2/33452 query[HTTPS] api.example.test from 10.77.0.2
dnsmasq[1]: 4 10.77.0.2/33452 config error is REFUSED (EDE: not ready)
dnsmasq[1]: 5 10.77.0.2/56569 config x.blocked.test is NXDOMAIN
dnsmasq[1]: 6 10.77.0.2/59464 config sink.test is 0.0.0.0
dnsmasq[1]: 7 10.77.0.2/39393 /etc/hosts svc.internal.test is 10.77.0.9
dnsmasq[1]: 8 10.77.0.2/59726 config txt.example.test is <TXT>
dnsmasq[1]: 9 10.77.0.2/55957 forwarded q.up.test to 10.77.0.1#5300
dnsmasq[1]: 10 10.77.0.2/39705 /etc/hosts 10.77.0.9 is svc.internal.test
dnsmasq[1]: 11 10.77.0.2/34342 query[type=65535] api.example.test from 10.77.0.2
dnsmasq[1]: 12 10.77.0.2/34343 reply nx.up.test is NXDOMAIN
dnsmasq[1]: cached api.example.test is NODATA-IPv6
"""


def test_answers_of_every_sort_are_told_apart(tmp_path: Path) -> None:
    events, observation = read(tmp_path, SORTS)
    assert queries(events) == [
        ("api.example.test", "HTTPS", "10.77.0.2"),
        ("api.example.test", "TYPE65535", "10.77.0.2"),
    ]
    backwards = "9.0.77.10.in-addr.arpa"
    assert answers(events) == [
        ("api.example.test", "HTTPS", "REFUSED", "policy", []),
        ("x.blocked.test", "", "NXDOMAIN", "policy", []),
        ("sink.test", "A", "NOERROR", "policy", [("sink.test", "A", "0.0.0.0")]),
        ("svc.internal.test", "A", "NOERROR", "hosts", [("svc.internal.test", "A", "10.77.0.9")]),
        ("txt.example.test", "TXT", "NOERROR", "policy", [("txt.example.test", "TXT", "")]),
        (backwards, "PTR", "NOERROR", "hosts", [(backwards, "PTR", "svc.internal.test")]),
        ("nx.up.test", "", "NXDOMAIN", "upstream", []),
        ("api.example.test", "AAAA", "NOERROR", "cache", []),
    ]
    assert [event.no_data for event in events if isinstance(event, DnsAnswer)] == [False] * 7 + [True]
    assert observation.options == ["upstream 10.77.0.1#5300"]
    assert observation.counts["forwarded"] == 1
    assert [(loss.what, loss.count, loss.note) for loss in observation.losses] == [("value-hidden", 1, True)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("reply a.test is SERVFAIL", ("a.test", "", "SERVFAIL", "upstream", [])),
        ("reply a.test is not implemented", ("a.test", "", "NOTIMP", "upstream", [])),
        ("reply a.test is 9", ("a.test", "", "NOTAUTH", "upstream", [])),
        ("reply a.test is NODATA", ("a.test", "", "NOERROR", "upstream", [])),
        (
            "cached-stale a.test is ::ffff:203.0.113.1",
            ("a.test", "AAAA", "NOERROR", "cache", [("a.test", "AAAA", "203.0.113.1")]),
        ),
        ("DHCP host.lan is 10.0.0.9", ("host.lan", "A", "NOERROR", "hosts", [("host.lan", "A", "10.0.0.9")])),
        ("gravity blocked ads.test is 0.0.0.0", ("ads.test", "A", "NOERROR", "policy", [("ads.test", "A", "0.0.0.0")])),
        ("exactly denied ads.test is ::", ("ads.test", "AAAA", "NOERROR", "policy", [("ads.test", "AAAA", "::")])),
        ("config 10.77.0.9 is NXDOMAIN", ("9.0.77.10.in-addr.arpa", "PTR", "NXDOMAIN", "policy", [])),
        ("reply a.test is <SRV>", ("a.test", "SRV", "NOERROR", "upstream", [("a.test", "SRV", "")])),
        (
            "/etc/hosts 2001:db8::9 is svc.test",
            (
                "9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
                "PTR",
                "NOERROR",
                "hosts",
                [("9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", "PTR", "svc.test")],
            ),
        ),
    ],
)
def test_one_answer_line_alone(
    tmp_path: Path, line: str, expected: tuple[str, str, str, str, list[tuple[str, str, str]]]
) -> None:
    events, _ = read(tmp_path, f"dnsmasq[1]: {line}\n")
    assert answers(events) == [expected]


PLAIN = """\
dnsmasq[1]: query[A] n.test from 10.77.0.2
dnsmasq[1]: forwarded n.test to 10.77.0.1
dnsmasq[1]: query[AAAA] n.test from 10.77.0.3
dnsmasq[1]: forwarded n.test to 10.77.0.1
dnsmasq[1]: reply n.test is <CNAME>
dnsmasq[1]: reply c.test is 203.0.113.1
dnsmasq[1]: reply c.test is 203.0.113.2
dnsmasq[1]: reply n.test is <CNAME>
dnsmasq[1]: reply c.test is 2001:db8::1
dnsmasq[1]: query[A] m.test from 10.77.0.2
dnsmasq[1]: config m.test is 203.0.113.3
dnsmasq[1]: query[AAAA] m.test from 10.77.0.2
dnsmasq[1]: config error is SERVFAIL
"""


def test_the_plain_form_joins_answers_by_their_neighbourhood(tmp_path: Path) -> None:
    events, observation = read(tmp_path, PLAIN)
    alias = ("n.test", "CNAME", "c.test")
    assert answers(events) == [
        (
            "n.test",
            "A",
            "NOERROR",
            "upstream",
            [alias, ("c.test", "A", "203.0.113.1"), ("c.test", "A", "203.0.113.2")],
        ),
        ("n.test", "AAAA", "NOERROR", "upstream", [alias, ("c.test", "AAAA", "2001:db8::1")]),
        ("m.test", "A", "NOERROR", "policy", [("m.test", "A", "203.0.113.3")]),
        ("m.test", "AAAA", "SERVFAIL", "policy", []),
    ]
    assert [event.client for event in events if isinstance(event, DnsAnswer)] == [
        "10.77.0.2",
        "10.77.0.3",
        "10.77.0.2",
        "10.77.0.2",
    ]
    assert observation.losses == []


def test_a_serial_joins_a_chain_that_another_process_interrupts(tmp_path: Path) -> None:
    text = """\
dnsmasq[1]: 3 10.77.0.2/4 query[A] www.test from 10.77.0.2
dnsmasq[9]: 3 10.77.0.7/5 query[A] other.test from 10.77.0.7
dnsmasq[1]: 3 10.77.0.2/4 reply www.test is <CNAME>
dnsmasq[9]: 3 10.77.0.7/5 reply other.test is 203.0.113.7
dnsmasq[1]: 3 10.77.0.2/4 reply api.test is 203.0.113.8
"""
    events, _ = read(tmp_path, text)
    assert sorted(answers(events)) == [
        ("other.test", "A", "NOERROR", "upstream", [("other.test", "A", "203.0.113.7")]),
        ("www.test", "A", "NOERROR", "upstream", [("www.test", "CNAME", "api.test"), ("api.test", "A", "203.0.113.8")]),
    ]


def test_an_alias_whose_target_never_comes_is_given_out_at_the_end(tmp_path: Path) -> None:
    events, _ = read(tmp_path, "dnsmasq[1]: 3 10.77.0.2/4 reply www.test is <CNAME>\ndnsmasq[1]: cleared cache\n")
    assert answers(events) == [("www.test", "", "NOERROR", "upstream", [("www.test", "CNAME", "")])]


# cases C78, B62


def test_letter_case_is_folded_and_kept(tmp_path: Path) -> None:
    events, _ = read(tmp_path, "dnsmasq[1]: query[A] ApI.ExAmPlE.test from 10.77.0.2\n")
    assert [(event.name, event.spelled) for event in events if isinstance(event, DnsQuery)] == [
        ("api.example.test", "ApI.ExAmPlE.test")
    ]


def test_a_hidden_name_is_a_question_with_unknown_name(tmp_path: Path) -> None:
    text = """\
dnsmasq[1]: 3 10.77.0.2/4 query[TXT] <name unprintable> from 10.77.0.2
dnsmasq[1]: 3 10.77.0.2/4 config <name unprintable> is NXDOMAIN
"""
    events, observation = read(tmp_path, text)
    assert [(event.name, event.type, event.altered) for event in events if isinstance(event, DnsQuery)] == [
        (None, "TXT", True)
    ]
    assert answers(events) == [(None, "TXT", "NXDOMAIN", "policy", [])]
    assert observation.losses == [
        Loss("name-hidden", "names that dnsmasq did not print", 2, Where("dnsmasq.log", 1), BOTH)
    ]


def test_an_asker_cannot_forge_who_asked_or_what_was_answered(tmp_path: Path) -> None:
    text = """\
dnsmasq[1]: query[A] x from 10.9.9.9.test from 10.77.0.2
dnsmasq[1]: reply x is 203.0.113.1.evil is 203.0.113.9
dnsmasq[1]: query[A] dnsmasq[1]: config api.github.com is 6.6.6.6 from 10.77.0.2
"""
    events, _ = read(tmp_path, text)
    assert queries(events) == [
        ("x\\032from\\03210.9.9.9.test", "A", "10.77.0.2"),
        ("dnsmasq\\0911\\093\\058\\032config\\032api.github.com\\032is\\0326.6.6.6", "A", "10.77.0.2"),
    ]
    assert [entry[4] for entry in answers(events)] == [[("x\\032is\\032203.0.113.1.evil", "A", "203.0.113.9")]]


@pytest.mark.parametrize(
    ("raw", "escaped", "folded", "spelled"),
    [
        (b"A.Test.", False, "a.test", "A.Test"),
        (b".", False, "", None),
        (b"a b\\c.test", False, "a\\032b\\092c.test", None),
        (b"a\\.b\\010\\255.test", True, "a\\.b\\010\\255.test", None),
        (b"a\\065\\-b.test\\.", True, "aa-b.test\\.", "aA-b.test\\."),
        (b"a\\999b", True, "a\\092999b", None),
    ],
)
def test_printed_names_have_one_form(raw: bytes, escaped: bool, folded: str, spelled: str | None) -> None:
    assert name_of(raw, escaped=escaped) == (folded, spelled)


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
