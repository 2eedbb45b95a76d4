"""mcp.output-rewrite: a result that differs from what the upstream sent, where the difference pays somebody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.calls import Calls, ToolCall
from mcpdetect.correlate.text.valuables import Valuable, valuables
from mcpdetect.model.addresses import elsewhere
from mcpdetect.model.event import Event
from mcpdetect.model.result import Finding
from mcpdetect.model.sockets import SocketReceive
from mcpdetect.model.text import bytes_of

__all__ = ["McpOutputRewrite"]

MAX_RECEIVED = 4 * 1024 * 1024
"""Most bytes of what was received that are kept for one call."""

_LEAST_SHARED = 0.5
"""Least part of the upstream's words that a result must repeat to count as passed on."""


class McpOutputRewrite(Detector):
    """A result in which an address, an account or a link is another one than the upstream sent."""

    spec = Spec(
        id="mcp.output-rewrite",
        version=1,
        claim="no result that passes on what an upstream sent names another address, account or link in its place",
        kinds=("socket.receive",),
        needs=(
            AnyOf("calls and their results", Need("mcp", ("mcp.message", "data:mcp.message"))),
            AnyOf("what the upstream sent", Need("syscalls", ("socket.receive", "data:socket.receive"))),
        ),
        facts=(Calls,),
        blind_to=(
            "an encrypted upstream: without keys there is nothing to compare with",
            "a result in words of the server's own, which repeats less than half of what it received",
            "other things than payment addresses, account numbers, mail addresses and links",
            "what an upstream itself rewrote",
        ),
        technique="T1565.002",
        complete_run=False,
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._received: list[tuple[int, SocketReceive]] = []
        self._size = 0
        self._unreadable = 0

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Keep what came from other machines."""
        if isinstance(event, SocketReceive) and event.data and event.t_ns is not None and event.address:
            if event.port == 53 or not elsewhere(event.address):
                return ()
            if event.data[:2] in (b"\x16\x03", b"\x17\x03", b"\x14\x03"):
                self._unreadable += 1
            elif self._size < MAX_RECEIVED:
                self._size += len(event.data)
                self._received.append((event.t_ns, event))
            else:
                self.context.limit("overflow", f"more than {MAX_RECEIVED} bytes received; the rest is not compared")
        return ()

    def finish(self) -> Iterator[Finding]:
        """Compare every result with what was received during its call."""
        if self._unreadable:
            self.context.limit("encrypted", "an upstream was encrypted: what it sent cannot be compared")
        compared = 0
        for call in self.context.fact(Calls).calls:
            if call.answer is None or not call.answer.text:
                continue
            received = [item for t_ns, item in self._received if call.under_way(t_ns)]
            if received:
                compared += 1
                yield from self._compared(call, received)
        if not compared:
            self.context.limit("nothing-received", "no call received anything readable that its result could repeat")

    def _compared(self, call: ToolCall, received: list[SocketReceive]) -> Iterator[Finding]:
        if call.answer is None:
            return
        upstream = b"".join(item.data for item in received).decode("utf-8", "backslashreplace")
        result = bytes_of(call.answer.text or "").decode("utf-8", "backslashreplace")
        if _shared(upstream, result) < _LEAST_SHARED:
            return
        sent, given = valuables(upstream), valuables(result)
        asked = call.arguments or ""
        known = {item.text for item in sent}
        shown = {item.text for item in given}
        for kind in dict.fromkeys(item.kind for item in given):
            new = [item for item in given if item.kind == kind and item.text not in known and item.text not in asked]
            gone = [item for item in sent if item.kind == kind and item.text not in shown]
            if new and gone:
                yield self._found(call, received, new[0], gone[0])
            elif new and kind != "link":
                yield self._found(call, received, new[0], None)

    def _found(self, call: ToolCall, received: list[SocketReceive], new: Valuable, gone: Valuable | None) -> Finding:
        swapped = f"in place of {gone.text!r}, which the upstream sent" if gone else "which the upstream did not send"
        return self.finding(
            *([call.answer] if call.answer is not None else []),
            received[0],
            title=f"the result of {call.tool!r} names the {new.kind} {new.text!r} {swapped}",
            reason="The result repeats what the upstream sent but for this. Whoever changes an address in between "
            "decides where money, mail or a click goes.",
            identity=f"{call.tool}\0{new.kind}\0{new.text}",
            level="accusing" if gone and new.kind != "link" else "suspicious",
            tool=call.tool,
            kind=new.kind,
            given=new.text,
            sent=gone.text if gone else None,
        )


def _shared(upstream: str, result: str) -> float:
    """Return which part of the body's words a result repeats; the header of an HTTP answer is no part of the body."""
    body = upstream.partition("\r\n\r\n")[2] or upstream
    words = set(body.split())
    return len(words & set(result.split())) / len(words) if words else 0.0
