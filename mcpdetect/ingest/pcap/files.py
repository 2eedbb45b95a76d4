"""The classic pcap file (libpcap's savefile format) and what it shares with pcapng: one packet after another."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.opener import Stream

__all__ = ["CHUNK", "NO_TIME", "ROOM", "CaptureFile", "Fault", "Packet", "PcapFile", "Run"]

CHUNK = 1 << 16
"""Bytes read at a time: small enough for the processor's cache."""

NO_TIME = -1
"""The time of a packet whose record has none."""

ROOM = 128
"""What the header of a record and those of the packet in it take at most, where the fast lane reads them."""

Packet = tuple[int, int, bytes, int]
"""One packet: nanoseconds or ``NO_TIME``, link type, the captured bytes, original length."""

_LARGEST = 262144  # libpcap's MAXIMUM_SNAPLEN for every ordinary link type
_LARGEST_DECLARED = 1 << 22  # ... and the most that a file's own snap length can raise it to

# magic -> byte order, nanoseconds a unit of the second time field
_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_OTHER_MAGICS = {
    b"\x34\xcd\xb2\xa1": "the modified pcap format of Kuznetzov (magic 0xa1b2cd34)",
    b"\xa1\xb2\xcd\x34": "the modified pcap format of Kuznetzov (magic 0xa1b2cd34)",
    b"\x1c\x00\x01\xac": "the IXIA pcap format (magic 0x1c0001ac)",
    b"\x1c\x00\x01\xab": "the IXIA pcap format (magic 0x1c0001ab)",
    b"\xac\x01\x00\x1c": "the IXIA pcap format (magic 0x1c0001ac)",
    b"\xab\x01\x00\x1c": "the IXIA pcap format (magic 0x1c0001ab)",
    b"snoo": "a Solaris snoop capture",
}


@dataclass(slots=True)
class Fault:
    """Something wrong with a capture file, or a word of its recorder about lost packets.

    Attributes:
        what: as in ``Loss.what``.
        detail: a fixed sentence.
        offset: byte in the (decompressed) file, None for a fact about the whole file.
        reason: what exactly, with numbers.
        count: how often.
        note: no packet was lost by it.
    """

    what: str
    detail: str
    offset: int | None = None
    reason: str = ""
    count: int = 1
    note: bool = False


@dataclass(slots=True)
class Run:
    """Records of one kind and link type behind each other, for the fast lane to walk through.

    The lane takes a record only where ``ROOM`` bytes are left and all of the record is there; what it leaves, the
    reader of the file gives out as a ``Packet``, or reads more for.

    Attributes:
        buffer: the bytes of the file that are at hand.
        at: where the next record begins; the lane moves it on.
        link: the link type of every packet.
        order: the byte order of the record headers, as ``struct`` writes it.
        unit: nanoseconds a unit of the time stamps.
        limit: most bytes that a packet can have.
        interface: -1 for pcap; for pcapng, whose records are plain enhanced packet blocks, the interface's number.
    """

    buffer: bytes
    at: int
    link: int
    order: str
    unit: int
    limit: int
    interface: int = -1


@dataclass(slots=True)
class CaptureFile:
    """What both formats know.

    Attributes:
        format: ``pcap`` or ``pcapng``.
        faults: grows while packets are read; who reads them takes the faults out.
        tool: the program that wrote the file, where it says.
        options: facts about the recording in words (``snaplen 96``, ``filter udp port 53``).
        interfaces: names of interfaces, where the file says.
        closed: the file ends in a closing record.
        link_types: link types that the file announces.
    """

    format: str = "pcap"
    faults: list[Fault] = field(default_factory=list)
    tool: str | None = None
    options: list[str] = field(default_factory=list)
    interfaces: list[str] = field(default_factory=list)
    closed: bool = False
    link_types: list[int] = field(default_factory=list)

    def steps(self) -> Iterator[Run | Packet | None]:
        """Yield the packets in file order, as far as the file can be understood: many at a time, or one.

        Whenever ``faults`` grew, it yields before it goes on: None, where there is no packet to give.
        """
        raise NotImplementedError


class PcapFile(CaptureFile):
    """A classic capture file.

    Raises:
        UnknownFormat: the magic number is not that of a pcap file.
        InputError: the file ends within its 24-byte header.
    """

    def __init__(self, stream: Stream, head: bytes) -> None:
        super().__init__(format="pcap")
        self._stream = stream
        magic = head[:4]
        if magic not in _MAGICS:
            other = _OTHER_MAGICS.get(magic)
            raise UnknownFormat(
                f"is {other}, which is not supported" if other else "is no packet capture",
                file=stream.name,
                value=f"first bytes {magic.hex()}",
                cause=None if other else "another kind of evidence, or a capture damaged in its first bytes",
                hint="convert it with: editcap -F pcap"
                if other
                else "give a pcap or pcapng file, as tcpdump -w writes",
            )
        head += stream.read_exactly(24 - len(head))
        if len(head) < 24:
            raise InputError(
                "ends within its 24-byte header",
                file=stream.name,
                value=f"{len(head)} bytes",
                cause="the recorder was killed before its first write was complete",
            )
        self._order, self._unit = _MAGICS[magic]
        snap, network = struct.unpack(self._order + "II", head[16:24])
        self._link = network & 0x0FFFFFFF  # the upper bits tell of a frame check sequence (draft-ietf-opsawg-pcap)
        self._limit = max(_LARGEST, snap if snap <= _LARGEST_DECLARED else 0)
        self.link_types = [self._link]
        self.options = [f"snaplen {snap}"]

    def steps(self) -> Iterator[Run | Packet | None]:
        """Yield every complete record; a record that ends behind the file, or claims the impossible, is a fault."""
        unpack = struct.Struct(self._order + "IIII").unpack_from
        run = Run(b"", 0, self._link, self._order, self._unit, self._limit)
        base = 24  # offset of the buffer's first byte in the file
        ended = False
        need = 16
        while True:
            if len(run.buffer) - run.at >= ROOM:
                yield run
            buffer, at = run.buffer, run.at
            while at + 16 <= len(buffer):
                seconds, part, captured, original = unpack(buffer, at)
                need = 16 + captured
                if captured > self._limit:
                    self.faults.append(
                        Fault(
                            "malformed",
                            "a record claims an impossible length; what follows it cannot be read",
                            base + at,
                            f"captured length {captured}",
                        )
                    )
                    return
                if not ended or at + need > len(buffer):
                    break
                # near the end of the file, where the lane does not go
                time_ns = seconds * 1_000_000_000 + part * self._unit
                yield time_ns, self._link, buffer[at + 16 : at + need], max(captured, original)
                at += need
                need = 16
            run.at = at
            if ended:
                break
            more = self._stream.read(max(CHUNK, need))
            ended = not more
            base += at
            run.buffer, run.at = buffer[at:] + more, 0
            need = 16
        if at < len(buffer) or self._stream.damaged:
            self.faults.append(
                Fault(
                    "file-truncated",
                    "the capture ends in the middle of a record",
                    base + at,
                    self._stream.damaged or f"{len(buffer) - at} bytes of a record of at least {need}",
                )
            )
