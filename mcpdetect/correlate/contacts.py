"""Every contact with the world outside: attempts seen by system calls, flows seen on the wire, joined by destination.

An attempt (a program asked for it), a connection (it came about) and a transfer (bytes left) are three things and
stay three things here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mcpdetect.contract import Fact
from mcpdetect.correlate.ends import OwnEnds, outward
from mcpdetect.correlate.target import ERRNO_OUTCOME, Attempt, Proxied, Target
from mcpdetect.model.addresses import is_remote, scope_of
from mcpdetect.model.event import Event
from mcpdetect.model.net import (
    FirewallDrop,
    HttpRequest,
    NetFlow,
    NetPacket,
    SocketConnect,
    SocketOpen,
    SocketReceive,
    SocketSend,
    SocketState,
)
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Outcome

__all__ = ["MAX_KEPT", "MAX_TARGETS", "Contacts"]

MAX_TARGETS = 50_000
"""Most distinct destinations kept; more are counted in ``Contacts.overflow``."""
MAX_KEPT = 64
"""Most attempts and flows kept in full per destination; further ones are only counted."""

_NO_ATTEMPT = frozenset({"EFAULT", "EBADF", "ENOTSOCK", "EISCONN", "EPROTOTYPE", "ENOENT"})  # connect(2): not tried


class Contacts(Fact):
    """All destinations outside this machine that the run tried or reached.

    Attributes:
        proxied: requests through HTTP proxies.
        unknown_destination: connects and sends whose destination is not in the evidence.
        raw_socket: first raw or packet socket: what goes through it names no destination in a call.
        overflow: destinations and proxied requests that found no room.
        udp_denied: a datagram send met EPERM.
    """

    kinds: ClassVar[tuple[str, ...]] = (
        "socket.open",
        "socket.connect",
        "socket.state",
        "socket.send",
        "socket.receive",
        "http.request",
        "net.flow",
        "net.packet",
        "firewall.drop",
    )

    def __init__(self, run: Run, *uses: Fact) -> None:
        super().__init__(run, *uses)
        self._targets: dict[tuple[str, str, int | None], Target] = {}
        self._live: dict[str, Attempt] = {}
        self._datagrams: dict[tuple[str, str, int | None], Attempt] = {}
        self._datagram_keys: dict[str, list[tuple[str, str, int | None]]] = {}
        self._proxying: dict[str, Proxied] = {}
        self._ends = OwnEnds()
        self.proxied: list[Proxied] = []
        self.unknown_destination: list[Where] = []
        self.raw_socket: Where | None = None
        self.overflow = 0
        self.udp_denied = False

    def on_event(self, event: Event) -> None:
        """Learn from one event."""
        if isinstance(event, SocketSend):
            self._send(event)
        elif isinstance(event, SocketReceive):
            self._receive(event)
        elif isinstance(event, SocketState):
            self._state(event)
        elif isinstance(event, SocketConnect):
            self._connect(event)
        elif isinstance(event, SocketOpen):
            self._open(event)
        elif isinstance(event, NetFlow):
            self._flow(event)
        elif isinstance(event, NetPacket):
            self._packet(event)
        elif isinstance(event, HttpRequest):
            self._http(event)
        elif isinstance(event, FirewallDrop) and event.address and event.action != "accept":
            target = self._target(event.transport or "ip", event.address, event.port)
            if target is not None and len(target.dropped) < MAX_KEPT:
                target.dropped.append(event)

    def targets(self) -> Iterator[Target]:
        """Yield every destination, in the order first met; to be asked when every event was read."""
        self._join_unknown()
        yield from self._ends.outside(self._targets.values())

    def _join_unknown(self) -> None:
        """Give attempts on sockets of unknown make to the one transport by which the wire knows their destination."""
        for address, port in [(address, port) for kind, address, port in self._targets if kind == "unknown"]:
            known = [kind for kind in ("tcp", "udp") if (kind, address, port) in self._targets]
            if len(known) == 1:
                lost = self._targets.pop(("unknown", address, port))
                target = self._targets[(known[0], address, port)]
                for attempt in (*lost.attempts, *lost.later):
                    attempt.transport = "tcp" if known[0] == "tcp" else "udp"
                    self._put(target, attempt)
                target.more_attempts += lost.more_attempts
                target.unjudged += lost.unjudged

    def _target(self, transport: str, address: str, port: int | None) -> Target | None:
        """Return the record of a destination outside this machine, None for one inside or when there is no room."""
        key = (transport, address, port if transport in ("tcp", "udp", "unknown") else None)
        target = self._targets.get(key)
        if target is None:
            if not is_remote(address):
                return None
            if len(self._targets) >= MAX_TARGETS:
                self.overflow += 1
                return None
            target = self._targets[key] = Target(*key)
        return target

    def _keep(self, attempt: Attempt) -> None:
        target = self._target(attempt.transport or "unknown", attempt.address, attempt.port)
        if target is not None:
            self._put(target, attempt)

    def _put(self, target: Target, attempt: Attempt) -> None:
        if len(target.attempts) < MAX_KEPT:
            target.attempts.append(attempt)
            return
        # What came about is only counted; what is still open, or failed, stays to be judged.
        kept = [item for item in target.later if item.outcome != "established"]
        target.more_attempts += len(target.later) - len(kept)
        target.later = kept
        if len(kept) < MAX_KEPT:
            kept.append(attempt)
        else:
            target.more_attempts += 1
            target.unjudged += 1

    def _open(self, event: SocketOpen) -> None:
        raw = event.family == "packet" or (event.type == "raw" and event.family in ("inet", "inet6"))
        if raw and event.ok:
            self.raw_socket = self.raw_socket or event.where

    def _connect(self, event: SocketConnect) -> None:
        if event.address is None:
            hidden = event.family in ("", "inet", "inet6") and event.error not in (*_NO_ATTEMPT, "EINVAL")
            if hidden and event.transport not in ("unix", "netlink", "vsock"):
                self.unknown_destination.append(event.where)
            return
        live = self._live.get(event.socket or "")
        same = live is not None and live.via == "connect" and (live.address, live.port) == (event.address, event.port)
        if live is not None and same and live.outcome in ("in_progress", "unknown"):
            # the second connect of a non-blocking socket reports the first one's fate (connect(2))
            self._settle(live, "EISCONN" if event.ok else event.error, event)
            return
        if event.error in _NO_ATTEMPT or not is_remote(event.address):
            return
        if event.transport == "udp" and (event.error is None or not event.port):
            return  # a datagram connect sends nothing: getaddrinfo sorts addresses with it (RFC 6724)
        outcome: Outcome = "established" if event.ok else ERRNO_OUTCOME.get(event.error or "", "unknown")
        if event.error is None and event.result is None:
            outcome = "in_progress"  # interrupted, or cut by the end of the program
        attempt = Attempt(
            event.process,
            event.transport,
            event.address,
            event.port,
            "connect",
            outcome,
            event.error,
            event.t_ns,
            [event.where],
        )
        if event.socket is not None:
            self._live[event.socket] = attempt
        self._keep(attempt)

    def _settle(self, attempt: Attempt, status: str | None, event: Event, *, weak: bool = False) -> None:
        """Apply a later word about a pending attempt; ``status`` is an errno name, ``0`` or EISCONN for success."""
        if status in ("0", "EISCONN") and not weak:
            attempt.weak = False
        if attempt.outcome not in ("in_progress", "unknown"):
            return
        if status in ("0", "EISCONN"):
            attempt.outcome, attempt.error, attempt.weak = "established", None, weak
        elif status is not None and status not in ("EINPROGRESS", "EALREADY", "EAGAIN", "EINTR", "ENOTCONN"):
            attempt.outcome, attempt.error = ERRNO_OUTCOME.get(status, "failed"), status
        else:
            return
        attempt.late, attempt.settled_ns = True, event.t_ns
        attempt.where.append(event.where)

    def _state(self, event: SocketState) -> None:
        socket = event.socket or ""
        attempt = self._live.get(socket)
        if event.source == "close":
            if attempt is not None:
                attempt.closed_ns = event.t_ns
                del self._live[socket]
            for key in self._datagram_keys.pop(socket, ()):
                self._datagrams.pop(key, None)
            self._proxying.pop(socket, None)
        elif event.source == "poll" and event.status == "timeout":
            for waiting in (attempt, *(self._datagrams.get(key) for key in self._datagram_keys.get(socket, ()))):
                if waiting is not None:
                    waiting.waited = True
        elif attempt is not None and event.source in ("so_error", "peer"):
            # a socket that still waits has no error either: only a byte exchanged, or its peer's name, proves more
            self._settle(attempt, event.status, event, weak=event.source == "so_error")

    def _send(self, event: SocketSend) -> None:
        attempt = self._live.get(event.socket or "")
        if attempt is not None and event.transport != "udp":
            if event.ok:
                self._settle(attempt, "0", event)
                attempt.sent += event.size or 0
                attempt.sends += 1
            elif event.error not in ("EAGAIN", "EINTR", "ENOTCONN", "EPIPE"):
                self._settle(attempt, event.error, event)
            return
        if event.address is None:
            if event.transport in ("tcp", "udp") and event.path is None and event.error not in ("ENOTCONN", "EPIPE"):
                self.unknown_destination.append(event.where)
            return
        if not is_remote(event.address):
            return
        if event.transport == "tcp":
            self._send_without_connect(event, event.address)
        else:
            self._datagram(event, event.address)

    def _send_without_connect(self, event: SocketSend, address: str) -> None:
        """TCP data to a destination no connect named: MSG_FASTOPEN, an accepted or an inherited connection."""
        inbound = event.remote_source == "accept"
        outcome: Outcome = "established" if event.ok else ERRNO_OUTCOME.get(event.error or "", "unknown")
        attempt = Attempt(
            event.process,
            event.transport,
            address,
            event.port,
            "accept" if inbound else "send",
            outcome,
            event.error,
            event.t_ns,
            [event.where],
            sent=event.size or 0 if event.ok else 0,
            sends=int(event.ok),
            remote_source=event.remote_source,
        )
        if event.socket is not None:
            self._live[event.socket] = attempt
        self._keep(attempt)

    def _datagram(self, event: SocketSend, address: str) -> None:
        key = (event.socket or str(event.process), address, event.port)
        attempt = self._datagrams.get(key)
        if attempt is None:
            attempt = Attempt(
                event.process,
                event.transport or "udp",
                address,
                event.port,
                "send",
                "unknown",
                None,
                event.t_ns,
                [],
                remote_source=event.remote_source,
            )
            if len(self._datagrams) < MAX_TARGETS:
                self._datagrams[key] = attempt
                self._datagram_keys.setdefault(key[0], []).append(key)
            self._keep(attempt)
        if event.ok:
            attempt.sends += 1
            attempt.sent += event.size or 0
            attempt.outcome = "unanswered" if attempt.outcome in ("unknown", "in_progress") else attempt.outcome
        elif event.error is not None and event.error not in ("EAGAIN", "EINTR"):
            attempt.failed_sends += 1
            if attempt.error is None:
                attempt.error = event.error
                attempt.outcome = ERRNO_OUTCOME.get(event.error, "failed")
            self.udp_denied = self.udp_denied or event.error == "EPERM"
        if len(attempt.where) < 8:
            attempt.where.append(event.where)

    def _receive(self, event: SocketReceive) -> None:
        attempt = self._live.get(event.socket or "")
        if (attempt is None or attempt.transport == "udp") and event.address is not None:
            attempt = self._datagrams.get((event.socket or str(event.process), event.address, event.port), attempt)
        if attempt is None and event.address is None:
            # recvfrom(3, "ping\n", 64, 0, NULL, NULL): whoever it is from, one of those that the socket wrote to
            keys = self._datagram_keys.get(event.socket or "", ())
            for key in keys if event.ok and event.size and len(keys) > 1 else ():
                self._datagrams[key].replies += 1
            attempt = self._datagrams.get(keys[0]) if len(keys) == 1 else None
        if attempt is None:
            return
        if event.error is not None:
            self._late_error(attempt, event)
            return
        if not event.ok or not event.size:
            return
        if attempt.via == "connect" and attempt.transport != "udp":
            self._settle(attempt, "0", event)
        attempt.replies += 1
        if attempt.outcome == "unanswered":
            attempt.outcome = "established"
        proxied = self._proxying.pop(event.socket or "", None)
        # HTTP/1.1 403 Forbidden
        if proxied is not None and event.data[:5] == b"HTTP/" and event.data[9:12].isdigit():
            proxied.status = int(event.data[9:12])
            proxied.where.append(event.where)

    def _late_error(self, attempt: Attempt, event: SocketReceive) -> None:
        """Apply an error that a receive brings: it is the pending error of the socket (tcp(7), udp(7))."""
        if ERRNO_OUTCOME.get(event.error or "", "in_progress") == "in_progress" or event.error == "EINVAL":
            return
        if attempt.transport != "udp":
            self._settle(attempt, event.error, event)
        elif attempt.error is None:
            attempt.error, attempt.outcome = event.error, ERRNO_OUTCOME[event.error or ""]
            attempt.late, attempt.settled_ns = True, event.t_ns
            if len(attempt.where) < 8:
                attempt.where.append(event.where)

    def _http(self, event: HttpRequest) -> None:
        # CONNECT exfil.test:443 HTTP/1.1          GET http://exfil.test/x HTTP/1.1
        absolute = event.target.lower().startswith(("http://", "https://"))
        if event.method != "CONNECT" and not absolute:
            return
        host = event.target.split("://", 1)[-1].partition("/")[0].rpartition("@")[2].lower()
        proxied = Proxied(host, event.method, [event.where], event.process, event.t_ns, event.address)
        if len(self.proxied) >= MAX_TARGETS:
            self.overflow += 1
            return
        self.proxied.append(proxied)
        if event.socket is not None:
            self._proxying[event.socket] = proxied

    def _flow(self, event: NetFlow) -> None:
        self._ends.add(event := outward(event, self.run.resolvers))
        target = self._target(event.transport, event.address, event.port)
        if target is not None and len(target.flows) < MAX_KEPT:
            target.flows.append(event)
        elif target is not None:
            target.more_flows += 1

    def _packet(self, event: NetPacket) -> None:
        """Keep what was sent outwards: echo requests, tunnels, other protocols; no errors, ARP, neighbour discovery."""
        if event.address is None or event.protocol in ("arp", "fragment", "truncated"):
            return
        echo = {"icmp": (8, 0), "icmpv6": (128, 129)}.get(event.protocol)
        if echo is not None and event.icmp_type != echo[0]:
            asked = self._targets.get((event.protocol, event.source or "", None))
            if asked is not None and event.icmp_type == echo[1]:
                asked.answered += 1
            return
        if event.address in self._ends.sources or scope_of(event.address) == "multicast":
            return
        target = self._target(event.protocol, event.address, None)
        if target is None:
            return
        if len(target.packets) < MAX_KEPT:
            target.packets.append(event)
        else:
            target.more_packets += 1
