"""Replacing personal details in evidence: user names, host names, private addresses; consistently, at equal length.

Nothing moves: every offset, size and line of the evidence stays. Names are replaced in ``/home/NAME``, ``/Users/NAME``
and, from four letters on, wherever they stand as a word; private IPv4 addresses (RFC 1918) in text and in the headers
of captured packets, whose checksums are made anew. Planted canaries stay. Not found: details that nobody names and
that stand nowhere in a known form, and addresses inside binary buffers; ``words`` names more.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcpdetect.score.promote_packets import readdressed

__all__ = ["Redaction", "find_details"]

# /home/alice/project, /Users/alice
_HOME = re.compile(rb"/(?:home|Users)/([A-Za-z0-9_.-]{1,32}+)")
# uname({sysname="Linux", nodename="build-7", ...}) = 0
_NODE = re.compile(rb'nodename="([^"\\]{1,64}+)"')
# 10.200.0.2, 172.16.0.1, 192.168.1.23
_PRIVATE = re.compile(
    rb"(?<![0-9.])(?:10\.[0-9]{1,3}|172\.(?:1[6-9]|2[0-9]|3[01])|192\.168)\.[0-9]{1,3}\.[0-9]{1,3}(?!\.?[0-9])"
)
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
    """

    wanted: Sequence[bytes]
    seed: int | None = None
    names: dict[bytes, bytes] = field(default_factory=dict)
    addresses: dict[bytes, bytes] = field(default_factory=dict)
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

    def text(self, data: bytes) -> bytes:
        """Return text, or any bytes that hold some, with every detail replaced."""
        for name, made in self.names.items():
            data = re.sub(rb"(?<=/home/)" + re.escape(name) + rb"(?![A-Za-z0-9_.-])", made, data)
            data = re.sub(rb"(?<=/Users/)" + re.escape(name) + rb"(?![A-Za-z0-9_.-])", made, data)
            if len(name) >= _WHOLE_WORD:
                data = re.sub(rb"(?<![A-Za-z0-9_])" + re.escape(name) + rb"(?![A-Za-z0-9_])", made, data)
        return _PRIVATE.sub(lambda match: self.address(match[0]), data)

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
        return result

    def packet(self, record: bytes, header: int, link: int) -> bytes:
        """Return a captured packet with its text and its addresses replaced.

        Args:
            record: the packet as it lies in a classic pcap file.
            header: bytes of the record's own header.
            link: the link type.
        """
        frame = self.text(record[header:])
        return record[:header] + readdressed(frame, link, self._binary)

    def _binary(self, raw: bytes) -> bytes:
        written = b".".join(str(part).encode() for part in raw)
        if not _PRIVATE.fullmatch(written):
            return raw
        return bytes(int(part) for part in self.address(written).split(b"."))


def find_details(texts: Iterable[bytes]) -> list[bytes]:
    """Return the user and host names that texts give away, sorted."""
    found: set[bytes] = set()
    for text in texts:
        found.update(match[1] for match in _HOME.finditer(text))
        found.update(match[1] for match in _NODE.finditer(text))
    return sorted(name for name in found if name not in _PLAIN)
