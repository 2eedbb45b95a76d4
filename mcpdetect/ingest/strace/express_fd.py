"""Calls about descriptors and ends of processes that make no event and only keep the state, read in one match each."""

from __future__ import annotations

import re
from collections.abc import Callable

from mcpdetect.ingest.strace.express_data import known
from mcpdetect.ingest.strace.express_shapes import DEVICE, DURATION
from mcpdetect.ingest.strace.header import Moment
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Handle, Thread

__all__ = ["DESCRIPTOR_READERS"]

_LEADS = rf"<(/[^<>\\]*+|pipe:\[\d++\]){DEVICE}>"
_SHOWN = rf"(?:<(?:/[^<>\\]*+|pipe:\[\d++\]){DEVICE}>)?+"
# 3</etc/passwd>) = 0 <0.000008>
_CLOSE = re.compile(rf"(\d{{1,9}}){_LEADS}\) += 0{DURATION}", re.ASCII).match
# 3</srv/a>, F_GETFD) = 0x1 (flags FD_CLOEXEC)     1<pipe:[7]>, F_SETFD, FD_CLOEXEC) = 0     3, F_SETFL, O_RDONLY) = 0
_FCNTL = re.compile(
    rf"(\d{{1,9}}){_SHOWN}, F_(?:GETF[DL]|SETFL, [A-Z_|]++|SETFD, (FD_CLOEXEC|0))\)"
    rf" += (?:0x[0-9a-f]{{1,8}} \(flags [A-Z_|]++\)|\d{{1,9}}){DURATION}",
    re.ASCII,
).match
# 6</srv>, F_DUPFD_CLOEXEC, 3) = 7</srv> <0.000010>
_DUPFD = re.compile(
    rf"(\d{{1,9}}){_LEADS}, F_DUPFD(_CLOEXEC)?+, \d++\) += (\d{{1,9}}){_LEADS}{DURATION}", re.ASCII
).match
# 3<pipe:[77]>, 1</dev/null<char 1:3>>) = 1<pipe:[77]> <0.000007>
_DUP2 = re.compile(rf"(\d{{1,9}}){_LEADS}, \d{{1,9}}{_SHOWN}\) += (\d{{1,9}}){_LEADS}{DURATION}", re.ASCII).match
# [3<pipe:[77]>, 4<pipe:[77]>], O_CLOEXEC) = 0
_PIPE2 = re.compile(
    rf"\[(\d{{1,9}})<(pipe:\[\d++\])>, (\d{{1,9}})<(pipe:\[\d++\])>\], ([A-Z_|0]++)\) += 0{DURATION}", re.ASCII
).match
# 0) = ?
_EXIT = re.compile(rf"\d{{1,9}}\) += \?{DURATION}", re.ASCII).match


def _close(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    match = _CLOSE(rest)
    if match is None:
        return False
    digits, path = match.groups()
    fd = int(digits)
    table = thread.table
    handle = table.handles.get(fd)
    if handle is not None:
        if known(thread, fd, path) is not None:
            handle.closed = True
        elif handle.socket is not None or path.startswith("/memfd:") or not path.isascii():
            return False
        del table.handles[fd]
    table.closing.discard(fd)
    return True


def _fcntl(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    match = _FCNTL(rest)
    if match is None:
        return _dupfd(thread, rest)
    digits, closing = match.groups()
    if closing is not None:
        fd = int(digits)
        table = thread.table
        if fd in table.handles:
            if closing == "0":
                table.closing.discard(fd)
            else:
                table.closing.add(fd)
    return True


def _dupfd(thread: Thread, rest: str) -> bool:
    match = _DUPFD(rest)
    if match is None:
        return False
    digits, path, closing, result, same = match.groups()
    handle = known(thread, int(digits), path)
    if handle is None or path != same:
        return False
    thread.table.open(int(result), handle, closing is not None)
    return True


def _dup2(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    match = _DUP2(rest)
    if match is None:
        return False
    digits, path, result, same = match.groups()
    old, new = int(digits), int(result)
    handle = known(thread, old, path)
    if handle is None or path != same:
        return False
    if old != new:
        thread.table.open(new, handle, False)
    return True


def _pipe2(recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str) -> bool:
    match = _PIPE2(rest)
    if match is None:
        return False
    first, path, second, other, flags = match.groups()
    closing = "O_CLOEXEC" in flags
    thread.table.open(int(first), Handle("pipe", path, True, thread.process), closing)
    thread.table.open(int(second), Handle("pipe", other, True, thread.process), closing)
    return True


def _exit_group(
    recorder: Recorder, thread: Thread, file: str, at: int, end: int | None, moment: Moment, rest: str
) -> bool:
    if _EXIT(rest) is None:
        return False
    thread.process.leaving = True
    return True


DESCRIPTOR_READERS: dict[str, Callable[[Recorder, Thread, str, int, int | None, Moment, str], bool]] = {
    "close": _close,
    "fcntl": _fcntl,
    "dup2": _dup2,
    "pipe2": _pipe2,
    "exit_group": _exit_group,
}
"""Readers by call name."""
