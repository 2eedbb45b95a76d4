"""Real servers: installed by the ordinary clients into a cache, without running anything of theirs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from controls.recorder.errors import RecorderError
from controls.recorder.probes import cache_folder
from controls.recorder.room import CONTROL
from controls.serverlist import Server, name_of

__all__ = ["LOCKS", "PYTHON", "Installed", "client", "install", "lock_text", "resolved_digest"]

LOCKS = Path(__file__).resolve().parents[1] / "coverage" / "servers"
"""Where the packages and versions of earlier installations are written down: one file a server."""

_SECONDS = 600
PYTHON = Path("/usr/bin/python3")
"""The interpreter of the room: wheels are chosen for it, whichever runs the recorder."""

_VENV = "venv"
# The room's interpreter with nothing but the server's own packages, as pipx and uvx would give it.
_CONFIG = "home = /usr/bin\ninclude-system-site-packages = false\n"
_ENTRY = "import sys\nfrom {module} import {first}\nsys.exit({attribute}())\n"


@dataclass(frozen=True, slots=True)
class Installed:
    """A server that is ready to be recorded.

    Attributes:
        name: ``npm-<name>`` or ``pypi-<name>``, fit for a folder's name.
        version: the version installed, ``""`` of a command.
        folder: what is copied into the room.
        run: its argv inside the room.
        runtime: ``node``, ``python`` or ``command``.
        path: what ``PATH`` begins with inside the room, ``""`` for nothing.
        resolved: every package of the installation with its version, sorted.
    """

    name: str
    version: str
    folder: Path
    run: tuple[str, ...]
    runtime: str
    path: str = ""
    resolved: tuple[str, ...] = ()


def install(server: Server) -> Installed:
    """Install a server unless it is in the cache.

    Args:
        server: what to install; its arguments are put behind the program.

    Raises:
        RecorderError: the target is of no known form, or the installation failed.
    """
    kind, name, version = name_of(server.target)
    if kind == "command":
        words = shlex.split(name)
        if not words or not words[0].startswith("/"):
            raise RecorderError(f"{server.target}: a command begins with an absolute path inside the room")
        empty = cache_folder() / "servers" / "none"
        empty.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        slug = f"command-{Path(words[0]).name}-{digest}"
        return Installed(slug, "", empty, (*words, *server.arguments), "command")
    slug = f"{kind}-{name.removeprefix('@').replace('/', '-').lower()}"
    pinned = f"-{hashlib.sha256(' '.join(server.pins).encode()).hexdigest()[:8]}" if server.pins else ""
    folder = cache_folder() / "servers" / f"{slug}-{version or 'latest'}{pinned}"
    locked = _locked(LOCKS / f"{slug}.txt", server.target)
    finish = _node_server if kind == "npm" else _python_server
    if (folder / "installed").exists():
        found = finish(slug, name, folder, server.arguments)
        if locked in (None, found.resolved) or (folder / "installed").read_text() == resolved_digest(locked or ()):
            return found
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (_npm if kind == "npm" else _pip)(name, version, server.pins, locked or (), folder)
    # A platform's own packages may differ from the locked ones; it is tried once.
    (folder / "installed").write_text(resolved_digest(locked or ()))
    return finish(slug, name, folder, server.arguments)


def lock_text(target: str, resolved: Iterable[str]) -> str:
    """Return the file that writes an installation down, so that the next one is the same.

    Args:
        target: the server with its version.
        resolved: as ``Installed.resolved``.
    """
    return "".join(f"{line}\n" for line in (f"# {target}", *resolved))


def _locked(path: Path, target: str) -> tuple[str, ...] | None:
    """Return what was written down of an installation of this very target, None where nothing was."""
    try:
        first, *rest = path.read_text().splitlines() or [""]
    except FileNotFoundError:
        return None
    return tuple(rest) if first == f"# {target}" else None


def resolved_digest(resolved: Iterable[str]) -> str:
    """Return the sha256 of an installation's packages and versions: equal where a rerun runs the same code.

    Args:
        resolved: as ``Installed.resolved``.
    """
    return hashlib.sha256("\n".join(resolved).encode()).hexdigest()


def client(*argv: str, cwd: Path) -> None:
    """Run a package registry's ordinary client on this machine, with install scripts off.

    Args:
        argv: the client and its arguments.
        cwd: where it runs.

    Raises:
        RecorderError: it is not there, takes longer than ten minutes, or fails; the message holds its last words.
    """
    # Whatever is set in the caller's environment about registries is the client's own business.
    environment = {**os.environ, "npm_config_ignore_scripts": "true", "npm_config_update_notifier": "false"}
    try:
        done = subprocess.run(
            argv, cwd=cwd, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RecorderError(f"{argv[0]}: {error}") from error
    if done.returncode:
        last = "\n".join(done.stderr.splitlines()[-8:])
        raise RecorderError(f"{Path(argv[0]).name} could not install it: {last}")


def _npm(package: str, version: str, pins: tuple[str, ...], locked: tuple[str, ...], folder: Path) -> None:
    wanted = f"{package}@{version}" if version else package
    own = {package, *(pin.rpartition("@")[0] for pin in pins)}
    versions: dict[str, list[str]] = {}
    for line in locked:
        name, _, exact = line.rpartition("@")
        versions.setdefault(name, []).append(exact)
    # Where a package is there in several versions, the ranges that ask for it decide; most are there in one.
    overrides = {name: exact[0] for name, exact in versions.items() if len(exact) == 1 and name not in own}
    (folder / "package.json").write_text(json.dumps({"private": True, "overrides": overrides}))
    client("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", wanted, *pins, cwd=folder)


def _pip(package: str, version: str, pins: tuple[str, ...], locked: tuple[str, ...], folder: Path) -> None:
    wanted = f"{package}=={version}" if version else package
    options = ("--only-binary", ":all:", "--no-compile", "--quiet", "--disable-pip-version-check")
    site = _site(folder)
    site.mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "--python", str(PYTHON), "install", *options)
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{line}\n" for line in locked))
    client(*pip, "--target", str(site), "--constraint", str(constraints), wanted, *pins, cwd=folder)


def _site(folder: Path) -> Path:
    # python3.11
    return folder / _VENV / "lib" / PYTHON.resolve().name / "site-packages"


def _node_server(slug: str, package: str, folder: Path, arguments: tuple[str, ...]) -> Installed:
    root = folder / "node_modules" / package
    try:
        data = json.loads((root / "package.json").read_text())
        lock = json.loads((folder / "package-lock.json").read_text())
    except (OSError, ValueError) as error:
        raise RecorderError(f"{slug}: {error}") from error
    bins = data.get("bin")
    if isinstance(bins, dict) and bins:
        bins = bins.get(package.rpartition("/")[2]) or next(iter(bins.values()))
    if not isinstance(bins, str):
        raise RecorderError(f"{slug}: the package has no program")
    program = os.path.normpath(Path(CONTROL) / "node_modules" / package / bins)
    resolved = sorted(
        {
            # node_modules/a/node_modules/@b/c
            f"{place.rpartition('node_modules/')[2]}@{one['version']}"
            for place, one in lock.get("packages", {}).items()
            if place and "version" in one and not one.get("dev") and (folder / place).is_dir()
        }
    )
    run = ("/usr/bin/node", program, *arguments)
    return Installed(slug, str(data.get("version", "")), folder, run, "node", resolved=tuple(resolved))


def _python_server(slug: str, package: str, folder: Path, arguments: tuple[str, ...]) -> Installed:
    plain = _plain(package)
    found = {_plain(one.metadata["Name"]): one for one in distributions(path=[str(_site(folder))])}
    if plain not in found:
        raise RecorderError(f"{slug}: pip installed no such package")
    points = [point for point in found[plain].entry_points if point.group == "console_scripts"]
    if not points:
        raise RecorderError(f"{slug}: the package has no program")
    point = next((one for one in points if _plain(one.name) == plain), points[0])
    programs = folder / _VENV / "bin"
    programs.mkdir(exist_ok=True)
    (folder / _VENV / "pyvenv.cfg").write_text(_CONFIG)
    python = programs / "python3"
    if not python.is_symlink():
        python.symlink_to(PYTHON)
    script = _ENTRY.format(module=point.module, first=point.attr.partition(".")[0], attribute=point.attr)
    (programs / point.name).write_text(script)
    inside = f"{CONTROL}/{_VENV}/bin"
    run = (f"{inside}/python3", f"{inside}/{point.name}", *arguments)
    resolved = sorted(f"{name}=={one.version}" for name, one in found.items())
    return Installed(slug, found[plain].version, folder, run, "python", inside, tuple(resolved))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
