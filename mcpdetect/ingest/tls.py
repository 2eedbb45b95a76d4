"""TLS ClientHello (RFC 8446 §4.1.2): the name asked for, and what else a hello says in the clear."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from functools import lru_cache

from mcpdetect.model.text import text_of

__all__ = ["Hello", "client_hello", "handshake_hello", "looks_like_hello", "unwrap_records"]

_HANDSHAKE = 0x16  # RFC 8446 §5.1, content type
_CLIENT_HELLO = 1
_MOST_RECORD = 16384 + 2048  # RFC 5246 §6.2.3, the largest length any version allows
_SERVER_NAME, _ALPN, _SIGNATURES, _VERSIONS, _ECH = 0, 16, 13, 43, 0xFE0D
_READ = frozenset({_SERVER_NAME, _ALPN, _SIGNATURES, _VERSIONS})
_PAIR = struct.Struct("!HH").unpack_from
_JA4_VERSIONS = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3", 0x0002: "s2"}


@dataclass(slots=True)
class Hello:
    """What a ClientHello says.

    Attributes:
        sni: the server name (RFC 6066 §3), ASCII letters in lower case, without a final dot; None where absent, or
            where the hello names two different ones.
        alpn: protocols offered (RFC 7301).
        ech: the extension 0xfe0d is there, real or filler.
        complete: the whole hello was there and well-formed; else ``sni`` None means unknown.
        ja4: the JA4 fingerprint, of a complete hello only.
    """

    sni: str | None = None
    alpn: list[str] = field(default_factory=list)
    ech: bool = False
    complete: bool = False
    ja4: str | None = None


def looks_like_hello(data: bytes) -> bool:
    """Return whether ``data`` can be the beginning of TLS records that hold a ClientHello; never for no bytes at all.

    As few bytes as there are decide: a sender may cut its first segment after one byte.
    """
    # 16 03 01 02 00 01 00 01 fc 03 03: record header, handshake header, version
    return (
        data[:2] in (b"\x16\x03", b"\x16")
        and data[2:3] <= b"\x04"
        and (len(data) < 5 or 0 < (data[3] << 8) | data[4] <= _MOST_RECORD)
        and data[5:6] in (b"", b"\x01")
    )


def client_hello(data: bytes) -> Hello | None:
    """Read a ClientHello out of TLS records.

    Args:
        data: the stream from its first byte; several records, and less than a whole hello, are fine.

    Returns:
        The hello, ``complete`` or not; None when the bytes are something else.
    """
    if not looks_like_hello(data):
        return None
    return handshake_hello(unwrap_records(data)[0], quic=False) or Hello()


def unwrap_records(data: bytes) -> tuple[bytes, int]:
    """Take the first handshake message out of its TLS records.

    Args:
        data: a stream that begins with a handshake record.

    Returns:
        The message as far as it is there, and how many bytes of the stream are missing at least before it can be whole:
        0 when it is, or when what follows is no handshake record and it never will be.
    """
    parts: list[bytes] = []
    at = have = 0
    need = 4
    while have < need:
        if at + 5 > len(data):
            return b"".join(parts), at + 5 - len(data) + need - have
        length = (data[at + 3] << 8) | data[at + 4]
        if data[at] != _HANDSHAKE or data[at + 1] != 3 or length > _MOST_RECORD:
            return b"".join(parts), 0
        part = data[at + 5 : at + 5 + length]
        parts.append(part)
        if have < 4 <= have + len(part):
            need = 4 + int.from_bytes(b"".join(parts)[1:4], "big")
        have += len(part)
        if len(part) < length and have < need:
            return b"".join(parts), max(1, need - have)
        at += 5 + length
    return b"".join(parts), 0


def handshake_hello(data: bytes, *, quic: bool = True) -> Hello | None:
    """Read a ClientHello out of handshake bytes without record headers, as QUIC's CRYPTO frames carry them.

    Args:
        data: the bytes from the message's first on; a beginning is enough for what it holds.
        quic: which letter its JA4 fingerprint begins with.

    Returns:
        The hello, ``complete`` or not; None when the bytes are something else or too few to tell.
    """
    if data[:1] != b"\x01":
        return None
    if len(data) < 4:
        return Hello()
    length = int.from_bytes(data[1:4], "big")
    return _read_hello(data[4 : 4 + length], length, "q" if quic else "t")


def _read_hello(body: bytes, length: int, letter: str) -> Hello:
    """Read the body of one hello that should have ``length`` bytes; lengths are checked against what is there.

    Written as one function with few calls: it is what most of a TLS connection costs.
    """
    size = len(body)
    names: list[bytes] = []
    kinds: list[int] = []
    protocols: list[bytes] = []
    signatures = versions = b""
    # version (2), random (32), then session id, cipher suites and compression methods with their lengths
    ciphers = _behind(body, 34, 1)
    methods = _behind(body, ciphers, 2)
    at = _behind(body, methods, 1)
    sound = at <= size
    if at < size:
        if _behind(body, at, 2) != size:
            sound = False
        at += 2
        while at + 4 <= size:
            kind: int
            width: int
            kind, width = _PAIR(body, at)
            kinds.append(kind)
            at += 4
            if kind in _READ:
                data = body[at : at + width]
                if kind == _SERVER_NAME:
                    sound = _server_names(data, names) and sound
                elif kind == _SIGNATURES:
                    signatures = data[2:]
                elif kind == _VERSIONS:
                    versions = data[1:]
                elif len(data) == width:
                    _protocols(data, protocols)
            at += width
        if at != size:
            sound = False
    different = {name.rstrip(b".").lower() for name in names} - {b""}
    complete = sound and size == length and len(different) < 2
    return Hello(
        text_of(different.pop()) if len(different) == 1 else None,
        [text_of(name) for name in protocols],
        _ECH in kinds,
        complete,
        _ja4(
            letter,
            body[:2],
            body[ciphers + 2 : methods],
            tuple(kinds),
            versions,
            signatures,
            protocols[0] if protocols else b"",
        )
        if complete
        else None,
    )


def _behind(body: bytes, at: int, width: int) -> int:
    """Return the offset behind a vector whose length takes ``width`` bytes, 1 or 2; past the end when it is cut."""
    if at + width > len(body):
        return len(body) + 1
    return at + 1 + body[at] if width == 1 else at + 2 + ((body[at] << 8) | body[at + 1])


def _server_names(data: bytes, names: list[bytes]) -> bool:
    """Add the host names of a server_name extension; return whether none of its names is cut."""
    # 00 12 00 00 0f: list length, type host_name, name length
    sound = True
    at = 2
    while at + 3 <= len(data):
        length = (data[at + 1] << 8) | data[at + 2]
        name = data[at + 3 : at + 3 + length]
        if len(name) < length:
            sound = False
        elif data[at] == 0:
            names.append(name)
        at += 3 + length
    return sound


def _protocols(data: bytes, protocols: list[bytes]) -> None:
    """Add the protocols of an ALPN extension."""
    # 00 0c 02 68 32 08 ...: list length, then length and protocol
    at = 2
    while at < len(data):
        protocols.append(data[at + 1 : at + 1 + data[at]])
        at += 1 + data[at]


@lru_cache(maxsize=1024)
def _ja4(
    letter: str, legacy: bytes, ciphers: bytes, kinds: tuple[int, ...], versions: bytes, signatures: bytes, first: bytes
) -> str:
    """Return the JA4 fingerprint (FoxIO, "JA4: TLS Client Fingerprinting", technical details, 2023).

    Args:
        letter: ``t`` for TCP, ``q`` for QUIC.
        legacy: the version field of the hello.
        ciphers: the cipher suites.
        kinds: the extensions in their order.
        versions: of the supported_versions extension.
        signatures: of the signature_algorithms extension.
        first: the first protocol of the ALPN extension.
    """
    suites = [suite for suite in _pairs(ciphers) if not _is_grease(suite)]
    extensions = [kind for kind in kinds if not _is_grease(kind)]
    offered = [version for version in _pairs(versions) if not _is_grease(version)]
    version = max(offered, default=int.from_bytes(legacy, "big"))
    head = (
        f"{letter}{_JA4_VERSIONS.get(version, '00')}{'d' if _SERVER_NAME in extensions else 'i'}"
        f"{min(len(suites), 99):02d}{min(len(extensions), 99):02d}{_ends(first)}"
    )
    rest = ",".join(f"{kind:04x}" for kind in sorted(extensions) if kind not in (_SERVER_NAME, _ALPN))
    algorithms = [f"{one:04x}" for one in _pairs(signatures) if not _is_grease(one)]
    if algorithms:
        rest += "_" + ",".join(algorithms)
    return f"{head}_{_short(','.join(f'{suite:04x}' for suite in sorted(suites)))}_{_short(rest)}"


def _pairs(data: bytes) -> list[int]:
    return [(data[at] << 8) | data[at + 1] for at in range(0, len(data) - 1, 2)]


def _is_grease(value: int) -> bool:
    """Return whether a value is filler by RFC 8701 §2: ``0x?a?a`` with equal halves."""
    return value & 0x0F0F == 0x0A0A and value >> 8 == value & 0xFF


def _ends(protocol: bytes) -> str:
    """Return the first and last character of a protocol name, or of its hexadecimal form (no letter or digit)."""
    if not protocol:
        return "00"
    text = protocol[:1] + protocol[-1:]
    if text.isalnum():
        return text.decode("ascii")
    written = protocol.hex()
    return written[0] + written[-1]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:12] if text else "0" * 12
