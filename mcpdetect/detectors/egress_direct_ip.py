"""egress.direct-ip: traffic to an address that no name explains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.attribution import unattributed
from mcpdetect.correlate.clock import later
from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.explain import Explanations, level_with
from mcpdetect.correlate.hosts import expected
from mcpdetect.correlate.intents import Intent, intents
from mcpdetect.correlate.names import Name, Names
from mcpdetect.correlate.processes import Processes
from mcpdetect.correlate.target import Target
from mcpdetect.model.addresses import endpoint, scope_of
from mcpdetect.model.event import Event
from mcpdetect.model.place import Where
from mcpdetect.model.result import Explanation, Finding

__all__ = ["EgressDirectIp"]

_WIRE = ("net.flow", "net.packet")
_CALLS = ("socket.open", "socket.connect", "socket.send")
_SKIPPED = frozenset({"loopback", "unspecified", "multicast", "link-local", "metadata"})


class EgressDirectIp(Detector):
    """Traffic to an IP address that no name explains."""

    spec: ClassVar[Spec] = Spec(
        id="egress.direct-ip",
        version=1,
        claim="no traffic to an address without a name was seen or tried",
        kinds=("socket.connect",),
        facts=(Contacts, Names, Processes, Explanations),
        # A capture alone shows what left, not what was tried: a local filter or a missing route leaves no packet.
        needs=(
            AnyOf("contacts, tried or made", Need("syscalls", (*_CALLS, "process.exec_failed"))),
            AnyOf("the wire", Need("packets", _WIRE)),
        ),
        blind_to=(
            "an address whose name was looked up only to cover the contact",
            "a relay: a proxy, an ssh jump host or a service with a name that forwards to a bare address",
            "sockets that are not IP (vsock, unix sockets of a helper), which other checks look at",
            "what a process does that neither the tracer nor the capture covers",
        ),
        technique="T1095",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._servers: set[str] | None = None

    def on_event(self, event: Event) -> Iterator[Finding]:
        """Everything is judged at the end, when all names are known."""
        return iter(())

    def finish(self) -> Iterator[Finding]:
        """Judge every destination."""
        contacts = self.context.fact(Contacts)
        for target in contacts.targets():
            scope = scope_of(target.address)
            if scope in ("metadata", "link-local"):
                where = endpoint(target.address, target.port)
                self.context.limit("other-class", f"{where} was contacted; {scope} is no internet egress", hides=False)
            elif scope not in _SKIPPED and not self._inbound(target):
                yield from self._judge(target)
        if contacts.unknown_destination:
            self.context.limit(
                "unknown-destination",
                "a connect or send went to a destination that the evidence does not show",
                where=contacts.unknown_destination[0],
                count=len(contacts.unknown_destination),
                hides=not self.context.watched("packets", *_WIRE),
            )
        for intent in intents(contacts, self.context.fact(Processes)):
            if scope_of(intent.address) not in _SKIPPED:
                yield self._intended(intent)
        if contacts.raw_socket is not None:
            self.context.limit(
                "raw-socket",
                "a raw or packet socket was made; what it sends names no destination in a call",
                where=contacts.raw_socket,
                hides=not self.context.watched("packets", *_WIRE),
            )
        if contacts.overflow:
            self.context.limit("overflow", "more destinations than can be kept", count=contacts.overflow)

    def _intended(self, intent: Intent) -> Finding:
        """State a contact with a bare address that a proxy was asked for, or a program that never started."""
        explanations = self._explain(intent.address, intent.port, intent.process, intent.t_ns)
        finding = self.finding(
            intent.where,
            title=f"{intent.what} {endpoint(intent.address, intent.port)}, an address no name explains",
            reason=intent.why,
            identity=f"{intent.how} {endpoint(intent.address, intent.port)}",
            level=level_with(explanations),
            explanations=explanations,
            program=self.context.fact(Processes).program(intent.process),
            address=intent.address,
            port=intent.port,
            outcome=intent.how,
        )
        finding.process, finding.t_ns = intent.process, intent.t_ns
        return finding

    def _inbound(self, target: Target) -> bool:
        return bool(target.attempts) and all(attempt.via == "accept" for attempt in target.attempts)

    def _judge(self, target: Target) -> Iterator[Finding]:
        if not _places(target):
            return
        known = self._own_names(target)
        if known:
            if all(name.source == "hosts" for name in known) and not self.context.watched("syscalls", "file.change"):
                where = endpoint(target.address, target.port)
                detail = f"{where}: its only name is in a hosts file, and whether the run changed it was not watched"
                self.context.limit("names-unknown", detail, where=known[0].where)
            return
        if target.port == 53 and self._is_resolver(target):
            return
        doubt = self._doubt(target)
        if doubt is not None:
            what, detail = doubt
            self.context.limit(what, f"{endpoint(target.address, target.port)}: {detail}", where=_places(target)[0])
            return
        yield self._finding(target)

    def _own_names(self, target: Target) -> list[Name]:
        """Return the names that explain a contact, without those that only others asked for.

        Who asked is told by the client's address where the wire shows ours; else by the calls, where they would
        have shown the question.
        """
        names = self.context.fact(Names)
        found = names.names_of(target.address, target.first_ns)
        if target.flows or names.asked_elsewhere is not None:
            return found
        if not self.context.watched("syscalls", "socket.connect", "socket.send", "data:socket.send"):
            return found
        lookups = (names.lookups.get(name.name) for name in found)
        asked = any(lookup is not None and "syscalls" in lookup.asked for lookup in lookups)
        if asked or not all(name.client for name in found):
            return found
        return [name for name in found if name.source != "dns"]

    def _is_resolver(self, target: Target) -> bool:
        """Return whether this is the configured resolver, as declared, read from resolv.conf, or as good as known.

        Without either, a server that was asked for names is taken for it. That hides a foreign one, so no absence
        is claimed then, unless the one server asked is the one whose log is in the evidence.
        """
        names = self.context.fact(Names)
        if names.resolvers:
            known = target.address in names.resolvers
            if known and not self.context.run.resolvers and not self.context.watched("syscalls", "file.change"):
                detail = "the configured resolver is read from a file, and whether the run changed it was not watched"
                self.context.limit("resolver-unknown", detail)
            return known
        if self._servers is None:
            self._servers = {server for lookup in names.lookups.values() for server in lookup.servers}
        asked = target.address in self._servers
        if asked:
            logged = self._servers == {target.address} and all(
                "dns" in lookup.asked for lookup in names.lookups.values() if lookup.servers
            )
            self.context.limit(
                "resolver-unknown",
                f"the configured resolver is not in the evidence; {target.address}, which was asked for names, "
                "is taken for it",
                hides=not logged,
            )
        return asked

    def _doubt(self, target: Target) -> tuple[str, str] | None:
        """Return why the missing name may only be missing from the evidence, None when names were watched."""
        context, names = self.context, self.context.fact(Names)
        claimed = names.names_of(target.address, None, claimed=True)
        hint = f"; the client itself named {claimed[0].name}" if claimed else ""
        logged = context.watched("dns", "dns.answer") or context.watched("packets", "dns.answer")
        called = (
            context.watched("syscalls", "socket.send", "socket.receive")
            and not names.unreadable_answers
            and names.asked_elsewhere is None
        )
        if not logged and not called:
            return "names-unknown", f"no evidence of name resolution covers this run{hint}"
        unread = None if context.watched("syscalls", "file.read") else names.hosts_unread()
        if names.hosts_hidden is not None or unread is not None:
            return "names-unknown", f"a hosts file was read whose content the evidence does not show{hint}"
        unclaimed = not target.attempts and not context.watched("packets", "http.request", "tls.client_hello")
        if (claimed or unclaimed) and not context.watched("syscalls", "file.read"):
            return "names-unknown", f"a hosts file may name it, and reads of files were not watched{hint}"
        first, begun = target.first_ns, self._names_begin()
        if not called and later(begun, first):
            return "names-late", f"it was contacted before the evidence of names begins{hint}"
        if names.overflow:
            return "overflow", "more names than can be kept"
        return None

    def _names_begin(self) -> int | None:
        begins = [
            item.begin_ns
            for item in self.context.observations()
            if item.channel in ("dns", "packets") and item.watches.get("dns.answer") and item.clock == "epoch"
        ]
        return min((begin for begin in begins if begin is not None), default=None)

    def _finding(self, target: Target) -> Finding:
        context = self.context
        names, processes = context.fact(Names), context.fact(Processes)
        attempt = target.attempts[0] if target.attempts else None
        process = attempt.process if attempt else None
        where = endpoint(target.address, target.port)
        explanations = self._explain(target.address, target.port, process, target.first_ns)
        if attempt is None:
            explanations += unattributed(context.watched("syscalls", *_CALLS), context.fact(Contacts))
        reached = any(item.outcome == "established" and not item.weak for item in target.attempts) or target.sent
        claimed = [name.name for name in names.names_of(target.address, None, claimed=True)]
        others = names.other_holders(target.address, target.first_ns)
        verb = "Data or a connection reached" if reached else "A contact was tried with"
        reason = (
            f"No answer, hosts file or other name in this run explains {target.address}. Programs that talk to a "
            "service ask for its name; an address without one is hard-coded or came by another road."
        )
        if claimed:
            reason += f" The client itself claimed the name {claimed[0]}, which proves nothing."
        if others:
            reason += f" Others know the address as {', '.join(others[:3])}."
        finding = self.finding(
            *_places(target),
            title=f"{verb} {where}/{target.transport}, an address no name explains",
            reason=reason,
            identity=f"{target.transport} {where}",
            level=level_with(explanations),
            explanations=explanations,
            program=processes.program(process),
            address=target.address,
            port=target.port,
            transport=target.transport,
            outcome=_outcome(target),
            attempts=target.tried,
            flows=len(target.flows) + target.more_flows,
            sent=sum(item.sent for item in target.attempts) or sum(flow.bytes_out for flow in target.flows),
            claimed=claimed,
        )
        finding.process = process
        finding.t_ns = target.first_ns
        return finding

    def _explain(self, address: str, port: int | None, process: str | None, t_ns: int | None) -> list[Explanation]:
        context = self.context
        explanations = context.fact(Explanations).of_destination(address, port, [], process, t_ns)
        if context.expectations is not None:
            entry = expected(context.expectations, [address], port)
            if entry is not None:
                why = entry.why or f"it is listed as {entry.host}"
                explanations.append(Explanation("documented-host", why, context.expectations.source))
        return explanations


def _places(target: Target) -> list[Where]:
    places = [place for attempt in target.attempts for place in attempt.where[:2]]
    places += [flow.where for flow in target.flows]
    places += [packet.where for packet in target.packets]
    places += [line.where for line in target.dropped]
    return list(dict.fromkeys(places))


def _outcome(target: Target) -> str:
    """Return the best outcome among attempts; what the wire shows where there are none."""
    if any(attempt.outcome == "established" for attempt in target.attempts):
        return "established"
    if target.attempts:
        return target.attempts[0].outcome
    if any(flow.syn_ack or flow.packets_in for flow in target.flows):
        return "established"
    if target.dropped and not target.flows:
        return "denied"
    return "unanswered"
