"""Contacts that were meant and not made by a socket of the run: through a proxy, or by a program that never started."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from mcpdetect.correlate.contacts import Contacts
from mcpdetect.correlate.hosts import host_and_port, literal_address
from mcpdetect.correlate.processes import Processes
from mcpdetect.model.addresses import canonical, is_remote
from mcpdetect.model.place import Where

__all__ = ["Intent", "intents"]

_PORTS = {"http": 80, "https": 443, "ftp": 21, "ws": 80, "wss": 443, "ssh": 22, "git": 9418}


@dataclass(slots=True)
class Intent:
    """A bare address that somebody was asked to reach.

    Attributes:
        address, port: the destination meant.
        how: ``proxied`` or ``not-started``.
        what, why: for people.
        where, process, t_ns: who asked, when, and the evidence.
    """

    address: str
    port: int | None
    how: str
    what: str
    why: str
    where: Where
    process: str | None
    t_ns: int | None


def intents(contacts: Contacts, processes: Processes) -> Iterator[Intent]:
    """Yield every remote address that a proxy was asked for, or that a program which failed to start was given."""
    for proxied in contacts.proxied:
        host, port = host_and_port(proxied.host)
        address = literal_address(host)
        if address is not None and is_remote(address):
            why = "A proxy was asked for a bare address: the contact is the proxy's, the wish is the program's."
            what = "A proxy was asked to reach"
            yield Intent(address, port, "proxied", what, why, proxied.where[0], proxied.process, proxied.t_ns)
    for failed in processes.failed:
        running = processes.get(failed.process)
        if running is not None and failed.argv is not None and running.argv == failed.argv:
            continue  # a search along PATH that ended well
        for argument in (failed.argv or [])[1:]:
            found = _given(argument)
            if found is not None:
                why = (
                    f"{failed.executable or 'A program'} could not be started ({failed.error}), so nothing was sent; "
                    "only what ran was seen, and with the program present it would have contacted a bare address."
                )
                what = "A program that did not start was told to reach"
                yield Intent(*found, "not-started", what, why, failed.where, failed.process, failed.t_ns)


def _given(argument: str) -> tuple[str, int | None] | None:
    """Return the remote address that a command line argument is, or whose URL it is."""
    # http://203.0.113.25/a          203.0.113.25          203.0.113.25:8080
    scheme, mark, rest = argument.partition("://")
    if mark:
        authority = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
        host, port = host_and_port(authority)
        address = literal_address(host)
        port = port or _PORTS.get(scheme.lower())
    else:
        host, port = host_and_port(argument)
        try:
            address = canonical(str(ipaddress.ip_address(host)))
        except ValueError:
            return None
    return (address, port) if address is not None and is_remote(address) else None
