"""Lines of gVisor's debug log: what each is, and which of them the traced program may have written itself.

gVisor writes paths and thread names as they are, line ends included, so a program can put whole lines into the log.
It cannot help leaving a trace: whatever follows its text in the true line is then no whole line of its own. So no line
is believed that stands near one that does not read, as far as the longest names of one call reach.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mcpdetect.ingest.gvisor.translate import result_of

__all__ = ["REACH", "Record", "classify", "looks_like_gvisor", "weigh"]

REACH = 4 * 4096 + 1024
"""How far apart in bytes the two ends of a line can be: four paths (``mount``) of PATH_MAX (linux/limits.h)."""

_HEAD = re.compile(r"([A-Z])(\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{1,9}) ++\d{1,10} ([\w.-]{1,60}):(\d{1,6})\] ", re.ASCII)
# [   1:  44] python3 E exit(0x0)      [  12(   1):  12(   1)] sh X close(0x3) = 0 (0x0) (1.1µs)
_TASK = re.compile(r"\[ *+(\d{1,10})(?:\( *+\d++\))?+: *+(\d{1,10})(?:\( *+\d++\))?+\] ", re.ASCII)
_CALL = re.compile(r"([^\n]{0,15}?) ([EX]) ([a-z_][a-z0-9_]*+)\(", re.ASCII)
_OTHER_CALL = re.compile(r"[^\n]{1,15} [EX] [a-z_][a-z0-9_]*+\(", re.ASCII)
# 7f4bc7032000-7f4bc7034000 r--p 00008000 00:0e 1199      /usr/lib/x86_64-linux-gnu/libffi.so.8.1.2
_MAPPING = re.compile(
    r"[0-9a-f]{8,16}-[0-9a-f]{8,16} [r-][w-][x-][ps] [0-9a-f]{8,16} [0-9a-f]{2,4}:[0-9a-f]{2,4} \d++ *+"
    r"[^\n]*+(?<![)}])\Z",
    re.ASCII,
)


@dataclass(slots=True)
class Record:
    """One line.

    Attributes:
        line: its number.
        at, end: its first byte, and the one after its last.
        text: the line.
        sort: ``E`` and ``X``, a call's beginning and its end; ``other``, a whole line of another part of gVisor;
            ``bad``, a line of the tracer that does not read; ``loose``, a line without a head; ``dump``, one of the
            list of mappings that follows a crash.
        level, month, day, time: of its head.
        file: the part of gVisor that wrote it: ``strace.go``.
        group, task: process and thread, for a line of the tracer; of another part 0 where it names none.
        name: of the call.
        arguments, result: the texts within its brackets and after ``= ``; the message, for another part.
    """

    line: int
    at: int
    end: int
    text: str
    sort: str = "loose"
    level: str = ""
    month: int = 0
    day: int = 0
    time: str = ""
    file: str = ""
    group: int = 0
    task: int = 0
    name: str = ""
    arguments: str = ""
    result: str = ""


def looks_like_gvisor(head: str) -> bool:
    """Return whether any line of ``head`` can only be of gVisor's tracer, or of ``runsc`` told to trace."""
    for line in head.split("\n"):
        match = _HEAD.match(line)
        if match is not None and (
            match[5] == "strace.go" or line[match.end() :].startswith(("\t\tStrace: true", "Args: [runsc"))
        ):
            return True
    return False


def classify(line: int, at: int, text: str) -> Record:
    """Return what one line is."""
    record = Record(line, at, at + len(text) + 1, text)
    head = _HEAD.match(text)
    if head is None:
        if _MAPPING.match(text):
            record.sort = "dump"
        return record
    record.level, month, day, record.time, record.file, _ = head.groups()
    record.month, record.day = int(month), int(day)
    rest = text[head.end() :]
    task = _TASK.match(rest)
    if task is not None:
        record.group, record.task = int(task[1]), int(task[2])
        rest = rest[task.end() :]
    if record.file != "strace.go":
        record.sort = "other"
        record.arguments = rest
        return record
    record.sort = "bad"
    call = _CALL.match(rest)
    if task is None or call is None:
        return record
    other = _OTHER_CALL.match(rest)
    if other is not None and other.end() != call.end():
        return record  # a thread's name that looks like a call, or the other way round
    record.name = call[3]
    body = rest[call.end() :]
    end = body.rfind(") = ")
    whole = end >= 0 and result_of(body[end + 4 :]) is not None
    if call[2] == "X" and whole:
        record.sort, record.arguments, record.result = "X", body[:end], body[end + 4 :]
    elif call[2] == "E" and not whole and body.endswith(")"):
        record.sort, record.arguments = "E", body[:-1]
    return record


def weigh(records: Iterable[Record]) -> Iterator[tuple[Record, bool]]:
    """Yield each record and whether it can be believed: no line within ``REACH`` of it fails to read.

    Lines without a head before the first line of the tracer are gVisor's own configuration, and spoil nothing.
    """
    waiting: deque[Record] = deque()
    last_bad: int | None = None  # end of the last bad line that has left the window
    bad: deque[Record] = deque()  # those within it
    begun = False
    tainted: dict[int, str] = {}
    for record in records:
        begun = begun or record.file == "strace.go"
        if record.sort == "bad" and record.task and record.name and len(tainted) < 10_000:
            tainted[record.task] = record.name  # its other half repeats the same text
        spoils = record.sort == "bad" or (record.sort == "loose" and begun)
        if record.sort == "X" and tainted.get(record.task) == record.name:
            del tainted[record.task]
            record.sort, spoils = "bad", True
        if spoils:
            bad.append(record)
        waiting.append(record)
        while record.end - waiting[0].end > REACH:
            first = waiting.popleft()
            last_bad, believed = _judge(first, bad, last_bad)
            yield first, believed
    while waiting:
        first = waiting.popleft()
        last_bad, believed = _judge(first, bad, last_bad)
        yield first, believed


def _judge(first: Record, bad: deque[Record], last_bad: int | None) -> tuple[int | None, bool]:
    if bad and bad[0] is first:
        bad.popleft()
        return first.end, False
    near = (last_bad is not None and first.at - last_bad <= REACH) or bool(bad and bad[0].at - first.end <= REACH)
    return last_bad, not near
