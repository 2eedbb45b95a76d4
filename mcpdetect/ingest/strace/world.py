"""Who made a line: the tree of traced processes and threads, their births, execs and ends."""

from __future__ import annotations

from mcpdetect.ingest.strace.state import Birth, Directory, Process, Table, Thread

__all__ = ["World"]

_NO_FLAGS: frozenset[str] = frozenset()


class World:
    """Living threads of a trace by tid.

    Attributes:
        threads: the living, by tid as written.
        alone: tid of the process whose lines have no pid, ``""`` while unknown.
        announced: tids that strace said it attached to, and that have no line yet.
        guessed: children whose parent had to be guessed among several and was guessed wrong.
    """

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        self.alone = ""
        self.announced: set[str] = set()
        self._messages = False
        self.guessed = 0
        self._used: dict[str, int] = {}
        self._births: list[Birth] = []
        self._departed: dict[str, Thread] = {}

    def identity(self, pid: str) -> str:
        """Return a fresh identity for a process with this pid: ``"7"``, then ``"7#2"``."""
        count = self._used.get(pid, 0) + 1
        self._used[pid] = count
        return pid if count == 1 else f"{pid}#{count}"

    def appear(self, tid: str, line: int) -> Thread:
        """Return a new thread whose first line this is: the child of a clone under way, or a stranger."""
        birth = self._next_birth()
        thread = self._stranger(tid) if birth is None else self._born(tid, birth)
        thread.first = line
        return thread

    def announce(self, tid: str, line: int) -> None:
        """Note ``strace: Process TID attached``: it is traced, whether or not it ever shows a line."""
        self._messages = True
        thread = self.threads.get(tid)
        if thread is not None:
            thread.first = thread.first or line
        elif len(self.announced) < 100_000:
            self.announced.add(tid)

    def is_no_child(self, tid: str) -> bool:
        """Whether a new tid cannot be a child: strace announces each one, or no clone is under way."""
        return tid not in self.announced and (self._messages or self._next_birth() is None)

    def begin_birth(self, parent: Thread, flags: frozenset[str], line: int) -> Birth:
        """Note a clone that has begun; its child may show lines before it returns."""
        birth = Birth(parent, flags, line)
        self._births.append(birth)
        return birth

    def drop_birth(self, birth: Birth) -> None:
        """Forget a clone that failed or ended."""
        if birth in self._births:
            self._births.remove(birth)
        if not self._births:
            self._departed.clear()

    def end_birth(self, birth: Birth, tid: str) -> Thread:
        """Note that a clone returned ``tid``; return the child."""
        known = self.threads.get(tid) or self._departed.get(tid)
        self.drop_birth(birth)
        if known is not None and birth.child is known:
            return known
        displaced, birth.child = birth.child, None
        if known is not None and known.first < birth.line:
            # The pid is used again, and no line told that its last user ended.
            self.leave(known)
            known = None
        if known is None:
            child = self._born(tid, birth)
        else:
            child = known
            other = known.birth
            if other is not None and other.child is known:
                # The guess was wrong: this child was taken for that of another clone under way.
                other.child = None
            self.guessed += other is not None
            self._relate(known, birth)
        if displaced is not None and displaced.tid in self.threads:
            self.guessed += 1
            free = self._next_birth()
            displaced.birth = None
            if free is not None:
                self._relate(displaced, free)
        return child

    def _next_birth(self) -> Birth | None:
        """Return the clone under way whose child is most likely to show its first line now.

        A child that shares its parent's memory is ready long before one whose memory has to be copied.
        """
        waiting = [birth for birth in self._births if birth.child is None]
        return next((birth for birth in waiting if "CLONE_VM" in birth.flags), waiting[0] if waiting else None)

    def leave(self, thread: Thread) -> bool:
        """Note a thread's end; return whether it was its process's last."""
        self.threads.pop(thread.tid, None)
        process = thread.process
        process.threads.pop(thread.tid, None)
        if self._births:
            # The clone that made it may not have returned yet.
            self._departed[thread.tid] = thread
        for birth in [birth for birth in self._births if birth.parent is thread]:
            self._births.remove(birth)
        thread.table.users -= 1
        if thread.table.users <= 0:
            thread.table.release()
        return not process.threads

    def supersede(self, leader: Thread, tid: str) -> Thread | None:
        """Note ``superseded by execve in pid TID``: thread ``tid`` goes on under the leader's number."""
        survivor = self.threads.get(tid)
        if survivor is None or survivor is leader:
            return None
        process = leader.process
        self.leave(leader)
        self.threads.pop(tid, None)
        survivor.process.threads.pop(tid, None)
        survivor.tid = leader.tid
        survivor.number = None
        survivor.process = process
        process.threads[survivor.tid] = survivor
        self.threads[survivor.tid] = survivor
        return survivor

    def rename(self, thread: Thread, tid: str) -> None:
        """Give a thread its number, learnt late (a log whose first lines have no pid)."""
        self.threads.pop(thread.tid, None)
        thread.process.threads.pop(thread.tid, None)
        thread.tid = tid
        thread.process.threads[tid] = thread
        self.threads[tid] = thread
        if thread.process.id is None:
            thread.process.id = self.identity(tid)
        self.alone = tid

    def _stranger(self, tid: str) -> Thread:
        process = Process(self.identity(tid) if tid else None)
        return self._add(Thread(tid, process, Table(), Directory()))

    def _born(self, tid: str, birth: Birth) -> Thread:
        parent = birth.parent
        flags = birth.flags
        if "CLONE_THREAD" in flags:
            process = parent.process
        else:
            process = Process(self.identity(tid) if tid else None, parent=parent.process.id)
        thread = Thread(tid, process, parent.table, parent.directory)
        if "CLONE_FILES" not in flags:
            thread.table = parent.table.copy()
        if "CLONE_FS" not in flags:
            thread.directory = Directory(parent.directory.cwd, parent.directory.root)
        if "CLONE_THREAD" in flags and tid:
            thread.number = int(tid)
        thread.birth = birth
        birth.child = thread
        return self._add(thread)

    def _relate(self, thread: Thread, birth: Birth) -> None:
        """Correct the parent of a thread that showed lines before its birth was named."""
        if birth.parent is not thread and thread.birth is not birth and self.threads.get(thread.tid) is thread:
            self._rebase(thread, birth)
        thread.birth = birth
        birth.child = thread
        parent = birth.parent.process
        if "CLONE_THREAD" in birth.flags:
            if thread.process is not parent:
                self._move(thread, parent)
                thread.number = int(thread.tid) if thread.tid else None
        elif thread.process is parent:
            self._move(thread, Process(self.identity(thread.tid), parent=parent.id))
            thread.number = None
        else:
            thread.process.parent = parent.id

    @staticmethod
    def _rebase(thread: Thread, birth: Birth) -> None:
        """Give a thread what it has of its true parent, and keep what it opened itself."""
        parent = birth.parent
        old = thread.table
        table = parent.table if "CLONE_FILES" in birth.flags else parent.table.copy()
        if table is not old:
            for fd, handle in old.handles.items():
                if handle.owner is thread.process and handle.owner is not parent.process:
                    table.put(fd, handle, closing=fd in old.closing)
            old.users -= 1
            if old.users <= 0:
                old.release()
            table.users += 1
            thread.table = table
        if "CLONE_FS" in birth.flags:
            thread.directory = parent.directory
        else:
            thread.directory = Directory(parent.directory.cwd, parent.directory.root)

    def _move(self, thread: Thread, process: Process) -> None:
        thread.process.threads.pop(thread.tid, None)
        thread.process = process
        if self.threads.get(thread.tid) is thread:
            process.threads[thread.tid] = thread

    def _add(self, thread: Thread) -> Thread:
        thread.table.users += 1
        thread.process.threads[thread.tid] = thread
        self.threads[thread.tid] = thread
        if thread.tid in self.announced:
            self.announced.discard(thread.tid)
            thread.first = 1
        return thread
