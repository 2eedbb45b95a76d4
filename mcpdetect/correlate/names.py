"""Who does an address belong to, and when: names from answers, hosts files, TLS and HTTP."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from mcpdetect.contract import Fact
from mcpdetect.correlate.clock import later
from mcpdetect.correlate.ends import outward
from mcpdetect.model.addresses import canonical, is_remote
from mcpdetect.model.event import Event, FileChange, FileOpen, FileRead
from mcpdetect.model.net import DnsAnswer, DnsQuery, HttpRequest, NetFlow, QuicInitial, SocketConnect, TlsClientHello
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Channel

__all__ = ["MAX_NAMES", "MAX_PER_ADDRESS", "Lookup", "Name", "Names"]

MAX_NAMES = 100_000
"""Most distinct (address, name) pairs, and most distinct names asked for; more are counted as overflow."""

MAX_PER_ADDRESS = 64
"""Most names kept for one address; an address that more share is named all the same."""

_TOLERANCE_NS = 1_000_000_000
"""How much later than a contact an answer may be stamped and still explain it: resolvers log whole seconds."""

NameSource = Literal["dns", "hosts", "sni", "host-header"]


@dataclass(slots=True)
class Name:
    """One name of an address.

    Attributes:
        name: folded.
        source: ``dns`` (an answer, CNAME chains followed), ``hosts`` (a hosts file was read), and what the client
            itself claimed: ``sni``, ``host-header``.
        t_ns: when it became known; None where the evidence has no time.
        where: the evidence.
        client: who got the answer, where known.
    """

    name: str
    source: NameSource
    t_ns: int | None
    where: Where
    client: str | None = None


@dataclass(slots=True)
class Lookup:
    """Everything about one name that was asked for.

    Attributes:
        name: the name, ``""`` for questions whose name the evidence hides.
        asked: questions seen per channel.
        where: first question of each channel.
        t_ns: time of the first question.
        processes: who asked, where known.
        errors: errno of sends that failed, counted.
        rcodes: response codes of answers by channel.
        addresses: addresses answered.
        answered: channels that showed an answer saying that the name exists.
        policy: an answer came from the resolver's own configuration.
        servers: who was asked.
        types: record types asked for.
    """

    name: str
    asked: dict[Channel, int] = field(default_factory=dict)
    where: list[Where] = field(default_factory=list)
    t_ns: int | None = None
    last_ns: int | None = None
    processes: list[str] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    rcodes: dict[Channel, list[str]] = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)
    answered: list[Channel] = field(default_factory=list)
    policy: bool = False
    servers: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)

    @property
    def resolved(self) -> bool:
        """Whether some answer said that the name exists, with or without a record of the type asked for."""
        return bool(self.answered)


_NAME_SERVICES = frozenset(
    {
        "/var/run/nscd/socket",
        "/run/nscd/socket",
        "/var/run/.nscd_socket",
        "/run/systemd/resolve/io.systemd.Resolve",
        "/run/avahi-daemon/socket",
        "/var/run/avahi-daemon/socket",
    }
)
"""Sockets of daemons that look names up for others (nscd(8), nss-resolve(8), nss-mdns): what they were asked is in no
DNS buffer of the run."""

# nameserver 10.200.0.1
_NAMESERVER = re.compile(rb"(?m)^[ \t]*nameserver[ \t]+([0-9A-Fa-f:.]++(?:%[\w.-]++)?)")
# 203.0.113.10   vendor.test www.vendor.test # comment
_HOSTS_LINE = re.compile(rb"(?m)^[ \t]*([0-9A-Fa-f:.]++)[ \t]++([^#\n]++)")


class Names(Fact):
    """Names of addresses over time, and the fate of every name asked for.

    Attributes:
        lookups: by name; the key ``""`` gathers questions whose name is hidden.
        resolvers: addresses of the configured resolvers: declared, or read from resolv.conf.
        hosts_hidden: a hosts file was read, or opened, whose content is not in the evidence.
        hosts_changed: the run itself wrote the hosts file: its names prove nothing.
        resolvers_changed: the run itself wrote resolv.conf: what was read of it later names no resolver.
        unreadable_answers: answers that are in the evidence but cannot be read (cut, damaged).
        asked_elsewhere: a name service daemon was asked over a unix socket.
        overflow: names that found no room.
        first_dns_ns: time of the first question.
    """

    kinds: ClassVar[tuple[str, ...]] = (
        "dns.query",
        "dns.answer",
        "tls.client_hello",
        "quic.initial",
        "http.request",
        "file.open",
        "file.read",
        "file.change",
        "net.flow",
        "socket.connect",
    )

    def __init__(self, run: Run, *uses: Fact) -> None:
        super().__init__(run, *uses)
        self._names: dict[str, dict[tuple[str, NameSource], Name]] = {}
        self.lookups: dict[str, Lookup] = {}
        self.resolvers: set[str] = {canonical(address) for address in run.resolvers}
        self.overflow = 0
        self.hosts_hidden: Where | None = None
        self.hosts_changed: Where | None = None
        self.resolvers_changed: Where | None = None
        self._hosts_opened: dict[str | None, Where] = {}
        self._pairs = 0
        self.unreadable_answers = 0
        self.asked_elsewhere: Where | None = None
        self._local: set[str] = set()
        self.first_dns_ns: int | None = None

    def on_event(self, event: Event) -> None:
        """Learn names from one event."""
        if isinstance(event, DnsAnswer):
            self._answer(event)
        elif isinstance(event, DnsQuery):
            self._query(event)
        elif isinstance(event, FileRead):
            if event.path in ("/etc/hosts", "/etc/resolv.conf"):
                self._system_file(event)
        elif isinstance(event, FileOpen):
            if event.path == "/etc/hosts" and event.fd is not None and event.access in ("read", "readwrite", "unknown"):
                self._hosts_opened.setdefault(event.process, event.where)
        elif isinstance(event, FileChange):
            if event.ok and event.operation not in ("chmod", "chown"):
                if "/etc/hosts" in (event.path, event.target):
                    self.hosts_changed = self.hosts_changed or event.where
                elif "/etc/resolv.conf" in (event.path, event.target):
                    self.resolvers_changed = self.resolvers_changed or event.where
        elif isinstance(event, NetFlow):
            self._local.add(outward(event, self.resolvers).source)
        elif isinstance(event, SocketConnect):
            if event.ok and event.path in _NAME_SERVICES:
                self.asked_elsewhere = self.asked_elsewhere or event.where
        elif isinstance(event, TlsClientHello | QuicInitial):
            if event.sni and event.address and _canonical_or_none(event.sni) is None:
                self._add(event.address, event.sni.lower().rstrip("."), "sni", event)
        elif isinstance(event, HttpRequest) and event.host and event.address:
            host = _bare_host(event.host)
            if _canonical_or_none(host) is None:
                self._add(event.address, host, "host-header", event)

    def names_of(self, address: str, t_ns: int | None, *, claimed: bool = False) -> list[Name]:
        """Return the names that explain a contact with ``address`` at ``t_ns``, in the order learnt.

        Args:
            address: canonical address.
            t_ns: time of the contact; None takes names of any time.
            claimed: also names that only the client claimed (SNI, Host), whose time does not matter.
        """
        found = []
        for name in self._names.get(address, {}).values():
            if name.source in ("sni", "host-header"):
                if claimed:
                    found.append(name)
                continue
            if name.source == "hosts" and self.hosts_changed is not None:
                continue
            if not later(name.t_ns, t_ns, _TOLERANCE_NS) and not self._other_holder(name):
                found.append(name)
        return found

    def other_holders(self, address: str, t_ns: int | None) -> list[str]:
        """Return names under which others know ``address``: answers to other clients, or later than ``t_ns``."""
        own = {name.name for name in self.names_of(address, t_ns)}
        known = self._names.get(address, {}).values()
        return sorted({name.name for name in known if name.source == "dns"} - own)

    def _other_holder(self, name: Name) -> bool:
        return bool(name.client and self._local and name.client not in self._local and is_remote(name.client))

    def _add(self, address: str, name: str, source: NameSource, event: Event, client: str | None = None) -> None:
        if not name:
            return
        try:
            address = canonical(address)
        except ValueError:
            return
        known = self._names.get(address, {})
        key = (name, source)
        old = known.get(key)
        if old is not None:
            if old.client != client and client is not None and self._other_holder(old):
                old.client, old.t_ns, old.where = client, event.t_ns, event.where
            elif later(old.t_ns, event.t_ns):
                old.t_ns, old.where = event.t_ns, event.where
            return
        if self._pairs >= MAX_NAMES or len(known) >= MAX_PER_ADDRESS:
            self.overflow += 1
            return
        self._pairs += 1
        self._names.setdefault(address, known)[key] = Name(name, source, event.t_ns, event.where, client)

    def _lookup(self, name: str | None) -> Lookup:
        key = name or ""
        lookup = self.lookups.get(key)
        if lookup is None:
            if len(self.lookups) >= MAX_NAMES:
                self.overflow += 1
                return Lookup(key)
            lookup = self.lookups[key] = Lookup(key)
        return lookup

    def _query(self, event: DnsQuery) -> None:
        lookup = self._lookup(event.name)
        if event.seen_in not in lookup.asked:
            lookup.where.append(event.where)
        lookup.asked[event.seen_in] = lookup.asked.get(event.seen_in, 0) + 1
        if event.t_ns is not None:
            self.first_dns_ns = event.t_ns if self.first_dns_ns is None else min(self.first_dns_ns, event.t_ns)
            lookup.t_ns = event.t_ns if lookup.t_ns is None else min(lookup.t_ns, event.t_ns)
            lookup.last_ns = event.t_ns if lookup.last_ns is None else max(lookup.last_ns, event.t_ns)
        if event.process and event.process not in lookup.processes and len(lookup.processes) < 32:
            lookup.processes.append(event.process)
        if event.error:
            lookup.errors[event.error] = lookup.errors.get(event.error, 0) + 1
        if event.server and event.server not in lookup.servers and len(lookup.servers) < 32:
            lookup.servers.append(event.server)
        if event.type not in lookup.types and len(lookup.types) < 32:
            lookup.types.append(event.type)

    def _answer(self, event: DnsAnswer) -> None:
        if event.name and not event.records and event.seen_in == "syscalls":
            # its records lie beyond a cut
            self.unreadable_answers += event.rcode == "NOERROR" and not event.no_data
        if event.name is None and not event.records:
            self.unreadable_answers += 1
            return
        lookup = self._lookup(event.name)
        if not lookup.where:
            lookup.where.append(event.where)
        codes = lookup.rcodes.setdefault(event.seen_in, [])
        rcode = event.rcode or ("NOERROR" if event.records or event.no_data else "")
        if rcode and rcode not in codes:
            codes.append(rcode)
        lookup.policy = lookup.policy or event.source == "policy"
        if (rcode == "NOERROR" or event.records) and event.seen_in not in lookup.answered:
            lookup.answered.append(event.seen_in)
        aliases = [name for name in (event.name,) if name]
        for record in event.records:
            if record.type in ("CNAME", "HTTPS", "SVCB") and record.value not in aliases and record.value != ".":
                aliases.append(record.value)
            if record.type != "PTR" and record.name and record.name not in aliases:
                aliases.append(record.name)
        addresses = [r.value for r in event.records if r.type in ("A", "AAAA")]
        addresses += [hint for record in event.records for hint in record.hints]
        for address in addresses:
            if event.name and address not in lookup.addresses and len(lookup.addresses) < 256:
                lookup.addresses.append(address)
            for alias in aliases:
                self._add(address, alias, "dns", event, event.client)

    def hosts_unread(self) -> Where | None:
        """Return where a hosts file was opened of which no read was seen at all, None when every one was read."""
        return next(iter(self._hosts_opened.values()), None)

    def _system_file(self, event: FileRead) -> None:
        if event.path == "/etc/hosts" and event.error is None:
            self._hosts_opened.pop(event.process, None)
        if event.mapped or (event.cut and event.path == "/etc/hosts"):
            self.hosts_hidden = self.hosts_hidden or (event.where if event.path == "/etc/hosts" else None)
        if event.path == "/etc/resolv.conf":
            if self.resolvers_changed is not None:
                return
            for match in _NAMESERVER.finditer(event.data):
                self.resolvers.add(_canonical_or_none(match[1].decode("ascii")) or "")
            self.resolvers.discard("")
            return
        for match in _HOSTS_LINE.finditer(event.data):
            address = _canonical_or_none(match[1].decode("ascii"))
            for name in match[2].decode("utf-8", "replace").split() if address else ():
                self._add(address or "", name.lower().rstrip("."), "hosts", event)


def _canonical_or_none(text: str) -> str | None:
    try:
        return canonical(text)
    except ValueError:
        return None


def _bare_host(host: str) -> str:
    """Return the host of a Host header without its port, folded (RFC 9110 §7.2)."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")
