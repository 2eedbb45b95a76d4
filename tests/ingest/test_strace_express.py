"""Common calls read in one match give the very events, and losses, that the general way of reading gives."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from mcpdetect.ingest.strace import StraceLog
from mcpdetect.ingest.strace.express import EXPRESS
from mcpdetect.model.event import Event
from mcpdetect.model.observation import Observation

_BEGIN = [
    'execve("/bin/a", ["a"], 0x7ffd /* 3 vars */) = 0 <0.000200>',
    'openat(AT_FDCWD</srv>, "f", O_RDONLY|O_CLOEXEC) = 3</srv/f> <0.000010>',
    'openat(AT_FDCWD</srv>, "/srv", O_RDONLY|O_DIRECTORY) = 4</srv> <0.000010>',
    "pipe2([5<pipe:[9]>, 6<pipe:[9]>], O_CLOEXEC) = 0",
    "eventfd2(0, EFD_CLOEXEC) = 9<anon_inode:[eventfd]>",
    'link("/srv", "/other") = 0',
]
_READ = [
    'read(3</srv/f>, "abc\\n"..., 4096) = 888 <0.000012>',
    'read(3</srv/f>, "", 4096) = 0',
    'read(3</srv/f>, "say \\"no\\"", 64) = 8',
    'read(3</srv/f>, "end\\\\", 64) = 4',
    'pread64(3</srv/f>, "\\177ELF"..., 784, 64) = 784',
    'write(3</srv/f>, "x) = 3", 6) = 6',
    'pwrite64(3</srv/f>, "x", 1, 0) = 1',
    'read(5<pipe:[9]>, "x", 1) = 1',
    'write(6<pipe:[9]>, "x", 1) = 1',
    "mmap(NULL, 2021, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3</srv/f>, 0x3000) = 0x7f1c6f0f5000",
    "getdents64(4</srv>, 0x55d5 /* 5 entries */, 32768) = 144",
    'newfstatat(3</srv/f>, "", {st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}, AT_EMPTY_PATH) = 0',
    'statx(3</srv/f>, "", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL, ...}) = 0',
    'statx(AT_FDCWD</srv>, "../a", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7ffd) = -1 ENOENT (No such file or directory)',
    "close(3</srv/f>) = 0",
    "close(8</dev/null<char 1:3>>) = 0 <0.000008>",
    "close(6<pipe:[9]>) = 0",
    'openat(AT_FDCWD</srv>, "/dev/null", O_RDWR) = 7</dev/null<char 1:3>> <0.000010>',
    'openat(4</srv>, "g", O_RDONLY|O_DIRECTORY) = 7</srv/g> <0.000010>',
    'openat(4</srv>, "g", O_RDONLY) = -1 ENOENT (No such file or directory)',
    'newfstatat(4</srv>, "f", {st_mode=S_IFREG|0644, st_size=7, ...}, AT_SYMLINK_NOFOLLOW) = 0',
    'newfstatat(4</srv>, "", 0x7ffd, AT_EMPTY_PATH) = -1 EFAULT (Bad address)',
    "fcntl(3</srv/f>, F_GETFD) = 0x1 (flags FD_CLOEXEC)",
    "fcntl(3</srv/f>, F_GETFL) = 0x8000 (flags O_RDONLY|O_LARGEFILE) <0.000010>",
    "fcntl(3</srv/f>, F_SETFL, O_RDONLY|O_NONBLOCK) = 0",
    "fcntl(3</srv/f>, F_SETFD, 0) = 0",
    "fcntl(4</srv>, F_SETFD, FD_CLOEXEC) = 0",
    "fcntl(3</srv/f>, F_DUPFD_CLOEXEC, 3) = 7</srv/f>",
    "fcntl(3</srv/f>, F_DUPFD, 3) = 7</srv/f> <0.000010>",
    "dup2(3</srv/f>, 4</srv>) = 4</srv/f>",
    "dup2(3</srv/f>, 3</srv/f>) = 3</srv/f>",
    "dup2(6<pipe:[9]>, 1</dev/null<char 1:3>>) = 1<pipe:[9]> <0.000011>",
    "pipe2([7<pipe:[8]>, 8<pipe:[8]>], O_CLOEXEC) = 0",
    "exit_group(0) = ?",
    'read(9<anon_inode:[eventfd]>, "\\1\\0", 1024) = 8 <0.000009>',
    'write(9<anon_inode:[eventfd]>, "\\1\\0", 8) = 8 <0.000009>',
    "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f88cb39a000 <0.000012>",
    "mmap(0x7f88, 8192, PROT_NONE, MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0) = 0x7f88",
    'newfstatat(5<pipe:[9]>, "", {st_mode=S_IFIFO|0600, st_size=0, ...}, AT_EMPTY_PATH) = 0 <0.000011>',
]
_HALVES = [
    ("read(3</srv/f>,  <unfinished ...>", 'read resumed>"abc\\n"..., 4096) = 888 <0.000012>'),
    ("read(3</srv/f>,  <unfinished ...>", "read resumed> <unfinished ...>) = ?"),
    ('read(3</srv/f>, "",  <unfinished ...>', "read resumed>4096) = 0"),
    ("close(3</srv/f> <unfinished ...>", "close resumed>) = 0"),
    ("close(3</srv/f>,  <unfinished ...>", "close resumed>) = 0"),
    ("close(3</srv/f> <unfinished ...>", "close resumed> )   = 0"),
    ("dup2(3</srv/f>, 4</srv> <unfinished ...>", "dup2 resumed>) = 4</srv/f>"),
    ('openat(AT_FDCWD</srv>, "g", O_RDONLY <unfinished ...>', "openat resumed>) = 7</srv/g> <0.000010>"),
    ('openat(AT_FDCWD</srv>, "g", O_RDONLY <unfinished ...>', "close resumed>) = 0"),
]
_AFTER = [
    'read(3</srv/f>, "z", 9) = 1',
    'read(4</srv/f>, "z", 9) = 1',
    'read(4</srv>, "z", 9) = 1',
    'read(7</srv/f>, "z", 9) = 1',
    'read(1<pipe:[9]>, "z", 9) = 1',
    'read(6<pipe:[9]>, "z", 9) = 1',
    'execve("/bin/b", ["b"], 0x7ffd /* 3 vars */) = 0 <0.000200>',
    'read(3, "z", 9) = 1',
    'read(4, "z", 9) = 1',
    'read(7, "z", 9) = 1',
    'read(8, "z", 9) = 1',
]
_LEFT = [
    'read(3</srv/f>, "a"b", 64) = 3',
    'read(3</srv/f>, "end\\", 64) = 4',
    'read(3</srv/g>, "a", 64) = 1',
    'read(7</srv/f>, "a", 64) = 1',
    'read(3</srv/f>, "a", 64) = -1 EIO (Input/output error)',
    'newfstatat(3</srv/f>, "", {st_mode=(S_IFREG|0644, st_size=7, ...}, AT_EMPTY_PATH) = 0',
    'statx(AT_FDCWD</srv>, "/a", AT_STATX_SYNC_AS_STAT, STATX_ALL, {stx_mask=[STATX_ALL, ...}) = 0',
    'openat(AT_FDCWD</srv>, "/srv/\xff", O_RDONLY) = -1 ENOENT (No such file or directory)',
    "close(3</memfd:x>) = 0",
    "close(3</srv/\\351>) = 0",
    "close(3<TCP:[7]>) = 0",
    "dup2(3</srv/f>, 4</srv>) = 4</srv/g>",
    "dup2(9</srv/f>, 4</srv>) = 4</srv/f>",
    "fcntl(9</srv/f>, F_DUPFD, 3) = 7</srv/f>",
    "fcntl(3</srv/f>, F_SETFD, 0x1) = 0",
    'openat(4</memfd:x>, "g", O_RDONLY) = -1 ENOTDIR (Not a directory)',
    'newfstatat(4</memfd:x>, "g", 0x7ffd, 0) = -1 ENOTDIR (Not a directory)',
]


def _read(path: Path) -> tuple[list[Event], Observation]:
    log = StraceLog(path, "trace.log")
    return list(log.events()), log.observation


def _log(path: Path, calls: list[str]) -> Path:
    lines = [f"7     1796037399.{number:06} {call}\n" for number, call in enumerate(calls)]
    path.write_bytes("".join([*lines, "7     1796037400.000000 +++ exited with 0 +++\n"]).encode("latin-1"))
    return path


@pytest.mark.parametrize("call", [*_READ, *_LEFT])
def test_a_call_reads_the_same_in_one_match_and_in_the_general_way(tmp_path: Path, call: str) -> None:
    path = _log(tmp_path / "trace.log", [*_BEGIN, call, *_AFTER])
    events, observation = _read(path)
    with patch.dict(EXPRESS, clear=True):
        assert (events, observation) == _read(path)
    assert len(events) > len(_BEGIN)


@pytest.mark.parametrize(("begin", "end"), _HALVES)
def test_halves_read_the_same_in_one_match_and_in_the_general_way(tmp_path: Path, begin: str, end: str) -> None:
    # the first block of a log is read line by line
    plain = [f'openat(AT_FDCWD</srv>, "{number:080}", O_RDONLY) = -1 ENOENT (No such file or directory)'
             for number in range(1000)]  # fmt: skip
    path = _log(tmp_path / "trace.log", [*_BEGIN, *plain, begin, f"<... {end}", *_AFTER])
    events, observation = _read(path)
    with patch.dict(EXPRESS, clear=True):
        assert (events, observation) == _read(path)
    assert len(events) > 1000 + len(_BEGIN)


def test_calls_that_are_plain_are_read_in_one_match() -> None:
    from mcpdetect.ingest.strace.account import Account
    from mcpdetect.ingest.strace.core import Core
    from mcpdetect.ingest.strace.state import Handle
    from mcpdetect.model.kinds import EVENT_TYPES

    core = Core("trace.log", frozenset(EVENT_TYPES) - {"mcp.message", "mcp.tool"}, Account())
    for number, text in enumerate(_BEGIN, 1):
        name, _, rest = text.partition("(")
        core.whole("7", number, None, name, rest)
    thread = core.world.threads["7"]
    taken = []
    for text in _READ:
        name, _, rest = text.partition("(")
        thread.table.put(3, Handle("file", "/srv/f", True, thread.process))
        thread.table.put(6, Handle("pipe", "pipe:[9]", True, thread.process))
        taken.append(EXPRESS[name](core.recorder, thread, "trace.log", 9, None, None, rest))
    assert taken == [True] * len(_READ)


@pytest.mark.parametrize("text", _LEFT)
def test_calls_that_are_not_plain_are_left_alone(text: str) -> None:
    from mcpdetect.ingest.strace.account import Account
    from mcpdetect.ingest.strace.core import Core
    from mcpdetect.model.kinds import EVENT_TYPES

    core = Core("trace.log", frozenset(EVENT_TYPES) - {"mcp.message", "mcp.tool"}, Account())
    for number, before in enumerate(_BEGIN, 1):
        name, _, rest = before.partition("(")
        core.whole("7", number, None, name, rest)
    made = len(core.recorder.out)
    name, _, rest = text.partition("(")
    assert EXPRESS[name](core.recorder, core.world.threads["7"], "trace.log", 9, None, None, rest) is False
    assert len(core.recorder.out) == made


def test_events_built_field_by_field_equal_those_of_their_constructors() -> None:
    from mcpdetect.ingest.strace.build import file_open, file_probe, file_read, file_write
    from mcpdetect.model.event import FileChange, FileOpen, FileProbe, FileRead
    from mcpdetect.model.place import Where

    at = Where("trace.log", 7, 9)
    assert file_open(at, 5, "openat", 3, None, "/a", True, "read", "O_RDONLY", "7", 8, "a", ["/b"]) == FileOpen(
        at, 5, "openat", 3, None, "/a", True, "read", "O_RDONLY", 3, process="7", tid=8, written="a", aliases=["/b"]
    )
    assert file_probe(at, 5, "statx", None, "ENOENT", "stat", "/a", False, "a", "7", None) == FileProbe(
        at, 5, "statx", None, "ENOENT", "stat", "/a", certain=False, written="a", process="7"
    )
    assert file_read(at, 5, "mmap", 64, "/a", 3, 9, b"", True, True, True, True, "7", 8, None) == FileRead(
        at, 5, "mmap", 64, None, "/a", 3, 9, b"", True, mapped=True, inherited=True, process="7", tid=8
    )
    assert file_write(at, 5, "write", 2, "/a", 3, b"xy", False, True, "7", None) == FileChange(
        at, 5, "write", 2, None, "write", "/a", fd=3, size=2, data=b"xy", process="7"
    )
