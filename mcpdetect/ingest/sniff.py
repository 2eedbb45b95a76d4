"""What a file looks like, from its first bytes: for error hints, and for files named without saying what they are."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from mcpdetect.errors import InputError
from mcpdetect.ingest.opener import open_evidence

__all__ = ["FLAGS", "LOOKS", "Kind", "sniff", "sniff_bytes"]

Kind = Literal[
    "strace",
    "gvisor",
    "pcap",
    "pcapng",
    "dnsmasq",
    "unbound",
    "bind",
    "coredns",
    "resolved",
    "zeek",
    "netfilter",
    "nft",
    "mcp",
    "trace",
    "manifest",
    "meta",
    "result",
    "elf",
    "archive",
]
"""What a file can look like; each has its words in ``LOOKS``."""

LOOKS: dict[Kind, str] = {
    "strace": "an strace log",
    "gvisor": "a gVisor debug log",
    "pcap": "a pcap capture",
    "pcapng": "a pcapng capture",
    "dnsmasq": "a dnsmasq log",
    "unbound": "an unbound log",
    "bind": "a BIND query log",
    "coredns": "a CoreDNS log",
    "resolved": "a log of systemd-resolved",
    "zeek": "a Zeek log",
    "netfilter": "a kernel firewall log",
    "nft": "an nftables listing",
    "mcp": "an MCP transcript",
    "trace": "an mcpdetect trace",
    "manifest": "a bundle's manifest",
    "meta": "a recorded run's meta.json",
    "result": "an mcpdetect result",
    "elf": "an ELF program",
    "archive": "an archive, which must be unpacked first",
}
"""Kind -> how a message names it."""

FLAGS: dict[Kind, str] = {
    "strace": "--strace",
    "gvisor": "--strace",
    "pcap": "--pcap",
    "pcapng": "--pcap",
    "dnsmasq": "--dns",
    "unbound": "--dns",
    "bind": "--dns",
    "coredns": "--dns",
    "resolved": "--dns",
    "zeek": "--dns",
    "netfilter": "--firewall",
    "nft": "--firewall",
    "mcp": "--mcp",
    "manifest": "--manifest",
}
"""Kind -> the option that takes such a file, for the kinds that can be read; whole traces are given without one."""

_HEAD = 1 << 16
_MOST_LINES = 200

# pcap (draft-ietf-opsawg-pcap: microseconds, nanoseconds, both byte orders; Kuznetzov's modified form) and pcapng
# (section header block); ELF; zip, 7-Zip and xz, whose content is not looked at.
_MAGIC: tuple[tuple[bytes, Kind], ...] = (
    (b"\xd4\xc3\xb2\xa1", "pcap"),
    (b"\xa1\xb2\xc3\xd4", "pcap"),
    (b"\x4d\x3c\xb2\xa1", "pcap"),
    (b"\xa1\xb2\x3c\x4d", "pcap"),
    (b"\x34\xcd\xb2\xa1", "pcap"),
    (b"\xa1\xb2\xcd\x34", "pcap"),
    (b"\x0a\x0d\x0d\x0a", "pcapng"),
    (b"\x7fELF", "elf"),
    (b"PK\x03\x04", "archive"),
    (b"7z\xbc\xaf\x27\x1c", "archive"),
    (b"\xfd7zXZ\x00", "archive"),
)

_LINES: tuple[tuple[Kind, re.Pattern[bytes]], ...] = (
    # I0101 10:00:00.000000  1 strace.go:567] [   1:   1] server E openat(AT_FDCWD /app, 0x7f "x", 0x0, 0o0)
    # I0101 10:00:00.000000  1 main.go:217] Args: [runsc-sandbox --root=/run/runsc --strace=true boot]
    ("gvisor", re.compile(rb"[IWD]\d{4} [\d:.]++ +\d++ (?:strace\.go:\d++\] |main\.go:\d++\] Args: \[runsc)")),
    # 38    1796041192.444589 openat(AT_FDCWD</x>, "/etc/ld.so.cache", O_RDONLY) = 3</etc/ld.so.cache> <0.000040>
    # [pid 16922] <... vfork resumed>)        = 16966
    # 12:00:01.000001 +++ exited with 3 +++
    # 3619<node> --- SIGCHLD {si_signo=SIGCHLD, ...} ---
    # strace: Process 16966 attached
    (
        "strace",
        re.compile(
            rb"(?:(?:\[pid +\d++\]|\d++)(?:<[^>\n]{0,64}>)? ++)?"
            rb"(?:(?:\d\d:\d\d:\d\d|\d++)(?:\.\d++)?+ ++(?:\(\+ +[\d.]++\) ++)?)?"
            rb"(?:\[[ \d/]*+\] |\[[0-9a-f?]++\] )*+"
            rb"(?:[a-z_][a-z0-9_]*+\((?=[^\n]*(?:\) += |<unfinished ))|<\.\.\. \w++ resumed"
            rb"|\+\+\+ (?:exited|killed|superseded)|--- (?:SIG|stopped)|strace: )"
        ),
    ),
    # Nov 30 12:19:52 dnsmasq[1643]: query[A] www.example.test from 10.77.0.2
    ("dnsmasq", re.compile(rb"[^\n]{0,80}?\bdnsmasq\[\d++\]: ")),
    # [1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN
    ("unbound", re.compile(rb"[^\n]{0,80}?\bunbound(?:\[\d++:\d++\]:? | \d++ - \[)")),
    # 30-Nov-2026 11:23:54.944 client @0x7f9041aeb098 10.77.0.2#39617 (api.example.test): query: api.example.test IN A
    ("bind", re.compile(rb"[^\n]{0,80}?\bclient (?:@0x[0-9a-f]++ )?[0-9a-fA-F.:]++#\d++")),
    # [INFO] 10.77.0.2:15439 - 50129 "AAAA IN api.example.test. tcp 54 true 65535" NXDOMAIN qr,aa,rd 147 46.555us
    ("coredns", re.compile(rb'[^\n]{0,40}?\[INFO\] (?:[^ \n]++ - \d++ "|plugin/)')),
    # Nov 30 14:41:41 h systemd-resolved[5]: Looking up RR for api.example.test IN A.
    ("resolved", re.compile(rb"[^\n]{0,80}?(?:\bsystemd-resolved\[\d++\]: |\bLooking up RR for )")),
    # #separator \x09
    ("zeek", re.compile(rb"#(?:separator|fields)[ \t]")),
    # kernel: [12.3] DROP: IN= OUT=eth0 SRC=10.0.2.15 DST=1.1.1.1 LEN=60 TOS=0x00 PREC=0x00 TTL=64 PROTO=TCP
    ("netfilter", re.compile(rb"[^\n]{0,200}?\bIN=[^ \n]*+ OUT=[^ \n]*+ ")),
    # table inet filter {
    ("nft", re.compile(rb"table (?:inet|ip6?|arp|bridge|netdev) \S++ \{")),
)

# One mark of JSON that matters for depth: a string (perhaps cut by the end), an opening or closing bracket, a comma, a
# colon:  {"schema": "mcpdetect.trace/1", "run": {"id": "a
_MARK = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)|[{}\[\],:]', re.DOTALL)

_SCHEMAS: dict[str, Kind] = {
    "mcpdetect.trace/": "trace",
    "mcpdetect.manifest/": "manifest",
    "mcpdetect.result/": "result",
    "mcpdetect.results/": "result",
}


def sniff(path: Path) -> Kind | None:
    """Return what a file looks like, None when it looks like nothing known.

    A pipe is never read, since what is read from it is gone: it looks like nothing. Neither does what cannot be
    opened, is empty or is a folder; whoever opens it for good says so.

    Args:
        path: the file, gzip or zstandard compressed or not.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with open_evidence(path) as stream:
            return sniff_bytes(stream.read_exactly(_HEAD))
    except (OSError, InputError):
        return None


def sniff_bytes(head: bytes) -> Kind | None:
    """Return what a file that begins with ``head`` (uncompressed) looks like, None when it looks like nothing known."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[257:262] == b"ustar":
        return "archive"
    stripped = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if stripped.startswith(b"{") or (stripped.startswith(b"[") and stripped[1:].lstrip().startswith(b"{")):
        return _json_kind(stripped.decode("utf-8", "replace"))
    votes: dict[Kind, int] = dict.fromkeys(get_args(Kind), 0)
    for line in stripped.split(b"\n", _MOST_LINES)[:_MOST_LINES]:
        for kind, pattern in _LINES:
            if pattern.match(line):
                votes[kind] += 1
                break
    best = max(votes, key=lambda kind: votes[kind])
    return best if votes[best] else None


def _json_kind(text: str) -> Kind | None:
    keys: dict[str, str] = {}
    for key, value in _top_level(text):
        keys.setdefault(key, value)
    for prefix, kind in _SCHEMAS.items():
        if keys.get("schema", "").startswith(prefix):
            return kind
    found = keys.keys()
    if "jsonrpc" in found or {"dir", "msg"} <= found:
        return "mcp"
    if {"run", "events"} <= found:
        return "trace"
    if {"strace_opts", "argv"} <= found:
        return "meta"
    if {"id.orig_h", "query"} <= found:
        return "zeek"
    if {"MESSAGE", "__REALTIME_TIMESTAMP"} <= found:  # journalctl -k -o json
        return "netfilter"
    return "nft" if "nftables" in found else None


def _top_level(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of the first JSON object (of an array: of its first element), each with its value if a string.

    ``{"schema": "mcpdetect.trace/1", "run": {"id": "a"}}`` gives ``("schema", "mcpdetect.trace/1")``, ``("run", "")``.
    """
    depth, level = 0, 2 if text.startswith("[") else 1
    key = last = None
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth < level:
                break
        elif depth == level:
            if mark == ":":
                key, last = last, None
            elif mark == ",":
                if key is not None:
                    yield key, last or ""
                key = last = None
            else:
                last = match[1]
    if key is not None:
        yield key, last or ""
