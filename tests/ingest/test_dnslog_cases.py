"""Query logs of resolvers as they stand in the world: the lines of each format, and names that a log damages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from log_tools import NAME, hiding, losses, notes, read, seconds

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.dnslog import DnsmasqLog, open_dns_log
from mcpdetect.ingest.dnslog.bind import BindLog
from mcpdetect.ingest.dnslog.coredns import CoreDnsLog
from mcpdetect.ingest.dnslog.resolved import ResolvedLog
from mcpdetect.ingest.dnslog.unbound import UnboundLog
from mcpdetect.ingest.dnslog.zeek import ZeekLog
from mcpdetect.model.event import Unparsed
from mcpdetect.model.net import DnsAnswer, DnsQuery
from mcpdetect.model.place import Where

WATCHES = {"dns.query": "inferred"}


def asked(line: int, t_ns: int | None, name: str | None, record: str, client: str, **more: Any) -> DnsQuery:
    return DnsQuery(Where(NAME, line), t_ns, name, record, seen_in="dns", client=client, **more)


def answered(
    line: int, t_ns: int | None, name: str | None, record: str, rcode: str, client: str, **more: Any
) -> DnsAnswer:
    return DnsAnswer(Where(NAME, line), t_ns, name, record, rcode, seen_in="dns", client=client, **more)


UNBOUND = [
    "[1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN",
    "[1796037684] unbound[27638:0] info: example.test. static 10.77.0.2@34735 api.example.test. A IN",
    "[1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN NOERROR 0.000000 1 61",
    "Nov 30 11:21:30 unbound[28111:0] query: 10.77.0.2 api.example.test. A IN",
    "Nov 30 11:21:30 unbound[28111:0] reply: 10.77.0.2 api.example.test. A IN NOERROR 0.000000 1 61",
    (
        '<30>1 2026-03-24T00:17:39+01:00 fw unbound 6739 - [meta sequenceId="529"] [6739:3] query: '
        "192.0.2.1 api.example.test. HTTPS IN"
    ),
    (
        "[1796037684] unbound[27638:0] info: server stats for thread 0: 25 queries, 3 answers from cache, 22 "
        "recursions, 0 prefetch"
    ),
    "[1796037684] unbound[27638:0] info: 10.77.0.2 foo.up. A IN",
]


def test_unbound_with_and_without_tags(tmp_path: Path) -> None:
    events, seen = read(open_dns_log, tmp_path, UNBOUND)
    at = seconds(1796037684)
    assert events == [
        asked(1, at, "api.example.test", "A", "10.77.0.2"),
        answered(3, at, "api.example.test", "A", "NOERROR", "10.77.0.2"),
        asked(4, None, "api.example.test", "A", "10.77.0.2"),
        answered(5, None, "api.example.test", "A", "NOERROR", "10.77.0.2", source="cache"),
        asked(6, seconds(1774307859), "api.example.test", "HTTPS", "192.0.2.1"),
        asked(8, at, "foo.up", "A", "10.77.0.2"),
    ]
    assert (seen.channel, seen.format, seen.clock, seen.watches) == ("dns", "unbound", "epoch", WATCHES)
    assert seen.counts == {"lines": 8, "events": 6, "unparsed": 0, "queries": 4, "answers": 2, "other": 2}
    assert (hiding(seen), notes(seen)) == ([], [("no-clock", 2)])


def test_names_that_unbound_cannot_show_stay_questions(tmp_path: Path) -> None:
    lines = [
        "[1796037686] unbound[27638:0] info: 10.77.0.2 Evil?x.test. A IN",
        "<30>1 2023-08-13T21:20:09+00:00 fw unbound 94939 - - [94939:0] info: 2001:db8::7133 2001?db8??1?1234. A IN",
    ]
    events, seen = read(open_dns_log, tmp_path, lines)
    assert events == [
        asked(1, seconds(1796037686), "evil?x.test", "A", "10.77.0.2", spelled="Evil?x.test", altered=True),
        asked(2, seconds(1691961609), "2001?db8??1?1234", "A", "2001:db8::7133", altered=True),
    ]
    assert (hiding(seen), notes(seen)) == ([], [("name-altered", 2)])


def test_names_that_coredns_damaged_stay_questions(tmp_path: Path) -> None:
    line = (
        '[INFO] [fe80::abcd:abcd%!l(MISSING)an0]:54939 - 57566 "A IN foo.%!s(MISSING).example.test. udp 43 false 4096" '
        "NXDOMAIN qr,aa,rd,ra 107 0.010446858s"
    )
    events, seen = read(open_dns_log, tmp_path, [line])
    name = "foo.?.example.test"
    assert events == [
        asked(1, None, name, "A", "fe80::abcd:abcd", client_port=54939, transport="udp", id=57566, altered=True),
        answered(1, None, name, "A", "NXDOMAIN", "fe80::abcd:abcd", transport="udp", id=57566),
    ]
    assert (hiding(seen), notes(seen)) == ([], [("name-altered", 1)])


BIND = [
    (
        "30-Nov-2026 11:23:54.944 client @0x7f9041aeb098 10.77.0.2#39617 (API.example.test): view sandbox: query: "
        "API.example.test IN HTTPS +E(0)DK (10.77.0.1)"
    ),
    (
        "30-Nov-2026 11:23:54.988 queries: info: client @0x7f904366ec98 10.77.0.2#34519 (api.example.test): query: "
        "api.example.test IN A +E(0)TK (10.77.0.1)"
    ),
    "18-Jan-2018 08:36:30.387 client 192.0.2.148#9307 (edu.test): query: edu.test IN ANY +E (192.0.2.30)",
    (
        "30-Nov-2026 11:22:15.708 client @0x7f553d2eb098 10.77.0.2#58870 (evil\\010x.test): view sandbox: "
        "query failed (SERVFAIL) for evil\\010x.test/IN/A at query.c:6426"
    ),
    "30-Nov-2026 11:21:35.208 client @0x7f1367235898 2001:db8:77::2#48859 (.): query: . IN NS +E(0)K (2001:db8:77::1)",
]


def test_bind_through_the_versions(tmp_path: Path) -> None:
    events, seen = read(open_dns_log, tmp_path, BIND)
    here: dict[str, Any] = {"server": "10.77.0.1"}
    assert events == [
        asked(
            1,
            None,
            "api.example.test",
            "HTTPS",
            "10.77.0.2",
            client_port=39617,
            transport="udp",
            spelled="API.example.test",
            **here,
        ),
        asked(2, None, "api.example.test", "A", "10.77.0.2", client_port=34519, transport="tcp", **here),
        asked(3, None, "edu.test", "ANY", "192.0.2.148", client_port=9307, transport="udp", server="192.0.2.30"),
        answered(4, None, "evil\\010x.test", "A", "SERVFAIL", "10.77.0.2"),
        asked(5, None, "", "NS", "2001:db8:77::2", client_port=48859, transport="udp", server="2001:db8:77::1"),
    ]
    assert (seen.format, seen.clock, seen.watches, seen.losses) == ("bind", "none", WATCHES, [])


def test_bind_s_local_times_become_times_within_a_declared_window(tmp_path: Path) -> None:
    at = seconds(1796037834.944)
    events, seen = read(open_dns_log, tmp_path, BIND[:1], Declared(begin_ns=at - 10**9, end_ns=at + 10**9))
    assert (events[0].t_ns, seen.clock) == (at, "epoch")
    assert seen.watches == {"dns.query": "declared"}
    assert notes(seen) == [("clock-inferred", 1)]


COREDNS = [
    (
        '[INFO] [2001:db8:77::2]:50759 - 29008 "A IN api.example.test. udp 41 false 4096" NOERROR qr,rd,ra,ad 68 '
        "0.037990251s"
    ),
    (
        '2026-11-30T11:21:18.000Z [INFO] 10.77.0.2:15439 - 50129 "AAAA IN api.example.test. tcp 54 true 65535" '
        "NXDOMAIN qr,aa,rd 147 46.555\u00b5s"
    ),
    "[INFO] 8.8.4.4:853",
    "[INFO] plugin/reload: Running configuration SHA512 = 54ff",
]


def test_coredns_and_a_line_of_a_form_of_one_s_own(tmp_path: Path) -> None:
    events, seen = read(open_dns_log, tmp_path, COREDNS)
    first: dict[str, Any] = {"transport": "udp", "id": 29008}
    second: dict[str, Any] = {"transport": "tcp", "id": 50129}
    assert events == [
        asked(1, None, "api.example.test", "A", "2001:db8:77::2", client_port=50759, **first),
        answered(1, None, "api.example.test", "A", "NOERROR", "2001:db8:77::2", **first),
        asked(2, None, "api.example.test", "AAAA", "10.77.0.2", client_port=15439, **second),
        answered(2, None, "api.example.test", "AAAA", "NXDOMAIN", "10.77.0.2", **second),
        Unparsed(
            Where(NAME, 3),
            None,
            seen_in="dns",
            reason="log format not recognised, so questions may be missing",
            raw=b"[INFO] 8.8.4.4:853",
            touches=["dns.query", "dns.answer"],
        ),
    ]
    assert (seen.format, seen.clock, seen.watches) == ("coredns", "none", WATCHES)
    assert (hiding(seen), seen.counts["other"]) == ([("unparsed", 1)], 1)


def test_the_collector_s_stamp_in_front_of_every_line_is_coredns_s_time(tmp_path: Path) -> None:
    lines = [f"2026-11-30T11:21:1{n}.000000000Z stdout F {line}" for n, line in enumerate((COREDNS[0], COREDNS[3]))]
    events, seen = read(open_dns_log, tmp_path, lines)
    assert [event.t_ns for event in events] == [seconds(1796037670)] * 2
    assert (seen.clock, seen.begin_ns, seen.end_ns) == ("epoch", seconds(1796037670), seconds(1796037671))


def test_letter_case_is_folded_and_kept_for_display(tmp_path: Path) -> None:
    for line in (UNBOUND[0], BIND[1].replace("A IN", "A IN"), COREDNS[0]):
        events, _ = read(open_dns_log, tmp_path, [line.replace("api.example.test", "ApI.ExAmPlE.test")])
        assert isinstance(events[0], DnsQuery)
        assert (events[0].name, events[0].spelled) == ("api.example.test", "ApI.ExAmPlE.test")


LOOKS: list[tuple[str, type]] = [
    ("Nov 30 12:19:52 dnsmasq[1643]: query[A] www.example.test from 10.77.0.2\n", DnsmasqLog),
    ("dnsmasq: started, version 2.90 cachesize 150\n", DnsmasqLog),
    (f"{UNBOUND[0]}\n", UnboundLog),
    (f"{UNBOUND[5]}\n", UnboundLog),
    ("Nov 30 12:19:52 fw unbound: [1:0] info: 10.77.0.2 api.example.test. A IN\n", UnboundLog),
    ("2026-11-30T12:19:52Z fw unbound[9]: [9:0] info: 10.77.0.2 api.example.test. A IN\n", UnboundLog),
    (f"{BIND[0]}\n", BindLog),
    (f"Nov 30 12:19:52 h named[9]: {BIND[0][25:]}\n", BindLog),
    (f"{BIND[0][25:]}\n", BindLog),
    (f"{COREDNS[1]}\n", CoreDnsLog),
    ("#separator \\x09\n#path\tdns\n#fields\tts\tid.orig_h\tquery\n", ZeekLog),
    ('{"ts":1.0,"id.orig_h":"10.77.0.2","query":"x.test"}\n', ZeekLog),
    ("Nov 30 12:19:52 h systemd-resolved[1]: Looking up RR for x.test IN A.\n", ResolvedLog),
]
ONE_DIGIT = [(text.replace("Nov 30", "Dec  1"), kind) for text, kind in LOOKS if "Nov 30" in text]
"""The same lines on a day of one digit, which syslog's stamp pads with a space (RFC 3164 §4.1.2)."""


@pytest.mark.parametrize(("text", "kind"), [*LOOKS, *ONE_DIGIT])
def test_a_log_is_known_by_its_lines_on_any_day(text: str, kind: type, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text(text)
    adapter = open_dns_log(path, NAME)
    assert type(adapter) is kind
    list(adapter.events())
    assert adapter.observation.counts["unparsed"] == 0


def test_names_and_texts_of_one_log_never_make_it_another(tmp_path: Path) -> None:
    lines = ["[1] unbound[1:0] info: x", *(f"{UNBOUND[0]} unbound[1:0] info:" for _ in range(2))]
    lines = [f"dnsmasq[1]: query[A] {odd} from 10.77.0.2" for odd in ("[INFO]", "client#53", "unbound[1:0]", "x")]
    _, seen = read(open_dns_log, tmp_path, lines)
    assert (seen.format, seen.counts["queries"]) == ("dnsmasq", 4)


@pytest.mark.parametrize(
    "text",
    [
        "hello\n",
        "[    1.000000] DROP IN= OUT=v0 SRC=10.0.0.1 DST=10.0.0.2\n",
        '{"a": 1}\n',
        "#separator \\x09\n#path\tconn\n#fields\tts\tuid\tid.orig_h\n1.0\tC\t10.0.0.1\n",
        "Nov 30 12:19:52 h systemd-resolved[1]: Using degraded feature set UDP instead of UDP+EDNS0\n",
    ],
)
def test_any_other_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat) as caught:
        read(open_dns_log, tmp_path, text)
    assert (caught.value.file, caught.value.hint is None) == (NAME, False)


@pytest.mark.parametrize("kind", [UnboundLog, BindLog, CoreDnsLog, ZeekLog, ResolvedLog])
def test_each_format_refuses_the_others(kind: type, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text("Nov 30 12:19:52 dnsmasq[1643]: query[A] www.example.test from 10.77.0.2\n")
    with pytest.raises(UnknownFormat):
        kind(path)
    path.write_text("")
    with pytest.raises(InputError, match="is empty"):
        kind(path)


@pytest.mark.parametrize(
    "banner",
    [
        "[1796037684] unbound[27638:0] info: start of service (unbound 1.17.1).",
        "30-Nov-2026 14:38:54.157 all zones loaded",
        "CoreDNS-1.11.1\n[INFO] plugin/reload: Running configuration SHA512 = 54ff",
    ],
)
def test_a_server_that_runs_need_not_log_questions(banner: str, tmp_path: Path) -> None:
    kind = {"[1": UnboundLog, "30": BindLog, "Co": CoreDnsLog}[banner[:2]]
    _, seen = read(kind, tmp_path, f"{banner}\n")
    assert (seen.proof, seen.watches) == ("absent", {})
    _, seen = read(kind, tmp_path, f"{banner}\n", Declared(tool="x"))
    assert (seen.proof, seen.watches, seen.tool) == ("declared", {"dns.query": "declared"}, "x")


def test_lines_in_an_unknown_form_lower_the_claim(tmp_path: Path) -> None:
    odd = {
        UNBOUND[0]: "[1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN and more words here now",
        BIND[0]: BIND[0].replace("query: API.example.test IN", "query: API example.test: IN"),
    }
    for good, bad in odd.items():
        events, seen = read(open_dns_log, tmp_path, [good, bad, "no header at all"])
        assert [event.kind for event in events] == ["dns.query", "unparsed", "unparsed"]
        assert sum(loss.count for loss in losses(seen, "unparsed")) == 2
        assert all(loss.touches == ["dns.query", "dns.answer"] for loss in losses(seen, "unparsed"))
