"""Reads, writes, mappings and listings of files and pipes that the trace saw opened, read in one match each."""

from __future__ import annotations

import re
from collections.abc import Callable

from mcpdetect.ingest.adapter import EXCERPT
from mcpdetect.ingest.strace.build import file_probe, file_read, file_write
from mcpdetect.ingest.strace.express_shapes import DEVICE, DURATION, FILE
from mcpdetect.ingest.strace.grammar import STRING
from mcpdetect.ingest.strace.header import Moment, ns_of
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Thread
from mcpdetect.ingest.strace.values import excerpt_in
from mcpdetect.model.place import Where

__all__ = ["DATA_READERS", "known"]

_DESCRIPTOR = rf"(\d{{1,9}})<(/[^<>\\]*+|pipe:\[\d++\]|anon_inode:\[\w++\]){DEVICE}>"
_BEGIN = re.compile(_DESCRIPTOR + ', (")', re.ASCII)
_REST = re.compile(rf"{_DESCRIPTOR}, ({STRING})", re.ASCII)
# "..., 4096) = 888 <0.000012>
_END = re.compile(rf'"(?:\.\.\.)?+(, \d{{1,18}}\) += (\d{{1,18}}){DURATION})', re.ASCII)
# "..., 784, 64) = 784
_END_AT = re.compile(rf'"(?:\.\.\.)?+(, \d{{1,18}}, \d{{1,18}}\) += (\d{{1,18}}){DURATION})', re.ASCII)
# NULL, 2021, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3</usr/lib/libz.so.1>, 0x3000) = 0x7f1c6f0f5000
_MMAP = re.compile(
    rf"(?:NULL|0x[0-9a-f]++), (\d{{1,18}}), [A-Z_|]++, ([A-Z_0-9|]++), (\d{{1,9}}){FILE}, (?:0x)?+[0-9a-f]++\) += "
    rf"0x([0-9a-f]{{1,16}}){DURATION}",
    re.ASCII,
)
# NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f88cb39a000 <0.000012>
_MMAP_NOTHING = re.compile(
    rf"(?:NULL|0x[0-9a-f]++), \d{{1,18}}, [A-Z_|]++, MAP_PRIVATE(?:\|MAP_FIXED)?+\|MAP_ANONYMOUS(?:\|[A-Z_|]++)?+, "
    rf"-1, 0\) += 0x[0-9a-f]{{1,16}}{DURATION}",
    re.ASCII,
)
# 3</srv>, 0x55d5 /* 5 entries */, 32768) = 144
_LIST = re.compile(rf"(\d{{1,9}}){FILE}, 0x[0-9a-f]++ /\* \d++ entries \*/, \d++\) += (\d{{1,18}}){DURATION}", re.ASCII)
_Reader = Callable[[Recorder, Thread, str, int, int | None, Moment, str], bool]
_SORTS = {"/": "file", "p": "pipe", "a": "anon"}


def known(thread: Thread, fd: int, path: str) -> Handle | None:
    """Return the handle of a descriptor that the table knows under the very path of its decoration."""
    handle = thread.table.handles.get(fd)
    if handle is None or handle.path != path or handle.socket is not None:
        return None
    # text beyond ASCII is in the table as what its bytes mean
    return handle if handle.sort == _SORTS[path[0]] and path.isascii() else None


def _transfer(end: re.Pattern[str], rest: str) -> tuple[int, str, str, int] | None:
    r"""Return descriptor, path, string and result of a read or write; None where it is not as plain as that.

    3</etc/passwd>, "root:x:0:0:root:/root:/bin/bash\n"..., 4096) = 888 <0.000012>
    """
    at = rest.rfind('"')
    last = end.match(rest, at) if at >= 0 else None
    if last is None:
        return None
    first = _BEGIN.match(rest)
    if first is None or first.end() > at:
        return None
    # A string without a quote in it, and without a backslash before its end, needs no look at each character.
    if rest.find('"', first.end()) != at or rest[at - 1] == "\\" or "\n" in rest:
        first = _REST.match(rest)
        if first is None or first.end() != last.start(1):
            return None
    return int(first[1]), first[2], rest[first.start(3) : last.start(1)], int(last[2])


def _overheard(recorder: Recorder, thread: Thread, handle: Handle) -> bool:
    """Whether a read or write may carry MCP over standard input or output, which the general way listens to."""
    stdio = recorder.stdio
    if stdio is None:
        return False
    path = handle.path or ""
    if handle.owner is None or handle.sort != "file" or stdio.knows(path):
        return True
    handles = thread.table.handles
    return any(handles[fd].path == path for fd in (0, 1) if fd in handles)


def _read_by(call: str, last: re.Pattern[str]) -> _Reader:
    def read(
        recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str
    ) -> bool:
        parts = _transfer(last, rest)
        if parts is None:
            return False
        fd, path, text, size = parts
        handle = known(thread, fd, path)
        if handle is None or (handle.owner is None and recorder.stdio is not None):
            return False
        if path[0] == "a":
            return True
        if not recorder.reads:
            return True
        found = excerpt_in(text, EXCERPT)
        if found is None:
            return False
        data = found[0] if len(found[0]) <= size else found[0][:size]
        cut = len(data) < size
        if cut:
            recorder.account.cut("file.read", Where(file, at, end))
        process = thread.process
        recorder.out.append(
            file_read(
                Where(file, at, end),
                ns_of(moment),
                call,
                size,
                path,
                fd,
                size,
                data,
                cut,
                handle.certain,
                False,
                handle.owner is not process,
                process.id,
                thread.number,
                recorder.names.aliases(path),
            )
        )
        return True

    return read


def _write_by(call: str, last: re.Pattern[str]) -> _Reader:
    def write(
        recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str
    ) -> bool:
        parts = _transfer(last, rest)
        if parts is None:
            return False
        fd, path, text, size = parts
        handle = known(thread, fd, path)
        if handle is None or (handle.owner is None and recorder.stdio is not None):
            return False
        if path[0] == "a":
            return True
        if not recorder.changes:
            return True
        found = excerpt_in(text, EXCERPT)
        if found is None:
            return False
        data = found[0] if len(found[0]) <= size else found[0][:size]
        cut = len(data) < size
        if cut:
            recorder.account.cut("file.change", Where(file, at, end))
        recorder.out.append(
            file_write(
                Where(file, at, end),
                ns_of(moment),
                call,
                size,
                path,
                fd,
                data,
                cut,
                handle.certain,
                thread.process.id,
                thread.number,
            )
        )
        return True

    return write


def _mmap(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    match = _MMAP.match(rest)
    if match is None:
        return _MMAP_NOTHING.match(rest) is not None
    size, flags, digits, path, result = match.groups()
    fd = int(digits)
    handle = known(thread, fd, path)
    if handle is None or "MAP_ANONYMOUS" in flags:
        return False
    if not recorder.reads:
        return True
    process = thread.process
    recorder.out.append(
        file_read(
            Where(file, at, end),
            ns_of(moment),
            "mmap",
            int(result, 16),
            path,
            fd,
            int(size),
            b"",
            True,
            handle.certain,
            True,
            handle.owner is not process,
            process.id,
            thread.number,
            recorder.names.aliases(path),
        )
    )
    return True


def _list(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    match = _LIST.match(rest)
    if match is None:
        return False
    digits, path, result = match.groups()
    if not recorder.probes:
        return True
    handle = known(thread, int(digits), path)
    if handle is None:
        return False
    if not recorder.looks_at(path):
        return True
    recorder.out.append(
        file_probe(
            Where(file, at, end),
            ns_of(moment),
            "getdents64",
            int(result),
            None,
            "list",
            path,
            handle.certain,
            None,
            thread.process.id,
            thread.number,
        )
    )
    return True


DATA_READERS: dict[str, _Reader] = {
    "read": _read_by("read", _END),
    "pread64": _read_by("pread64", _END_AT),
    "write": _write_by("write", _END),
    "pwrite64": _write_by("pwrite64", _END_AT),
    "mmap": _mmap,
    "getdents64": _list,
}
"""Readers by call name."""
