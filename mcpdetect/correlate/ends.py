"""Which end of the captured flows is the run itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from mcpdetect.correlate.target import Target
from mcpdetect.model.addresses import is_remote
from mcpdetect.model.net import NetFlow

__all__ = ["OwnEnds", "outward"]

_PRIVILEGED, _EPHEMERAL = 1024, 32768
"""Ports below the first are services' (RFC 6335 §6); from the second on Linux gives ports to clients."""


def outward(flow: NetFlow, resolvers: Collection[str]) -> NetFlow:
    """Return a flow as its client began it: turned around where the first packet that was captured is an answer.

    That is so where a configured resolver speaks first, and where the beginning of a TCP connection was not captured
    and its first packet comes from a service's port to a client's.

    Args:
        flow: the flow.
        resolvers: addresses of the configured resolvers.
    """
    resolved = flow.source_port == 53 and flow.source in resolvers
    served = flow.midstream and flow.source_port < _PRIVILEGED and flow.port >= _EPHEMERAL
    if not (resolved or served):
        return flow
    return replace(
        flow,
        source=flow.address,
        source_port=flow.port,
        address=flow.source,
        port=flow.source_port,
        packets_out=flow.packets_in,
        packets_in=flow.packets_out,
        bytes_out=flow.bytes_in,
        bytes_in=flow.bytes_out,
        data_out=flow.data_in,
        data_in=flow.data_out,
        rst_out=flow.rst_in,
        rst_in=flow.rst_out,
    )


class OwnEnds:
    """The run's own addresses, as far as flows tell them.

    A capture says which end sent the first packet *it has*. Where that packet is an answer (the question was lost, or
    the run serves others) the run's own address looks like a destination. The one address at an end of every flow of
    its family is the run's own; where two or none are, nothing is known.

    Attributes:
        sources: addresses that sent the first packet of a flow.
    """

    def __init__(self) -> None:
        self.sources: set[str] = set()
        self._common: dict[bool, set[str]] = {}

    def add(self, flow: NetFlow) -> None:
        """Learn from one flow."""
        self.sources.add(flow.source)
        if is_remote(flow.source) and is_remote(flow.address):
            ends = {flow.source, flow.address}
            family = ":" in flow.address
            self._common[family] = self._common.get(family, ends) & ends

    def outside(self, targets: Iterable[Target]) -> Iterator[Target]:
        """Yield the destinations without those that are the run's own address and that no call of it named."""
        own = {address for ends in self._common.values() if len(ends) == 1 for address in ends}
        for target in targets:
            if target.address not in own or target.tried or not target.flows:
                yield target
