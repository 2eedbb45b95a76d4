"""Programs the recorder calls: where they come from, and running them."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from controls.recorder.errors import RecorderError

__all__ = ["PACKAGES", "environment", "missing", "require", "run", "scratch", "version_of"]

PACKAGES = {
    "curl": "curl",
    "dnsmasq": "dnsmasq-base",
    "gcc": "gcc",
    "go": "golang-go",
    "ip": "iproute2",
    "java": "default-jdk-headless",
    "javac": "default-jdk-headless",
    "mount": "mount",
    "nc": "netcat-openbsd",
    "nft": "nftables",
    "node": "nodejs",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "perl": "perl-base",
    "pivot_root": "util-linux",
    "prlimit": "util-linux",
    "ruby": "ruby",
    "setpriv": "util-linux",
    "strace": "strace",
    "tcpdump": "tcpdump",
    "ulogd": "ulogd2",
    "unshare": "util-linux",
    "wget": "wget",
}
"""Program -> the Debian package that holds it."""

_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_ALWAYS = (
    "dnsmasq",
    "ip",
    "mount",
    "nft",
    "nsenter",
    "pivot_root",
    "prlimit",
    "setpriv",
    "strace",
    "tcpdump",
    "unshare",
)
_OLDEST = {"dnsmasq": (2, 80), "nft": (0, 9), "strace": (5, 0), "tcpdump": (4, 9)}
"""Oldest versions that know the options the recorder uses."""


def missing(programs: Iterable[str] = ()) -> str | None:
    """Return one sentence about what keeps this machine from recording, None when nothing does."""
    problems = []
    if os.geteuid() != 0:
        problems.append(
            "recording makes network namespaces and needs root; where this kernel is not to be shared with the target, "
            "--shell microvm records in a guest"
        )
    absent = sorted({name for name in (*_ALWAYS, *programs) if shutil.which(name, path=_SYSTEM_PATH) is None})
    if absent:
        packages = " ".join(sorted({PACKAGES[name] for name in absent}))
        problems.append(f"not found: {', '.join(absent)} (apt-get install {packages})")
    old = {name: words for name in sorted(_OLDEST.keys() - absent) if (words := _too_old(name))}
    if old:
        packages = " ".join(sorted({PACKAGES[name] for name in old}))
        problems.append(f"too old: {'; '.join(old.values())} (apt-get install {packages})")
    return "; ".join(problems) or None


def _too_old(program: str) -> str | None:
    """Return what is wrong with a program's version, None when nothing is or it does not tell."""
    # strace 6.1   tcpdump 4.99.3   nft 1.0.6   strace 6.1-dirty
    words = version_of(program).rpartition(" ")[2]
    number = tuple(int(part) for part in re.findall(r"\d++", words)[:2])
    oldest = _OLDEST[program]
    if not number or not words[0].isdigit() or number >= oldest:
        return None
    return f"{program} {words}, and {'.'.join(map(str, oldest))} is needed"


def require(programs: Iterable[str] = ()) -> None:
    """Check that recording is possible here.

    Raises:
        RecorderError: not root, or a program is missing; the message names the Debian package.
    """
    problem = missing(programs)
    if problem:
        raise RecorderError(problem)


def run(*argv: str, stdin: str | None = None, seconds: float = 20.0) -> str:
    """Run a short command to its end and return its output.

    Raises:
        RecorderError: it failed or took longer than ``seconds``.
    """
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=seconds, check=False, env=environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RecorderError(f"{' '.join(argv)}: {error}") from error
    if done.returncode:
        raise RecorderError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def scratch(what: str) -> str:
    """Return the prefix of a temporary folder: what it is for and whose it is, so that ``prune`` knows what is left."""
    return f"mcpdetect-{what}-{os.getpid()}-"


def environment() -> dict[str, str]:
    """Return the environment of the recorder's own tools: fixed, in UTC and English."""
    return {"PATH": _SYSTEM_PATH, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


@functools.cache
def version_of(program: str) -> str:
    """Return name and version of a tool as a manifest states it, such as ``strace 6.1``."""
    flag = "--version"
    done = subprocess.run([program, flag], capture_output=True, text=True, timeout=20, check=False, env=environment())
    # strace -- version 6.1 / tcpdump version 4.99.3 / Dnsmasq version 2.90  Copyright ... / nftables v1.0.6 (...)
    words = (done.stdout or done.stderr).split()
    for word in (word.strip("(),v") for word in words):
        # This is perl 5, version 36, subversion 0 (v5.36.0) built for ...
        if word[:1].isdigit() and "." in word:
            return f"{Path(program).name} {word}"
    return Path(program).name
