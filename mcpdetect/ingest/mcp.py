"""MCP transcripts: newline-delimited JSON, as recorded with times and directions, or one stream's bare messages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import EXCERPT, Declared
from mcpdetect.ingest.mcp_conversation import Conversation
from mcpdetect.ingest.mcp_json import Exact, compact, read_json
from mcpdetect.ingest.mcp_message import form_of
from mcpdetect.ingest.mcp_session import Losses
from mcpdetect.ingest.opener import Stream, open_evidence
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of
from mcpdetect.model.vocabulary import Proof

__all__ = ["MAX_LINE", "McpTranscript"]

MAX_LINE = 8 * 1024 * 1024
"""Longest line read; the rest of a longer one is counted as a ``line-cut`` loss."""

_LATEST = Decimal((1 << 63) // 10**9)  # nanoseconds fit 64 bits until the year 2262
_BLOCK = 128 * 1024
_HEAD = 1024 * 1024
_TOUCHES = ("mcp.message", "mcp.tool")
# A line that can only be meant as a message: some reader may understand what this one could not.
_MESSAGE_STARTS = (b'{"', b'[{"')


class McpTranscript:
    """One MCP transcript.

    Two forms are read. *Recorded*: ``{"t": 1796038737.26, "dir": "s2c", "msg": {...}}`` a line, or ``"raw": "..."``
    in place of ``msg`` for what was no JSON. *Bare*: the messages of a stream as they were, noise between them; who
    sent one is inferred from its method. The first line that is one or the other decides for the whole file: in a
    recorded file a line without the recorder's frame is never taken for a message, and in a bare one, all of whose
    lines the server may choose, a frame is never believed.

    Args:
        path: the file, plain or compressed.
        name: its name in every place; the path otherwise.
        declared: what a manifest says about it.

    Raises:
        InputError: it cannot be opened, or no line of it is a message.
    """

    def __init__(self, path: Path, name: str | None = None, declared: Declared | None = None) -> None:
        self._path = path
        self._name = name or str(path)
        self._declared = declared
        self._head = b""
        self._opened: Stream | None = open_evidence(path, self._name)
        self._recorded = self._look(self._opened)
        if path.is_file():  # a pipe can be read only once, so it stays open
            self._opened.close()
            self._opened, self._head = None, b""
        self._start()

    @property
    def observation(self) -> Observation:
        """What the file can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield ``mcp.message``, ``mcp.tool`` and ``unparsed`` events in the order of the lines."""
        self._start()
        for event in self._read():
            if wanted is None or event.kind in wanted:
                yield event

    def _start(self) -> None:
        declared = self._declared or Declared()
        self._losses = Losses()
        self._counts = dict.fromkeys(("lines", "messages", "noise", "tools", "events", "unparsed"), 0)
        self._talk = Conversation(self._name, self._losses, self._counts)
        self._times: tuple[int, int] | None = None
        self._observation = Observation(
            channel="mcp",
            source=self._name,
            format="mcp-recorded" if self._recorded else "mcp-ndjson",
            tool=declared.tool,
            options=list(declared.options or ()),
            proof="declared" if self._declared else "inferred",
            clock="epoch" if self._recorded else "none",
            begin_ns=declared.begin_ns,
            end_ns=declared.end_ns,
            complete=declared.complete,
            counts=self._counts,
            losses=list(declared.losses),
            scope=declared.scope,
        )

    def _look(self, stream: Stream) -> bool:
        """Return whether the file is of the recorded form."""
        self._head = stream.read_exactly(_HEAD)
        lines = self._head.split(b"\n")
        for line in lines:
            value = _value(line)
            if value is None:
                continue
            if _framed(value):
                return True
            if any(form_of(item) != "noise" for item in (value if isinstance(value, list) else [value])):
                return False
        # A server may write any amount of noise before its first message; only a file read to its end has none.
        if len(self._head) < _HEAD:
            stream.close()
            raise UnknownFormat(
                "is no MCP transcript: no line of it is a JSON-RPC message",
                file=self._name,
                value=text_of(lines[0][:80]),
                cause="another file was named, or the server never spoke",
                hint='one JSON message a line, bare or as {"t": seconds, "dir": "c2s", "msg": {...}}',
            )
        return False

    def _lines(self) -> Iterator[tuple[int, bytes, bool, bool]]:
        """Yield number, bytes, whether cut at ``MAX_LINE``, whether ended by a line end."""
        stream, rest = self._opened or open_evidence(self._path, self._name), self._head
        self._opened, self._head = None, b""
        with stream:
            at, cut = 0, False
            block = rest or stream.read(_BLOCK)
            rest = b""
            parts: list[bytes] = []
            size = 0
            while block:
                pieces = block.split(b"\n")
                for piece in pieces[:-1]:
                    at += 1
                    line, cut = self._join(parts, size, piece)
                    yield at, line, cut, True
                    parts, size = [], 0
                tail = pieces[-1]
                if size <= MAX_LINE:
                    parts.append(tail)
                size += len(tail)
                block = stream.read(_BLOCK)
            if size:
                line, cut = self._join(parts, size, b"")
                yield at + 1, line, cut, False
            if stream.damaged:
                self._losses.add("file-truncated", "the compressed stream broke off", Where(self._name, at + 1))

    @staticmethod
    def _join(parts: list[bytes], size: int, piece: bytes) -> tuple[bytes, bool]:
        line = b"".join([*parts, piece]) if parts else piece
        return line[:MAX_LINE], size + len(piece) > MAX_LINE

    def _read(self) -> Iterator[Event]:
        for at, line, cut, ended in self._lines():
            self._counts["lines"] += 1
            for event in self._line(Where(self._name, at), line, cut, ended):
                self._counts["events"] += 1
                self._counts["unparsed"] += event.kind == "unparsed"
                yield event
        self._finish()

    def _line(self, where: Where, line: bytes, cut: bool, ended: bool) -> list[Event]:
        line = line.strip(b" \t\r")
        if where.at == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return []
        if cut:
            self._losses.add("line-cut", f"a line is longer than {MAX_LINE} bytes", where)
            return [self._unparsed(where, None, line, f"longer than {MAX_LINE} bytes")]
        try:
            reading = read_json(line)
        except ValueError as error:
            return self._no_json(where, line, error, ended)
        if reading.broken:
            self._losses.add("invalid-utf8", "a line holds bytes that are not UTF-8", where, note=True)
        if not self._recorded:
            return self._talk.messages(where, None, None, reading.value, reading)
        frame = reading.value
        if not _framed(frame):
            self._losses.add("unparsed", "a line lacks the recorder's frame", where)
            return [self._unparsed(where, None, line, "not a frame of the recorder: no t, dir and msg or raw")]
        t_ns = self._time(frame.get("t"), where)
        if "raw" in frame:
            raw = frame["raw"] if isinstance(frame["raw"], str) else compact(frame["raw"])
            return [self._talk.noise(where, t_ns, frame["dir"], raw, reading.broken)]
        return self._talk.messages(where, t_ns, frame["dir"], frame["msg"], reading)

    def _no_json(self, where: Where, line: bytes, error: ValueError, ended: bool) -> list[Event]:
        if not ended and (self._recorded or line[:1] in (b"{", b"[")):
            self._losses.add("file-truncated", "the last line is incomplete", where)
            return [self._unparsed(where, None, line, "incomplete last line")]
        if self._recorded or line.startswith(_MESSAGE_STARTS):
            self._losses.add("unparsed", "a line could not be read as JSON", where)
            return [self._unparsed(where, None, line, str(error)[:200])]
        return [self._talk.noise(where, None, "s2c", line.decode("utf-8", "surrogateescape"), True)]

    def _unparsed(self, where: Where, t_ns: int | None, line: bytes, reason: str) -> Unparsed:
        return Unparsed(where, t_ns, seen_in="mcp", reason=reason, raw=line[:EXCERPT], touches=list(_TOUCHES))

    def _time(self, value: object, where: Where) -> int | None:
        """Return nanoseconds of ``1796038737.266463`` exactly, None for what is no time."""
        number = Decimal("NaN")
        if isinstance(value, int) and not isinstance(value, bool):
            number = Decimal(value)
        elif isinstance(value, Exact):
            with contextlib.suppress(InvalidOperation):  # an exponent beyond what Decimal holds
                number = Decimal(value.text)
        if not number.is_finite() or number.is_signed() or number > _LATEST:
            self._losses.add("no-clock", "a line has no usable time", where, note=True)
            return None
        t_ns = int(number.scaleb(9))
        self._times = (min(self._times[0], t_ns), max(self._times[1], t_ns)) if self._times else (t_ns, t_ns)
        return t_ns

    def _finish(self) -> None:
        seen = self._observation
        declared = self._declared is not None
        if self._times is not None:
            seen.begin_ns = self._times[0] if seen.begin_ns is None else seen.begin_ns
            seen.end_ns = self._times[1] if seen.end_ns is None else seen.end_ns
        if self._talk.one_sided and not self._recorded:
            seen.scope = seen.scope or "server to client"
            self._losses.add("one-direction", "only the server's side was recorded", None, note=True)
        self._talk.finish()
        proof: Proof = "declared" if declared else "inferred"
        if self._counts["messages"] or declared:
            seen.watches["mcp.message"] = proof
        else:
            seen.proof = "absent"
        if self._talk.listed:
            seen.watches["mcp.tool"] = proof
        seen.losses.extend(self._losses.all())


def _value(line: bytes) -> Any:  # noqa: ANN401
    """Return a line's JSON value, None where it is none."""
    if line[:1] not in (b"{", b"[", b" ", b"\t", b"\xef"):
        return None
    try:
        return read_json(line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r")).value
    except ValueError:
        return None


def _framed(value: object) -> bool:
    return isinstance(value, dict) and value.get("dir") in ("c2s", "s2c") and ("msg" in value or "raw" in value)
