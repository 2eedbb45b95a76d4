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
from dataclasses import dataclass, field
from pathlib import Path

from controls.recorder.errors import RecorderError
from controls.recorder.probes import cache_folder
from controls.recorder.room import CONTROL

__all__ = ["Installed", "install"]

_SECONDS = 600
# npm:@scope/name@1.2.3   npm:name
_NPM = re.compile(r"((?:@[a-z0-9~-][a-z0-9._~-]*+/)?[a-z0-9~-][a-z0-9._~-]*+)(?:@([0-9A-Za-z.+-]++))?", re.ASCII)
# pypi:name==1.2.3   pypi:name
_PYPI = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*+)(?:==([0-9A-Za-z.!+]++))?", re.ASCII)

_RUN_PYTHON = """import sys
sys.path.insert(0, {site!r})
sys.argv = [{name!r}, *sys.argv[1:]]
from importlib.metadata import distribution
for point in distribution({package!r}).entry_points:
    if point.group == "console_scripts" and point.name == {name!r}:
        sys.exit(point.load()())
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """A server that is ready to be recorded.

    Attributes:
        name: ``npm-<name>`` or ``pypi-<name>``, fit for a folder's name.
        version: the version installed, ``""`` of a command.
        folder: what is copied into the room.
        run: its argv inside the room.
        runtime: ``node``, ``python`` or ``command``.
        environment: variables it gets.
    """

    name: str
    version: str
    folder: Path
    run: tuple[str, ...]
    runtime: str
    environment: dict[str, str] = field(default_factory=dict)


def install(target: str, arguments: tuple[str, ...] = ()) -> Installed:
    """Install a server unless it is in the cache.

    Args:
        target: ``npm:NAME[@V]``, ``pypi:NAME[==V]`` or ``command:ARGV``.
        arguments: arguments for it.

    Raises:
        RecorderError: the target is of no known form, or the installation failed.
    """
    kind, _, rest = target.partition(":")
    if kind == "command" and rest:
        words = shlex.split(rest)
        if not words or not words[0].startswith("/"):
            raise RecorderError(f"{target}: a command begins with an absolute path inside the room")
        empty = cache_folder() / "servers" / "none"
        empty.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(rest.encode()).hexdigest()[:8]
        return Installed(f"command-{Path(words[0]).name}-{digest}", "", empty, (*words, *arguments), "command")
    pattern = {"npm": _NPM, "pypi": _PYPI}.get(kind)
    match = pattern.fullmatch(rest) if pattern is not None else None
    if match is None:
        raise RecorderError(f"{target}: a server is npm:NAME[@VERSION], pypi:NAME[==VERSION] or command:ARGV")
    package, version = match[1], match[2] or ""
    slug = f"{kind}-{package.removeprefix('@').replace('/', '-').lower()}"
    folder = cache_folder() / "servers" / f"{slug}-{version or 'latest'}"
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (_npm if kind == "npm" else _pip)(package, version, folder)
        (folder / "installed").write_text("")
    return (_node_server if kind == "npm" else _python_server)(slug, package, folder, arguments)


def _client(*argv: str, cwd: Path) -> None:
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


def _npm(package: str, version: str, folder: Path) -> None:
    wanted = f"{package}@{version}" if version else package
    _client("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", wanted, cwd=folder)


def _pip(package: str, version: str, folder: Path) -> None:
    wanted = f"{package}=={version}" if version else package
    options = ("--only-binary", ":all:", "--no-compile", "--quiet", "--disable-pip-version-check")
    _client(sys.executable, "-m", "pip", "install", *options, "--target", "site", wanted, cwd=folder)


def _node_server(slug: str, package: str, folder: Path, arguments: tuple[str, ...]) -> Installed:
    root = folder / "node_modules" / package
    try:
        data = json.loads((root / "package.json").read_text())
    except (OSError, ValueError) as error:
        raise RecorderError(f"{slug}: {error}") from error
    bins = data.get("bin")
    if isinstance(bins, dict) and bins:
        bins = bins.get(package.rpartition("/")[2]) or next(iter(bins.values()))
    if not isinstance(bins, str):
        raise RecorderError(f"{slug}: the package has no program")
    program = Path(CONTROL) / "node_modules" / package / bins
    return Installed(
        slug, str(data.get("version", "")), folder, ("/usr/bin/node", os.path.normpath(program), *arguments), "node"
    )


def _python_server(slug: str, package: str, folder: Path, arguments: tuple[str, ...]) -> Installed:
    from importlib.metadata import distributions

    plain = re.sub(r"[-_.]+", "-", package).lower()
    for found in distributions(path=[str(folder / "site")]):
        if re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower() != plain:
            continue
        names = [point.name for point in found.entry_points if point.group == "console_scripts"]
        if not names:
            raise RecorderError(f"{slug}: the package has no program")
        name = next((one for one in names if one.replace("_", "-").lower() == plain), names[0])
        script = _RUN_PYTHON.format(site=f"{CONTROL}/site", name=name, package=found.metadata["Name"])
        (folder / "run.py").write_text(script)
        run = ("/usr/bin/python3", "-s", f"{CONTROL}/run.py", *arguments)
        return Installed(slug, found.version, folder, run, "python")
    raise RecorderError(f"{slug}: pip installed no such package")
