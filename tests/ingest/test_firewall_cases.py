"""Kernel firewall lines as they stand in real logs: prefixes, packets without ports, silence, lost lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_tools import NAME, hiding, losses, notes, read, seconds

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.firewall import FirewallLog
from mcpdetect.ingest.firewall.netfilter import action_of
from mcpdetect.model.event import Unparsed
from mcpdetect.model.net import FirewallDrop
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

TAIL = "TOS=0x00 PREC=0x00 TTL=64"


def drop(
    line: int, t_ns: int | None, transport: str, source: str, address: str, ports: tuple[int, int] | None, prefix: str
) -> FirewallDrop:
    sport, dport = ports or (None, None)
    return FirewallDrop(Where(NAME, line), t_ns, "logged", transport, source, sport, address, dport, 1, prefix)


def test_multicast_is_a_line_like_any_other(tmp_path: Path) -> None:
    line = f"MCPD-OUT IN= OUT=v0 SRC=10.77.0.2 DST=224.0.0.251 LEN=29 {TAIL} ID=1 PROTO=UDP SPT=54175 DPT=5353 LEN=9"
    events, seen = read(FirewallLog, tmp_path, [line])
    assert events == [drop(1, None, "udp", "10.77.0.2", "224.0.0.251", (54175, 5353), "MCPD-OUT")]
    assert (seen.channel, seen.format, seen.proof, seen.clock) == ("firewall", "kernel-log", "inferred", "none")
    assert seen.watches == {"firewall.drop": "inferred"}
    assert seen.losses == []


def test_a_retransmission_is_a_line_of_its_own(tmp_path: Path) -> None:
    rest = "DF PROTO=TCP SPT=35770 DPT=443 WINDOW=64240 RES=0x00 SYN URGP=0 "
    events, seen = read(
        FirewallLog,
        tmp_path,
        [
            f"[  880.640080] MCPD-OUT IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.7 LEN=60 {TAIL} ID=39842 {rest}",
            f"[  881.661003] MCPD-OUT IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.7 LEN=60 {TAIL} ID=39843 {rest}",
        ],
    )
    assert events == [
        drop(1, seconds(880.640080), "tcp", "10.77.0.2", "203.0.113.7", (35770, 443), "MCPD-OUT"),
        drop(2, seconds(881.661003), "tcp", "10.77.0.2", "203.0.113.7", (35770, 443), "MCPD-OUT"),
    ]
    assert (seen.clock, seen.begin_ns, seen.end_ns) == ("relative", None, None)
    assert seen.counts == {"lines": 2, "events": 2, "unparsed": 0, "packets": 2, "other": 0}


PREFIXED = [
    (
        "[  883.809422] MCPD-FWD:IN=v1 OUT= MAC=d2:3c:aa:1f:ef:e0:82:0c:85:92:6e:15:08:00 SRC=10.77.0.2 "
        f"DST=203.0.113.7 LEN=60 {TAIL} ID=50439 DF PROTO=TCP SPT=55960 DPT=443 WINDOW=64240 RES=0x00 SYN URGP=0"
    ),
    (
        f"[  924.961650] [mcpd] DST=9.9.9.9 IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.7 LEN=60 {TAIL} ID=5646 DF "
        "PROTO=TCP SPT=52918 DPT=443 SEQ=1817752960 ACK=0 WINDOW=64240 RES=0x00 SYN URGP=0 "
        "OPT (020405B40402080ADDF3E131000000000103030A) UID=0 GID=0 MARK=0x2a"
    ),
    (
        '2026-11-30T18:33:46+01:00 h kernel: [17748.074339][    C0] "filter_OUT_REJECT: "IN= OUT=eth0 '
        "SRC=fe80:0000:0000:0000:9a9b:cbff:fe9d:f436 DST=2001:0db8:0099:0000:0000:0000:0000:0007 LEN=64 TC=0 "
        "HOPLIMIT=255 FLOWLBL=758639 PROTO=UDP SPT=53805 DPT=53 LEN=24"
    ),
    (
        "Nov 30 11:00:00 h kernel: 101 6 tap101i0-IN 30/Nov/2026:11:00:00 +0100 ACCEPT: IN=br0 OUT=br0 PHYSIN=a "
        "PHYSOUT=b SRC=10.77.0.2 DST=203.0.113.9 LEN=60 PROTO=TCP SPT=1 DPT=80"
    ),
    (
        "Nov 30 11:00:01 h kernel: PVEFW-HOST-OUT policy DROP: IN=eth0 SRC=10.77.0.2 DST=203.0.113.11 LEN=60 PROTO=TCP "
        "SPT=2 DPT=22"
    ),
]


def test_fields_begin_where_the_kernel_s_own_do_and_prefixes_tell_the_verdict(tmp_path: Path) -> None:
    events, seen = read(FirewallLog, tmp_path, PREFIXED)
    reject = FirewallDrop(
        Where(NAME, 3),
        seconds(17748.074339),
        "reject",
        "udp",
        "fe80::9a9b:cbff:fe9d:f436",
        53805,
        "2001:db8:99::7",
        53,
        prefix='"filter_OUT_REJECT: "',
    )
    accept = FirewallDrop(Where(NAME, 4), None, "accept", "tcp", "10.77.0.2", 1, "203.0.113.9", 80)
    accept.prefix = "101 6 tap101i0-IN 30/Nov/2026:11:00:00 +0100 ACCEPT:"
    policy = FirewallDrop(Where(NAME, 5), None, "drop", "tcp", "10.77.0.2", 2, "203.0.113.11", 22)
    policy.prefix = "PVEFW-HOST-OUT policy DROP:"
    assert events == [
        drop(1, seconds(883.809422), "tcp", "10.77.0.2", "203.0.113.7", (55960, 443), "MCPD-FWD:"),
        drop(2, seconds(924.961650), "tcp", "10.77.0.2", "203.0.113.7", (52918, 443), "[mcpd] DST=9.9.9.9"),
        reject,
        accept,
        policy,
    ]
    # One file has one clock, here the first line's, since boot; only line 3 carries that stamp too.
    assert (hiding(seen), notes(seen)) == ([], [("no-clock", 2)])


def test_packets_without_ports_are_packets(tmp_path: Path) -> None:
    front = f"MCPD-OUT IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.7 LEN=34 {TAIL}"
    events, seen = read(
        FirewallLog,
        tmp_path,
        [
            f"{front} ID=29378 DF PROTO=ICMP TYPE=8 CODE=0 ID=1 SEQ=1",
            f"{front} ID=62155 DF PROTO=47",
            f"{front} ID=61669 DF PROTO=ESP SPI=0x1",
            f"{front} ID=29882 DF PROTO=TCP INCOMPLETE [3 bytes]",
            f"{front} ID=23896 FRAG:185 PROTO=UDP",
            (
                "MCPD-OUT IN= OUT=v0 SRC=2001:0db8:0077:0000:0000:0000:0000:0002 "
                "DST=2001:0db8:0099:0000:0000:0000:0000:0007 LEN=54 TC=0 "
                "HOPLIMIT=64 FLOWLBL=699034 PROTO=ICMPv6 TYPE=128 CODE=0 ID=1 SEQ=1"
            ),
        ],
    )
    four = ("10.77.0.2", "203.0.113.7", None, "MCPD-OUT")
    assert events == [
        drop(1, None, "icmp", *four),
        drop(2, None, "gre", *four),
        drop(3, None, "esp", *four),
        drop(4, None, "tcp", *four),
        drop(5, None, "udp", *four),
        drop(6, None, "icmpv6", "2001:db8:77::2", "2001:db8:99::7", None, "MCPD-OUT"),
    ]
    assert seen.losses == []


def test_an_icmp_error_s_quoted_packet_is_not_the_packet(tmp_path: Path) -> None:
    line = (
        f"[ 2241.751928] [x] IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.7 LEN=56 {TAIL} ID=39341 DF PROTO=ICMP TYPE=3 "
        f"CODE=3 [SRC=203.0.113.8 DST=10.77.0.2 LEN=28 {TAIL} ID=1 PROTO=UDP SPT=53 DPT=4000 LEN=8 ] UID=0 GID=0 "
    )
    events, _ = read(FirewallLog, tmp_path, [line])
    assert events == [drop(1, seconds(2241.751928), "icmp", "10.77.0.2", "203.0.113.7", None, "[x]")]


def test_lost_lines_make_the_count_a_lower_bound(tmp_path: Path) -> None:
    events, seen = read(
        FirewallLog,
        tmp_path,
        [
            "Nov 30 11:00:00 h kernel: MCPD-OUT IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.7 PROTO=TCP SPT=1 DPT=443 SYN",
            "Nov 30 11:00:05 h kernel: net_ratelimit: 37 callbacks suppressed",
            (
                "Nov 30 11:00:06 h rsyslogd[485]: imjournal: 1198 messages lost due to rate-limiting "
                "(20000 allowed within 600 seconds)"
            ),
            "Nov 30 11:00:07 h systemd-journald[212]: Suppressed 7124 messages from kernel",
        ],
    )
    assert events == [drop(1, None, "tcp", "10.77.0.2", "203.0.113.7", (1, 443), "MCPD-OUT")]
    assert losses(seen, "dropped") == [
        Loss("dropped", "the kernel's rate limit left lines out", 37, Where(NAME, 2), ["firewall.drop"]),
        Loss("dropped", "rsyslog's rate limit left lines out", 1198, Where(NAME, 3), ["firewall.drop"]),
        Loss("dropped", "journald's rate limit left lines out", 7124, Where(NAME, 4), ["firewall.drop"]),
    ]


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ("kernel: __ratelimit: 2 callbacks suppressed", 2),
        ("kernel: nf_log_packet: 9 callbacks suppressed", 9),
        ("kernel: printk: 4 messages suppressed.", 4),
        ("kernel: ** 12 printk messages dropped **", 12),
        ("systemd-journald[1]: Missed 3 kernel messages", 3),
        ("systemd-journald[1]: /dev/kmsg buffer overrun, some messages lost.", 1),
        ("rsyslogd: imjournal: begin to drop messages due to rate-limiting", 1),
    ],
)
def test_every_way_to_say_that_lines_are_missing(message: str, count: int, tmp_path: Path) -> None:
    _, seen = read(FirewallLog, tmp_path, [f"Nov 30 11:00:05 h {message}"])
    assert hiding(seen) == [("dropped", count)]


@pytest.mark.parametrize(
    "message",
    [
        "kernel: audit_printk_skb: 12 callbacks suppressed",
        "systemd-journald[1]: Suppressed 50 messages from cron.service",
        "server[9]: net_ratelimit: 5 callbacks suppressed",
    ],
)
def test_other_lost_lines_do_not_matter_here(message: str, tmp_path: Path) -> None:
    _, seen = read(FirewallLog, tmp_path, [f"Nov 30 11:00:05 h {message}", "Nov 30 11:00:06 h kernel: eth0: up"])
    assert hiding(seen) == []


def test_a_silent_log_proves_nothing_whoever_declares_it(tmp_path: Path) -> None:
    lines = ["[    1.000000] Linux version 6.18", "[    2.000000] eth0: entered promiscuous mode"]
    for declared in (None, Declared(tool="dmesg", begin_ns=0, end_ns=10, complete=True)):
        events, seen = read(FirewallLog, tmp_path, lines, declared)
        assert events == []
        assert (seen.proof, seen.watches) == ("absent", {})
        assert notes(seen) == [("silent-log", 1)]
        assert "nf_log_all_netns" in seen.losses[0].detail


def test_one_packet_line_and_a_manifest_make_a_declared_watch(tmp_path: Path) -> None:
    line = "[    1.000000] X IN=v1 OUT= SRC=10.77.0.2 DST=203.0.113.7 LEN=60 PROTO=TCP SPT=1 DPT=2"
    _, seen = read(FirewallLog, tmp_path, [line], Declared(tool="dmesg", begin_ns=5, end_ns=10, scope="gateway"))
    assert (seen.proof, seen.watches) == ("declared", {"firewall.drop": "declared"})
    assert (seen.tool, seen.scope, seen.begin_ns, seen.end_ns, seen.clock) == ("dmesg", "gateway", 5, 10, "relative")


def test_lines_of_another_time_are_no_life_sign_of_the_declared_window(tmp_path: Path) -> None:
    line = "2026-11-30T{}+00:00 h kernel: X IN=v1 OUT= SRC=10.77.0.2 DST=203.0.113.7 LEN=60 PROTO=TCP SPT=1 DPT=2"
    begin = seconds(1796048400)  # 14:20:00
    declared = Declared(begin_ns=begin, end_ns=begin + 60 * 10**9)
    others = [line.format("09:00:00"), line.format("14:19:57"), line.format("14:21:03")]
    events, seen = read(FirewallLog, tmp_path, others, declared)
    assert (len(events), seen.proof, seen.watches) == (3, "absent", {})
    assert notes(seen) == [("silent-log", 1)]
    assert seen.losses[0].detail.startswith(
        "no firewall line of the declared window is in this log, which proves nothing"
    )
    _, seen = read(FirewallLog, tmp_path, [*others, line.format("14:20:59")], declared)
    assert (seen.proof, seen.watches, seen.losses) == ("declared", {"firewall.drop": "declared"}, [])


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error_with_its_meaning(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        FirewallLog(path)
    assert caught.value.file == str(path)
    if not content:
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("an empty log proves nothing")


@pytest.mark.parametrize(
    "text",
    [
        "Nov 30 12:19:52 dnsmasq[1643]: query[A] www.example.test from 10.77.0.2\n",
        '38 1796041192.444589 openat(AT_FDCWD, "/etc/hosts", O_RDONLY) = 3\n',
        "hello\n",
        '{"jsonrpc": "2.0", "id": 1}\n',
    ],
)
def test_any_other_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="is no firewall log"):
        read(FirewallLog, tmp_path, text)


@pytest.mark.parametrize(
    ("prefix", "action"),
    [
        ("MCPD-OUT ", "logged"),
        ("", "logged"),
        ("[UFW BLOCK] ", "drop"),
        ("[UFW ALLOW] ", "accept"),
        ("Shorewall:net-fw:DROP:", "drop"),
        ("Shorewall:DROP-chain:REJECT:", "reject"),
        ("STATE_INVALID_DROP: ", "drop"),
        ("FINAL_REJECT: ", "reject"),
        ("filter_IN_block_REJECT: ", "reject"),
        ("OutDropped", "drop"),
        ("iptables denied: ", "drop"),
        ("raindrop", "logged"),
        ("DROPOUT", "logged"),
        ("acceptance", "logged"),
        ("DROP or ACCEPT", "logged"),
    ],
)
def test_only_whole_words_of_a_prefix_are_a_verdict(prefix: str, action: str) -> None:
    assert action_of(prefix) == action


def test_a_damaged_packet_line_is_counted_never_dropped(tmp_path: Path) -> None:
    front = "X IN= OUT=v0 SRC=10.77.0.2"
    lines = [
        f"{front} DST=203.0.113.300 LEN=60 PROTO=TCP SPT=1 DPT=2",
        f"{front} DST=203.0.113.7 LEN=60 PROTO=TCP SPT=1 DPT=70000",
        f"{front} DST=203.0.113.7 LEN=60 PROTO=T\u0661CP",
        f"{front} LEN=60",
        "DROP: SRC=10.77.0.2 DST=203.0.113.7 PROTO=TCP",
        f"{front} DST=203.0.113.7 LEN=60 PROTO=TCP SPT=1 DPT=2",
    ]
    events, seen = read(FirewallLog, tmp_path, lines)
    assert [event.kind for event in events] == ["unparsed"] * 5 + ["firewall.drop"]
    assert [event.reason for event in events if isinstance(event, Unparsed)] == [
        "a packet line is damaged: an address is none",
        "a packet line is damaged: a port is none",
        "a packet line is damaged: PROTO is no protocol",
        "a packet line is damaged: it has no SRC and DST",
        "a line has fields of a packet, but not in the kernel's form",
    ]
    assert sum(count for what, count in hiding(seen) if what == "unparsed") == 5
    assert all(loss.touches == ["firewall.drop"] for loss in losses(seen, "unparsed"))
