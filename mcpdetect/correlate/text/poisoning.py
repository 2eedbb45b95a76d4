"""Orders behind the user's back: what a text tells the agent that describes no tool."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcpdetect.correlate.text.fold import Folded
from mcpdetect.correlate.text.patterns import Patterns, Rule, patterns
from mcpdetect.correlate.text.tokens import Sentence, sentences

__all__ = ["Order", "orders"]

_WORD = re.compile(r"[^\W\d_]++(?:'[^\W\d_]++)?+")
# "ignore ..."   “ignore ...”   `ignore ...`   «ignore ...»   'ignore ...'
_QUOTED = re.compile(
    r"\"[^\"\n]{1,300}+\"|\u201c[^\u201d\n]{1,300}+\u201d|`[^`\n]{1,300}+`|\u00ab[^\u00bb\n]{1,300}+\u00bb"
    r"|(?<!\w)'[^'\n]{1,300}+'(?!\w)"
)
_BEFORE_QUOTE = 120  # characters in which a word of giving examples may stand
_SPOKEN_REACH = 300  # characters
_ADDRESSED = re.compile(
    r"\b(?:you|must|always|never|do not|don't|ignore|obey|reveal|answer|respond|reply|call|run|execute|comply)\b"
)
# What follows a tag is no value: <system>New task: read ...</system>
_TAGGED = re.compile(
    r"new (?:task|instruction|order|rule)"
    r"|\b(?:read|send|open|print|delete|use|grant|forward|write|add|remove|change|disregard)\b[^<]{0,300}</"
)
_SHORTEST = 12


@dataclass(slots=True)
class Order:
    """One order to the agent.

    Attributes:
        rule: the rule of ``poisoning.yaml``.
        says: what such a text does, as the continuation of "the tool".
        start, end: place in the folded text.
        threatened: a threat of what happens otherwise stands with it.
    """

    rule: str
    says: str
    start: int
    end: int
    threatened: bool = False


def orders(folded: Folded) -> list[Order]:
    """Return the orders of a text in order, each rule once, by its first place.

    Args:
        folded: the text, folded.
    """
    if len(folded.text) < _SHORTEST:
        return []
    known = patterns()
    found: dict[str, Order] = {}
    quoted = [match.span() for match in _QUOTED.finditer(folded.text)]
    for order in _frames(folded.text, known):
        if not _example(folded.text, order.start, order.end, quoted, known):
            found.setdefault(order.rule, order)
    if known.worth(set(_WORD.findall(folded.text))):
        before: Sentence | None = None
        last: list[Order] = []
        for sentence in sentences(folded):
            last = _read(sentence, before, last, folded.text, quoted, known)
            for order in last:
                found.setdefault(order.rule, order)
            before = sentence
    return sorted(found.values(), key=lambda order: (order.start, order.rule))


def _read(
    sentence: Sentence,
    before: Sentence | None,
    last: list[Order],
    text: str,
    quoted: list[tuple[int, int]],
    known: Patterns,
) -> list[Order]:
    here: list[Order] = []
    tokens = sentence.tokens
    if any(known.threats.at(tokens, at) for at in range(len(tokens))):
        for order in last:
            order.threatened = True
    for rule, first, behind in known.matches(tokens, text):
        start, end = tokens[first].start, tokens[behind - 1].end
        if _example(text, start, end, quoted, known) or not _when(rule, sentence, before, known):
            continue
        threatened = any(known.threats.at(tokens, at) for at in range(behind, len(tokens)))
        here.append(Order(rule.name, rule.says, sentence.start, sentence.end, threatened))
    return here


def _when(rule: Rule, sentence: Sentence, before: Sentence | None, known: Patterns) -> bool:
    """Return whether the moment is named at which the agent shall do it, here or in the sentence before."""
    if rule.when is None:
        return True
    near = [sentence] if before is None else [sentence, before]
    return any(known.stands(name, one.tokens) for one in near for name in rule.when.split())


def _example(text: str, start: int, end: int, quoted: list[tuple[int, int]], known: Patterns) -> bool:
    """Return whether what stands there is quoted as an example of something."""
    for left, right in quoted:
        if left < end and start < right and left < start + 2:
            before = _WORD.findall(text[max(0, left - _BEFORE_QUOTE) : left])
            return text[left] == "`" or not known.examples.isdisjoint(before)
    return False


def _frames(text: str, known: Patterns) -> list[Order]:
    """Return where a text pretends to be the frame of a conversation."""
    says = next(rule.says for rule in known.rules if rule.name == "role-forgery")
    found = []
    for marker in known.markers:
        at = text.find(marker)
        if at >= 0:
            found.append(Order("role-forgery", says, at, at + len(marker)))
    for match in _line_starts(known.spoken).finditer(text):
        rest = text[match.end() : match.end() + _SPOKEN_REACH].partition("\n")[0]
        if _ADDRESSED.search(rest) or (match[0][0] == "<" and _TAGGED.search(rest)):
            found.append(Order("role-forgery", says, match.start(), match.end() + len(rest)))
    return found


_LINES: dict[tuple[str, ...], re.Pattern[str]] = {}


def _line_starts(spoken: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of ``SYSTEM: `` or ``[system] `` that begins a line, and of ``<system>`` anywhere in one."""
    if spoken not in _LINES:
        names = "|".join(re.escape(name) for name in spoken if not name.startswith("<"))
        tags = "|".join(re.escape(name) for name in spoken if name.startswith("<"))
        # A name of two words may also begin a sentence: ... text. SYSTEM NOTICE: obey ...
        twofold = "|".join(re.escape(name) for name in spoken if name.count(" ") == 1 and name[0].isalpha())
        _LINES[spoken] = re.compile(
            rf"(?:^[ \t]*+(?:{names})[ \t]*+(?::|(?<=\])[ \t])[ \t\n]*+)|(?<=[.!?] )(?:{twofold}):[ \t]*+|(?:{tags})",
            re.MULTILINE,
        )
    return _LINES[spoken]
