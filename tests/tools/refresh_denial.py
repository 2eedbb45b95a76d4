"""Write ``docs/denial.md`` from the recorded cases: ``python tests/tools/refresh_denial.py``.

Each cell is read from the evidence of a case of ``network/blocked`` that tries an address by TCP, an address by UDP and
a host by name, one for every way of denying and every runtime.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import mcpdetect
from controls.recorder.denial import DENIALS
from mcpdetect.model.event import Event
from mcpdetect.model.net import (
    DnsAnswer,
    DnsQuery,
    FirewallDrop,
    NetFlow,
    NetPacket,
    SocketConnect,
    SocketOpen,
    SocketReceive,
    SocketSend,
    SocketState,
)

ROOT = Path(__file__).parents[2]
CASES = ROOT / "corpus/network/blocked"
PAGE = ROOT / "docs/denial.md"
RUNTIMES = {"c": "C", "curl": "curl", "go": "Go", "node": "Node.js", "python": "Python"}
ADDRESS, NAME, RESOLVER, DATAGRAM = "203.0.113.7", "api.example.com", "10.200.0.1", 5140

HEAD = """# How denial looks

What a program, the wire and a firewall show when the network is denied, measured: for each way of denying, programs in
C, Go, JavaScript (Node.js), Python and curl tried an address by TCP, an address by UDP, and a host by name, in the cell
that `controls/README.md` describes (Linux {kernel}). The recordings are the cases
`network/blocked/<runtime>-every-<denial>` of the corpus; this page is written from them by
`python tests/tools/refresh_denial.py`, and a test compares it.

`EINPROGRESS, silence` means that the connect was under way until the program gave it up, and that no call ever told
why. A mode is the word of `network.blocked` for how the network was denied, which it infers from the evidence: that it
was denied is declared, how is not. Where runtimes differ they have a row each.

What the table teaches:

- A drop on the way never gives an error number; a drop in the sender's own network gives EPERM, to datagrams alone.
- A reject in the sender's own network looks to a datagram as a drop does (EPERM), so the mode of that attempt is
  `output-drop`.
- A route refuses `connect()` itself; the same error number later, from `SO_ERROR`, is the word of a filter.
- A link that lost its carrier soon carries not even requests for addresses: datagrams leave without an error, and
  nothing is on the wire.
- EACCES is a prohibiting route, Landlock, or a seccomp filter. A datagram socket that connects to the same address
  shows a route, and the refused socket of the name service daemon shows that the call is refused, not the destination.
  Go asks no such daemon: there, such a filter looks like a prohibiting route.
- A policy that refuses `connect()` alone lets datagrams out.
- Under `input-drop` Go and Node.js wait for a datagram's answer in calls that name no socket: that the answer is on the
  wire and was never read is a limit (`outcome-unknown`) there, no finding.

"""


@dataclass(slots=True)
class Seen:
    """What a case shows, in words."""

    tcp: str = ""
    udp: str = ""
    name: str = ""
    wire: str = ""
    counted: str = ""
    modes: str = ""

    def cells(self) -> tuple[str, ...]:
        return self.tcp, self.udp, self.name, self.wire, self.counted, self.modes


@dataclass(slots=True)
class Attempt:
    """One TCP attempt: the word of connect(), and what came later."""

    socket: str | None
    first: str
    later: str = "silence"

    def __str__(self) -> str:
        return self.first if self.first not in ("EINPROGRESS", "connected") else f"{self.first}, {self.later}"


@dataclass(slots=True)
class Reader:
    """Reads a case's events."""

    literal: list[Attempt] = field(default_factory=list)
    named: list[Attempt] = field(default_factory=list)
    sockets: set[str] = field(default_factory=set)
    datagrams: dict[str, None] = field(default_factory=dict)
    answered: bool = False
    udp_socket: str | None = None
    name: dict[str, None] = field(default_factory=dict)
    asked: bool = False
    wire: dict[str, None] = field(default_factory=dict)
    arp_asked: set[str] = field(default_factory=set)
    arp_answered: set[str] = field(default_factory=set)
    counted: dict[str, None] = field(default_factory=dict)

    def read(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case SocketOpen(error="EPERM" | "EACCES" | "EAFNOSUPPORT", family="inet" | "inet6"):
                self.sockets.add(str(event.error))
            case SocketConnect(transport="tcp"):
                self._connect(event)
            case SocketConnect(address=address) if address == RESOLVER and event.error:
                self.name[f"connect(): {event.error}"] = None
            case SocketState() | SocketSend() | SocketReceive():
                self._later(event)
            case DnsQuery(seen_in="syscalls") if event.name == NAME:
                self.asked = True
                if event.error:
                    self.name[event.error] = None
            case DnsAnswer(seen_in="syscalls") if event.name == NAME:
                self.name["resolved" if event.rcode == "NOERROR" else event.rcode] = None
            case NetFlow(address=address) if address == ADDRESS:
                self.wire[_flow(event)] = None
            case NetPacket(protocol="arp"):
                self.arp_asked.add(str(event.address))
                self.arp_answered.add(str(event.source))
            case FirewallDrop(address=None):
                self.counted[f"{event.action} counted"] = None
            case _:
                return

    def _connect(self, event: SocketConnect) -> None:
        if event.address is None or event.address.startswith("198.18.") or event.port != 443:
            return
        attempts = self.literal if event.address == ADDRESS else self.named
        attempts.append(Attempt(event.socket, event.error or "connected", "" if event.ok else "silence"))

    def _later(self, event: SocketState | SocketSend | SocketReceive) -> None:
        if isinstance(event, SocketSend) and event.transport == "udp" and event.address == ADDRESS:
            self.datagrams[event.error or "sent"] = None
            self.udp_socket = event.socket
        elif isinstance(event, SocketReceive) and event.transport == "udp" and event.socket == self.udp_socket:
            self.answered = self.answered or bool(event.ok and event.size)
        for attempt in (*self.literal, *self.named):
            if attempt.socket is not None and attempt.socket == event.socket and attempt.later == "silence":
                if isinstance(event, SocketState) and event.source == "so_error" and event.status not in ("", "0"):
                    attempt.later = f"SO_ERROR {event.status}"
                elif isinstance(event, SocketReceive | SocketSend) and event.ok and event.size:
                    attempt.later = "connected"

    def seen(self, findings: Iterable[Mapping[str, object]]) -> Seen:
        """Return the whole in words."""
        refused = f"socket(): {', '.join(sorted(self.sockets))}" if self.sockets else "not tried"
        told = Seen()
        told.tcp = _joined(str(one) for one in self.literal) or refused
        told.udp = _joined(self.datagrams)
        if told.udp == "sent":
            told.udp = "sent, answered" if self.answered else "sent, no answer"
        told.udp = told.udp or refused
        if "resolved" in self.name:
            told.name = "resolved, then " + (_joined(str(one) for one in self.named) or "nothing")
        else:
            told.name = _joined(self.name) or ("asked, no answer" if self.asked else refused)
        lost = ["ARP requests, unanswered"] if self.arp_asked - self.arp_answered else []
        told.wire = "; ".join([*sorted(self.wire), *lost]) or "nothing"
        told.counted = _joined(self.counted) or "-"
        told.modes = "; ".join(_modes(findings)) or "-"
        return told


def _joined(words: Iterable[str]) -> str:
    return " / ".join(sorted(dict.fromkeys(words)))


def _flow(flow: NetFlow) -> str:
    """Return what the wire shows of a conversation, without counts: those differ from run to run."""
    if flow.icmp:
        return f"{flow.transport.upper()}: ICMP {flow.icmp[0].type}/{flow.icmp[0].code}"
    if flow.transport == "udp":
        return "UDP: " + ("answered" if flow.packets_in else "no answer")
    if flow.syn_ack:
        return "TCP: SYN repeated, though answered" if flow.syn > 1 else "TCP: connected"
    return "TCP: RST" if flow.rst_in else "TCP: SYN repeated" if flow.syn > 1 else "TCP: one SYN"


def _modes(findings: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yield the mode of each attempt, once where all three have the same."""
    found: dict[str, str] = {}
    for facts in findings:
        if facts.get("address") == ADDRESS:
            what = str(facts["transport"]).upper()
        else:
            what = "name" if {"host", "address"} & facts.keys() else "socket"
        found[what] = f"`{facts['denial']}`"
    if len(found) == 3 and len(set(found.values())) == 1:
        yield next(iter(found.values()))
        return
    yield from (f"{what}: {found[what]}" for what in ("socket", "TCP", "UDP", "name") if what in found)


def case(runtime: str, denial: str) -> Seen:
    """Return what one case shows."""
    bundle = CASES / f"{runtime}-every-{denial}"
    reader = Reader()
    for event in mcpdetect.open_trace(bundle).events():
        reader.read(event)
    check = mcpdetect.check(bundle, checks=["network.blocked"]).checks[0]
    return reader.seen(finding.facts for finding in check.findings)


def page() -> str:
    """Return the whole page."""
    manifest = json.loads((CASES / "c-every-open/manifest.json").read_text())
    kernel = manifest["host"]["kernel"].partition("-")[0]
    lines = [
        "| denial | runtime | TCP connect | UDP send | name | on the wire | firewall | mode inferred |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for denial in ("open", *DENIALS):
        rows: dict[tuple[str, ...], list[str]] = {}
        for runtime, shown in RUNTIMES.items():
            rows.setdefault(case(runtime, denial).cells(), []).append(shown)
        for cells, runtimes in rows.items():
            who = "all" if len(runtimes) == len(RUNTIMES) else ", ".join(runtimes)
            lines.append(f"| `{denial}` | {who} | {' | '.join(cells)} |")
    return HEAD.format(kernel=kernel) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
