"""Values about contacts: an attempt, a request through a proxy, a destination with all that concerns it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mcpdetect.model.event import Event
from mcpdetect.model.net import FirewallDrop, NetFlow, NetPacket
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Outcome, RemoteSource, Transport

__all__ = ["ERRNO_OUTCOME", "Attempt", "Proxied", "Target"]

ERRNO_OUTCOME: dict[str, Outcome] = {
    "ECONNREFUSED": "refused",
    "ECONNRESET": "refused",
    "ENETUNREACH": "unreachable",
    "EHOSTUNREACH": "unreachable",
    "ENETDOWN": "unreachable",
    "EHOSTDOWN": "unreachable",
    "EACCES": "denied",
    "EPERM": "denied",
    "EINVAL": "denied",
    "ETIMEDOUT": "timed_out",
    "EADDRNOTAVAIL": "failed",
    "EAFNOSUPPORT": "failed",
    "EINPROGRESS": "in_progress",
    "EALREADY": "in_progress",
    "EAGAIN": "in_progress",
    "EINTR": "in_progress",
    "ERESTARTSYS": "in_progress",  # an interrupted connect goes on without its caller (POSIX connect())
    "ERESTARTNOINTR": "in_progress",
}
"""What an errno of connect(2), or of SO_ERROR, says about the attempt; see DESIGN §6 for what it says about denial."""


@dataclass(slots=True)
class Attempt:
    """One attempt to reach a destination, as system calls show it.

    Attributes:
        via: ``connect``; ``send`` for datagrams and sends without connect; ``accept`` for traffic on a connection that
            the other side opened.
        outcome, error: what the calls alone show, errno where there is one.
        late: the error came after the attempt had been pending (SO_ERROR, a later call), not at once.
        t_ns, settled_ns, closed_ns: when it was made, when a later call told its fate, and when its socket was closed.
        sent, sends, replies: bytes that left, sends that worked, receives with data.
        waited: a wait for it timed out.
        weak: it counts as established only because SO_ERROR was 0, which a socket still waiting says as well.
    """

    process: str | None
    transport: Transport | None
    address: str
    port: int | None
    via: Literal["connect", "send", "accept"]
    outcome: Outcome
    error: str | None
    t_ns: int | None
    where: list[Where]
    late: bool = False
    settled_ns: int | None = None
    closed_ns: int | None = None
    sent: int = 0
    sends: int = 0
    replies: int = 0
    failed_sends: int = 0
    waited: bool = False
    weak: bool = False
    remote_source: RemoteSource | None = None


@dataclass(slots=True)
class Proxied:
    """A request through an HTTP proxy; its destination is ``host``, not the proxy. ``status`` is the proxy's answer."""

    host: str
    method: str
    where: list[Where]
    process: str | None
    t_ns: int | None
    proxy: str | None
    status: int | None = None


@dataclass(slots=True)
class Target:
    """One destination: transport, address and port, with everything that concerns it.

    Attributes:
        attempts: the first attempts; ``later`` those beyond that did not come about, or not yet.
        more_attempts: attempts that are only counted; ``unjudged`` of them may have been denied.
        flows, packets, dropped: what the wire and the firewall show; ``answered`` echo replies came back.
    """

    transport: str
    address: str
    port: int | None
    attempts: list[Attempt] = field(default_factory=list)
    later: list[Attempt] = field(default_factory=list)
    more_attempts: int = 0
    unjudged: int = 0
    flows: list[NetFlow] = field(default_factory=list)
    more_flows: int = 0
    packets: list[NetPacket] = field(default_factory=list)
    more_packets: int = 0
    answered: int = 0
    dropped: list[FirewallDrop] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """How many attempts system calls show."""
        return len(self.attempts) + len(self.later) + self.more_attempts

    @property
    def first_ns(self) -> int | None:
        """The earliest time at which it was contacted."""
        events: list[Event] = [*self.flows, *self.packets]
        times = [item.t_ns for item in self.attempts] + [event.t_ns for event in events]
        return min((t_ns for t_ns in times if t_ns is not None), default=None)

    @property
    def sent(self) -> bool:
        """Whether anything certainly left for it: bytes of a send, or payload on the wire."""
        return any(item.sent for item in self.attempts) or any(
            flow.data_out or (flow.transport == "udp" and flow.packets_out) for flow in self.flows
        )
