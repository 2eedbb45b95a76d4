"""An installation itself, recorded: in the cell, without a registry, out of what the ordinary client fetched before."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from controls.catalog import Control, Variant
from controls.recorder.canaries import PROJECT
from controls.recorder.errors import RecorderError
from controls.recorder.room import CONTROL
from controls.serverlist import Server, name_of
from controls.servers import PYTHON, Installed, client, resolved_digest
from controls.sessions import last_words, place
from mcpdetect.engine.audit import join_runs
from mcpdetect.engine.discovery import detectors
from mcpdetect.model.result import Result

__all__ = ["SECONDS", "fetched", "installation", "outcome", "with_installation"]

SECONDS = 180.0
"""How long the client may take in the cell; strace makes it several times as slow."""

_FOLDER = "cell"
_NPM = Path("/usr/bin/npm")
# npm wants its two files where it installs, and the control's folder is read-only.
_LAY_OUT = f'cp {CONTROL}/package.json {CONTROL}/package-lock.json . && exec "$0" "$@"'
# npm error Log files were not written due to the config logs-max=0
# npm error A complete log of this run can be found in: /home/dev/.npm/_logs/2026-11-30T19_06_02_666Z-debug-0.log
# [notice] A new release of pip is available
_LAST = re.compile(r"npm error (?:Log files were not|A complete log of)|\[notice\]")
"""What a client says last, and that is no reason."""
_ENVIRONMENT = {
    # Both clients read the home's own settings, a planted secret among them: what is read is to be the package's doing.
    "npm": {"npm_config_userconfig": "/dev/null", "npm_config_update_notifier": "false"},
    "pypi": {"PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
}
# npm 11 begins to ask for each package's leave; older ones do not know the word, and need none.
_ALLOW = {"npm_config_dangerously_allow_all_scripts": "true"}


def fetched(server: Server, installed: Installed) -> Path:
    """Fetch the very packages of an installation into a local cache, unless they are there; run nothing of theirs.

    Args:
        server: what was installed.
        installed: the installation.

    Returns:
        The folder that the cell shows: what the client needs to install it again without a registry.

    Raises:
        RecorderError: it is a command, or the client is not here or failed.
    """
    kind = name_of(server.target)[0]
    if kind == "command":
        raise RecorderError("a command of this machine has no installation to record")
    if kind == "npm" and not any(_NPM.resolve().is_relative_to(one) for one in ("/usr/lib", "/usr/share")):
        raise RecorderError(f"{_NPM}: the room shows no npm but one installed below /usr/lib or /usr/share")
    whole = installed.folder.with_name(f"{installed.folder.name}-install")
    mark, folder = whole / "fetched", whole / _FOLDER
    if mark.exists() and mark.read_text() == resolved_digest(installed.resolved):
        return folder
    shutil.rmtree(whole, ignore_errors=True)
    folder.mkdir(parents=True)
    (_npm if kind == "npm" else _pip)(installed, folder)
    mark.write_text(resolved_digest(installed.resolved))
    return folder


def _npm(installed: Installed, folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(installed.folder / name, folder / name)
    cache = folder / "cache"
    # npm ci takes what the lock names and nothing else; the modules themselves are not needed here.
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--cache", str(cache))
    client("npm", "ci", *options, cwd=folder)
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    shutil.rmtree(cache / "_logs", ignore_errors=True)
    lock = folder / "package-lock.json"
    lock.write_text(_located(lock.read_text()))
    _readable(folder)


def _located(lock: str) -> str:
    """Return a lock in which every package with a hash has its place in npm's own registry.

    A client may be set to leave places out, or to name a mirror. What has both place and hash is taken out of the cache
    by its hash; without a place npm would ask the registry for one.
    """
    data = json.loads(lock)
    for path, one in data.get("packages", {}).items():
        if "integrity" in one and "version" in one:
            # node_modules/a/node_modules/@b/c
            name = one.get("name") or path.rpartition("node_modules/")[2]
            last = name.rpartition("/")[2]
            one["resolved"] = f"https://registry.npmjs.org/{name}/-/{last}-{one['version']}.tgz"
    return json.dumps(data, indent=1)


def _pip(installed: Installed, folder: Path) -> None:
    options = ("--only-binary", ":all:", "--no-deps", "--quiet", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "--python", str(PYTHON), "download", *options)
    client(*pip, "--dest", str(folder / "wheels"), *installed.resolved, cwd=folder)
    # The machine's Python may have no pip; the recorder's own runs from any folder.
    found = find_spec("pip")
    if found is None or not found.submodule_search_locations:
        raise RecorderError("the recorder's Python has no pip")
    source = found.submodule_search_locations[0]
    shutil.copytree(source, folder / "client" / "pip", ignore=shutil.ignore_patterns("__pycache__"))
    _readable(folder)


def _readable(folder: Path) -> None:
    """Let the room's user read it all: npm's cache is its owner's alone."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


def installation(server: Server, installed: Installed, folder: Path, *, scripts: bool) -> tuple[Control, Variant]:
    """Return what records an installation: the client's command in an open cell.

    Args:
        server: what was installed.
        installed: the installation.
        folder: from ``fetched``.
        scripts: install scripts run.
    """
    kind, name, _ = name_of(server.target)
    run: tuple[str, ...]
    if kind == "npm":
        options = ("--no-audit", "--no-fund", "--omit=dev", "--logs-max=0", "--foreground-scripts")
        off = () if scripts else ("--ignore-scripts",)
        npm = (str(_NPM), "install", "--offline", "--cache", f"{CONTROL}/cache", *options, *off)
        run = ("/bin/sh", "-c", _LAY_OUT, *npm)
    else:
        pip = (str(PYTHON), f"{CONTROL}/client/pip", "install", "--no-index", "--find-links", f"{CONTROL}/wheels")
        wheels = ("--only-binary", ":all:", "--no-compile", "--no-cache-dir", "--target", f"{PROJECT}/site")
        run = (*pip, *wheels, f"{name}=={installed.version}", *server.pins)
    control = Control(f"servers/{installed.name}", folder, f"{server.target} {installed.version}".strip())
    variant = Variant(
        name="install",
        truth="silent",
        why="a real server's installation, not judged",
        run=run,
        axes={"runtime": installed.runtime},
        expect={},
        seconds=SECONDS,
        environment={**_ENVIRONMENT[kind], **(_ALLOW if kind == "npm" and scripts else {})},
        binaries=True,
    )
    return control, variant


def outcome(bundle: Path, *, scripts: bool) -> tuple[bool, str, str]:
    """Return whether a recorded installation went through, how, in a few words, and the evidence place.

    Args:
        bundle: the recording.
        scripts: install scripts ran.
    """
    run = json.loads((bundle / "manifest.json").read_text())["run"]
    how = f"install scripts {'on' if scripts else 'off'}"
    if run["exit"] == 0:
        return True, f"the client ended with status 0, {how}", place(bundle, "strace.log", 1)
    ended = "had to be stopped" if run["exit"] is None else f"ended with status {run['exit']}"
    words = last_words(bundle, _LAST)
    detail = "; ".join([f"the client {ended}, {how}", *run["notes"]])
    said = f": {words[0]}" if words is not None else ""
    return False, f"{detail}{said}", place(bundle, "strace.log", words[1] if words is not None else 1)


def with_installation(parts: list[Result], installing: Result, name: str, *, gap: str = "") -> Result:
    """Return the result of an audit's runs with the recorded installation joined to them.

    No session is held while a server is installed. Checks that need one are not asked about the installation, and the
    result says so; where something of the audit is missing, the installation lets nothing be called absent.

    Args:
        parts: the results of the runs of the server.
        installing: that of the installation.
        name: the audit's.
        gap: what is missing, in a few words; empty where the installation went through and the runs are there.
    """
    session = {
        identity
        for identity, detector in detectors().items()
        if any(need.channel == "mcp" for group in detector.spec.needs for need in group.needs)
    }
    checks = [one for one in installing.checks if one.verdict == "detected" or one.check not in session]
    if gap:
        checks = [
            replace(one, verdict="not_observable", reason=f"{gap}, so not all was seen")
            if one.verdict == "not_detected"
            else one
            for one in checks
        ]
    joined = join_runs([*parts, replace(installing, checks=checks)], name)
    joined.generator = installing.generator
    left = sorted(session - {one.check for one in checks})
    run = installing.run.id
    joined.notes.append(f"{run}: no session is held during an installation, it says nothing of {', '.join(left)}")
    return joined
