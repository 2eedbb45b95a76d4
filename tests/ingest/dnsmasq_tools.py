"""What tests of the dnsmasq log share."""

from __future__ import annotations

from pathlib import Path

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.dnslog import DnsmasqLog
from mcpdetect.model.event import Event
from mcpdetect.model.net import DnsAnswer, DnsQuery
from mcpdetect.model.observation import Observation

NOON = 1_796_040_780_000_000_000  # 2026-11-30 12:13:00 UTC
SECOND = 1_000_000_000
BOTH = ["dns.query", "dns.answer"]


def read(
    tmp_path: Path, text: str | bytes, declared: Declared | None = None, wanted: frozenset[str] | None = None
) -> tuple[list[Event], Observation]:
    path = tmp_path / "dnsmasq.log"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    log = DnsmasqLog(path, "dnsmasq.log", declared)
    return list(log.events(wanted)), log.observation


def queries(events: list[Event]) -> list[tuple[str | None, str, str | None]]:
    return [(event.name, event.type, event.client) for event in events if isinstance(event, DnsQuery)]


def answers(events: list[Event]) -> list[tuple[str | None, str, str, str, list[tuple[str, str, str]]]]:
    return [
        (
            event.name,
            event.type,
            event.rcode,
            event.source,
            [(record.name, record.type, record.value) for record in event.records],
        )
        for event in events
        if isinstance(event, DnsAnswer)
    ]


FORMS = """\
Nov 30 11:21:20 dnsmasq[27255]: query[A] www.example.test from 10.77.0.2
Nov 30 11:21:18 dnsmasq[27251]: 3 10.77.0.2/47605 query[A] www.example.test from 10.77.0.2
Nov 30 11:21:18 dnsmasq[27251]: 3 10.77.0.2/47605 config www.example.test is <CNAME>
Nov 30 11:21:18 dnsmasq[27251]: 3 10.77.0.2/47605 config api.example.test is 203.0.113.10
Nov 30 11:21:18 dnsmasq[27298]: 11 10.77.0.2/42025 query[A] api.example.test from 10.77.0.2
Dec 21 16:31:31 dnsmasq[2281585]: UDP 436 127.0.0.1/36363 query[PTR] 1.2.168.192.in-addr.arpa from 127.0.0.1
Nov 30 11:21:20 dnsmasq[27251]: 118 2001:db8:77::2/40071 query[A] api.example.test from 2001:db8:77::2
"""

SORTS = """\
dnsmasq[1]: 4 10.77.0.2/33452 query[HTTPS] api.example.test from 10.77.0.2
dnsmasq[1]: 4 10.77.0.2/33452 config error is REFUSED (EDE: not ready)
dnsmasq[1]: 5 10.77.0.2/56569 config x.blocked.test is NXDOMAIN
dnsmasq[1]: 6 10.77.0.2/59464 config sink.test is 0.0.0.0
dnsmasq[1]: 7 10.77.0.2/39393 /etc/hosts svc.internal.test is 10.77.0.9
dnsmasq[1]: 8 10.77.0.2/59726 config txt.example.test is <TXT>
dnsmasq[1]: 9 10.77.0.2/55957 forwarded q.up.test to 10.77.0.1#5300
dnsmasq[1]: 10 10.77.0.2/39705 /etc/hosts 10.77.0.9 is svc.internal.test
dnsmasq[1]: 11 10.77.0.2/34342 query[type=65535] api.example.test from 10.77.0.2
dnsmasq[1]: 12 10.77.0.2/34343 reply nx.up.test is NXDOMAIN
dnsmasq[1]: cached api.example.test is NODATA-IPv6
"""
