"""One line on stderr that shows how far long reading has come; nothing where stderr is no terminal that can erase."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from types import TracebackType

__all__ = ["BUNDLE_FILES", "Progress"]

BUNDLE_FILES = ("manifest.json", "meta.json")
"""A file of such a name stands for the folder it lies in."""

_QUIET_S = 0.5
_EVERY_S = 0.1
_MEGA = 1_000_000
_ERASE = "\r\x1b[2K"


class Progress:
    """A line such as ``reading 120 of 480 MB, 98 MB/s`` on a terminal's stderr, gone when the work ends.

    Short work shows nothing, nor does a terminal that cannot erase a line (``TERM=dumb``).

    Args:
        files: what will be read; their sizes are the total, unknown when one is a pipe.
        wanted: False shows nothing.
    """

    def __init__(self, files: Sequence[Path], *, wanted: bool = True) -> None:
        self._stream = sys.stderr
        erases = os.environ.get("TERM") != "dumb"
        self._live = wanted and erases and self._stream is not None and self._stream.isatty()
        self._total = _total(files) if self._live else 0
        self._start = self._last = monotonic()
        self._done = 0
        self._drawn = False
        self._watch = ExitStack()

    def __enter__(self) -> Progress:
        if self._live:
            from mcpdetect.ingest.opener import observed

            self._watch.enter_context(observed(self._add))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.close()
        self.clear()

    def _add(self, size: int) -> None:
        """Count ``size`` bytes more."""
        self._done += size
        now = monotonic()
        if now - self._start < _QUIET_S or now - self._last < _EVERY_S:
            return
        self._last = now
        of = f" of {_mega(self._total)}" if self._total >= self._done else ""
        self._write(f"{_ERASE}reading {_mega(self._done)}{of} MB, {_mega(int(self._done / (now - self._start)))} MB/s")
        self._drawn = True

    def clear(self) -> None:
        """Take the line away, so that something else can be written."""
        if self._drawn:
            self._write(_ERASE)
            self._drawn = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._live = False


def _mega(size: int) -> str:
    return f"{size / _MEGA:,.0f}" if size >= 10 * _MEGA else f"{size / _MEGA:.1f}"


def _total(files: Sequence[Path]) -> int:
    """Return the size of all evidence in files and folders; 0 when it cannot be known."""
    from mcpdetect.ingest.sniff import FLAGS, sniff

    total = 0
    try:
        for path in files:
            folder = path if path.is_dir() else path.parent if path.name in BUNDLE_FILES else None
            members = [path] if folder is None else [item for item in folder.iterdir() if sniff(item) in FLAGS]
            if not all(member.is_file() for member in members):
                return 0
            total += sum(member.stat().st_size for member in members)
    except OSError:
        return 0
    return total
