"""Reads a log line by line: every dialect, and every accident of a stream that others write into as well."""

from __future__ import annotations

import re

from mcpdetect.ingest.strace.core import RESUMED, UNFINISHED, Core
from mcpdetect.ingest.strace.grammar import RESULT, split_arguments, split_call
from mcpdetect.ingest.strace.header import HEADER, Timekeeper
from mcpdetect.ingest.strace.reader import LINE_CAP, Blocks
from mcpdetect.model.kinds import CALL_KINDS
from mcpdetect.model.place import Where

__all__ = ["LineFeeder", "unprefixed_pid"]

_CALL = re.compile(r"([a-z_][a-z0-9_]*+)\(", re.ASCII)
# strace: Process 16959 attached      strace: Process 345678 attached with 3 threads
_GLUED = re.compile(r"strace: Process (\d{1,7}) attached(?: with \d++ threads)?\Z", re.ASCII)
# ) = 98      ) = -1 EPIPE (Broken pipe)
_TAIL = re.compile(r"\) *+= [-\d?]", re.ASCII)
_LATER_TAIL = re.compile(r"\n\) *+= (-?\d++|\?)", re.ASCII)
# [ Process PID=20305 runs in 32 bit mode. ]
_MODE = re.compile(r"(?:strace: )?\[ Process PID=(\d{1,7}) runs in (\w++) (?:bit )?mode\. \]", re.ASCII)
_WRITERS = frozenset({"write", "pwrite64", "writev", "pwritev", "sendto", "send", "sendmsg"})
_REACH = 1 << 16
_NEED_MORE = -1
_MOST_STRETCH = 1 << 20


class LineFeeder:
    """Feeds lines to a ``Core``.

    Attributes:
        line: lines read so far.
        needed: names of calls that matter.
        clean: no line so far was anything but a plain line of a log with bare pids.
        framed: stack lines occur.
        shared: the traced programs write into the log.
    """

    def __init__(self, core: Core, times: Timekeeper, blocks: Blocks, needed: frozenset[str]) -> None:
        self.line = 0
        self.needed = needed
        self.clean = True
        self.framed = False
        self.shared = 0
        self.attached = False
        self.unknown_deaths = 0
        self._core = core
        self._times = times
        self._blocks = blocks
        self._open: tuple[str, str, int, str] | None = None
        self._open_time: int | None = None
        self._first = True
        self._last_chance = False
        self._beyond = False
        self._read_time: tuple[int, int | None] | None = None

    def feed(self, block: str) -> None:
        """Take a block of whole lines."""
        at = 0
        reach = _MOST_STRETCH
        while at <= len(block):
            end = block.find("\n", at)
            if end < 0:
                end = len(block)
            self.line += 1
            begin, line = at, self.line
            self._last_chance = reach <= 0
            at = self._line(block, at, end)
            if at == _NEED_MORE:
                # A line that the program wrote into goes on beyond this block.
                further = self._blocks.next()
                reach = 0 if further is None else reach - len(further)
                block = block[begin:] if further is None else f"{block[begin:]}\n{further}"
                at, self.line = 0, line - 1

    def end(self) -> None:
        """Take the last line, which no newline ends."""
        tail = self._blocks.tail
        if self._open is not None:
            _, text, line, name = self._open
            self._open = None
            self._cut(name, text, line)
        if tail:
            self.line += 1
            header = HEADER.match(tail)
            rest = tail[header.end() :] if header else tail
            match = _CALL.match(rest)
            exited = rest.startswith("+++ ") and rest.endswith(" +++")
            whole = exited or (match is not None and self._whole(rest[match.end() :]))
            if whole:
                self._line(tail, 0, len(tail))
            else:
                tid = (header["bracketed"] or header["bare"] or "") if header else ""
                if match is not None:
                    t_ns = self._times.read(header["time"], header["step1"] or header["step2"]) if header else None
                    self._core.cut_tail(tid, self.line, t_ns, match[1], rest[match.end() :])
                self._cut(match[1] if match else "", tail, self.line)

    def _cut(self, name: str, text: str, line: int) -> None:
        detail = f"the log ends in the middle of a line of {name}" if name else "the log ends in the middle of a line"
        self._core.account.add("file-truncated", detail, Where(self._core.file, line))

    @staticmethod
    def _whole(rest: str) -> bool:
        if UNFINISHED.search(rest):
            return True
        parts = split_call(rest)
        return parts is not None and RESULT.match(parts[1]) is not None and split_arguments(parts[0]) is not None

    def _line(self, block: str, at: int, end: int) -> int:
        """Take one line of ``block``; return where the next begins."""
        core = self._core
        if self._open is not None:
            self._continue(block[at:end])
            return end + 1
        line = self.line
        text = block[at:end]
        if end - at >= LINE_CAP:
            core.account.add("line-cut", "a line is longer than can be read", Where(core.file, line))
            self.clean = False
        header = HEADER.match(text)
        if header is None:
            core.bad_line(line, text, "no line of strace")
            return end + 1
        tid, time = header["bracketed"] or header["bare"] or "", header["time"]
        rest = text[header.end() :]
        match = _CALL.match(rest)
        if match is not None:
            return self._call(block, end, header, tid, match[1], rest[match.end() :])
        t_ns = self._times.read(time, header["step1"] or header["step2"])
        match = RESUMED.match(rest)
        if match is not None:
            name = match[1]
            core.names.add(name)
            core.resumed(self._owner(tid, name), line, t_ns, name, rest[match.end() :])
        elif rest.startswith("+++ ") and rest.endswith(" +++"):
            core.exit(self._owner(tid), line, t_ns, rest)
        elif rest.startswith("--- ") and rest.endswith(" ---"):
            pass
        elif rest.startswith("???("):
            self.unknown_deaths += 1
        else:
            self._other(text, rest)
        self._first = False
        return end + 1

    def _call(self, block: str, end: int, header: re.Match[str], tid: str, name: str, rest: str) -> int:
        core = self._core
        line = self.line
        self._first = False
        core.names.add(name)
        if self._read_time is not None and self._read_time[0] == line:
            t_ns = self._read_time[1]
        else:
            t_ns = self._times.read(header["time"], header["step1"] or header["step2"])
        owner = self._owner(tid)
        if name == "restart_syscall" and owner not in core.world.threads:
            # restart_syscall(<... resuming interrupted read ...>) = 0
            self._attach(line)
        marker = UNFINISHED.search(rest)
        if marker is not None:
            core.unfinished(owner, line, t_ns, name, rest[: marker.start()])
            return end + 1
        if self._whole(rest):
            if name in self.needed or name not in CALL_KINDS or core.pending.get(owner) is not None:
                core.whole(owner, line, t_ns, name, rest)
            return end + 1
        self.clean = False
        glued = _GLUED.search(rest)
        if glued is not None:
            self._open = (owner, rest[: glued.start()], line, name)
            self._open_time = t_ns
            core.world.announce(glued[1], line)
            return end + 1
        return self._foreign(block, end, owner, t_ns, name, rest)

    def _continue(self, text: str) -> None:
        """Take what follows a line that strace's own message broke off."""
        if self._open is None:
            return
        owner, start, line, name = self._open
        self._open = None
        rest = start + text
        core = self._core
        marker = UNFINISHED.search(rest)
        if marker is not None:
            core.unfinished(owner, line, self._open_time, name, rest[: marker.start()])
            return
        glued = _GLUED.search(rest)
        if glued is not None and not self._whole(rest):
            self._open = (owner, rest[: glued.start()], line, name)
            core.world.announce(glued[1], self.line)
            return
        core.whole(owner, line, self._open_time, name, rest, self.line)

    def _foreign(self, block: str, end: int, owner: str, t_ns: int | None, name: str, rest: str) -> int:
        """Take a line into which the traced program wrote; what it wrote is passed over."""
        core = self._core
        line = self.line
        begin = end - len(rest)
        if name in _WRITERS:
            found = self._own_bytes(block, begin, rest)
            if found is not None:
                arguments, after = found
                stop = block.find("\n", after)
                stop = len(block) if stop < 0 else stop
                tail = block[after:stop]
                self.line += block.count("\n", end, stop) if stop > end else 0
                self._share(line)
                core.whole(owner, line, t_ns, name, arguments + tail, self.line)
                return stop + 1
        if (end + _REACH > len(block) or self._beyond) and not self._last_chance:
            self._read_time = (line, t_ns)
            return _NEED_MORE
        later = self._later(block, end, rest)
        if later is not None and not _HEADER_BARE.match(block[end + 1 : end + 12] if end < len(block) else ""):
            stop = block.find("\n", later.start() + 1)
            stop = len(block) if stop < 0 else stop
            self.line += block.count("\n", end, stop)
            self._share(line)
            core.bad_line(line, f"{name}({rest}", "a call with foreign text in it")
            return stop + 1
        core.whole(owner, line, t_ns, name, rest)
        return end + 1

    @staticmethod
    def _later(block: str, end: int, rest: str) -> re.Match[str] | None:
        """Return the end of a call further on, the one with the result that its last argument promises first."""
        found: re.Match[str] | None = None
        parts = _WRITE.match(rest)
        for match in _LATER_TAIL.finditer(block, end, end + _REACH):
            found = found or match
            if parts is not None and parts[2].startswith(match[1]):
                return match
        return found

    def _own_bytes(self, block: str, begin: int, rest: str) -> tuple[str, int] | None:
        """Return the arguments of a write whose bytes follow in the log, and where the log goes on after them."""
        parts = _WRITE.match(rest)
        self._beyond = False
        if parts is None:
            return None
        head, digits = parts.groups()
        for length in range(1, len(digits) + 1):
            count = int(digits[:length])
            after = begin + len(head) + length + count
            if _TAIL.match(block, after):
                return head + digits[:length], after
            self._beyond = self._beyond or (after >= len(block) and count <= _MOST_STRETCH)
        return None

    def _share(self, line: int) -> None:
        if not self.shared:
            self._core.account.add(
                "shared-stream",
                "the traced program writes into the log itself, so any line may be its own",
                Where(self._core.file, line),
            )
        self.shared += 1

    def _attach(self, line: int) -> None:
        self.attached = True
        self._core.account.add(
            "attached", "strace was attached to a running process; what came before is not in the log",
            Where(self._core.file, line),
        )  # fmt: skip

    def _other(self, text: str, rest: str) -> None:
        core = self._core
        line = self.line
        self.clean = False
        if text.startswith(" > "):
            # " > /usr/lib/libc.so.6(__connect+0x17) [0x10c5e7]"
            self.framed = True
            core.frame(line, text)
            return
        glued = _GLUED.match(rest)
        if glued is not None:
            if self._first:
                self._attach(line)
            else:
                core.world.announce(glued[1], line)
            return
        mode = _MODE.match(rest)
        if mode is not None:
            core.account.add(
                "personality", f"a process ran in {mode[2]} bit mode", Where(core.file, line), (), note=True
            )
            return
        if rest.startswith("strace: "):
            gone = rest.endswith("detached")
            core.account.add(
                "strace-message", "strace let go of a process" if gone else "a message of strace itself",
                Where(core.file, line), (), note=not gone,
            )  # fmt: skip
            return
        if _TAIL.match(text):
            self._share(line)
            core.bad_line(line, text, "the end of a call without its beginning")
            return
        if not text.strip():
            core.bad_line(line, text, "empty", note=True)
            return
        core.bad_line(line, text, "no line of strace")

    def _owner(self, tid: str, name: str = "") -> str:
        """Return the tid of a line; one without a prefix belongs to the process traced alone.

        Args:
            tid: as written, ``""`` where the line has none.
            name: for a second half the call's name: it may tell whose the first half without a prefix was.
        """
        world = self._core.world
        if tid:
            if tid not in world.threads and "" in world.threads:
                half = self._core.pending.get("")
                ends = half is not None and half.name == name
                if ends or (half is None and world.is_no_child(tid)):
                    if half is not None:
                        self._core.pending[tid] = self._core.pending.pop("")
                    world.rename(world.threads[""], tid)
            return tid
        if "" in world.threads or not world.threads:
            return "" if "" in world.threads else world.alone
        if world.alone not in world.threads:
            living = [thread.tid for thread in world.threads.values() if thread.first]
            world.alone = living[0] if len(living) == 1 else ""
        return world.alone


def unprefixed_pid(head: str) -> str:
    """Return the pid of the process whose lines have no prefix, ``""`` where the log's beginning does not tell it.

    strace on stderr writes ``[pid N]`` only while it traces more than one process. The first process is named when a
    call that it began alone ends in company, or by being the one that strace did not say it attached to.
    """
    waiting = ""
    attached: set[str] = set()
    for text in head.split("\n"):
        glued = _GLUED.search(text)
        if glued is not None:
            attached.add(glued[1])
        header = HEADER.match(text)
        if header is None:
            continue
        rest = text[header.end() :]
        tid = header["bracketed"]
        if tid is None and header["bare"] is None:
            match = _CALL.match(rest)
            if match is not None:
                waiting = match[1] if UNFINISHED.search(rest) else ""
        elif tid is not None:
            match = RESUMED.match(rest)
            if (match is not None and match[1] == waiting) or (attached and tid not in attached):
                return tid
    return ""


_HEADER_BARE = re.compile(r"(?:\[pid +)?\d{1,7}[ \]<]", re.ASCII)
# 2, "+++ exited with 0 +++\n", 22+++ exited with 0 +++      2</dev/pts/0<char 136:0>>, "..."..., 98connect(3, ...
_WRITE = re.compile(r'((?:\d++(?:<[^"\n]*+>)?+), (?:"(?>[^"\\]++|\\.)*+"(?:\.\.\.)?+|\[[^\n]*\]), )(\d{1,9})', re.ASCII)
