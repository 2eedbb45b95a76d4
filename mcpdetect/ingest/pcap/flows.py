"""Conversations: half flows by their endpoints, joined, and given out when they end, idle or the capture does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Protocol

from mcpdetect.ingest.pcap.ends import DnsWay, ends_of, reverse
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.model.net import IcmpError, NetFlow
from mcpdetect.model.place import Where

__all__ = ["IDLE_NS", "Flow", "FlowTable", "Half", "TcpFlow", "TcpHalf", "Watcher"]

IDLE_NS = 120_000_000_000
"""A flow is given out after this much silence; the longest pause between SYN repeats of Linux is shorter."""

_SCAN_NS = 10_000_000_000
_CLOSED_NS = 20_000_000_000
_MOST_FLOWS = 60_000
_MOST_REMEMBERED = 20_000
_MOST_ICMP = 32
_PAUSE = 64


class Watcher(Protocol):
    """What reads the payload of a half flow until it has seen enough."""

    def close(self) -> None:
        """The flow is over; tell what was left unfinished."""
        ...


class Half:
    """One direction of a flow.

    Attributes:
        watcher: reads the payload; None while that needs no looking at.
        dns: for UDP to or from a DNS port, where every datagram is read as a message; else None.
    """

    __slots__ = ("bytes", "cut", "data", "dns", "flow", "last", "packets", "watcher")

    flow: Flow
    packets: int
    bytes: int
    data: int
    cut: int
    last: int
    watcher: Watcher | None
    dns: DnsWay | None


class TcpHalf(Half):
    """One direction of a TCP flow."""

    __slots__ = ("fin", "isn", "rst", "syn", "syn_ack")

    flow: TcpFlow
    syn: int
    syn_ack: int
    fin: int
    rst: int
    isn: int | None


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

    __slots__ = ("back", "dns_ids", "icmp", "key", "number", "other", "out", "t_ns")

    tcp = False
    key: bytes
    other: bytes
    number: int
    t_ns: int
    out: Half
    back: Half
    icmp: list[IcmpError] | None
    dns_ids: set[int] | None

    @property
    def closed(self) -> bool:
        """Whether a FIN or RST was seen: the same endpoints may then begin anew."""
        return False

    @property
    def last(self) -> int:
        """Time of the latest packet."""
        return max(self.out.last, self.back.last)


class TcpFlow(Flow):
    """Both directions of a TCP connection."""

    __slots__ = ()

    tcp = True
    out: TcpHalf
    back: TcpHalf

    @property
    def closed(self) -> bool:
        """Whether a FIN or RST was seen."""
        out, back = self.out, self.back
        return bool(out.fin or out.rst or back.fin or back.rst)


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
        self.tcp: dict[bytes, TcpHalf] = {}
        self.udp: dict[bytes, Half] = {}
        self._live = 0
        self._remembered: dict[tuple[bytes, bool], None] = {}
        self.overflows = 0
        self.unkept_icmp = 0

    def open_tcp(self, key: bytes, number: int, t_ns: int, *, answers: bool) -> TcpHalf:
        """Begin a TCP flow with a packet of ``key``, which is not in the table; return the half of that packet.

        Args:
            key: source, destination, ports.
            number: the packet's number.
            t_ns: its time.
            answers: the packet can only be an answer (SYN-ACK), so its sender is not the flow's source.
        """
        if self._live >= _MOST_FLOWS:
            self._relieve()
        self._live += 1
        other = reverse(key)
        flow = TcpFlow.__new__(TcpFlow)
        out, back = TcpHalf.__new__(TcpHalf), TcpHalf.__new__(TcpHalf)
        out.syn = out.syn_ack = out.fin = out.rst = back.syn = back.syn_ack = back.fin = back.rst = 0
        out.isn = back.isn = None
        flow.out, flow.back = out, back
        _begin(flow, number, t_ns)
        if answers or (self._remembered and (other, True) in self._remembered):
            flow.key, flow.other = other, key
            self.tcp[other] = out
            self.tcp[key] = back
            return back
        flow.key, flow.other = key, other
        self.tcp[other] = back
        self.tcp[key] = out  # the last word, where both keys are the same
        return out

    def open_udp(self, key: bytes, number: int, t_ns: int) -> Half:
        """Begin a UDP flow with a packet of ``key``, which is not in the table; as ``open_tcp``."""
        if self._live >= _MOST_FLOWS:
            self._relieve()
        self._live += 1
        other = reverse(key)
        flow = Flow.__new__(Flow)
        out, back = Half.__new__(Half), Half.__new__(Half)
        flow.out, flow.back = out, back
        _begin(flow, number, t_ns)
        if self._remembered and (other, False) in self._remembered:
            flow.key, flow.other = other, key
            self.udp[other] = out
            self.udp[key] = back
            return back
        flow.key, flow.other = key, other
        self.udp[other] = back
        self.udp[key] = out
        return out

    def attach(self, key: bytes, *, tcp: bool, error: IcmpError) -> bool:
        """Attach an ICMP error to the flow with a packet of ``key``; return whether there is one."""
        half: Half | None = self.tcp.get(key) if tcp else self.udp.get(key)
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
        table: dict[bytes, Any] = self.tcp if flow.tcp else self.udp
        table.pop(flow.key, None)
        table.pop(flow.other, None)
        self._live -= 1
        self._give(flow)

    def _give(self, flow: Flow) -> None:
        """Give out a flow that is in the table no more."""
        out, back = flow.out, flow.back
        if out.watcher is not None:
            out.watcher.close()
            out.watcher = None
        if back.watcher is not None:
            back.watcher.close()
            back.watcher = None
        if self._emit is not None:
            self._emit(self._event(flow))
        # flow and halves hold each other: freed at once, not when the collector comes by
        del out.flow, back.flow

    def scan(self, now: int) -> int:
        """Give out flows that have been silent for ``IDLE_NS``, closed ones sooner; return when to scan again."""
        tables: tuple[Mapping[bytes, Half], ...] = (self.tcp, self.udp)
        for table in tables:
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

    def close(self) -> Iterator[None]:
        """Give out everything, in the order of the first packets, pausing after some."""
        left = sorted(self._all(), key=attrgetter("number"))
        left.reverse()
        self.tcp.clear()
        self.udp.clear()
        self._live = 0
        while left:
            self._give(left.pop())
            if not len(left) % _PAUSE:
                yield

    def _all(self) -> list[Flow]:
        tables: tuple[Mapping[bytes, Half], ...] = (self.tcp, self.udp)
        return [half.flow for table in tables for half in table.values() if half is half.flow.out]

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
        where = Where.__new__(Where)
        where.file, where.at, where.end, where.unit = self._name, flow.number, None, "packet"
        last = out.last if out.last > back.last else back.last
        # field by field: the constructor takes twice as long
        event = NetFlow.__new__(NetFlow)
        event.kind = "net.flow"
        event.where = where
        event.t_ns = flow.t_ns if flow.t_ns != NO_TIME else None
        event.process = event.tid = None
        event.source, event.source_port, event.address, event.port = ends_of(flow.key)
        event.end_ns = last if last != NO_TIME else None
        event.packets_out, event.packets_in = out.packets, back.packets
        event.bytes_out, event.bytes_in = out.bytes, back.bytes
        event.data_out, event.data_in = out.data, back.data
        event.cut = out.cut + back.cut
        event.icmp = flow.icmp or []
        if isinstance(out, TcpHalf) and isinstance(back, TcpHalf):
            event.transport = "tcp"
            event.syn, event.syn_ack = out.syn, back.syn_ack
            event.rst_out, event.rst_in = out.rst, back.rst
            event.fin = out.fin + back.fin
            event.midstream = not out.syn
        else:
            event.transport = "udp"
            event.syn = event.syn_ack = event.rst_out = event.rst_in = event.fin = 0
            event.midstream = False
        return event


def _begin(flow: Flow, number: int, t_ns: int) -> None:
    """Set what begins the same in every flow; assigned here, because constructors of their own take twice as long."""
    flow.number = number
    flow.t_ns = t_ns
    flow.icmp = flow.dns_ids = None
    out, back = flow.out, flow.back
    out.flow = back.flow = flow
    out.packets = out.bytes = out.data = out.cut = back.packets = back.bytes = back.data = back.cut = 0
    out.last = back.last = NO_TIME
    out.watcher = back.watcher = None
    out.dns = back.dns = None
