"""Texts that speak of tools by name and say what is to become of their use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mcpdetect.correlate.text.fold import Folded
from mcpdetect.correlate.text.roles import is_negated, is_ordered
from mcpdetect.correlate.text.tokens import Sentence, Token, sentences
from mcpdetect.correlate.text.words import vocabulary

__all__ = ["Reach", "reaches"]

# When send_email is called ...   After using `fetch_page` ...   Before `bash` runs
_MOMENTS = frozenset({"when", "whenever", "before", "after", "while", "once", "if"})
_USES = frozenset(
    {"use", "used", "uses", "using", "call", "called", "calls", "calling", "invoke", "invoked", "run", "runs"}
)
# What is done to another's call.
_BENDS = frozenset(
    {"add", "set", "change", "replace", "append", "include", "insert", "send", "forward", "bcc", "cc", "redirect"}
    | {"rewrite", "override", "modify", "prefix", "pass", "copy", "put", "attach", "fill", "encode", "drop", "remove"}
)
_FORBIDS = frozenset(["use", "call", "invoke", "run", "trust"])
_REPLACES = frozenset(["replaces", "supersedes", "overrides", "shadows", "replace", "supersede"])
_NO_NAMES = frozenset(
    {"this", "the", "a", "an", "that", "each", "any", "every", "other", "another", "same", "your", "no"}
)
_REACH = 6
_FAR = 24
_TOOL = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]+[A-Z][A-Za-z0-9]+|[a-z][a-z0-9]*(?:-[a-z0-9]+)+")


@dataclass(slots=True)
class Reach:
    """One reach for a tool.

    Attributes:
        rule: ``redirects`` (how it is to be called), ``forbids``, ``replaces``.
        tool: its name, in small letters.
        start, end: place of the sentence in the folded text.
    """

    rule: Literal["redirects", "forbids", "replaces"]
    tool: str
    start: int
    end: int


def reaches(folded: Folded) -> Iterator[Reach]:
    """Yield where a text speaks of a tool, whoever's it is, and of how it is to be used."""
    if not _TOOL.search(folded.cased) and "tool" not in folded.text:
        return
    for sentence in sentences(folded):
        yield from _sentence(sentence, folded)


def _sentence(sentence: Sentence, folded: Folded) -> Iterator[Reach]:
    tokens = sentence.tokens
    known: set[tuple[str, str]] = set()
    for at in range(len(tokens)):
        name = _named(tokens, at, folded)
        if not name:
            continue
        before = [item.text for item in tokens[max(0, at - _REACH) : at]]
        rule: Literal["redirects", "forbids", "replaces"] | None = None
        if _moment(tokens, at) and _bent(tokens, at):
            rule = "redirects"
        elif any(tokens[back].text in _FORBIDS and _forbidden(tokens, back) for back in range(max(0, at - 3), at)):
            rule = "forbids"
        elif any(word in _REPLACES for word in before[-3:]):
            rule = "replaces"
        if rule is not None and (rule, name) not in known and not _denied(tokens, at, rule):
            known.add((rule, name))
            yield Reach(rule, name, sentence.start, sentence.end)


def _named(tokens: list[Token], at: int, folded: Folded) -> str:
    """Return the identifier that a token begins, where it is the name of a tool: in quotes, or in front of "tool"."""
    token = tokens[at]
    if token.kind != "word" or (at and token.part and tokens[at - 1].whole == token.whole and not token.lead):
        return ""
    whole = folded.cased[token.start : token.start + len(token.whole)]
    last = at
    while last + 1 < len(tokens) and tokens[last + 1].whole == token.whole and tokens[last + 1].part:
        last += 1
    after = tokens[last + 1].text if last + 1 < len(tokens) else ""
    spelled = _TOOL.fullmatch(whole) is not None
    if spelled and (token.quoted or "_" in whole or after in ("tool", "tools", "is", "to")):
        return token.whole
    plain = whole[:1].isupper() and not whole.isupper() and token.text not in _NO_NAMES
    return token.whole if after == "tool" and not token.part and (token.quoted or plain) else ""


def _moment(tokens: list[Token], at: int) -> bool:
    """Return whether the tool's use is the moment of what follows: "when send_email is called", "before using it"."""
    used = False
    for item in tokens[at + 1 : at + _REACH]:
        if any(mark in item.lead for mark in ",;:()"):
            break
        used = used or item.text in _USES
    for back in range(at, max(-1, at - 1 - _REACH), -1):
        if tokens[back].text in _MOMENTS:
            return used
        used = used or tokens[back].text in _USES
        if any(mark in tokens[back].lead for mark in ",;:()"):
            break
    return False


def _bent(tokens: list[Token], at: int) -> bool:
    """Return whether the sentence orders something to be done with the call: an order stands behind it."""
    grammar = vocabulary()
    return any(
        tokens[n].text in _BENDS and is_ordered(tokens, n, grammar) and not is_negated(tokens, n, grammar)
        for n in range(at + 1, min(len(tokens), at + _FAR))
    )


def _forbidden(tokens: list[Token], at: int) -> bool:
    """Return whether the verb at a token is forbidden to the reader: "never use", "do not call"."""
    prior = [item.text for item in tokens[max(0, at - 2) : at]]
    return "never" in prior or "not" in prior or "don't" in prior or "stop" in prior


def _denied(tokens: list[Token], at: int, rule: str) -> bool:
    """Return whether what is said of the tool is taken back: "does not replace"."""
    return rule == "replaces" and any(item.text in ("not", "never") for item in tokens[max(0, at - 4) : at])
