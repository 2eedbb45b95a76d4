"""The vocabulary of the text model: words and phrases of a data file, folded and ready to look up."""

from __future__ import annotations

from typing import Any, Literal

from mcpdetect.correlate.text.fold import fold
from mcpdetect.correlate.text.tokens import Token
from mcpdetect.data.loader import Shape, load_yaml
from mcpdetect.data.overlay import cached

__all__ = ["SHAPE", "Group", "Phrases", "Vocabulary", "vocabulary"]

Group = Literal["transfer", "carry", "read", "request", "visit", "make"]
"""What a verb does with data: sends it, puts it into something that is sent, takes it, asks for such an act, calls an
address that may hold it, makes a public place for it."""

_BENIGN: Shape = [None]
SHAPE: Shape = {
    "verbs": {
        "transfer": {"order": None, "told": None, "done": None, "benign": _BENIGN},
        "carry": {"order": None, "told": None, "done": None, "benign": _BENIGN},
        "request": {"phrases": [None], "benign": _BENIGN},
        "visit": {"order": None, "joined": None, "benign": _BENIGN},
        "make": {"order": None, "benign": _BENIGN},
        "read": None,
    },
    "objects": {
        "credential": {"phrases": [None], "grave": None, "not_before": None, "not_after": None, "benign": _BENIGN},
        "context": {
            "phrases": [None],
            "all": [None],
            "ordinary": [None],
            "totality": None,
            "not_before": None,
            "benign": _BENIGN,
        },
        "traffic": {"phrases": [None], "verbs": None, "benign": _BENIGN},
        "files": {"names": None, "benign": _BENIGN},
    },
    "sinks": {
        "foreign": {"phrases": [None], "own": None, "benign": _BENIGN},
        "reference": None,
        "towards": None,
        "tlds": None,
        "parameter": {"before": None, "filled": None, "holds": None, "nouns": None, "benign": _BENIGN},
    },
    "secrecy": {"strong": [None], "mention": [None], "weak": None, "benign": _BENIGN},
    "grammar": {
        "copies": None,
        "detects": None,
        "leads": None,
        "need_to": None,
        "obliged": None,
        "negation": None,
        "unless": None,
        "anaphora": None,
        "pronouns": None,
        "own_service": None,
        "use": None,
        "others": None,
    },
}
"""The keys of ``exfil.yaml``."""


class Vocabulary:
    """The words of ``exfil.yaml``, folded and ready to look up.

    Args:
        data: the file's content.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.verbs: dict[str, tuple[Group, Literal["order", "told", "done"]]] = {}
        forms: tuple[Literal["order", "told", "done"], ...] = ("done", "told", "order")
        self.visit = _words(data["verbs"]["visit"]["order"])
        self.joined = _words(data["verbs"]["visit"]["joined"])
        self.make = _words(data["verbs"]["make"]["order"])
        for word in _words(data["verbs"]["read"]):
            self.verbs[word] = ("read", "order")
        for word in self.make:
            self.verbs[word] = ("make", "order")
        groups: tuple[Literal["carry", "transfer"], ...] = ("carry", "transfer")
        for group in groups:
            for form in forms:
                for word in _words(data["verbs"][group][form]):
                    self.verbs[word] = (group, form)
        self.request = Phrases(data["verbs"]["request"]["phrases"])
        objects, sinks, grammar = data["objects"], data["sinks"], data["grammar"]
        self.credential = Phrases(objects["credential"]["phrases"])
        self.grave = _words(objects["credential"]["grave"])
        self.not_before = _words(objects["credential"]["not_before"])
        self.not_after = _words(objects["credential"]["not_after"])
        self.context = Phrases(objects["context"]["phrases"])
        self.context_all = Phrases(objects["context"]["all"])
        self.ordinary = Phrases(objects["context"]["ordinary"])
        self.totality = _words(objects["context"]["totality"])
        self.context_not_before = _words(objects["context"]["not_before"])
        self.traffic = Phrases(objects["traffic"]["phrases"])
        self.traffic_verbs = _words(objects["traffic"]["verbs"])
        self.files = _raw(objects["files"]["names"])
        self.foreign = Phrases(sinks["foreign"]["phrases"])
        self.own = _words(sinks["foreign"]["own"])
        self.reference = _words(sinks["reference"])
        self.towards = _words(sinks["towards"])
        self.tlds = _words(sinks["tlds"])
        self.parameter_before = _words(sinks["parameter"]["before"])
        self.parameter_filled = _words(sinks["parameter"]["filled"])
        self.parameter_holds = _words(sinks["parameter"]["holds"])
        self.parameter_nouns = _words(sinks["parameter"]["nouns"])
        self.secrecy_strong = Phrases(data["secrecy"]["strong"])
        self.secrecy_mention = Phrases(data["secrecy"]["mention"])
        self.secrecy_weak = _words(data["secrecy"]["weak"])
        self.detects = _words(grammar["detects"])
        self.copies = _words(grammar["copies"])
        self.leads = _words(grammar["leads"])
        self.need_to = _words(grammar["need_to"])
        self.use = _words(grammar["use"])
        self.obliged = _words(grammar["obliged"])
        self.negation = _words(grammar["negation"])
        self.unless = _words(grammar["unless"])
        self.anaphora = _words(grammar["anaphora"])
        self.pronouns = _words(grammar["pronouns"])
        self.own_service = _words(grammar["own_service"])
        self.others = _words(grammar["others"])
        sending = {word for word, (group, _) in self.verbs.items() if group != "read"}
        self.sending = self.request.firsts.union(sending, self.visit, self.make)
        phrases = (
            *(self.request, self.credential, self.context, self.context_all, self.ordinary, self.traffic),
            *(self.foreign, self.secrecy_strong, self.secrecy_mention),
        )
        self.known = frozenset(self.verbs).union(
            self.visit, self.make, self.secrecy_weak, self.own_service, *(known.firsts for known in phrases)
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).text.split())


def _raw(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())


class Phrases:
    """Phrases by their first word, longest first; a plural ``s`` is understood, a possessive ``'s`` ignored."""

    def __init__(self, phrases: list[str]) -> None:
        # By the first word and the second, "" where there is none.
        self._by_first: dict[str, dict[str, list[tuple[str, ...]]]] = {}
        for phrase in phrases:
            # Of "the user's request" a token is "user".
            words = tuple(word.removesuffix("'s") for word in fold(phrase).text.split())
            for last in dict.fromkeys((words[-1], f"{words[-1]}s")):
                first, *rest = (*words[:-1], last)
                self._by_first.setdefault(first, {}).setdefault(rest[0] if rest else "", []).append(tuple(rest))
        for by_second in self._by_first.values():
            for known in by_second.values():
                known.sort(key=len, reverse=True)

    @property
    def firsts(self) -> frozenset[str]:
        """The first words of all phrases."""
        return frozenset(self._by_first)

    def at(self, tokens: list[Token], at: int) -> int:
        """Return how many tokens from ``at`` make a phrase, 0 for none."""
        by_second = self._by_first.get(tokens[at].text)
        if by_second is None or tokens[at].kind != "word":
            return 0
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        for rest in by_second.get(following, ()):
            end = at + 1 + len(rest)
            if end <= len(tokens) and all(
                item.text == word and item.kind == "word" for item, word in zip(tokens[at + 1 : end], rest, strict=True)
            ):
                return 1 + len(rest)
        return int("" in by_second)


@cached
def vocabulary() -> Vocabulary:
    """Return the vocabulary shipped with the library."""
    return Vocabulary(load_yaml("exfil.yaml", SHAPE))
