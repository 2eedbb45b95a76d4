"""Replacing personal details in evidence: user names, host names, private addresses; consistently, at equal length.

Nothing moves: every offset, size and line of the evidence stays, but for buffers of a log in which a byte is written
with more signs than before. Names are replaced in ``/home/NAME``, ``/Users/NAME`` and, from four letters on, wherever
they stand as a word; private addresses (RFC 1918, ULA of RFC 4193, link-local IPv6) in text, in names of reverse
lookups, in the headers of captured packets, whose checksums are made anew, and, once known from one of these, as the
four or sixteen bytes of a binary buffer. Strings that strace wrote in hexadecimal are read as what they say. Planted
canaries stay. Not found: details that nobody names and that stand nowhere in a known form; ``words`` names more.
"""

from __future__ import annotations

import base64
import ipaddress
import random
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcpdetect.score.promote_packets import readdressed

__all__ = ["Redaction", "escaped", "find_details"]

# /home/alice/project, /Users/alice
_HOME = re.compile(rb"/(?:home|Users)/([A-Za-z0-9_.-]{1,32}+)")
# uname({sysname="Linux", nodename="build-7", ...}) = 0
_NODE = re.compile(rb'nodename="([^"\\]{1,64}+)"')
# 10.200.0.2, 172.16.0.1, 192.168.1.23
_PRIVATE = re.compile(
    rb"(?<![0-9.])(?:10\.[0-9]{1,3}|172\.(?:1[6-9]|2[0-9]|3[01])|192\.168)\.[0-9]{1,3}\.[0-9]{1,3}(?!\.?[0-9])"
)
# fd00:200::2, fe80::a8:1ff:fe00:2
_PRIVATE6 = re.compile(
    rb"(?<![0-9A-Fa-f:.])(?:[fF][cCdD][0-9A-Fa-f]{2}|[fF][eE][89abAB][0-9A-Fa-f])(?::[0-9A-Fa-f]{0,4}){2,7}(?![0-9A-Fa-f:])"
)
# 2.0.200.10.in-addr.arpa
_REVERSE = re.compile(rb"(?<![0-9.])((?:[0-9]{1,3}\.){4})(?=in-addr\.arpa)")
# 2.0.0.0.(27 more).d.f.ip6.arpa
_REVERSE6 = re.compile(rb"(?<![0-9A-Za-z.])((?:[0-9a-f]\.){32})(?=ip6\.arpa)")
# \x2f\x68\x6f\x6d\x65, as strace -x and -xx write strings
_HEX = re.compile(rb"(?:\\x[0-9a-f]{2}){4,}+")
# "data":"R0VUIC8=" as a trace writes the bytes of an event
_BYTES = re.compile(rb'("(?:data|raw)":")((?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?+)"')
_WHOLE_WORD = 4
_PLAIN = (b"root", b"user", b"node", b"localhost", b"cell")


@dataclass(slots=True)
class Redaction:
    """One consistent replacement.

    Args:
        names: user and host names to replace.
        seed: what replacements are drawn from; None draws them anew, so that nobody can turn them back.

    Attributes:
        names: name -> its replacement of equal length.
        addresses: private addresses that were replaced, so far.
        raw: the same as bytes, 4 or 16 of them.
    """

    wanted: Sequence[bytes]
    seed: int | None = None
    names: dict[bytes, bytes] = field(default_factory=dict)
    addresses: dict[bytes, bytes] = field(default_factory=dict)
    raw: dict[bytes, bytes] = field(default_factory=dict)
    _digits: dict[int, int] = field(default_factory=dict)
    _octets: list[dict[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        source: random.Random = random.Random(self.seed) if self.seed is not None else random.SystemRandom()  # noqa: S311
        letters = string.ascii_lowercase
        for name in sorted(set(self.wanted), key=lambda one: (-len(one), one)):
            while True:
                made = "".join(source.choice(letters) for _ in name).encode()
                if made != name and made not in self.names.values():
                    break
            self.names[name] = made
        for _ in range(3):
            table: dict[int, int] = {}
            for group in (range(10), range(10, 100), range(100, 256)):
                table.update(zip(group, source.sample(group, len(group)), strict=True))
            self._octets.append(table)
        # No digit becomes or was 0: a run of zeros, which the written form leaves out, stays one.
        self._digits = dict(zip(range(1, 16), source.sample(range(1, 16), 15), strict=True)) | {0: 0}

    def learn(self, texts: Iterable[bytes]) -> None:
        """Find the private addresses that evidence holds as text, so that buffers of any file are searched for them."""
        for text in texts:
            self.text(text)

    def text(self, data: bytes) -> bytes:
        """Return text, or any bytes that hold some, with every detail replaced."""
        for name, made in self.names.items():
            data = re.sub(rb"(?<=/home/)" + re.escape(name) + rb"(?![A-Za-z0-9_.-])", made, data)
            data = re.sub(rb"(?<=/Users/)" + re.escape(name) + rb"(?![A-Za-z0-9_.-])", made, data)
            if len(name) >= _WHOLE_WORD:
                data = re.sub(rb"(?<![A-Za-z0-9_])" + re.escape(name) + rb"(?![A-Za-z0-9_])", made, data)
        data = _PRIVATE.sub(lambda match: self.address(match[0]), data)
        data = _PRIVATE6.sub(lambda match: self._address6(match[0]), data)
        data = _REVERSE.sub(lambda match: self._reversed(match[1]), data)
        data = _REVERSE6.sub(lambda match: self._reversed6(match[1]), data)
        return _HEX.sub(lambda match: self._hex(match[0]), data)

    def log(self, data: bytes) -> bytes:
        """Return a log with every detail replaced, in its escaped buffers too."""
        known = list(self.raw.items())
        if known:
            spelled = b"|".join(b"(" + escaped(raw) + b")" for raw, _ in known)
            data = re.sub(spelled, lambda match: _escape(match[0], known[(match.lastindex or 1) - 1][1]), data)
        return self.text(data)

    def events(self, data: bytes) -> bytes:
        """Return the lines of a trace with every detail replaced, in the bytes that its events hold too."""

        def held(match: re.Match[bytes]) -> bytes:
            return match[1] + base64.b64encode(self.binary(base64.b64decode(match[2]))) + b'"'

        return _BYTES.sub(held, self.text(data))

    def binary(self, data: bytes) -> bytes:
        """Return bytes of any kind with every detail replaced, known addresses as bytes too."""
        if self.raw:
            known = b"|".join(re.escape(raw) for raw in sorted(self.raw, key=len, reverse=True))
            data = re.sub(known, lambda match: self.raw[match[0]], data, flags=re.DOTALL)
        return self.text(data)

    def address(self, written: bytes) -> bytes:
        """Return what a private address becomes: private still, as long, and in the same network as its neighbours."""
        if written in self.addresses:
            return self.addresses[written]
        parts = [int(part) for part in written.split(b".")]
        if any(part > 255 for part in parts) or written != b".".join(str(part).encode() for part in parts):
            return written
        fixed = 1 if parts[0] == 10 else 2
        made = parts[:fixed] + [self._octets[at - 1][parts[at]] for at in range(fixed, 4)]
        result = b".".join(str(part).encode() for part in made)
        self.addresses[written] = result
        self.raw[bytes(parts)] = bytes(made)
        return result

    def _address6(self, written: bytes) -> bytes:
        """Return what an IPv6 address becomes: its first two digits, and link-local's first group, stay."""
        text = written.decode("ascii")
        try:
            raw = ipaddress.IPv6Address(text).packed
        except ValueError:
            return written
        kept = 4 if raw[0] == 0xFE else 2
        made = text[:kept] + "".join(self._digit(char) for char in text[kept:])
        result = made.encode()
        self.addresses[written] = result
        self.raw[raw] = ipaddress.IPv6Address(made).packed
        return result

    def _digit(self, char: str) -> str:
        if char == ":":
            return char
        made = f"{self._digits[int(char, 16)]:x}"
        return made.upper() if char.isupper() else made

    def _reversed(self, written: bytes) -> bytes:
        address = b".".join(written.rstrip(b".").split(b".")[::-1])
        if not _PRIVATE.fullmatch(address):
            return written
        return b".".join(self.address(address).split(b".")[::-1]) + b"."

    def _reversed6(self, written: bytes) -> bytes:
        digits = written.replace(b".", b"")[::-1]
        groups = b":".join(digits[at : at + 4] for at in range(0, 32, 4))
        if not _PRIVATE6.fullmatch(groups):
            return written
        made = self._address6(groups).replace(b":", b"")[::-1].decode("ascii")
        return "".join(f"{digit}." for digit in made).encode()

    def _hex(self, written: bytes) -> bytes:
        """Return a string in hexadecimal with the details replaced that it spells."""
        said = bytes.fromhex(written.decode("ascii").replace("\\x", ""))
        made = self.binary(said)
        return written if made == said else "".join(f"\\x{byte:02x}" for byte in made).encode()

    def packet(self, record: bytes, header: int, link: int) -> bytes:
        """Return a captured packet with its text and its addresses replaced.

        Args:
            record: the packet as it lies in a classic pcap file.
            header: bytes of the record's own header.
            link: the link type.
        """
        frame = self.binary(record[header:])
        return record[:header] + readdressed(frame, link, self._binary, original=record[header:])

    def _binary(self, raw: bytes) -> bytes:
        if len(raw) == 16:
            written = ipaddress.IPv6Address(raw).exploded.encode()
            if _PRIVATE6.fullmatch(written):
                self._address6(written)
            return self.raw.get(raw, raw)
        written = b".".join(str(part).encode() for part in raw)
        if not _PRIVATE.fullmatch(written):
            return raw
        return bytes(int(part) for part in self.address(written).split(b"."))


def escaped(raw: bytes) -> bytes:
    """Return a pattern of bytes as strace may write them in a string: plain, octal, hexadecimal, or by name."""
    return b"".join(b"(?:" + b"|".join(_spellings(byte)) + b")" for byte in raw)


def _spellings(byte: int) -> list[bytes]:
    named = {9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r"}.get(byte)
    found = [b"\\\\x%02x" % byte, b"\\\\%03o" % byte, b"\\\\%o(?![0-7])" % byte]
    if named is not None:
        found.append(b"\\\\" + named)
    if 0x20 <= byte < 0x7F and byte not in b'"\\':
        # a digit or letter that ends an escape is none of its own
        found.append(b"(?<!\\\\)" + re.escape(bytes([byte])))
    return found


def _escape(written: bytes, made: bytes) -> bytes:
    """Write bytes as those were that they replace: in hexadecimal, or in octal, which any version of strace may."""
    if written.startswith(b"\\x"):
        return "".join(f"\\x{byte:02x}" for byte in made).encode()
    return "".join(f"\\{byte:03o}" for byte in made).encode()


def find_details(texts: Iterable[bytes]) -> list[bytes]:
    """Return the user and host names that texts give away, sorted."""
    found: set[bytes] = set()
    for text in texts:
        for run in _HEX.finditer(text):
            found.update(match[1] for match in _HOME.finditer(bytes.fromhex(run[0].decode().replace("\\x", ""))))
        for held in _BYTES.finditer(text):
            found.update(match[1] for match in _HOME.finditer(base64.b64decode(held[2])))
        found.update(match[1] for match in _HOME.finditer(text))
        found.update(match[1] for match in _NODE.finditer(text))
    return sorted(name for name in found if name not in _PLAIN)
