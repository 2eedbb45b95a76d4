"""The commonest calls of a large log, read in one match: opens and looks at a path without any escape in it.

What does not match is left to the general way; what matches gives the same events there.
"""

from __future__ import annotations

import re

from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Thread
from mcpdetect.model.event import FileOpen, FileProbe
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Access

__all__ = ["EXPRESS"]

# Only lines without a backslash come here: no string holds a quote, no path a bracket. A class of one character is
# several times faster than any other.
_WHERE = r'AT_FDCWD(?:<(/[^>]*+)>)?+, "([^"]*+)", '
_ERROR = r"-1 (E[A-Z0-9]++) \([^()]*+\)"
_TIME = r"(?: <\d++\.\d++>)?+\Z"
# AT_FDCWD</srv>, "a.js", O_RDONLY|O_CLOEXEC) = 3</srv/a.js> <0.000010>     ...) = -1 ENOENT (No such file or directory)
_OPEN = re.compile(
    rf"{_WHERE}(O_[A-Z_|]++)(?:, 0[0-7]*+)?+\) += (?:(\d{{1,9}})(?:<(/[^>]*+)>)?+|{_ERROR}){_TIME}", re.ASCII
)
# AT_FDCWD</srv>, "/a", {st_mode=S_IFREG|0644, st_size=7, ...}, 0) = 0     AT_FDCWD, "/a", 0x7ffd, 0) = -1 ENOENT (...)
_STAT = re.compile(
    rf"{_WHERE}(?:\{{[^\"{{}}<>]*+\}}|0x[0-9a-f]++), [0-9A-Z_|x]++\) += (?:(0)|{_ERROR}){_TIME}", re.ASCII
)
# AT_FDCWD</srv>, "/a", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7ffd) = -1 ENOENT (...)
_STATX = re.compile(
    rf"{_WHERE}[A-Z_|]++, [A-Z_|]++, (?:\{{(?>[^\"{{}}<>]++|\{{[^\"{{}}<>]*+\}})*+\}}|0x[0-9a-f]++)\) += "
    rf"(?:(0)|{_ERROR}){_TIME}",
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


def _resolve(recorder: Recorder, thread: Thread, cwd: str | None, written: str) -> tuple[str, bool]:
    directory = thread.directory
    if cwd is not None:
        directory.cwd = cwd
    return recorder.names.absolute(written, directory.cwd, directory, thread.table, thread.process.id or "")


def _open(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    match = _OPEN.match(rest) if "\\" not in rest else None
    if match is None:
        return False
    cwd, written, flags, result, path, error = match.groups()
    if path is not None and "<" in path:
        return False
    process = thread.process
    fd: int | None = None
    certain = True
    if path is None:
        path, certain = _resolve(recorder, thread, cwd, written)
    elif cwd is not None:
        thread.directory.cwd = cwd
    if result is not None:
        fd = int(result)
        if path.startswith("/memfd:"):
            return False
        opaque = "O_PATH" in flags
        thread.table.put(fd, Handle("file", path, certain, process, None, opaque), closing="O_CLOEXEC" in flags)
        if certain and "O_DIRECTORY" in flags:
            recorder.names.directory(path)
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
                aliases=recorder.names.aliases(path),
            )
        )
    return True


def _look(
    recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, match: re.Match[str] | None, name: str
) -> bool:
    if match is None:
        return False
    cwd, written, result, error = match.groups()
    path, certain = _resolve(recorder, thread, cwd, written)
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
                process=thread.process.id,
                tid=thread.number,
            )
        )
    return True


def _stat(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    return "\\" not in rest and _look(recorder, thread, where, t_ns, _STAT.match(rest), "newfstatat")


def _statx(recorder: Recorder, thread: Thread, where: Where, t_ns: int | None, rest: str) -> bool:
    return "\\" not in rest and _look(recorder, thread, where, t_ns, _STATX.match(rest), "statx")


EXPRESS = {"openat": _open, "newfstatat": _stat, "statx": _statx}
"""Call name to reader: it makes the event and returns True, or does nothing and returns False."""
