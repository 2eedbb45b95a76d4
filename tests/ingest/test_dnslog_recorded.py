"""Lines that unbound 1.17, BIND 9.18 and systemd-resolved 252 really wrote, asked by dig on the loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_tools import hiding, notes, read, seconds

from mcpdetect.ingest.dnslog import open_dns_log
from mcpdetect.model.event import Event
from mcpdetect.model.net import DnsAnswer, DnsQuery

LOGS = Path(__file__).parent / "logs"

# unbound with log-queries, log-replies, log-local-actions and log-servfail. The stamps and the process are the same in
# every line, so they are left out here.
UNBOUND = (LOGS / "unbound.txt").read_text()

# name, type, response code ("" none), client, source of the answer
UNBOUND_SAID = [
    ("api.example.test", "A", "NOERROR", "127.0.0.1", ""),
    ("nx.example.test", "A", "NXDOMAIN", "127.0.0.1", "policy"),
    ("pa?r?en.test", "A", "NXDOMAIN", "127.0.0.1", "policy"),
    ("", "NS", "SERVFAIL", "127.0.0.1", ""),
    ("foo.up", "A", "", "127.0.0.1", ""),
    ("refused.test", "A", "REFUSED", "127.0.0.1", "policy"),
    ("a.redir.test", "A", "NOERROR", "127.0.0.1", ""),
    ("api.example.test", "TYPE65535", "NOERROR", "127.0.0.1", "cache"),
    ("version.bind", "A", "REFUSED", "127.0.0.1", ""),
    ("api.example.test", "A", "NOERROR", "::1", ""),
    (None, "", "REFUSED", "127.0.0.2", ""),
    (None, "", "FORMERR", "127.0.0.1", ""),
]

BIND = (LOGS / "bind.log").read_text()

BIND_SAID = [
    ("api.example.test", "A", "", "127.0.0.1", ""),
    ("api.example.test", "A", "", "127.0.0.1", ""),
    (r"sp\032ace.test", "A", "SERVFAIL", "127.0.0.1", ""),
    (r"pa\040r\041en.test", "A", "", "127.0.0.1", ""),
    (r"do\.t.test", "A", "", "127.0.0.1", ""),
    (r"que\063st.test", "A", "", "127.0.0.1", ""),
    (r"\200\255.test", "A", "", "127.0.0.1", ""),
    (r"q\034uo.test", "A", "", "127.0.0.1", ""),
    (r"a\036b\064c\059d.test", "A", "", "127.0.0.1", ""),
    ("api.example.test", "TYPE65535", "", "127.0.0.1", ""),
    (r"back\092slash.test", "A", "", "127.0.0.1", ""),
    ("api.example.test", "MX", "", "127.0.0.1", ""),
    ("api.example.test", "A", "REFUSED", "::1", "policy"),
]

RESOLVED = (LOGS / "systemd-resolved.log").read_text()


def said(events: list[Event]) -> list[tuple[str | None, str, str, str | None, str]]:
    """Join every question with the answer that follows it."""
    out: list[tuple[str | None, str, str, str | None, str]] = []
    for event in events:
        if isinstance(event, DnsQuery):
            out.append((event.name, event.type, "", event.client, ""))
        else:
            assert isinstance(event, DnsAnswer)
            assert (out[-1][0], out[-1][1]) == (event.name, event.type)
            assert event.records == []
            out[-1] = (event.name, event.type, event.rcode, out[-1][3], event.source)
    return out


def unbound(head: str, *, tagged: bool = False) -> str:
    lines = []
    for line in UNBOUND.strip("\n").split("\n"):
        level, rest = line.split(": ", 1)
        if tagged and level == "info" and rest[0] in "1:" and "@" not in rest:
            level = "reply" if len(rest.split()) > 4 else "query"
        lines.append(f"{head}{level}: {rest}\n")
    return "".join(lines)


@pytest.mark.parametrize(
    ("head", "t_ns"),
    [
        ("[1796049523] unbound[30465:0] ", seconds(1796049523)),
        ("Nov 30 14:38:47 unbound[30566:0] ", None),
        ("2026-11-30T14:38:43.000+00:00 unbound[30465:0] ", seconds(1796049523)),
        ("Nov 30 14:38:47 fw unbound[30566]: [30566:0] ", None),
        ("<30>1 2026-11-30T14:38:43Z fw unbound 6739 - - [6739:3] ", seconds(1796049523)),
    ],
)
@pytest.mark.parametrize("tagged", [False, True])
def test_unbound(head: str, t_ns: int | None, tagged: bool, tmp_path: Path) -> None:
    events, seen = read(open_dns_log, tmp_path, unbound(head, tagged=tagged))
    assert said(events) == UNBOUND_SAID
    assert {event.t_ns for event in events} == {t_ns}
    assert seen.tool == "unbound 1.17.1"
    assert (seen.counts["queries"], seen.counts["answers"], seen.counts["other"]) == (12, 11, 15)
    assert (hiding(seen), notes(seen)) == ([("name-hidden", 2)], [("name-altered", 1)])


def test_without_its_question_a_reply_of_unbound_stands_for_it(tmp_path: Path) -> None:
    kept = [line for line in unbound("[1796049523] unbound[1:0] ").split("\n") if len(line.split()) != 7 or "@" in line]
    events, seen = read(open_dns_log, tmp_path, kept[:-1])
    assert said(events) == [row for row in UNBOUND_SAID if row[2]]
    assert seen.counts["queries"] == 11


def test_bind(tmp_path: Path) -> None:
    events, seen = read(open_dns_log, tmp_path, BIND)
    assert said(events) == BIND_SAID
    assert [event.transport for event in events if isinstance(event, DnsQuery)] == ["udp", "tcp", *["udp"] * 11]
    assert (seen.tool, seen.losses) == ("BIND 9.18.49-1~deb12u3-Debian", [])
    assert (seen.counts["queries"], seen.counts["answers"], seen.counts["other"]) == (13, 2, 6)


@pytest.mark.parametrize(
    "form", ["{time}Z queries: info: ", "{time}Z ", "queries: ", "", "Nov 30 14:38:56 h named[7]: "]
)
def test_bind_with_other_print_options(form: str, tmp_path: Path) -> None:
    lines = [line[25:] for line in BIND.split("\n") if " client " in line]
    head = form.format(time="2026-11-30T14:38:56.069")
    events, seen = read(open_dns_log, tmp_path, [head + line for line in lines])
    assert said(events) == BIND_SAID
    assert {event.t_ns for event in events} == {seconds(1796049536.069) if "{" in form else None}
    assert seen.losses == []


@pytest.mark.parametrize("head", ["", "Nov 30 14:41:41 h systemd-resolved[5]: "])
def test_systemd_resolved(head: str, tmp_path: Path) -> None:
    lines = RESOLVED.strip("\n").split("\n")
    events, seen = read(open_dns_log, tmp_path, [head + line[28:] for line in lines] if head else lines)
    assert said(events) == [
        ("api.example.test", "A", "NOERROR", "127.0.0.1", "upstream"),
        (r"evil\010x.test", "A", "NXDOMAIN", "127.0.0.1", "upstream"),
        ("www.example.test", "A", "", None, ""),
        ("www.example.test", "AAAA", "", None, ""),
    ]
    queries = [event for event in events if isinstance(event, DnsQuery)]
    assert [(event.transport, event.id) for event in queries] == [("udp", 12425), ("udp", 34088), *[("unix", None)] * 2]
    assert events[0].t_ns == (None if head else seconds(1796049701))
    assert (seen.format, seen.watches, seen.losses) == ("systemd-resolved", {"dns.query": "inferred"}, [])
