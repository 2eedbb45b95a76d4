"""egress.unexplained-host: a named host outside the expectations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.correlate.attribution import unattributed
from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.explain import Explanations, level_with
from mcpdetect.correlate.hosts import expected, host_and_port, is_local_name, literal_address
from mcpdetect.correlate.names import Lookup, Names
from mcpdetect.correlate.processes import Processes
from mcpdetect.correlate.target import Proxied, Target
from mcpdetect.model.addresses import endpoint, scope_of
from mcpdetect.model.event import Event
from mcpdetect.model.place import Where
from mcpdetect.model.result import Explanation, Finding

__all__ = ["EgressUnexplainedHost"]

_REMOTE = frozenset({"public", "private"})
_CALLS = ("socket.open", "socket.connect", "socket.send", "data:socket.send")
# A question is read out of what is sent on a socket whose other end a connect, or the send itself, names.
_QUESTIONS = ("socket.connect", "socket.send", "data:socket.send")


class EgressUnexplainedHost(Detector):
    """A named host that the server does not document."""

    spec: ClassVar[Spec] = Spec(
        id="egress.unexplained-host",
        version=1,
        claim="every host asked for or contacted by name is in the expectations",
        kinds=("dns.query",),
        facts=(Contacts, Names, Processes, Explanations),
        requires=("expectations",),
        needs=(
            AnyOf(
                "names asked for",
                Need("packets", ("dns.query", "tls.client_hello")),
                Need("dns", ("dns.query",)),
                Need("syscalls", _QUESTIONS),
            ),
            AnyOf(
                "names told to servers in the clear",
                Need("packets", ("tls.client_hello", "http.request")),
                Need("syscalls", _QUESTIONS),
            ),
            AnyOf(
                "answers, which give addresses their names",
                Need("packets", ("dns.answer",)),
                Need("dns", ("dns.answer",)),
                Need("syscalls", ("socket.connect", "socket.receive")),
            ),
            AnyOf(
                "contacts",
                Need("packets", ("net.flow",)),
                Need("syscalls", ("socket.open", "socket.connect", "socket.send")),
            ),
        ),
        blind_to=(
            "a documented host that is only the front of another (shared addresses, fronting, encrypted hello)",
            "names asked for through DNS over HTTPS or by a service of the machine outside the sandbox",
            "a bare address, which egress.direct-ip judges",
        ),
        technique="T1071",
    )

    def on_event(self, event: Event) -> Iterator[Finding]:
        """Everything is judged at the end, when all names are known."""
        return iter(())

    def finish(self) -> Iterator[Finding]:
        """Judge every name that was contacted, then every name that was only asked for."""
        contacted: set[str] = set()  # names already reported, or explained, through a contact of their own
        for target in self.context.fact(Contacts).targets():
            if scope_of(target.address) in _REMOTE and (target.attempts or target.flows or target.packets):
                yield from self._judge_target(target, contacted)
        for proxied in self.context.fact(Contacts).proxied:
            yield from self._judge_proxied(proxied, contacted)
        names = self.context.fact(Names)
        for lookup in names.lookups.values():
            if lookup.name and lookup.name not in contacted and not is_local_name(lookup.name):
                yield from self._judge_lookup(lookup)
        hidden = names.lookups.get("")
        if hidden is not None:
            self.context.limit(
                "name-hidden", "a name was asked for that the evidence hides or cuts", where=hidden.where[0]
            )
        contacts = self.context.fact(Contacts)
        if names.overflow or contacts.overflow:
            self.context.limit(
                "overflow", "more names or destinations than can be kept", count=names.overflow + contacts.overflow
            )
        if not self.context.watched("syscalls", *_QUESTIONS) and not self._open(names, contacts):
            self.context.limit(
                "attempts-unseen",
                "a question that a filter or a missing route stops at its sender is on no wire and in no log; nothing "
                "in the evidence shows that this run's network let questions out",
            )

    def _open(self, names: Names, contacts: Contacts) -> bool:
        """Return whether the network let something out: a name was answered, or a packet came back."""
        if self.context.run.mode == "denied":
            return False
        answered = any(lookup.answered for lookup in names.lookups.values())
        return answered or any(flow.packets_in for target in contacts.targets() for flow in target.flows)

    def _judge_target(self, target: Target, contacted: set[str]) -> Iterator[Finding]:
        expectations = self.context.expectations
        names = self.context.fact(Names)
        known = [name.name for name in names.names_of(target.address, target.first_ns)]
        every = [name.name for name in names.names_of(target.address, target.first_ns, claimed=True)]
        own = [name for name in dict.fromkeys(known) if not is_local_name(name)]
        proved = set(known)
        claimed = [name for name in dict.fromkeys(every) if name not in proved and not is_local_name(name)]
        if not (own or claimed) or expectations is None or target.port == 53:
            return
        # Names by answers decide; a name that the client only claims (SNI, Host) excuses nothing, but may accuse.
        entry = expected(expectations, [*(own or claimed), target.address], target.port)
        strange = [name for name in claimed if expected(expectations, [name, target.address], target.port) is None]
        if entry is not None and not strange:
            where = endpoint((own or claimed)[0], target.port)
            self.context.limit("explained", f"{where} is documented: {entry.why or entry.host}", hides=False)
            contacted.update(name for name in own if expected(expectations, [name], None) is not None)
            return
        found = own + claimed if entry is None else strange
        contacted.update(found)
        attempt = target.attempts[0] if target.attempts else None
        process = attempt.process if attempt else None
        places = [place for item in target.attempts for place in item.where[:1]] + [flow.where for flow in target.flows]
        places += [name.where for name in names.names_of(target.address, target.first_ns)][:1]
        strangers = self._strangers(bool(target.attempts))
        yield self._finding(
            found, target.address, target.port, process, target.first_ns, places, target.sent, strangers
        )

    def _strangers(self, asked_by_calls: bool) -> list[Explanation]:
        """Return why something may not be the server's: no call of the run asked for it."""
        if asked_by_calls or self.context.fact(Names).asked_elsewhere is not None:
            return []
        return unattributed(self.context.watched("syscalls", *_CALLS), self.context.fact(Contacts))

    def _judge_lookup(self, lookup: Lookup) -> Iterator[Finding]:
        expectations = self.context.expectations
        if expectations is None or (not lookup.asked and self._alias(lookup)):
            return
        if expected(expectations, [lookup.name], None) is not None:
            self.context.limit("explained", f"{lookup.name} was asked for and is documented", hides=False)
            return
        process = lookup.processes[0] if lookup.processes else None
        strangers = self._strangers("syscalls" in lookup.asked)
        yield self._finding([lookup.name], None, None, process, lookup.t_ns, lookup.where, None, strangers)

    def _alias(self, lookup: Lookup) -> bool:
        """Return whether a name that nobody asked for shares an address with one that was: a step of its chain."""
        names = self.context.fact(Names)
        return any(
            name.name in names.lookups and names.lookups[name.name].asked
            for address in lookup.addresses
            for name in names.names_of(address, None)
        )

    def _judge_proxied(self, proxied: Proxied, contacted: set[str]) -> Iterator[Finding]:
        expectations = self.context.expectations
        host, port = host_and_port(proxied.host)
        host = host.rstrip(".")
        if expectations is None or not host or host in contacted or literal_address(host) is not None:
            return
        if is_local_name(host):
            return
        contacted.add(host)
        entry = expected(expectations, [host], port)
        if entry is not None:
            self.context.limit("explained", f"{host} through a proxy is documented", hides=False)
            return
        yield self._finding([host], proxied.proxy, port, proxied.process, proxied.t_ns, proxied.where, None, [])

    def _finding(
        self,
        found: list[str],
        address: str | None,
        port: int | None,
        process: str | None,
        t_ns: int | None,
        places: list[Where],
        sent: bool | None,
        strangers: list[Explanation],
    ) -> Finding:
        context = self.context
        name = found[0]
        explanations = context.fact(Explanations).of_destination(address or "0.0.0.0", port, found, process, t_ns)  # noqa: S104
        explanations += strangers
        what = "was asked for" if sent is None else "was sent data" if sent else "was contacted"
        via = f" at {endpoint(address, port)}" if address else ""
        source = context.expectations.source if context.expectations else ""
        finding = self.finding(
            *dict.fromkeys(places),
            title=f"{name}{via} {what}, and nothing documents it",
            reason=(
                f"The expectations ({source}) do not list {' or '.join(found[:4])}. A documented server has no "
                "reason to ask for a host that its documentation leaves out."
            ),
            identity=name,
            level=level_with(explanations),
            explanations=explanations,
            program=context.fact(Processes).program(process),
            host=name,
            names=found,
            address=address,
            port=port,
        )
        finding.process = process
        finding.t_ns = t_ns
        return finding
