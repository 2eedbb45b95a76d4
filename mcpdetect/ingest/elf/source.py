"""A program file as a stream that can seek, whatever it is kept in."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from mcpdetect.errors import InputError
from mcpdetect.ingest.opener import open_evidence

__all__ = ["open_seekable"]

_MOST_UNPACKED = 256 * 1024 * 1024
_BLOCK = 1 << 20


@contextmanager
def open_seekable(source: Path | BinaryIO, name: str | None = None) -> Iterator[tuple[BinaryIO, str]]:
    """Give a stream of a file that can seek, and the name used in places and errors.

    A plain file is read where it lies; a compressed one (or a pipe) is unpacked into memory, 256 MiB at most.

    Raises:
        InputError: it cannot be opened, is empty, is damaged, or is too large to unpack.
    """
    if not isinstance(source, Path):
        yield source, name or str(getattr(source, "name", "stream"))
        return
    shown = name or str(source)
    with open_evidence(source, shown) as stream:
        if not stream.compressed and source.is_file():
            with source.open("rb") as plain:
                yield plain, shown
            return
        parts: list[bytes] = []
        total = 0
        while part := stream.read(_BLOCK):
            parts.append(part)
            total += len(part)
            if total > _MOST_UNPACKED:
                raise InputError(
                    f"unpacks to more than {_MOST_UNPACKED >> 20} MiB", file=shown, hint="give it uncompressed"
                )
        if stream.damaged:
            raise InputError("is damaged", file=shown, value=stream.damaged, hint="compress or copy it again")
        yield cast("BinaryIO", io.BytesIO(b"".join(parts))), shown
