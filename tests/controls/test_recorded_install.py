"""Recorded installations: packages made here, from a registry of this test, installed again in a cell without any."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import zstandard

from controls import auditing, installing, servers
from controls.__main__ import main
from controls.auditing import Audit, audit
from controls.recorder.errors import RecorderError
from controls.recorder.shells import Netns
from controls.recorder.tools import missing
from controls.serverlist import Server
from controls.servers import install
from mcpdetect.model.result import CheckResult, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import VerdictWord

PROBLEM = missing() or (None if shutil.which("npm", path="/usr/bin") else "no npm in /usr/bin")
records = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")

# A server that ends at once: only its installation matters here.
SERVER = "process.exit(0)\n"
READS = "require('fs').readFileSync(require('os').homedir() + '/.ssh/id_ed25519')\n"


def tarball(files: dict[str, str]) -> bytes:
    """Return an npm package."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


def wheel(folder: Path, name: str, files: dict[str, str], needs: str = "") -> Path:
    """Write a wheel of version 1.0."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    whole = {
        **files,
        f"{info}/METADATA": metadata + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    whole[f"{info}/RECORD"] = "".join(f"{one},,\n" for one in (*whole, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for one, text in whole.items():
            archive.writestr(one, text)
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPDETECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(servers, "LOCKS", tmp_path / "locks")


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry with a server whose install script reads a key, and its one dependency."""
    manifests: dict[str, dict[str, object]] = {
        "planted-install": {
            "version": "1.2.3",
            "bin": "server.js",
            "scripts": {"postinstall": "node post.js"},
            "dependencies": {"planted-dep": "^1.0.0"},
        },
        "planted-dep": {"version": "1.0.0"},
    }
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = pages.get(self.path)
            self.send_response(404 if data is None else 200)
            self.send_header("content-length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as registry:
        root = f"http://127.0.0.1:{registry.server_port}"
        for name, one in manifests.items():
            manifest = {"name": name, **one}
            data = tarball({"package.json": json.dumps(manifest), "server.js": SERVER, "post.js": READS})
            integrity = f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
            dist = {"tarball": f"{root}/{name}.tgz", "integrity": integrity}
            version = str(one["version"])
            versions = {version: {**manifest, "dist": dist}}
            page = {"name": name, "dist-tags": {"latest": version}, "versions": versions}
            pages[f"/{name}"] = json.dumps(page).encode()
            pages[f"/{name}.tgz"] = data
        monkeypatch.setenv("npm_config_registry", root)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        thread = threading.Thread(target=registry.serve_forever)
        thread.start()
        yield
        registry.shutdown()
        thread.join()


@pytest.fixture
def pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of wheels: a server, and its one dependency; a .pth file reads a key wherever either is in use."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    reads = "import pathlib; open(pathlib.Path.home() / '.ssh/id_ed25519').read()\n"
    wheel(folder, "planted_install", {"planted_install.py": "def main(): pass\n"}, "planted_dep>=1")
    wheel(folder, "planted_dep", {"planted_dep.py": "", "planted.pth": reads})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def verdicts(found: Audit) -> tuple[str, str]:
    """Return what the run of the installation and the audit say of secrets read."""
    assert found.result is not None
    checks = [
        next(one for one in result.checks if one.check == "secrets.canary-read")
        for result in (found.result.parts[-1], found.result)
    ]
    assert found.result.parts[-1].run.id == f"servers/{found.slug}/install"
    return checks[0].verdict, checks[1].verdict


def step(found: Audit) -> tuple[str, bool | None, str, str]:
    """Return the second step of an audit, its evidence place without the line."""
    one = found.steps[1]
    return one.name, one.ok, one.detail, one.where.rpartition(":")[0]


@records
@pytest.mark.usefixtures("npm")
def test_an_install_script_that_reads_a_key_is_seen_where_scripts_run_and_not_where_they_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    bundle = out / "servers/npm-planted-install/install"
    command = ["audit", "npm:planted-install@1.2.3", "--out", str(out), "--record-install"]
    assert main([*command, "--scripts"]) == 1  # the server itself ends before it answers
    said = capsys.readouterr().out
    assert "  records the install ok     the client ended with status 0, install scripts on  (install/strace" in said
    assert "  secrets.canary-read       detected (1 " in said
    assert f"  evidence of the installation: mcpdetect check {bundle}\n" in said
    assert f"--audit {bundle.with_name('open')} {bundle.with_name('denied')}\n" in said
    found = audit("npm:planted-install@1.2.3", Netns(), out, resume=True, record_install=True, scripts=True)
    assert found.kept == ["install", "open", "denied"]
    assert found.install == bundle
    assert step(found) == (
        "records the install",
        True,
        "the client ended with status 0, install scripts on",
        "install/strace.log.zst",
    )
    assert verdicts(found) == ("detected", "detected")
    assert found.result is not None
    (finding,) = next(one for one in found.result.checks if one.check == "secrets.canary-read").findings
    assert finding.facts["run"] == "servers/npm-planted-install/install"
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["run"]["target"] == [
        "/bin/sh",
        "-c",
        'cp /srv/control/package.json /srv/control/package-lock.json . && exec "$0" "$@"',
        "/usr/bin/npm",
        "install",
        "--offline",
        "--cache",
        "/srv/control/cache",
        "--no-audit",
        "--no-fund",
        "--omit=dev",
        "--logs-max=0",
        "--foreground-scripts",
    ]
    assert (manifest["run"]["mode"], manifest["run"]["exit"], manifest["run"]["session"]) == ("open", 0, [])
    assert [one["channel"] for one in manifest["evidence"]].count("mcp") == 0
    files = {one["path"] for one in _created(bundle)}
    site = "/home/dev/project/node_modules"
    assert {f"{site}/planted-install/post.js", f"{site}/planted-dep/server.js"} <= files

    found = audit("npm:planted-install@1.2.3", Netns(), out, resume=True, record_install=True)
    assert found.kept == ["open", "denied"]
    assert step(found)[1:3] == (True, "the client ended with status 0, install scripts off")
    assert verdicts(found) == ("not_detected", "not_detected")
    assert json.loads((bundle / "manifest.json").read_text())["run"]["target"][-1] == "--ignore-scripts"
    assert found.result is not None
    assert len(found.result.parts) == 3
    assert found.result.run.mode == "open + denied + open"

    # A dependency that the cache has lost.
    cell = installing.fetched(Server("npm:planted-install@1.2.3"), install(Server("npm:planted-install@1.2.3")))
    lock = json.loads((cell / "package-lock.json").read_text())
    kind, _, digest = lock["packages"]["node_modules/planted-dep"]["integrity"].partition("-")
    name = base64.b64decode(digest).hex()
    (cell / "cache/_cacache/content-v2" / kind / name[:2] / name[2:4] / name[4:]).unlink()
    found = audit("npm:planted-install@1.2.3", Netns(), out, resume=True, record_install=True)
    place = "https://registry.npmjs.org/planted-dep/-/planted-dep-1.0.0.tgz"
    why = f"error request to {place} failed: cache mode is 'only-if-cached' but no cached response is available."
    how = "the client ended with status 1, install scripts off"
    assert step(found) == ("records the install", False, f"{how}: {why}", "install/strace.log.zst")
    # What the rest of it would have done was not seen.
    assert verdicts(found) == ("not_observable", "not_observable")


def _created(bundle: Path) -> list[dict[str, str]]:
    (path,) = bundle.glob("files.json*")
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    created: list[dict[str, str]] = json.loads(data)["entries"]
    return created


@records
@pytest.mark.usefixtures("pypi")
@pytest.mark.parametrize("scripts", [False, True])
def test_a_wheel_has_no_install_script_and_nothing_of_it_runs(tmp_path: Path, scripts: bool) -> None:
    target, out = "pypi:planted-install==1.0", tmp_path / "out"
    found = audit(target, Netns(), out, record_install=True, scripts=scripts)
    how = f"install scripts {'on' if scripts else 'off'}"
    assert step(found) == (
        "records the install",
        True,
        f"the client ended with status 0, {how}",
        "install/strace.log.zst",
    )
    # The file reads the key as the server starts; the installation does not.
    assert verdicts(found) == ("not_detected", "detected")
    assert found.install is not None
    assert json.loads((found.install / "manifest.json").read_text())["run"]["target"] == [
        "/usr/bin/python3",
        "/srv/control/client/pip",
        "install",
        "--no-index",
        "--find-links",
        "/srv/control/wheels",
        "--only-binary",
        ":all:",
        "--no-compile",
        "--no-cache-dir",
        "--target",
        "/home/dev/project/site",
        "planted-install==1.0",
    ]
    files = {one["path"] for one in _created(found.install)}
    assert {f"/home/dev/project/site/{name}.py" for name in ("planted_install", "planted_dep")} <= files


@records
@pytest.mark.usefixtures("pypi")
def test_a_wheel_that_the_cache_has_lost_is_told_by_the_clients_last_words(tmp_path: Path) -> None:
    server = Server("pypi:planted-install==1.0")
    cell = installing.fetched(server, install(server))
    (cell / "wheels/planted_dep-1.0-py3-none-any.whl").unlink()
    found = audit(server.target, Netns(), tmp_path / "out", record_install=True)
    assert step(found) == (
        "records the install",
        False,
        "the client ended with status 1, install scripts off: ERROR: No matching distribution found for planted_dep>=1",
        "install/strace.log.zst",
    )


def test_what_cannot_be_recorded_is_a_broken_step_and_the_runs_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Guest(Netns):
        name = "microvm"

    def record(*_: object, **__: object) -> Path:
        raise RecorderError("no cell")

    monkeypatch.setattr(auditing, "record", record)
    reasons = {
        shell.name: [
            (one.name, one.ok, one.detail) for one in audit(command, shell, tmp_path, record_install=True).steps
        ]
        for shell in (Netns(), Guest())
        for command in ["command:/usr/bin/cat"]
    }
    assert reasons == {
        name: [
            ("installs", True, "a command of this machine"),
            ("records the install", False, why),
            ("starts", False, "no cell"),
        ]
        for name, why in (
            ("netns", "a command of this machine has no installation to record"),
            ("microvm", "an installation is recorded in namespaces alone: a guest has no npm and no pip"),
        )
    }


def test_checks_that_need_a_session_are_not_asked_about_an_installation() -> None:
    def result(run: str, *verdicts: VerdictWord) -> Result:
        checks = [
            CheckResult(name, 1, "T", verdict, "proved", f"of {run}")
            for name, verdict in zip(("mcp.drift", "mcp.hidden-text", "secrets.canary-read"), verdicts, strict=True)
        ]
        return Result(Run(id=run, mode="open"), checks, [], "declared")

    run = result("open", "not_detected", "detected", "not_detected")
    install = result("install", "not_observable", "not_observable", "not_detected")
    found = installing.with_installation([run], install, "npm:x")
    assert [(one.check, one.verdict) for one in found.checks] == [
        ("mcp.drift", "not_detected"),
        ("mcp.hidden-text", "detected"),
        ("secrets.canary-read", "not_detected"),
    ]
    assert [[one.check for one in part.checks] for part in found.parts] == [
        ["mcp.drift", "mcp.hidden-text", "secrets.canary-read"],
        ["secrets.canary-read"],
    ]
    assert len(install.checks) == 3
    (note,) = found.notes
    head = "install: no session is held during an installation, it says nothing of mcp.annotation-mismatch, mcp.drift, "
    assert note.startswith(head)
    assert "secrets.canary-read" not in note
    gap = installing.with_installation([], install, "npm:x", gap="its runs could not be recorded")
    assert [(one.check, one.verdict, one.reason) for one in gap.checks] == [
        (
            "secrets.canary-read",
            "not_observable",
            "install: its runs could not be recorded, so not all was seen",
        )
    ]


MIRRORED = "http://m/c.tgz"


def test_a_lock_names_npms_own_registry_whatever_the_client_wrote() -> None:
    packages = {
        "": {"dependencies": {"a": "1"}},
        "node_modules/a": {"version": "1.0.0", "integrity": "sha512-x"},
        "node_modules/a/node_modules/@b/c": {"version": "2.0.0", "integrity": "sha512-y", "resolved": MIRRORED},
        "node_modules/alias": {"name": "real", "version": "3.0.0", "integrity": "sha512-z"},
        "node_modules/odd": {"integrity": "sha512-o"},
        "node_modules/git": {"version": "4.0.0", "resolved": "git+ssh://git@example.com/x.git#0"},
    }
    found = json.loads(installing._located(json.dumps({"lockfileVersion": 3, "packages": packages})))
    assert found["lockfileVersion"] == 3
    assert {name: one.get("resolved") for name, one in found["packages"].items()} == {
        "": None,
        "node_modules/a": "https://registry.npmjs.org/a/-/a-1.0.0.tgz",
        "node_modules/a/node_modules/@b/c": "https://registry.npmjs.org/@b/c/-/c-2.0.0.tgz",
        "node_modules/alias": "https://registry.npmjs.org/real/-/real-3.0.0.tgz",
        "node_modules/odd": None,
        "node_modules/git": "git+ssh://git@example.com/x.git#0",
    }


def test_options_that_do_not_go_together_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for options, why in (
        (["--scripts"], "--scripts needs --record-install: outside the cell no install script runs"),
        (
            ["--record-install", "--registry", "r.json"],
            "--registry keeps what the runs of a server show, not its installation: audit it without",
        ),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["audit", "npm:x", *options])
        assert ended.value.code == 2
        assert capsys.readouterr().err.endswith(f"error: {why}\n")
