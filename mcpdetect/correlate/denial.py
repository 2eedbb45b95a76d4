"""The denial model: from an attempt and everything seen around it to one outcome and one mode of denial.

Where packets are dropped decides what anybody can see, so no single errno means "blocked". The table behind these rules
was measured (DESIGN §6): a drop in the sender's own namespace leaves no packet and no errno on TCP but EPERM on UDP; a
drop further on leaves repeated SYNs and never an errno; rejects and routes each have their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from mcpdetect.contract import Fact
from mcpdetect.correlate.clock import comparable
from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.policies import Policies
from mcpdetect.correlate.target import Attempt, Target
from mcpdetect.model.event import Event
from mcpdetect.model.net import FirewallDrop, NetFlow, NetPacket
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import DenialMode

__all__ = ["Denial", "Judgement", "RunView"]

_MATCH_NS = 1_500_000_000
"""How far a flow's first packet may be from the call that made it: scheduling and the tracer's own delay."""
_FIRST_RETRANSMIT_NS = 1_200_000_000
"""A SYN is repeated after one second (RFC 6298 §2.1, §5.7); closed earlier, an attempt shows nothing by one SYN."""


_PORT_UNREACHABLE = frozenset({(3, 3), (1, 4)})
"""ICMP and ICMPv6 port unreachable (RFC 792, RFC 4443 §3.1): from the destination of a datagram, a closed port."""
_ADDRESS_WAIT_NS = 900_000_000
"""Neighbours are asked for an address three times, a second apart, before EHOSTUNREACH (arp(7), mcast_solicit)."""
# The caller's own mistake, or a family that this kernel does not have (connect(2), sendto(2)): nothing was attempted.
_NEVER_TRIED = frozenset(
    {"EAFNOSUPPORT", "EADDRNOTAVAIL", "EADDRINUSE", "EDESTADDRREQ", "EMSGSIZE", "ENOBUFS", "ENOMEM"}
)
_UNROUTED = frozenset({"ENETUNREACH", "ENETDOWN"})
_NEVER_TRIED |= {"EPIPE", "ENOTCONN", "EISCONN", "EOPNOTSUPP", "EPROTONOSUPPORT", "EFAULT", "EBADF", "ENOTSOCK"}


@dataclass(slots=True)
class Judgement:
    """What became of an attempt.

    Attributes:
        blocked: True when something denied it, False when not, None when the evidence cannot tell.
        mode: how it was denied, as far as inferred.
        why: the observation that decides, in plain words.
        where: evidence beyond the attempt's own places (packets, firewall lines).
    """

    blocked: bool | None
    mode: DenialMode | None
    why: str
    where: list[Where]


@dataclass(slots=True)
class RunView:
    """What the whole run says about how the network was, needed to read a single attempt.

    Attributes:
        packets: a capture watched the wire whole: what is not in it was not sent, as long as the capture ran.
        udp_denied: a datagram send met EPERM, which only a filter on local output gives.
        reached4, reached6: something got past routing over IPv4, over IPv6.
        denied: the recorder declares that the network was denied.
        window: when the capture ran, by its manifest or by its first and last packet; None where unknown.
        routed: addresses that a route leads to: datagrams left for them, or a datagram socket was connected.
        unrouted4: an IPv4 destination had no route.
        wired: some flow is on the wire.
        unheard: requests for addresses (ARP) without answer, where nothing else is on the wire.
        lost_datagrams: datagrams left by the calls, yet nothing at all is on the wire.
        rejecting: name servers whose questions were answered with ICMP errors.
        calls_refused: a policy refuses calls whatever their destination.
        answers_watched: system calls that receive were watched, so what they do not show did not arrive.
    """

    packets: bool
    udp_denied: bool
    reached4: bool
    reached6: bool
    denied: bool
    window: tuple[int | None, int | None] = (None, None)
    routed: set[str] = field(default_factory=set)
    unrouted4: bool = False
    wired: bool = False
    unheard: list[Where] = field(default_factory=list)
    lost_datagrams: bool = False
    rejecting: set[str] = field(default_factory=set)
    calls_refused: bool = False
    answers_watched: bool = False

    def captured(self, t_ns: int | None) -> bool:
        """Return whether a packet sent at ``t_ns`` would be in the capture."""
        begin, end = self.window
        if not self.packets or t_ns is None:
            return False
        early = comparable(begin, t_ns) and t_ns < (begin or 0) - _MATCH_NS
        late = comparable(end, t_ns) and t_ns > (end or 0) + _MATCH_NS
        return not early and not late


class Denial(Fact):
    """Judges attempts once the run is read; keeps the ARP and ICMP signs that no destination owns."""

    kinds: ClassVar[tuple[str, ...]] = ("net.packet", "firewall.drop")
    uses: ClassVar[tuple[type[Fact], ...]] = (Contacts, Policies)

    def __init__(self, run: Run, *uses: Fact) -> None:
        super().__init__(run, *uses)
        contacts, policies = uses
        if not isinstance(contacts, Contacts) or not isinstance(policies, Policies):
            raise TypeError("Denial reads Contacts and Policies")
        self._contacts, self._policies = contacts, policies
        self._arp: list[NetPacket] = []
        self.counted: list[FirewallDrop] = []

    def on_event(self, event: Event) -> None:
        """Learn from one event."""
        if isinstance(event, NetPacket) and event.protocol == "arp" and len(self._arp) < 64:
            self._arp.append(event)
        elif isinstance(event, FirewallDrop) and event.address is None and event.action != "accept":
            self.counted = [*self.counted, event][:64]

    def view(
        self,
        packets_watched: bool,
        window: tuple[int | None, int | None] = (None, None),
        *,
        answers_watched: bool = False,
    ) -> RunView:
        """Return the run-wide signs; what was watched, and when, comes from the observations."""
        view = RunView(packets_watched, self._contacts.udp_denied, False, False, self.run.mode == "denied", window)
        view.routed.update(self._policies.routed)
        view.calls_refused = self._policies.calls_refused is not None
        view.answers_watched = answers_watched
        sent = False
        for target in self._contacts.targets():
            view.wired = view.wired or bool(target.flows)
            six = ":" in target.address
            passed = bool(target.flows) or any(
                attempt.outcome in ("established", "in_progress", "refused", "timed_out", "unanswered")
                for attempt in target.attempts
            )
            if any(item.transport == "udp" and item.sends and item.error is None for item in target.attempts):
                view.routed.add(target.address)
                sent = True
            if target.port == 53 and any(flow.icmp for flow in target.flows):
                view.rejecting.add(target.address)
            view.unrouted4 = view.unrouted4 or (not six and any(item.error in _UNROUTED for item in target.attempts))
            if passed and six:
                view.reached6 = True
            elif passed:
                view.reached4 = True
        view.lost_datagrams = sent and not view.wired
        if not view.wired:
            view.unheard = [packet.where for packet in self._unanswered()]
        return view

    def judge(self, target: Target, view: RunView) -> list[tuple[Attempt, Judgement]]:
        """Return a judgement for every kept attempt on a destination, flows dealt out in time order."""
        free = sorted(target.flows, key=lambda flow: flow.t_ns or 0)
        judged = []
        for attempt in (*target.attempts, *target.later):
            judgement = self._judge(attempt, target, _take(free, attempt), view)
            if judgement.blocked is None and self.counted and judgement.mode != "input-drop":
                action = "reject" if judgement.mode == "refused" else "drop"
                line = next((one for one in self.counted if one.action == action), self.counted[0])
                why = f"{judgement.why}; a denying firewall rule counted packets meanwhile"
                judgement = Judgement(True, _firewall_mode(line), why, [*judgement.where, line.where])
            judged.append((attempt, judgement))
        return judged

    def judge_wire(self, target: Target) -> Judgement | None:
        """Return what wire and firewall alone say about a destination that no system call names, None if nothing."""
        for line in target.dropped:
            if line.action in ("drop", "reject"):
                return Judgement(True, _firewall_mode(line), f"the firewall logged it ({line.where})", [line.where])
        judged = [_alone(flow) for flow in target.flows]
        for wanted in (True, None):
            found = next((item for item in judged if item is not None and item.blocked is wanted), None)
            if found is not None:
                return found
        if target.dropped and not judged:
            line = target.dropped[0]
            why = "a firewall rule logged it without saying what became of it"
            return Judgement(None, None, f"{why} ({line.where})", [line.where])
        return None

    def _unanswered(self) -> list[NetPacket]:
        """Return requests for addresses whose owner is never heard."""
        answered = {packet.source for packet in self._arp}
        return [packet for packet in self._arp if packet.address not in answered]

    def _judge(self, attempt: Attempt, target: Target, flow: NetFlow | None, view: RunView) -> Judgement:
        extra = [flow.where] if flow is not None else []
        if attempt.outcome == "established" and not attempt.weak:
            return Judgement(False, None, "it was established", extra)
        if target.dropped:
            line = target.dropped[0]
            return Judgement(True, _firewall_mode(line), f"the firewall logged it ({line.where})", [line.where])
        if attempt.transport not in ("tcp", None) and attempt.error is None:
            return self._silent_datagram(attempt, flow, extra, target, view)
        if attempt.error is not None and attempt.outcome not in ("in_progress", "timed_out", "unanswered"):
            return _by_errno(attempt, attempt.error, target, flow, view)
        judgement = self._pending(attempt, flow, view, extra)
        if attempt.weak and judgement.blocked is None:
            judgement.why = "SO_ERROR was 0, but no byte was exchanged: connected, or still waiting"
        return judgement

    def _silent_datagram(
        self, attempt: Attempt, flow: NetFlow | None, extra: list[Where], target: Target, view: RunView
    ) -> Judgement:
        if target.answered or (flow is not None and flow.packets_in):
            if view.denied and view.answers_watched and attempt.sends and not attempt.replies:
                waited = True if attempt.waited else None
                why = "answers are on the wire, yet the program " + ("waited in vain" if waited else "read none")
                return Judgement(waited, "input-drop", why, extra)
            return Judgement(False, None, "it was answered on the wire", extra)
        if flow is not None and flow.icmp:
            return _by_icmp(flow, extra)
        if flow is None and view.denied and view.lost_datagrams and view.captured(attempt.t_ns):
            why = "it was sent without an error, yet nothing at all is on the captured wire"
            return Judgement(True, "link-down", why, extra)
        return Judgement(None, None, f"{attempt.sends} datagrams sent, no reply seen: lost, blocked or one-way", extra)

    def _pending(self, attempt: Attempt, flow: NetFlow | None, view: RunView, extra: list[Where]) -> Judgement:
        timed_out = attempt.outcome == "timed_out"
        what = "it timed out" if timed_out else "it stayed without result until it was given up"
        if flow is not None:
            return _by_flow(attempt, flow, what, extra)
        if attempt.t_ns is not None and view.captured(attempt.t_ns):
            near = (one for one in self._unanswered() if _near(one.t_ns, attempt.t_ns, 3 * _MATCH_NS))
            unanswered = [packet.where for packet in near]
            if len(unanswered) > 1 or (unanswered and not view.wired):
                return Judgement(True, "link-down", f"{what}; only address requests (ARP) are on the wire", unanswered)
            if view.lost_datagrams:
                why = f"{what}; no packet reached the captured wire, not even datagrams that were sent without an error"
                return Judgement(True, "link-down", why, [])
            return Judgement(True, "output-drop", f"{what}; no packet of it reached the wire, which was captured", [])
        if view.udp_denied:
            return Judgement(True, "output-drop", f"{what}; datagram sends of this run met EPERM: a local filter", [])
        return Judgement(None, None, f"{what}: blocked or slow, the calls alone cannot tell", [])


def _take(free: list[NetFlow], attempt: Attempt) -> NetFlow | None:
    """Take the flow that an attempt made: the first free one that begins about when the attempt did."""
    for flow in free:
        if attempt.transport == "udp" or attempt.t_ns is None or _near(flow.t_ns, attempt.t_ns, _MATCH_NS):
            free.remove(flow)
            return flow
    return None


def _near(one: int | None, other: int, within: int) -> bool:
    return one is None or not comparable(one, other) or abs(one - other) <= within


def _alone(flow: NetFlow) -> Judgement | None:
    """Return what a flow shows by itself: only a repeated SYN without answer, and an ICMP error, tell of denial."""
    extra = [flow.where]
    if flow.packets_in:
        return None
    if flow.icmp:
        return _by_icmp(flow, extra)
    if flow.transport != "tcp" or flow.midstream:
        return None
    if flow.syn >= 2:
        return Judgement(True, "dropped-on-path", f"the SYN was sent {flow.syn} times, never answered", extra)
    if flow.syn:
        return Judgement(None, None, "one SYN without an answer: given up before a retransmission could tell", extra)
    return None


def _firewall_mode(line: FirewallDrop) -> DenialMode:
    """Return the mode that a rule's own words say: ``MCPD-OUT``, ``inet deny out hook output``; whole words only."""
    local = not {"out", "output"}.isdisjoint(re.split(r"[^a-z0-9]+", line.prefix.lower()))
    if line.action == "reject":
        return "output-reject" if local else "rejected-on-path"
    return "output-drop" if local else "dropped-on-path"


def _by_icmp(flow: NetFlow, extra: list[Where]) -> Judgement:
    error = flow.icmp[0]
    if flow.transport == "udp" and error.sender == flow.address and (error.type, error.code) in _PORT_UNREACHABLE:
        return Judgement(None, "refused", "the destination itself has no such port, or filters it there", extra)
    place = [*extra, Where(flow.where.file, error.packet, unit="packet")]
    return Judgement(
        True, "rejected-on-path", f"{error.sender} answered with ICMP type {error.type} code {error.code}", place
    )


def _by_flow(attempt: Attempt, flow: NetFlow, what: str, extra: list[Where]) -> Judgement:
    if flow.icmp:
        return _by_icmp(flow, extra)
    if flow.syn_ack and flow.syn < 2:
        if flow.packets_out <= flow.syn:
            return Judgement(None, None, "answered on the wire, but the capture has no acknowledgement of it", extra)
        return Judgement(False, None, "the connection was established on the wire", extra)
    if flow.syn_ack:
        return Judgement(True, "input-drop", f"{what}; answers are on the wire, yet the SYN was repeated", extra)
    if flow.rst_in:
        return Judgement(None, "refused", "answered with RST: a closed port or a resetting filter", extra)
    if flow.syn >= 2:
        return Judgement(True, "dropped-on-path", f"{what}; the SYN was sent {flow.syn} times, never answered", extra)
    span = (attempt.closed_ns or 0) - (attempt.t_ns or 0)
    if span > 2 * _FIRST_RETRANSMIT_NS:
        return Judgement(True, "dropped-on-path", f"{what}; its SYN was never answered", extra)
    return Judgement(None, None, "given up before a first retransmission could tell", extra)


def _by_errno(attempt: Attempt, error: str, target: Target, flow: NetFlow | None, view: RunView) -> Judgement:
    extra = [flow.where] if flow is not None else []
    datagram = attempt.transport == "udp"
    if error in ("EPERM", "EACCES") and view.calls_refused:
        return Judgement(
            True, "policy", f"{error}, whatever the destination: a policy on system calls (seccomp)", extra
        )
    if error == "EPERM":
        if datagram and attempt.via == "send":
            return Judgement(True, "output-drop", "EPERM: a filter in the sender's own network refused it", extra)
        return Judgement(True, "policy", "EPERM from connect: a policy refuses it (seccomp, control group)", extra)
    if error == "EACCES":
        if target.address in view.routed:
            return Judgement(True, "policy", "EACCES, while a route leads there: a policy (Landlock), no route", extra)
        return Judgement(True, "route-prohibit", "EACCES: a prohibiting route, or a policy such as Landlock", extra)
    if error == "EINVAL":
        return Judgement(True, "route-blackhole", "EINVAL for a valid address: a blackhole route", extra)
    if error in _UNROUTED:
        return _unrouted(attempt, error, target, flow, view)
    if error in ("EHOSTUNREACH", "EHOSTDOWN"):
        return _host_unreachable(attempt, flow, view, extra)
    if error in ("ECONNREFUSED", "ECONNRESET"):
        return _refused(attempt, flow, view, extra)
    if error in _NEVER_TRIED:
        return Judgement(False, None, f"{error}: it could not be tried", extra)
    return Judgement(None, None, f"{error}: what became of it is not known", extra)


def _unrouted(attempt: Attempt, error: str, target: Target, flow: NetFlow | None, view: RunView) -> Judgement:
    extra = [flow.where] if flow is not None else []
    six = ":" in target.address
    if flow is not None and flow.icmp:
        return _by_icmp(flow, extra)
    if six and view.reached4 and not view.reached6 and not view.unrouted4:
        return Judgement(False, None, "this network has no IPv6; IPv4 went on", extra)
    if attempt.late and attempt.transport != "udp":
        # A missing route refuses connect() itself (connect(2)); what comes later is the word of a filter.
        if flow is None and (view.captured(attempt.t_ns) or view.udp_denied):
            return Judgement(True, "output-reject", f"{error} later, and no packet of it reached the wire", extra)
        return Judgement(True, "rejected-on-path", f"{error} later: something rejected it", extra)
    return Judgement(True, "no-route", f"{error}: there is no route to it", extra)


def _host_unreachable(attempt: Attempt, flow: NetFlow | None, view: RunView, extra: list[Where]) -> Judgement:
    if flow is not None and flow.icmp:
        return _by_icmp(flow, extra)
    if attempt.late and view.unheard and view.captured(attempt.t_ns):
        why = f"{attempt.error}; only address requests (ARP) are on the wire"
        return Judgement(True, "link-down", why, view.unheard[:2])
    if attempt.late:
        waited = (attempt.settled_ns or 0) - (attempt.t_ns or 0)
        if attempt.settled_ns is None or attempt.t_ns is None or waited >= _ADDRESS_WAIT_NS:
            return Judgement(True, "link-down", "EHOSTUNREACH after waiting: nobody answered on the link", extra)
        if flow is None and (view.captured(attempt.t_ns) or view.udp_denied):
            return Judgement(True, "output-reject", "EHOSTUNREACH at once, and no packet of it reached the wire", extra)
        return Judgement(True, "rejected-on-path", "EHOSTUNREACH soon after: something rejected it", extra)
    if view.packets or view.denied or attempt.transport == "udp":
        return Judgement(True, "route-unreachable", "EHOSTUNREACH at once: an unreachable route or a reject", extra)
    return Judgement(None, None, "EHOSTUNREACH at once: a reject, a route, or a host that is down", extra)


def _refused(attempt: Attempt, flow: NetFlow | None, view: RunView, extra: list[Where]) -> Judgement:
    if flow is not None and flow.icmp:
        return _by_icmp(flow, extra)
    if flow is not None and flow.rst_in:
        return Judgement(None, "refused", "answered with RST: a closed port or a resetting filter", extra)
    if flow is None and view.captured(attempt.t_ns) and attempt.transport != "udp":
        return Judgement(True, "output-reject", "refused, yet no packet of it reached the captured wire", extra)
    if view.udp_denied:
        return Judgement(True, "output-reject", "refused, in a run whose datagrams met EPERM: a local filter", extra)
    return Judgement(None, "refused", "refused: a closed port or a filter, the calls alone cannot tell", extra)
