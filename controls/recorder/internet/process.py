"""The fake internet's process as the recorder sees it: started, or waiting already with everything loaded."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import IO

from controls.recorder.background import Background, await_line
from controls.recorder.errors import RecorderError
from controls.recorder.internet.settings import Settings
from controls.recorder.tools import environment

__all__ = ["load_one", "start"]

_ROOT = Path(__file__).resolve().parents[3]
_START_SECONDS = 60.0
"""How long it may take to start, in an emulated machine on a busy host."""
_WHAT = "fake internet"
_PACKAGES = ("cryptography", "h11", "h2")
_loaded: list[Background] = []


def load_one() -> None:
    """Start a process that loads all it may need and waits: in a guest that is saved, so that no case pays for it.

    Raises:
        RecorderError: it did not come up.
    """
    one = _process("--loaded", stderr=subprocess.DEVNULL)
    if one.process.stdout is not None:
        await_line(one.process.stdout, b"loaded", _WHAT, _START_SECONDS)
    _loaded.append(one)


def start(settings: Settings, netns: int, said: Path) -> Background:
    """Start a fake internet and wait until it listens.

    Args:
        settings: its settings.
        netns: process id that holds its network namespace.
        said: file for what it says to standard error, where it is started now.

    Raises:
        RecorderError: a Python package is missing, or it did not come up; the message has what it said.
    """
    absent = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if absent:
        raise RecorderError(f"the fake internet needs more Python packages (pip install {' '.join(absent)})")
    if _loaded:
        one = _loaded.pop()
        settings.namespace = f"/proc/{netns}/ns/net"
        said.touch()
    else:
        with said.open("wb") as stderr:
            one = _process(stderr=stderr, netns=netns)
    try:
        if one.process.stdin is not None and one.process.stdout is not None:
            one.process.stdin.write(settings.line().encode())
            one.process.stdin.flush()
            await_line(one.process.stdout, b"ready\n", _WHAT, _START_SECONDS)
    except (RecorderError, OSError) as error:
        one.stop()
        raise RecorderError(f"{error}\n{said.read_text(errors='backslashreplace')[-2000:]}") from error
    return one


def _process(*options: str, stderr: int | IO[bytes], netns: int | None = None) -> Background:
    return Background(
        _WHAT,
        [sys.executable, "-m", "controls.recorder.internet", *options],
        netns=netns,
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**environment(), "PYTHONPATH": str(_ROOT)},
    )
