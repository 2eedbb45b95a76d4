"""What a detector declares about itself: plain data, read before anything is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mcpdetect.contract.fact import Fact
from mcpdetect.errors import SpecError
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.vocabulary import CHANNELS, Channel

__all__ = ["AnyOf", "Need", "Spec"]


@dataclass(frozen=True, slots=True)
class Need:
    """One way in which evidence can show the fact: a channel that watched all of these kinds.

    Attributes:
        channel: the channel.
        kinds: event kinds that must all have been watched there; ``data:<kind>`` stands for the payload bytes of
            such events, which cut strings and short packets spoil.
    """

    channel: Channel
    kinds: tuple[str, ...]

    def __str__(self) -> str:
        """Return the need as people read it: ``syscalls (socket.connect, socket.send)``."""
        return f"{self.channel} ({', '.join(self.kinds)})"


@dataclass(frozen=True, slots=True, init=False)
class AnyOf:
    """Alternatives: one of them is enough, a loss in one is made good by another."""

    needs: tuple[Need, ...]
    purpose: str

    def __init__(self, purpose: str, *needs: Need) -> None:
        object.__setattr__(self, "purpose", purpose)
        object.__setattr__(self, "needs", needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A detector's declaration.

    Attributes:
        id: ``category.behaviour``; the file is its snake case, the class its camel case.
        version: grows with every change of what it detects; reports carry it.
        claim: the sentence that ``not_detected`` would support, such as "no traffic to an address without a name".
        kinds: event kinds fed to ``on_event``.
        needs: groups that must all be met before ``not_detected`` can be said.
        blind_to: what it cannot see even with every need met. No default: an honest list is part of a detector.
        facts: shared facts it reads, fed before it.
        requires: inputs without which the check is ``not_observable: not configured``.
        technique: MITRE ATT&CK technique id, where one fits.
        complete_run: absence is only claimed when the recording lasted to the end of the target.
    """

    id: str
    version: int
    claim: str
    kinds: tuple[str, ...]
    needs: tuple[AnyOf, ...]
    blind_to: tuple[str, ...]
    facts: tuple[type[Fact], ...] = ()
    requires: tuple[Literal["secrets", "expectations", "baseline"], ...] = ()
    technique: str | None = None
    complete_run: bool = True
    category: str = field(init=False, default="")

    def __post_init__(self) -> None:
        category, dot, rest = self.id.partition(".")
        object.__setattr__(self, "category", category)
        problems = []
        if not dot or not category or not rest:
            problems.append("an id is category.behaviour")
        if self.version < 1:
            problems.append("a version is 1 or more")
        if not self.claim or not self.blind_to:
            problems.append("claim and blind_to must say something")
        if not self.kinds or not self.needs or any(not group.needs for group in self.needs):
            problems.append("kinds and needs must not be empty")
        asked = set(self.kinds)
        for group in self.needs:
            for need in group.needs:
                if need.channel not in CHANNELS:
                    problems.append(f"{need.channel!r} is no channel")
                asked.update(kind.removeprefix("data:") for kind in need.kinds)
        problems.extend(f"{kind!r} is no event kind" for kind in sorted(asked - EVENT_TYPES.keys()))
        if problems:
            raise SpecError("; ".join(problems), file=self.id, cause="a mistake in the detector's declaration")
