"""``trace.json`` and ``trace.jsonl``: one normalized run on disk, read as a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mcpdetect.errors import InputError, Malformed
from mcpdetect.ingest.adapter import EXCERPT
from mcpdetect.ingest.opener import open_evidence
from mcpdetect.ingest.tracefile.event import SPOKEN, BadEvent, event_of, is_last_line, reader_of
from mcpdetect.ingest.tracefile.head import early_observations, read_head, read_tail
from mcpdetect.ingest.tracefile.loss import Damage
from mcpdetect.ingest.tracefile.scan import HEAD, MAX_VALUE, Broken, Ended, Scanner, TooLong
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run
from mcpdetect.model.wire import Refused

__all__ = ["TraceFile"]

_OWN = b'{"kind":"'
# {"kind": "file.open", "where": ...
_KIND = re.compile(rb'\{\s*+"kind"\s*+:\s*+"([^"\\]*+)"')


class TraceFile:
    """A trace on disk: a ``TraceSource`` whose events stream once, in constant memory.

    Any JSON layout and key order is read; a file laid out as ``write_trace`` does, one event a line, is read fastest.
    An event that is no event of the model becomes ``unparsed`` and a loss of the observations it touches; a file that
    ends too early keeps what came before and loses every claim of absence.

    Args:
        path: the file, plain or compressed.
        name: its name in places and errors.
        trusted: the file was written by this program and not changed since: addresses are taken as they stand, and
            events of unwanted kinds are not decoded. Everything else is checked all the same.

    Raises:
        UnknownFormat: it is no trace, or one of a version that this program does not read.
        Malformed: its head is wrong.
        InputError: it cannot be opened.
    """

    def __init__(self, path: Path, name: str | None = None, *, trusted: bool | None = None) -> None:
        self.name = name or str(path)
        self._trusted = bool(trusted)
        self._scan = Scanner(open_evidence(path, self.name))
        try:
            self._head = read_head(self._scan, path, self.name)
        except InputError:
            self._scan.close()
            raise
        self._damage = Damage(self.name)
        self._observations: list[Observation] = []
        self._begun = False
        self._line = 0

    def close(self) -> None:
        """Close the file; reading the events to their end does it too."""
        self._scan.close()

    @property
    def run(self) -> Run:
        """The run's metadata."""
        return self._head.run

    def observations(self) -> list[Observation]:
        """Return what each evidence file could show; empty until ``events`` was read to its end."""
        return self._observations

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the wanted events (None: all, ``unparsed`` and ``probe`` too), in the order of the file.

        Raises:
            Malformed: the text is no JSON, or what follows the events is wrong.
            InputError: the events were asked for a second time; a pipe cannot be read twice.
        """
        if self._begun:
            raise InputError("the events of this trace were read already", file=self.name, hint="open it again")
        self._begun = True
        try:
            yield from self._events(frozenset(EVENT_TYPES) if wanted is None else wanted)
        except Ended:
            self._observations = early_observations(self._head.known, self.name)
            self._damage.ended(self._scan.line, self._scan.stream.damaged)
        except Broken as error:
            raise Malformed(
                f"is no JSON: {error}",
                file=self.name,
                place=f"line {self._scan.line}",
                cause="it was changed by hand, or its writer stopped and went on",
                hint="make the trace again from the raw evidence with `mcpdetect parse`",
            ) from error
        finally:
            self._scan.close()
        self._observations = self._damage.laid_on(self._observations)

    def _events(self, wanted: frozenset[str]) -> Iterator[Event]:
        readers = {kind.encode(): reader_of(kind, self._trusted) for kind in EVENT_TYPES}
        skipped = frozenset(kind.encode() for kind in EVENT_TYPES if self._trusted and kind not in wanted)
        seen, spoken = self._damage.seen, self._damage.spoken
        for raw in self._lines() if self._head.lines else self._elements():
            # {"kind":"file.open","where":{"file":"strace.log","at":12,"end":null,"unit":"line"},...}
            if raw.startswith(_OWN):
                name = raw[9 : raw.find(b'"', 9)]
            else:
                kind = _KIND.match(raw)
                name = kind[1] if kind else b""
            if name in skipped and raw.endswith(b"}"):
                continue
            read = readers.get(name)
            try:
                event = read(raw) if read is not None else self._slowly(raw)
            except Refused:
                event = self._slowly(raw)
            seen.add(event.kind)
            if event.kind in SPOKEN:
                spoken.add((event.kind, event.seen_in))  # type: ignore[attr-defined]  # these kinds have it
            if event.kind in wanted:
                yield event

    def _lines(self) -> Iterator[bytes]:
        """Yield the text of each event where every event has its line."""
        scan, in_array = self._scan, self._head.json
        for line in scan.lines():
            self._line = scan.line
            if line.startswith(_OWN):
                yield line[:-1] if line.endswith(b",") else line
                continue
            text = line.strip()
            if in_array and text.startswith(b"]"):
                scan.put_back(text[1:])
                break
            if not in_array and is_last_line(text):
                scan.put_back(text)
                break
            if text:
                yield text.removesuffix(b",")
        else:
            raise Ended
        self._observations = read_tail(scan, self._head, self.name)

    def _elements(self) -> Iterator[bytes]:
        """Yield the text of each element of the array of events, in whatever layout."""
        scan = self._scan
        if scan.peek() == b"]":
            scan.take(b"]")
        else:
            more = True
            while more:
                scan.peek()
                self._line = scan.line
                try:
                    yield scan.value()
                except TooLong as error:
                    yield error.head + b"\0"
                more = scan.take(b",", b"]") == b","
        self._observations = read_tail(scan, self._head, self.name)

    def _slowly(self, raw: bytes) -> Event:
        """Return the event of any layout, or the ``unparsed`` that stands for one that cannot be read."""
        try:
            return event_of(raw, self._trusted)
        except BadEvent as error:
            if self._scan.unbroken:
                raise Ended from error
            if len(raw) == HEAD + 1 and raw.endswith(b"\0"):
                error.reason = f"is longer than {MAX_VALUE} bytes"
            where = Where(self.name, self._line)
            self._damage.bad(error, where)
            return Unparsed(
                where,
                None,
                seen_in=error.channel or "syscalls",
                reason=error.reason,
                raw=raw[:EXCERPT],
                touches=[error.kind] if error.kind else [],
            )
