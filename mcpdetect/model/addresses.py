"""IP addresses as evidence shows them: one canonical spelling, what they embed, and where they lead."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Literal

__all__ = ["Scope", "canonical", "elsewhere", "endpoint", "is_remote", "scope_of"]

Scope = Literal["unspecified", "loopback", "link-local", "metadata", "multicast", "private", "public"]

# 64:ff9b::/96 is the well-known NAT64 prefix (RFC 6052 §2.1).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# The instance metadata services of the large clouds (AWS, Azure, GCP, Alibaba, Oracle; AWS over IPv6).
_METADATA = frozenset({"169.254.169.254", "169.254.170.2", "fd00:ec2::254", "100.100.100.200"})
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


@lru_cache(maxsize=8192)
def canonical(address: str) -> str:
    """Return the one spelling by which an address is compared across channels.

    IPv4 inside IPv6 (``::ffff:a.b.c.d``, RFC 4291 §2.5.5.2; NAT64, RFC 6052) becomes the IPv4 address, so
    that it joins with IPv4 packets, A records and firewall lines. A translator's loopback or link-local address is
    not this machine's (RFC 6052 §3.1), so such a NAT64 address stays. A zone (``%eth0``) stays.

    Raises:
        ValueError: ``address`` is no IP address.
    """
    bare, percent, zone = address.partition("%")
    parsed = ipaddress.ip_address(bare)
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        if parsed in _NAT64:
            inner = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
            if not (inner.is_loopback or inner.is_unspecified or inner.is_multicast or inner.is_link_local):
                return str(inner)
    return f"{parsed}{percent}{zone}"


@lru_cache(maxsize=8192)
def scope_of(address: str) -> Scope:
    """Return where an address leads.

    ``metadata`` is a cloud's instance metadata service; ``multicast`` includes broadcast; ``private`` is
    RFC 1918, RFC 6598 and ULA (RFC 4193). Everything else, documentation and benchmark ranges too, is ``public``: a
    sandbox may use any of them for its fake internet.
    """
    text = canonical(address).partition("%")[0]
    if text in _METADATA:
        return "metadata"
    parsed = ipaddress.ip_address(text)
    if parsed.is_unspecified:
        return "unspecified"
    if parsed.is_loopback:
        return "loopback"
    if parsed.is_multicast or parsed == _BROADCAST:
        return "multicast"
    if parsed.is_link_local:
        return "link-local"
    private = _PRIVATE4 if parsed.version == 4 else _PRIVATE6
    return "private" if any(parsed in network for network in private) else "public"


_PRIVATE4 = tuple(
    ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)
_PRIVATE6 = (ipaddress.ip_network("fc00::/7"),)


def is_remote(address: str) -> bool:
    """Return whether traffic to ``address`` leaves this machine (loopback and unspecified do not)."""
    return scope_of(address) not in ("loopback", "unspecified")


def elsewhere(host: str) -> bool:
    """Return whether a host, given by address or by name, is another machine; ``localhost`` is none (RFC 6761 §6.3)."""
    try:
        return is_remote(host)
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")


def endpoint(address: str, port: int | None) -> str:
    """Return ``address:port`` as people write it, IPv6 in brackets (RFC 3986 §3.2.2)."""
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
