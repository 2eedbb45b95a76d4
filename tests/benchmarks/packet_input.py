"""Input of the packet workloads: a capture of names asked, TLS and HTTP connections, pings, in both IP versions."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

__all__ = ["dns_only", "packets", "small_flows", "write_pcap", "write_pcapng"]

_BEGIN = 1_796_000_000_000_000
_CLIENT = {4: ip_address("10.77.0.2").packed, 6: ip_address("fd77::2").packed}
_SERVER = {4: ip_address("10.77.0.1").packed, 6: ip_address("fd77::1").packed}
_TYPES = {4: b"\x08\x00", 6: b"\x86\xdd"}


def _frame(version: int, protocol: int, source: bytes, target: bytes, payload: bytes) -> bytes:
    ethernet = b"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01" + _TYPES[version]
    if version == 4:
        return (
            ethernet
            + struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0x4000, 64, protocol, 0, source, target)
            + payload
        )
    return ethernet + struct.pack("!IHBB16s16s", 6 << 28, len(payload), protocol, 64, source, target) + payload


def _udp(source: int, target: int, payload: bytes) -> bytes:
    return struct.pack("!HHHH", source, target, 8 + len(payload), 0) + payload


def _tcp(source: int, target: int, sequence: int, flags: int, payload: bytes = b"") -> bytes:
    return struct.pack("!HHIIBBHHH", source, target, sequence & 0xFFFFFFFF, 1, 0x50, flags, 64240, 0, 0) + payload


def _labels(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _hello(name: str) -> bytes:
    """Return a ClientHello (RFC 8446 §4.1.2) with server name, ALPN, versions and a key share."""
    host = name.encode()
    extensions = [
        (0, struct.pack("!HBH", len(host) + 3, 0, len(host)) + host),
        (16, b"\x00\x0c\x02h2\x08http/1.1"),
        (43, b"\x04\x03\x04\x03\x03"),
        (10, b"\x00\x04\x00\x1d\x00\x17"),
        (13, b"\x00\x08\x04\x03\x08\x04\x04\x01\x05\x03"),
        (51, b"\x00\x24\x00\x1d\x00\x20" + bytes(32)),
    ]
    packed = b"".join(struct.pack("!HH", kind, len(value)) + value for kind, value in extensions)
    suites = b"\x13\x01\x13\x02\x13\x03\xc0\x2b\xc0\x2f"
    body = b"\x03\x03" + bytes(32) + b"\x20" + bytes(32) + struct.pack("!H", len(suites)) + suites + b"\x01\x00"
    body += struct.pack("!H", len(packed)) + packed
    handshake = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack("!H", len(handshake)) + handshake


def _lookup(chance: random.Random, version: int, name: str, ports: int = 64) -> Iterator[bytes]:
    client, server = _CLIENT[version], _SERVER[version]
    kind = chance.choices([1, 28, 65, 16], [60, 30, 6, 4])[0]
    # a forwarder asks from few ports, so that names are many packets of few flows; a program from a new one each time
    ident, port = chance.randrange(65536), 65_535 - chance.randrange(ports)
    question = _labels(name) + struct.pack("!HH", kind, 1)
    yield _frame(
        version, 17, client, server, _udp(port, 53, struct.pack("!HHHHHH", ident, 0x100, 1, 0, 0, 0) + question)
    )
    value = {1: ip_address("203.0.113.9").packed, 28: ip_address("2001:db8::9").packed}.get(kind)
    answer = b"" if value is None else struct.pack("!HHHIH", 0xC00C, kind, 1, 300, len(value)) + value
    head = struct.pack("!HHHHHH", ident, 0x8180, 1, 1 if answer else 0, 0, 0)
    yield _frame(version, 17, server, client, _udp(53, port, head + question + answer))


def _connection(
    chance: random.Random, version: int, name: str, sizes: tuple[int, ...] = (1, 2, 4, 8, 60)
) -> Iterator[bytes]:
    client, server = _CLIENT[version], _SERVER[version]
    port, secure = chance.randrange(1024, 65000), chance.random() < 0.7
    remote = 443 if secure else 80
    request = _hello(name) if secure else f"GET /v1/items HTTP/1.1\r\nHost: {name}\r\nAccept: */*\r\n\r\n".encode()

    def out(sequence: int, flags: int, payload: bytes = b"") -> bytes:
        return _frame(version, 6, client, server, _tcp(port, remote, sequence, flags, payload))

    def back(sequence: int, flags: int, payload: bytes = b"") -> bytes:
        return _frame(version, 6, server, client, _tcp(remote, port, sequence, flags, payload))

    yield out(100, 2)
    yield back(500, 18)
    yield out(101, 16)
    yield out(101, 24, request)
    size, segments = 1400, chance.choice(sizes)
    for number in range(segments):
        yield back(501 + number * size, 24, b"\x17\x03\x03\x05\x73" + bytes(size - 5))
        if number % 2:
            yield out(101 + len(request), 16)
    yield out(101 + len(request), 17)
    yield back(501 + size * segments, 17)
    yield out(102 + len(request), 16)


def packets(count: int, seed: int = 7) -> Iterator[bytes]:
    """Yield ``count`` Ethernet frames of a busy client: a fifth of them names, most others connections."""
    chance = random.Random(seed)  # noqa: S311
    zones = ["example.com", "example.net", "svc.test", "cdn.example.org"]
    names = [f"host-{number:x}.{zones[number % 4]}" for number in range(4000)]
    left = count
    while left:
        version = 4 if chance.random() < 0.7 else 6
        name = chance.choice(names)
        group = [frame for _ in range(3) for frame in _lookup(chance, version, chance.choice(names))]
        group += _connection(chance, version, name)
        if chance.random() < 0.2:
            echo = struct.pack("!BBHHH", 8 if version == 4 else 128, 0, 0, 1, left & 0xFFFF) + bytes(56)
            group.append(_frame(version, 1 if version == 4 else 58, _CLIENT[version], _SERVER[version], echo))
        yield from group[:left]
        left -= min(left, len(group))


def small_flows(count: int, seed: int = 7) -> Iterator[bytes]:
    """Yield ``count`` frames, over half of them names, each asked from a new port, and short connections."""
    chance = random.Random(seed)  # noqa: S311
    names = [f"host-{number:x}.example.com" for number in range(4000)]
    left = count
    while left:
        version = 4 if chance.random() < 0.7 else 6
        group = [frame for _ in range(6) for frame in _lookup(chance, version, chance.choice(names), 60_000)]
        group += _connection(chance, version, chance.choice(names), (1, 2, 4))
        yield from group[:left]
        left -= min(left, len(group))


def dns_only(count: int, seed: int = 7) -> Iterator[bytes]:
    """Yield ``count`` frames that all carry DNS."""
    chance = random.Random(seed)  # noqa: S311
    names = [f"host-{number:x}.example.com" for number in range(4000)]
    for _ in range(count // 2):
        yield from _lookup(chance, 4 if chance.random() < 0.7 else 6, chance.choice(names))


def write_pcap(path: Path, frames: Iterator[bytes], begin: int = _BEGIN) -> None:
    """Write a little-endian microsecond pcap of Ethernet frames, 100 µs apart, from ``begin`` (µs since 1970) on."""
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for number, frame in enumerate(frames):
            seconds, micros = divmod(begin + number * 100, 1_000_000)
            out.write(struct.pack("<IIII", seconds, micros, len(frame), len(frame)) + frame)


def write_pcapng(path: Path, frames: Iterator[bytes]) -> None:
    """Write the same as pcapng: a section, an interface, enhanced packet blocks."""
    with path.open("wb") as out:
        out.write(struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28))
        out.write(struct.pack("<IIHHII", 1, 20, 1, 0, 262144, 20))
        for number, frame in enumerate(frames):
            moment = _BEGIN + number * 100
            padded = frame + bytes(-len(frame) % 4)
            size = 32 + len(padded)
            head = struct.pack("<IIIIIII", 6, size, 0, moment >> 32, moment & 0xFFFFFFFF, len(frame), len(frame))
            out.write(head + padded + struct.pack("<I", size))
