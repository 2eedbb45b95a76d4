"""Reads, writes, mappings, listings and ends of files and pipes that the trace saw opened, read in one match each."""

from __future__ import annotations

import re
from collections.abc import Callable

from mcpdetect.ingest.adapter import EXCERPT
from mcpdetect.ingest.strace.express_shapes import DURATION, FILE
from mcpdetect.ingest.strace.grammar import STRING
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Thread
from mcpdetect.ingest.strace.values import excerpt_in
from mcpdetect.model.event import FileChange, FileProbe, FileRead
from mcpdetect.model.place import Where

__all__ = ["DATA_READERS"]

_DESCRIPTOR = r"(\d{1,9})<(/[^<>\\]*+|pipe:\[\d++\])>"
_BEGIN = re.compile(_DESCRIPTOR + ', "', re.ASCII)
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
# 3</srv>, 0x55d5 /* 5 entries */, 32768) = 144
_LIST = re.compile(rf"(\d{{1,9}}){FILE}, 0x[0-9a-f]++ /\* \d++ entries \*/, \d++\) += (\d{{1,18}}){DURATION}", re.ASCII)
# 3</etc/passwd>) = 0 <0.000008>
_CLOSE = re.compile(rf"(\d{{1,9}}){FILE}\) += 0{DURATION}", re.ASCII)


def _known(thread: Thread, fd: int, path: str) -> Handle | None:
    """Return the handle of a descriptor that the table knows under the very path of its decoration."""
    handle = thread.table.handles.get(fd)
    if handle is None or handle.path != path or handle.socket is not None:
        return None
    # text beyond ASCII is in the table as what its bytes mean
    return handle if handle.sort == ("file" if path[0] == "/" else "pipe") and path.isascii() else None


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
    # the path's bracket and ", " stand between the path and the string
    return int(first[1]), first[2], rest[first.end(2) + 3 : last.start(1)], int(last[2])


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


def _read_by(call: str, end: re.Pattern[str]) -> Callable[[Recorder, Thread, Where, int | None, str], bool]:
    def read(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
        parts = _transfer(end, rest)
        if parts is None:
            return False
        fd, path, text, size = parts
        handle = _known(thread, fd, path)
        if handle is None or (handle.owner is None and recorder.stdio is not None):
            return False
        if "file.read" not in recorder.wanted:
            return True
        found = excerpt_in(text, EXCERPT)
        if found is None:
            return False
        data = found[0] if len(found[0]) <= size else found[0][:size]
        cut = len(data) < size
        if cut:
            recorder.account.cut("file.read", where)
        process = thread.process
        recorder.out.append(
            FileRead(
                where,
                t_ns,
                call,
                size,
                None,
                path,
                fd,
                size,
                data,
                cut,
                certain=handle.certain,
                inherited=handle.owner is not process,
                process=process.id,
                tid=thread.number,
                aliases=recorder.names.aliases(path),
            )
        )
        return True

    return read


def _write_by(call: str, end: re.Pattern[str]) -> Callable[[Recorder, Thread, Where, int | None, str], bool]:
    def write(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
        parts = _transfer(end, rest)
        if parts is None:
            return False
        fd, path, text, size = parts
        handle = _known(thread, fd, path)
        if handle is None or (handle.owner is None and recorder.stdio is not None):
            return False
        if "file.change" not in recorder.wanted:
            return True
        found = excerpt_in(text, EXCERPT)
        if found is None:
            return False
        data = found[0] if len(found[0]) <= size else found[0][:size]
        cut = len(data) < size
        if cut:
            recorder.account.cut("file.change", where)
        recorder.out.append(
            FileChange(
                where,
                t_ns,
                call,
                size,
                None,
                "write",
                path,
                fd=fd,
                size=size,
                data=data,
                cut=cut,
                certain=handle.certain,
                process=thread.process.id,
                tid=thread.number,
            )
        )
        return True

    return write


def _mmap(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    match = _MMAP.match(rest)
    if match is None:
        return False
    size, flags, digits, path, result = match.groups()
    fd = int(digits)
    handle = _known(thread, fd, path)
    if handle is None or "MAP_ANONYMOUS" in flags:
        return False
    if "file.read" not in recorder.wanted:
        return True
    process = thread.process
    recorder.out.append(
        FileRead(
            where,
            t_ns,
            "mmap",
            int(result, 16),
            None,
            path,
            fd,
            int(size),
            b"",
            True,
            mapped=True,
            certain=handle.certain,
            inherited=handle.owner is not process,
            process=process.id,
            tid=thread.number,
            aliases=recorder.names.aliases(path),
        )
    )
    return True


def _list(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    match = _LIST.match(rest)
    if match is None:
        return False
    digits, path, result = match.groups()
    if "file.probe" not in recorder.wanted:
        return True
    handle = _known(thread, int(digits), path)
    if handle is None:
        return False
    recorder.out.append(
        FileProbe(
            where,
            t_ns,
            "getdents64",
            int(result),
            None,
            "list",
            path,
            certain=handle.certain,
            process=thread.process.id,
            tid=thread.number,
        )
    )
    return True


def _close(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    match = _CLOSE.match(rest)
    if match is None:
        return False
    fd = int(match[1])
    handle = _known(thread, fd, match[2])
    if handle is None:
        return False
    thread.table.drop(fd)
    handle.closed = True
    return True


DATA_READERS = {
    "read": _read_by("read", _END),
    "pread64": _read_by("pread64", _END_AT),
    "write": _write_by("write", _END),
    "pwrite64": _write_by("pwrite64", _END_AT),
    "mmap": _mmap,
    "getdents64": _list,
    "close": _close,
}
"""Readers by call name."""
