"""network.blocked: attempts that something denied, in any denial mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.denial import Denial, Judgement, RunView
from mcpdetect.correlate.explain import Explanations, level_with
from mcpdetect.correlate.hosts import expected, is_local_name
from mcpdetect.correlate.lookups import judge_lookup
from mcpdetect.correlate.names import Lookup, Names
from mcpdetect.correlate.processes import Processes
from mcpdetect.correlate.target import Attempt, Proxied, Target
from mcpdetect.model.addresses import endpoint, scope_of
from mcpdetect.model.event import Event
from mcpdetect.model.result import Explanation, Finding
from mcpdetect.model.vocabulary import Level

__all__ = ["NetworkBlocked"]

_CALLS = ("socket.open", "socket.connect", "socket.state", "socket.send")


class NetworkBlocked(Detector):
    """An attempt to reach the network that something denied."""

    spec: ClassVar[Spec] = Spec(
        id="network.blocked",
        version=1,
        claim="no attempt to reach the network was denied",
        kinds=("socket.connect",),
        facts=(Contacts, Denial, Names, Processes, Explanations),
        needs=(AnyOf("attempts and their results", Need("syscalls", _CALLS)),),
        blind_to=(
            "a datagram that is dropped on the way and to which no answer was due",
            "an attempt given up before its first retransmission",
            "what a program would have done had an earlier attempt worked",
        ),
    )

    def on_event(self, event: Event) -> Iterator[Finding]:
        """Everything is judged at the end, when the whole run is known."""
        return iter(())

    def finish(self) -> Iterator[Finding]:
        """Judge every attempt, every name asked for, and every request through a proxy."""
        contacts, denial = self.context.fact(Contacts), self.context.fact(Denial)
        view = denial.view(self.context.watched("packets", "net.flow"))
        for target in contacts.targets():
            if target.port == 53 and self._lookup_traffic(target):
                continue
            if scope_of(target.address) != "multicast":
                yield from self._judge_target(target, denial.judge(target, view), view)
        for lookup in self.context.fact(Names).lookups.values():
            yield from self._judge_lookup(lookup, view)
        for proxied in contacts.proxied:
            if proxied.status is not None and proxied.status in (403, 407, 451):
                yield self._proxied(proxied)
        if denial.counted and not any(item.attempts for item in contacts.targets()):
            yield from self._counted(denial)
        if contacts.unknown_destination:
            self.context.limit(
                "unknown-destination",
                "the fate of a connect or send whose destination is not in the evidence is unknown",
                where=contacts.unknown_destination[0],
                count=len(contacts.unknown_destination),
            )

    def _lookup_traffic(self, target: Target) -> bool:
        """Return whether this is the resolver's traffic, whose fate the names tell better; bare refusals stay."""
        lookups = self.context.fact(Names).lookups.values()
        return any(target.address in lookup.servers for lookup in lookups)

    def _judge_target(
        self, target: Target, judged: list[tuple[Attempt, Judgement]], view: RunView
    ) -> Iterator[Finding]:
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

    def _raced(self, target: Target, attempt: Attempt) -> bool:
        """Return whether another address of the same name won a race that this attempt lost (RFC 8305)."""
        names = self.context.fact(Names)
        own = {name.name for name in names.names_of(target.address, None)}
        for other in self.context.fact(Contacts).targets():
            if other is target or other.port != target.port:
                continue
            won = any(item.outcome == "established" and item.process == attempt.process for item in other.attempts)
            if won and own.intersection(name.name for name in names.names_of(other.address, None)):
                return True
        return False

    def _finding(self, target: Target, blocked: list[tuple[Attempt, Judgement]], tried: int) -> Finding:
        context = self.context
        attempt, judgement = blocked[0]
        names = [name.name for name in context.fact(Names).names_of(target.address, None)]
        where = endpoint(target.address, target.port)
        shown = f"{names[0]} ({where})" if names else where
        places = [place for item, verdict in blocked for place in (*item.where[:2], *verdict.where)]
        explanations = self._explain(target.address, target.port, names, attempt.process)
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
            count=len(blocked) + target.more_attempts,
        )
        finding.process, finding.t_ns = attempt.process, attempt.t_ns
        return finding

    def _judge_lookup(self, lookup: Lookup, view: RunView) -> Iterator[Finding]:
        if is_local_name(lookup.name) and lookup.name:
            return
        judgement = judge_lookup(lookup, view, self.context.watched("syscalls", "socket.receive"))
        if judgement.blocked is None:
            self.context.limit(
                "outcome-unknown", f"{lookup.name or 'a hidden name'}: {judgement.why}", where=lookup.where[0]
            )
        if not judgement.blocked:
            return
        context = self.context
        process = lookup.processes[0] if lookup.processes else None
        explanations = self._explain(None, None, [lookup.name], process)
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
