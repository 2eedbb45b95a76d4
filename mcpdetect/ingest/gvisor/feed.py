"""From gVisor's lines to calls: halves joined, threads and their ends followed, every line accounted for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcpdetect.ingest.gvisor.arguments import SHAPES, split
from mcpdetect.ingest.gvisor.record import Record
from mcpdetect.ingest.gvisor.times import Times
from mcpdetect.ingest.gvisor.translate import arguments, names_destination, remark_of, result_of
from mcpdetect.ingest.strace.calls import needed_calls
from mcpdetect.ingest.strace.core import CLONES, Core
from mcpdetect.ingest.strace.dispatch import HANDLERS
from mcpdetect.model.kinds import CALL_KINDS
from mcpdetect.model.place import Where

__all__ = ["Feeder"]

# Transitioning from exit state TaskExitInitiated to TaskExitZombie
_ZOMBIE = "Transitioning from exit state TaskExitInitiated to TaskExitZombie"
# Uncaught signal: "killed" (9), PID: 46, TID: 46, fault addr: 0x0
_UNCAUGHT = re.compile(r'Uncaught signal: "[^"]*+" \((\d{1,3})\), PID: (\d{1,10}), TID: (\d{1,10}), ', re.ASCII)
# Strace: true, max size: 1024, syscalls: connect,openat
_CONFIGURED = re.compile(r"\t*+Strace: true, max size: \d++, syscalls: ([\w,]++)\Z", re.ASCII)
_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
            9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
            24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS"}  # fmt: skip
# Calls that this version of gVisor has no name for (asm-generic/unistd.h: the same number on every machine).
_NUMBERS = {425: "io_uring_setup", 426: "io_uring_enter", 427: "io_uring_register", 434: "pidfd_open", 435: "clone3",
            436: "close_range", 437: "openat2", 438: "pidfd_getfd", 439: "faccessat2", 452: "fchmodat2"}  # fmt: skip
_NUMBERED = re.compile(r"sys_(\d{1,5})\Z", re.ASCII)
_DESTINATION = ("socket.send", "socket.connect")
_MOST = 100_000


@dataclass(slots=True)
class _Begun:
    """A call under way: its line, its arguments as gVisor wrote them, whole (``text``) and apart.

    ``shown``: ``Core`` has a first half of it, whose text is filled in when it turns out to be all there is.
    """

    name: str
    line: int
    t_ns: int | None
    text: str = ""
    parts: list[str] | None = None
    certain: bool = True
    shown: bool = False


class Feeder:
    """Feeds the lines of one log to a ``Core``.

    Attributes:
        filtered: the calls that the log's own configuration says were traced, ``""`` for all.
    """

    def __init__(self, core: Core, times: Times) -> None:
        self.filtered = ""
        self._core = core
        self._times = times
        self._begun: dict[str, _Begun] = {}
        self._codes: dict[int, str] = {}
        self._signals: dict[int, str] = {}
        self._debug = False
        needed = needed_calls(core.wanted)
        self._handled = frozenset(name for name in HANDLERS if name in needed or name not in CALL_KINDS)

    def take(self, record: Record, *, believed: bool) -> None:
        """Take one line."""
        if record.sort == "other":
            self._other(record, believed=believed)
        elif record.sort in {"E", "X"} and believed:
            self._call(record)
        elif record.sort == "dump" or (record.sort == "loose" and believed):
            pass
        else:
            self._doubtful(record)

    def cut(self, text: str) -> None:
        """Take a last line that is not whole."""
        del text
        self._core.account.add("file-truncated", "the log ends in the middle of a line")

    def end(self) -> None:
        """End the log."""
        for tid in self._begun:
            self._fill(tid)
        for word, detail, count in self._times.remarks():
            self._core.account.add(word, detail, note=True, count=count)

    def _doubtful(self, record: Record) -> None:
        core = self._core
        if record.sort in {"E", "X"}:
            reason = "too near to one that does not read: the traced program may have written it"
        elif record.sort == "loose":
            reason = "without a head: a name with a line end in it, or foreign text"
        else:
            reason = "no whole line of gVisor's tracer"
        if not core.account.count("shared-stream"):
            core.account.add(
                "shared-stream",
                "names with line ends in them stand in the log, so lines near them may be the program's own",
                Where(core.file, record.line),
            )
        core.bad_line(record.line, record.text, reason)

    def _other(self, record: Record, *, believed: bool) -> None:
        if record.level == "D":
            self._debug = True
        if not believed:
            return
        if record.file == "task_exit.go" and record.arguments == _ZOMBIE and record.task:
            self._exit(record)
        elif record.file == "compat.go":
            match = _UNCAUGHT.match(record.arguments)
            if match is not None and len(self._signals) < _MOST:
                self._signals[int(match[2])] = _SIGNALS.get(int(match[1]), f"SIG_{match[1]}")
        elif not self._core.names:
            match = _CONFIGURED.match(record.arguments)
            if match is not None:
                self.filtered = match[1]

    def _exit(self, record: Record) -> None:
        core = self._core
        tid = str(record.task)
        if tid not in core.world.threads:
            return
        self._fill(tid)
        self._begun.pop(tid, None)
        signal = self._signals.pop(record.group, None) if record.task == record.group else None
        status = f"killed by {signal}" if signal else f"exited with {self._codes.get(record.group, 0)}"
        core.exit(tid, record.line, self._time(record), f"+++ {status} +++")

    def _time(self, record: Record) -> int | None:
        return self._times.read(record.month, record.day, record.time)

    def _call(self, record: Record) -> None:
        core = self._core
        tid = str(record.task)
        t_ns = self._time(record)
        name = record.name
        numbered = _NUMBERED.match(name)
        if numbered is not None:
            name = _NUMBERS.get(int(numbered[1]), f"syscall_0x{int(numbered[1]):x}")
        core.names.add(name)
        self._thread(record, tid, name, t_ns)
        if record.sort == "E" or (tid in self._begun and self._begun[tid].name != name):
            self._fill(tid)
        begun = self._begun.pop(tid, None)
        if record.sort == "E":
            if begun is not None and not begun.shown:
                self._lost(begun)
            self._begin(record, tid, name, t_ns)
            return
        if begun is not None and begun.name != name:
            self._lost(begun)
            begun = None
        if name not in self._handled and (numbered is None or name in HANDLERS):
            return
        self._end(record, tid, name, t_ns, begun)

    def _fill(self, tid: str) -> None:
        """Give the first half of a call under way its text: nothing better will come."""
        begun, half = self._begun.get(tid), self._core.pending.get(tid)
        if begun is not None and begun.parts is not None and half is not None and half.line == begun.line:
            half.text = ", ".join(arguments(begun.name, begun.parts, certain=begun.certain))

    def _lost(self, begun: _Begun) -> None:
        """Count an end that is missing although the thread went on; where the beginning was shown Core does."""
        touches = CALL_KINDS.get(begun.name, ())
        where = Where(self._core.file, begun.line)
        detail = f"the second half of {begun.name} is missing"
        self._core.account.add("unfinished", detail, where, touches, note=not touches)

    def _begin(self, record: Record, tid: str, name: str, t_ns: int | None) -> None:
        core = self._core
        if name == "exit_group" and len(self._codes) < _MOST:
            code = record.arguments
            self._codes[record.group] = str(int(code, 16) & 0xFF) if re.fullmatch(r"0x[0-9a-f]{1,16}", code) else "0"
        elif name == "exit" and record.task == record.group and len(self._codes) < _MOST:
            self._codes.setdefault(record.group, "0")
        if name not in self._handled or name not in SHAPES:
            self._begun[tid] = _Begun(name, record.line, t_ns)
            return
        found = split(name, record.arguments)
        if found is None:
            self._unread(record, name)
            self._begun[tid] = _Begun(name, record.line, t_ns)
            return
        parts, certain = found
        self._begun[tid] = _Begun(name, record.line, t_ns, record.arguments, parts, certain, True)
        text = ", ".join(arguments(name, parts, certain=certain)) if name in CLONES else ""
        core.unfinished(tid, record.line, t_ns, name, text)

    def _end(self, record: Record, tid: str, name: str, t_ns: int | None, begun: _Begun | None) -> None:
        core = self._core
        half = core.pending.pop(tid, None) if begun is not None and begun.shown else None
        result = result_of(record.result)
        if result is None:  # classify() took only lines with a result that reads
            return
        rest, failed = result
        if begun is not None and begun.parts is not None and begun.text == record.arguments:
            found: tuple[list[str], bool] | None = (begun.parts, begun.certain)
        else:
            found = split(name, record.arguments) if name in SHAPES else ([], True)
        if found is None:
            self._unread(record, name)
            return
        parts, certain = found
        if begun is not None and begun.parts is not None:
            parts = _merged(name, parts, begun.parts)
        if not certain and "file.open" in CALL_KINDS.get(name, ()):
            core.account.add(
                "ambiguous-path", "a path with a comma in it can be read in two ways", core.place(record.line),
                ("file.open",), note=True,
            )  # fmt: skip
        if name not in SHAPES:
            self._bare(record, name)
        texts = arguments(name, parts, certain=certain) if name in SHAPES else record.arguments.split(", ")[:6]
        number, space, after = rest.partition(" ")
        remark = "" if failed else remark_of(name, parts)
        text = f"{', '.join(texts)}) = {number}{remark}{space}{after}"
        where = Where(core.file, begun.line, record.line) if begun is not None else Where(core.file, record.line)
        thread = core.thread(tid, record.line, t_ns, name)
        begin = begun.t_ns if begun is not None else t_ns
        if name in {"sendmsg", "sendmmsg"} and (name == "sendmmsg" or names_destination(parts[1])):
            core.account.add(
                "name-hidden", f"gVisor does not show where {name} sends to", where, _DESTINATION,
                process=thread.process.id,
            )  # fmt: skip
        if failed and name == "sendto" and number == "-1":
            core.account.cut("socket.send", where)  # what it would have sent is not shown either
        core.call(thread, where, begin, name, text, half.birth if half is not None else None)
        if name in {"exit_group", "exit"} and not self._debug:
            self._leave(record, name, t_ns)

    def _leave(self, record: Record, name: str, t_ns: int | None) -> None:
        """Take a voluntary exit as the end: without debug messages the log has no other sign of it."""
        core = self._core
        own = core.world.threads.get(str(record.task))
        if own is None:
            return
        threads = list(own.process.threads) if name == "exit_group" else [own.tid]
        for tid in threads:
            self._fill(tid)
            self._begun.pop(tid, None)
            core.exit(tid, record.line, t_ns, f"+++ exited with {self._codes.get(record.group, 0)} +++")

    def _bare(self, record: Record, name: str) -> None:
        """Count a call whose arguments gVisor showed as numbers only."""
        touches = CALL_KINDS.get(name, ())
        if touches and " errno=38 " not in record.result:
            detail = f"this version of gVisor shows no arguments of {name}"
            self._core.account.add("undecoded-call", detail, self._core.place(record.line), touches)

    def _unread(self, record: Record, name: str) -> None:
        self._core.bad_call(self._core.place(record.line), self._time(record), name, record.arguments)

    def _thread(self, record: Record, tid: str, name: str, t_ns: int | None) -> None:
        """Make sure of a line's thread: gVisor tells its process as well."""
        core = self._core
        world = core.world
        if record.sort == "X" and name in {"execve", "execveat"} and tid not in self._begun:
            self._replaced(record, tid)
        if tid in world.threads:
            return
        leader = world.threads.get(str(record.group))
        if record.group == record.task or leader is None:
            core.thread(tid, record.line, t_ns, name)
            return
        birth = next(
            (
                birth
                for birth in (half.birth for half in core.pending.values())
                if birth is not None and birth.child is None and birth.parent.process is leader.process
            ),
            None,
        )
        if birth is None or (birth.flags and "CLONE_THREAD" not in birth.flags):
            birth = world.begin_birth(leader, _THREAD, record.line)
        elif not birth.flags:
            birth.flags = _THREAD  # clone3, whose flags this version does not show
        world.end_birth(birth, tid).first = record.line

    def _replaced(self, record: Record, tid: str) -> None:
        """Take the end of an execve that another thread of the process began: it goes on under the process's number."""
        core = self._core
        other = next((thread for thread, begun in self._begun.items() if self._execs(thread, begun, record)), None)
        if other is None:
            return
        self._begun[tid] = self._begun.pop(other)
        half = core.pending.pop(other, None)
        thread = core.world.threads[other]
        leader = core.world.threads.get(tid)
        if leader is not None:
            core.world.supersede(leader, other)
        else:
            core.world.rename(thread, tid)
            thread.number = None
        if half is not None:
            core.pending[tid] = half

    def _execs(self, tid: str, begun: _Begun, record: Record) -> bool:
        thread = self._core.world.threads.get(tid)
        process = thread.process.id if thread is not None else None
        return begun.name == record.name and process is not None and process.partition("#")[0] == str(record.group)


_THREAD = frozenset({"CLONE_VM", "CLONE_FS", "CLONE_FILES", "CLONE_SIGHAND", "CLONE_THREAD"})


def _merged(name: str, parts: list[str], begun: list[str]) -> list[str]:
    """Return the arguments of a call's end with those that only its beginning shows: what is written, what is sent."""
    if len(parts) != len(begun):
        return parts
    if name == "sendmsg":
        return [parts[0], begun[1], *parts[2:]]
    return [old if new == "..." else new for new, old in zip(parts, begun, strict=True)]
