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
    "close(3</srv/g>) = 0",
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
    path = _log(tmp_path / "trace.log", [*_BEGIN, call, 'read(3</srv/f>, "z", 9) = 1'])
    events, observation = _read(path)
    with patch.dict(EXPRESS, clear=True):
        assert (events, observation) == _read(path)
    assert len(events) > len(_BEGIN)


def test_calls_that_are_plain_are_read_in_one_match() -> None:
    from mcpdetect.ingest.strace.account import Account
    from mcpdetect.ingest.strace.core import Core
    from mcpdetect.model.kinds import EVENT_TYPES
    from mcpdetect.model.place import Where

    core = Core("trace.log", frozenset(EVENT_TYPES) - {"mcp.message", "mcp.tool"}, Account())
    for number, text in enumerate(_BEGIN, 1):
        name, _, rest = text.partition("(")
        core.whole("7", number, None, name, rest)
    thread = core.world.threads["7"]
    taken = []
    for text in _READ:
        name, _, rest = text.partition("(")
        taken.append(EXPRESS[name](core.recorder, thread, Where("trace.log", 9), None, rest))
    assert taken == [True] * len(_READ)
