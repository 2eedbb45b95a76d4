"""Telling the logs of DNS servers apart by their content."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import Adapter, Declared
from mcpdetect.ingest.dnslog.dnsmasq import DnsmasqLog
from mcpdetect.ingest.loglines import LineSource, TextLog
from mcpdetect.model.text import text_of

__all__ = ["open_dns_log"]

_MOST_LINES = 2000
_Kind = Literal["dnsmasq", "unbound", "bind", "coredns", "resolved", "zeek"]

# One line of each, as in the module that reads it; names and texts that a client chose stand further right.
_LOOKS: tuple[tuple[_Kind, re.Pattern[bytes]], ...] = (
    # Nov 30 12:19:52 dnsmasq[1643]: query[A] www.example.test from 10.77.0.2
    ("dnsmasq", re.compile(rb"(?:[^\s]{1,64} {1,2}){0,6}?dnsmasq(?:-[a-z]{1,16})?(?:\[\d{1,10}\])?: ")),
    # [1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN
    ("unbound", re.compile(rb".{0,120}?(?:\bunbound|: |[\]-] )\[\d{1,10}:[0-9a-fA-F]{1,8}\] [a-z]{1,16}: ")),
    # 30-Nov-2026 11:23:54.944 client @0x7f9041aeb098 10.77.0.2#39617 (api.example.test): query: ...
    ("bind", re.compile(rb".{0,120}?\bclient (?:@0x[0-9a-f]{1,16} )?[0-9A-Fa-f.:]{2,45}(?:%\S{1,32})?#\d{1,5}")),
    # Mon 2026-11-30 14:41:41 UTC Looking up RR for api.example.test IN A.
    ("resolved", re.compile(rb".{0,120}?(?:\bsystemd-resolved(?:\[\d{1,10}\])?: |\bLooking up RR for )")),
    # [INFO] 10.77.0.2:15439 - 50129 "AAAA IN api.example.test. tcp 54 true 65535" NXDOMAIN qr,aa,rd 147 46.555us
    ("coredns", re.compile(rb".{0,80}?\[(?:INFO|WARNING|ERROR|DEBUG)\] ")),
    # #separator \x09     {"ts":1700000000.0,"id.orig_h":"10.77.0.2","query":"x.test"}
    (
        "zeek",
        re.compile(rb'#(?:separator |fields[^A-Za-z0-9])|\{(?=.*"id\.orig_h")(?=.*"(?:query|qtype|trans_id|rcode)")'),
    ),
)


def open_dns_log(path: Path, name: str | None = None, declared: Declared | None = None) -> Adapter:
    """Return the adapter for a DNS server's log, chosen by the first 2000 lines.

    Args:
        path: the file, compressed or not.
        name: its name in every place; the path otherwise.
        declared: what a manifest says about it.

    Raises:
        InputError: it cannot be opened, or is no log of a kind that is read here.
    """
    source = LineSource(path, name)
    votes: dict[_Kind, int] = {}
    for line in source.first_lines()[:_MOST_LINES]:
        for kind, look in _LOOKS:
            if look.match(line):
                votes[kind] = votes.get(kind, 0) + 1
                break
    if not votes:
        raise UnknownFormat(
            "is no log of a DNS server that this version reads",
            file=source.name,
            value=text_of(source.head[:60]),
            cause="another file was named, or the server logs no questions",
            hint="logs of dnsmasq, unbound, BIND, CoreDNS, systemd-resolved (debug) and Zeek (dns.log) are read",
        )
    return _adapter(max(votes, key=lambda kind: votes[kind]))(source, declared=declared)


def _adapter(kind: _Kind) -> type[TextLog]:
    if kind == "dnsmasq":
        return DnsmasqLog
    if kind == "unbound":
        from mcpdetect.ingest.dnslog.unbound import UnboundLog

        return UnboundLog
    if kind == "bind":
        from mcpdetect.ingest.dnslog.bind import BindLog

        return BindLog
    if kind == "coredns":
        from mcpdetect.ingest.dnslog.coredns import CoreDnsLog

        return CoreDnsLog
    if kind == "resolved":
        from mcpdetect.ingest.dnslog.resolved import ResolvedLog

        return ResolvedLog
    from mcpdetect.ingest.dnslog.zeek import ZeekLog

    return ZeekLog
