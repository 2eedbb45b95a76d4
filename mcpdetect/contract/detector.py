"""The base class of every detector and the context it works in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import ClassVar, Protocol, TypeVar

from mcpdetect.contract.fact import Fact
from mcpdetect.contract.spec import Spec
from mcpdetect.model.event import Event
from mcpdetect.model.inputs import Baseline, Expectations, Secrets
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.result import Explanation, Finding
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Channel, Level

__all__ = ["Context", "Detector", "finding_key"]

F = TypeVar("F", bound=Fact)
FactValue = str | int | bool | list[str] | None


class Context(Protocol):
    """What a detector may ask for while it runs."""

    @property
    def run(self) -> Run:
        """The run under examination."""
        ...

    @property
    def secrets(self) -> Secrets | None:
        """Planted secrets, where configured."""
        ...

    @property
    def expectations(self) -> Expectations | None:
        """Documented behaviour, where configured."""
        ...

    @property
    def baseline(self) -> Baseline | None:
        """The approved description, where configured."""
        ...

    def fact(self, kind: type[F]) -> F:
        """Return a fact that the detector declared."""
        ...

    def watched(self, channel: Channel, *kinds: str) -> bool:
        """Return whether some evidence file of ``channel`` watched all of ``kinds`` without a loss that touches them.

        Final only in ``finish``: losses are known once every event was read.
        """
        ...

    def observations(self) -> list[Observation]:
        """Return the observations; final only in ``finish``."""
        ...

    def limit(self, what: str, detail: str, *, hides: bool = True, where: Where | None = None, count: int = 1) -> None:
        """State something that this detector could not see; ``hides`` forbids ``not_detected``."""
        ...


class Detector:
    """Base of every detector: one level, two hooks, one helper. A new instance serves one run.

    The first line of a subclass's docstring is its title; ``spec`` is its declaration.
    """

    spec: ClassVar[Spec]

    def __init__(self, context: Context) -> None:
        self.context = context

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Look at one event of a declared kind; yield findings that are certain already."""
        return ()

    def finish(self) -> Iterable[Finding]:
        """Yield what only the whole run shows. Called once, after every event and every fact."""
        return ()

    def finding(
        self,
        *evidence: Event | Where,
        title: str,
        reason: str,
        identity: str,
        level: Level = "suspicious",
        explanations: Iterable[Explanation] = (),
        program: str | None = None,
        **facts: FactValue,
    ) -> Finding:
        """Build a finding from its evidence.

        Args:
            evidence: the events or places it rests on, at least one, most telling first.
            title: what happened, one line.
            reason: what it may mean, in plain words.
            identity: what makes it the same finding in another run; no pids, no times.
            level: its level with the explanations given.
            explanations: why it may be ordinary.
            program: executable of the acting process, where known.
            facts: machine-readable details.

        Raises:
            ValueError: no evidence was given.
        """
        if not evidence:
            raise ValueError(f"{self.spec.id}: a finding without evidence")
        places: list[Where] = []
        for item in evidence:
            place = item.where if isinstance(item, Event) else item
            if place not in places:
                places.append(place)
        first = next((item for item in evidence if isinstance(item, Event)), None)
        return Finding(
            check=self.spec.id,
            title=title,
            reason=reason,
            level=level,
            where=places,
            process=first.process if first else None,
            program=program,
            t_ns=first.t_ns if first else None,
            explanations=list(explanations),
            facts=facts,
            key=finding_key(self.spec.id, identity),
            identity=identity,
        )


def finding_key(check: str, identity: str) -> str:
    """Return a finding's stable key: the first 16 hex digits of sha256 over check and identity."""
    return hashlib.sha256(f"{check}\0{identity}".encode("utf-8", "backslashreplace")).hexdigest()[:16]
