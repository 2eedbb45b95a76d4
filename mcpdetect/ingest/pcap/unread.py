"""What stands for the reader of a half flow of TCP while its payload so far is nothing, or whole requests."""

from __future__ import annotations

from mcpdetect.ingest.pcap.http import whole_request
from mcpdetect.ingest.pcap.streamevents import StreamEvents
from mcpdetect.ingest.pcap.streams import MOST_BYTES, TcpWatcher
from mcpdetect.ingest.tls import Hello, handshake_hello, looks_like_hello, unwrap_records

__all__ = ["MIDSTREAM", "UNREAD", "Between", "Unread"]


class Unread:
    """Stands for the reader of a half flow that has brought no payload yet: most connections tried bring none.

    Args:
        midstream: the half flow's first packet was no SYN; the payload is read from wherever it begins.
    """

    __slots__ = ("_midstream",)

    def __init__(self, midstream: bool) -> None:
        self._midstream = midstream

    def begin(
        self,
        shared: StreamEvents,
        isn: int | None,
        sequence: int,
        data: bytes,
        size: int,
        key: bytes,
        number: int,
        t_ns: int,
    ) -> TcpWatcher | Unread | None:
        """Take the next segment with payload; other arguments as in ``TcpWatcher.feed``.

        A hello, or a request without a body, that is all of its segment is told at once: nearly every one comes so,
        and what ``TcpWatcher`` would do with it is known.

        Args:
            shared: makes the events.
            isn: the sequence number of the half flow's SYN, where it was seen.
            sequence: the segment's sequence number.
            data: its payload as far as captured.
            size: its payload's length on the wire.
            key: the half flow.
            number: the packet's number.
            t_ns: the packet's time.

        Returns:
            What reads on: a ``TcpWatcher``, which has yet to be fed the segment, or what awaits another one; None where
            nothing more is to be read.
        """
        following = None if self._midstream or isn is None else (isn + 1) & 0xFFFFFFFF
        if (following is None or following == sequence) and len(data) == size:
            if _read_whole_hello(shared, data, key, number, t_ns):
                return None
            if shared.held <= MOST_BYTES and (request := whole_request(data)) is not None:
                shared.request(request, key, number, number, t_ns)
                return Between((sequence + size) & 0xFFFFFFFF, number, t_ns)
        return TcpWatcher(shared, key, following)

    def close(self) -> None:
        """The flow is over: nothing was begun."""


UNREAD = Unread(midstream=False)
"""The payload will be read from the byte behind the SYN on."""

MIDSTREAM = Unread(midstream=True)
"""The payload will be read from wherever it begins: the half flow's first packet was no SYN."""


class Between(Unread):
    """Stands for the reader of a half flow whose requests so far were whole segments.

    Args:
        following: the next sequence number.
        number: the packet of the latest request.
        t_ns: its time.
    """

    __slots__ = ("_following", "_number", "_t_ns")

    def __init__(self, following: int, number: int, t_ns: int) -> None:
        super().__init__(midstream=False)
        self._following = following
        self._number = number
        self._t_ns = t_ns

    def begin(
        self,
        shared: StreamEvents,
        isn: int | None,
        sequence: int,
        data: bytes,
        size: int,
        key: bytes,
        number: int,
        t_ns: int,
    ) -> TcpWatcher | Unread:
        """Take the next segment with payload, as ``Unread.begin``."""
        if (
            sequence == self._following
            and len(data) == size
            and shared.held <= MOST_BYTES
            and (request := whole_request(data)) is not None
        ):
            shared.request(request, key, number, number, t_ns)
            self._following, self._number, self._t_ns = (sequence + size) & 0xFFFFFFFF, number, t_ns
            return self
        watcher = TcpWatcher(shared, key, self._following)
        watcher.expect_request(self._number, self._t_ns)
        return watcher


def _read_whole_hello(shared: StreamEvents, data: bytes, key: bytes, number: int, t_ns: int) -> bool:
    """Tell the hello that a half flow's first segment is from its first byte on; return False where it is none.

    One that goes on in the next segment is left to ``TcpWatcher``.
    """
    if len(data) <= 5 or not looks_like_hello(data):
        return False
    message, missing = unwrap_records(data)
    if missing:
        return False
    shared.hello(handshake_hello(message, quic=False) or Hello(), key, number, number, t_ns)
    return True
