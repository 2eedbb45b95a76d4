"""Planted values in the forms in which they may leave: as they are, encoded, turned round, shifted, packed.

Every form is looked for as bytes, so that text, payloads and arguments are searched in the same way. Forms that have
a fixed spelling become one pattern; a single-byte xor is found by the differences of neighbouring bytes, which it
leaves as they are; packed and encoded blocks are opened and searched again, a few layers deep.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["FEWEST", "FORMS", "LAYERS", "Disguises", "Sighting"]

FEWEST = 8
"""A value of fewer bytes is not looked for: it would be met by chance."""

LAYERS = 3
"""Most layers of encoding and packing that are taken off."""

FORMS: Final = (
    "plain",
    "base64",
    "base32",
    "hex",
    "percent",
    "reversed",
    "rot13",
    "utf-16",
    "escaped",
    "spaced",
    "xor",
    "packed",
    "nested",
)
"""The names of the forms."""

_MOST_OPENED = 262_144  # bytes out of one packed block
_MOST_BLOCKS = 64
_LONGEST = 4_096  # bytes of a value that are looked for
_SHORTEST_BLOCK = 16
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}+={0,2}")
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_WORDS = bytes(byte if byte in _LETTERS else 0x20 for byte in range(256))
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){12,}+")
_GZIP, _ZLIB, _ZSTD = b"\x1f\x8b\x08", (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"), b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A planted value that was met.

    Attributes:
        name: which value.
        form: in which form (``FORMS``).
        at: where in the bytes searched.
    """

    name: str
    form: str
    at: int


class Disguises:
    """Looks for planted values in any form.

    Args:
        values: name to value; values shorter than ``FEWEST`` bytes are left out (see ``left_out``).
    """

    def __init__(self, values: Iterable[tuple[str, bytes]]) -> None:
        self.left_out: list[str] = []
        self._needles: dict[str, list[tuple[str, str, bytes]]] = {view: [] for view in _VIEWS}
        self._values: list[tuple[str, bytes]] = []
        self._shortest = _LONGEST
        self.longest = 0
        """The most bytes a form may take: what two pieces of one stream must share to lose nothing between them."""
        for name, whole in values:
            value = whole[:_LONGEST].strip()
            if len(value) < FEWEST:
                self.left_out.append(name)
                continue
            for view, form, needle in _spellings(value):
                self._needles[view].append((name, form, needle))
            self._values.append((name, value))
            self._shortest = min(self._shortest, len(value))
            self.longest = max(self.longest, 8 * len(value))

    def __bool__(self) -> bool:
        return self.longest > 0

    def search(self, data: bytes, layers: int = LAYERS) -> Iterator[Sighting]:
        """Yield the values met in ``data``, each once, in the first form found; the place is that of the block.

        Args:
            data: what is searched.
            layers: how many layers of encoding and packing may be taken off.
        """
        if not self or len(data) < FEWEST:
            return
        told: set[str] = set()
        for view, make in _VIEWS.items():
            seen = make(data)
            if seen is data and view == "percent":
                continue  # nothing was written so
            for name, form, needle in self._needles[view] if seen else ():
                if name not in told:
                    at = seen.find(needle)
                    if at >= 0:
                        told.add(name)
                        yield Sighting(name, form, at if seen is data or len(seen) == len(data) else 0)
        halves = data[::2], data[1::2]
        for name, value in self._values:
            if name not in told:
                at = _spaced(halves, value)
                if at >= 0:
                    told.add(name)
                    yield Sighting(name, "spaced", at)
        if layers > 0:
            for at, form, inner in _opened(data):
                # Nothing shorter than a value holds it, but what is packed may be longer than it looks.
                if len(inner) < self._shortest and not any(mark in inner for mark in (_GZIP, *_ZLIB, _ZSTD)):
                    continue
                for deep in self.search(inner, layers - 1):
                    if deep.name not in told:
                        told.add(deep.name)
                        yield Sighting(deep.name, form if deep.form == "plain" else "nested", at)


def _spellings(value: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Yield view, form and needle of every spelling of a value."""
    yield "itself", "plain", value
    for lead in range(3):
        # What stands in front shifts the groups of three bytes; letters that mix with neighbours are left away.
        text = base64.b64encode(b"\0" * lead + value)
        part = text[(0, 2, 3)[lead] : (len(value) + lead) * 8 // 6]
        yield "base64", "base64", part
        yield "base64", "nested", part[::-1]
    for lead in range(5):
        text = base64.b32encode(b"\0" * lead + value)
        yield "lower", "base32", text[-(-lead * 8 // 5) : (len(value) + lead) * 8 // 5].lower()
    yield "hex", "hex", value.hex().encode()
    yield "percent", "percent", value
    yield "itself", "reversed", value[::-1]
    yield "itself", "rot13", codecs.encode(value.decode("latin-1"), "rot13").encode("latin-1")
    yield "itself", "utf-16", b"\0".join(bytes([byte]) for byte in value)
    yield "escapes", "escaped", value
    yield "differences", "xor", _differences(value)


_SEPARATORS = b" :,;\r\n%\\"
# k e y   k-e-y   k.e.y: one mark between all letters, which labels and words are split by
_MARKS = frozenset(b" ._,|-")
_ESCAPE = re.compile(
    rb"\\{1,2}u00([0-9a-fA-F]{2})|\\{1,2}x([0-9a-fA-F]{2})|&#(?:[xX]0*([0-9a-fA-F]{1,2})|0*(\d{1,3}));"
)
_PERCENT = re.compile(rb"%([0-9a-fA-F]{2})")  # RFC 3986 §2.1
_BASE64_ALPHABET = bytes.maketrans(b"-_", b"+/")


def _base64_view(data: bytes) -> bytes:
    """Return the data in the alphabet of RFC 4648 §4, without line breaks, which may come every 76 letters."""
    if b"\\" in data:
        data = data.replace(b"\\r", b"").replace(b"\\n", b"")
    return data.translate(_BASE64_ALPHABET, b"\r\n\\")


def _hex_view(data: bytes) -> bytes:
    """Return the data in small letters without what is written between hexadecimal digits."""
    # 6e 70 6d   6E:70:6D   \\x6e\\x70   0x6e, 0x70   %6e%70
    return data.lower().replace(b"\\x", b"").replace(b"0x", b"").translate(None, _SEPARATORS)


def _unescaped(data: bytes) -> bytes:
    if b"\\x" not in data and b"\\u00" not in data and b"&#" not in data:
        return b""
    return _ESCAPE.sub(lambda match: bytes([_code(match)]), data)


def _code(match: re.Match[bytes]) -> int:
    digits = match[1] or match[2] or match[3]
    return int(digits, 16) if digits else min(int(match[4]), 255)


def _spaced(halves: tuple[bytes, bytes], value: bytes) -> int:
    """Return where ``value`` stands with one mark between its bytes, -1 for nowhere.

    Args:
        halves: every other byte of the data, from the first and from the second on.
        value: what is looked for.
    """
    for lead in (0, 1):
        letters, marks = halves[lead], halves[1 - lead]
        at = letters.find(value)
        while at >= 0:
            if _MARKS.issuperset(marks[at + lead : at + lead + len(value) - 1]):
                return 2 * at + lead
            at = letters.find(value, at + 1)
    return -1


def _unquoted(data: bytes) -> bytes:
    return _PERCENT.sub(lambda match: bytes.fromhex(match[1].decode()), data) if b"%" in data else b""


def _differences(data: bytes) -> bytes:
    """Return the xor of each byte with the one behind it: the same whatever one byte all were xored with."""
    size = len(data)
    if size < 2:
        return b""
    one = int.from_bytes(data[:-1], "big") ^ int.from_bytes(data[1:], "big")
    return one.to_bytes(size - 1, "big")


_VIEWS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "itself": lambda data: data,
    "base64": _base64_view,
    "lower": bytes.lower,
    "percent": _unquoted,
    "hex": _hex_view,
    "escapes": _unescaped,
    "differences": _differences,
}
"""Ways to look at the data, each of which lays some forms bare."""


def _opened(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield what blocks of ``data`` hold once opened: place, form, content."""
    blocks = 0
    for at in _places(data, _GZIP):
        yield from _inflated(data, at, 31)
    for mark in _ZLIB:
        for at in _places(data, mark):
            yield from _inflated(data, at, 15)
    for at in _places(data, _ZSTD):
        yield from _unpacked(data, at)
    # Digits of either base stand in words of this length, which are found faster than the pattern finds them.
    if len(max(data.translate(_WORDS).split(), key=len, default=b"")) < _SHORTEST_BLOCK:
        return
    for pattern, form in ((_BASE64, "base64"), (_HEX, "hex")):
        for match in pattern.finditer(data):
            blocks += 1
            if blocks > _MOST_BLOCKS:
                return
            inner = _decoded(match[0], form)
            if inner:
                yield match.start(), form, inner


def _places(data: bytes, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    for _ in range(_MOST_BLOCKS):
        if at < 0:
            return
        yield at
        at = data.find(mark, at + 1)


def _inflated(data: bytes, at: int, window: int) -> Iterator[tuple[int, str, bytes]]:
    try:
        inner = zlib.decompressobj(window).decompress(memoryview(data)[at:], _MOST_OPENED)
    except zlib.error:
        return
    if inner:
        yield at, "packed", inner


def _unpacked(data: bytes, at: int) -> Iterator[tuple[int, str, bytes]]:
    import zstandard

    try:
        inner = zstandard.ZstdDecompressor().decompressobj().decompress(data[at:])
    except zstandard.ZstdError:
        return
    if inner:
        yield at, "packed", inner[:_MOST_OPENED]


def _decoded(block: bytes, form: str) -> bytes:
    try:
        if form == "hex":
            return binascii.unhexlify(block)
        body = block.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        return base64.b64decode(body[: len(body) - (len(body) % 4 == 1)] + b"=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return b""
