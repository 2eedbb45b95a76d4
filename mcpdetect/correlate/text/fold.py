"""Folding: text as a reader takes it, whatever letters and invisible characters it was written with.

Every folded character knows the place in the original it came from, so that a finding quotes the original.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["LOOKALIKES", "Folded", "fold"]

# Letters of other scripts that look like Latin ones (our own selection from Unicode's confusables, UTS #39 §4),
# lower and upper case. Words in those scripts fold too; patterns in them are folded in the same way.
LOOKALIKES = dict(
    zip(
        "аеорсухіјѕһԁԛԝԍѵАВЕКМНОРСТУХІЈЅԌαορνικυτχγωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳıɑɡϹϺ",
        "aeopcyxijshdqwgvABEKMHOPCTYXIJSGaopvikutxywABEZHIKMNOPTYXcjiagCM",
        strict=True,
    )
)

# Zero-width characters, joiners, soft hyphen, variation selectors, bidi marks: nothing to see, nothing to read.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0100-\U000e01ef]"
)
# Flag of Scotland: U+1F3F4 U+E0067 U+E0062 U+E0073 U+E0063 U+E0074 U+E007F (UTS #51, emoji tag sequence).
_PIECES = re.compile(
    "(?P<flag>\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,8}+\U000e007f)"
    "|(?P<tags>[\U000e0000-\U000e007f]++)"
    "|\u202e(?P<reversed>[^\u202c\n]++)"
)
# f o r w a r d  t h e  k e y s; s-e-n-d: at least four letters with one mark between them; then shorter words too
_SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?:[ .*·-][^\W\d_](?![^\W_])){3,}+")
_SPACED_SHORT = re.compile(r"(?<![^\W_])[^\W\d_](?:[ .*·-][^\W\d_](?![^\W_]))++")
# a letter before and behind one invisible character or several
_LATIN = re.compile(f"[a-zA-Z]{_INVISIBLE.pattern}++[a-zA-Z]")
# "first line\\nSecond line": JSON within a text (C:\\new is a path)
# \\xff: a byte that is no UTF-8, or a part of a lone surrogate
_ESCAPED = re.compile(r"\\(?:[nrt](?![a-z0-9_])|x[89a-f][0-9a-f])")
_EXPANSION = 4
# <!-- an order in a comment of the Markdown -->
_COMMENT = re.compile(r"<!--|-->")


@dataclass(slots=True)
class Folded:
    """A folded text.

    Attributes:
        original: the text as given.
        cased: the folded text with its letter case, as long as ``text``.
        text: the folded text in lower case.
        origin: for each folded character the index of the original one it stands for; None where they are the same.
        cut: the sentences, once somebody asked for them; several checks read one text after another.
        disguises: how parts were hidden, sorted: ``tag-characters``, ``invisible``, ``reversed``, ``look-alikes``,
            ``letter-spacing``, ``comment``.
    """

    original: str
    cased: str
    text: str
    origin: array[int] | None
    disguises: tuple[str, ...]
    cut: list[object] | None = None

    def quote(self, start: int, end: int) -> str:
        """Return the original behind the folded characters from ``start`` up to ``end``."""
        if start >= end:
            return ""
        if self.origin is None:
            return self.original[start:end]
        places = self.origin[start:end]
        return self.original[min(places) : max(places) + 1]


@lru_cache(maxsize=64)
def fold(text: str) -> Folded:
    """Return ``text`` normalized (NFKC, look-alikes, accents, invisible and tag characters, letter spacing, case)."""
    disguises: set[str] = set()
    origin: array[int] | None = None
    cased = text
    if not text.isascii():
        parts: list[str] = []
        origin = array("L")
        for piece, place in _visible(text, disguises):
            parts.append(piece)
            origin.extend([place] * len(piece))
        cased = "".join(parts)
    if _COMMENT.search(cased):
        disguises.add("comment")
        cased = _COMMENT.sub(lambda match: " " * len(match[0]), cased)
    if "\\" in cased:
        cased = _ESCAPED.sub(lambda match: "\n".ljust(len(match[0])), cased)
    if _SPACED.search(cased):
        disguises.add("letter-spacing")
        cased, origin = _collapsed(cased, origin)
    return Folded(text, cased, _lower(cased), origin, tuple(sorted(disguises)))


def _visible(text: str, disguises: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the folded characters of ``text``, each with its place."""
    at = 0
    for match in _PIECES.finditer(text):
        yield from _characters(text, range(at, match.start()), disguises)
        at = match.end()
        if match["tags"] is not None:
            disguises.add("tag-characters")
            yield "\n\n", match.start()
            for place in range(match.start(), match.end()):
                letter = ord(text[place]) - 0xE0000
                if 0x20 <= letter < 0x7F:
                    yield chr(letter), place
            yield "\n\n", match.end() - 1
        elif match["reversed"] is not None:
            disguises.add("reversed")
            yield from _characters(text, range(match.end() - 1, match.start(), -1), disguises)
        else:
            yield " ", match.start()
    yield from _characters(text, range(at, len(text)), disguises)


def _characters(text: str, places: range, disguises: set[str]) -> Iterator[tuple[str, int]]:
    for place in places:
        character = text[place]
        if character < "\x80":
            yield character, place
            continue
        folded, disguise = _character(character)
        # Between letters an invisible character hides a word; beside emoji and in other scripts it has its use.
        if disguise and (folded or _LATIN.match(text, place - 1)):
            disguises.add(disguise)
        if folded:
            yield folded, place


@lru_cache(maxsize=4096)
def _character(character: str) -> tuple[str, str]:
    if _INVISIBLE.match(character):
        return "", "invisible"
    if character in LOOKALIKES:
        return LOOKALIKES[character], "look-alikes"
    plain = "".join(
        LOOKALIKES.get(part, part)
        for part in unicodedata.normalize("NFKD", character)
        if unicodedata.category(part) != "Mn"
    )
    if len(plain) > _EXPANSION:  # U+FDFA stands for 18 letters
        plain = character
    # Full-width and mathematical letters, circled and squared ones
    wide = (
        "\uff01" <= character <= "\uff5e"
        or "\u24b6" <= character <= "\u24e9"
        or "\U0001d400" <= character <= "\U0001d7ff"
        or "\U0001f130" <= character <= "\U0001f169"
    )
    return plain, "look-alikes" if wide else ""


def _collapsed(cased: str, origin: array[int] | None) -> tuple[str, array[int]]:
    kept: list[str] = []
    places = array("L")
    source = array("L", range(len(cased))) if origin is None else origin
    at = 0
    for match in _SPACED_SHORT.finditer(cased):
        kept.append(cased[at : match.start()])
        places.extend(source[at : match.start()])
        # Between two letters of a run there is exactly one mark.
        kept.append(cased[match.start() : match.end() : 2])
        places.extend(source[match.start() : match.end() : 2])
        at = match.end()
    kept.append(cased[at:])
    places.extend(source[at:])
    return "".join(kept), places


def _lower(text: str) -> str:
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
