"""Resolver logs that lie, break off or never end."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_tools import NAME, hiding, read

from mcpdetect.errors import InputError
from mcpdetect.ingest.dnslog import open_dns_log
from mcpdetect.ingest.loglines import MAX_LINE
from mcpdetect.model.event import Unparsed
from mcpdetect.model.net import DnsQuery

UNBOUND = (
    "[1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN\n"
    "[1796037684] unbound[27638:0] info: example.test. static 10.77.0.2@34735 api.example.test. A IN\n"
    "[1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN NOERROR 0.000000 1 61\n"
    "[1796037685] unbound[27638:0] info: 10.77.0.2 foo?bar.up. AAAA IN\n"
)
BIND = (
    "30-Nov-2026 11:23:54.944 client @0x7f90 10.77.0.2#39617 (API.test): view s: query: API.test IN A + (10.77.0.1)\n"
    "30-Nov-2026 11:23:55.000 client @0x7f90 10.77.0.2#39618 (x\\010.test): query: x\\010.test IN A + (10.77.0.1)\n"
    "30-Nov-2026 11:23:55.100 client @0x7f90 10.77.0.2#39618 (x\\010.test): query failed (SERVFAIL) for "
    "x\\010.test/IN/A at query.c:1\n"
)
COREDNS = (
    '[INFO] 10.77.0.2:5 - 1 "A IN api.example.test. udp 41 false 4096" NOERROR qr,rd,ra 68 0.03s\n'
    '[INFO] [2001:db8::2]:5 - 2 "A IN b\\ c.test. tcp 41 true 4096" NXDOMAIN qr,rd,ra 68 0.03s\n'
)
ZEEK = (
    "#separator \\x09\n#fields\tts\tid.orig_h\tquery\tqtype_name\trcode_name\tanswers\n"
    "1700000000.0\t10.77.0.2\twww.test\tA\tNOERROR\tapi.test,203.0.113.10\n#close\tx\n"
)
JSON = '{"ts":1700000000.0,"id.orig_h":"10.77.0.2","query":"x.test","qtype_name":"A","answers":["203.0.113.1"]}\n' * 2
RESOLVED = (
    "Mon 2026-11-30 14:41:41 UTC Received dns UDP packet of size 57, ifindex=0, ttl=64, fragsize=0, sender=127.0.0.1, "
    "destination=127.0.0.53\n"
    "Mon 2026-11-30 14:41:41 UTC Got DNS stub UDP query packet for id 12425\n"
    "Mon 2026-11-30 14:41:41 UTC Looking up RR for ApI.example.test IN A.\n"
    "Mon 2026-11-30 14:41:41 UTC Regular transaction 4 for <ApI.example.test IN A> on scope dns on */* now complete "
    "with <success> from network (unsigned; non-confidential).\n"
)
LOGS = {"unbound": UNBOUND, "bind": BIND, "coredns": COREDNS, "zeek": ZEEK, "json": JSON, "resolved": RESOLVED}
by_log = pytest.mark.parametrize("text", LOGS.values(), ids=LOGS.keys())


@by_log
def test_cut_at_any_byte_a_log_gives_a_prefix_and_says_that_it_is_cut(text: str, tmp_path: Path) -> None:
    whole, _ = read(open_dns_log, tmp_path, text)
    checked = 0
    for size in range(1, len(text)):
        try:
            events, seen = read(open_dns_log, tmp_path, text[:size])
        except InputError:
            continue
        ended = text[:size].count("\n")
        assert [event for event in events if event.where.at <= ended] == [
            event for event in whole if event.where.at <= ended
        ]
        last = [event for event in events if event.where.at > ended]
        if text[:size].endswith("\n"):
            assert last == []
        else:
            assert [event.kind for event in last] == ["unparsed"]
            assert "file-truncated" in dict(hiding(seen))
        checked += 1
    assert checked > len(text) // 3


@given(st.binary(max_size=300))
def test_any_bytes_are_events_or_one_clear_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("x")
    with contextlib.suppress(InputError):
        read(open_dns_log, folder, data)


@given(st.data())
def test_damaged_logs_are_events_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = bytearray(data.draw(st.sampled_from(list(LOGS.values()))).encode())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    folder = tmp_path_factory.mktemp("x")
    try:
        events, seen = read(open_dns_log, folder, bytes(text))
    except InputError:
        return
    # Whatever was not understood, or has no name, is in the account.
    odd = any(isinstance(event, Unparsed) or (isinstance(event, DnsQuery) and event.name is None) for event in events)
    assert odd <= bool(hiding(seen))


@pytest.mark.parametrize(
    ("front", "part"),
    [
        ("[1796037684] unbound[1:0] info: 10.77.0.2 ", "a"),
        ("[1796037684] unbound[1:0] info: 10.77.0.2 ", "a "),
        ("[1796037684] unbound[1:0] info: ", "10.77.0.2 a. A IN "),
        ("30-Nov-2026 11:23:54.944 client @0x7f90 10.77.0.2#1 (", "\\("),
        ("30-Nov-2026 11:23:54.944 client @0x7f90 10.77.0.2#1 (a): query: ", "a"),
        ("30-Nov-2026 11:23:54.944 client @0x7f90 10.77.0.2#1 (a): query failed (x) for ", "a/IN/A "),
        ("30-Nov-2026 11:23:54.944 client @0x7f90 10.77.0.2#1 (a): query '", "a/A/IN' "),
        ('[INFO] 10.77.0.2:5 - 1 "A IN ', "\\a"),
        ("[INFO] ", "%!s(MISSING)"),
        ("Mon 2026-11-30 14:41:41 UTC Looking up RR for ", "a"),
        ("Mon 2026-11-30 14:41:41 UTC Received dns UDP packet of size 5, ", "sender=1 "),
        ("", "["),
        ("", " "),
        ("", "client "),
        ("", "1."),
    ],
)
def test_work_grows_with_the_length_of_a_line_only(front: str, part: str, tmp_path: Path) -> None:
    known = next(text for text in LOGS.values() if front[:6].strip() in text)
    text = known + front + part * ((MAX_LINE - len(front)) // len(part)) + "\n"
    _, seen = read(open_dns_log, tmp_path, text)
    assert seen.counts["lines"] == text.count("\n")


@pytest.mark.parametrize(
    ("text", "head"),
    [(UNBOUND, "Nov 30 11:00:00 h unbound: "), (BIND, "Nov 30 11:00:00 h named[1]: ")],
)
def test_another_program_of_the_same_system_log_asks_nothing(text: str, head: str, tmp_path: Path) -> None:
    lines = [
        head + line.partition("unbound" if "unbound" in text else " client")[2].lstrip()
        for line in text.split("\n")[:-1]
    ]
    if "client" in text:
        lines = [line.replace("named[1]: ", "named[1]: client ") for line in lines]
    said = "client 10.0.0.1#53 (evil.test): query: evil.test IN A + (10.0.0.1)"
    others = [f"Nov 30 11:00:00 h sshd[9]: {said}", "Nov 30 11:00:00 h x: [1:0] info: 10.0.0.1 evil.test. A IN"]
    events, seen = read(open_dns_log, tmp_path, [*lines, *others])
    plain, _ = read(open_dns_log, tmp_path, lines)
    assert events == plain
    assert len(plain) == 3
    assert hiding(seen) == []


def test_questions_that_are_never_answered_are_bounded(tmp_path: Path) -> None:
    head = "[1796037684] unbound[1:0] info: 10.77.0.2"
    text = "".join(f"{head} n{number}.test. A IN\n" for number in range(65_600))
    path = tmp_path / NAME
    path.write_text(text)
    adapter = open_dns_log(path)
    assert sum(1 for _ in adapter.events()) == 65_600
    assert [(loss.what, loss.count, loss.note) for loss in adapter.observation.losses] == [("overflow", 64, True)]


@by_log
def test_a_pipe_is_read_like_a_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(text,))
    writer.start()
    events = list(open_dns_log(path, NAME).events())
    writer.join()
    assert events == read(open_dns_log, tmp_path, text)[0]
    assert len(events) >= 2


@by_log
def test_only_wanted_events_come_and_all_are_counted(text: str, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text(text)
    adapter = open_dns_log(path)
    wanted = list(adapter.events(frozenset({"dns.query"})))
    assert {event.kind for event in wanted} == {"dns.query"}
    assert adapter.observation.counts["queries"] == len(wanted)
    assert adapter.observation.counts["events"] > len(wanted)
