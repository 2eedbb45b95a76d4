"""Zeek's dns.log, tab-separated and as JSON: columns by name, chains of aliases, unknown names, missing ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from log_tools import NAME, hiding, read, seconds

from mcpdetect.ingest.dnslog import open_dns_log
from mcpdetect.model.event import Unparsed
from mcpdetect.model.net import DnsAnswer, DnsQuery, DnsRecord
from mcpdetect.model.place import Where

FIELDS = ["ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"]
FIELDS += ["proto", "query", "qtype_name", "rcode_name", "answers", "TTLs"]
HEAD = ["#separator \\x09", "#set_separator\t,", "#empty_field\t(empty)", "#unset_field\t-", "#path\tdns"]
CLOSE = "#close\t2026-11-30-11-21-20"


def log(*rows: str, fields: list[str] = FIELDS, close: bool = True) -> list[str]:
    body = [row.replace("|", "\t") for row in rows]
    return [*HEAD, "#fields\t" + "\t".join(fields), *body, *([CLOSE] if close else [])]


WWW = "1700000000.000000|C1|10.77.0.2|40000|203.0.113.53|53|udp|www.example.test|A|NOERROR|"
WWW += "api.example.test,203.0.113.10|60.0,60.0"
ENDS: dict[str, Any] = {"seen_in": "dns", "client": "10.77.0.2", "server": "203.0.113.53", "transport": "udp"}


def asked(line: int, second: int, name: str | None, record: str, port: int, **more: Any) -> DnsQuery:
    return DnsQuery(Where(NAME, line), seconds(second), name, record, client_port=port, server_port=53, **ENDS, **more)


def answered(line: int, second: int, name: str, record: str, rcode: str, *records: DnsRecord, **more: Any) -> DnsAnswer:
    return DnsAnswer(Where(NAME, line), seconds(second), name, record, rcode, list(records), **ENDS, **more)


CHAIN = (
    DnsRecord("www.example.test", "CNAME", "api.example.test", 60),
    DnsRecord("api.example.test", "A", "203.0.113.10", 60),
)


def test_a_tab_separated_log(tmp_path: Path) -> None:
    rows = log(
        WWW,
        "1700000001.000000|C2|10.77.0.2|40001|203.0.113.53|53|udp|-|-|-|-|-",
        "1700000002.000000|C3|10.77.0.2|40002|203.0.113.53|53|udp|a\\x09b\\x2cc.test|TXT|NOERROR|TXT 5 hello|60.0",
    )
    events, seen = read(open_dns_log, tmp_path, rows)
    odd = "a\\009b\\044c.test"
    assert events == [
        asked(7, 1700000000, "www.example.test", "A", 40000),
        answered(7, 1700000000, "www.example.test", "A", "NOERROR", *CHAIN),
        asked(8, 1700000001, None, "", 40001, altered=True),
        asked(9, 1700000002, odd, "TXT", 40002),
        answered(9, 1700000002, odd, "TXT", "NOERROR", DnsRecord(odd, "TXT", "hello", 60)),
    ]
    assert (seen.channel, seen.format, seen.clock, seen.complete) == ("dns", "zeek", "epoch", True)
    assert seen.watches == {"dns.query": "inferred", "dns.answer": "inferred"}
    assert hiding(seen) == [("name-hidden", 1)]
    assert seen.counts == {"lines": 10, "events": 5, "unparsed": 0, "queries": 3, "answers": 2}


def test_columns_are_known_by_their_names(tmp_path: Path) -> None:
    fields = ["query", "answers", "ts", "extra", "qtype", "id.orig_h", "trans_id", "rcode_name"]
    rows = log(
        "X.test|203.0.113.1,2001:db8::1|1700000000.5|z|65|10.77.0.2|4660|NOERROR",
        "y.test|-|1700000001.0|z|65535|10.77.0.2|99999|NXDOMAIN",
        fields=fields,
    )
    events, _ = read(open_dns_log, tmp_path, rows)
    first: dict[str, Any] = {"seen_in": "dns", "client": "10.77.0.2", "id": 4660}
    records = [DnsRecord("x.test", "A", "203.0.113.1"), DnsRecord("x.test", "AAAA", "2001:db8::1")]
    other: dict[str, Any] = {"seen_in": "dns", "client": "10.77.0.2"}
    at = seconds(1700000000.5)
    assert events == [
        DnsQuery(Where(NAME, 7), at, "x.test", "TYPE65", spelled="X.test", **first),
        DnsAnswer(Where(NAME, 7), at, "x.test", "TYPE65", "NOERROR", records, **first),
        DnsQuery(Where(NAME, 8), seconds(1700000001), "y.test", "TYPE65535", **other),
        DnsAnswer(Where(NAME, 8), seconds(1700000001), "y.test", "TYPE65535", "NXDOMAIN", **other),
    ]


@pytest.mark.parametrize("close", [True, False])
def test_a_log_without_its_close_line_is_incomplete(close: bool, tmp_path: Path) -> None:
    events, seen = read(open_dns_log, tmp_path, log(WWW, close=close))
    assert (len(events), seen.complete) == (2, close)
    assert hiding(seen) == ([] if close else [("file-truncated", 1)])


def test_a_log_without_entries_was_watching(tmp_path: Path) -> None:
    events, seen = read(open_dns_log, tmp_path, log())
    assert (events, seen.proof) == ([], "inferred")
    assert seen.watches == {"dns.query": "inferred", "dns.answer": "inferred"}


def test_separators_and_placeholders_are_what_the_header_says(tmp_path: Path) -> None:
    rows = [
        "#separator ;",
        "#set_separator;/",
        "#unset_field;NIL",
        "#empty_field;NONE",
        "#fields;ts;id.orig_h;query;rcode_name;answers",
        "1700000000.0;10.77.0.2;x.test;NOERROR;203.0.113.1/203.0.113.2",
        "1700000001.0;10.77.0.2;-;NOERROR;NONE",
        "1700000002.0;10.77.0.2;NIL;NIL;NIL",
        "#close;x",
    ]
    events, _ = read(open_dns_log, tmp_path, rows)
    assert [(e.kind, e.name) for e in events if isinstance(e, DnsQuery | DnsAnswer)] == [
        ("dns.query", "x.test"),
        ("dns.answer", "x.test"),
        ("dns.query", "-"),
        ("dns.answer", "-"),
        ("dns.query", None),
    ]
    answers = [event for event in events if isinstance(event, DnsAnswer)]
    assert [[record.value for record in answer.records] for answer in answers] == [["203.0.113.1", "203.0.113.2"], []]
    assert [answer.no_data for answer in answers] == [False, True]


def test_two_logs_one_behind_the_other_are_read_by_their_own_headers(tmp_path: Path) -> None:
    rows = [*log(WWW), *log("10.77.0.9|b.test", fields=["id.orig_h", "query"], close=False)]
    events, seen = read(open_dns_log, tmp_path, rows)
    queries = [event for event in events if isinstance(event, DnsQuery)]
    assert [(q.client, q.name, q.t_ns) for q in queries] == [
        ("10.77.0.2", "www.example.test", seconds(1700000000)),
        ("10.77.0.9", "b.test", None),
    ]
    assert hiding(seen) == [("file-truncated", 1)]


@pytest.mark.parametrize(
    ("ts", "t_ns"),
    [
        (1700000000.0, seconds(1700000000)),
        (1700000000.123456, seconds(1700000000.123456)),
        (1700000000, seconds(1700000000)),
        (1700000000123, seconds(1700000000.123)),
        ("2023-11-14T22:13:20.000000Z", seconds(1700000000)),
        ("soon", None),
        (True, None),
        (-1, None),
        (1e300, None),
        (None, None),
    ],
)
def test_json_gives_the_same_events(ts: object, t_ns: int | None, tmp_path: Path) -> None:
    good = {"ts": 1700000001.0, "id.orig_h": "10.77.0.2", "query": "z.test"}
    entry = {"ts": ts, "id.orig_h": "10.77.0.2", "query": "X.test", "qtype_name": "A", "answers": ["203.0.113.1"]}
    events, seen = read(open_dns_log, tmp_path, [json.dumps(good), json.dumps(entry)])
    more: dict[str, Any] = {"seen_in": "dns", "client": "10.77.0.2"}
    records = [DnsRecord("x.test", "A", "203.0.113.1")]
    assert events[1:] == [
        DnsQuery(Where(NAME, 2), t_ns, "x.test", "A", spelled="X.test", **more),
        DnsAnswer(Where(NAME, 2), t_ns, "x.test", "A", "NOERROR", records, **more),
    ]
    assert (seen.clock, hiding(seen)) == ("epoch", [])


def test_all_of_a_json_entry(tmp_path: Path) -> None:
    entry = {
        "ts": 1700000000.0,
        "uid": "C1",
        "id.orig_h": "10.77.0.2",
        "id.orig_p": 40000,
        "id.resp_h": "203.0.113.53",
        "id.resp_p": 53,
        "proto": "udp",
        "trans_id": 7,
        "query": "www.example.test",
        "qtype": 1,
        "qtype_name": "A",
        "rcode": 0,
        "rcode_name": "NOERROR",
        "answers": ["api.example.test", "203.0.113.10"],
        "TTLs": [60.0, 60.0],
    }
    events, _ = read(open_dns_log, tmp_path, [json.dumps(entry)])
    assert events == [
        asked(1, 1700000000, "www.example.test", "A", 40000, id=7),
        answered(1, 1700000000, "www.example.test", "A", "NOERROR", *CHAIN, id=7),
    ]


@pytest.mark.parametrize(
    ("record", "answers", "records"),
    [
        ("PTR", ["Host.test"], [("PTR", "host.test")]),
        ("CNAME", ["a.test"], [("CNAME", "a.test")]),
        ("A", ["a.test"], [("CNAME", "a.test")]),
        ("MX", ["Mail.test"], [("MX", "Mail.test")]),
        ("*", ["203.0.113.1"], [("A", "203.0.113.1")]),
        ("query-65535", ["x y"], [("TYPE65535", "x y")]),
        ("AAAA", ["::ffff:203.0.113.1"], [("AAAA", "203.0.113.1")]),
    ],
)
def test_the_type_of_a_record(record: str, answers: list[str], records: list[tuple[str, str]], tmp_path: Path) -> None:
    entry = {"id.orig_h": "10.77.0.2", "query": "q.test", "qtype_name": record, "answers": answers}
    events, _ = read(open_dns_log, tmp_path, [json.dumps(entry)])
    assert isinstance(events[1], DnsAnswer)
    assert [(item.type, item.value) for item in events[1].records] == records
    assert all(item.name == "q.test" for item in events[1].records)


def test_entries_that_are_none_are_counted(tmp_path: Path) -> None:
    rows = log(WWW, "too|few", WWW.replace("10.77.0.2", "10.77.0.256"), '{"id.orig_h": 3}', '{"query": "x.test"}')
    events, seen = read(open_dns_log, tmp_path, rows)
    assert [event.kind for event in events] == ["dns.query", "dns.answer", *["unparsed"] * 4]
    assert [event.reason for event in events if isinstance(event, Unparsed)] == [
        "not as many columns as #fields names",
        "id.orig_h is no address",
        "id.orig_h is no address",
        "no JSON entry of a dns.log",
    ]
    assert sum(count for _, count in hiding(seen)) == 4
