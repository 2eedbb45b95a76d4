"""The guest's agent: takes frames from a virtio port, runs what they hold, and answers. Standard library alone.

A frame is a length of 8 bytes, big endian, and a tar. The first frame after boot is code, which is unpacked and
imported, so that a snapshot holds it ready; every later one is a job, which that code runs and answers, or empty, which
asks whether the agent is there. Whatever it does not expect ends the agent; the guest panics, and its console says why.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import tarfile
import time
from pathlib import Path

CODE = Path("/run/code")
JOB = Path("/run/job")


def receive(port: int) -> bytes:
    """Return the next frame's content."""
    size = int.from_bytes(exactly(port, 8), "big")
    return exactly(port, size)


def exactly(port: int, size: int) -> bytes:
    """Return exactly ``size`` bytes; a port without a listener gives none, and is asked again."""
    data = bytearray()
    while len(data) < size:
        part = os.read(port, min(1 << 16, size - len(data)))
        if not part:
            time.sleep(0.005)
        data += part
    return bytes(data)


def send(port: int, content: bytes) -> None:
    """Send a frame."""
    frame = memoryview(len(content).to_bytes(8, "big") + content)
    while frame:
        frame = frame[os.write(port, frame[: 1 << 15]) :]


def unpack(content: bytes, folder: Path) -> None:
    """Unpack a tar of the recorder's own making."""
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(folder)


def main() -> None:
    """Serve until the machine ends."""
    port = os.open(sys.argv[1], os.O_RDWR)
    send(port, b"booted")
    unpack(receive(port), CODE)
    sys.path.insert(0, str(CODE))
    os.environ.update(MCPDETECT_CACHE=str(CODE / "cache"), PYTHONPATH=str(CODE))
    inside = importlib.import_module("controls.recorder.microvm.inside")
    inside.prepare()
    send(port, b"ready")
    while True:
        content = receive(port)
        if not content:
            send(port, b"ready")
            continue
        unpack(content, JOB)
        inside.run(JOB, lambda content: send(port, content))


if __name__ == "__main__":
    main()
