"""IP fragments put together again (RFC 791 §3.2, RFC 8200 §4.5), within bounds."""

from __future__ import annotations

from mcpdetect.ingest.pcap.files import NO_TIME

__all__ = ["Datagram", "Fragments"]

_MOST_PENDING = 512
_MOST_BYTES = 4 << 20
_MOST_PIECES = 128
_LIFETIME_NS = 60_000_000_000  # RFC 8200 §4.5: given up after 60 seconds


class Datagram:
    """The pieces of one datagram: when and where the first was seen, and what they make up.

    Attributes:
        source, address: raw addresses.
        protocol: of the piece at offset 0, as far as seen; else of the first piece seen.
        number: packet number of the first piece seen.
        last: that of the latest.
        t_ns: time of the first piece seen.
        pieces: offset -> bytes.
        size: bytes held.
        original: bytes that the pieces had on the wire.
    """

    __slots__ = ("address", "last", "number", "original", "pieces", "protocol", "size", "source", "t_ns", "total")

    def __init__(self, source: bytes, address: bytes, protocol: int, number: int, t_ns: int) -> None:
        self.source = source
        self.address = address
        self.protocol = protocol
        self.number = number
        self.last = number
        self.t_ns = t_ns
        self.pieces: dict[int, bytes] = {}
        self.size = 0
        self.original = 0
        self.total: int | None = None

    def whole(self) -> bytes | None:
        """Return the datagram, None while a piece is missing; pieces are known not to overlap."""
        if self.total is None or self.size != self.total:
            return None
        at = 0
        parts = []
        for offset in sorted(self.pieces):
            if offset != at:
                return None
            parts.append(self.pieces[offset])
            at += len(self.pieces[offset])
        return b"".join(parts)


class Fragments:
    """The table of datagrams that are not whole yet. What leaves it unfinished goes to ``failed``."""

    def __init__(self) -> None:
        self._pending: dict[bytes, Datagram] = {}
        self._bytes = 0
        self.failed: list[Datagram] = []
        self.overflows = 0

    def add(
        self,
        key: bytes,
        source: bytes,
        address: bytes,
        protocol: int,
        offset: int,
        more: bool,
        data: bytes | None,
        original: int,
        number: int,
        t_ns: int,
    ) -> tuple[Datagram, bytes] | None:
        """Take one fragment; return the datagram and its bytes when it is whole.

        Args:
            key: what the pieces of a datagram share.
            source: raw source address.
            address: raw destination address.
            protocol: protocol number of the fragment's own header.
            offset: in bytes.
            more: the more-fragments flag.
            data: the piece, None where the capture cut it: the datagram can then not become whole.
            original: its length on the wire.
            number: the packet's number.
            t_ns: the packet's time, ``NO_TIME`` where unknown.
        """
        self._expire(t_ns)
        datagram = self._pending.get(key)
        if datagram is None:
            datagram = self._pending[key] = Datagram(source, address, protocol, number, t_ns)
        datagram.last = number
        datagram.original += original
        if offset == 0:
            datagram.protocol = protocol
        if data is None or not self._fits(datagram, offset, more, data):
            self._drop(key)
            return None
        whole = datagram.whole()
        if whole is not None:
            self._forget(key)
            return datagram, whole
        if len(self._pending) > _MOST_PENDING or self._bytes > _MOST_BYTES:
            self.overflows += 1
            self._drop(next(iter(self._pending)))
        return None

    def _fits(self, datagram: Datagram, offset: int, more: bool, data: bytes) -> bool:
        """Add a piece; return False for one that contradicts the others (RFC 5722: then nothing is believed)."""
        end = offset + len(data)
        if end > 65535 or (more and (len(data) % 8 or not data)) or len(datagram.pieces) >= _MOST_PIECES:
            return False
        if not more:
            if datagram.total not in (None, end):
                return False
            datagram.total = end
        if datagram.total is not None and end > datagram.total:
            return False
        if datagram.pieces.get(offset) == data:
            return True  # the same piece again
        for first, piece in datagram.pieces.items():
            if offset < first + len(piece) and first < end:
                return False
        datagram.pieces[offset] = data
        datagram.size += len(data)
        self._bytes += len(data)
        return True

    def _expire(self, t_ns: int) -> None:
        while self._pending and t_ns != NO_TIME:
            key, oldest = next(iter(self._pending.items()))
            if t_ns - oldest.t_ns <= _LIFETIME_NS:
                return
            self._drop(key)

    def _forget(self, key: bytes) -> Datagram:
        datagram = self._pending.pop(key)
        self._bytes -= datagram.size
        return datagram

    def _drop(self, key: bytes) -> None:
        datagram = self._forget(key)
        datagram.pieces = {}
        self.failed.append(datagram)

    def close(self) -> None:
        """Give up every datagram that is still not whole."""
        for key in list(self._pending):
            self._drop(key)
