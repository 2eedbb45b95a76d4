"""Writing a trace: one JSON document with one event a line, or JSON lines."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Literal, cast

import msgspec

from mcpdetect.errors import ConfigError
from mcpdetect.ingest.tracefile.scan import MAX_VALUE
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.kinds import EVENT_TYPES, channel_of
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.trace import TRACE_SCHEMA, TraceSource
from mcpdetect.model.vocabulary import Channel
from mcpdetect.model.wire import encode, encode_into
from mcpdetect.version import GENERATOR

__all__ = ["Form", "write_trace"]

Form = Literal["json", "jsonl"]
"""``json`` is one document that any JSON library loads; ``jsonl`` has a header, one event a line, and a last line."""

_BLOCK = 1 << 17
_EVERY_KIND = frozenset(EVENT_TYPES)


def write_trace(out: BinaryIO | Path, source: TraceSource, *, form: Form) -> int:
    """Write a run to a file, event by event.

    Args:
        out: an open binary file, or a path, compressed by its suffix ``.gz`` or ``.zst``. A path is written under
            another name beside it and moved into place at the end, so that no half trace is ever taken for one.
        source: the run; its events are read once.
        form: the layout.

    Returns:
        The number of events written.

    Raises:
        ConfigError: the path cannot be written.
        InputError: whatever reading the source raises.
    """
    if not isinstance(out, Path):
        return _write(out, source, form)
    with _opened(out) as stream:
        return _write(stream, source, form)


def _write(out: BinaryIO, source: TraceSource, form: Form) -> int:
    head = b'{"schema": %b, "generator": %b, "run": %b' % (encode(TRACE_SCHEMA), encode(GENERATOR), _text(source.run))
    between = b",\n" if form == "json" else b"\n"
    out.write(head + (b',\n"events": [' if form == "json" else b"}"))
    written = 0
    refused: dict[tuple[Channel, str], Loss] = {}
    buffer = bytearray(b"\n")
    size = 1
    full = min(_BLOCK, MAX_VALUE)  # an event that is too long fills the buffer, so its length is looked at only then
    for event in source.events(_EVERY_KIND):
        if written:
            buffer += between
        try:
            encode_into(event, buffer, -1)
        except UnicodeEncodeError:
            buffer[size + (len(between) if written else 0) :] = _text(event)
        written += 1
        before, size = size, len(buffer)
        if size >= full:
            if size - before > MAX_VALUE:
                before += len(between) if written > 1 else 0
                _check_length(event, buffer, before, refused)
            out.write(buffer)
            buffer.clear()
            size = 0
    observations = [_text(_with_losses(observation, refused)) for observation in source.observations()]
    if written:
        buffer += b"\n"
    if form == "json":
        buffer += b'],\n"observations": [\n' + b",\n".join(observations) + b"\n]}\n"
    else:
        buffer += b'{"observations": [' + b",".join(observations) + b"]}\n"
    out.write(buffer)
    return written


def _check_length(event: Event, buffer: bytearray, before: int, refused: dict[tuple[Channel, str], Loss]) -> None:
    """Replace an event, encoded from ``before`` on, that is too long to be read again: by ``unparsed`` and a loss."""
    if len(buffer) - before <= MAX_VALUE:
        return
    channel = channel_of(event)
    reason = f"{event.kind} longer than {MAX_VALUE} bytes"
    buffer[before:] = _text(Unparsed(event.where, event.t_ns, seen_in=channel, reason=reason, touches=[event.kind]))
    loss = refused.setdefault((channel, event.kind), Loss("unparsed", reason, 0, event.where, [event.kind]))
    loss.count += 1


def _text(value: object) -> bytes:
    """Encode a value; what is no Unicode, such as a file name in another encoding, is written out as an escape."""
    try:
        return encode(value)
    except UnicodeEncodeError:
        return encode(_written_out(msgspec.to_builtins(value)))


def _written_out(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_written_out(part) for part in value]
    if isinstance(value, dict):
        return {key: _written_out(part) for key, part in value.items()}
    return value


def _with_losses(observation: Observation, losses: dict[tuple[Channel, str], Loss]) -> Observation:
    own = [loss for (channel, _), loss in losses.items() if channel == observation.channel]
    return replace(observation, losses=observation.losses + own) if own else observation


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    direct = path.exists() and not path.is_file()  # a pipe or a device
    beside = path if direct else path.with_name(f".{path.name}.partial")
    try:
        with beside.open("wb") as raw, _compressed(raw, path.suffix) as stream:
            yield stream
        if not direct:
            beside.replace(path)
    except OSError as error:
        raise ConfigError(
            f"cannot be written: {error.strerror}", file=str(path), hint="check the folder, its permissions and space"
        ) from error
    finally:
        if not direct:
            beside.unlink(missing_ok=True)


@contextlib.contextmanager
def _compressed(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as stream:
            yield cast("BinaryIO", stream)
    elif suffix == ".zst":
        import zstandard

        with zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False) as stream:
            yield cast("BinaryIO", stream)
    else:
        yield raw
