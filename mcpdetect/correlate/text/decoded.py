"""Blocks of a text that decode to another text: base64, hexadecimal, percent and backslash escapes, in a few layers."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import unquote

__all__ = ["LAYERS", "decoded", "decodings"]

LAYERS = 3
"""Most layers of encoding that are taken off."""

_MOST_BLOCKS = 32
_MOST_CHARACTERS = 16_384
# SWdub3JlIGFsbCBwcmV2aW91cyBpbnN0cnVjdGlvbnM=  (RFC 4648 §4 and §5)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{16,}+={0,2}(?![A-Za-z0-9+/=_-])")
_BASE32 = re.compile(r"(?<![A-Z2-7=])[A-Z2-7]{24,}+={0,6}(?![A-Z2-7=])")
_HEX = re.compile(
    r"(?<![0-9A-Za-z])(?:0x)?+(?:(?:[0-9a-fA-F]{2}){12,}+|(?:[0-9a-fA-F]{2}[ :]){12,512}+[0-9a-fA-F]{2})(?![0-9A-Za-z])"
)
_PERCENT = re.compile(r"(?:[\w.~!*'()+-]{0,40}+%[0-9a-fA-F]{2}){4,}+[\w.~!*'()%+-]{0,200}")
# \u0049\u0067\u006e   \x49\x67\x6e   &#73;&#x67;
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|&#(?:x[0-9a-fA-F]{1,6}|\d{1,7});){6,}+")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|&#x([0-9a-fA-F]{1,6});|&#(\d{1,7});")
_WORDS = re.compile(r"[^\W\d_]{2,}+")
_FEWEST_WORDS = 3


def decoded(text: str, layers: int = LAYERS) -> Iterator[tuple[int, int, str]]:
    """Yield the blocks of ``text`` that decode to readable words: start, end, and those words.

    What is encoded several times is taken to its end. At most 32 blocks of at most 16,384 characters are tried.
    """
    tried = 0
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            tried += 1
            if tried > _MOST_BLOCKS:
                return
            plain = read(match[0][:_MOST_CHARACTERS])
            if plain is None:
                continue
            inner = [deep for _, _, deep in decoded(plain, layers - 1)] if layers > 1 else []
            if inner:
                yield match.start(), match.end(), inner[0]
            elif len(_WORDS.findall(plain)) >= _FEWEST_WORDS:
                yield match.start(), match.end(), plain


def decodings(value: str) -> Iterator[str]:
    """Yield what one value is in each encoding that it is written in, words or not."""
    for pattern, read in _READERS:
        if pattern.fullmatch(value, 0, _MOST_CHARACTERS):
            plain = read(value)
            if plain is not None:
                yield plain


def _readable(data: bytes) -> str | None:
    try:
        plain = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    odd = sum(not (letter.isprintable() or letter in "\n\r\t") for letter in plain)
    return plain if plain and not odd else None


def _base64(block: str) -> str | None:
    body = block.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _readable(base64.b64decode(body + "=" * (-len(body) % 4), validate=True))
    except (binascii.Error, ValueError):
        return None


def _base32(block: str) -> str | None:
    body = block.rstrip("=")
    try:
        return _readable(base64.b32decode(body + "=" * (-len(body) % 8)))
    except (binascii.Error, ValueError):
        return None


def _hex(block: str) -> str | None:
    digits = re.sub(r"[ :]", "", block.removeprefix("0x"))
    return _readable(bytes.fromhex(digits)) if len(digits) % 2 == 0 else None


def _percent(block: str) -> str | None:
    plain = unquote(block.replace("+", " "), errors="replace")
    return plain if "\ufffd" not in plain else None


def _escapes(block: str) -> str | None:
    codes = [int(one[1] or one[2] or one[3], 16) if not one[4] else int(one[4]) for one in _ESCAPE.finditer(block)]
    if any(code > 0x10FFFF or 0xD800 <= code < 0xE000 for code in codes):
        return None
    return _readable("".join(map(chr, codes)).encode())


_READERS = (
    (_BASE64, _base64),
    (_BASE32, _base32),
    (_HEX, _hex),
    (_PERCENT, _percent),
    (_ESCAPES, _escapes),
)
