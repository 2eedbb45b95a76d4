"""What a running detector can ask for: the engine's side of ``contract.Context``."""

from __future__ import annotations

from typing import TypeVar, cast

from mcpdetect.contract import Fact
from mcpdetect.engine.observability import clean_channel
from mcpdetect.model.inputs import Baseline, Expectations, Secrets
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.result import Limit
from mcpdetect.model.trace import Run, TraceSource
from mcpdetect.model.vocabulary import Channel

__all__ = ["RunContext"]

F = TypeVar("F", bound=Fact)


class RunContext:
    """The context of one detector in one run; see ``contract.Context`` for what each part promises."""

    def __init__(
        self,
        source: TraceSource,
        facts: dict[type[Fact], Fact],
        secrets: Secrets | None,
        expectations: Expectations | None,
        baseline: Baseline | None = None,
    ) -> None:
        self._source = source
        self._facts = facts
        self.secrets = secrets
        self.expectations = expectations
        self.baseline = baseline
        self.limits: list[Limit] = []
        self._stated: dict[tuple[str, str], Limit] = {}

    @property
    def run(self) -> Run:
        """The run under examination."""
        return self._source.run

    def fact(self, kind: type[F]) -> F:
        """Return a declared fact."""
        return cast("F", self._facts[kind])

    def observations(self) -> list[Observation]:
        """Return the observations as they are now."""
        return self._source.observations()

    def watched(self, channel: Channel, *kinds: str) -> bool:
        """Return whether ``channel`` watched all ``kinds`` and no file of it lost anything that touches them."""
        return clean_channel(self._source.observations(), channel, kinds)

    def limit(self, what: str, detail: str, *, hides: bool = True, where: Where | None = None, count: int = 1) -> None:
        """State something that could not be seen; the same statement again only counts up."""
        known = self._stated.get((what, detail))
        if known is not None:
            known.count += count
            known.hides = known.hides or hides
            return
        known = self._stated[(what, detail)] = Limit(what=what, detail=detail, hides=hides, where=where, count=count)
        self.limits.append(known)
