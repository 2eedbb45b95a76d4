"""The host's end of the guest's port: frames of a length and a tar, with time limits."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
import time
from pathlib import Path

import controls
import mcpdetect.data
import mcpdetect.model
from controls.recorder.confine import confine_program
from controls.recorder.job import Job
from controls.recorder.probes import probe_program

__all__ = ["MAX_FRAME", "Port", "code_frame", "job_frame", "unpack"]

MAX_FRAME = 1 << 30
"""A guest that announces more than this is lost: nothing it says is believed further."""
_MAX_FILES = 10_000


class Port:
    """A connection to the guest's port."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, path: Path) -> Port:
        """Connect to QEMU's socket.

        Raises:
            OSError: nothing listens there.
        """
        return cls(*await asyncio.open_unix_connection(path))

    async def send(self, content: bytes) -> None:
        """Send a frame."""
        self._writer.write(len(content).to_bytes(8, "big"))
        self._writer.write(content)
        await self._writer.drain()

    async def receive(self) -> bytes:
        """Return the content of the next frame.

        Raises:
            ValueError: it is longer than ``MAX_FRAME``.
            asyncio.IncompleteReadError: the connection ended.
        """
        size = int.from_bytes(await self._reader.readexactly(8), "big")
        if size > MAX_FRAME:
            raise ValueError(f"the guest announces a frame of {size} bytes")
        return await self._reader.readexactly(size)

    async def close(self) -> None:
        """Close the connection; what was under way is thrown away."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    archive.addfile(info, io.BytesIO(content))


def code_frame() -> bytes:
    """Return the tar of all that the guest must import: this package's recorder and the values it shares."""
    out = io.BytesIO()
    here, model = Path(controls.__path__[0]), Path(mcpdetect.model.__path__[0])
    data = Path(mcpdetect.data.__path__[0])
    with tarfile.open(fileobj=out, mode="w") as archive:
        _add(archive, "controls/__init__.py", b"")
        for path in sorted((here / "recorder").rglob("*.py")):
            _add(archive, f"controls/{path.relative_to(here)}", path.read_bytes())
        # The package's own __init__ would import the whole library.
        _add(archive, "mcpdetect/__init__.py", b"")
        _add(archive, "mcpdetect/data/__init__.py", b"")
        _add(archive, "mcpdetect/data/probe/probe.c", (data / "probe/probe.c").read_bytes())
        for path in sorted(model.glob("*.py")):
            _add(archive, f"mcpdetect/model/{path.name}", path.read_bytes())
        # Built here: there is no compiler in the guest, which knows each by the hash of its source.
        _add(archive, "controls/recorder/confine.c", (here / "recorder/confine.c").read_bytes())
        for program in (probe_program(), confine_program()):
            _add(archive, f"cache/{program.name}", program.read_bytes(), 0o755)
    return out.getvalue()


def job_frame(job: Job, programs: Path) -> bytes:
    """Return the tar of one job."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        _add(archive, "job.json", job.text().encode())
        _add(archive, "seed", os.urandom(64))
        archive.add(programs, arcname="programs", filter=_plain)
        _add(archive, "now", str(time.time_ns()).encode())
    return out.getvalue()


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def unpack(content: bytes, folder: Path) -> None:
    """Unpack what a guest sent: plain files at the top level, whatever else it may hold is left out.

    Raises:
        tarfile.TarError: it is no tar.
    """
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for number, info in enumerate(archive):
            name = info.name.removeprefix("./")
            if number > _MAX_FILES:
                raise tarfile.ReadError("too many files")
            if not info.isfile() or not name or "/" in name or name in (".", "..") or "\0" in name:
                continue
            member = archive.extractfile(info)
            if member is not None:
                (folder / name).write_bytes(member.read())
