"""Which end of the captured flows is the run itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpdetect.correlate.target import Target
from mcpdetect.model.addresses import is_remote
from mcpdetect.model.net import NetFlow

__all__ = ["OwnEnds"]


class OwnEnds:
    """The run's own addresses, as far as flows tell them.

    A capture says which end sent the first packet *it has*. Where that packet is an answer (the question was lost, or
    the run serves others) the run's own address looks like a destination. The one address at an end of every flow of
    its family is the run's own; where two or none are, nothing is known. Whom a configured resolver answers is the run,
    too.

    Args:
        resolvers: addresses of the configured resolvers.

    Attributes:
        sources: addresses that sent the first packet of a flow.
    """

    def __init__(self, resolvers: Iterable[str] = ()) -> None:
        self._resolvers = frozenset(resolvers)
        self._answered: set[str] = set()
        self.sources: set[str] = set()
        self._common: dict[bool, set[str]] = {}

    def add(self, flow: NetFlow) -> None:
        """Learn from one flow."""
        if flow.source_port == 53 and flow.source in self._resolvers:
            self._answered.add(flow.address)
        else:
            self.sources.add(flow.source)
        if is_remote(flow.source) and is_remote(flow.address):
            ends = {flow.source, flow.address}
            family = ":" in flow.address
            self._common[family] = self._common.get(family, ends) & ends

    def outside(self, targets: Iterable[Target]) -> Iterator[Target]:
        """Yield the destinations without those that are the run's own address and that no call of it named."""
        own = self._answered | {address for ends in self._common.values() if len(ends) == 1 for address in ends}
        for target in targets:
            if target.address not in own or target.tried or not target.flows:
                yield target
