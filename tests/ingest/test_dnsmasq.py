"""The query log of dnsmasq: every form of line, answers over several lines, hidden names."""

from __future__ import annotations

from pathlib import Path

import pytest
from dnsmasq_tools import BOTH, FORMS, SORTS, answers, queries, read

from mcpdetect.ingest.dnslog.names import name_of
from mcpdetect.model.net import DnsAnswer, DnsQuery, DnsRecord
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

# cases C71


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
