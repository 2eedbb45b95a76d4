"""Giving a captured packet other IPv4 addresses, with checksums that are right (RFC 791, RFC 1071)."""

from __future__ import annotations

import struct
from collections.abc import Callable

__all__ = ["readdressed"]

# link type -> where the type of the payload stands (None: the payload is IP itself), and where the payload begins
_LINKS: dict[int, tuple[int | None, int]] = {1: (12, 14), 113: (14, 16), 276: (0, 20), 101: (None, 0), 228: (None, 0)}
_VLAN = (0x8100, 0x88A8)
_IPV4, _ARP = 0x0800, 0x0806
_CHECKSUMS = {6: 16, 17: 6}


def readdressed(frame: bytes, link: int, change: Callable[[bytes], bytes]) -> bytes:
    """Return a frame with every IPv4 address of its headers changed; one of another kind is returned as it is.

    Args:
        frame: the captured bytes.
        link: libpcap's link type.
        change: an address of four bytes -> what it becomes.
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
    packet = bytearray(frame)
    if kind == _ARP and len(packet) >= start + 28 and packet[start + 5] == 4:
        for place in (start + 14, start + 24):
            packet[place : place + 4] = change(bytes(packet[place : place + 4]))
    elif kind == _IPV4 and len(packet) >= start + 20 and packet[start] >> 4 == 4:
        _internet(packet, start, change)
    return bytes(packet)


def _internet(packet: bytearray, start: int, change: Callable[[bytes], bytes]) -> None:
    size = (packet[start] & 15) * 4
    (total,) = struct.unpack_from("!H", packet, start + 2)
    if size < 20 or len(packet) < start + size:
        return
    for place in (start + 12, start + 16):
        packet[place : place + 4] = change(bytes(packet[place : place + 4]))
    packet[start + 10 : start + 12] = b"\0\0"
    packet[start + 10 : start + 12] = _sum(packet[start : start + size])
    (fragment,) = struct.unpack_from("!H", packet, start + 6)
    protocol = packet[start + 9]
    if protocol == 1 and len(packet) >= start + size + 8 + 20 and packet[start + size] in (3, 4, 5, 11, 12):
        _internet_quoted(packet, start + size, change)
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


def _internet_quoted(packet: bytearray, start: int, change: Callable[[bytes], bytes]) -> None:
    """Change the addresses of the packet that an ICMP error quotes (RFC 792), and the error's checksum."""
    quoted = start + 8
    if packet[quoted] >> 4 != 4:
        return
    for place in (quoted + 12, quoted + 16):
        packet[place : place + 4] = change(bytes(packet[place : place + 4]))
    packet[start + 2 : start + 4] = b"\0\0"
    packet[start + 2 : start + 4] = _sum(bytes(packet[start:]))


def _sum(data: bytes | bytearray) -> bytes:
    """Return the internet checksum (RFC 1071)."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)
