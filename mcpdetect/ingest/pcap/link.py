"""Link layers: where in a frame the IP packet begins, or what the frame holds instead."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from functools import cache
from typing import Any, NamedTuple

__all__ = ["ARP", "ETHERNET", "LAYOUTS", "RAW", "Lane", "Layout", "Payload", "lane", "supported", "unwrap"]

ETHERNET, SLL, SLL2, RAW = 1, 113, 276, 101
_RAW = frozenset({12, 14, RAW, 228, 229})  # LINKTYPE_RAW, its two old DLT values, IPV4, IPV6
_NULL, _LOOP = 0, 108
_IPV4, _IPV6, ARP = 0x0800, 0x86DD, 0x0806
_TAGS = frozenset({0x8100, 0x88A8, 0x9100, 0x9200})  # 802.1Q, 802.1ad, and what preceded it
_MPLS = frozenset({0x8847, 0x8848})
_PPPOE = 0x8864
_SNAP = b"\xaa\xaa\x03\x00\x00\x00"
_FIRSTS6: frozenset[int | bytes] = frozenset(range(0x60, 0x70))
_IPV6_FAMILIES = frozenset({10, 24, 28, 30})  # AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, Darwin


class Layout(NamedTuple):
    """Where the common frames of a link type have what.

    Attributes:
        at: where in the frame the IP packet begins.
        kind: where its EtherType is; None where there is none.
    """

    at: int
    kind: int | None


class Lane(NamedTuple):
    """How to read a record and the packet in it in one go, in a file of one byte order.

    Attributes:
        read: reads the record's header, the EtherType (the first byte where there is none), the first byte of the IP
            packet, the two bytes of its total length, the fragment field in the byte order of the file, protocol,
            addresses and ports, TCP's data offset and flags; ``ROOM`` bytes must be there.
        ip: where the IP packet begins, counted from the record's header.
        ipv4, first4: what the EtherType and the first byte are in an IPv4 packet without options.
        ipv6, firsts6: the same for IPv6.
        fragment: which bits of the fragment field are set in fragments.
        read6: reads payload length, next header, addresses and ports, TCP's data offset and flags of IPv6.
    """

    read: Callable[[bytes, int], tuple[Any, ...]]
    ip: int
    ipv4: int
    first4: int | bytes
    ipv6: int
    firsts6: Container[int | bytes]
    fragment: int
    read6: Callable[[bytes, int], tuple[Any, ...]]


_read6 = struct.Struct("!xxxxHBx36s8xBB").unpack_from


@cache
def lane(link: int, order: str, header: str, width: int) -> Lane:
    """Return how to read common frames of a link type; one that finds none where there is no such way.

    Args:
        link: the link type.
        order: the byte order of the record headers, ``<`` or ``>``.
        header: their fields, as ``struct`` writes them.
        width: how many bytes they take.
    """
    layout = LAYOUTS.get(link)
    if layout is None:
        return lane(RAW, order, header, width)._replace(ipv4=-1, ipv6=-1)
    little = order == "<"
    fragment = 0xFF3F if little else 0x3FFF
    rest = "xBBxxHxBxx12s8xBB"
    if layout.kind is None:
        read = struct.Struct(f"{order}{header}{layout.at}xB0s{rest}").unpack_from
        return Lane(read, width + layout.at, 0x45, b"", 0x60, frozenset({b""}), fragment, _read6)
    read = struct.Struct(f"{order}{header}{layout.kind}xH{layout.at - layout.kind - 2}xB{rest}").unpack_from
    ipv4, ipv6 = (0x0008, 0xDD86) if little else (_IPV4, _IPV6)
    return Lane(read, width + layout.at, ipv4, 0x45, ipv6, _FIRSTS6, fragment, _read6)


LAYOUTS: dict[int, Layout] = {
    ETHERNET: Layout(14, 12),
    SLL: Layout(16, 14),
    SLL2: Layout(20, 0),
    **{link: Layout(0, None) for link in _RAW},
}
"""Link types whose common frames the fast lane reads."""


class Payload(NamedTuple):
    """What a frame holds.

    Attributes:
        protocol: ``ip`` (4 or 6, by its own version field), ``arp``, ``ethertype-0x<hex>``, ``llc``; or ``""`` where
            the frame is too short to tell.
        at: offset of the payload.
    """

    protocol: str
    at: int


def supported(link: int) -> bool:
    """Return whether frames of this link type can be read (values of www.tcpdump.org/linktypes.html)."""
    return link in LAYOUTS or link in (_NULL, _LOOP)


def unwrap(link: int, frame: bytes) -> Payload:
    """Find what a frame of a supported link type holds."""
    if link in _RAW:
        return Payload("ip", 0) if frame else Payload("", 0)
    if link in (_NULL, _LOOP):
        if len(frame) < 4:
            return Payload("", 0)
        # 02 00 00 00 or 00 00 00 02: the family in the byte order of the recording machine
        family = min(int.from_bytes(frame[:4], "little"), int.from_bytes(frame[:4], "big"))
        return Payload("ip", 4) if family == 2 or family in _IPV6_FAMILIES else Payload(f"family-{family}", 4)
    layout = LAYOUTS[link]
    if len(frame) < layout.at:
        return Payload("", 0)
    kind = layout.kind or 0
    return _ethertype((frame[kind] << 8) | frame[kind + 1], frame, layout.at)


def _ethertype(number: int, frame: bytes, at: int) -> Payload:
    while number in _TAGS:
        # 00 64 08 00: priority and VLAN, then the EtherType of what follows
        if len(frame) < at + 4:
            return Payload("", 0)
        number = (frame[at + 2] << 8) | frame[at + 3]
        at += 4
    if number in (_IPV4, _IPV6):
        return Payload("ip", at)
    if number == ARP:
        return Payload("arp", at)
    if number in _MPLS:
        return _mpls(frame, at)
    if number == _PPPOE:
        # 11 00 00 01 00 2e 00 21: version and type, code, session, length, PPP protocol (RFC 2516, RFC 1332, RFC 5072)
        inner = frame[at + 6 : at + 8]
        if len(inner) < 2:
            return Payload("", 0)
        return Payload("ip", at + 8) if inner in (b"\x00\x21", b"\x00\x57") else Payload("ethertype-0x8864", at)
    if number < 0x0600:  # IEEE 802.3: a length, then LLC
        if frame[at : at + 6] == _SNAP and len(frame) >= at + 8:
            inner_type = (frame[at + 6] << 8) | frame[at + 7]
            return _ethertype(inner_type, frame, at + 8) if inner_type >= 0x0600 else Payload("llc", at)
        return Payload("llc", at)
    return Payload(f"ethertype-0x{number:04x}", at)


def _mpls(frame: bytes, at: int) -> Payload:
    """Step over MPLS labels (RFC 3032 §2.1); what follows the last is taken for IP where its first byte says so."""
    start = at
    while at + 4 <= len(frame):
        at += 4
        if frame[at - 2] & 1:  # bottom of stack
            is_ip = frame[at : at + 1] and frame[at] >> 4 in (4, 6)
            return Payload("ip", at) if is_ip else Payload("ethertype-0x8847", start)
    return Payload("", 0)
