"""The two ends of a conversation, as the bytes that carry them: addresses and ports of one direction."""

from __future__ import annotations

import struct
from functools import lru_cache

from mcpdetect.ingest.dnswire import address_text

__all__ = ["DNS_PORTS", "DnsWay", "asks", "dns_way", "ends_of", "ports_of", "reverse"]

_PORTS = struct.Struct("!HH").unpack_from

DNS_PORTS = frozenset({53, 5353, 5355})
"""Ports whose datagrams are DNS messages: DNS (RFC 1035), mDNS (RFC 6762) and LLMNR (RFC 4795)."""

DnsWay = tuple[str, int, str, int, bool, bytes]
"""One direction of a conversation with a DNS port: source, its port, destination, its port; whether messages that way
can be answers (see ``asks``); the key."""


def reverse(key: bytes) -> bytes:
    """Return the key of the other direction: 4+4+2+2 bytes for IPv4, 16+16+2+2 for IPv6."""
    if len(key) == 12:
        return key[4:8] + key[:4] + key[10:] + key[8:10]
    return key[16:32] + key[:16] + key[34:] + key[32:34]


def ports_of(key: bytes) -> tuple[int, int]:
    """Return the source and the destination port."""
    return (key[-4] << 8) | key[-3], (key[-2] << 8) | key[-1]


def ends_of(key: bytes) -> tuple[str, int, str, int]:
    """Return source, its port, destination, its port; addresses in their canonical spelling."""
    source, address = _addresses(key[:-4])
    source_port, port = _PORTS(key, len(key) - 4)
    return source, source_port, address, port


@lru_cache(maxsize=4096)
def _addresses(raw: bytes) -> tuple[str, str]:
    half = len(raw) >> 1
    return address_text(raw[:half]), address_text(raw[half:])


def asks(key: bytes) -> bool:
    """Return whether what goes this way is a question whatever its header claims.

    It goes *to* a DNS port, and its names left that way. Only what comes from a DNS port to another, or from one
    multicast port to the same, can answer.
    """
    source_port, port = ports_of(key)
    return port in DNS_PORTS and source_port != 53 and (port == 53 or source_port != port)


def dns_way(key: bytes) -> DnsWay:
    """Return what the reader of DNS messages wants to know of a direction."""
    return (*ends_of(key), not asks(key), key)
