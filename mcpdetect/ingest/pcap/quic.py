"""QUIC Initial packets of a client (RFC 9000 §17.2.2, RFC 9001 §5, RFC 9369): the hello inside them.

An Initial packet is encrypted with a key that anyone can derive. The cipher comes from the optional package
``cryptography``; without it an Initial is seen, but the name in it is not.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
from functools import lru_cache
from typing import Any, NamedTuple

from mcpdetect.ingest.tls import Hello, handshake_hello

__all__ = ["HelloCollector", "Initial", "can_decrypt", "read_initial"]

_MOST_CRYPTO = 16384
_MOST_CHUNKS = 256
_LONG, _FIXED = 0x80, 0x40
_SMALLEST = 1200  # RFC 9000 §14.1: a client pads the datagram of an Initial at least to this

# version -> salt (RFC 9001 §5.2, RFC 9369 §3.3.1), label prefix (§3.3.2), packet type bits of an Initial (§3.2)
_VERSIONS = {
    0x00000001: (bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"), b"quic", 0x00),
    0x6B3343CF: (bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9"), b"quicv2", 0x10),
}


class Initial(NamedTuple):
    """The clear part of a long header that is, or may be, a client's Initial.

    Attributes:
        version: QUIC version; of one that is not known here nothing but the connection ids can be read.
        dcid: destination connection id.
        number_at: offset of the packet number; 0 for an unknown version.
        end: offset behind the packet.
    """

    version: int
    dcid: bytes
    number_at: int
    end: int


@lru_cache(maxsize=1)
def _ciphers() -> tuple[Any, Any, Any, Any] | None:
    try:
        aead = importlib.import_module("cryptography.hazmat.primitives.ciphers.aead")
        ciphers = importlib.import_module("cryptography.hazmat.primitives.ciphers")
        errors = importlib.import_module("cryptography.exceptions")
    except ImportError:
        return None
    return aead.AESGCM, ciphers, ciphers.modes.ECB, errors.InvalidTag


def can_decrypt() -> bool:
    """Return whether the ``cryptography`` package is there."""
    return _ciphers() is not None


def read_initial(data: bytes, at: int = 0, *, cut: bool = False) -> Initial | None:
    """Read the header at ``at``; None when it is no Initial. ``cut``: the datagram's end is known to be missing.

    A header of an unknown version counts only at the start of a datagram as large as a client's first must be.
    """
    # c3 00000001 08 8394c8f03e515708 00 00 449e ...: flags, version, ids with lengths, token, length
    if at + 7 > len(data) or data[at] & (_LONG | _FIXED) != _LONG | _FIXED:
        return None
    version = int.from_bytes(data[at + 1 : at + 5], "big")
    width = data[at + 5]
    dcid = data[at + 6 : at + 6 + width]
    next_at = at + 6 + width
    if width > 20 or len(dcid) < width or next_at >= len(data):
        return None
    known = _VERSIONS.get(version)
    if known is None:
        if at == 0 and version and (cut or len(data) >= _SMALLEST) and data[next_at] <= 20:
            return Initial(version, dcid, 0, len(data))
        return None
    if data[at] & 0x30 != known[2] or data[next_at] > 20:
        return None
    token, next_at = _number(data, next_at + 1 + data[next_at])
    length, next_at = _number(data, next_at + token) if token >= 0 else (-1, 0)
    if cut and (token < 0 or length < 0 or next_at + length > len(data)):
        return Initial(version, dcid, len(data), len(data))
    if length < 20 or next_at + length > len(data):
        return None
    return Initial(version, dcid, next_at, next_at + length)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a variable-length integer (RFC 9000 §16); -1 where it is cut."""
    if at >= len(data):
        return -1, at
    width = 1 << (data[at] >> 6)
    raw = data[at : at + width]
    if len(raw) < width:
        return -1, at
    return int.from_bytes(raw, "big") & ((1 << (8 * width - 2)) - 1), at + width


def _expand(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label (RFC 8446 §7.1) for at most 32 bytes: one block of HKDF-Expand (RFC 5869 §2.3)."""
    info = size.to_bytes(2, "big") + bytes([6 + len(label)]) + b"tls13 " + label + b"\0"
    return hmac.digest(secret, info + b"\x01", hashlib.sha256)[:size]


@lru_cache(maxsize=64)
def _keys(version: int, dcid: bytes) -> tuple[bytes, bytes, bytes]:
    salt, label, _ = _VERSIONS[version]
    secret = _expand(hmac.digest(salt, dcid, hashlib.sha256), b"client in", 32)
    return (
        _expand(secret, label + b" key", 16),
        _expand(secret, label + b" iv", 12),
        _expand(secret, label + b" hp", 16),
    )


def _decrypt(data: bytes, at: int, initial: Initial, dcid: bytes) -> bytes | None:
    """Remove header protection and decrypt (RFC 9001 §5.3, §5.4); None when the key is not the right one."""
    found = _ciphers()
    sample = data[initial.number_at + 4 : initial.number_at + 20]
    if found is None or len(sample) < 16:
        return None
    aesgcm, ciphers, ecb, invalid_tag = found
    key, iv, protection = _keys(initial.version, dcid)
    mask = ciphers.Cipher(ciphers.algorithms.AES(protection), ecb()).encryptor().update(sample)
    first = data[at] ^ (mask[0] & 0x0F)
    width = (first & 3) + 1
    number = bytes(a ^ b for a, b in zip(data[initial.number_at : initial.number_at + width], mask[1:], strict=False))
    header = bytes([first]) + data[at + 1 : initial.number_at] + number
    nonce = (int.from_bytes(iv, "big") ^ int.from_bytes(number, "big")).to_bytes(12, "big")
    sealed = data[initial.number_at + width : initial.end]
    if len(sealed) < 16:
        return None
    try:
        plain: bytes = aesgcm(key).decrypt(nonce, sealed, header)
    except invalid_tag:
        return None
    return plain


class HelloCollector:
    """Puts together the CRYPTO frames of one client's Initial packets.

    Attributes:
        version: of the first Initial.
        opened: at least one packet could be decrypted.
    """

    def __init__(self) -> None:
        self.version = 0
        self.opened = False
        self._dcid: bytes | None = None
        self._chunks: dict[int, bytes] = {}
        self._held = 0
        self._contested = False

    def feed(self, data: bytes) -> Hello | None:
        """Take a datagram; return the hello once it is whole. Packets behind the Initial are left alone."""
        at = 0
        for _ in range(8):
            initial = read_initial(data, at)
            if initial is None or not initial.number_at:
                self.version = self.version or (initial.version if initial else 0)
                break
            self.version = self.version or initial.version
            # after the first flight the client uses another id with the key of the first; after a Retry, a new key
            for dcid in dict.fromkeys((self._dcid or initial.dcid, initial.dcid)):
                plain = _decrypt(data, at, initial, dcid)
                if plain is not None:
                    self._dcid = dcid
                    self.opened = True
                    self._frames(plain)
                    break
            at = initial.end
        hello = self.hello()
        return hello if hello.complete else None

    def hello(self) -> Hello:
        """Return what is known of the hello so far."""
        data = bytearray()
        for offset in sorted(self._chunks):
            chunk = self._chunks[offset]
            if offset > len(data):
                break
            again = data[offset : offset + len(chunk)]
            if again != chunk[: len(again)]:
                self._contested = True
            data += chunk[len(again) :]
        hello = handshake_hello(bytes(data)) or Hello()
        if self._contested:
            return Hello(None, hello.alpn, hello.ech, complete=False)
        return hello

    def _frames(self, plain: bytes) -> None:
        at = 0
        while at < len(plain):
            kind = plain[at]
            if kind == 0:  # PADDING, often a thousand of them
                at = len(plain) - len(plain[at:].lstrip(b"\0"))
            elif kind == 1:  # PING
                at += 1
            elif kind in (2, 3):
                at = _behind_ack(plain, at)
            elif kind == 6:
                offset, at = _number(plain, at + 1)
                length, at = _number(plain, at) if offset >= 0 else (-1, at)
                if length < 0:
                    return
                self._keep(offset, plain[at : at + length])
                at += length
            else:
                return

    def _keep(self, offset: int, chunk: bytes) -> None:
        known = self._chunks.get(offset)
        if known is not None:
            if known[: len(chunk)] != chunk[: len(known)]:
                self._contested = True
            if len(chunk) <= len(known):
                return
            self._held -= len(known)
        if offset + len(chunk) > _MOST_CRYPTO or len(self._chunks) >= _MOST_CHUNKS:
            return
        self._held += len(chunk)
        if self._held <= 2 * _MOST_CRYPTO:
            self._chunks[offset] = chunk


def _behind_ack(plain: bytes, at: int) -> int:
    """Step over an ACK frame (RFC 9000 §19.3)."""
    fields = 4
    kind = plain[at]
    at += 1
    seen = 0
    while seen < fields:
        value, at = _number(plain, at)
        if value < 0:
            return len(plain)
        seen += 1
        if seen == 3:  # the number of further ranges, two numbers each; ECN counts are three
            fields = 4 + 2 * min(value, len(plain)) + (3 if kind == 3 else 0)
    return at
