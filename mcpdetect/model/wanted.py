"""What a reader of evidence is asked for: event kinds, and for some of them which events anybody looks at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

__all__ = ["Wanted"]


class Wanted(frozenset[str]):
    """Event kinds asked for: a plain set, for all who know no more.

    A large log holds hundreds of thousands of looks at files of which those who ask use a handful. A reader may pass
    over events of a kind in ``texts`` whose path holds none of its texts: nobody would look at them. Whatever is added
    to the set gives a plain one again, so a hint is lost sooner than that it passes over what somebody asked for.

    Args:
        kinds: the event kinds.
        texts: by kind, texts of which an event's path must hold one.
    """

    texts: Mapping[str, frozenset[str]]

    def __new__(cls, kinds: Iterable[str], texts: Mapping[str, Iterable[str]]) -> Wanted:
        """Return the set; texts of kinds that are not in it are dropped."""
        self = super().__new__(cls, kinds)
        self.texts = {kind: frozenset(some) for kind, some in texts.items() if kind in self}
        return self

    def __sub__(self, other: Set[object]) -> Wanted:
        """Return the set without some kinds: what is asked of the others stays."""
        return Wanted(frozenset(self) - other, self.texts)
