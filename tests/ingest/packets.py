"""Builds packets and captures for tests: every layer one small function, nothing computed that a reader ignores.

Addresses are of the documentation ranges; checksums are zero. ``cryptography`` is needed for QUIC only.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from mcpdetect.ingest.pcap import PacketCapture
from mcpdetect.model.event import Event
from mcpdetect.model.observation import Observation

pack = struct.pack
CLIENT, SERVER = "10.77.0.2", "203.0.113.7"
CLIENT6, SERVER6 = "2001:db8:77::2", "2001:db8:1::7"
T0 = 1_700_000_000
SECOND = 1_000_000_000
SYN, ACK, SYN_ACK, PUSH, RST, FIN = 2, 0x10, 0x12, 0x18, 4, 0x11


def eth(payload: bytes, kind: int = 0x0800) -> bytes:
    return b"\x02\0\0\0\0\2\x02\0\0\0\0\1" + pack("!H", kind) + payload


def sll(payload: bytes, kind: int = 0x0800) -> bytes:
    return pack("!HHH8sH", 4, 1, 6, b"\x02\0\0\0\0\1", kind) + payload


def sll2(payload: bytes, kind: int = 0x0800) -> bytes:
    return pack("!HHIHBB8s", kind, 0, 2, 1, 4, 6, b"\x02\0\0\0\0\1") + payload


def ip4(
    source: str,
    address: str,
    protocol: int,
    payload: bytes,
    *,
    offset: int = 0,
    more: bool = False,
    ident: int = 1,
    options: bytes = b"",
    total: int | None = None,
) -> bytes:
    words = 5 + len(options) // 4
    length = 4 * words + len(payload) if total is None else total
    return (
        pack(
            "!BBHHHBBH4s4s",
            0x40 | words,
            0,
            length,
            ident,
            (0x2000 if more else 0) | offset,
            64,
            protocol,
            0,
            socket.inet_aton(source),
            socket.inet_aton(address),
        )
        + options
        + payload
    )


def ip6(source: str, address: str, following: int, payload: bytes) -> bytes:
    ends = socket.inet_pton(socket.AF_INET6, source), socket.inet_pton(socket.AF_INET6, address)
    return pack("!IHBB16s16s", 6 << 28, len(payload), following, 64, *ends) + payload


def fragment6(following: int, offset: int, more: int) -> bytes:
    return bytes([following, 0]) + pack("!HI", (offset << 3) | more, 7)


def udp(port: int, other: int, payload: bytes) -> bytes:
    return pack("!HHHH", port, other, 8 + len(payload), 0) + payload


def tcp(port: int, other: int, sequence: int, flags: int, payload: bytes = b"", ack: int = 0) -> bytes:
    return pack("!HHIIBBHHH", port, other, sequence & 0xFFFFFFFF, ack, 0x50, flags, 64240, 0, 0) + payload


def qname(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def question(*names: str, kind: int = 1, ident: int = 0x1234) -> bytes:
    return pack("!HHHHHH", ident, 0x100, len(names), 0, 0, 0) + b"".join(
        qname(name) + pack("!HH", kind, 1) for name in names
    )


def answer(
    name: str, *records: tuple[bytes, int, bytes], kind: int = 1, ident: int = 0x1234, flags: int = 0x8180
) -> bytes:
    """An answer; a record is owner (wire form), type, data."""
    return (
        pack("!HHHHHH", ident, flags, 1, len(records), 0, 0)
        + qname(name)
        + pack("!HH", kind, 1)
        + b"".join(owner + pack("!HHIH", number, 1, 60, len(data)) + data for owner, number, data in records)
    )


def dns_packet(name: str = "a.example.test", ident: int = 0x1234) -> bytes:
    return ip4(CLIENT, SERVER, 17, udp(40000, 53, question(name, ident=ident)))


def extension(kind: int, data: bytes) -> bytes:
    return pack("!HH", kind, len(data)) + data


def server_name(name: bytes) -> bytes:
    return extension(0, pack("!HBH", len(name) + 3, 0, len(name)) + name)


def client_hello(name: str | None, *more: bytes) -> bytes:
    """A ClientHello as a handshake message without record header."""
    extensions = (
        (server_name(name.encode()) if name is not None else b"")
        + extension(43, b"\x02\x03\x04")
        + extension(10, b"\0\2\0\x1d")
        + extension(13, b"\0\2\x04\x03")
        + extension(51, pack("!HHH", 36, 29, 32) + b"K" * 32)
        + b"".join(more)
    )
    body = b"\x03\x03" + b"R" * 32 + b"\0" + b"\0\2\x13\x01" + b"\1\0" + pack("!H", len(extensions)) + extensions
    return b"\x01" + pack("!I", len(body))[1:] + body


def record(data: bytes) -> bytes:
    return b"\x16\x03\x01" + pack("!H", len(data)) + data


def ech_filler(size: int = 144) -> bytes:
    return extension(
        0xFE0D, b"\0" + pack("!HH", 1, 1) + b"\x7f" + pack("!H", 32) + b"E" * 32 + pack("!H", size) + b"G" * size
    )


def flow(segments: Iterable[tuple[int, bytes]], *, port: int = 40001, other: int = 443, isn: int = 1000) -> list[bytes]:
    """A handshake and then the client's segments: offset in the stream, payload."""
    opening = [
        ip4(CLIENT, SERVER, 6, tcp(port, other, isn, SYN)),
        ip4(SERVER, CLIENT, 6, tcp(other, port, 5000, SYN_ACK)),
        ip4(CLIENT, SERVER, 6, tcp(port, other, isn + 1, ACK)),
    ]
    return [
        eth(packet)
        for packet in opening
        + [ip4(CLIENT, SERVER, 6, tcp(port, other, isn + 1 + offset, PUSH, data)) for offset, data in segments]
    ]


def number(value: int) -> bytes:
    return bytes([value]) if value < 64 else pack("!H", 0x4000 | value)


def crypto(offset: int, data: bytes) -> bytes:
    return b"\x06" + number(offset) + number(len(data)) + data


def quic_initial(
    frames: bytes,
    *,
    dcid: bytes = bytes.fromhex("8394c8f03e515708"),
    key_dcid: bytes | None = None,
    packet_number: int = 0,
    size: int = 1200,
    version: int = 1,
) -> bytes:
    """A client's Initial packet; ``key_dcid`` is the id its key comes from, where that is another one."""
    from cryptography.hazmat.primitives import hashes, hmac
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

    salt, prefix, first = {
        1: ("38762cf7f55934b34d179ae6a4c80cadccbb7f0a", b"quic", 0xC3),
        0x6B3343CF: ("0dede3def700a6db819381be6e269dcbf9bd2ed9", b"quicv2", 0xD3),
    }[version]

    def expand(secret: bytes, label: bytes, length: int) -> bytes:
        full = b"tls13 " + label
        return HKDFExpand(hashes.SHA256(), length, pack("!HB", length, len(full)) + full + b"\0").derive(secret)

    extract = hmac.HMAC(bytes.fromhex(salt), hashes.SHA256())
    extract.update(dcid if key_dcid is None else key_dcid)
    secret = expand(extract.finalize(), b"client in", 32)
    key, iv, protection = (
        expand(secret, prefix + b" key", 16),
        expand(secret, prefix + b" iv", 12),
        expand(secret, prefix + b" hp", 16),
    )
    head = bytes([first]) + pack("!I", version) + bytes([len(dcid)]) + dcid + b"\0\0"
    plain = frames + b"\0" * max(0, size - len(head) - 2 - 4 - 16 - len(frames))
    header = head + pack("!H", 0x4000 | (4 + len(plain) + 16)) + pack("!I", packet_number)
    nonce = bytes(a ^ b for a, b in zip(iv, pack("!IQ", 0, packet_number), strict=True))
    sealed = AESGCM(key).encrypt(nonce, plain, header)
    ecb = modes.ECB()  # noqa: S305 (header protection, RFC 9001 §5.4.3, is one block of it)
    mask = Cipher(algorithms.AES(protection), ecb).encryptor().update(sealed[:16])
    protected = bytearray(header)
    protected[0] ^= mask[0] & 0x0F
    for at in range(4):
        protected[len(header) - 4 + at] ^= mask[1 + at]
    return bytes(protected) + sealed


def pcap(
    packets: Sequence[bytes],
    *,
    link: int = 1,
    magic: int = 0xA1B2C3D4,
    order: str = "<",
    snap: int = 262144,
    times: Sequence[float] | None = None,
) -> bytes:
    """A classic capture, a packet a second from ``T0`` on, or at ``times`` seconds behind it."""
    unit = 1_000_000_000 if magic == 0xA1B23C4D else 1_000_000
    parts = [pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for index, packet in enumerate(packets):
        seconds, part = divmod(round((times[index] if times else index) * unit), unit)
        parts.append(pack(order + "IIII", T0 + seconds, part, min(len(packet), snap), len(packet)) + packet[:snap])
    return b"".join(parts)


def block(kind: int, body: bytes, *, order: str = "<", length: int | None = None, trailing: int | None = None) -> bytes:
    body += b"\0" * (-len(body) % 4)
    size = 12 + len(body) if length is None else length
    return pack(order + "II", kind, size) + body + pack(order + "I", size if trailing is None else trailing)


def option(code: int, value: bytes, *, order: str = "<") -> bytes:
    return pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def section(*options: bytes, order: str = "<") -> bytes:
    return block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + b"".join(options), order=order)


def interface(*options: bytes, link: int = 1, snap: int = 0, order: str = "<") -> bytes:
    return block(1, pack(order + "HHI", link, 0, snap) + b"".join(options), order=order)


def enhanced(
    packet: bytes,
    *options: bytes,
    on: int = 0,
    ticks: int = T0 * 1_000_000,
    order: str = "<",
    original: int | None = None,
    captured: int | None = None,
) -> bytes:
    padded = packet + b"\0" * (-len(packet) % 4)
    head = pack(
        order + "IIIII",
        on,
        ticks >> 32,
        ticks & 0xFFFFFFFF,
        len(packet) if captured is None else captured,
        len(packet) if original is None else original,
    )
    return block(6, head + padded + b"".join(options), order=order)


def read(
    tmp_path: Path, data: bytes, wanted: frozenset[str] | None = None, *, name: str = "c.pcap"
) -> tuple[list[Event], Observation]:
    """Write a capture and read it to its end."""
    path = tmp_path / name
    path.write_bytes(data)
    capture = PacketCapture(path, name)
    return list(capture.events(wanted)), capture.observation
