"""Conversations: half flows by their endpoints, joined, and given out when they end, idle or the capture does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mcpdetect.ingest.pcap.ends import ends_of, reverse
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.model.net import IcmpError, NetFlow
from mcpdetect.model.place import Where

__all__ = ["IDLE_NS", "Flow", "FlowTable", "Half", "Watcher"]

IDLE_NS = 120_000_000_000
"""A flow is given out after this much silence; the longest pause between SYN repeats of Linux is shorter."""

_SCAN_NS = 10_000_000_000
_CLOSED_NS = 20_000_000_000
_MOST_FLOWS = 60_000
_MOST_REMEMBERED = 20_000
_MOST_ICMP = 32


class Watcher(Protocol):
    """What reads the payload of a half flow until it has seen enough."""

    def close(self) -> None:
        """The flow is over; tell what was left unfinished."""
        ...


class Half:
    """One direction of a flow. ``watcher`` is None while its payload needs no looking at."""

    __slots__ = ("bytes", "cut", "data", "fin", "flow", "isn", "last", "packets", "rst", "syn", "syn_ack", "watcher")

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.packets = self.bytes = self.data = self.syn = self.syn_ack = self.fin = self.rst = self.cut = 0
        self.last = NO_TIME
        self.isn: int | None = None
        self.watcher: Watcher | None = None


class Flow:
    """Both directions.

    Attributes:
        key: source, destination and ports as on the wire, seen from ``out``; ``other`` seen from ``back``.
        number, t_ns: the first packet and its time.
        tcp: TCP, else UDP.
        out, back: the half that began, as far as known, and the one that answers.
        icmp: errors that quote this flow.
        dns_ids: ids of questions asked on ports that are not DNS's.
    """

    __slots__ = ("back", "dns_ids", "icmp", "key", "number", "other", "out", "t_ns", "tcp")

    def __init__(self, key: bytes, other: bytes, number: int, t_ns: int, tcp: bool) -> None:
        self.key = key
        self.other = other
        self.number = number
        self.t_ns = t_ns
        self.tcp = tcp
        self.out = Half(self)
        self.back = Half(self)
        self.icmp: list[IcmpError] | None = None
        self.dns_ids: set[int] | None = None

    @property
    def closed(self) -> bool:
        """Whether a FIN or RST was seen: the same endpoints may then begin anew."""
        out, back = self.out, self.back
        return bool(out.fin or out.rst or back.fin or back.rst)

    @property
    def last(self) -> int:
        """Time of the latest packet."""
        return max(self.out.last, self.back.last)


class FlowTable:
    """The live flows of one capture.

    Attributes:
        tcp, udp: half flows by the key of their direction, both directions of every flow, for the fast lane to look up.
        overflows: flows given out early because there were too many.
        unkept_icmp: ICMP errors beyond the number a flow keeps.
    """

    def __init__(self, name: str, emit: Callable[[NetFlow], None] | None) -> None:
        self._name = name
        self._emit = emit
        self.tcp: dict[bytes, Half] = {}
        self.udp: dict[bytes, Half] = {}
        self._live = 0
        self._remembered: dict[tuple[bytes, bool], None] = {}
        self.overflows = 0
        self.unkept_icmp = 0

    def open(self, key: bytes, number: int, t_ns: int, *, tcp: bool, answers: bool = False) -> Half:
        """Begin a flow with a packet of ``key``, which is not in the table; return the half of that packet.

        Args:
            key: source, destination, ports.
            number: the packet's number.
            t_ns: its time.
            tcp: which table.
            answers: the packet can only be an answer (SYN-ACK), so its sender is not the flow's source.
        """
        if self._live >= _MOST_FLOWS:
            self._relieve()
        other = reverse(key)
        table = self.tcp if tcp else self.udp
        self._live += 1
        if answers or (self._remembered and (other, tcp) in self._remembered):
            flow = Flow(other, key, number, t_ns, tcp)
            table[other] = flow.out
            table[key] = flow.back
            return flow.back
        flow = Flow(key, other, number, t_ns, tcp)
        table[other] = flow.back
        table[key] = flow.out  # the last word, where both keys are the same
        return flow.out

    def attach(self, key: bytes, *, tcp: bool, error: IcmpError) -> bool:
        """Attach an ICMP error to the flow with a packet of ``key``; return whether there is one."""
        half = (self.tcp if tcp else self.udp).get(key)
        if half is None:
            return False
        flow = half.flow
        if flow.icmp is None:
            flow.icmp = []
        if len(flow.icmp) < _MOST_ICMP:
            flow.icmp.append(error)
        else:
            self.unkept_icmp += 1
        return True

    def finish(self, flow: Flow) -> None:
        """Give out a flow and forget it."""
        table = self.tcp if flow.tcp else self.udp
        table.pop(flow.key, None)
        table.pop(flow.other, None)
        self._live -= 1
        out, back = flow.out, flow.back
        for half in (out, back):
            if half.watcher is not None:
                half.watcher.close()
                half.watcher = None
        if self._emit is not None:
            self._emit(self._event(flow))
        # flow and halves hold each other: freed at once, not when the collector comes by
        del out.flow, back.flow

    def scan(self, now: int) -> int:
        """Give out flows that have been silent for ``IDLE_NS``, closed ones sooner; return when to scan again."""
        for table in (self.tcp, self.udp):
            idle = []
            for half in table.values():
                flow = half.flow
                if half is flow.out:
                    silent = now - flow.last
                    if silent > IDLE_NS or (silent > _CLOSED_NS and flow.closed):
                        idle.append(flow)
            for flow in idle:
                self._retire(flow)
        return now + _SCAN_NS

    def close(self) -> None:
        """Give out everything, in the order of the first packets."""
        for flow in sorted(self._all(), key=lambda flow: flow.number):
            self.finish(flow)

    def _all(self) -> list[Flow]:
        return [half.flow for table in (self.tcp, self.udp) for half in table.values() if half is half.flow.out]

    def _relieve(self) -> None:
        """Give out the quarter of the flows that has been silent longest."""
        for flow in sorted(self._all(), key=lambda flow: flow.last)[: _MOST_FLOWS // 4]:
            self.overflows += not flow.closed
            self._retire(flow)

    def _retire(self, flow: Flow) -> None:
        """Give out a flow that may go on, remembering which side began it."""
        if not flow.closed:
            if len(self._remembered) >= _MOST_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[flow.key, flow.tcp] = None
        self.finish(flow)

    def _event(self, flow: Flow) -> NetFlow:
        out, back = flow.out, flow.back
        source, source_port, address, port = ends_of(flow.key)
        last = out.last if out.last > back.last else back.last
        event = NetFlow(
            Where(self._name, flow.number, None, "packet"),
            flow.t_ns if flow.t_ns != NO_TIME else None,
            "tcp" if flow.tcp else "udp",
            source,
            source_port,
            address,
            port,
            last if last != NO_TIME else None,
            out.packets,
            back.packets,
            out.bytes,
            back.bytes,
            out.data,
            back.data,
            out.syn,
            back.syn_ack,
            out.rst,
            back.rst,
            out.fin + back.fin,
            out.cut + back.cut,
            flow.tcp and not out.syn,
        )
        if flow.icmp:
            event.icmp = flow.icmp
        return event
