"""The programs that ran: which files they were, by hash, what their ELF headers say, and whose they are."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from controls.recorder.errors import RecorderError
from controls.recorder.tools import environment
from mcpdetect.model.text import text_of

__all__ = ["COPIED_BELOW", "Program", "executed", "look", "packages_of", "refused"]

COPIED_BELOW = 1 << 20
"""A program of no distribution package is copied into the bundle if it is smaller."""
_MOST_PROGRAMS = 200
_AT_ONCE = 50
_SECONDS = 120
_BLOCK = 1 << 20
# 42 1796040939.371016 execve("/usr/bin/env", ["env", "node"], 0x7ffe /* 9 vars */) = 0 <0.000300>
# 43 1796040939.380000 execve("/bin/sh", ["sh", "-c"], 0x5581 /* 9 vars */ <unfinished ...>
_EXEC = re.compile(rb'^(?:\d++ ++)?+(?:[\d.:]++ )?+execve\("((?:[^"\\]|\\.)*+)"')
# ... = -1 ENOEXEC (Exec format error) <0.000031>
_ERROR = re.compile(rb"\) = -1 (E[A-Z0-9]++ \([^()]*+\))(?: <[\d.]++>)?+\s*$")
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-f]{2})|(.))", re.DOTALL)
_PLAIN = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
_packages: dict[str, str | None] = {}
"""What is known of the distribution's programs: its packages stay as they are while a recorder runs."""
_PT_DYNAMIC, _PT_INTERP = 2, 3  # System V gABI, figure 5-2


@dataclass(slots=True)
class Program:
    """One program file.

    Attributes:
        path: where it lay in the room.
        sha256, bytes: of the file; None where it could not be found again.
        kind: ``elf``, ``script`` or ``other``.
        machine, bits, linkage: what its ELF header says: the processor's number, 32 or 64, and ``dynamic``,
            ``static-pie``, ``static`` or ``other``.
        package: the Debian package it belongs to.
        copied: its name in the bundle, where it was kept.
    """

    path: str
    sha256: str | None = None
    bytes: int | None = None
    kind: str = "other"
    machine: int | None = None
    bits: int | None = None
    linkage: str | None = None
    package: str | None = None
    copied: str | None = None


def _plain(escaped: bytes) -> bytes:
    """Return what strace wrote with C escapes."""

    def one(match: re.Match[bytes]) -> bytes:
        if match[1] is not None:
            return bytes([int(match[1], 8) & 0xFF])
        if match[2] is not None:
            return bytes([int(match[2], 16)])
        return _PLAIN.get(match[3], match[3])

    return _ESCAPE.sub(one, escaped)


def executed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the path of every execve in strace's log that did not fail, as often as it occurs."""
    for line in lines:
        if line.find(b"execve(", 0, 64) < 0 or b") = -1 E" in line[-80:]:
            continue
        match = _EXEC.match(line)
        if match is not None:
            yield _plain(match[1])


def refused(lines: Iterable[bytes], program: str) -> str | None:
    """Return why a program never started, None where it did or nothing says so.

    Args:
        lines: strace's log.
        program: its path.
    """
    why = None
    for line in lines:
        if line.find(b"execve(", 0, 64) < 0:
            continue
        match = _EXEC.match(line)
        if match is None or _plain(match[1]) != os.fsencode(program):
            continue
        error = _ERROR.search(line[-200:])
        if error is None:
            return None
        why = f"the program did not start: {program}: {error[1].decode('ascii', 'backslashreplace')}"
        if error[1].startswith(b"ENOEXEC"):
            why += "; it is for another kind of machine, or no program"
        elif error[1].startswith(b"ENOENT"):
            why += "; it, its interpreter or its loader is not in the cell"
    return why


def _opened(root: Path, inside: PurePosixPath) -> int | None:
    """Open a plain file below a folder whose content is the target's: no link is followed, whatever it points to."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    folder = None
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        for part in inside.parts[:-1]:
            below = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        found = os.open(inside.name, flags, dir_fd=folder)
    except OSError:
        return None
    finally:
        if folder is not None:
            os.close(folder)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        return None
    return found


def _found(path: str, roots: Mapping[str, Path]) -> int | None:
    pure = PurePosixPath(path)
    if ".." in pure.parts:
        return None
    for place, root in roots.items():
        if pure.is_relative_to(place) and pure != PurePosixPath(place):
            return _opened(root, pure.relative_to(place))
    if pure.is_relative_to("/usr") or (len(pure.parts) > 1 and pure.parts[1] in ("bin", "sbin", "lib", "lib64")):
        real = Path(path).resolve()
        with contextlib.suppress(OSError):
            return os.open(real, os.O_RDONLY | os.O_CLOEXEC) if real.is_file() else None
    return None


def _elf(head: bytes, program: Program, descriptor: int) -> None:
    """Fill in what an ELF header and its program headers say."""
    program.kind = "elf"
    bits = {1: 32, 2: 64}.get(head[4] if len(head) > 4 else 0)
    order = {1: "<", 2: ">"}.get(head[5] if len(head) > 5 else 0)
    if bits is None or order is None or len(head) < 64:
        return
    kind, program.machine = struct.unpack_from(f"{order}HH", head, 16)
    program.bits = bits
    offset, size, count = (
        (struct.unpack_from(f"{order}Q", head, 32)[0], *struct.unpack_from(f"{order}HH", head, 54))
        if bits == 64
        else (struct.unpack_from(f"{order}I", head, 28)[0], *struct.unpack_from(f"{order}HH", head, 42))
    )
    found = set()
    for at in range(min(count, 64)):
        with contextlib.suppress(OSError, OverflowError, struct.error):
            found.add(struct.unpack(f"{order}I", os.pread(descriptor, 4, offset + at * size))[0])
    if _PT_INTERP in found:
        program.linkage = "dynamic"
    elif kind in (2, 3):
        program.linkage = "static-pie" if _PT_DYNAMIC in found else "static"
    else:
        program.linkage = "other"


def packages_of(paths: Sequence[str]) -> dict[str, str]:
    """Return the Debian package of each path that has one; no path is asked about twice.

    Args:
        paths: absolute paths of the distribution's programs.
    """
    new = [path for path in dict.fromkeys(paths) if path not in _packages]
    # Not all at once: a target may choose paths so long that they fit on no command line together.
    for at in range(0, len(new), _AT_ONCE):
        some = new[at : at + _AT_ONCE]
        _packages.update(dict.fromkeys(some) | _owners(some))
    return {path: package for path in paths if (package := _packages[path]) is not None}


def _owners(paths: Sequence[str]) -> dict[str, str | None]:
    asked: dict[str, set[str]] = {}
    for path in paths:
        real = os.path.realpath(path)
        # Packages of before the merge of /usr still name /bin/sh.
        for name in (real, real.removeprefix("/usr"), path):
            asked.setdefault(name, set()).add(path)
    if not asked or shutil.which("dpkg-query", path=environment()["PATH"]) is None:
        return {}
    command = ["dpkg-query", "-S", *asked]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False, env=environment())
    except subprocess.TimeoutExpired as error:
        raise RecorderError(f"dpkg-query: no answer within {_SECONDS} s") from error
    owners: dict[str, str | None] = {}
    # dash: /bin/sh     libc6:amd64: /lib64/ld-linux-x86-64.so.2     diversion by dash from: /bin/sh
    for line in os.fsdecode(done.stdout).splitlines():
        names, _, name = line.rpartition(": ")
        if not line.startswith("diversion "):
            owners |= dict.fromkeys(asked.get(name, ()), names.split(",")[0])
    return owners


def look(log: Path, roots: Mapping[str, Path], ours: frozenset[str], copies: Path | None) -> list[Program]:
    """Return the programs that ran, in the order of their first run.

    Args:
        log: strace's log.
        roots: folder in the room -> where it is found, for the folders that are the target's own.
        ours: paths of the recorder's own programs.
        copies: folder for copies, None for none.
    """
    with log.open("rb") as stream:
        paths = list(dict.fromkeys(os.fsdecode(path) for path in executed(stream)))
    absolute = [path for path in paths if path.startswith("/") and "\0" not in path and path not in ours]
    absolute = absolute[:_MOST_PROGRAMS]
    packages = packages_of([path for path in absolute if not any(path.startswith(f"{one}/") for one in roots)])
    programs = []
    for path in absolute:
        program = Program(text_of(os.fsencode(path)), package=packages.get(path))
        programs.append(program)
        descriptor = _found(path, roots)
        if descriptor is None:
            continue
        with open(descriptor, "rb") as file:  # noqa: PTH123
            head = file.read(64)
            digest, size = hashlib.sha256(head), len(head)
            while part := file.read(_BLOCK):
                digest.update(part)
                size += len(part)
            program.sha256, program.bytes = digest.hexdigest(), size
            if head.startswith(b"\x7fELF"):
                _elf(head, program, file.fileno())
                if copies is not None and program.package is None and size < COPIED_BELOW:
                    program.copied = f"program-{len(programs)}.elf"
                    file.seek(0)
                    with (copies / program.copied).open("wb") as copy:
                        shutil.copyfileobj(file, copy)
            elif head.startswith(b"#!"):
                program.kind = "script"
    return programs
