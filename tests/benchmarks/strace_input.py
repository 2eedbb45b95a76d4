"""Input of the strace workloads: real programs under strace, repeated to the size asked for; hostile lines; sets."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

__all__ = ["HOSTILE", "hostile", "log_of", "record", "record_set"]

OPTIONS = ["-ttt", "-T", "-yy", "-s", "256"]

_NODE = """
const fs = require("fs"), path = require("path"), http = require("http");
async function walk(folder, left) {
  for (const item of await fs.promises.readdir(folder, {withFileTypes: true})) {
    const name = path.join(folder, item.name);
    if (item.isDirectory() && left > 0) await walk(name, left - 1);
    else if (item.isFile()) { const s = await fs.promises.stat(name); if (s.size < 20000) await fs.promises.readFile(name); }
  }
}
const server = http.createServer((q, r) => r.end("ok")).listen(0, "127.0.0.1", async () => {
  const port = server.address().port;
  for (let i = 0; i < 40; i++) await new Promise(done => http.get({port, host: "127.0.0.1"}, r => r.on("end", done).resume()));
  await Promise.all([walk("/etc", 2), walk("/usr/share/perl5", 2)]);
  server.close();
});
"""  # noqa: E501
_THREADS = """
import os, threading
def work():
    for _ in range(60):
        os.stat("/etc/hosts"); open("/etc/hostname").read(); os.path.exists("/home/nobody/.ssh/id_ed25519")
threads = [threading.Thread(target=work) for _ in range(3)]
[one.start() for one in threads]; [one.join() for one in threads]
"""
_IMPORTS = (
    "import asyncio, email.message, http.client, json, logging.config, sqlite3, ssl, unittest.mock, xml.dom.minidom"
)
_SHELL = "for i in $(seq 60); do cat /etc/passwd | cut -d: -f1 | sort | head -1; done"

# Programs as an audited server or its tools would run them; those not installed are left out.
_PROGRAMS: list[list[str]] = [
    ["node", "-e", _NODE],
    ["python3", "-c", _THREADS],
    ["python3", "-c", _IMPORTS],
    ["sh", "-c", f"for i in 1 2 3 4; do python3 -c '{_IMPORTS}'; done"],
    ["sh", "-c", _SHELL],
    ["find", "/usr/share/doc", "-maxdepth", "2", "-newer", "/etc/passwd"],
    ["tar", "cf", "/dev/null", "/etc"],
    ["git", "--version"],
    ["grep", "-rlF", "child_process", "/etc"],
]

# 38    1796041192.444589 openat(AT_FDCWD</x>, "a", O_RDONLY) = 3</x/a> <0.000040>
_HEAD = re.compile(rb"(?m)^(\d+) +(\d+)\.")
# 38 1796041192.4 <... vfork resumed>) = 39 <0.001>
_CHILD = re.compile(rb"(?m)((?: (?:clone3?|v?fork|wait4)\(|<\.\.\. (?:clone3?|v?fork|wait4) resumed>)[^\n]*= )(\d+)")


def record(folder: Path) -> bytes:
    """Return the logs of every installed program, one after another.

    Raises:
        RuntimeError: strace is not installed or may not trace here.
    """
    logs = []
    for number, command in enumerate(_PROGRAMS):
        if shutil.which(command[0]) is None:
            continue
        log = folder / f"program{number}.strace"
        _run(["strace", "-f", *OPTIONS, "-o", str(log), *command])
        logs.append(log.read_bytes())
    if not logs or not any(logs):
        raise RuntimeError("strace recorded nothing: may it trace here?")
    return b"".join(logs)


def _run(command: list[str]) -> None:
    if shutil.which("strace") is None:
        raise RuntimeError("strace is not installed")
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=300,
    )


def log_of(logs: bytes, size: int, path: Path) -> None:
    """Write the logs as they are and then again with other pids and times, until ``size`` bytes are there."""
    with path.open("wb") as out:
        turn = written = 0
        while written < size:
            data = _shifted(logs, turn)
            if written + len(data) > size:
                data = data[: data.rfind(b"\n", 0, size - written) + 1]
            if not data:
                return
            written += out.write(data)
            turn += 1


def _shifted(data: bytes, turn: int) -> bytes:
    if not turn:
        return data
    pids, seconds = 100_000 * turn, 5_000 * turn
    data = _HEAD.sub(lambda found: b"%d %d." % (int(found[1]) + pids, int(found[2]) + seconds), data)
    return _CHILD.sub(lambda found: found[1] + b"%d" % (int(found[2]) + pids), data)


def record_set(folder: Path, files: int) -> Path:
    """Record about ``files`` files with ``-ff`` and return the name they begin with."""
    target = folder / "set"
    loop = f"for i in $(seq {max(files // 4, 1)}); do cat /etc/passwd | cut -d: -f1 | sort | head -1; done"
    _run(["strace", "-ff", *OPTIONS, "-o", str(target), "sh", "-c", loop])
    return target


def _lines(line: str, size: int, count: int) -> bytes:
    return b"".join(
        f"{1000 + number % 7} {1796000000 + number}.{number:06d} {line}\n".encode() for number in range(count)
    )


def _hex_buffer(size: int) -> str:
    return 'write(1</dev/null>, "' + "\\x41" * (size // 4) + f'", {size // 4}) = {size // 4} <0.000011>'


def _open_brackets(size: int) -> str:
    return 'openat(AT_FDCWD, "' + "(" * size


def _false_results(size: int) -> str:
    return 'openat(AT_FDCWD</x>, "' + ") = 1<> (E) <0.1> " * (size // 18) + '", O_RDONLY) = 3</x/y> <0.000012>'


def _escapes(size: int) -> str:
    return 'openat(AT_FDCWD</x>, "/' + "\\3\\30\\n\\\\" * (size // 9) + '", O_RDONLY) = 3</x/y> <0.000012>'


def _spaces(size: int) -> str:
    return "connect(3<TCP:[1]>, {sa_family=AF_INET" + " " * size + "} ) " + " " * size + "= 0 <0.000012>"


HOSTILE: dict[str, Callable[[int], str]] = {
    "hex buffer": _hex_buffer,
    "open brackets": _open_brackets,
    "false results": _false_results,
    "escapes": _escapes,
    "spaces": _spaces,
}
"""Shapes of lines that a traced program can choose, by the length of what it chooses."""


def hostile(shape: str, size: int, count: int, path: Path) -> None:
    """Write ``count`` lines of a shape, the chosen part of each ``size`` bytes long, after one ordinary line."""
    head = b'1000 1796000000.000001 execve("/bin/x", ["x"], 0x7ffe /* 3 vars */) = 0 <0.000200>\n'
    path.write_bytes(head + _lines(HOSTILE[shape](size), size, count))
