"""The packet at hand: its place and time, and how what is wrong with it is accounted for."""

from __future__ import annotations

from collections.abc import Callable

from mcpdetect.ingest.dnswire import address_text
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.ingest.pcap.ledger import NAMES, Ledger
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import NetPacket
from mcpdetect.model.place import Where

__all__ = ["ABOVE_IP", "Account"]

ABOVE_IP = ("net.flow", *NAMES)
"""The kinds that a packet may be part of whose ports are not known."""

_EXCERPT = 64
_SNAPLEN = "packets longer than the snap length were cut"


class Account:
    """The packet at hand.

    Args:
        name: the capture's name in places.
        out: receives events.
        wanted: the kinds to make.
        ledger: receives losses.

    Attributes:
        number: the packet's number.
        t_ns: its time, ``NO_TIME`` where it has none.
        cut: the capture holds less of it than the wire did.
        unparsed: packets and messages that could not be understood so far.
    """

    __slots__ = ("_name", "_packets", "_unparsed", "cut", "ledger", "number", "out", "t_ns", "unparsed")

    def __init__(self, name: str, out: Callable[[Event], None], wanted: frozenset[str], ledger: Ledger) -> None:
        self._name = name
        self.out = out
        self.ledger = ledger
        self._packets = "net.packet" in wanted
        self._unparsed = "unparsed" in wanted
        self.number = 0
        self.t_ns = NO_TIME
        self.cut = False
        self.unparsed = 0

    def count(self) -> None:
        """Count something that could not be understood."""
        self.unparsed += 1

    def where(self) -> Where:
        """Return the packet's place."""
        return Where(self._name, self.number, None, "packet")

    def time(self) -> int | None:
        """Return the packet's time."""
        return self.t_ns if self.t_ns != NO_TIME else None

    def snaplen(self, touches: tuple[str, ...] = ()) -> None:
        """Account for a cut packet: ``touches`` may have been behind the cut, nothing of interest where empty."""
        self.ledger.add("snaplen", _SNAPLEN, self.where(), touches, note=not touches)

    def note_cut(self) -> None:
        """Account for a packet whose interesting part was read, cut or not."""
        if self.cut:
            self.snaplen()

    def undecodable(self, reason: str, data: bytes, touches: tuple[str, ...] = ()) -> None:
        """Account for a packet whose headers are cut, too short or lie; ``touches`` as in ``Loss``."""
        self.unparsed += 1
        if self.cut:
            self.snaplen(touches or ("net.packet", *ABOVE_IP))
        else:
            self.ledger.add("unparsed", "packets with malformed headers", self.where(), touches)
        if self._unparsed:
            self.out(Unparsed(self.where(), self.time(), "packets", reason, data[:_EXCERPT], list(touches)))

    def packet(
        self,
        protocol: str,
        size: int,
        source: bytes | None = None,
        address: bytes | None = None,
        *,
        icmp: tuple[int | None, int | None] = (None, None),
        inner: str | None = None,
    ) -> None:
        """Make the event of a packet that is neither TCP nor UDP, or not known to be.

        Args:
            protocol: as in ``NetPacket``.
            size: the payload's length on the wire.
            source: raw source address.
            address: raw destination address.
            icmp: type and code.
            inner: the inner destination of a tunnel.
        """
        if self._packets:
            self.out(
                NetPacket(
                    self.where(),
                    self.time(),
                    protocol,
                    address_text(source) if source is not None else None,
                    address_text(address) if address is not None else None,
                    *icmp,
                    size,
                    inner,
                )
            )
