"""Words and sentences of a folded text: identifiers are split, addresses and paths stay whole, all of it bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from mcpdetect.correlate.text.fold import Folded

__all__ = ["OVERLAP", "SENTENCE", "Sentence", "Token", "sentences", "tokens"]

SENTENCE = 512
"""Most tokens of one sentence; a longer one is read in pieces."""

OVERLAP = 96
"""How many tokens two such pieces share, so that no order is lost between them."""

Kind = Literal["word", "url", "email", "host", "path", "stop"]

# Every alternative is possessive or bounded, so that a text of n characters takes a number of steps in the order of n.
_TOKEN = re.compile(
    r"""
      (?P<url>(?:https?|wss?|ftps?|s3|gs)://[^\s<>"'`\u201c\u201d\u2019]++)      # https://c.example/collect
    | (?P<email>[a-z0-9._%+-]{1,64}+@(?:[a-z0-9-]{1,63}+\.){1,8}[a-z]{2,24}+)   # drop@c.example
    | (?P<abbreviation>(?<!\w)(?:e\.g|i\.e|etc|vs|incl)\.(?!\s*+$))              # e.g. a host
    | (?P<path>(?:~|\.\.?|\$\{?home\}?)?+(?:/[\w.@%+*-]++)++/?+                  # ~/.ssh/id_rsa
        | (?<![\w.])\.[a-z](?:[\w-]|\.(?=\w)){0,63}+(?<!-))                      # .env
    | (?P<host>(?<![\w.-])(?:[a-z0-9-]{1,63}\.){1,8}[a-z0-9-]{1,63}(?<!-)(?::\d{1,5})?+(?:/[\w./?=&%-]*+)?+)
    | (?P<word>[^\W_][\w]*+(?:['\u2019][^\W\d_]{1,3}+(?!['\u2019\w]))?+)         # output_tokens, user's
    | (?P<stop>(?<![.!?;\u2026\u3002\uff01\uff1f])[.!?;\u2026\u3002\uff01\uff1f]++(?=[\s"'`)\]\u201d\u2019]|$)|\u3002
        | \n[ \t\r]*+\n | \n[ \t]*+(?:[-*\u2022]|\d{1,3}+[.)])(?=\s))            # blank line, list item
    """,
    re.VERBOSE,
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]++|[^\W\d_a-zA-Z]++")
_PART = re.compile(r"[^\W\d_]++")
_QUOTES = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb"
_CLOSING = "\"'`\u2019\u201d\u00bb"


@dataclass(slots=True)
class Token:
    """One word, address or path.

    Attributes:
        text: folded and in lower case, without a possessive ``'s``.
        start, end: place in the folded text.
        kind: what it is.
        whole: the identifier it is a part of (``output_tokens``), else its own text.
        part: it is only a part of an identifier.
        quoted: it stands between quotes.
        owned: it carried a possessive ``'s``.
        lead: the marks between it and the token before, such as ``, `` or ``: ``.
    """

    text: str
    start: int
    end: int
    kind: Kind
    whole: str
    part: bool = False
    quoted: bool = False
    owned: bool = False
    lead: str = ""


@dataclass(slots=True)
class Sentence:
    """The tokens of one sentence, or of a piece of a very long one."""

    tokens: list[Token]

    @property
    def start(self) -> int:
        """Place of its first character in the folded text."""
        return self.tokens[0].start

    @property
    def end(self) -> int:
        """Place behind its last character in the folded text."""
        return self.tokens[-1].end


def tokens(folded: Folded) -> Iterator[Token]:
    """Yield the tokens of a text in order, sentence ends as tokens of kind ``stop``."""
    text, cased = folded.text, folded.cased
    before = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        start, end = match.span()
        lead = text[before:start]
        before = end
        if kind == "stop":
            yield Token(match[0], start, end, "stop", match[0], lead=lead)
        elif kind in ("url", "email", "host", "path"):
            found = match[0].rstrip(".,;:!?)]}") or match[0]
            before = end = start + len(found)
            if kind == "host" and not _is_host(found):
                yield from _words(text, cased, start, end, lead)
            else:
                yield _token(text, found, start, end, kind, lead)
            if end < match.end() and match[0][len(found)] in ".;!?":
                yield Token(match[0][len(found)], end, end + 1, "stop", match[0][len(found)])
        elif kind == "abbreviation":
            yield Token(match[0].replace(".", ""), start, end, "word", match[0], lead=lead)
        else:
            yield from _words(text, cased, start, end, lead)


def _token(text: str, found: str, start: int, end: int, kind: str, lead: str) -> Token:
    quoted = lead[-1:] in _QUOTES and bool(lead) and text[end : end + 1] in _CLOSING and end < len(text)
    token_kind: Kind = "url" if kind == "url" else "email" if kind == "email" else "host" if kind == "host" else "path"
    return Token(found, start, end, token_kind, found, quoted=quoted, lead=lead)


def _is_host(found: str) -> bool:
    # 203.0.113.7:8080/in is an address, 1.2.3 a version, notes.txt a file; the vocabulary decides about the rest.
    labels = found.partition("/")[0].partition(":")[0].split(".")
    if all(label.isdecimal() for label in labels):
        return len(labels) == 4
    return not labels[-1].isdecimal()


def _words(text: str, cased: str, start: int, end: int, lead: str) -> Iterator[Token]:
    whole = text[start:end]
    quoted = bool(lead) and lead[-1] in _QUOTES and end < len(text) and text[end] in _CLOSING
    owned = False
    if whole.endswith(("'s", "\u2019s")):
        owned, whole, end = True, whole[:-2], end - 2
    if whole.isalpha() and _one_case(cased[start:end]):
        yield Token(whole, start, end, "word", whole, False, quoted, owned, lead)
        return
    pieces = [
        (part.start() + start, part.end() + start)
        for match in _PART.finditer(cased[start:end])
        for part in ([match] if _one_case(match[0]) else _CAMEL.finditer(cased[start:end], match.start(), match.end()))
    ]
    if "'" in whole or "\u2019" in whole:  # don't
        pieces = [(start, end)]
    for at, (left, right) in enumerate(pieces):
        yield Token(
            text[left:right].replace("\u2019", "'"),
            left,
            right,
            "word",
            whole,
            part=len(pieces) > 1 or len(whole) > right - left,
            quoted=quoted,
            owned=owned and at == len(pieces) - 1,
            lead=lead if at == 0 else "",
        )


def _one_case(word: str) -> bool:
    return word.islower() or word.isupper() or (word[:1].isupper() and word[1:].islower()) or not word.isascii()


def sentences(folded: Folded) -> list[Sentence]:
    """Return the sentences; of a longer one, pieces of ``SENTENCE`` tokens that share ``OVERLAP``."""
    if folded.cut is None:
        folded.cut = list(_sentences(folded))
    return cast("list[Sentence]", folded.cut)


def _sentences(folded: Folded) -> Iterator[Sentence]:
    gathered: list[Token] = []
    fresh = 0
    for token in tokens(folded):
        if token.kind == "stop":
            if fresh:
                yield Sentence(gathered)
            gathered, fresh = [], 0
            continue
        gathered.append(token)
        fresh += 1
        if len(gathered) == SENTENCE:
            yield Sentence(gathered)
            gathered, fresh = gathered[-OVERLAP:], 0
    if fresh:
        yield Sentence(gathered)
