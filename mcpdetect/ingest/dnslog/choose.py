"""Telling the logs of DNS servers apart by their content."""

from __future__ import annotations

import re
from pathlib import Path

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import Adapter, Declared
from mcpdetect.ingest.dnslog.bind import BindLog
from mcpdetect.ingest.dnslog.coredns import CoreDnsLog
from mcpdetect.ingest.dnslog.dnsmasq import DnsmasqLog
from mcpdetect.ingest.dnslog.resolved import ResolvedLog
from mcpdetect.ingest.dnslog.unbound import UnboundLog
from mcpdetect.ingest.dnslog.zeek import ZeekLog, is_zeek
from mcpdetect.ingest.loglines import LineSource, TextLog
from mcpdetect.model.text import text_of

__all__ = ["open_dns_log"]

_MOST_LINES = 2000

# One line of each, as in the module that reads it; names and texts that a client chose stand further right.
_LOOKS: tuple[tuple[type[TextLog], re.Pattern[bytes]], ...] = (
    # Nov 30 12:19:52 dnsmasq[1643]: query[A] www.example.test from 10.77.0.2
    (DnsmasqLog, re.compile(rb"(?:[^\s]{1,64} ){0,6}?dnsmasq(?:-[a-z]{1,16})?(?:\[\d{1,10}\])?: ")),
    # [1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN
    (UnboundLog, re.compile(rb".{0,120}?(?:\bunbound|: |[\]-] )\[\d{1,10}:[0-9a-fA-F]{1,8}\] [a-z]{1,16}: ")),
    # 30-Nov-2026 11:23:54.944 client @0x7f9041aeb098 10.77.0.2#39617 (api.example.test): query: ...
    (BindLog, re.compile(rb".{0,120}?\bclient (?:@0x[0-9a-f]{1,16} )?[0-9A-Fa-f.:]{2,45}(?:%\S{1,32})?#\d{1,5}")),
    # Mon 2026-11-30 14:41:41 UTC Looking up RR for api.example.test IN A.
    (ResolvedLog, re.compile(rb".{0,120}?(?:\bsystemd-resolved(?:\[\d{1,10}\])?: |\bLooking up RR for )")),
    # [INFO] 10.77.0.2:15439 - 50129 "AAAA IN api.example.test. tcp 54 true 65535" NXDOMAIN qr,aa,rd 147 46.555us
    (CoreDnsLog, re.compile(rb".{0,80}?\[(?:INFO|WARNING|ERROR|DEBUG)\] ")),
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
    votes: dict[type[TextLog], int] = {}
    for line in source.first_lines()[:_MOST_LINES]:
        for log, look in _LOOKS:
            if look.match(line):
                votes[log] = votes.get(log, 0) + 1
                break
        else:
            if is_zeek(line):
                votes[ZeekLog] = votes.get(ZeekLog, 0) + 1
    if not votes:
        raise UnknownFormat(
            "is no log of a DNS server that this version reads",
            file=source.name,
            value=text_of(source.head[:60]),
            cause="another file was named, or the server logs no questions",
            hint="logs of dnsmasq, unbound, BIND, CoreDNS, systemd-resolved (debug) and Zeek (dns.log) are read",
        )
    return max(votes, key=lambda log: votes[log])(source, declared=declared)
