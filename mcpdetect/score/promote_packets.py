"""Giving a captured packet other addresses, with checksums that are right (RFC 791, RFC 8200, RFC 1071)."""

from __future__ import annotations

import struct
from collections.abc import Callable

__all__ = ["readdressed"]

# link type -> where the type of the payload stands (None: the payload is IP itself), and where the payload begins
_LINKS: dict[int, tuple[int | None, int]] = {1: (12, 14), 113: (14, 16), 276: (0, 20), 101: (None, 0), 228: (None, 0)}
_VLAN = (0x8100, 0x88A8)
_IPV4, _ARP, _IPV6 = 0x0800, 0x0806, 0x86DD
_CHECKSUMS = {6: 16, 17: 6}
_CHECKSUMS6 = {**_CHECKSUMS, 58: 2}
# IPv6 headers before the transport header: hop-by-hop, routing, destination options (RFC 8200 §4)
_EXTENSIONS = (0, 43, 60)
_HEADER6 = 40


def readdressed(frame: bytes, link: int, change: Callable[[bytes], bytes], *, original: bytes | None = None) -> bytes:
    """Return a frame with every address of its headers changed; one of another kind is returned as it is.

    Args:
        frame: the captured bytes.
        link: libpcap's link type.
        change: an address of 4 or 16 bytes -> what it becomes.
        original: the frame whose addresses are taken, of the same length; the frame itself without it.
    """
    if link not in _LINKS:
        return frame
    at, start = _LINKS[link]
    kind = _IPV4
    if at is not None:
        if len(frame) < start:
            return frame
        (kind,) = struct.unpack_from("!H", frame, at)
        while kind in _VLAN and len(frame) >= start + 4:
            (kind,) = struct.unpack_from("!H", frame, start + 2)
            start += 4
    elif frame and frame[0] >> 4 == 6:
        kind = _IPV6
    packet, was = bytearray(frame), frame if original is None else original
    if kind == _ARP and len(packet) >= start + 28 and packet[start + 5] == 4:
        _put(packet, was, (start + 14, start + 24), 4, change)
    elif kind == _IPV4 and len(packet) >= start + 20 and packet[start] >> 4 == 4:
        _internet(packet, was, start, change)
    elif kind == _IPV6 and len(packet) >= start + _HEADER6 and packet[start] >> 4 == 6:
        _internet6(packet, was, start, change)
    return bytes(packet)


def _put(packet: bytearray, was: bytes, places: tuple[int, ...], size: int, change: Callable[[bytes], bytes]) -> None:
    for place in places:
        packet[place : place + size] = change(was[place : place + size])


def _internet(packet: bytearray, was: bytes, start: int, change: Callable[[bytes], bytes]) -> None:
    size = (packet[start] & 15) * 4
    (total,) = struct.unpack_from("!H", packet, start + 2)
    if size < 20 or len(packet) < start + size:
        return
    _put(packet, was, (start + 12, start + 16), 4, change)
    packet[start + 10 : start + 12] = b"\0\0"
    packet[start + 10 : start + 12] = _sum(packet[start : start + size])
    (fragment,) = struct.unpack_from("!H", packet, start + 6)
    protocol = packet[start + 9]
    if protocol == 1 and len(packet) >= start + size + 8 + 20 and packet[start + size] in (3, 4, 5, 11, 12):
        _internet_quoted(packet, was, start + size, change)
    where = _CHECKSUMS.get(protocol)
    end = start + total
    if where is None or fragment & 0x3FFF or end > len(packet) or start + size + where + 2 > end:
        return
    place = start + size + where
    if protocol == 17 and packet[place : place + 2] == b"\0\0":
        return
    packet[place : place + 2] = b"\0\0"
    pseudo = bytes(packet[start + 12 : start + 20]) + struct.pack("!BBH", 0, protocol, total - size)
    made = _sum(pseudo + bytes(packet[start + size : end]))
    packet[place : place + 2] = b"\xff\xff" if protocol == 17 and made == b"\0\0" else made


def _internet_quoted(packet: bytearray, was: bytes, start: int, change: Callable[[bytes], bytes]) -> None:
    """Change the addresses of the packet that an ICMP error quotes (RFC 792), and the error's checksum."""
    quoted = start + 8
    if packet[quoted] >> 4 != 4:
        return
    _put(packet, was, (quoted + 12, quoted + 16), 4, change)
    packet[start + 2 : start + 4] = b"\0\0"
    packet[start + 2 : start + 4] = _sum(bytes(packet[start:]))


def _internet6(packet: bytearray, was: bytes, start: int, change: Callable[[bytes], bytes]) -> None:
    _put(packet, was, (start + 8, start + 24), 16, change)
    (total,) = struct.unpack_from("!H", packet, start + 4)
    following, at = packet[start + 6], start + _HEADER6
    end = at + total
    while following in _EXTENSIONS and at + 8 <= min(end, len(packet)):
        following, at = packet[at], at + 8 * (packet[at + 1] + 1)
    # An ICMPv6 error quotes the packet it is about, neighbour messages name their target (RFC 4443, RFC 4861).
    if following == 58 and at + 8 + _HEADER6 <= len(packet) and packet[at] < 128 and packet[at + 8] >> 4 == 6:
        _put(packet, was, (at + 16, at + 32), 16, change)
    elif following == 58 and at + 24 <= len(packet) and packet[at] in (135, 136):
        _put(packet, was, (at + 8,), 16, change)
    where = _CHECKSUMS6.get(following)
    if where is None or end > len(packet) or at + where + 2 > end:
        return
    place = at + where
    packet[place : place + 2] = b"\0\0"
    pseudo = bytes(packet[start + 8 : start + _HEADER6]) + struct.pack("!II", end - at, following)
    made = _sum(pseudo + bytes(packet[at:end]))
    packet[place : place + 2] = b"\xff\xff" if following == 17 and made == b"\0\0" else made


def _sum(data: bytes | bytearray) -> bytes:
    """Return the internet checksum (RFC 1071)."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)
