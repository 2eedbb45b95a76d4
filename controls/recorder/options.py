"""Options of a run that may bring out what waits: for a date, for a place, for nobody watching."""

from __future__ import annotations

import re
from pathlib import Path

from controls.recorder.errors import RecorderError

__all__ = ["CI", "CLOCK", "SHELLS", "clock_options", "surroundings"]

SHELLS = ("netns", "microvm")
"""Where a cell can stand: in namespaces of this machine, or in a guest."""

CLOCK = re.compile(r"[+-]\d{1,6}[smhd]")
"""A shift of the clock: ``+400d``, ``-2h``."""

CI = {
    "CI": "true",
    "CONTINUOUS_INTEGRATION": "true",
    "BUILD_NUMBER": "1",
    "GITHUB_ACTIONS": "true",
    "RUNNER_OS": "Linux",
}
"""Variables by which programs know that they run in a build and nobody watches."""

_LIBRARIES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime")


def surroundings(*, ci: bool, locale: str, timezone: str | None) -> dict[str, str]:
    """Return the variables that a run's options set.

    Args:
        ci: set those of ``CI``.
        locale: such as ``de_DE.UTF-8``.
        timezone: such as ``Asia/Tokyo``, None for the machine's.
    """
    found = {"LANG": locale, **(CI if ci else {})}
    return found if timezone is None else {**found, "TZ": timezone}


def clock_options(shift: str | None) -> list[str]:
    """Return strace's options that shift the target's clock and not strace's own.

    A time namespace moves the monotonic clocks alone, and the true clock belongs to the whole machine. So the library
    ``libfaketime`` goes before the C library: a program that asks the kernel itself, as static ones and Go do, is told
    the true time, and the variables can be seen by who looks.

    Args:
        shift: as in ``CLOCK``; None shifts nothing.

    Raises:
        RecorderError: the library is not installed.
    """
    if shift is None:
        return []
    library = next((path for folder in _LIBRARIES if (path := Path(folder, "libfaketime.so.1")).is_file()), None)
    if library is None:
        raise RecorderError("a shifted clock needs libfaketime (apt-get install faketime)")
    return ["-E", f"LD_PRELOAD={library}", "-E", f"FAKETIME={shift}", "-E", "FAKETIME_NO_CACHE=0"]
