"""Host names against expectations: whole labels, never substrings."""

from __future__ import annotations

import ipaddress

from mcpdetect.model.inputs import Expectations, ExpectedHost

__all__ = ["expected", "is_local_name", "matches"]

_LOCAL = ("localhost", "local", "localdomain", "internal", "home.arpa", "in-addr.arpa", "ip6.arpa")
"""Top labels that never leave a site: RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), reverse zones."""


def matches(pattern: str, host: str) -> bool:
    """Return whether an expected host covers a name or address.

    ``*.example.com`` covers any name below, ``.example.com`` that and the name itself; a network covers its addresses.
    Comparison is on whole labels: ``localhost.evil.test`` is covered by no pattern for localhost.
    """
    host = host.lower().rstrip(".")
    if "/" in pattern:
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(pattern)
        except ValueError:
            return False
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    if pattern.startswith("."):
        return host == pattern[1:] or host.endswith(pattern)
    return host == pattern


def expected(expectations: Expectations, hosts: list[str], port: int | None) -> ExpectedHost | None:
    """Return the first documented destination that covers one of the names (or the address) on this port."""
    for entry in expectations.hosts:
        if entry.ports and port is not None and port not in entry.ports:
            continue
        if any(matches(entry.host, host) for host in hosts):
            return entry
    return None


def is_local_name(name: str) -> bool:
    """Return whether a name can only mean this machine or this site, judged by its last labels."""
    return "." not in name or any(name == top or name.endswith("." + top) for top in _LOCAL)
