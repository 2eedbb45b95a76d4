"""Text out of hostile evidence: bytes to unambiguous text, and text that is safe to show.

Two different needs, never mixed:

* ``text_of`` turns bytes into well-formed Unicode without losing anything, for event fields.
* ``shown`` makes any text harmless in a terminal or report, for output.
"""

from __future__ import annotations

import re

__all__ = ["bytes_of", "shown", "text_of"]

_ESCAPE = re.compile(rb"\\\\|\\x([0-9a-f]{2})")

# Everything a terminal, a log viewer or a reader's eye may act on instead of showing: C0, DEL, C1, soft
# hyphen, Arabic letter mark, zero-width characters, bidi controls, line and paragraph separators, word joiner
# and invisible operators, variation selectors, byte order mark, interlinear annotations, tag characters,
# surrogates and noncharacters. (Unicode 15, categories Cc, Cf, Cs, Zl, Zp and the selectors.)
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\ufffe\uffff\U000e0000-\U000e0fff]"
)


def text_of(raw: bytes) -> str:
    r"""Return ``raw`` as well-formed text from which the bytes can be had again.

    Valid UTF-8 stays as it is; a byte that is not becomes ``\xNN`` and a backslash is doubled, so the
    result is unambiguous (``bytes_of`` undoes it) and encodable in JSON.
    """
    if b"\\" in raw:
        raw = raw.replace(b"\\", b"\\\\")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace")


def bytes_of(text: str) -> bytes:
    """Return the bytes that ``text_of`` made ``text`` from."""

    def undo(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return b"\\" if code is None else bytes([int(code, 16)])

    raw = text.encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(undo, raw) if b"\\" in raw else raw


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def shown(text: str, limit: int = 0) -> str:
    r"""Return ``text`` with every invisible or active character written out (``\x1b``, ``\u202e``).

    Args:
        text: any text, hostile or not.
        limit: cut to this many characters and end in ``…``; 0 keeps all.
    """
    if limit and len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_visible, text)
