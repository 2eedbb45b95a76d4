"""egress.unexplained-host: a named host outside the expectations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.explain import Explanations, level_with
from mcpdetect.correlate.hosts import expected, is_local_name
from mcpdetect.correlate.names import Lookup, Names
from mcpdetect.correlate.processes import Processes
from mcpdetect.correlate.target import Proxied, Target
from mcpdetect.model.addresses import endpoint, scope_of
from mcpdetect.model.event import Event
from mcpdetect.model.place import Where
from mcpdetect.model.result import Finding

__all__ = ["EgressUnexplainedHost"]

_REMOTE = frozenset({"public", "private"})


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
                Need("syscalls", ("socket.send", "data:socket.send")),
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
        contacted: set[str] = set()
        for target in self.context.fact(Contacts).targets():
            if scope_of(target.address) in _REMOTE and (target.attempts or target.flows or target.packets):
                yield from self._judge_target(target, contacted)
        for proxied in self.context.fact(Contacts).proxied:
            yield from self._judge_proxied(proxied, contacted)
        names = self.context.fact(Names)
        for lookup in names.lookups.values():
            if lookup.name and lookup.name not in contacted and not is_local_name(lookup.name):
                yield from self._judge_lookup(lookup, contacted)
        hidden = names.lookups.get("")
        if hidden is not None:
            self.context.limit(
                "name-hidden", "a name was asked for that the evidence hides or cuts", where=hidden.where[0]
            )
        if names.overflow:
            self.context.limit("overflow", "more names than can be kept", count=names.overflow)

    def _judge_target(self, target: Target, contacted: set[str]) -> Iterator[Finding]:
        expectations = self.context.expectations
        names = self.context.fact(Names)
        found = [name.name for name in names.names_of(target.address, target.first_ns, claimed=True)]
        found = [name for name in dict.fromkeys(found) if not is_local_name(name)]
        if not found or expectations is None or target.port == 53:
            return
        contacted.update(found)
        entry = expected(expectations, [*found, target.address], target.port)
        if entry is not None:
            where = endpoint(found[0], target.port)
            self.context.limit("explained", f"{where} is documented: {entry.why or entry.host}", hides=False)
            return
        attempt = target.attempts[0] if target.attempts else None
        process = attempt.process if attempt else None
        places = [place for item in target.attempts for place in item.where[:1]] + [flow.where for flow in target.flows]
        places += [name.where for name in names.names_of(target.address, target.first_ns)][:1]
        yield self._finding(found, target.address, target.port, process, target.first_ns, places, target.sent)

    def _judge_lookup(self, lookup: Lookup, contacted: set[str]) -> Iterator[Finding]:
        expectations = self.context.expectations
        if expectations is None or lookup.types == ["PTR"]:
            return
        chain = self._chain(lookup)
        if contacted.intersection(chain):
            return
        if expected(expectations, [lookup.name], None) is not None:
            self.context.limit("explained", f"{lookup.name} was asked for and is documented", hides=False)
            return
        process = lookup.processes[0] if lookup.processes else None
        yield self._finding([lookup.name], None, None, process, lookup.t_ns, lookup.where, None)

    def _chain(self, lookup: Lookup) -> set[str]:
        """Return every name that shares an answered address with this one (aliases of one host)."""
        names = self.context.fact(Names)
        return {
            name.name
            for address in lookup.addresses
            for name in names.names_of(address, None)
            if name.name != lookup.name
        }

    def _judge_proxied(self, proxied: Proxied, contacted: set[str]) -> Iterator[Finding]:
        expectations = self.context.expectations
        host, _, port_text = proxied.host.partition(":")
        port = int(port_text) if port_text.isdigit() else None
        if expectations is None or not host or host in contacted:
            return
        contacted.add(host)
        entry = expected(expectations, [host], port)
        if entry is not None:
            self.context.limit("explained", f"{host} through a proxy is documented", hides=False)
            return
        yield self._finding([host], proxied.proxy, port, proxied.process, proxied.t_ns, proxied.where, None)

    def _finding(
        self,
        found: list[str],
        address: str | None,
        port: int | None,
        process: str | None,
        t_ns: int | None,
        places: list[Where],
        sent: bool | None,
    ) -> Finding:
        context = self.context
        name = found[0]
        explanations = context.fact(Explanations).of_destination(address or "0.0.0.0", port, found, process)  # noqa: S104
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
