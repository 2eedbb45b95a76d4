"""Events of the commonest calls, built field by field.

A constructor with sixteen keywords costs more than twice as much as setting sixteen slots; a large log has hundreds
of thousands of these events. Every function sets every field of its type, in the order of its definition.
"""

from __future__ import annotations

from mcpdetect.model.event import FileChange, FileOpen, FileProbe, FileRead
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Access

__all__ = ["file_open", "file_probe", "file_read", "file_write"]

_new = object.__new__


def file_open(
    where: Where,
    t_ns: int | None,
    call: str,
    result: int | None,
    error: str | None,
    path: str,
    certain: bool,
    access: Access,
    flags: str,
    process: str | None,
    tid: int | None,
    written: str | None,
    aliases: list[str] | None,
) -> FileOpen:
    """Return ``FileOpen`` of a call whose result is the descriptor."""
    event = _new(FileOpen)
    event.kind = "file.open"
    event.where = where
    event.t_ns = t_ns
    event.process = process
    event.tid = tid
    event.call = call
    event.result = result
    event.error = error
    event.frames = None
    event.path = path
    event.certain = certain
    event.access = access
    event.flags = flags
    event.fd = result
    event.written = written
    event.aliases = aliases
    return event


def file_probe(
    where: Where,
    t_ns: int | None,
    call: str,
    result: int | None,
    error: str | None,
    operation: str,
    path: str | None,
    certain: bool,
    written: str | None,
    process: str | None,
    tid: int | None,
) -> FileProbe:
    """Return ``FileProbe``; ``operation`` is one of its literals."""
    event = _new(FileProbe)
    event.kind = "file.probe"
    event.where = where
    event.t_ns = t_ns
    event.process = process
    event.tid = tid
    event.call = call
    event.result = result
    event.error = error
    event.frames = None
    event.operation = operation  # type: ignore[assignment]
    event.path = path
    event.certain = certain
    event.written = written
    return event


def file_read(
    where: Where,
    t_ns: int | None,
    call: str,
    result: int,
    path: str,
    fd: int,
    size: int,
    data: bytes,
    cut: bool,
    certain: bool,
    mapped: bool,
    inherited: bool,
    process: str | None,
    tid: int | None,
    aliases: list[str] | None,
) -> FileRead:
    """Return ``FileRead`` of a read or mapping that succeeded."""
    event = _new(FileRead)
    event.kind = "file.read"
    event.where = where
    event.t_ns = t_ns
    event.process = process
    event.tid = tid
    event.call = call
    event.result = result
    event.error = None
    event.frames = None
    event.path = path
    event.fd = fd
    event.size = size
    event.data = data
    event.cut = cut
    event.certain = certain
    event.mapped = mapped
    event.inherited = inherited
    event.to_fd = None
    event.to_socket = None
    event.aliases = aliases
    return event


def file_write(
    where: Where,
    t_ns: int | None,
    call: str,
    size: int,
    path: str,
    fd: int,
    data: bytes,
    cut: bool,
    certain: bool,
    process: str | None,
    tid: int | None,
) -> FileChange:
    """Return ``FileChange`` of a write that succeeded."""
    event = _new(FileChange)
    event.kind = "file.change"
    event.where = where
    event.t_ns = t_ns
    event.process = process
    event.tid = tid
    event.call = call
    event.result = size
    event.error = None
    event.frames = None
    event.operation = "write"
    event.path = path
    event.target = None
    event.fd = fd
    event.size = size
    event.data = data
    event.cut = cut
    event.mode = None
    event.certain = certain
    return event
