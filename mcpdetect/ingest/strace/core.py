"""From halves and whole lines to calls, and from calls to events."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcpdetect.ingest.strace.account import Account
from mcpdetect.ingest.strace.call import Call, parse_call
from mcpdetect.ingest.strace.dispatch import ALSO, HANDLERS
from mcpdetect.ingest.strace.express import EXPRESS
from mcpdetect.ingest.strace.grammar import split_arguments
from mcpdetect.ingest.strace.header import Moment, ns_of
from mcpdetect.ingest.strace.on_kernel import end_rings, on_unknown
from mcpdetect.ingest.strace.on_process import begin_clone, on_clone
from mcpdetect.ingest.strace.payload import flush_hellos
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Birth, Thread
from mcpdetect.model.event import Event, Frame, ProcessExit, ProcessStart, Unparsed
from mcpdetect.model.kinds import CALL_KINDS
from mcpdetect.model.place import Where

__all__ = ["CLONES", "MOST_PENDING", "RESUMED", "UNFINISHED", "Core", "Half"]

CLONES = frozenset({"clone", "clone3", "fork", "vfork"})
MOST_PENDING = 20_000
"""Most calls that may be under way at once."""
_MOST_EXPECTED = 20_000
_MOST_RAW = 200
_MOST_CUTS = 32
# 1905 select(4, [3], NULL, NULL, NULL <unfinished #17 ...>
UNFINISHED = re.compile(r" ?<unfinished(?: #\d++)? \.\.\.>\Z", re.ASCII)
# 1905 <... select resumed #17>) = 1 (in [3])
RESUMED = re.compile(r"<\.\.\. (\w++) resumed(?: #\d++)?+>", re.ASCII)
_SUPERSEDED = re.compile(r"\+\+\+ superseded by execve in pid (\d{1,7})(?:<[^<>]*+>)? \+\+\+", re.ASCII)
_EXITED = re.compile(r"\+\+\+ exited with (\d{1,3}) \+\+\+", re.ASCII)
_KILLED = re.compile(r"\+\+\+ killed by (\w++)(?: \(core dumped\))? \+\+\+", re.ASCII)
# " > /usr/lib/libc.so.6(__connect+0x17) [0x10c5e7]"
_FRAME = re.compile(r" > (.*)\(([^()]*+(?:\([^()]*+\)[^()]*+)*+)\) \[0x([0-9a-f]{1,16})\]\Z", re.ASCII | re.DOTALL)
_UNKNOWN_CALL = re.compile(r"syscall_0x[0-9a-f]++\Z", re.ASCII)
# Calls whose arguments appear only when they return: an unfinished one hides them.
_ARGUMENTS_AT_END = frozenset({"sendmmsg"})


@dataclass(slots=True)
class Half:
    """The first half of a call; ``moment`` is its time."""

    name: str
    text: str
    line: int
    moment: Moment
    birth: Birth | None = None
    file: str = ""

    @property
    def t_ns(self) -> int | None:
        """The time in nanoseconds."""
        return ns_of(self.moment)


class Core:
    """Turns lines into events; readers feed it.

    Attributes:
        file: name of the file that the next line is from.
        recorder: state, events and losses.
        exits: exit lines seen.
        clock_out: counters of what was met.
    """

    def __init__(self, file: str, wanted: frozenset[str], account: Account) -> None:
        self.file = file
        self.wanted = wanted
        self.account = account
        self.recorder = Recorder(wanted, account)
        self.world = self.recorder.world
        self.pending: dict[str, Half] = {}
        self.names: set[str] = set()
        self.orphans = 0
        self.lost_halves = 0
        self.unparsed = 0
        self.exits = 0
        self.last: list[Event] = []
        self.last_line = 0

    def thread(self, tid: str, line: int, t_ns: int | None, name: str) -> Thread:
        """Return the thread that a line belongs to; one that nobody gave birth to is announced."""
        thread = self.world.threads.get(tid)
        if thread is None:
            thread = self.world.appear(tid, line)
            if thread.birth is None and name not in {"execve", "execveat"} and "process.start" in self.wanted:
                where = Where(self.file, line)
                self.recorder.emit(ProcessStart(where, t_ns, "", None, how="seen", process=thread.process.id))
        elif not thread.first:
            thread.first = line
        return thread

    def unfinished(self, tid: str, line: int, t_ns: int | None, name: str, text: str) -> None:
        """Take the first half of a call, without its marker."""
        thread = self.thread(tid, line, t_ns, name)
        old = self.pending.get(tid)
        if old is not None:
            self._abandoned(thread, old)
        birth = begin_clone(name, text, thread, line, self.recorder) if name in CLONES else None
        if len(self.pending) >= MOST_PENDING and tid not in self.pending:
            first = next(iter(self.pending))
            lost = self.pending.pop(first)
            touches = CALL_KINDS.get(lost.name, ())
            self.account.add(
                "overflow",
                f"more than {MOST_PENDING} calls were under way at once; the oldest was given up",
                Where(lost.file, lost.line),
                touches,
                note=not touches,
            )
        self.pending[tid] = Half(name, text, line, t_ns, birth, self.file)

    def place(self, line: int) -> Where:
        """Return the place of a line of the present file."""
        return Where(self.file, line)

    def whole(self, tid: str, line: int, t_ns: int | None, name: str, rest: str, end: int | None = None) -> None:
        """Take a call that one line shows (or ``end``, where another line broke into it)."""
        thread = self.world.threads.get(tid)
        if thread is None or not thread.first:
            thread = self.thread(tid, line, t_ns, name)
        if tid in self.pending:
            self._abandoned(thread, self.pending.pop(tid))
        self.call(thread, Where(self.file, line, end if end != line else None), t_ns, name, rest)

    def cut_tail(self, tid: str, line: int, t_ns: int | None, name: str, text: str) -> None:
        """Take the last line of a log that ends in the middle of a call."""
        self.partial(self.thread(tid, line, t_ns, name), Half(name, text, line, t_ns, file=self.file), text)

    def resumed(self, tid: str, line: int, t_ns: int | None, name: str, text: str) -> None:
        """Take the second half of a call."""
        half = self.pending.get(tid)
        thread = self.thread(tid, line, t_ns, name)
        if half is None or half.name != name:
            self._orphan(thread, line, t_ns, name, text)
            return
        del self.pending[tid]
        if text.startswith(" <unfinished ...>"):
            # <... epoll_pwait resumed> <unfinished ...>) = ?
            text = text[17:]
        start = half.text
        if text.startswith(" )"):
            text = text[1:]
        if text.startswith(")") and start.endswith(", "):
            start = start[:-2]
        where = Where(half.file, half.line, line) if half.file == self.file else Where(half.file, half.line)
        self.call(thread, where, half.t_ns, name, start + text, half.birth)

    def _orphan(self, thread: Thread, line: int, t_ns: int | None, name: str, text: str) -> None:
        self.orphans += 1
        where = Where(self.file, line)
        kinds = CALL_KINDS.get(name, ())
        child_return = name in CLONES and text.lstrip(" ").startswith(") = 0")
        hides = tuple(kind for kind in kinds) if not child_return else ()
        self.account.add(
            "orphan-resumed",
            f"the second half of {name} without its first: what it was given is unknown",
            where,
            hides,
            note=not hides,
        )
        if name == "connect" or (name in CLONES and not child_return):
            self.call(thread, where, t_ns, name, text)

    def call(
        self, thread: Thread, where: Where, t_ns: int | None, name: str, rest: str, birth: Birth | None = None
    ) -> bool:
        """Take a whole call: ``rest`` is what follows ``name(``; return False when it is none."""
        express = EXPRESS.get(name)
        if express is not None:
            out = self.recorder.out
            before = len(out)
            if express(self.recorder, thread, where.file, where.at, where.end, t_ns, rest):
                self.last = out[before:]
                self.last_line = where.end or where.at
                return True
        return self.general(thread, where, t_ns, name, rest, birth)

    def general(
        self, thread: Thread, where: Where, t_ns: int | None, name: str, rest: str, birth: Birth | None = None
    ) -> bool:
        """Take a whole call in the general way; return False when it is none."""
        handler = HANDLERS.get(name)
        if handler is None:
            if name.startswith("syscall_") and _UNKNOWN_CALL.match(name):
                handler = on_unknown
            else:
                return True
        call = Call(name, where, t_ns, thread)
        if not parse_call(call, rest):
            if birth is not None:
                self.world.drop_birth(birth)
            self.bad_call(where, t_ns, name, rest)
            self.partial(thread, Half(name, rest, where.at, t_ns, file=where.file), rest)
            return False
        out = self.recorder.out
        before = len(out)
        if birth is not None:
            on_clone(call, self.recorder, birth)
        else:
            handler(call, self.recorder)
            if name in ALSO:
                ALSO[name](call, self.recorder)
        if len(out) > before:
            self.last = out[before:]
            self.last_line = where.end or where.at
        return True

    def partial(self, thread: Thread, half: Half, text: str) -> None:
        """Make the event of a call that is cut, from what can still be read of it."""
        if half.name in HANDLERS and half.name not in CLONES:
            call = Call(half.name, Where(half.file, half.line), half.t_ns, thread, _cut_arguments(text), returned=False)
            HANDLERS[half.name](call, self.recorder)

    def bad_call(self, where: Where, t_ns: int | None, name: str, rest: str) -> None:
        """Count a call that does not read."""
        self.unparsed += 1
        touches = CALL_KINDS.get(name, ())
        self.account.add("unparsed", f"a line of {name} that does not read as a call", where, touches)
        self._show(where, t_ns, f"not a whole {name} call", f"{name}({rest}", touches)

    def bad_line(self, line: int, text: str, reason: str, *, note: bool = False) -> None:
        """Count a line that no part of the format explains."""
        self.unparsed += 1
        where = Where(self.file, line)
        self.account.add("unparsed", f"a line that is {reason}", where, (), note=note)
        self._show(where, None, reason, text, ())

    def _show(self, where: Where, t_ns: int | None, reason: str, text: str, touches: tuple[str, ...]) -> None:
        if "unparsed" in self.wanted:
            raw = text[:_MOST_RAW].encode("latin-1")
            self.recorder.emit(Unparsed(where, t_ns, reason=reason, raw=raw, touches=list(touches)))

    def exit(self, tid: str, line: int, t_ns: int | None, text: str) -> None:
        """Take ``+++ exited with 0 +++``, ``+++ killed by SIGKILL +++``, ``+++ superseded by execve in pid 7 +++``."""
        thread = self.thread(tid, line, t_ns, "")
        replaced = _SUPERSEDED.match(text)
        if replaced is not None:
            half = self.pending.pop(replaced[1], None)
            survivor = self.world.supersede(thread, replaced[1])
            old = self.pending.pop(tid, None)
            if old is not None:
                self._killed(thread, old)
            if half is not None:
                self.pending[tid] = half
            if survivor is not None:
                survivor.first = survivor.first or line
            return
        half = self.pending.pop(tid, None)
        if half is not None:
            self._killed(thread, half)
        self.exits += 1
        last = self.world.leave(thread)
        exited, killed = _EXITED.match(text), _KILLED.match(text)
        status = (int(exited[1]) if exited else None, killed[1] if killed else None)
        process = thread.process
        if thread.number is None:
            # A process ends as its main thread does, whichever of its threads is the last.
            process.status = status
        if last and "process.exit" in self.wanted:
            code, signal = process.status or status
            self.recorder.emit(
                ProcessExit(
                    Where(self.file, line),
                    t_ns,
                    code,
                    signal,
                    process=process.id,
                )
            )

    def _killed(self, thread: Thread, half: Half) -> None:
        """A call that its thread's end cut short: its outcome does not matter to anyone, its arguments do."""
        self._partial(thread, half, "the thread ended in the middle of the call")

    def _abandoned(self, thread: Thread, half: Half) -> None:
        """A second half that is missing although its thread went on."""
        self.lost_halves += 1
        touches = CALL_KINDS.get(half.name, ())
        where = Where(half.file, half.line)
        self.account.add("unfinished", f"the second half of {half.name} is missing", where, touches, note=not touches)
        self._partial(thread, half, "", note=False)

    def _partial(self, thread: Thread, half: Half, why: str, *, note: bool = True) -> None:
        """Make the event of a call that never returned, from the arguments that the log shows."""
        if half.birth is not None:
            self.world.drop_birth(half.birth)
            return
        handler = HANDLERS.get(half.name)
        if handler is None:
            return
        where = Where(half.file, half.line)
        text = half.text.removesuffix(", ").rstrip(" ")
        arguments = split_arguments(text)
        call = Call(half.name, where, half.t_ns, thread, arguments or [], returned=False)
        if note:
            self.account.add("unfinished", f"{half.name}: {why or 'no end'}", where, (), note=True)
        if arguments is None:
            self.account.add(
                "unfinished", f"the arguments of {half.name} are cut", where, CALL_KINDS.get(half.name, ())
            )
        handler(call, self.recorder)

    def frame(self, line: int, text: str) -> bool:
        """Take a stack line; return whether it belongs to the call before it."""
        if self.last_line + 1 != line:
            return False
        self.last_line = line
        match = _FRAME.match(text)
        if match is None:
            frame = Frame(text[3:])
        else:
            image, inner, offset = match.groups()
            symbol, plus, distance = inner.rpartition("+0x")
            if symbol and re.fullmatch(r"[0-9a-f]{1,16}", distance):
                frame = Frame(image, symbol, int(distance, 16))
            elif plus and not symbol:
                # /opt/program(+0x0) [0x1071]: a symbol without a name
                frame = Frame(image, None, int(offset, 16))
            else:
                frame = Frame(image, inner or None, int(offset, 16))
        for event in self.last:
            frames: list[Frame] | None = getattr(event, "frames", None)
            if frames is not None:
                frames.append(frame)
            elif hasattr(event, "frames"):
                event.frames = [frame]
        return True

    def finish(self, *, complete: bool) -> bool:
        """End the log: calls under way, processes alive; return whether every process was seen to end."""
        for tid, half in list(self.pending.items()):
            thread = self.world.threads.get(tid)
            if thread is None:
                continue
            self._partial(thread, half, "the log ends before the call does")
        self.pending.clear()
        flush_hellos(self.recorder)
        end_rings(self.recorder)
        for child, where, why in self.recorder.expected.values():
            if child.first:
                continue
            detail = "a process that was made with CLONE_UNTRACED" if why else "a process that was made and has no line"
            self.account.add("untraced-process", detail, where, (), process=child.process.id)
        alive = {
            thread.process for thread in self.world.threads.values() if thread.first and not thread.process.leaving
        }
        if self.recorder.names.overflow:
            self.account.add(
                "overflow",
                "so many files were linked or renamed that the oldest names were forgotten",
                None,
                ("file.open", "file.read"),
                count=self.recorder.names.overflow,
            )
        if self.world.guessed:
            self.account.add(
                "ambiguous-parent",
                "lines of some processes came before the line that names their parent, and the guess was wrong",
                None,
                (),
                note=True,
                count=self.world.guessed,
            )
        ended = not alive and bool(self.world.threads or self.exits)
        if not ended and not complete:
            self.account.add("no-exit", f"the log ends before {max(len(alive), 1)} traced process(es) did", None, ())
        return ended

    def prune(self) -> None:
        """Forget children that have shown a line."""
        expected = self.recorder.expected
        if len(expected) > 512:
            self.recorder.expected = {key: item for key, item in expected.items() if not item[0].first}
        if len(self.recorder.expected) > _MOST_EXPECTED:
            self.account.add("overflow", "more children without a line than can be remembered", None, ())
            self.recorder.expected.clear()


def _cut_arguments(text: str) -> list[str]:
    """Return the arguments that a cut line shows whole, and the beginning of the next as far as it reads."""
    whole = split_arguments(text)
    if whole is not None:
        return whole
    at = len(text)
    for _ in range(_MOST_CUTS):
        at = text.rfind(", ", 0, at)
        if at < 0:
            break
        found = split_arguments(text[:at])
        if found is not None:
            return [*found, text[at + 2 :]]
    return []
