"""The payload of one direction of a TCP connection: put in order, and read for hellos, requests and DNS messages."""

from __future__ import annotations

from mcpdetect.ingest.pcap.ends import DNS_PORTS, ports_of
from mcpdetect.ingest.pcap.files import NO_TIME
from mcpdetect.ingest.pcap.http import Request, RequestReader, may_be_request
from mcpdetect.ingest.pcap.streamevents import STREAM_KINDS, StreamEvents
from mcpdetect.ingest.tls import Hello, handshake_hello, looks_like_hello, unwrap_records

__all__ = ["MOST_BYTES", "TcpWatcher"]

MOST_BYTES = 8 << 20
"""What the readers of one capture may hold together; beyond it they give up."""

_MOST_HELLO = 16384
_MOST_PENDING = 64
_MOST_PENDING_BYTES = 65536
_MOST_SEGMENTS = 16


class TcpWatcher:
    """Reads one half flow until nothing more can be learned from it.

    It begins undecided, at the first byte or at the beginning of one of the first segments (STARTTLS and the like), and
    then reads a TLS hello, HTTP requests, or DNS messages.

    Attributes:
        done: nothing more can be learned.
        hidden: event kinds that the latest segment may have hidden because it was cut.
    """

    __slots__ = (
        "_buffer",
        "_contested",
        "_dns",
        "_first",
        "_http",
        "_key",
        "_last",
        "_mode",
        "_need",
        "_next",
        "_pending",
        "_pending_bytes",
        "_segments",
        "_shared",
        "_t_ns",
        "done",
        "hidden",
    )

    def __init__(self, shared: StreamEvents, key: bytes, following: int | None) -> None:
        self._shared = shared
        self._key = key
        self._next = following
        self._dns = not DNS_PORTS.isdisjoint(ports_of(key))
        self._mode = ""
        self._buffer = bytearray()
        self._pending: dict[int, tuple[bytes, int, int]] = {}
        self._pending_bytes = 0
        self._segments = 0
        self._need = 0
        self._http: RequestReader | None = None
        self._contested = False
        self._first = 0
        self._last = 0
        self._t_ns = NO_TIME
        self.done = False
        self.hidden: tuple[str, ...] = ()

    def expect_request(self, number: int, t_ns: int) -> None:
        """Begin behind a whole request, which was packet ``number``."""
        self._mode = "http"
        self._http = RequestReader(first=False)
        self._first = self._last = number
        self._t_ns = t_ns

    @property
    def kinds(self) -> tuple[str, ...]:
        """The event kinds that bytes missing now may hide."""
        if self._mode == "tls":
            return ("tls.client_hello",)
        if self._mode == "http":
            return ("http.request",)
        if self._mode == "dns":
            return ("dns.answer", "dns.query")
        return STREAM_KINDS if self._dns else ("http.request", "tls.client_hello")

    def feed(self, sequence: int, data: bytes, size: int, number: int, t_ns: int) -> None:
        """Take one segment.

        Args:
            sequence: its sequence number.
            data: its payload as far as captured.
            size: its payload's length on the wire.
            number: the packet's number.
            t_ns: the packet's time.
        """
        self.hidden = ()
        if self._next is None:
            self._next = sequence
        offset = (sequence - self._next) & 0xFFFFFFFF
        if offset >= 0x80000000:
            offset -= 0x100000000
        if offset > 0:
            self._put_aside(sequence, data, size, number, t_ns)
            return
        self._advance(-offset, data, size, number, t_ns)
        while self._pending and not self.done:
            if not self._drain():
                break
        if self.done:
            self._release()

    def close(self) -> None:
        """The flow is over: tell what is unfinished."""
        if not self.done:
            while self._pending and not self.done:
                self._skip_gap()
            if not self.done:
                self._end()
        self._release()

    def _put_aside(self, sequence: int, data: bytes, size: int, number: int, t_ns: int) -> None:
        """Keep a segment whose predecessor is missing."""
        kept = self._pending.get(sequence)
        if kept is not None:
            common = min(len(kept[0]), len(data))
            if kept[0][:common] != data[:common]:
                self._contested = True
            if len(data) <= len(kept[0]):
                return
            self._pending_bytes -= len(kept[0])
            self._shared.held -= len(kept[0])
        if len(data) < size:
            self.hidden = self.kinds  # the rest is missing like any other bytes
        self._pending[sequence] = (data, number, t_ns)
        self._pending_bytes += len(data)
        self._shared.held += len(data)
        if len(self._pending) > _MOST_PENDING or self._pending_bytes > _MOST_PENDING_BYTES:
            self._skip_gap()
        elif self._shared.held > MOST_BYTES:
            self._overflow()
        if self.done:
            self._release()

    def _drain(self) -> bool:
        """Use one kept segment that now connects; return whether there was one."""
        following = self._next or 0
        for sequence, (data, number, t_ns) in self._pending.items():
            behind = (following - sequence) & 0xFFFFFFFF
            if behind < 0x80000000:
                del self._pending[sequence]
                self._pending_bytes -= len(data)
                self._shared.held -= len(data)
                self._advance(behind, data, len(data), number, t_ns)
                return True
        return False

    def _skip_gap(self) -> None:
        """Give up waiting for missing bytes: go on at the nearest kept segment."""
        following = self._next or 0
        self._shared.gap(min(kept[1] for kept in self._pending.values()), self.kinds)
        if self._mode == "tls":
            self._hello(whole=False)
            return
        if self._http is not None:
            for request in self._http.close():
                self._request(request)
            self._http.resume()
        self._clear()
        if self._mode == "dns":
            self.done = True  # message boundaries are gone
            return
        self._next = min(self._pending, key=lambda sequence: (sequence - following) & 0xFFFFFFFF)
        while self._pending and not self.done:
            if not self._drain():
                break

    def _overflow(self) -> None:
        self._shared.overflow(self._first or self._last)
        if self._mode == "tls":
            self._hello(whole=False)
        self.done = True

    def _advance(self, overlap: int, data: bytes, size: int, number: int, t_ns: int) -> None:
        """Take a segment that begins ``overlap`` bytes before the next expected one."""
        buffer = self._buffer
        if overlap and buffer and self._mode != "http":
            seen = bytes(buffer[-overlap:]) if overlap <= len(buffer) else bytes(buffer)
            again = data[overlap - len(seen) : overlap]
            if again != seen[: len(again)]:
                self._contested = True
        fresh = data[overlap:] if overlap else data
        if size <= overlap:
            return
        self._next = ((self._next or 0) + size - overlap) & 0xFFFFFFFF
        self._last = max(self._last, number)
        if fresh:
            self._deliver(fresh, number, t_ns)
        if len(data) < size and not self.done:
            # a segment whose beginning was seen to be neither hello nor request hides none
            self.hidden = self.kinds if self._mode or self._buffer or not fresh else ()
            self._cut()

    def _cut(self) -> None:
        """The capture holds only the beginning of a segment; the snap length's loss is counted by the caller."""
        if self._mode == "tls":
            self._hello(whole=False)
        elif self._http is not None:
            for request in self._http.close():
                self._request(request)
            self._http.resume()
        elif self._mode == "dns":
            self._messages(cut=True)
            self.done = True
        self._clear()

    def _clear(self) -> None:
        self._shared.held -= len(self._buffer)
        self._buffer.clear()

    def _release(self) -> None:
        self._shared.held -= self._pending_bytes
        self._pending_bytes = 0
        self._pending.clear()
        self._clear()

    def _deliver(self, data: bytes, number: int, t_ns: int) -> None:
        if self._http is not None:
            self._requests(data, number, t_ns)
            return
        if not self._buffer or number < self._first:
            self._first, self._t_ns = number, t_ns
        if not self._buffer:
            self._last = number
        self._buffer += data
        self._shared.held += len(data)
        if self._mode == "":
            self._decide()
        if self._mode == "tls":
            self._hello(whole=True)
        elif self._mode == "dns":
            self._messages(cut=False)
        elif self._mode == "http" and self._http is None:
            self._http = RequestReader()
            begun = bytes(self._buffer)
            self._clear()
            self._requests(begun, self._first, self._t_ns)
        if self._shared.held > MOST_BYTES and not self.done:
            self._overflow()

    def _decide(self) -> None:
        """Choose how to read on, or wait for more bytes, or for the next segment."""
        head = bytes(self._buffer[:32])
        if looks_like_hello(head):
            if len(head) > 5:
                self._mode = "tls"
            return
        if may_be_request(head):
            if b" " in head:
                self._mode = "http"
            return
        if self._dns:
            self._mode = "dns"
            return
        self._clear()
        self._segments += 1
        if self._segments >= _MOST_SEGMENTS:
            self.done = True

    def _hello(self, *, whole: bool) -> None:
        """Try to read the hello; tell it when it is whole or can never be, and at once where ``whole`` is False."""
        if whole and len(self._buffer) < self._need:
            return
        message, missing = unwrap_records(bytes(self._buffer))
        if whole and missing and len(self._buffer) + missing <= _MOST_HELLO:
            self._need = len(self._buffer) + missing
            return
        hello = handshake_hello(message, quic=False) or Hello()
        if self._contested or not whole:
            hello.complete = False
            hello.ja4 = None
        if self._contested:
            hello.sni = None
        self.done = True
        self._shared.hello(hello, self._key, self._first, self._last, self._t_ns)

    def _requests(self, data: bytes, number: int, t_ns: int) -> None:
        reader = self._http
        if reader is None:
            return
        if not reader.pending:
            self._first, self._t_ns = number, t_ns
        for request in reader.feed(data):
            self._request(request)
            self._first, self._t_ns = number, t_ns
        if reader.tunnel:
            self._http, self._mode = None, ""
        elif reader.over:
            if reader.lost:
                self._shared.lost_requests(self._first)
            self.done = True

    def _request(self, request: Request) -> None:
        self._shared.request(request, self._key, self._first, self._last, self._t_ns)

    def _messages(self, *, cut: bool) -> None:
        """Read DNS messages, each behind its length (RFC 1035 §4.2.2)."""
        buffer = self._buffer
        while len(buffer) >= 2:
            length = (buffer[0] << 8) | buffer[1]
            if len(buffer) < 2 + length and not cut:
                return
            message = bytes(buffer[2 : 2 + length])
            self._shared.held -= min(len(buffer), 2 + length)
            del buffer[: 2 + length]
            understood = self._shared.dns.message(
                message,
                self._key,
                "tcp",
                self._first,
                self._t_ns,
                cut=cut and len(message) < length,
                end=self._last,
            )
            if not understood:
                self.done = True  # whatever it is, its lengths are not to be trusted
                return
            self._first = self._last

    def _end(self) -> None:
        if self._mode == "tls":
            self._hello(whole=False)
        elif self._http is not None:
            for request in self._http.close():
                self._request(request)
            if self._http.lost:
                self._shared.lost_requests(self._first)
        elif self._mode == "dns" and self._buffer:
            self._shared.gap(self._first, self.kinds)
            self._messages(cut=True)
        elif looks_like_hello(bytes(self._buffer[:32])) and len(self._buffer) > 2:
            self._hello(whole=False)
