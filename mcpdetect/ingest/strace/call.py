"""One system call as the log shows it, both halves joined."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcpdetect.ingest.strace.grammar import QUICK, QUICK_PLAIN, RESULT, split_arguments, split_call
from mcpdetect.ingest.strace.state import Thread
from mcpdetect.model.place import Where

__all__ = ["Call", "parse_call"]


@dataclass(slots=True)
class Call:
    """A call with its arguments as written.

    Attributes:
        name: its name.
        arguments: the arguments' text; those of a call that never returned may be missing at the end.
        result: the value returned, None when it failed or is unknown.
        error: errno name.
        decoration: what the returned descriptor leads to, as written (``</etc/passwd>``).
        note: strace's remark on the result, as written (``(Timeout)``).
        duration_ns: time spent, where shown.
        returned: the log shows the call's end.
    """

    name: str
    where: Where
    t_ns: int | None
    thread: Thread
    arguments: list[str] = field(default_factory=list)
    result: int | None = None
    error: str | None = None
    decoration: str | None = None
    note: str = ""
    duration_ns: int | None = None
    returned: bool = True

    @property
    def ok(self) -> bool:
        """Whether it is known to have succeeded."""
        return self.result is not None

    def argument(self, index: int) -> str:
        """Return an argument's text, ``""`` where it is missing."""
        return self.arguments[index] if index < len(self.arguments) else ""


def parse_call(call: Call, rest: str) -> bool:
    """Fill ``call`` from the text after ``name(``; return False when it is not a whole call with a result."""
    quick = (QUICK if "\\" in rest else QUICK_PLAIN).match(rest)
    if quick is not None:
        first, second, others, value, call.decoration, call.error, duration = quick.groups()
        call.arguments = [first, second, *others.split(", ")]
        if value is not None and call.error is None and len(value) < 21:
            call.result = int(value)
        if duration is not None:
            call.duration_ns = _duration(duration)
        return True
    parts = split_call(rest)
    if parts is None:
        return False
    text, tail = parts
    # close(3), dup2(3, 4): nothing to balance
    if '"' in text or "{" in text or "[" in text or "(" in text or "<" in text:
        arguments = split_arguments(text)
        if arguments is None:
            return False
        call.arguments = arguments
    else:
        call.arguments = text.split(", ") if text else []
    if tail.isdigit() and tail.isascii():
        call.result = int(tail) if len(tail) < 21 else None
        return True
    match = RESULT.match(tail)
    if match is None:
        return False
    value, call.decoration, error, note, duration = match.groups()
    if value is not None and len(value) < 21:
        call.result = int(value, 16) if value.startswith("0x") else int(value)
    if error is not None:
        call.error = error
        call.result = None
    elif value == "-1" and note.startswith(" (errno "):
        # = -1 (errno 530)
        call.error = note[2:-1].replace(" ", "-")
        call.result = None
    if note:
        call.note = note[1:]
    if duration is not None:
        call.duration_ns = _duration(duration)
    return True


def _duration(text: str) -> int:
    whole, _, part = text.partition(".")
    return int(whole) * 1_000_000_000 + int(part[:9].ljust(9, "0"))
