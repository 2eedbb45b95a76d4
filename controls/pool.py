"""Doing one thing for many cases, one after the other or side by side, each worker in a process of its own.

Processes, not threads: helpers of a cell are tied by the kernel to the thread that started them.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Generic, TypeVar

from controls.recorder.errors import RecorderError
from controls.recorder.shells import Shell, open_shell
from mcpdetect.errors import McpDetectError

__all__ = ["GUEST_BYTES", "Failed", "each", "guests_at_once"]

GUEST_BYTES = 1 << 30
"""What one guest may take of the machine's memory, QEMU and the recorder beside it included."""

_PR_SET_PDEATHSIG = 1  # prctl(2)
_PATIENCE = 30.0
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Failed:
    """What became of an item instead of a result: why."""

    why: str


@dataclass(slots=True)
class _Worker(Generic[Item]):
    process: SpawnProcess
    connection: Connection
    number: int | None = None


def guests_at_once(wanted: int) -> int:
    """Return how many guests fit into the memory that is free now: at least one, at most ``wanted``."""
    # MemAvailable:   12345678 kB
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return max(1, min(wanted, int(line.split()[1]) * 1024 // GUEST_BYTES))
    return 1


def each(
    function: Callable[[Item, Shell], Result], items: Sequence[Item], *, where: str, jobs: int = 1
) -> Iterator[tuple[Item, Result | Failed]]:
    """Yield every item with what the function made of it, in the order they were done.

    Args:
        function: of a module's top level; errors of the recorder and of the library make its item fail, no other.
        items: what to work on; they and the results must be plain values when ``jobs`` is above 1.
        where: name of the shell; each worker has its own.
        jobs: how many are done side by side.

    Raises:
        RecorderError: the shell cannot be had.
    """
    if jobs <= 1 or len(items) <= 1:
        with open_shell(where, _tell) as own:
            for item in items:
                yield item, _tried(function, item, own)
        return
    yield from _side_by_side(function, items, where, min(jobs, len(items)))


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _tried(function: Callable[[Item, Shell], Result], item: Item, shell: Shell) -> Result | Failed:
    try:
        return function(item, shell)
    except (RecorderError, McpDetectError) as error:
        return Failed(str(error))


def _work(connection: Connection, function: Callable[[Item, Shell], Result], where: str) -> None:
    """Serve as a worker until there is nothing more to do, or the recorder is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # EOFError, OSError: the recorder has gone. KeyboardInterrupt: it is to end; its cell and guest are taken down.
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt), open_shell(where, _tell) as own:
        while True:
            connection.send(_tried(function, connection.recv(), own))


def _side_by_side(
    function: Callable[[Item, Shell], Result], items: Sequence[Item], where: str, jobs: int
) -> Iterator[tuple[Item, Result | Failed]]:
    context = multiprocessing.get_context("spawn")

    def hired() -> _Worker[Item]:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, function, where))
        process.start()
        theirs.close()
        return _Worker(process, ours)

    waiting = list(range(len(items)))[::-1]
    workers: list[_Worker[Item]] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(hired())
            for worker in workers:
                if worker.number is None and waiting:
                    worker.number = waiting.pop()
                    # OSError: it has died; that shows when its answer is waited for.
                    with contextlib.suppress(OSError):
                        worker.connection.send(items[worker.number])
            ready = wait([worker.connection for worker in workers if worker.number is not None])
            for worker in [one for one in workers if one.connection in ready]:
                number = worker.number
                try:
                    result: Result | Failed = worker.connection.recv()
                except EOFError:
                    worker.process.join()
                    result = Failed(f"the recorder's worker ended with {worker.process.exitcode}")
                    _dismiss(worker)
                    workers.remove(worker)
                else:
                    worker.number = None
                    if not waiting:
                        _dismiss(worker)
                        workers.remove(worker)
                if number is not None:
                    yield items[number], result
    finally:
        for worker in workers:
            if worker.number is not None and worker.process.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.process.pid, signal.SIGINT)
        for worker in workers:
            _dismiss(worker)


def _dismiss(worker: _Worker[Item]) -> None:
    """Let a worker take its shell down and end; one that does not is killed, and the kernel ends what it started."""
    worker.connection.close()
    worker.process.join(_PATIENCE)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()
    worker.process.close()
