"""MCP overheard: the messages that pass over standard input and output, put together from reads and writes.

A server of the stdio transport reads one JSON-RPC message a line from descriptor 0 and writes one a line to
descriptor 1 (MCP 2025-06-18, "Transports"). Where the strings of a trace are long enough, the conversation is in it.
Only descriptors from outside the trace count: what a child says into a pipe that a traced process made is between
those two.

Bytes that a trace does not show leave a hole. No line that touches one is read, nor the one after it, since nobody
knows where in the hole a line ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from mcpdetect.ingest.adapter import CARRIERS
from mcpdetect.ingest.mcp_conversation import Conversation
from mcpdetect.ingest.mcp_json import read_json
from mcpdetect.ingest.mcp_message import form_of
from mcpdetect.ingest.mcp_session import Losses
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.state import Handle
from mcpdetect.ingest.strace.values import excerpt_in, fields, items, number, vectors
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.mcp import McpMessage, McpTool
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where

__all__ = ["Stdio"]

_TOUCHES = ("mcp.message", "mcp.tool")
_MOST_LINE = 8 * 1024 * 1024
_MOST_CALL = 1 << 20
_MOST_STREAMS = 256
_MOST_RAW = 200
_VECTORS = frozenset({"readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2"})
_MESSAGES = frozenset({"sendmsg", "recvmsg"})
_MANY = frozenset({"sendmmsg", "recvmmsg"})

Direction = Literal["c2s", "s2c"]


@dataclass(slots=True)
class _Stream:
    """One direction of one pipe: what is read of a line so far, and where that began.

    ``deaf`` while a hole may still go on; nothing is read before the next line end.
    """

    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    began: Where | None = None
    deaf: bool = False


class Stdio:
    """Listens to the calls of one trace.

    Args:
        out: where events go.
        wanted: the kinds asked for.
    """

    def __init__(self, out: list[Event], wanted: frozenset[str]) -> None:
        self._out = out
        self._wanted = wanted
        self._losses = Losses()
        self._counts = dict.fromkeys(("messages", "noise", "tools"), 0)
        self._talk: Conversation | None = None
        self._streams: dict[tuple[Direction, str], _Stream] = {}
        self._known: dict[str, Direction] = {}
        self._holes = 0
        self._first_hole: Where | None = None

    def call(self, call: Call, fd: int | None, handle: Handle | None, direction: Direction) -> None:
        """Take a call that read (``c2s``) or wrote (``s2c``); others than of standard input and output do nothing."""
        name = _name_of(handle)
        if fd == (0 if direction == "c2s" else 1):
            if handle is not None and handle.owner is not None:
                return
            if name and len(self._known) < _MOST_STREAMS:
                self._known[name] = direction
        elif not name or (self._known.get(name) != direction and not _duplicated(call, name, direction)):
            return
        if call.result is None and (call.error is not None or direction == "c2s"):
            return  # nothing passed
        key = (direction, name)
        stream = self._streams.get(key)
        if stream is None:
            if len(self._streams) >= _MOST_STREAMS:
                self._hole(call.where)
                return
            stream = self._streams[key] = _Stream()
        data, whole = _bytes(call)
        self._take(stream, call, direction, data, whole=whole)

    def knows(self, name: str) -> bool:
        """Whether a pipe or file of this name served as standard input or output."""
        return name in self._known

    def _hole(self, where: Where) -> None:
        self._holes += 1
        self._first_hole = self._first_hole or where

    def _take(self, stream: _Stream, call: Call, direction: Direction, data: bytes, *, whole: bool) -> None:
        pieces = data.split(b"\n")
        for piece in pieces[:-1]:
            if stream.deaf:
                stream.deaf = False
            elif stream.size + len(piece) > _MOST_LINE:
                self._hole(call.where)
            else:
                line = b"".join([*stream.parts, piece])
                self._line(stream.began or call.where, call, direction, line)
            stream.parts, stream.size, stream.began = [], 0, None
        tail = pieces[-1]
        if tail and not stream.deaf:
            if stream.size <= _MOST_LINE:
                stream.parts.append(tail)
            stream.size += len(tail)
            stream.began = stream.began or call.where
        if not whole:
            self._hole(call.where)
            stream.parts, stream.size, stream.began, stream.deaf = [], 0, None, True

    def _line(self, began: Where, call: Call, direction: Direction, line: bytes) -> None:
        line = line.strip(b" \t\r")
        if not line:
            return
        last = call.where.end or call.where.at
        where = Where(began.file, began.at, last if last != began.at and began.file == call.where.file else None)
        try:
            reading = read_json(line)
        except ValueError as error:
            if self._talk is not None:
                self._no_message(self._talk, where, call, direction, line, str(error))
            return
        if self._talk is None:
            values = reading.value if isinstance(reading.value, list) else [reading.value]
            if not any(isinstance(item, dict) and "jsonrpc" in item and form_of(item) != "noise" for item in values):
                return
            self._talk = Conversation(where.file, self._losses, self._counts)
        self._emit(self._talk.messages(where, call.t_ns, direction, reading.value, reading), call)

    def _no_message(
        self, talk: Conversation, where: Where, call: Call, direction: Direction, line: bytes, error: str
    ) -> None:
        if line.startswith((b'{"', b'[{"')):
            self._losses.add("unparsed", "a line of the conversation could not be read as JSON", where, _TOUCHES)
            raw = line[:_MOST_RAW]
            self._emit([Unparsed(where, call.t_ns, reason=error[:200], raw=raw, touches=list(_TOUCHES))], call)
            return
        text = line.decode("utf-8", "surrogateescape")
        self._emit([talk.noise(where, call.t_ns, direction, text, True)], call)

    def _emit(self, events: list[Event], call: Call) -> None:
        for event in events:
            if event.kind not in self._wanted:
                continue
            event.process = call.thread.process.id
            if isinstance(event, McpMessage | McpTool):
                event.seen_in = "syscalls"
            self._out.append(event)

    def finish(self, observation: Observation) -> None:
        """State at the end of the log what of the conversation was seen, and what was not."""
        if self._talk is None:
            return
        self._talk.finish()
        if self._holes:
            self._losses.add(
                "string-cut",
                "the trace does not show all bytes of standard input and output: messages in the gaps are missing",
                self._first_hole,
                _TOUCHES,
                count=self._holes,
            )
        cut = sum(1 for stream in self._streams.values() if stream.parts)
        if cut:
            self._losses.add("file-truncated", "the conversation ends within a message", None, _TOUCHES, count=cut)
        observation.losses = [_shared(loss) for loss in observation.losses]
        observation.losses.extend(_own(loss) for loss in self._losses.all())
        observation.watches["mcp.message"] = "inferred"
        if self._talk.listed:
            observation.watches["mcp.tool"] = "inferred"
        observation.counts |= {"mcp-messages": self._counts["messages"], "mcp-tools": self._counts["tools"]}


def _shared(loss: Loss) -> Loss:
    """Return a loss of the trace; one of calls that carry the conversation hides messages too."""
    if loss.note or not CARRIERS.intersection(loss.touches):
        return loss
    return replace(loss, touches=[*loss.touches, *(kind for kind in _TOUCHES if kind not in loss.touches)])


def _own(loss: Loss) -> Loss:
    """Return a loss of the conversation as one of the trace: what touches all of a transcript touches only MCP here."""
    if not loss.touches and not loss.note:
        loss.touches = list(_TOUCHES)
    return loss


def _duplicated(call: Call, name: str, direction: Direction) -> bool:
    """Return whether a pipe is that of standard input or output, used by another number (dup, as .NET does)."""
    own = call.thread.table.handles.get(0 if direction == "c2s" else 1)
    return own is not None and own.owner is None and _name_of(own) == name


def _name_of(handle: Handle | None) -> str:
    """Return a name by which the same pipe or socket is known again, ``""`` where the trace shows none."""
    if handle is None:
        return ""
    if handle.socket is not None:
        return f"socket:{handle.socket.inode}" if handle.socket.inode else ""
    return handle.path if handle.path is not None and handle.sort in {"pipe", "file"} and handle.path != "pipe" else ""


def _bytes(call: Call) -> tuple[bytes, bool]:
    """Return the bytes that passed, and whether the trace shows all of them."""
    if call.name in _MANY:
        return _many(call)
    if call.name in _VECTORS:
        data, _, _ = vectors(call.argument(1), _MOST_CALL)
    elif call.name in _MESSAGES:
        data, _, _ = vectors(fields(call.argument(1)).get("msg_iov", ""), _MOST_CALL)
    else:
        found = excerpt_in(call.argument(1), _MOST_CALL) if call.name not in _COPIES else None
        data = found[0] if found is not None else b""
    size = call.result
    if size is None:
        return b"", False
    return data[:size], len(data) >= size


_COPIES = frozenset({"sendfile", "sendfile64", "splice", "tee", "copy_file_range"})


def _many(call: Call) -> tuple[bytes, bool]:
    data = b""
    for element in items(call.argument(1))[: call.result or 0]:
        outer = fields(element)
        part, _, _ = vectors(fields(outer.get("msg_hdr", "")).get("msg_iov", ""), _MOST_CALL)
        size = number(outer.get("msg_len", ""))
        if size is None or len(part) < size:
            return data, False
        data += part[:size]
    return data, bool(items(call.argument(1))) or not call.result
