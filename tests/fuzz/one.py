"""One target in a process of its own: ``python one.py NAME ENGINE SECONDS SEED FOLDER`` (fuzz.py calls it).

``FOLDER/seeds`` holds the inputs to begin with; an input that breaks the contract is kept in ``FOLDER/found``.
"""

from __future__ import annotations

import hashlib
import importlib
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from targets import TARGETS, Target

__all__ = ["guided", "main", "mutated", "unguided"]

_ONE_INPUT = 20
_MEMORY_MB = 2048


class _TooSlow(BaseException):
    """One input took longer than ``_ONE_INPUT`` seconds."""


def guided(target: Target, seconds: int, seed: int, folder: Path) -> None:
    """Fuzz with atheris: coverage of mcpdetect's own code guides it."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["mcpdetect"]):
        attempt = target.load()
    options = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-max_len={target.longest}",
        f"-timeout={_ONE_INPUT}",
        f"-rss_limit_mb={_MEMORY_MB}",
        f"-artifact_prefix={folder / 'found'}/",
        "-print_final_stats=1",
        "-verbosity=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(folder / "seeds")], attempt)
    atheris.Fuzz()


def mutated(chance: random.Random, seeds: list[bytes], longest: int) -> bytes:
    """Return a seed changed in a few places: bits, bytes, runs taken out, repeated, or taken from another seed."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        at = chance.randrange(len(data) + 1)
        size = chance.choice([1, 1, 2, 4, 16, 256])
        how = chance.randrange(7)
        if how == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            data[at : at + size] = chance.randbytes(size)
        elif how == 2:
            del data[at : at + size]
        elif how == 3:
            data[at:at] = data[at : at + size] * chance.choice([1, 2, 50])
        elif how == 4:
            other = chance.choice(seeds)
            start = chance.randrange(len(other) + 1)
            data[at:at] = other[start : start + 4 * size]
        elif how == 5:
            data[at : at + size] = chance.choice([b"\x00", b"\xff", b"\n", b'"', b"\\", b"<", b"("]) * size
        else:
            del data[at:]
    return bytes(data[:longest])


def unguided(target: Target, seconds: int, seed: int, folder: Path) -> None:
    """Fuzz by changing seeds at random: finds less than atheris, and needs nothing."""
    attempt = target.load()
    chance = random.Random(seed)  # noqa: S311
    seeds = [path.read_bytes() for path in sorted((folder / "seeds").iterdir())] or [b""]

    def alarm(_number: int, _frame: FrameType | None) -> None:
        raise _TooSlow

    signal.signal(signal.SIGALRM, alarm)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = mutated(chance, seeds, target.longest)
        count += 1
        signal.alarm(_ONE_INPUT)
        kept = False
        try:
            attempt(data)
            kept = True
        finally:
            signal.alarm(0)
            if not kept:
                (folder / "found" / f"crash-{hashlib.sha1(data).hexdigest()}").write_bytes(data)  # noqa: S324
    print(f"stat::number_of_executed_units: {count}")


def main() -> None:
    """Fuzz one target, or try the inputs given as files."""
    name, engine, seconds, seed, folder = sys.argv[1:6]
    target = TARGETS[name]
    if engine == "try":
        attempt = target.load()
        for path in sys.argv[6:]:
            try:
                attempt(Path(path).read_bytes())
            except (AssertionError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, OSError):
                traceback.print_exc()
                sys.exit(1)
        return
    work = guided if engine == "atheris" else unguided
    work(target, int(seconds), int(seed), Path(folder))


if __name__ == "__main__":
    main()
