"""The commonest calls of a large log, read in one match each: no escape in any path, nothing unusual about them.

What does not match is left to the general way; what matches gives the same events there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mcpdetect.ingest.strace.build import file_open, file_probe
from mcpdetect.ingest.strace.express_data import DATA_READERS
from mcpdetect.ingest.strace.express_fd import DESCRIPTOR_READERS
from mcpdetect.ingest.strace.express_shapes import AT, DEVICE, DURATION, ERROR, FIELDS, FILE
from mcpdetect.ingest.strace.header import Moment, ns_of
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Thread
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Access

__all__ = ["EXPRESS", "Express"]

Express = Callable[[Recorder, Thread, str, int, int | None, Moment, str], bool]
"""Makes the event of a call from what follows ``name(`` and returns True, or does nothing and returns False.

Given are the trace, the caller, file, line and the second half's line (the parts of a ``Where``, which not every call
needs), the time, and the text."""

# AT_FDCWD</srv>, "a.js", O_RDONLY|O_CLOEXEC) = 3</srv/a.js> <0.000010>     ...) = -1 ENOENT (No such file or directory)
_OPEN = re.compile(
    rf"{AT}(O_[A-Z_|]++)(?:, 0[0-7]*+)?+\) += (?:(\d{{1,9}})(?:{FILE})?+|{ERROR}){DURATION}", re.ASCII
).match
# AT_FDCWD</srv>, "/a", {st_mode=S_IFREG|0644, st_size=7, ...}, 0) = 0     AT_FDCWD, "/a", 0x7ffd, 0) = -1 ENOENT (...)
_STAT = re.compile(
    rf"{AT}(?:\{{{FIELDS}\}}|0x[0-9a-f]++), [0-9A-Z_|x]++\) += (?:(0)|{ERROR}){DURATION}", re.ASCII
).match
# 3</srv/a.js>, "", {st_mode=S_IFREG|0644, st_size=7, ...}, AT_EMPTY_PATH) = 0
_STAT_OPEN = re.compile(
    rf"\d{{1,9}}<(/[^<>\\]*+|pipe:\[\d++\]){DEVICE}>, \"\", \{{{FIELDS}\}}, [0-9A-Z_|x]++\) += 0{DURATION}",
    re.ASCII,
).match
_STATX_BUFFER = rf"(?:\{{(?>[^\"{{}}<>()\[\]]++|\([^\"{{}}<>()\[\]]*+\)|\{{{FIELDS}\}})*+\}}|0x[0-9a-f]++)"
# AT_FDCWD</srv>, "/a", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7ffd) = -1 ENOENT (...)
_STATX = re.compile(rf"{AT}[A-Z_|]++, [A-Z_|]++, {_STATX_BUFFER}\) += (?:(0)|{ERROR}){DURATION}", re.ASCII).match
# 3</srv/a.js>, "", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL, ...}) = 0
_STATX_OPEN = re.compile(
    rf"\d{{1,9}}{FILE}, \"\", [A-Z_|]++, [A-Z_|]++, {_STATX_BUFFER}\) += 0{DURATION}",
    re.ASCII,
).match

_Meaning = tuple[Access, bool, bool, bool]
_FLAGS: dict[str, _Meaning] = {}


def _meaning(flags: str) -> _Meaning:
    """Return access, and whether O_PATH, O_CLOEXEC and O_DIRECTORY are among the flags."""
    if "O_PATH" in flags:
        access: Access = "path"
    elif "O_RDWR" in flags:
        access = "readwrite"
    elif "O_WRONLY" in flags:
        access = "write"
    else:
        access = "read" if "O_RDONLY" in flags else "unknown"
    found = (access, "O_PATH" in flags, "O_CLOEXEC" in flags, "O_DIRECTORY" in flags)
    if len(_FLAGS) < 1000:
        _FLAGS[flags] = found
    return found


def _open(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    match = _OPEN(rest) if "\\" not in rest and rest.isascii() else None
    if match is None:
        return False
    cwd, base, written, flags, result, path, error = match.groups()
    if (path is not None and path.startswith("/memfd:")) or (base is not None and base.startswith("/memfd:")):
        return False
    process = thread.process
    directory = thread.directory
    names = recorder.names
    if cwd is not None:
        directory.cwd = cwd
    if path is None:
        path, certain = names.absolute(written, base or directory.cwd, directory, thread.table, process.id or "")
        if result is not None and path.startswith("/memfd:"):
            return False
    else:
        certain = True
    access, opaque, closing, listed = _FLAGS.get(flags) or _meaning(flags)
    fd: int | None = None
    if result is not None:
        fd = int(result)
        thread.table.open(fd, Handle("file", path, certain, process, None, opaque), closing)
        if listed and certain:
            names.directory(path)
    if recorder.opens:
        recorder.out.append(
            file_open(
                Where(file, at, end),
                ns_of(moment),
                "openat",
                fd,
                error,
                path,
                certain,
                access,
                flags,
                process.id,
                thread.number,
                written,
                names.aliases(path) if names.linked else None,
            )
        )
    return True


def _look(
    recorder: Recorder,
    thread: Thread,
    where: tuple[str, int, int | None],
    moment: Moment,
    match: re.Match[str] | None,
    name: str,
    operation: str = "stat",
) -> bool:
    if match is None:
        return False
    cwd, base, written, result, error = match.groups()
    directory = thread.directory
    process = thread.process.id
    if cwd is not None:
        directory.cwd = cwd
    if base is not None and base.startswith("/memfd:"):
        return False
    path, certain = recorder.names.absolute(written, base or directory.cwd, directory, thread.table, process or "")
    if recorder.looks_at(path):
        recorder.out.append(
            file_probe(
                Where(*where),
                ns_of(moment),
                name,
                None if result is None else 0,
                error,
                operation,
                path,
                certain,
                written,
                process,
                thread.number,
            )
        )
    return True


def _look_open(
    recorder: Recorder,
    thread: Thread,
    where: tuple[str, int, int | None],
    moment: Moment,
    match: re.Match[str],
    name: str,
) -> bool:
    path = match[1]
    if path.startswith("/memfd:"):
        return False
    if recorder.looks_at(path):
        recorder.out.append(
            file_probe(
                Where(*where), ns_of(moment), name, 0, None, "stat", path, True, "", thread.process.id, thread.number
            )
        )
    return True


def _stat(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    if "\\" in rest or not rest.isascii():
        return False
    match = _STAT_OPEN(rest)
    if match is not None:
        return _look_open(recorder, thread, (file, at, end), moment, match, "newfstatat")
    return _look(recorder, thread, (file, at, end), moment, _STAT(rest), "newfstatat")


def _statx(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    if "\\" in rest or not rest.isascii():
        return False
    match = _STATX_OPEN(rest)
    if match is not None:
        return _look_open(recorder, thread, (file, at, end), moment, match, "statx")
    return _look(recorder, thread, (file, at, end), moment, _STATX(rest), "statx")


EXPRESS: dict[str, Express] = {
    "openat": _open,
    "newfstatat": _stat,
    "statx": _statx,
    **DATA_READERS,
    **DESCRIPTOR_READERS,
}
"""Readers by call name."""
