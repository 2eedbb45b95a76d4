"""Long-running helpers of a cell: started, awaited and stopped by process id."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from controls.recorder.errors import RecorderError
from controls.recorder.tools import environment

__all__ = ["Background", "await_line", "wait_until"]

_PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    """Ask the kernel to kill this child when the recorder dies, however it dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(ready: Callable[[], bool], what: str, seconds: float = 15.0) -> None:
    """Wait for a condition, looking every 10 ms.

    Raises:
        RecorderError: it did not come true in time.
    """
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise RecorderError(f"{what}: not within {seconds:g} s")
        time.sleep(0.01)


def await_line(stream: IO[bytes], wanted: bytes, what: str, seconds: float = 15.0) -> str:
    """Read a helper's output until a line holds ``wanted``; return what was read.

    Raises:
        RecorderError: the helper ended or stayed silent.
    """
    seen = bytearray()
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while wanted not in seen:
            left = end - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise RecorderError(f"{what}: not ready within {seconds:g} s: {bytes(seen)!r}")
            part = os.read(stream.fileno(), 4096)
            if not part:
                raise RecorderError(f"{what}: ended before it was ready: {bytes(seen)!r}")
            seen += part
    return seen.decode("utf-8", "backslashreplace")


class Background:
    """One helper process, in a namespace or not."""

    def __init__(
        self,
        what: str,
        argv: Sequence[str],
        *,
        netns: int | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
        env: dict[str, str] | None = None,
        keep: Sequence[int] = (),
    ) -> None:
        """Start it.

        Args:
            what: its name in errors.
            argv: the command.
            netns: process id whose network namespace it shall live in.
            cwd: its working directory.
            stdin: as for Popen.
            stdout: as for Popen.
            stderr: as for Popen.
            env: its environment; the recorder's fixed one when None.
            keep: descriptors it inherits, under the same numbers.
        """
        self.what = what
        enter = ["nsenter", f"--net=/proc/{netns}/ns/net", "--"] if netns is not None else []
        try:
            self.process = subprocess.Popen(
                [*enter, *argv],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=env if env is not None else environment(),
                preexec_fn=_die_with_parent,
                start_new_session=True,
                pass_fds=tuple(keep),
            )
        except OSError as error:
            raise RecorderError(f"{what}: {error}") from error

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 5.0) -> int | None:
        """Signal it, wait, kill it if it stays; return its exit status."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(how)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5.0)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return self.process.returncode
