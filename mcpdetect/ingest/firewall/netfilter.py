"""The packet lines of the kernel's firewall log (Linux net/netfilter/nf_log_syslog.c).

The prefix in front of the fields is chosen by whoever wrote the rule and may hold anything, even text that looks like
fields; the kernel's own begin at the last ``IN=`` that is followed by what the kernel puts there.
"""

from __future__ import annotations

import re
from typing import Literal

from mcpdetect.model.addresses import canonical
from mcpdetect.model.net import FirewallDrop
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of

__all__ = ["NotAPacket", "action_of", "fields_at", "packet", "resembles_packet"]

Action = Literal["drop", "reject", "accept", "logged"]

# MCPD-FWD:IN=v1 OUT= MAC=d2:3c:aa:1f:ef:e0:82:0c:85:92:6e:15:08:00 SRC=10.77.0.2 DST=203.0.113.7 LEN=60
# H8-ALLIN= OUT=v0 SRC=10.77.0.2 DST=224.0.0.251 LEN=37
# PVEFW-HOST-OUT policy DROP: IN=eth0 SRC=10.77.0.2 DST=203.0.113.11 LEN=60
# Interface names have at most 15 bytes, none of them white space or a slash (Linux dev_valid_name).
_NEXT = rb"(?=PHYSIN=|PHYSOUT=|MAC=|MACSRC=|SRC=|ARP |VPROTO=|TRUNCATED)"
_FIELDS = re.compile(
    rb"(?<!PHYS)(?:IN=[^\s/]{0,15}+ (?:OUT=[^\s/]{0,15}+(?: |$)|" + _NEXT + rb")|OUT=[^\s/]{0,15}+ " + _NEXT + rb")"
)

# SRC=10.77.0.2 DST=203.0.113.7 LEN=60 ... PROTO=TCP SPT=35770 DPT=443
_WANTED = re.compile(rb"(?<!\S)(SRC|DST|PROTO|SPT|DPT|IPSRC|IPDST|MACPROTO)=(\S*+)")

# IN= OUT=eth0 ... SRC=10.0.2.15 DST=1.1.1.1
_RESEMBLES = re.compile(rb"\b(?:SRC|DST|IN|OUT|PROTO|DPT)=")

# Verdict words of common rule sets: iptables and nftables habits, firewalld (filter_OUT_REJECT), UFW ([UFW BLOCK],
# [UFW ALLOW]), Shorewall (Shorewall:net-fw:DROP:), Proxmox (policy DROP:).
_WORDS: dict[str, Action] = {
    "drop": "drop",
    "dropped": "drop",
    "drops": "drop",
    "block": "drop",
    "blocked": "drop",
    "deny": "drop",
    "denied": "drop",
    "reject": "reject",
    "rejected": "reject",
    "rejects": "reject",
    "accept": "accept",
    "accepted": "accept",
    "accepts": "accept",
    "allow": "accept",
    "allowed": "accept",
}
# filter_OUT_REJECT: -> filter, OUT, REJECT;  OutDrop -> Out, Drop
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

# IANA protocol numbers that the kernel prints without a name; names as in ``NetPacket.protocol``.
_PROTOCOLS = {
    "1": "icmp",
    "2": "igmp",
    "6": "tcp",
    "17": "udp",
    "47": "gre",
    "50": "esp",
    "51": "ah",
    "58": "icmpv6",
    "132": "sctp",
    "136": "udplite",
}
_NAMED = frozenset({"TCP", "UDP", "UDPLITE", "ICMP", "ICMPv6", "AH", "ESP"})
_WITH_PORTS = frozenset({"tcp", "udp", "udplite"})


class NotAPacket(ValueError):
    """A line that has the shape of a packet line holds values that no kernel writes; the text says which."""


def fields_at(message: bytes) -> tuple[int, int] | None:
    """Return where the fields of a packet line begin and where the ones after the interfaces do, None without any."""
    found = None
    for found in _FIELDS.finditer(message):  # noqa: B007  the last one counts
        pass
    return (found.start(), found.end()) if found is not None else None


def resembles_packet(message: bytes) -> bool:
    """Return whether a line that is no packet line has fields of one, so that a packet may hide in it."""
    return len(set(_RESEMBLES.findall(message))) > 1


def action_of(prefix: str) -> Action:
    """Return what a prefix says was done, by its words; ``logged`` where it says nothing or contradicts itself."""
    said = [_WORDS[word] for part in _WORD.findall(prefix) if (word := part.lower()) in _WORDS]
    if not said or ("accept" in said and len(set(said)) > 1):
        return "logged"
    return said[-1]


def packet(message: bytes, start: int, rest: int, where: Where, t_ns: int | None, packets: int = 1) -> FirewallDrop:
    """Return the event of a packet line.

    Args:
        message: the line without its header.
        start: where the prefix ends, by ``fields_at``.
        rest: where the fields after the interfaces begin, by ``fields_at``.
        where: the line's place.
        t_ns: its time.
        packets: how many packets the line stands for.

    Raises:
        NotAPacket: an address or port is none, or there are none at all.
    """
    # TYPE=3 CODE=3 [SRC=203.0.113.8 DST=10.77.0.2 ... ]: what is in brackets is the packet that an ICMP error quotes.
    # Nothing that is needed follows it, or the brackets of INCOMPLETE [3 bytes].
    fields = message[rest:].partition(b" [")[0]
    values: dict[str, str] = {}
    for match in _WANTED.finditer(fields):
        values.setdefault(match[1].decode("ascii"), match[2].decode("latin-1"))  # of equal keys the first counts
    prefix = text_of(message[:start].strip())
    event = FirewallDrop(where, t_ns, action=action_of(prefix), packets=packets, prefix=prefix)
    if "SRC" in values and "DST" in values:
        event.transport = _transport(values.get("PROTO"))
        event.source, event.address = _address(values["SRC"]), _address(values["DST"])
        if event.transport in _WITH_PORTS and b" FRAG:" not in fields:
            event.source_port, event.port = _port(values.get("SPT")), _port(values.get("DPT"))
    elif fields.startswith(b"ARP ") or b" ARP " in fields:
        # IN=v0 OUT= ARP HTYPE=1 PTYPE=0x0800 OPCODE=1 MACSRC=.. IPSRC=10.77.0.1 MACDST=.. IPDST=10.77.0.2
        event.transport = "arp"
        event.source = _address(values["IPSRC"]) if "IPSRC" in values else None
        event.address = _address(values["IPDST"]) if "IPDST" in values else None
    elif "MACPROTO" in values and "SRC" not in values:
        # IN=v0 OUT= MACSRC=.. MACDST=.. MACPROTO=88cc
        event.transport = f"ethertype-0x{_ethertype(values['MACPROTO'])}"
    elif b"TRUNCATED" not in fields:
        raise NotAPacket("it has no SRC and DST")
    return event


def _transport(protocol: str | None) -> str | None:
    if protocol is None:
        return None
    if protocol in _NAMED:
        return protocol.lower()
    if protocol.isascii() and protocol.isdigit() and len(protocol) <= 3 and int(protocol) < 256:
        return _PROTOCOLS.get(protocol) or f"ip-{protocol}"
    raise NotAPacket("PROTO is no protocol")


def _address(value: str) -> str:
    try:
        if "%" not in value:  # the kernel prints no zones
            return canonical(value)
    except ValueError:
        pass
    raise NotAPacket("an address is none")


def _ethertype(value: str) -> str:
    if re.fullmatch("[0-9A-Fa-f]{4}", value):
        return value.lower()
    raise NotAPacket("MACPROTO is no protocol")


def _port(value: str | None) -> int | None:
    if value is None:
        return None
    if value.isascii() and value.isdigit() and len(value) <= 5 and int(value) < 65536:
        return int(value)
    raise NotAPacket("a port is none")
