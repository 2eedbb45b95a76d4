"""Firewall and resolver logs through the door that every evidence file comes in by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpdetect.errors import InputError
from mcpdetect.ingest.open import open_evidence_files
from mcpdetect.ingest.sniff import FLAGS, sniff

PACKET = "X IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.7 LEN=60 PROTO=TCP SPT=1 DPT=443\n"
ENTRY = {"__REALTIME_TIMESTAMP": "1796048410548221", "_TRANSPORT": "kernel", "SYSLOG_IDENTIFIER": "kernel"}
FIREWALL = {
    "kernel-log": f"[    1.000000] {PACKET}",
    "journal-json": json.dumps({**ENTRY, "MESSAGE": PACKET.strip()}) + "\n",
    "nft": "table inet t {\n\tchain c {\n\t\tcounter packets 1 bytes 2 drop\n\t}\n}\n",
    "nft-json": '{"nftables": [{"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 1, "expr": '
    '[{"counter": {"packets": 1, "bytes": 2}}, {"drop": null}]}}]}\n',
}
DNS = {
    "dnsmasq": "Nov 30 12:19:52 dnsmasq[1643]: query[A] www.example.test from 10.77.0.2\n",
    "unbound": "[1796037684] unbound[27638:0] info: 10.77.0.2 www.example.test. A IN\n",
    "bind": "30-Nov-2026 11:23:54.944 client 10.77.0.2#39617 (www.example.test): query: www.example.test IN A +\n",
    "coredns": '[INFO] 10.77.0.2:5 - 1 "A IN www.example.test. udp 41 false 4096" - - 0 0.03s\n',
    "zeek": '{"ts":1700000000.0,"id.orig_h":"10.77.0.2","query":"www.example.test","qtype_name":"A"}\n',
    "systemd-resolved": "Nov 30 12:19:52 h systemd-resolved[1]: Looking up RR for www.example.test IN A.\n",
}


@pytest.mark.parametrize("form", FIREWALL)
def test_firewall_evidence(form: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(FIREWALL[form])
    run = open_evidence_files(firewall=[path])
    assert [event.kind for event in run.events()] == ["firewall.drop"]
    (seen,) = run.observations()
    assert (seen.channel, seen.format, seen.watches) == ("firewall", form, {"firewall.drop": "inferred"})
    kind = sniff(path)
    assert kind is not None
    assert FLAGS[kind] == "--firewall"


@pytest.mark.parametrize("form", DNS)
def test_resolver_logs(form: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(DNS[form])
    run = open_evidence_files(dns=[path])
    events = list(run.events())
    assert [(event.kind, getattr(event, "name", None)) for event in events] == [("dns.query", "www.example.test")]
    (seen,) = run.observations()
    assert (seen.channel, seen.format, seen.watches["dns.query"]) == ("dns", form, "inferred")
    kind = sniff(path)
    assert kind is not None
    assert FLAGS[kind] == "--dns"


def test_one_is_not_taken_for_the_other(tmp_path: Path) -> None:
    path = tmp_path / "x"
    tried = 0
    for text in FIREWALL.values():
        path.write_text(text)
        with pytest.raises(InputError):
            open_evidence_files(dns=[path])
        tried += 1
    for text in DNS.values():
        path.write_text(text)
        with pytest.raises(InputError):
            open_evidence_files(firewall=[path])
        tried += 1
    assert tried == 10
