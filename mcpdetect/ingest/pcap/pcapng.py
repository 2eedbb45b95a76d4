"""The pcapng file (draft-ietf-opsawg-pcapng): sections, interfaces with clocks of their own, blocks that may lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from mcpdetect.errors import InputError
from mcpdetect.ingest.opener import Stream
from mcpdetect.ingest.pcap.files import CHUNK, NO_TIME, ROOM, CaptureFile, Fault, Packet, Run
from mcpdetect.model.text import text_of

__all__ = ["MAGIC", "PcapngFile"]

MAGIC = b"\x0a\x0d\x0d\x0a"
"""The type of a section header block, the same in both byte orders."""

_IDB, _PB, _SPB, _ISB, _EPB = 1, 2, 3, 5, 6
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_LARGEST_BLOCK = 1 << 24
_MOST_INTERFACES = 65536
_KEPT_OPTION = 256
_SHB_APPLICATION, _IF_NAME, _IF_RESOLUTION, _IF_FILTER, _IF_OFFSET = 4, 2, 9, 11, 14
_EPB_DROPS, _ISB_RECEIVED, _ISB_IFDROP, _ISB_OSDROP = 4, 4, 5, 7
_MALFORMED = "a block is malformed; packets in it are lost"
_STOPPED = "a block is malformed; what follows it cannot be read"


@dataclass(slots=True)
class _Interface:
    """One described interface: link type, snap length, how to make nanoseconds of its time stamps."""

    link: int
    snap: int
    multiply: int = 1000
    divide: int = 1
    shift: int = 0
    offset_ns: int = 0

    @property
    def odd(self) -> bool:
        """Whether more than a multiplication makes nanoseconds of its time stamps."""
        return self.shift != 0 or self.divide != 1 or self.offset_ns != 0


class PcapngFile(CaptureFile):
    """A pcapng file.

    Raises:
        InputError: its first block is no whole section header.
    """

    def __init__(self, stream: Stream, head: bytes) -> None:
        super().__init__(format="pcapng")
        self._stream = stream
        self._order = "<"
        self._interfaces: list[_Interface] = []
        self._section = 0
        self._statistics: dict[tuple[int, int], tuple[int | None, int]] = {}
        head += stream.read_exactly(12 - len(head))
        if head[8:12] not in _ORDERS:
            raise InputError(
                "begins like a pcapng file, but its section header has no byte-order magic",
                file=stream.name,
                place="offset 8",
                value=head[8:12].hex() or "nothing",
                cause="the file is damaged or was cut in its first bytes",
            )
        self._buffer = head
        self._at = 0
        self._base = 0

    def steps(self) -> Iterator[Run | Packet | None]:
        """Yield the packets of every section; a lying block is a fault, and ends the reading where its length lies."""
        order = self._order
        head = struct.Struct(order + "II").unpack_from
        while self._fill(12):
            run = self._run()
            if run is not None:
                yield run
                if run.at > self._at:
                    self._at = run.at
                    continue
            buffer, at = self._buffer, self._at
            if buffer[at : at + 4] == MAGIC:
                order = _ORDERS.get(buffer[at + 8 : at + 12], "")
                if not order:
                    self._stop("a section header without byte-order magic")
                    return
                self._order = order
                head = struct.Struct(order + "II").unpack_from
            kind: int
            length: int
            kind, length = head(buffer, at)
            if length < 12 or length % 4:
                self._stop(f"block length {length}")
                return
            if length > _LARGEST_BLOCK:
                # a block type unknown here may be large; one that is read here may not
                self._stop(f"block length {length}")
                return
            if not self._fill(length):
                break
            buffer, at = self._buffer, self._at
            if buffer[at + length - 4 : at + length] != buffer[at + 4 : at + 8]:
                self._stop("two lengths of one block that differ")
                return
            if kind in (_EPB, _SPB, _PB):
                packet = self._packet(kind, buffer, at, length)
                if packet is not None:
                    yield packet
                    self._at = at + length
                    continue
            elif kind == _IDB:
                self._describe(buffer[at + 8 : at + length - 4])
            elif kind == _ISB:
                self._count(buffer[at + 8 : at + length - 4])
            elif buffer[at : at + 4] == MAGIC:
                self._begin_section(buffer[at + 8 : at + length - 4])
            self._at = at + length
            if self.faults:
                yield None
        self._finish()

    def _run(self) -> Run | None:
        """Return the blocks from here on for the fast lane; None where it cannot even take the first.

        It takes enhanced packets of one interface that are as nearly all are: in the buffer, sound, without options.
        What is left goes the careful way of ``steps``, which knows every other block and what can be wrong.
        """
        buffer, at = self._buffer, self._at
        if len(buffer) - at < ROOM:
            return None
        # 06 00 00 00, length, interface, time (high, low), captured, original; the packet, padded; length again
        kind, _, number = struct.unpack_from(self._order + "III", buffer, at)
        if kind != _EPB or number >= len(self._interfaces):
            return None
        interface = self._interfaces[number]
        if interface.odd:
            return None
        return Run(buffer, at, interface.link, self._order, interface.multiply, _LARGEST_BLOCK - 36, number)

    def _fill(self, size: int) -> bool:
        """Make ``size`` bytes available behind the current place; return whether the file has them."""
        while len(self._buffer) - self._at < size:
            more = self._stream.read(max(CHUNK, size - (len(self._buffer) - self._at)))
            if not more:
                return False
            self._buffer = self._buffer[self._at :] + more
            self._base += self._at
            self._at = 0
        return True

    def _fault(self, what: str, detail: str, reason: str) -> None:
        self.faults.append(Fault(what, detail, self._base + self._at, reason))

    def _stop(self, reason: str) -> None:
        self._fault("malformed", _STOPPED, reason)
        self._report_drops()

    def _finish(self) -> None:
        left = len(self._buffer) - self._at
        if left or self._stream.damaged:
            self._fault(
                "file-truncated",
                "the capture ends in the middle of a block",
                self._stream.damaged or f"{left} bytes of a block",
            )
        self._report_drops()

    def _begin_section(self, body: bytes) -> None:
        self._section += 1
        self._interfaces = []
        for code, value in self._options(body, 16):
            if code == _SHB_APPLICATION and self.tool is None:
                self.tool = text_of(value)

    def _options(self, body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
        """Yield the options from ``at`` on, values bounded; an option that overruns its block ends them."""
        unpack = struct.Struct(self._order + "HH").unpack_from
        while at + 4 <= len(body):
            code: int
            length: int
            code, length = unpack(body, at)
            at += 4
            if code == 0 or at + length > len(body):
                return
            yield code, body[at : at + min(length, _KEPT_OPTION)]
            at += (length + 3) & ~3

    def _describe(self, body: bytes) -> None:
        """Read an interface description block."""
        if len(body) < 8 or len(self._interfaces) >= _MOST_INTERFACES:
            self._fault("malformed", _MALFORMED, "an interface description that is too short, or one too many")
            return
        link, _, snap = struct.unpack_from(self._order + "HHI", body)
        interface = _Interface(link, snap)
        for code, value in self._options(body, 8):
            if code == _IF_RESOLUTION and value:
                _set_resolution(interface, value[0])
            elif code == _IF_OFFSET and len(value) >= 8:
                interface.offset_ns = struct.unpack_from(self._order + "q", value)[0] * 1_000_000_000
            elif code == _IF_NAME and len(self.interfaces) < 64:
                self.interfaces.append(text_of(value))
            elif code == _IF_FILTER and len(value) > 1 and value[0] == 0:  # 0: a libpcap filter string
                option = f"filter {text_of(value[1:])}"
                if option not in self.options and len(self.options) < 64:
                    self.options.append(option)
        self._interfaces.append(interface)
        if link not in self.link_types:
            self.link_types.append(link)
        if f"snaplen {snap}" not in self.options and len(self.options) < 64:
            self.options.append(f"snaplen {snap}")

    def _packet(self, kind: int, buffer: bytes, at: int, length: int) -> Packet | None:
        """Read one packet block: enhanced, simple, or the obsolete packet block."""
        order = self._order
        number: int
        captured: int
        original: int
        if kind == _SPB:
            if length < 16 or not self._interfaces:
                self._fault("malformed", _MALFORMED, "a simple packet without room or without an interface")
                return None
            original = struct.unpack_from(order + "I", buffer, at + 8)[0]
            snap = self._interfaces[0].snap
            captured = min(original, snap) if snap else original
            if captured > length - 16:
                self._fault("malformed", _MALFORMED, f"a packet of {captured} bytes in a block of {length}")
                return None
            return NO_TIME, self._interfaces[0].link, buffer[at + 12 : at + 12 + captured], original
        if length < 32:
            self._fault("malformed", _MALFORMED, f"a packet block of {length} bytes")
            return None
        high: int
        low: int
        if kind == _EPB:
            number, high, low, captured, original = struct.unpack_from(order + "IIIII", buffer, at + 8)
        else:
            drops: int
            number, drops, high, low, captured, original = struct.unpack_from(order + "HHIIII", buffer, at + 8)
            if drops not in (0, 0xFFFF):
                self.faults.append(Fault("dropped", "the recorder says that packets were dropped", count=drops))
        if number >= len(self._interfaces):
            self._fault("malformed", _MALFORMED, f"a packet of interface {number}, which was never described")
            return None
        if captured > length - 32:
            self._fault("malformed", _MALFORMED, f"a packet of {captured} bytes in a block of {length}")
            return None
        first = at + 28
        padded = (captured + 3) & ~3
        if kind == _EPB and length > 32 + padded:
            self._packet_options(buffer[first + padded : at + length - 4])
        interface = self._interfaces[number]
        units = high << 32 | low
        time_ns = ((units * interface.multiply) >> interface.shift) // interface.divide + interface.offset_ns
        return (
            time_ns if time_ns >= 0 else NO_TIME,
            interface.link,
            buffer[first : first + captured],
            max(captured, original),
        )

    def _packet_options(self, body: bytes) -> None:
        for code, value in self._options(body, 0):
            if code == _EPB_DROPS and len(value) == 8:
                drops: int = struct.unpack(self._order + "Q", value)[0]
                if drops:
                    self.faults.append(Fault("dropped", "the recorder says that packets were dropped", count=drops))

    def _count(self, body: bytes) -> None:
        """Read an interface statistics block; its counters are totals, so the last of an interface stands."""
        if len(body) < 12:
            self._fault("malformed", _MALFORMED, "a statistics block that is too short")
            return
        self.closed = True
        number: int = struct.unpack_from(self._order + "I", body)[0]
        received: int | None = None
        dropped = 0
        for code, value in self._options(body, 12):
            if len(value) == 8 and code in (_ISB_RECEIVED, _ISB_IFDROP, _ISB_OSDROP):
                figure: int = struct.unpack(self._order + "Q", value)[0]
                if code == _ISB_RECEIVED:
                    received = figure
                else:
                    dropped += figure
        if len(self._statistics) < _MOST_INTERFACES:
            self._statistics[self._section, number] = (received, dropped)

    def _report_drops(self) -> None:
        for received, dropped in self._statistics.values():
            if not dropped:
                continue
            # 4294965006 dropped of 0 received: a difference of counters that went below zero
            if dropped >= 1 << 31 and (received is None or dropped > received):
                self.faults.append(
                    Fault("statistics", "the recorder's counter of dropped packets is impossible", note=True)
                )
            else:
                self.faults.append(Fault("dropped", "the recorder says that packets were dropped", count=dropped))


def _set_resolution(interface: _Interface, code: int) -> None:
    """Set the clock by ``if_tsresol``: a negative power of 10, or of 2 where the top bit is set."""
    power = code & 0x7F
    interface.multiply, interface.divide, interface.shift = 1, 1, 0
    if code & 0x80:
        interface.multiply, interface.shift = 1_000_000_000, power
    elif power <= 9:
        interface.multiply = 10 ** (9 - power)
    else:
        interface.divide = 10 ** (power - 9)
