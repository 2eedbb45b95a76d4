"""Texts that speak of tools by name and say what is to become of their use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mcpdetect.correlate.text.fold import Folded
from mcpdetect.correlate.text.patterns import patterns
from mcpdetect.correlate.text.roles import is_negated, is_ordered
from mcpdetect.correlate.text.tokens import Sentence, Token, sentences
from mcpdetect.correlate.text.words import vocabulary

__all__ = ["Reach", "reaches"]

_HAS_TO = (["has", "to"], ["have", "to"], ["needs", "to"], ["need", "to"])
_BREAKS = ",;:(){}[]"
_REACH = 6
_FAR = 24
# send_email   sendEmail   send-email
_TOOL = re.compile(
    r"(?<![a-z0-9])(?:[a-z][a-z0-9]*+(?:_[a-z0-9]++)++|[a-z]++[A-Z][A-Za-z0-9]++|[a-z][a-z0-9]*+(?:-[a-z0-9]++)++)"
)


Rule = Literal["redirects", "forbids", "replaces", "joins"]


@dataclass(slots=True)
class Reach:
    """One reach for a tool.

    Attributes:
        rule: ``redirects`` (how it is to be called), ``forbids``, ``replaces``, ``joins`` (this one is to be called
            before or after it).
        tool: its name, in small letters.
        start, end: place of the sentence in the folded text.
    """

    rule: Rule
    tool: str
    start: int
    end: int


def _words(name: str) -> frozenset[str]:
    """Return a group of words of ``poisoning.yaml`` by which a text speaks of tools."""
    return patterns().foreign[name]


def reaches(folded: Folded) -> Iterator[Reach]:
    """Yield where a text speaks of a tool, whoever's it is, and of how it is to be used."""
    if not _TOOL.search(folded.cased) and "tool" not in folded.text:
        return
    cut = sentences(folded)
    for number, sentence in enumerate(cut):
        following = cut[number + 1].tokens if number + 1 < len(cut) else []
        yield from _sentence(sentence, following, folded)


def _sentence(sentence: Sentence, following: list[Token], folded: Folded) -> Iterator[Reach]:
    tokens = sentence.tokens
    known: set[tuple[str, str]] = set()
    itself = _itself(tokens)
    for at in range(len(tokens)):
        name = _named(tokens, at, folded)
        if not name:
            continue
        rule = _rule(tokens, at, _last(tokens, at), itself=itself, then_itself=_itself(following))
        if rule is not None and (rule, name) not in known and not _denied(tokens, at, rule):
            known.add((rule, name))
            yield Reach(rule, name, sentence.start, sentence.end)


def _rule(tokens: list[Token], at: int, last: int, *, itself: bool, then_itself: bool) -> Rule | None:
    """Return what a sentence says of the tool named by the tokens ``at`` to ``last``, None for nothing.

    Args:
        tokens: those of the sentence.
        at: the first token of the name.
        last: its last one.
        itself: the sentence speaks of the tool whose text it is ("this tool", "ours").
        then_itself: the next sentence does.
    """
    before = [item.text for item in tokens[max(0, at - _REACH) : at] if not item.part]
    after = {item.text for item in tokens[last + 1 : last + 1 + _REACH]}
    moment = _moment(tokens, at)
    piece = tokens[at].part and _piece(tokens, at, last)
    if moment and _bent(tokens, at + 1, at + _FAR):
        return "redirects"
    near = _REACH if piece else 3
    if any(
        tokens[back].text in _words("forbids") and _forbidden(tokens, back) for back in range(max(0, at - near), at)
    ):
        return "forbids"
    if any(word in _words("replaces") for word in before[-3:]) or (itself and not after.isdisjoint(_words("replaced"))):
        return "replaces"
    if _banned(tokens, last) or _shunned(tokens, at, last, piece=piece):
        return "forbids"
    if not after.isdisjoint(_words("faulty")) and (itself or then_itself):
        return "forbids"
    if itself and any(item.text in _words("instead") for item in tokens):
        return "replaces"
    if itself and before[-1:] == ["override"]:
        return "replaces"
    through = any(item.text in ("through", "via") for item in tokens)
    if itself and piece and (through or _bent(tokens, 0, len(tokens))):
        return "redirects"
    if before[-1:] == ["of"] and tokens[at].text in _words("acts") and _bent(tokens, max(0, at - _REACH), at):
        return "redirects"
    must = last + 1 < len(tokens) and tokens[last + 1].text in _words("must")
    if must and tokens[at].text in _words("acts") and _must(tokens, last):
        return "redirects"
    if piece and (_bent(tokens, max(0, at - _FAR), at) or _must(tokens, last)):
        return "redirects"
    if itself and moment and tokens[at].part:
        return "joins"
    return None


def _itself(tokens: list[Token]) -> bool:
    """Return whether the tool speaks of itself: "this tool", "ours"."""
    own = _words("self")
    return any(
        item.text in ("ours", "us") or (item.text == "this" and n + 1 < len(tokens) and tokens[n + 1].text in own)
        for n, item in enumerate(tokens)
    )


def _piece(tokens: list[Token], at: int, last: int) -> bool:
    """Return whether a part of the tool's use is spoken of: "the result of fetch_page", "every add_event call"."""
    linked = False
    for back in range(at, max(0, at - _REACH), -1):
        if any(mark in tokens[back].lead for mark in _BREAKS):
            break
        linked = linked or tokens[back - 1].text in _words("links")
        if linked and tokens[back - 1].text in _words("pieces") and not tokens[back - 1].part:
            return True
    return last + 1 < len(tokens) and tokens[last + 1].text in _words("calls")


def _banned(tokens: list[Token], last: int) -> bool:
    """Return whether the tool is said to be forbidden: "the use of fetch_url is forbidden"."""
    near = tokens[last + 1 : last + 1 + _REACH]
    return any(near[n].text in _words("banned") and near[n - 1].text in _words("is") for n in range(1, len(near)))


def _must(tokens: list[Token], last: int) -> bool:
    """Return whether something must be with what stands in front: "must be set", "must only be used"."""
    behind = [item.text for item in tokens[last + 1 : last + 1 + _FAR]]
    at = next((n for n, word in enumerate(behind) if word in _words("must") or behind[n : n + 2] in _HAS_TO), None)
    bent = at is not None and not _words("bent").isdisjoint(behind[at : at + 6])
    return bent and at is not None and "not" not in behind[at : at + 3]


def _shunned(tokens: list[Token], at: int, last: int, *, piece: bool) -> bool:
    """Return whether the reader is ordered to leave the tool alone: "skip scan_for_secrets", "..., disable it"."""
    grammar = vocabulary()
    called = (
        piece or not _words("acts").isdisjoint((tokens[at].text, tokens[last].text)) or tokens[at - 1].text == "tool"
    )
    for n in (*range(max(0, at - 4), at), *range(last + 1, min(len(tokens), last + _REACH))):
        if tokens[n].text not in _words("shuns") or not is_ordered(tokens, n, grammar):
            continue
        it = n > last and n + 1 < len(tokens) and tokens[n + 1].text in ("it", "them")
        if (it or (n < at and called)) and not is_negated(tokens, n, grammar):
            return True
    return False


def _last(tokens: list[Token], at: int) -> int:
    """Return the last token of the identifier that a token begins."""
    last = at
    while last + 1 < len(tokens) and tokens[last + 1].whole == tokens[at].whole and tokens[last + 1].part:
        last += 1
    return last


def _named(tokens: list[Token], at: int, folded: Folded) -> str:
    """Return the identifier that a token begins, where it is the name of a tool: in quotes, or in front of "tool"."""
    token = tokens[at]
    if token.kind != "word" or (at and token.part and tokens[at - 1].whole == token.whole and not token.lead):
        return ""
    whole = folded.cased[token.start : token.start + len(token.whole)]
    last = _last(tokens, at)
    after = tokens[last + 1].text if last + 1 < len(tokens) else ""
    spelled = _TOOL.fullmatch(whole) is not None
    if spelled and (token.quoted or "_" in whole or after in ("tool", "tools", "is", "to")):
        return token.whole
    plain = whole[:1].isupper() and not whole.isupper() and token.text not in _words("no_names")
    return token.whole if after == "tool" and not token.part and (token.quoted or plain) else ""


def _moment(tokens: list[Token], at: int) -> bool:
    """Return whether the tool's use is the moment of what follows: "when send_email is called", "before using it"."""
    if at and (tokens[at - 1].text in ("before", "after") or (at > 1 and tokens[at - 2].text == "prior")):
        return True
    used = False
    for item in tokens[at + 1 : at + _REACH]:
        if any(mark in item.lead for mark in ",;:()"):
            break
        used = used or item.text in _words("uses")
    for back in range(at, max(-1, at - 1 - _REACH), -1):
        if tokens[back].text in _words("moments"):
            return used
        used = used or tokens[back].text in _words("uses")
        if any(mark in tokens[back].lead for mark in ",;:()"):
            break
    return False


def _bent(tokens: list[Token], first: int, stop: int) -> bool:
    """Return whether something is ordered to be done with the call by the tokens ``first`` up to ``stop``."""
    grammar = vocabulary()
    return any(
        tokens[n].text in _words("bends") and is_ordered(tokens, n, grammar) and not is_negated(tokens, n, grammar)
        for n in range(first, min(len(tokens), stop))
    )


def _forbidden(tokens: list[Token], at: int) -> bool:
    """Return whether the verb at a token is forbidden to the reader: "never use", "do not call"."""
    for back in range(at - 1, max(-1, at - 3), -1):
        if any(mark in tokens[back + 1].lead for mark in ",;:()"):
            return False  # if no name is given, call find_names
        if tokens[back].text in ("never", "not", "don't", "stop"):
            return True
    return False


def _denied(tokens: list[Token], at: int, rule: Rule) -> bool:
    """Return whether what is said of the tool is taken back: "does not replace"."""
    return rule == "replaces" and any(item.text in ("not", "never") for item in tokens[max(0, at - 4) : at])
