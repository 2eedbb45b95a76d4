"""What stands around the events of a trace file: schema, generator, run, observations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mcpdetect.errors import Malformed, UnknownFormat
from mcpdetect.ingest.opener import open_evidence
from mcpdetect.ingest.tracefile.scan import MAX_VALUE, Broken, Ended, Scanner, TooLong
from mcpdetect.model.observation import Observation
from mcpdetect.model.trace import TRACE_SCHEMA, Run
from mcpdetect.model.wire import Refused, decoder

__all__ = ["Head", "early_observations", "read_head", "read_tail"]

_RECORD = "record it anew with `mcpdetect parse`, or write it as docs/decisions/0003-trace-layout.md says"
_KEYS = ("schema", "generator", "run", "observations")
_MOST_KEYS = 16


@dataclass(slots=True)
class Head:
    """What comes before the events.

    Attributes:
        run: the run's metadata.
        lines: every event has a line of its own.
        json: the events are an array in one document; else the file is JSON lines.
        known: keys read already, with their text and line.
        again: the keys behind the events were looked up in advance and come again.
    """

    run: Run
    lines: bool
    json: bool
    known: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    again: bool = False


def read_head(scan: Scanner, path: Path, name: str) -> Head:
    """Read up to the first event.

    Raises:
        UnknownFormat: this is no trace, or of a version that this program does not read.
        Malformed: a trace whose head is wrong.
    """
    if scan.peek() != b"{":
        raise UnknownFormat(
            "is no trace: it does not begin with a JSON object",
            file=name,
            cause="raw evidence was given as a trace",
            hint="give raw evidence with --strace, --pcap, --dns, --firewall or --mcp",
        )
    known: dict[str, tuple[bytes, int]] = {}
    scan.take(b"{")
    json_form = False
    try:
        for key in _keys(scan, first=True):
            if key == "events":
                scan.take(b"[")
                json_form = True
                break
            _keep(known, key, scan, name)
    except Ended:
        _check_schema(known, name)
        raise Malformed("ends inside its head", file=name, place=f"line {scan.line}", hint=_RECORD) from None
    except Broken as error:
        if "schema" not in known:
            raise UnknownFormat(
                f"is no trace, nor JSON: {error}", file=name, place=f"line {scan.line}", hint=_RECORD
            ) from error
        raise Malformed(f"is no JSON: {error}", file=name, place=f"line {scan.line}", hint=_RECORD) from error
    again = json_form and not ("schema" in known and "run" in known)
    found = _look_ahead(path, name) if again else known
    _check_schema(found, name)
    if not json_form and "observations" in found:
        raise Malformed("has no events", file=name, hint='an empty run is written as "events": []')
    lines = not json_form or scan.follows(b'\n{"kind":"') or scan.follows(b"\n]")
    return Head(_run(found, name), lines, json_form, known, again)


def read_tail(scan: Scanner, head: Head, name: str) -> list[Observation]:
    """Read what comes after the events, from behind their ``]`` or, in JSON lines, the last line.

    Raises:
        Ended: the text ends too early.
        Broken: it is no JSON.
        Malformed: a key is unknown, missing or wrong, or the text goes on behind its end.
    """
    known = {} if head.again else dict(head.known)
    if not head.json:
        scan.take(b"{")
    for key in _keys(scan, first=not head.json):
        _keep(known, key, scan, name)
    _no_other_keys(known, name)
    if "observations" not in known:
        raise Malformed(
            "has no observations",
            file=name,
            cause="nothing says which evidence was recorded, so the absence of events would mean nothing",
            hint='add "observations", one for every evidence file; see `mcpdetect schema trace`',
        )
    if scan.peek():
        raise Malformed(
            "goes on after its end",
            file=name,
            place=f"line {scan.line}",
            cause="two traces in one file",
            hint="give each trace a file of its own",
        )
    return early_observations(known, name)


def early_observations(known: dict[str, tuple[bytes, int]], name: str) -> list[Observation]:
    """Return the observations among the keys read so far.

    Raises:
        Malformed: they are wrong.
    """
    raw, line = known.get("observations", (b"[]", 0))
    try:
        return decoder(list[Observation])(raw)
    except Refused as error:
        raise _wrong(error, "observations", line, name) from error


def _keys(scan: Scanner, *, first: bool) -> Iterator[str]:
    """Yield the keys of an object, each with its colon taken; the caller takes the values."""
    if first and scan.peek() == b"}":
        scan.take(b"}")
        return
    while True:
        if not first and scan.take(b",", b"}") == b"}":
            return
        first = False
        if scan.peek() not in (b'"', b""):
            raise Broken("a key that is no string")
        try:
            key = json.loads(scan.value())
        except ValueError as error:
            raise Broken(f"a key that is no text: {error}") from error
        scan.take(b":")
        yield str(key)


def _keep(known: dict[str, tuple[bytes, int]], key: str, scan: Scanner, name: str) -> None:
    scan.peek()
    line = scan.line
    try:
        value = scan.value()
    except TooLong as error:
        raise Malformed(f"a value of more than {MAX_VALUE} bytes", file=name, place=f"line {line}, /{key}") from error
    if key in known:
        raise Malformed("a key that comes twice", file=name, place=f"line {line}, /{key}", hint="leave one out")
    if key in _KEYS or len(known) < _MOST_KEYS:  # so many are enough to say that this is no trace
        known[key] = (value if key in _KEYS else b""), line


def _look_ahead(path: Path, name: str) -> dict[str, tuple[bytes, int]]:
    """Return every key but the events, wherever it stands."""
    if not path.is_file():
        raise Malformed(
            "has its schema or run behind its events, and a pipe can be read only once",
            file=name,
            hint="save it to a file first, or write schema and run before the events",
        )
    known: dict[str, tuple[bytes, int]] = {}
    with open_evidence(path, name) as stream:
        scan = Scanner(stream)
        scan.take(b"{")
        try:
            for key in _keys(scan, first=True):
                if key == "events":
                    _skip(scan)
                else:
                    _keep(known, key, scan, name)
        except Ended:
            pass  # the events that are there are read, and the loss is said, by whoever reads them
        except Broken as error:
            raise Malformed(f"is no JSON: {error}", file=name, place=f"line {scan.line}", hint=_RECORD) from error
    return known


def _skip(scan: Scanner) -> None:
    try:
        scan.value(limit=0)
    except TooLong:
        return


def _check_schema(known: dict[str, tuple[bytes, int]], name: str) -> None:
    raw = known.get("schema", (b"", 0))[0]
    if raw == f'"{TRACE_SCHEMA}"'.encode():
        return
    shown = _shown(raw)
    if not raw:
        raise UnknownFormat(
            "is JSON, but no trace: it has no schema",
            file=name,
            cause="another kind of JSON file was given as a trace",
            hint="give MCP transcripts with --mcp; a trace begins with its schema, run and events",
        )
    family, _, version = shown.strip('"').rpartition("/")
    if family == TRACE_SCHEMA.rpartition("/")[0]:
        raise UnknownFormat(
            f"is a trace of version {version}, this program reads {TRACE_SCHEMA}",
            file=name,
            place="/schema",
            value=shown,
            cause="it was written by another version of mcpdetect",
            hint="use that version, or make the trace again from the raw evidence with `mcpdetect parse`",
        )
    raise UnknownFormat(
        "is no trace",
        file=name,
        place="/schema",
        value=shown,
        cause="another of mcpdetect's files, such as a result, was given as a trace",
        hint=f"a trace has the schema {TRACE_SCHEMA}",
    )


def _no_other_keys(known: dict[str, tuple[bytes, int]], name: str) -> None:
    for key, (_, line) in known.items():
        if key not in _KEYS:
            raise Malformed(
                "a key that no trace has",
                file=name,
                place=f"line {line}, /{key[:80]}",
                cause="a misspelling, or a newer writer",
                hint=f"the keys are {', '.join(_KEYS)} and events",
            )


def _run(known: dict[str, tuple[bytes, int]], name: str) -> Run:
    _no_other_keys(known, name)
    if "run" not in known:
        raise Malformed("has no run", file=name, hint='write "run": {} where nothing is known about it')
    generator, line = known.get("generator", (b'""', 0))
    if not generator.startswith(b'"'):
        raise Malformed(
            "is no text",
            file=name,
            place=f"line {line}, /generator",
            value=_shown(generator),
            hint="name the program that wrote the trace, or leave the key out",
        )
    raw, line = known["run"]
    try:
        return decoder(Run)(raw)
    except Refused as error:
        raise _wrong(error, "run", line, name) from error


def _shown(raw: bytes) -> str:
    return raw[:80].decode("utf-8", "backslashreplace")


def _wrong(error: Refused, key: str, line: int, name: str) -> Malformed:
    return Malformed(
        error.problem,
        file=name,
        place=f"line {line}, /{key}{error.pointer}",
        value=error.value,
        cause="a misspelling, or a writer that knows another model",
        hint="compare it with `mcpdetect schema trace`",
    )
