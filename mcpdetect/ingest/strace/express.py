"""The commonest calls of a large log, read in one match each: no escape in any path, nothing unusual about them.

What does not match is left to the general way; what matches gives the same events there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mcpdetect.ingest.strace.express_data import DATA_READERS
from mcpdetect.ingest.strace.express_shapes import AT_CWD, DURATION, ERROR, FIELDS, FILE
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Thread
from mcpdetect.model.event import FileOpen, FileProbe
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Access

__all__ = ["EXPRESS", "Express"]

Express = Callable[[Recorder, Thread, Where, int | None, str], bool]
"""Makes the event of a call from what follows ``name(`` and returns True, or does nothing and returns False."""

# AT_FDCWD</srv>, "a.js", O_RDONLY|O_CLOEXEC) = 3</srv/a.js> <0.000010>     ...) = -1 ENOENT (No such file or directory)
_OPEN = re.compile(
    rf"{AT_CWD}(O_[A-Z_|]++)(?:, 0[0-7]*+)?+\) += (?:(\d{{1,9}})(?:{FILE})?+|{ERROR}){DURATION}", re.ASCII
)
# AT_FDCWD</srv>, "/a", {st_mode=S_IFREG|0644, st_size=7, ...}, 0) = 0     AT_FDCWD, "/a", 0x7ffd, 0) = -1 ENOENT (...)
_STAT = re.compile(rf"{AT_CWD}(?:\{{{FIELDS}\}}|0x[0-9a-f]++), [0-9A-Z_|x]++\) += (?:(0)|{ERROR}){DURATION}", re.ASCII)
# 3</srv/a.js>, "", {st_mode=S_IFREG|0644, st_size=7, ...}, AT_EMPTY_PATH) = 0
_STAT_OPEN = re.compile(
    rf"\d{{1,9}}{FILE}, \"\", \{{{FIELDS}\}}, [0-9A-Z_|x]++\) += 0{DURATION}",
    re.ASCII,
)
_STATX_BUFFER = rf"(?:\{{(?>[^\"{{}}<>()\[\]]++|\([^\"{{}}<>()\[\]]*+\)|\{{{FIELDS}\}})*+\}}|0x[0-9a-f]++)"
# AT_FDCWD</srv>, "/a", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7ffd) = -1 ENOENT (...)
_STATX = re.compile(rf"{AT_CWD}[A-Z_|]++, [A-Z_|]++, {_STATX_BUFFER}\) += (?:(0)|{ERROR}){DURATION}", re.ASCII)
# 3</srv/a.js>, "", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL, ...}) = 0
_STATX_OPEN = re.compile(
    rf"\d{{1,9}}{FILE}, \"\", [A-Z_|]++, [A-Z_|]++, {_STATX_BUFFER}\) += 0{DURATION}",
    re.ASCII,
)
_ACCESS: dict[str, Access] = {}


def _access(flags: str) -> Access:
    if "O_PATH" in flags:
        found: Access = "path"
    elif "O_RDWR" in flags:
        found = "readwrite"
    elif "O_WRONLY" in flags:
        found = "write"
    else:
        found = "read" if "O_RDONLY" in flags else "unknown"
    if len(_ACCESS) < 1000:
        _ACCESS[flags] = found
    return found


def _open(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    match = _OPEN.match(rest) if "\\" not in rest and rest.isascii() else None
    if match is None:
        return False
    cwd, written, flags, result, path, error = match.groups()
    process = thread.process
    directory = thread.directory
    names = recorder.names
    if path is not None and path.startswith("/memfd:"):
        return False
    if cwd is not None:
        directory.cwd = cwd
    certain = True
    if path is None:
        path, certain = names.absolute(written, directory.cwd, directory, thread.table, process.id or "")
    fd: int | None = None
    if result is not None:
        fd = int(result)
        if path.startswith("/memfd:"):
            return False
        thread.table.put(
            fd, Handle("file", path, certain, process, None, "O_PATH" in flags), closing="O_CLOEXEC" in flags
        )
        if certain and "O_DIRECTORY" in flags:
            names.directory(path)
    if "file.open" in recorder.wanted:
        recorder.out.append(
            FileOpen(
                where,
                t_ns,
                "openat",
                fd,
                error,
                path,
                certain,
                _ACCESS.get(flags) or _access(flags),
                flags,
                fd,
                process=process.id,
                tid=thread.number,
                written=written,
                aliases=names.aliases(path),
            )
        )
    return True


def _look(
    recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, match: re.Match[str] | None, name: str
) -> bool:
    if match is None:
        return False
    cwd, written, result, error = match.groups()
    directory = thread.directory
    process = thread.process.id
    if cwd is not None:
        directory.cwd = cwd
    path, certain = recorder.names.absolute(written, directory.cwd, directory, thread.table, process or "")
    if "file.probe" in recorder.wanted:
        recorder.out.append(
            FileProbe(
                where,
                t_ns,
                name,
                None if result is None else 0,
                error,
                "stat",
                path,
                certain=certain,
                written=written,
                process=process,
                tid=thread.number,
            )
        )
    return True


def _look_open(
    recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, match: re.Match[str] | None, name: str
) -> bool:
    if match is None:
        return False
    path = match[1]
    if path.startswith("/memfd:"):
        return False
    if "file.probe" in recorder.wanted:
        recorder.out.append(
            FileProbe(
                where,
                t_ns,
                name,
                0,
                None,
                "stat",
                path,
                certain=True,
                written="",
                process=thread.process.id,
                tid=thread.number,
            )
        )
    return True


def _stat(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    if "\\" in rest or not rest.isascii():
        return False
    if rest.startswith("AT_FDCWD"):
        return _look(recorder, thread, where, t_ns, _STAT.match(rest), "newfstatat")
    return _look_open(recorder, thread, where, t_ns, _STAT_OPEN.match(rest), "newfstatat")


def _statx(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    if "\\" in rest or not rest.isascii():
        return False
    if rest.startswith("AT_FDCWD"):
        return _look(recorder, thread, where, t_ns, _STATX.match(rest), "statx")
    return _look_open(recorder, thread, where, t_ns, _STATX_OPEN.match(rest), "statx")


EXPRESS: dict[str, Express] = {"openat": _open, "newfstatat": _stat, "statx": _statx, **DATA_READERS}
"""Readers by call name."""
