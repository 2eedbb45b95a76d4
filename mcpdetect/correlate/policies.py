"""Signs that a policy on system calls denies the network: seccomp, an LSM, a BPF program of the control group."""

from __future__ import annotations

from typing import ClassVar

from mcpdetect.contract import Fact
from mcpdetect.model.event import Event
from mcpdetect.model.net import SocketConnect, SocketOpen
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

__all__ = ["MAX_REFUSED", "MAX_ROUTED", "Policies"]

MAX_REFUSED = 64
"""Most refused sockets kept."""
MAX_ROUTED = 50_000
"""Most addresses kept that a route is known for."""

# connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 EACCES (Permission denied)
_OPEN_TO_ALL = frozenset({"/var/run/nscd/socket", "/run/nscd/socket"})
"""The name service daemon's socket: everybody may connect, where there is one (nscd(8)); else ENOENT."""


class Policies(Fact):
    """What only a policy refuses, and what shows that no route did.

    Attributes:
        routed: addresses to which a datagram socket was connected: a route leads there, so none refuses it.
        calls_refused: where connecting a socket that is open to all was refused: the call is, not the destination.
    """

    kinds: ClassVar[tuple[str, ...]] = ("socket.open", "socket.connect")

    def __init__(self, run: Run, *uses: Fact) -> None:
        super().__init__(run, *uses)
        self._permission: list[SocketOpen] = []
        self._family: list[SocketOpen] = []
        self.routed: set[str] = set()
        self.calls_refused: Where | None = None

    def on_event(self, event: Event) -> None:
        """Learn from one event."""
        if isinstance(event, SocketOpen):
            if event.family in ("inet", "inet6") and event.type != "raw":
                if event.error in ("EPERM", "EACCES"):
                    self._permission = [*self._permission, event][:MAX_REFUSED]
                elif event.error == "EAFNOSUPPORT":
                    self._family = [*self._family, event][:MAX_REFUSED]
        elif isinstance(event, SocketConnect):
            if event.transport == "udp" and event.ok and event.address and len(self.routed) < MAX_ROUTED:
                self.routed.add(event.address)
            elif event.path in _OPEN_TO_ALL and event.error in ("EPERM", "EACCES"):
                self.calls_refused = self.calls_refused or event.where

    @property
    def refused_sockets(self) -> list[SocketOpen]:
        """IP sockets that could not even be made.

        EAFNOSUPPORT counts where IPv4 met it too: no kernel that runs servers lacks IPv4, while many have no IPv6.
        """
        if any(item.family == "inet" for item in self._family):
            return [*self._permission, *self._family][:MAX_REFUSED]
        return self._permission
