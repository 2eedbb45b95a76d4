"""Roles of words in a sentence: who orders what to be carried where. The words themselves are data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mcpdetect.correlate.text.tokens import Sentence, Token
from mcpdetect.correlate.text.words import Group, Vocabulary
from mcpdetect.model.addresses import elsewhere

__all__ = ["Roles", "Sink", "Span", "Verb", "is_negated", "is_ordered", "roles"]

ObjectClass = Literal["credential", "file", "context", "traffic"]
Mood = Literal["order", "told"]

_NEGATED_WITHIN = 4
_USE_WITHIN = 8
_OWN_WITHIN = 4
_ADDRESS_WITHIN = 6
_PARTS = 8  # of one identifier
_COPIED_WITHIN = 10
_VISIT_WITHIN = 4
_JOINED_WITHIN = 3
_SURE_WITHIN = 12
_WITHOUT = frozenset({"without", "ohne", "sans", "sin"})
_DETECTS_WITHIN = 12
_AIMS = frozenset({"objective", "goal", "task", "job", "mission", "duty", "purpose"})
_ENSURE = frozenset({"sure", "ensure", "certain"})
_EXAMPLES = frozenset({"example", "examples", "eg", "such", "like"})


@dataclass(slots=True)
class Verb:
    """A verb at a token: its group, ordered or told; ``anaphora`` or a ``pronoun`` follows it."""

    at: int
    word: str
    group: Group
    mood: Mood
    passive: bool
    anaphora: bool
    pronoun: bool


@dataclass(slots=True)
class Span:
    """Something sensitive.

    Attributes:
        start, end: its tokens.
        what: its class.
        many: it is plural, or "every", or more than one by nature.
        others: it is the user's, or many: not the one key that a tool signs in with.
        ordinary: it matters only where it is sent in secret.
    """

    start: int
    end: int
    what: ObjectClass
    many: bool
    others: bool
    ordinary: bool = False


@dataclass(slots=True)
class Sink:
    """A destination: an address, somebody's place in words, or a parameter of a tool; ``bare`` for a host alone."""

    start: int
    end: int
    kind: Literal["address", "words", "parameter"]
    name: str
    bare: bool = False


@dataclass(slots=True)
class Roles:
    """What was found in one sentence; ``named`` is its last object that is not ordinary.

    ``visited`` are addresses that shall be called with something, ``copied`` mail addresses that shall get copies.
    """

    sentence: Sentence
    verbs: list[Verb]
    objects: list[Span]
    sinks: list[Sink]
    secrecy: Literal["", "weak", "mention", "strong"]
    own_service: bool
    named: Span | None = None
    visited: list[Sink] = field(default_factory=list)
    copied: list[Sink] = field(default_factory=list)


def roles(sentence: Sentence, words: Vocabulary) -> Roles:
    """Return the roles of a sentence's words; the work is bounded by a constant for each token."""
    tokens = sentence.tokens
    found = Roles(sentence, [], [], [], "", False)
    for at, token in enumerate(tokens):
        if token.kind != "word" or token.text in words.known:
            _known(tokens, at, words, found)
        if token.quoted or (at and tokens[at - 1].text in words.parameter_nouns) or _noun_follows(tokens, at, words):
            sink = _parameter(tokens, at, words)
            if sink is not None:
                found.sinks.append(sink)
    return found


def _known(tokens: list[Token], at: int, words: Vocabulary, found: Roles) -> None:
    """Note the roles of one address, path or word of the vocabulary."""
    verb = _verb(tokens, at, words)
    if verb is not None:
        found.verbs.append(verb)
    span = _object(tokens, at, words)
    if span is not None and not (found.objects and found.objects[-1].end > at):
        found.objects.append(span)
        found.named = found.named if span.ordinary else span
    sink = _sink(tokens, at, words)
    if sink is not None:
        found.sinks.append(sink)
    if tokens[at].kind == "url" and _visited(tokens, at, words):
        found.visited.append(Sink(at, at + 1, "address", tokens[at].text))
    if tokens[at].kind == "email" and _copied(tokens, at, words):
        found.copied.append(Sink(at, at + 1, "address", tokens[at].text))
    if words.secrecy_strong.at(tokens, at):
        found.secrecy = "strong"
    elif found.secrecy != "strong" and words.secrecy_mention.at(tokens, at):
        found.secrecy = "mention"
    elif not found.secrecy and tokens[at].text in words.secrecy_weak:
        found.secrecy = "weak"
    found.own_service = found.own_service or tokens[at].text in words.own_service


def _verb(tokens: list[Token], at: int, words: Vocabulary) -> Verb | None:
    token = tokens[at]
    known = words.verbs.get(token.text)
    if (known is None or known[0] == "make") and words.request.at(tokens, at):
        known = ("request", "order")
    if known is None or token.kind != "word" or token.part or token.quoted or is_negated(tokens, at, words):
        return None
    group, form = known
    behind = words.verbs.get(tokens[at + 1].text) if at + 1 < len(tokens) else None
    if token.text == "be" and behind is not None and behind[1] == "done":
        return None
    mood: Mood = "told"
    passive = form == "done"
    if form == "order" and is_ordered(tokens, at, words):
        mood = "order"
    elif passive:
        # All API keys must be sent to ... Make sure that all API keys are sent to ...
        must = at >= 2 and tokens[at - 1].text == "be" and tokens[at - 2].text in words.obliged
        sure = at >= 2 and tokens[at - 1].text in ("are", "is")
        if not must and not (sure and any(item.text in _ENSURE for item in tokens[max(0, at - _SURE_WITHIN) : at])):
            return None
        mood = "order"
    elif form == "order" or any(item.text in words.detects for item in tokens[max(0, at - _DETECTS_WITHIN) : at]):
        return None  # "detects code that sends ..." tells of others
    following = [item.text for item in tokens[at + 1 : at + 5]]
    anaphora = any(item in words.anaphora for item in following)
    pronoun = any(item in words.pronouns for item in following[:2])
    return Verb(at, token.text, group, mood, passive, anaphora, pronoun)


def is_ordered(tokens: list[Token], at: int, words: Vocabulary) -> bool:
    """Return whether the verb at a token is an order to the reader, by what stands before it."""
    if at == 0 or any(mark in tokens[at].lead for mark in ",:;()>*-\n"):
        return True
    before = tokens[at - 1].text
    if before == "to":
        used = (item.text for item in tokens[max(0, at - _USE_WITHIN) : at])
        # your real objective is to send ...
        aim = at >= 3 and tokens[at - 2].text == "is" and tokens[at - 3].text in _AIMS
        needed = at >= 2 and tokens[at - 2].text in words.need_to
        return aim or needed or any(word in words.use for word in used)
    return before in words.leads


def is_negated(tokens: list[Token], at: int, words: Vocabulary) -> bool:
    """Return whether a negation beside the verb at a token takes it back."""
    for back in range(at - 1, max(-1, at - 1 - _NEGATED_WITHIN), -1):
        if any(mark in tokens[back + 1].lead for mark in ",:;()"):
            # "without telling the user, forward ...": what is negated ends at the comma
            break
        if tokens[back].text in words.unless:
            return False
        if tokens[back].text in words.negation:
            return True
    # Sende niemals ..., send no passwords
    after = [item.text for item in tokens[at + 1 : at + 3]]
    if after[:1] and after[0] in _WITHOUT:  # "act without the user's knowledge"
        return False
    return bool(after) and after[0] in words.negation and after[-1] not in words.unless


def _object(tokens: list[Token], at: int, words: Vocabulary) -> Span | None:
    token = tokens[at]
    if token.kind == "path" or (token.kind == "host" and token.text.rpartition("/")[2] in words.files):
        parts = token.text.strip("/").split("/")
        home = token.text.startswith(("~/.", "$home/.", "${home}/."))
        known = home or any(part in words.files for part in parts)
        known = known and not parts[-1].endswith(".pub")
        return Span(at, at + 1, "file", many=True, others=True) if known else None
    if token.kind != "word":
        return None
    before = tokens[max(0, at - 4) : at]
    length = words.credential.at(tokens, at)
    if length:
        after = tokens[at + length].text if at + length < len(tokens) else ""
        if after in words.not_before or (before and before[-1].text in words.not_after):
            return None
        many = tokens[at + length - 1].text.endswith(("s", "en")) or any(item.text in words.totality for item in before)
        owned = any(item.owned or item.text in words.others for item in before)
        return Span(at, at + length, "credential", many, many or owned)
    total = any(item.text in words.totality for item in before)
    length = words.context.at(tokens, at) or (words.context_all.at(tokens, at) if total else 0)
    ordinary = not length
    if not length:
        if total and (length := words.traffic.at(tokens, at)):
            return Span(at, at + length, "traffic", many=True, others=True)
        length = words.ordinary.at(tokens, at)
    if not length or (at + length < len(tokens) and tokens[at + length].text in words.context_not_before):
        return None
    return Span(at, at + length, "context", many=True, others=True, ordinary=ordinary)


def _sink(tokens: list[Token], at: int, words: Vocabulary) -> Sink | None:
    token = tokens[at]
    before = tokens[max(0, at - _ADDRESS_WITHIN) : at]
    if token.kind in ("url", "email", "host"):
        if token.kind == "host" and not _named_host(token.text, words):
            return None
        if not _leads_away(token.text):
            return None
        for n in range(len(before) - 1, -1, -1):
            if before[n].text in words.reference:
                return None
            if before[n].text in words.towards:
                referred = n > 0 and before[n - 1].text in words.reference
                # "found to a@c.example": only "refer to" refers
                referred = referred and (before[n].text != "to" or before[n - 1].text.startswith("refer"))
                return None if referred else Sink(at, at + 1, "address", token.text, token.kind == "host")
        return None
    length = words.foreign.at(tokens, at)
    if length:
        # "to your external server": what stands between the preposition and the place
        for item in reversed(tokens[max(0, at - _OWN_WITHIN) : at]):
            if item.text in words.own:
                return None
            if item.text in words.towards:
                break
        return Sink(at, at + length, "words", " ".join(item.text for item in tokens[at : at + length]))
    return None


def _visited(tokens: list[Token], at: int, words: Vocabulary) -> bool:
    """Return whether an address shall be called together with something: "open https://c.example/ followed by"."""
    return (
        any(item.text in words.joined for item in tokens[at + 1 : at + 1 + _JOINED_WITHIN])
        and any(_ordered(tokens, n, words, words.visit) for n in range(max(0, at - _VISIT_WITHIN), at))
        and _leads_away(tokens[at].text)
    )


def _copied(tokens: list[Token], at: int, words: Vocabulary) -> bool:
    """Return whether a mail address shall get copies: "add a@c.example to the BCC line"."""
    near = range(max(0, at - _COPIED_WITHIN), min(len(tokens), at + _COPIED_WITHIN))
    if not any(tokens[n].text in words.copies for n in near) or any(tokens[n].text in _EXAMPLES for n in near):
        return False
    return any(_ordered(tokens, n, words, words.sending) for n in range(near.start, at))


def _ordered(tokens: list[Token], at: int, words: Vocabulary, verbs: frozenset[str]) -> bool:
    found = tokens[at].text in verbs and not tokens[at].part
    return found and is_ordered(tokens, at, words) and not is_negated(tokens, at, words)


def _leads_away(text: str) -> bool:
    """Return whether the host of ``https://user@host:80/path`` is another machine; ``localhost.c.example`` is."""
    host = text.partition("://")[2] or text
    host = host.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    host = host.rstrip(".")
    return elsewhere(host) and not host.endswith("docker.internal")


def _named_host(text: str, words: Vocabulary) -> bool:
    name = text.partition("/")[0].partition(":")[0]
    last = name.rpartition(".")[2]
    return last.isdecimal() or last in words.tlds


def _parameter(tokens: list[Token], at: int, words: Vocabulary) -> Sink | None:
    token = tokens[at]
    if token.kind != "word" or token.text in words.parameter_nouns:
        return None
    # in 'note'; as the `ctx` parameter; in the note field; into the parameter note
    prior = [item.text for item in tokens[max(0, at - 3) : at]]
    last = _last_part(tokens, at)
    after = [item.text for item in tokens[last + 1 : last + 3]]
    # the `ctx` argument must contain
    filled = len(after) == 2 and after[0] in words.parameter_nouns and after[1] in words.obliged
    filled = filled or prior[-2:] == ["value", "of"]
    if not filled and not any(item in words.parameter_before or item in words.parameter_filled for item in prior):
        return None
    noun_before = bool(prior) and prior[-1] in words.parameter_nouns
    if token.quoted or noun_before or (bool(after) and after[0] in words.parameter_nouns):
        return Sink(at, last + 1, "parameter", token.whole)
    return None


def _noun_follows(tokens: list[Token], at: int, words: Vocabulary) -> bool:
    last = _last_part(tokens, at)
    return last + 1 < len(tokens) and tokens[last + 1].text in words.parameter_nouns


def _last_part(tokens: list[Token], at: int) -> int:
    """Return the last token of the identifier that token ``at`` is in."""
    last = at
    if tokens[at].part:
        while last + 1 < min(len(tokens), at + _PARTS) and tokens[last + 1].part and not tokens[last + 1].lead:
            last += 1
    return last
