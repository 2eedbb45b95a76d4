"""The recorder's probes: the program that ``mcpdetect probe`` prints, built, and the acts the recorder adds itself."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import select
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import mcpdetect.data
from controls.recorder.tools import run
from mcpdetect.model.probe_acts import PHASES, Phase, ProbeActs
from mcpdetect.model.vocabulary import Channel

__all__ = ["SOURCE", "Probes", "built_program", "cache_folder", "ended", "fresh_nonces", "probe_program"]

SOURCE = Path(mcpdetect.data.__file__).parent / "probe" / "probe.c"
"""The source of the probe program."""


def cache_folder() -> Path:
    """Return the recorder's cache, made if needed: ``MCPDETECT_CACHE``, else a folder in ``/var/cache``.

    Not in a home: QEMU runs as nobody and must read the image.
    """
    folder = Path(os.environ.get("MCPDETECT_CACHE") or "/var/cache/mcpdetect")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def probe_program() -> Path:
    """Return the probe program, built from its source unless that was done before.

    Raises:
        RecorderError: there is no compiler, or it fails.
    """
    return built_program(SOURCE)


def built_program(source: Path) -> Path:
    """Return the static program of one C source, from the cache if it was built before.

    Raises:
        RecorderError: there is no compiler, or it fails.
    """
    name = f"{source.stem}-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
    built = cache_folder() / name
    if not built.exists():
        handle, temporary = tempfile.mkstemp(prefix=name, dir=built.parent)
        os.close(handle)
        run("gcc", "-O1", "-Wall", "-static", "-o", temporary, str(source))
        Path(temporary).chmod(0o755)
        Path(temporary).replace(built)
    return built


@dataclass(slots=True)
class Probes:
    """The two probes of one recording, and the pipes over which the launcher and the recorder speak.

    Attributes:
        acts: by phase.
        reached: phases that were run, with the channels that must show them.
    """

    acts: dict[Phase, ProbeActs]
    reached: dict[Phase, list[Channel]] = field(default_factory=dict)
    report: int = -1
    answer: int = -1
    _theirs: tuple[int, int] = (-1, -1)

    def open(self) -> tuple[int, int]:
        """Make the pipes; return the launcher's ends: where it reports, where it is answered."""
        self.report, theirs_report = os.pipe()
        theirs_answer, self.answer = os.pipe()
        self._theirs = (theirs_report, theirs_answer)
        return self._theirs

    def started(self) -> None:
        """Close the launcher's ends here: it has its own by now."""
        for fd in self._theirs:
            with contextlib.suppress(OSError):
                os.close(fd)
        self._theirs = (-1, -1)

    def let_probe(self) -> None:
        """Hand over the second nonce, which makes the launcher probe again and end."""
        with contextlib.suppress(OSError):
            os.write(self.answer, self.acts["after"].nonce.encode())

    def close(self) -> None:
        """Close the pipes; a launcher that still waits goes on without a second probe."""
        self.started()
        for fd in (self.report, self.answer):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self.report = self.answer = -1


def fresh_nonces() -> dict[Phase, str]:
    """Return new nonces for the two probes of a run."""
    return {phase: secrets.token_hex(8) for phase in PHASES}


def ended(report: int, seconds: float) -> bool:
    """Wait until the launcher reports the target's end; return whether it did in time (or closed its pipe)."""
    return bool(select.select([report], [], [], max(0.0, seconds))[0])
