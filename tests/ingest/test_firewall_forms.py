"""One packet line in every form in which kernel logs are kept, and who may be believed to have written it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from log_tools import NAME, hiding, notes, read, seconds

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.firewall import FirewallLog
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import FirewallDrop
from mcpdetect.model.place import Where

# Recorded: nft log in a namespace of its own, Linux 6.18; the prefix is "MCPD-OUT " unless said otherwise.
PACKET = (
    "IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.60 LEN=60 TOS=0x00 PREC=0x00 TTL=64 ID=57172 DF PROTO=TCP SPT=42042 DPT=80 "
    "WINDOW=64240 RES=0x00 SYN URGP=0 "
)
EPOCH = 1796048410  # 2026-11-30T14:20:10Z
WINDOW = Declared(begin_ns=seconds(EPOCH - 5), end_ns=seconds(EPOCH + 5))


def wanted(line: int, t_ns: int | None, prefix: str = "MCPD-OUT", packets: int = 1) -> FirewallDrop:
    ends = ("10.77.0.2", 42042, "203.0.113.60", 80)
    return FirewallDrop(Where(NAME, line), t_ns, "logged", "tcp", *ends, packets, prefix)


@pytest.mark.parametrize(
    ("header", "t_ns", "clock"),
    [
        ("", None, "none"),
        ("<4>", None, "none"),
        ("<4>kernel: ", None, "none"),
        ("[ 2240.548221] ", seconds(2240.548221), "relative"),
        ("[ 2240.548221][    C1] ", seconds(2240.548221), "relative"),
        ("[ 2240.548221][ T1234] ", seconds(2240.548221), "relative"),
        ("<4>[ 2240.548221] ", seconds(2240.548221), "relative"),
        ("[ 2240.548221 <    0.037289>] ", seconds(2240.548221), "relative"),
        ("kern  :warn  : [ 2240.548221 <    0.037289>] ", seconds(2240.548221), "relative"),
        ("4,1049,2240548221,-;", seconds(2240.548221), "relative"),
        ("4,1049,2240548221,-,caller=C1;", seconds(2240.548221), "relative"),
        ("[ 2240.548221] h kernel: ", seconds(2240.548221), "relative"),
        ("[Mon Nov 30 14:20:10 2026] ", None, "none"),
        ("[Nov30 14:20] ", None, "none"),
        ("[  +0.000171] ", None, "none"),
        ("2026-11-30T14:20:10,548221+00:00 ", seconds(EPOCH + 0.548221), "epoch"),
        ("kern  :warn  : 2026-11-30T15:20:10,548221+01:00 ", seconds(EPOCH + 0.548221), "epoch"),
        ("2026-11-30T14:20:10+00:00 h kernel: ", seconds(EPOCH), "epoch"),
        ("2026-11-30T09:50:10.5-0430 h kernel: [ 2240.548221] ", seconds(EPOCH + 0.5), "epoch"),
        ("2026-11-30T14:20:10Z h kernel: [ 2240.548221][    C0] ", seconds(EPOCH), "epoch"),
        ("Mon 2026-11-30 14:20:10 UTC h kernel: ", seconds(EPOCH), "epoch"),
        ("1796048410.548221 h kernel: ", seconds(EPOCH + 0.548221), "epoch"),
        ("<4>1 2026-11-30T14:20:10.548221+00:00 h kernel - - - ", seconds(EPOCH + 0.548221), "epoch"),
        ('<4>1 2026-11-30T14:20:10Z h kernel - - [meta q="1 ]\\" 2"][b] ', seconds(EPOCH), "epoch"),
        ("Nov 30 14:20:10 h kernel: ", None, "none"),
        ("<4>Nov 30 14:20:10 h kernel: ", None, "none"),
        ("Nov 30 14:20:10 h kernel: [ 2240.548221] ", seconds(2240.548221), "relative"),
        ("2026-11-30T14:20:10 h kernel: ", None, "none"),
        ("Nov 30 14:20:10 h ulogd[7]: ", None, "none"),
        ("Nov 30 14:20:10 h kern.warn kernel: ", None, "none"),
        ("Mon Nov 30 14:20:10 2026 kern.warn kernel: [ 2240.548221] ", seconds(2240.548221), "relative"),
    ],
)
def test_every_header_is_read_off(header: str, t_ns: int | None, clock: str, tmp_path: Path) -> None:
    events, seen = read(FirewallLog, tmp_path, [f"{header}MCPD-OUT {PACKET}"])
    assert events == [wanted(1, t_ns)]
    assert (seen.clock, hiding(seen)) == (clock, [])
    assert (seen.begin_ns, seen.end_ns) == ((t_ns, t_ns) if clock == "epoch" else (None, None))


@pytest.mark.parametrize(
    ("header", "fraction"),
    [
        ("Nov 30 14:20:10 h kernel: ", 0),
        ("Nov 30 15:20:10.25 h kernel: ", 0.25),
        ("Nov 30 20:05:10 h kernel: ", 0),
        ("Nov 30 06:20:10 h kernel: [ 2240.548221] ", 0),
        ("[Mon Nov 30 14:20:10 2026] ", 0),
        ("[Mon Nov 30 19:50:10 2026] ", 0),
        ("2026-11-30T14:20:10 h kernel: ", 0),
    ],
)
def test_a_declared_window_gives_year_and_zone(header: str, fraction: float, tmp_path: Path) -> None:
    events, seen = read(FirewallLog, tmp_path, [f"{header}MCPD-OUT {PACKET}"], WINDOW)
    assert events == [wanted(1, seconds(EPOCH + fraction))]
    assert (seen.clock, notes(seen)) == ("epoch", [("clock-inferred", 1)])


def test_a_stamp_outside_of_every_zone_of_the_window_is_no_time(tmp_path: Path) -> None:
    events, seen = read(FirewallLog, tmp_path, [f"Nov 28 14:20:10 h kernel: MCPD-OUT {PACKET}"], WINDOW)
    assert (events, seen.clock) == ([wanted(1, None)], "none")


@pytest.mark.parametrize(
    ("prefix", "shown"),
    [
        ("H8-ALL", "H8-ALL"),
        ("X IN=a OUT=b SRC=1.1.1.1 DST=2.2.2.2 PROTO=UDP SPT=1 DPT=2 ", None),
        ("IN= OUT= ", "IN= OUT="),
        ("[x] ", "[x]"),
        ("caf\u00e9 \u202e ", "caf\u00e9 \u202e"),
        ("a\\b\x1b[31m ", "a\\\\b\x1b[31m"),
        ("message repeated ", "message repeated"),
    ],
)
def test_a_prefix_may_hold_anything(prefix: str, shown: str | None, tmp_path: Path) -> None:
    events, _ = read(FirewallLog, tmp_path, [f"[    1.000000] {prefix}{PACKET}"])
    assert events == [wanted(1, seconds(1), shown if shown is not None else prefix.strip())]


@pytest.mark.parametrize(
    "header",
    [
        "Nov 30 14:20:10 h server[9]: ",
        "Nov 30 14:20:10 h kernel[9]x: ",
        "Nov 30 14:20:10 h kernel[9]: ",
        "Nov 30 14:20:10 h user.notice kernel: ",
        "Nov 30 14:20:10 ",
        "<30>Nov 30 14:20:10 h kernel: ",
        "<12>[ 2240.548221] ",
        "12,1049,2240548221,-;",
        "user  :warn  : [ 2240.548221] ",
        "<30>1 2026-11-30T14:20:10Z h kernel - - - ",
        "    ",
    ],
)
def test_what_programs_may_write_is_never_a_packet(header: str, tmp_path: Path) -> None:
    lines = [f"Nov 30 14:20:09 h kernel: MCPD-OUT {PACKET}", f"{header}MCPD-OUT {PACKET}"]
    events, seen = read(FirewallLog, tmp_path, lines)
    assert events[0] == wanted(1, None)
    assert isinstance(events[1], Unparsed)
    assert events[1].reason == "a packet line of a program that is neither the kernel nor ulogd"
    assert events[1].touches == ["firewall.drop"]
    assert hiding(seen) == [("unparsed", 1)]


def test_a_forged_line_gives_a_silent_log_no_life(tmp_path: Path) -> None:
    _, seen = read(FirewallLog, tmp_path, ["Nov 30 14:20:10 h kernel: eth0: up", f"Nov 30 14:20:10 h x: {PACKET}"])
    assert (seen.proof, seen.watches) == ("absent", {})


def test_repeated_lines_are_as_many_packets(tmp_path: Path) -> None:
    events, seen = read(
        FirewallLog,
        tmp_path,
        [
            f"Nov 30 14:20:10 h kernel: message repeated 3 times: [ [ 2240.548221] MCPD-OUT {PACKET}]",
            f"Nov 30 14:20:11 h kernel: MCPD-OUT {PACKET}",
            "Nov 30 14:20:12 h last message repeated 5 times",
            "Nov 30 14:20:13 h kernel: eth0: up",
            "Nov 30 14:20:14 h last message repeated 7 times",
            "Nov 30 14:20:15 h x: last message repeated 9 times",
        ],
    )
    assert events == [wanted(1, None, packets=3), wanted(2, None), wanted(3, None, packets=5)]
    assert (seen.counts["packets"], hiding(seen)) == (9, [])


@pytest.mark.parametrize(
    ("packet", "transport", "source", "address"),
    [
        ("IN=v0 OUT= ARP HTYPE=1 PTYPE=0x0800 OPCODE=1 MACSRC=x IPSRC=10.77.0.1 MACDST=y IPDST=10.77.0.2", "arp", 1, 2),
        ("IN=v0 OUT= MACSRC=x MACDST=y MACPROTO=88cc", "ethertype-0x88cc", None, None),
        ("IN=v0 OUT= MAC=x TRUNCATED", None, None, None),
        ("OUT=v0 SRC=10.77.0.1 DST=10.77.0.2 PROTO=132", "sctp", 1, 2),
        ("IN=v0 OUT= SRC=10.77.0.1 DST=10.77.0.2 PROTO=2", "igmp", 1, 2),
        ("IN=v0 OUT= SRC=10.77.0.1 DST=10.77.0.2 PROTO=200", "ip-200", 1, 2),
        ("IN=v0 OUT= SRC=::ffff:10.77.0.1 DST=64:ff9b::a4d:2 PROTO=UDPLITE SPT=0 DPT=0", "udplite", 1, 2),
    ],
)
def test_other_packets(packet: str, transport: str | None, source: int, address: int, tmp_path: Path) -> None:
    events, _ = read(FirewallLog, tmp_path, [f"X DROP {packet}"])
    ports = 0 if transport == "udplite" else None
    first, second = (f"10.77.0.{end}" if end else None for end in (source, address))
    assert events == [FirewallDrop(Where(NAME, 1), None, "drop", transport, first, ports, second, ports, 1, "X DROP")]


def journal(tmp_path: Path, entries: Sequence[object]) -> tuple[list[Event], list[tuple[str, int]]]:
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    events, seen = read(FirewallLog, tmp_path, lines)
    assert (seen.format, seen.clock) == ("journal-json", "epoch")
    return events, hiding(seen)


ENTRY = {
    "__REALTIME_TIMESTAMP": "1796048410548221",
    "_TRANSPORT": "kernel",
    "SYSLOG_IDENTIFIER": "kernel",
    "SYSLOG_FACILITY": "0",
    "MESSAGE": f"MCPD-OUT {PACKET}",
}
AT = seconds(EPOCH + 0.548221)


def test_a_journal_in_json(tmp_path: Path) -> None:
    bytes_of_message = list(f"MCPD-OUT {PACKET}".encode())
    short = {"MESSAGE": ENTRY["MESSAGE"], "SYSLOG_IDENTIFIER": "kernel", "__REALTIME_TIMESTAMP": "1796048410548221"}
    daemon = {
        **ENTRY,
        "_TRANSPORT": "driver",
        "SYSLOG_IDENTIFIER": "systemd-journald",
        "MESSAGE": "Missed 4 kernel messages",
    }
    entries = [ENTRY, {**ENTRY, "MESSAGE": bytes_of_message}, "\x1e" + json.dumps(ENTRY), short, daemon]
    events, lost = journal(tmp_path, entries)
    assert events == [wanted(line, AT) for line in (1, 2, 3, 4)]
    assert lost == [("dropped", 4)]


def test_only_the_kernel_s_own_entries_of_a_journal_are_packets(tmp_path: Path) -> None:
    forged: list[dict[str, object]] = [
        {**ENTRY, "_TRANSPORT": "syslog"},
        {**ENTRY, "_TRANSPORT": "stdout"},
        {**ENTRY, "SYSLOG_FACILITY": "1"},
        {**ENTRY, "SYSLOG_IDENTIFIER": "server"},
        {**ENTRY, "SYSLOG_IDENTIFIER": ["kernel", "server"], "SYSLOG_FACILITY": ["1", "0"]},
    ]
    events, lost = journal(
        tmp_path, [ENTRY, *forged, {**ENTRY, "_TRANSPORT": "syslog", "_SYSTEMD_UNIT": "ulogd2.service"}]
    )
    assert [event.kind for event in events] == ["firewall.drop", *["unparsed"] * 5, "firewall.drop"]
    assert lost == [("unparsed", 5)]


def test_entries_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    entries = [
        ENTRY,
        {**ENTRY, "MESSAGE": None},
        "[1]",
        "{",
        {**ENTRY, "MESSAGE": [[1]]},
        {**ENTRY, "MESSAGE": "eth0: up"},
    ]
    events, lost = journal(tmp_path, entries)
    assert [event.kind for event in events] == ["firewall.drop", *["unparsed"] * 4]
    assert sum(count for _, count in lost) == 4


def test_an_entry_without_time_keeps_its_packet(tmp_path: Path) -> None:
    events, _ = journal(tmp_path, [ENTRY, {**ENTRY, "__REALTIME_TIMESTAMP": "99999999999999999999"}])
    assert events == [wanted(1, AT), wanted(2, None)]
