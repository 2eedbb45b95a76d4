"""Host names against expectations: whole labels, never substrings."""

from __future__ import annotations

import ipaddress
import re

from mcpdetect.model.addresses import canonical
from mcpdetect.model.inputs import Expectations, ExpectedHost

__all__ = ["expected", "host_and_port", "is_local_name", "literal_address", "matches"]

_LOCAL = ("localhost", "local", "localdomain", "internal", "home.arpa")
"""Top labels that never leave a site: RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa)."""

# 4.3.2.1.in-addr.arpa     b._dns-sd._udp.0.2.0.10.in-addr.arpa     1.0.0.0.(28 more).ip6.arpa
_REVERSE = re.compile(
    r"(?:(?:b|db|r|dr|lb)\._dns-sd\._udp\.)?(?:(?:[0-9]{1,3}\.){1,4}in-addr|(?:[0-9a-f]\.){1,32}ip6)\.arpa"
)
# 127.1     0x7f000001     0177.0.0.1     2130706433
_LOOSE_PART = re.compile(r"0[xX][0-9a-fA-F]{1,8}|[0-9]{1,11}")


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
    """Return whether a name can only mean this machine or this site, judged by its last labels.

    A well-formed reverse name counts as one: it asks about an address, and has no room for more.
    """
    if "." not in name or any(name == top or name.endswith("." + top) for top in _LOCAL):
        return True
    return _REVERSE.fullmatch(name) is not None


def literal_address(host: str) -> str | None:
    """Return the canonical address that a host text spells out, None when it is a name.

    IPv6 may stand in brackets; IPv4 in every form that inet_aton(3) takes, since URLs do (``127.1``, ``0x7f000001``).
    """
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return canonical(bare)
    except ValueError:
        pass
    parts = bare.split(".")
    if len(parts) > 4 or not all(_LOOSE_PART.fullmatch(part) for part in parts):
        return None
    try:
        numbers = [int(part, 16 if part[:2] in ("0x", "0X") else 8 if part[0] == "0" else 10) for part in parts]
    except ValueError:  # 08 is no octal number
        return None
    room = 256 ** (5 - len(numbers))
    if any(number > 255 for number in numbers[:-1]) or numbers[-1] >= room:
        return None
    value = numbers[-1]
    for at, number in enumerate(numbers[:-1]):
        value += number << (24 - 8 * at)
    return canonical(str(ipaddress.IPv4Address(value)))


def host_and_port(text: str) -> tuple[str, int | None]:
    """Split ``host:port``, ``[v6]:port`` or a bare host (RFC 3986 §3.2); a port that is none is left out."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        return text, None
    else:
        host, _, port = text.partition(":")
    return host, int(port) if port.isascii() and port.isdigit() and len(port) < 6 else None
