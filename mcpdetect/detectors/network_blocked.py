"""network.blocked: attempts that something denied, in any denial mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.attribution import unattributed
from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.denial import Denial, Judgement, RunView
from mcpdetect.correlate.explain import Explanations, level_with
from mcpdetect.correlate.hosts import expected, is_local_name
from mcpdetect.correlate.lookups import judge_lookup
from mcpdetect.correlate.names import Lookup, Names
from mcpdetect.correlate.policies import Policies
from mcpdetect.correlate.processes import Processes
from mcpdetect.correlate.target import Attempt, Proxied, Target
from mcpdetect.model.addresses import endpoint, scope_of
from mcpdetect.model.event import Event
from mcpdetect.model.net import SocketOpen
from mcpdetect.model.result import Explanation, Finding
from mcpdetect.model.vocabulary import Level

__all__ = ["NetworkBlocked"]

_CALLS = ("socket.open", "socket.connect", "socket.state", "socket.send")
_WORDS = ("socket.open", "socket.connect", "socket.send", "data:socket.send")
_NOT_LET_THROUGH = (403, 407, 451)  # RFC 9110 §15.5.4, §15.5.8; RFC 7725


class NetworkBlocked(Detector):
    """An attempt to reach the network that something denied."""

    spec: ClassVar[Spec] = Spec(
        id="network.blocked",
        version=1,
        claim="no attempt to reach the network was denied",
        kinds=("socket.connect",),
        facts=(Contacts, Denial, Names, Policies, Processes, Explanations),
        needs=(
            AnyOf("attempts and their results", Need("syscalls", _CALLS)),
            AnyOf("what became of them outside", Need("packets", ("net.flow",)), Need("firewall", ("firewall.drop",))),
        ),
        blind_to=(
            "a datagram that is dropped on the way and to which no answer was due",
            "an attempt given up before its first retransmission",
            "what a program would have done had an earlier attempt worked",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._servers: set[str] = set()
        self._by_address: dict[str, list[Target]] = {}
        self._reached: set[tuple[str | None, int | None, str]] = set()

    def on_event(self, event: Event) -> Iterator[Finding]:
        """Everything is judged at the end, when the whole run is known."""
        return iter(())

    def finish(self) -> Iterator[Finding]:
        """Judge every attempt, every name asked for, and every request through a proxy."""
        contacts, denial = self.context.fact(Contacts), self.context.fact(Denial)
        self._index(contacts)
        answers = self.context.watched("syscalls", "socket.receive")
        view = denial.view(self.context.watched("packets", "net.flow"), self._window(), answers_watched=answers)
        for target in contacts.targets():
            if target.port == 53 and self._lookup_traffic(target):
                continue
            if scope_of(target.address) == "multicast":
                continue
            if target.attempts:
                yield from self._judge_target(target, denial.judge(target, view))
            else:
                yield from self._judge_wire(target, denial.judge_wire(target))
        names = self.context.fact(Names)
        for lookup in names.lookups.values():
            yield from self._judge_lookup(lookup, view)
        yield from self._judge_proxied(contacts.proxied)
        yield from self._no_sockets(self.context.fact(Policies).refused_sockets)
        if denial.counted and not any(item.attempts for item in contacts.targets()):
            yield from self._counted(denial)
        if contacts.overflow or names.overflow:
            self.context.limit(
                "overflow", "more destinations or names than can be kept", count=contacts.overflow + names.overflow
            )
        if contacts.unknown_destination:
            self.context.limit(
                "unknown-destination",
                "the fate of a connect or send whose destination is not in the evidence is unknown",
                where=contacts.unknown_destination[0],
                count=len(contacts.unknown_destination),
            )

    def _window(self) -> tuple[int | None, int | None]:
        """Return when captures of the wire ran: the span that all of them cover."""
        own = [
            item
            for item in self.context.observations()
            if item.channel == "packets" and item.watches.get("net.flow") and item.clock == "epoch"
        ]
        begins = [item.begin_ns for item in own if item.begin_ns is not None]
        ends = [item.end_ns for item in own if item.end_ns is not None]
        return max(begins, default=None), min(ends, default=None)

    def _lookup_traffic(self, target: Target) -> bool:
        """Return whether this is the resolver's traffic, whose fate the names tell better; bare refusals stay."""
        return target.address in self._servers

    def _index(self, contacts: Contacts) -> None:
        """Gather once what every target is compared with."""
        names = self.context.fact(Names)
        self._servers = {server for lookup in names.lookups.values() for server in lookup.servers}
        for target in contacts.targets():
            self._by_address.setdefault(target.address, []).append(target)
            winners = {item.process for item in target.attempts if item.outcome == "established"}
            if winners:
                for name in names.names_of(target.address, None):
                    self._reached.update((process, target.port, name.name) for process in winners)

    def _judge_target(self, target: Target, judged: list[tuple[Attempt, Judgement]]) -> Iterator[Finding]:
        if target.unjudged:
            place = endpoint(target.address, target.port)
            self.context.limit("overflow", f"{place}: more attempts than can be judged", count=target.unjudged)
        judged = [item for item in judged if not self._sorted_only(target, item[0])]
        blocked = [(attempt, judgement) for attempt, judgement in judged if judgement.blocked]
        if blocked:
            yield self._finding(target, blocked, len(judged) + target.more_attempts)
            return
        went = any(judgement.blocked is False and attempt.outcome == "established" for attempt, judgement in judged)
        for attempt, judgement in judged:
            if judgement.blocked is None and not went and not self._raced(target, attempt):
                self.context.limit(
                    "outcome-unknown",
                    f"{endpoint(target.address, target.port)}/{target.transport}: {judgement.why}",
                    where=attempt.where[0],
                )
            elif judgement.blocked is False and attempt.error is not None:
                place = endpoint(target.address, target.port)
                self.context.limit("not-denied", f"{place}: {judgement.why}", hides=False, where=attempt.where[0])

    def _sorted_only(self, target: Target, attempt: Attempt) -> bool:
        """Return whether a datagram connect only sorted addresses: the process then tried the address by TCP."""
        if attempt.transport != "udp" or attempt.via != "connect":
            return False
        return any(
            other.transport != "udp" and any(item.process == attempt.process for item in other.attempts)
            for other in self._by_address.get(target.address, ())
        )

    def _judge_wire(self, target: Target, judgement: Judgement | None) -> Iterator[Finding]:
        """Judge a destination that only the wire or the firewall shows."""
        if judgement is None:
            return
        place = f"{endpoint(target.address, target.port)}/{target.transport}"
        if judgement.blocked is None:
            self.context.limit("outcome-unknown", f"{place}: {judgement.why}", where=judgement.where[0])
            return
        names = [name.name for name in self.context.fact(Names).names_of(target.address, None)]
        explanations = self._explain(target.address, target.port, names, None)
        explanations += unattributed(self.context.watched("syscalls", *_CALLS), self.context.fact(Contacts))
        shown = f"{names[0]} ({place})" if names else place
        flows = {(flow.source, flow.source_port) for flow in target.flows}
        flows.update((line.source or "", line.source_port or 0) for line in target.dropped)
        finding = self.finding(
            *judgement.where,
            *(line.where for line in target.dropped),
            title=f"{shown}: blocked, {judgement.mode or 'mode unknown'}",
            reason=f"The attempt did not get through: {judgement.why}.",
            identity=f"{target.transport} {names[0] if names else target.address} {target.port}",
            level=self._level(explanations, named=bool(names), address=target.address),
            explanations=explanations,
            address=target.address,
            port=target.port,
            transport=target.transport,
            names=names,
            denial=judgement.mode,
            modes=[judgement.mode or "unknown"],
            attempts=0,
            count=len(flows),
        )
        finding.t_ns = target.first_ns
        yield finding

    def _judge_proxied(self, requests: list[Proxied]) -> Iterator[Finding]:
        answered = {item.host for item in requests if item.status is not None}
        watched = self.context.watched("syscalls", "socket.receive", "data:socket.receive")
        for proxied in requests:
            if proxied.status in _NOT_LET_THROUGH:
                yield self._proxied(proxied)
            elif proxied.status is None and proxied.host not in answered and not watched:
                self.context.limit(
                    "outcome-unknown",
                    f"{proxied.host}: the evidence does not show what the proxy answered",
                    where=proxied.where[0],
                )

    def _no_sockets(self, refused: list[SocketOpen]) -> Iterator[Finding]:
        """socket() itself refused: seccomp or another policy took the network away before any destination was named."""
        if not refused:
            return
        first = refused[0]
        yield self.finding(
            *refused,
            title=f"making an IP socket was refused with {first.error}, policy",
            reason="A policy of the sandbox (seccomp, an LSM) refuses IP sockets, so no destination was ever named.",
            identity="socket",
            level="info",
            program=self.context.fact(Processes).program(first.process),
            denial="policy",
            count=len(refused),
        )

    def _raced(self, target: Target, attempt: Attempt) -> bool:
        """Return whether another address of the same name won a race that this attempt lost (RFC 8305)."""
        names = self.context.fact(Names).names_of(target.address, None)
        return any((attempt.process, target.port, name.name) in self._reached for name in names)

    def _finding(self, target: Target, blocked: list[tuple[Attempt, Judgement]], tried: int) -> Finding:
        context = self.context
        attempt, judgement = blocked[0]
        names = [name.name for name in context.fact(Names).names_of(target.address, None)]
        where = endpoint(target.address, target.port)
        shown = f"{names[0]} ({where})" if names else where
        places = [place for item, verdict in blocked for place in (*item.where[:2], *verdict.where)]
        explanations = self._explain(target.address, target.port, names, attempt.process)
        if target.port == 53 and target.address in context.fact(Names).resolvers:
            text = "it is the configured resolver: names were to be asked there"
            explanations.append(Explanation("configured-resolver", text, "resolv.conf, or the recorder's manifest"))
        finding = self.finding(
            *dict.fromkeys(places),
            title=f"{shown}/{target.transport}: {_times(len(blocked))} blocked, {judgement.mode or 'mode unknown'}",
            reason=f"The attempt did not get through: {judgement.why}.",
            identity=f"{target.transport} {names[0] if names else target.address} {target.port}",
            level=self._level(explanations, named=bool(names), address=target.address),
            explanations=explanations,
            program=context.fact(Processes).program(attempt.process),
            address=target.address,
            port=target.port,
            transport=target.transport,
            names=names,
            denial=judgement.mode,
            modes=sorted({verdict.mode or "unknown" for _, verdict in blocked}),
            attempts=tried,
            count=len(blocked),
        )
        finding.process, finding.t_ns = attempt.process, attempt.t_ns
        return finding

    def _judge_lookup(self, lookup: Lookup, view: RunView) -> Iterator[Finding]:
        if is_local_name(lookup.name) and lookup.name:
            return
        judgement = judge_lookup(lookup, view, view.answers_watched)
        if judgement.blocked is None:
            self.context.limit(
                "outcome-unknown", f"{lookup.name or 'a hidden name'}: {judgement.why}", where=lookup.where[0]
            )
        if not judgement.blocked:
            return
        context = self.context
        process = lookup.processes[0] if lookup.processes else None
        explanations = self._explain(None, None, [lookup.name], process)
        if "syscalls" not in lookup.asked and context.fact(Names).asked_elsewhere is None:
            explanations += unattributed(context.watched("syscalls", *_WORDS), context.fact(Contacts))
        asked = max(lookup.asked.values(), default=1)
        finding = self.finding(
            *lookup.where,
            title=f"{lookup.name or 'a name that the evidence hides'}: the name was never resolved, "
            f"{judgement.mode or 'mode unknown'}",
            reason=f"A program that cannot resolve a name gives up before it connects: {judgement.why}.",
            identity=f"name {lookup.name}",
            level=self._level(explanations, named=True, address=None),
            explanations=explanations,
            program=context.fact(Processes).program(process),
            host=lookup.name,
            denial=judgement.mode,
            attempts=asked,
            count=asked,
        )
        finding.process, finding.t_ns = process, lookup.t_ns
        yield finding

    def _proxied(self, proxied: Proxied) -> Finding:
        explanations = self._explain(proxied.proxy, None, [proxied.host.partition(":")[0]], proxied.process)
        finding = self.finding(
            *proxied.where,
            title=f"{proxied.host}: the proxy refused it with status {proxied.status}",
            reason="The connection to the proxy worked; the destination asked for through it was refused.",
            identity=f"proxy {proxied.host}",
            level=self._level(explanations, named=True, address=None),
            explanations=explanations,
            program=self.context.fact(Processes).program(proxied.process),
            host=proxied.host,
            denial="proxy",
        )
        finding.process, finding.t_ns = proxied.process, proxied.t_ns
        return finding

    def _counted(self, denial: Denial) -> Iterator[Finding]:
        line = denial.counted[0]
        number = sum(item.packets for item in denial.counted)
        yield self.finding(
            *denial.counted,
            title=f"{number} packets counted by a denying firewall rule, destinations unknown",
            reason="The rule's counter grew during the run while no log names the packets.",
            identity=f"counter {line.prefix}",
            level="info",
            denial="output-drop",
            count=number,
        )

    def _explain(
        self, address: str | None, port: int | None, names: list[str], process: str | None
    ) -> list[Explanation]:
        context = self.context
        found = context.fact(Explanations).of_destination(address or "0.0.0.0", port, names, process)  # noqa: S104
        if context.expectations is not None:
            entry = expected(context.expectations, [*names, *([address] if address else [])], port)
            if entry is not None:
                why = entry.why or f"it is listed as {entry.host}"
                found.append(Explanation("documented-host", why, context.expectations.source))
        return found

    def _level(self, explanations: list[Explanation], *, named: bool, address: str | None) -> Level:
        """Return the level: what was blocked decides, not that it was.

        A named host is an ordinary thing to ask for; it is only suspicious where expectations exist and leave it
        out. A bare address stays suspicious unless something explains it.
        """
        if named and self.context.expectations is None:
            return "info"
        if address is not None and scope_of(address) in ("metadata", "link-local"):
            return "info"
        return level_with(explanations)


def _times(number: int) -> str:
    return "one attempt" if number == 1 else f"{number} attempts"
