"""Opening evidence: plain, gzip and zstandard alike, with one clear error for whatever cannot be read."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import BinaryIO, cast

from mcpdetect.errors import InputError
from mcpdetect.ingest.zstdframes import FrameWatch

__all__ = ["FOREIGN_ERRORS", "Stream", "observed", "open_evidence"]

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"

FOREIGN_ERRORS: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
"""What reading a compressed stream may raise besides zstandard's own error, which ``Stream`` maps."""

_observers: list[Callable[[int], None]] = []


@contextmanager
def observed(observer: Callable[[int], None]) -> Iterator[None]:
    """Tell ``observer``, while the block runs, how many bytes of any evidence file were newly consumed.

    Bytes on disk, so of a compressed file its compressed ones; a pipe counts what came out of it.
    """
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


class Stream:
    """A readable byte stream of one evidence file.

    Attributes:
        name: the name used in places and errors.
        compressed: ``gzip``, ``zstd`` or ``""``.
        once: it comes out of a pipe, so the file cannot be opened again.
        damaged: why the stream ended early, ``""`` when it did not; what came before is good.
    """

    def __init__(self, raw: BinaryIO, name: str, compressed: str, file: BinaryIO | None = None) -> None:
        self._raw = raw
        self._file = file
        self._frames: FrameWatch | None = None
        self._consumed = 0
        self.name = name
        self.compressed = compressed
        self.once = file is not None and not file.seekable()
        self.damaged = ""
        self._returned = b""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, ``b""`` at the end; a damaged compressed stream ends and sets ``damaged``."""
        if self._returned and size > 0:
            data, self._returned = self._returned[:size], self._returned[size:]
            return data
        data = self._read(size)
        if _observers:
            before, self._consumed = self._consumed, self._position(len(data))
            for observer in _observers:
                observer(self._consumed - before)
        return data

    def unread(self, data: bytes) -> None:
        """Give back what was read, to be read again first."""
        self._returned = data + self._returned

    def _position(self, size: int) -> int:
        if self._file is not None:
            try:
                return self._file.tell()
            except (OSError, ValueError):  # a pipe has no position, a closed file neither
                pass
        return self._consumed + size

    def _read(self, size: int) -> bytes:
        if self.damaged:
            return b""
        try:
            # A compressed file that breaks in the middle of read(size) would take what came before with it.
            data = self._raw.read1(size) if self.compressed else self._raw.read(size)  # type: ignore[attr-defined]
        except FOREIGN_ERRORS as error:
            self.damaged = f"the {self.compressed or 'file'} stream broke: {error}"
        except _zstd_error() as error:
            self.damaged = f"the zstd stream broke: {error}"
        else:
            if not data and size and self._frames is not None and not self._frames.whole:
                self.damaged = "the zstd stream broke: it ends in the middle of a frame"
            return data
        return b""

    def read_exactly(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer only at the end."""
        parts: list[bytes] = []
        left = size
        while left and (part := self.read(left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _zstd_error() -> type[Exception]:
    import zstandard

    return cast("type[Exception]", zstandard.ZstdError)


def open_evidence(path: Path, name: str | None = None) -> Stream:
    """Open an evidence file for reading, decompressing it by its magic number.

    Raises:
        InputError: it does not exist, cannot be read, is a directory, a device, or empty. A pipe is read as it is.
    """
    shown = name or str(path)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(
            f"cannot be opened: {error.strerror}", file=shown, hint="check the path and its spelling"
        ) from error
    if stat.S_ISDIR(mode):
        raise InputError(
            "is a directory, not an evidence file", file=shown, hint="give the file itself, or a bundle as TRACE"
        )
    try:
        raw = path.open("rb")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=shown, hint="check its permissions") from error
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raw.close()
        raise InputError("is neither a file nor a pipe", file=shown, cause="a device or socket was named")
    head = raw.peek(4)[:4]
    if not head:
        raw.close()
        raise InputError(
            "is empty",
            file=shown,
            cause="the recorder never started, was killed before its first write, or wrote elsewhere",
            hint="leave the flag out to say that this evidence does not exist",
        )
    if head[:2] == _GZIP:
        unpacked = gzip.GzipFile(fileobj=raw)
        unpacked.myfileobj = cast("FileIO", raw)  # closed with it; by default the file underneath stays open
        return Stream(cast("BinaryIO", unpacked), shown, "gzip", raw)
    if head == _ZSTD:
        import zstandard

        frames = FrameWatch(raw)
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            cast("BinaryIO", frames), read_across_frames=True, closefd=True
        )
        stream = Stream(cast("BinaryIO", reader), shown, "zstd", raw)
        stream._frames = frames
        return stream
    return Stream(raw, shown, "", raw)
