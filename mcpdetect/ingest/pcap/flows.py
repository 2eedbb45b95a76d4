"""Conversations: half flows by their endpoints, joined, and given out when they end, idle or the capture does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mcpdetect.ingest.dnswire import address_text
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.model.net import IcmpError, NetFlow
from mcpdetect.model.place import Where

__all__ = ["IDLE_NS", "Flow", "FlowTable", "Half", "Watcher", "reverse"]

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
    """One direction of a flow. ``watcher`` is None once its payload needs no more looking at."""

    __slots__ = ("bytes", "cut", "data", "fin", "flow", "isn", "last", "packets", "rst", "syn", "syn_ack", "watcher")

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.packets = 0
        self.bytes = 0
        self.data = 0
        self.last = NO_TIME
        self.syn = 0
        self.syn_ack = 0
        self.fin = 0
        self.rst = 0
        self.cut = 0
        self.isn: int | None = None
        self.watcher: Watcher | None = None


class Flow:
    """Both directions. ``key`` is source, destination and ports as on the wire, seen from ``out``."""

    __slots__ = ("back", "dns_ids", "icmp", "key", "number", "out", "t_ns", "tcp")

    def __init__(self, key: bytes, number: int, t_ns: int, tcp: bool) -> None:
        self.key = key
        self.number = number
        self.t_ns = t_ns
        self.tcp = tcp
        self.out = Half(self)
        self.back: Half | None = None
        self.icmp: list[IcmpError] | None = None
        self.dns_ids: set[int] | None = None

    @property
    def closed(self) -> bool:
        """Whether a FIN or RST was seen: the same endpoints may then begin anew."""
        back = self.back
        return bool(self.out.fin or self.out.rst or (back is not None and (back.fin or back.rst)))

    @property
    def last(self) -> int:
        """Time of the latest packet."""
        return self.out.last if self.back is None else max(self.out.last, self.back.last)


def reverse(key: bytes) -> bytes:
    """Return the key of the other direction: 4+4+2+2 bytes for IPv4, 16+16+2+2 for IPv6."""
    if len(key) == 12:
        return key[4:8] + key[:4] + key[10:] + key[8:10]
    return key[16:32] + key[:16] + key[34:] + key[32:34]


class FlowTable:
    """The live flows of one capture.

    Attributes:
        tcp, udp: half flows by the key of their direction, for the fast lane to look up.
        overflows: flows given out early because there were too many.
        unkept_icmp: ICMP errors beyond the number a flow keeps.
    """

    def __init__(self, name: str, emit: Callable[[NetFlow], None] | None) -> None:
        self._name = name
        self._emit = emit
        self.tcp: dict[bytes, Half] = {}
        self.udp: dict[bytes, Half] = {}
        self._flows: dict[int, Flow] = {}
        self._remembered: dict[tuple[bytes, bool], None] = {}
        self.overflows = 0
        self.unkept_icmp = 0

    def open(self, key: bytes, number: int, t_ns: int, *, tcp: bool, answers: bool = False) -> Half:
        """Return the half flow of ``key``, which is not in the table yet; a new flow where the other half is missing.

        Args:
            key: source, destination, ports.
            number: the packet's number.
            t_ns: its time.
            tcp: which table.
            answers: the packet can only be an answer (SYN-ACK), so its sender is not the flow's source.
        """
        table = self.tcp if tcp else self.udp
        other_key = reverse(key)
        other = table.get(other_key)
        if other is not None:
            half = Half(other.flow)
            if other is other.flow.out:
                other.flow.back = half
            else:  # only the answering side was seen so far
                half = other.flow.out
            table[key] = half
            return half
        if len(self._flows) >= _MOST_FLOWS:
            self._relieve()
        if answers or (other_key, tcp) in self._remembered:
            flow = Flow(other_key, number, t_ns, tcp)
            flow.back = half = Half(flow)
        else:
            flow = Flow(key, number, t_ns, tcp)
            half = flow.out
        self._flows[id(flow)] = flow
        table[key] = half
        return half

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
        table.pop(reverse(flow.key), None)
        del self._flows[id(flow)]
        for half in (flow.out, flow.back):
            if half is not None and half.watcher is not None:
                half.watcher.close()
                half.watcher = None
        if self._emit is not None:
            self._emit(self._event(flow))

    def scan(self, now: int) -> int:
        """Give out flows that have been silent for ``IDLE_NS``, closed ones sooner; return when to scan again."""
        for flow in [
            flow
            for flow in self._flows.values()
            if now - flow.last > IDLE_NS or (now - flow.last > _CLOSED_NS and flow.closed)
        ]:
            self._retire(flow)
        return now + _SCAN_NS

    def close(self) -> None:
        """Give out everything."""
        for flow in list(self._flows.values()):
            self.finish(flow)

    def _relieve(self) -> None:
        """Give out the quarter of the flows that has been silent longest."""
        flows = sorted(self._flows.values(), key=lambda flow: flow.last)
        for flow in flows[: _MOST_FLOWS // 4]:
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
        key, out, back = flow.key, flow.out, flow.back
        width = (len(key) - 4) // 2
        event = NetFlow(
            Where(self._name, flow.number, None, "packet"),
            flow.t_ns if flow.t_ns != NO_TIME else None,
            "tcp" if flow.tcp else "udp",
            address_text(key[:width]),
            (key[-4] << 8) | key[-3],
            address_text(key[width : 2 * width]),
            (key[-2] << 8) | key[-1],
            flow.last if flow.last != NO_TIME else None,
            out.packets,
            back.packets if back else 0,
            out.bytes,
            back.bytes if back else 0,
            out.data,
            back.data if back else 0,
            out.syn,
            back.syn_ack if back else 0,
            out.rst,
            back.rst if back else 0,
            out.fin + (back.fin if back else 0),
            out.cut + (back.cut if back else 0),
            flow.tcp and not out.syn,
        )
        if flow.icmp:
            event.icmp = flow.icmp
        return event
