"""Residues: what a trace shows of acts that went on out of its sight, and which claims they spoil.

A residue is no finding and explains none: honest programs talk to helpers too. It lowers what can be denied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from mcpdetect.contract import Fact, Spec
from mcpdetect.correlate.hosts import matches
from mcpdetect.correlate.processes import Processes
from mcpdetect.data.residues import Residue, residues
from mcpdetect.model.addresses import is_remote
from mcpdetect.model.event import Event, FileOpen, KernelNotable
from mcpdetect.model.net import (
    DnsQuery,
    NetFlow,
    QuicInitial,
    SocketConnect,
    SocketListen,
    SocketOpen,
    SocketReceive,
    SocketSend,
    TlsClientHello,
)
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

__all__ = ["MAX_LISTENERS", "Residues", "spoils"]

MAX_LISTENERS = 10_000
"""Most listening sockets of the run that are remembered; a connection to one beyond them counts as leaving it."""

_REACHED = ("established", "in_progress")
_DNS = 53
_SHOWN = 200
# "BPF_PROG_LOAD, {...}" has a name where "0x5, 0x7ffc, 0x90" has none
_NAMED = re.compile(r"[A-Z]{3}", re.ASCII)
_WORD = re.compile(r"\w++", re.ASCII)
# /proc/self/mem   /proc/thread-self/mem   /proc/612/mem
_OF_PROCESS = re.compile(r"/proc/(self|thread-self|[0-9]++)/", re.ASCII)


@dataclass(slots=True)
class _Found:
    residue: Residue
    name: str
    where: Where
    process: str | None
    count: int = 1

    @property
    def loss(self) -> Loss:
        return Loss(self.residue.what, f"{self.residue.text} ({self.name})", self.count, self.where)


def spoils(residue: Residue, spec: Spec) -> bool:
    """Return whether a residue spoils the claim of a check: it lowers every alternative of something it needs.

    Args:
        residue: the residue.
        spec: the check's declaration.
    """
    return any(
        all(set(residue.lowers.get(need.channel, ())) & set(need.kinds) for need in group.needs) for group in spec.needs
    )


class Residues(Fact):
    """The residues of a run; acts of the launcher, before the audited program begins, are none."""

    kinds: ClassVar[tuple[str, ...]] = (
        "socket.open",
        "socket.connect",
        "socket.listen",
        "socket.send",
        "socket.receive",
        "kernel.notable",
        "file.open",
        "dns.query",
        "tls.client_hello",
        "quic.initial",
        "net.flow",
    )
    uses: ClassVar[tuple[type[Fact], ...]] = (Processes,)

    def __init__(self, run: Run, *uses: Fact) -> None:
        super().__init__(run, *uses)
        (self._processes,) = uses
        self._known = residues()
        self._found: dict[str, _Found] = {}
        self._calls = {call.name for residue in self._known for call in residue.calls}
        self._listening: set[str | int] = set()
        self._bound: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Look at one event."""
        if not isinstance(self._processes, Processes) or not self._processes.entered:
            return
        match event:
            case SocketConnect():
                self._connected(event)
            case SocketSend() | SocketReceive():
                self._talked(event)
            case SocketListen():
                self._listens(event)
            case FileOpen():
                self._opened(event)
            case KernelNotable():
                self._called(event)
            case SocketOpen():
                self._family(event)
            case DnsQuery() if event.name is not None:
                self._host(event.name, event)
            case TlsClientHello() | QuicInitial() if event.sni is not None:
                self._host(event.sni, event)
            case NetFlow() if event.packets_in and is_remote(event.address):
                self._port(event.port, event.address, event)

    def _add(self, residue: Residue, name: str, event: Event) -> None:
        known = self._found.get(residue.id)
        if known is not None:
            known.count += 1
            return
        self._found[residue.id] = _Found(residue, name[:_SHOWN], event.where, event.process)

    def _connected(self, event: SocketConnect) -> None:
        if event.outcome not in _REACHED:
            return
        if event.family == "unix" or event.transport == "unix":
            self._unix(event.path, event)
        elif event.address is not None and is_remote(event.address):
            self._port(event.port, event.address, event)
        elif event.address is not None and event.outcome == "established" and event.transport == "tcp":
            self._loopback(event.port, event)

    def _talked(self, event: SocketSend | SocketReceive) -> None:
        if not event.size or event.remote_source == "accept":
            return
        if event.transport == "unix":
            if isinstance(event, SocketSend):
                self._message(event)
                if event.remote_source == "argument":
                    self._unix(event.path, event)
            return
        if event.address is None:
            return
        if is_remote(event.address):
            if isinstance(event, SocketSend):
                self._port(event.port, event.address, event)
        elif isinstance(event, SocketReceive) and event.socket not in self._bound:
            self._loopback(event.port, event)

    def _unix(self, path: str | None, event: Event) -> None:
        """A unix socket was reached: a named one, or that of a program outside the trace."""
        named = [residue for residue in self._known if path is not None and residue.sockets.fullmatch(path)]
        for residue in named:
            self._add(residue, path or "", event)
        if named or path in self._listening:
            return
        for residue in self._known:
            if residue.helpers:
                self._add(residue, path or "a socket whose name the log does not show", event)

    def _message(self, event: SocketSend) -> None:
        """A request to a message bus, by the names of the methods in it; what is cut may hold any."""
        for residue in self._known:
            if event.path is not None and residue.services.fullmatch(event.path):
                for word in residue.messages:
                    if word in event.data:
                        self._add(residue, word.decode(), event)
                        break

    def _loopback(self, port: int | None, event: Event) -> None:
        if port in self._listening or port == _DNS:
            return
        for residue in self._known:
            if residue.helpers_loopback:
                self._add(residue, f"loopback port {port}", event)

    def _listens(self, event: SocketListen) -> None:
        if event.operation == "accept" or len(self._listening) >= MAX_LISTENERS:
            return
        name = event.path if event.path is not None else event.port
        if event.ok and name:
            self._listening.add(name)
            if event.socket is not None:
                self._bound.add(event.socket)

    def _opened(self, event: FileOpen) -> None:
        if not event.ok or event.access == "path":
            return
        for residue in self._known:
            written = event.access != "read" and residue.writes.fullmatch(event.path)
            if written or (residue.opens.fullmatch(event.path) and not _own(event)):
                self._add(residue, event.path, event)

    def _called(self, event: KernelNotable) -> None:
        if event.call not in self._calls or not event.ok:
            return
        words = set(_WORD.findall(event.detail))
        # arguments written as numbers name nothing, so any of them may be meant
        numbers = _NAMED.search(event.detail) is None
        for residue in self._known:
            if any(call.name == event.call and (numbers or words.issuperset(call.words)) for call in residue.calls):
                self._add(residue, event.call, event)

    def _family(self, event: SocketOpen) -> None:
        for residue in self._known:
            if event.ok and event.family in residue.families:
                self._add(residue, event.family, event)

    def _host(self, name: str, event: Event) -> None:
        for residue in self._known:
            if any(matches(host, name) for host in residue.hosts):
                self._add(residue, name, event)

    def _port(self, port: int | None, address: str, event: Event) -> None:
        for residue in self._known:
            if port in residue.ports:
                self._add(residue, f"{address}, port {port}", event)

    @property
    def found(self) -> list[str]:
        """Return the ids of the residues that were found, in the order of the data file."""
        return [residue.id for residue in self._known if residue.id in self._found]

    def observed(self, observations: Iterable[Observation]) -> list[Observation]:
        """Return observations with a loss for every residue that lowers their channel.

        Args:
            observations: of the whole run; they are not changed.
        """
        return [replace(item, losses=[*item.losses, *self._losses(item)]) for item in observations]

    def _losses(self, item: Observation) -> Iterator[Loss]:
        for residue_id in self.found:
            found = self._found[residue_id]
            touched = found.residue.lowers.get(item.channel)
            if touched:
                yield replace(found.loss, touches=list(touched), process=found.process)


def _own(event: FileOpen) -> bool:
    """Return whether a file below /proc is the process's own; any other path is not."""
    match = _OF_PROCESS.match(event.path)
    return match is not None and (not match[1].isdigit() or match[1] == (event.process or "").partition("#")[0])
