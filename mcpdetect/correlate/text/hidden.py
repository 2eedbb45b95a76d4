"""What a text carries past the eyes of a reader: characters nobody sees, words in disguise, blocks that decode.

Each find says how it was hidden, where, and what it reveals. What scripts and emoji need is no hiding: joiners of
Arabic and Indic letters, tag characters of subdivision flags, variation selectors behind their base, marks of
direction around right-to-left words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from mcpdetect.correlate.text.decoded import decoded
from mcpdetect.correlate.text.fold import LOOKALIKES, fold
from mcpdetect.correlate.text.says import says

__all__ = ["BLANKS", "EMPTY_LINES", "Hidden", "hidden"]

How = Literal[
    "tag-characters",
    "variation-selectors",
    "zero-width",
    "bidi-override",
    "look-alikes",
    "terminal-escape",
    "comment",
    "unseen-markup",
    "whitespace-wall",
    "encoded",
    "disguised-order",
]

EMPTY_LINES = 16
"""Fewest line ends in a row, blanks between them, that count as a wall. The most in about 700 recorded definitions of
honest tools is 3."""

BLANKS = 120
"""Fewest blanks in a row within a line, with words behind them, that count as a wall. The most in those: 34."""

# Unicode 15.1: tag characters, and the emoji tag sequences of UTS #51 for flags of subdivisions (gbsct, ustx, ...).
_TAGS = re.compile("[\U000e0000-\U000e007f]++")
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]{2}[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,4}\U000e007f")
_MOST_FLAGS = 12  # a text that shows more of them than a country has parts spells something
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}+")
_ZERO = "\u00ad\u034f\u115f\u1160\u180e\u200b-\u200d\u2060-\u2064\u3164\ufeff\uffa0"
_ZERO_RUN = re.compile(f"[{_ZERO}]++")
_LONG_RUN = 8
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_OVERRIDE = re.compile("[\u202d\u202e]([^\u202c\n]*+)")
# What turns left-to-right letters round (CVE-2021-42574) has its use only where letters go from right to left.
_TURNED = re.compile("[\u202b\u2067]([^\u202c\u2069\n]*+)")
_MIXED = re.compile(r"[^\W\d_]{3,}+")
# ESC [ 8 m   ESC ] 8 ; ; https://c.example BEL   CSI 2 J   (ECMA-48 §5.4, §8.3.117; OSC as xterm has it)
_ESCAPE = re.compile("(?:\x1b\\[|\x9b)([0-?]*+)[ -/]*+([@-~])|\x1b[\\]PX^_]([^\x07\x1b]*+)|\x1b[ -~]?")
_OVERTYPE = re.compile("[\x08]++|[^\r\n]\r(?![\r\n])")
_COMMENT = re.compile(
    r"<!--((?:(?!-->)[\s\S])*+)(?:-->|\Z)|^\[(?://|comment|_)\]:[ \t]*+(?:#|<>)[ \t]*+(.*+)$", re.MULTILINE
)
# <span style="display:none">...</span>   <div hidden>   style="color:#fff" / "font-size:0" / "opacity: 0"
_UNSEEN = re.compile(
    r"<(\w{1,20})\b[^<>]{0,200}?(?:display\s*+:\s*+none|visibility\s*+:\s*+hidden|font-size\s*+:\s*+0|opacity\s*+:\s*+0(?![.\d]*[1-9])"
    r"|color\s*+:\s*+(?:white|transparent|#fff(?:fff)?)\b|\shidden\b)[^<>]{0,200}>([\s\S]{0,4000}?)(?:</\1>|\Z)",
    re.IGNORECASE,
)
_WALL = re.compile(
    rf"(?<![ \t\u00a0\u3000\n])(?:(?:[ \t\u00a0\u3000]*+\n){{{EMPTY_LINES},}}+|[ \t\u00a0\u3000]{{{BLANKS},}}+(?=\S))"
)
_LETTERS = re.compile(r"[^\W\d_]{2,}+")
_MOST = 64  # finds of one text
_MOST_TRIED = 256  # pieces of markup


@dataclass(slots=True)
class Hidden:
    """One hidden thing.

    Attributes:
        how: the way it is hidden.
        start, end: place in the text.
        reveals: what it says, ``""`` where that is unknown.
        orders: rules that what it says fulfils as an order to the agent, sorted.
    """

    how: How
    start: int
    end: int
    reveals: str = ""
    orders: tuple[str, ...] = ()


def hidden(text: str) -> list[Hidden]:
    """Return what ``text`` hides, in order of place; at most 64 finds."""
    found: list[Hidden] = []
    if not text.isascii():
        found += _tags(text)
        found += _selectors(text)
        found += _zero_width(text)
        found += _directions(text)
        found += _mixed(text)
    found += _terminal(text)
    found += _unseen(text)
    found += _walls(text)
    for start, end, plain in decoded(text):
        orders = says(plain)
        if orders:
            found.append(Hidden("encoded", start, end, plain, orders))
    if not found:
        found += _disguised(text)
    found.sort(key=lambda item: (item.start, item.end))
    return found[:_MOST]


def _tags(text: str) -> Iterator[Hidden]:
    flags = [match.span() for match in _FLAG.finditer(text)]
    spared = {place for start, end in flags[:_MOST_FLAGS] for place in range(start, end)}
    for match in _TAGS.finditer(text):
        places = [place for place in range(match.start(), match.end()) if place not in spared]
        if places:
            plain = "".join(chr(ord(text[place]) - 0xE0000) for place in places)
            plain = "".join(letter for letter in plain if letter.isprintable())
            yield Hidden("tag-characters", places[0], places[-1] + 1, plain, says(plain))


def _selectors(text: str) -> Iterator[Hidden]:
    for match in _SELECTORS.finditer(text):
        codes = [ord(letter) for letter in match[0]]
        data = bytes(code - 0xFE00 if code < 0xE0100 else code - 0xE0100 + 16 for code in codes)
        plain = data.decode("utf-8", "replace")
        plain = plain if plain.isprintable() else ""
        yield Hidden("variation-selectors", match.start(), match.end(), plain, says(plain))


def _zero_width(text: str) -> Iterator[Hidden]:
    for match in _ZERO_RUN.finditer(text):
        start, end = match.span()
        if len(set(match[0])) > 1 and end - start >= _LONG_RUN:
            plain = _bits(match[0])
            yield Hidden("zero-width", start, end, plain, says(plain))
        elif end - start >= _LONG_RUN:
            yield Hidden("zero-width", start, end)
        elif match[0] != "\u00ad" and start and end < len(text) and _latin(text[start - 1]) and _latin(text[end]):
            word = _word_around(text, start, end)
            yield Hidden("zero-width", start, end, word)


def _latin(letter: str) -> bool:
    return letter.isascii() and letter.isalpha()


def _word_around(text: str, start: int, end: int) -> str:
    left, right = start, end
    while left and start - left < 40 and (text[left - 1].isalnum() or _ZERO_RUN.match(text[left - 1])):
        left -= 1
    while right < len(text) and right - end < 40 and (text[right].isalnum() or _ZERO_RUN.match(text[right])):
        right += 1
    return _ZERO_RUN.sub("", text[left:right])


def _bits(run: str) -> str:
    """Return what a run of two zero-width characters spells as bits of ASCII, in either order; ``""`` for nothing."""
    kinds = sorted(set(run))
    if len(kinds) != 2:
        return ""
    for one in kinds:
        bits = "".join("1" if letter == one else "0" for letter in run)
        plain = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8)).decode("latin-1")
        if len(plain) >= 2 and plain.isascii() and plain.isprintable():
            return plain
    return ""


def _directions(text: str) -> Iterator[Hidden]:
    if not _BIDI.search(text):
        return
    for match in _OVERRIDE.finditer(text):
        if _LETTERS.search(match[1]):
            plain = match[1][::-1] if match[0][0] == "\u202e" else match[1]
            yield Hidden("bidi-override", match.start(), match.end(), plain, says(plain))
    if not any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text):
        for match in _TURNED.finditer(text):
            if _LETTERS.search(match[1]):
                yield Hidden("bidi-override", match.start(), match.end(), match[1], says(match[1]))


def _mixed(text: str) -> Iterator[Hidden]:
    """Yield words of Latin letters and their doubles from other scripts (UTS #39 §5.1, mixed scripts)."""
    for match in _MIXED.finditer(text):
        word = match[0]
        if word.isascii():
            continue
        # Letters such as the dotless i look like others too, and are Turkish.
        doubles = [
            letter for letter in word if letter in LOOKALIKES and not unicodedata.name(letter).startswith("LATIN")
        ]
        latin = sum(_latin(letter) for letter in word)
        if doubles and latin and latin + len(doubles) == len(word):
            plain = "".join(LOOKALIKES.get(letter, letter) for letter in word)
            yield Hidden("look-alikes", match.start(), match.end(), plain)


def _terminal(text: str) -> Iterator[Hidden]:
    for match in _ESCAPE.finditer(text):
        if match[2] != "m" or {"8", "08"} & set((match[1] or "0").split(";")):
            yield Hidden("terminal-escape", match.start(), match.end(), match[3] or "")
    for match in _OVERTYPE.finditer(text):
        yield Hidden("terminal-escape", match.start(), match.end())


def _unseen(text: str) -> Iterator[Hidden]:
    if "<!--" in text or "]:" in text:
        for match in islice(_COMMENT.finditer(text), _MOST_TRIED):
            plain = (match[1] or match[2] or "").strip()
            orders = says(plain)
            if orders:
                yield Hidden("comment", match.start(), match.end(), plain, orders)
    if "<" in text:
        for match in islice(_UNSEEN.finditer(text), _MOST_TRIED):
            orders = says(match[2])
            if orders:
                yield Hidden("unseen-markup", match.start(), match.end(), match[2].strip(), orders)


def _walls(text: str) -> Iterator[Hidden]:
    for match in _WALL.finditer(text):
        # At the left margin of a line, blanks are an indent; a wall stands behind words.
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        behind = text[match.end() : match.end() + 2000]
        if ("\n" in match[0] or line.strip()) and len(_LETTERS.findall(behind)) >= 3:
            yield Hidden("whitespace-wall", match.start(), match.end(), behind.strip()[:400], says(behind))


def _disguised(text: str) -> Iterator[Hidden]:
    """Yield a text whose order is only there once its letters are read as what they look like."""
    folded = fold(text)
    if folded.disguises and folded.disguises != ("comment",):
        orders = tuple(rule for rule in says(text) if rule not in says(_seen(text)))
        if orders:
            yield Hidden("disguised-order", 0, len(text), folded.cased, orders)


def _seen(text: str) -> str:
    """Return the plain ASCII words of a text, everything else taken out: what a search for words would find."""
    return re.sub(r"[^\x00-\x7f]++", "\u2022", re.sub(r"(?<=[^\W_])[ .*-](?=[^\W_](?![^\W_]))", "\u2022", text))
