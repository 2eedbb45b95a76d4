"""Installing servers: what the clients are asked for, what is run, what is written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controls import servers
from controls.recorder.errors import RecorderError
from controls.serverlist import Server
from controls.servers import install, lock_text, resolved_digest

PYTHON = Path("/usr/bin/python3").resolve().name


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPDETECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(servers, "LOCKS", tmp_path / "locks")
    (tmp_path / "locks").mkdir()
    return tmp_path / "cache" / "servers"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Clients that only write what real ones would leave behind."""
    asked: list[tuple[str, ...]] = []

    def client(*argv: str, cwd: Path) -> None:
        asked.append(argv)
        if argv[0] == "npm":
            root = cwd / "node_modules" / "@scope" / "name"
            (root / "node_modules" / "dep").mkdir(parents=True)
            (cwd / "node_modules" / "dep").mkdir()
            package = {"version": "1.2.3", "bin": {"other": "x.js", "name": "./dist/index.js"}}
            (root / "package.json").write_text(json.dumps(package))
            packages = {
                "": {"dependencies": {}},
                "node_modules/@scope/name": {"version": "1.2.3"},
                "node_modules/@scope/name/node_modules/dep": {"version": "1.0.0"},
                "node_modules/dep": {"version": "2.0.0"},
                "node_modules/absent": {"version": "1.0.0", "optional": True},
            }
            (cwd / "package-lock.json").write_text(json.dumps({"packages": packages}))
            return
        site = Path(argv[argv.index("--target") + 1])
        for name, version, points in (
            ("Other_Name", "2.0", "[console_scripts]\nextra = other:run\nother.name = other.cli:app.main\n"),
            ("mcp", "1.9", ""),
        ):
            info = site / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            (info / "entry_points.txt").write_text(points)

    monkeypatch.setattr(servers, "client", client)
    return asked


def test_an_npm_server_is_installed_without_its_scripts_and_run_by_node(
    cache: Path, calls: list[tuple[str, ...]]
) -> None:
    server = Server("npm:@scope/name@1.2.3", ("--stdio",), pins=("zod@3.25.76",))
    found = install(server)
    assert calls == [
        (
            "npm",
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--omit=dev",
            "@scope/name@1.2.3",
            "zod@3.25.76",
        )
    ]
    assert (found.name, found.version, found.runtime, found.path) == ("npm-scope-name", "1.2.3", "node", "")
    assert found.run == ("/usr/bin/node", "/srv/control/node_modules/@scope/name/dist/index.js", "--stdio")
    assert found.resolved == ("@scope/name@1.2.3", "dep@1.0.0", "dep@2.0.0")
    assert found.folder.parent == cache
    assert install(server) == found
    assert len(calls) == 1


def test_a_pypi_server_gets_an_environment_of_its_own_and_wheels_only(calls: list[tuple[str, ...]]) -> None:
    found = install(Server("pypi:other.name==2.0", ("-v",), pins=("mcp<2",)))
    (argv,) = calls
    assert argv[1:6] == ("-m", "pip", "--python", "/usr/bin/python3", "install")
    assert argv[6:11] == ("--only-binary", ":all:", "--no-compile", "--quiet", "--disable-pip-version-check")
    assert argv[-2:] == ("other.name==2.0", "mcp<2")
    inside = "/srv/control/venv/bin"
    assert found.run == (f"{inside}/python3", f"{inside}/other.name", "-v")
    assert (found.name, found.version, found.runtime, found.path) == ("pypi-other.name", "2.0", "python", inside)
    assert found.resolved == ("mcp==1.9", "other-name==2.0")
    programs = found.folder / "venv" / "bin"
    script = "import sys\nfrom other.cli import app\nsys.exit(app.main())\n"
    assert (programs / "other.name").read_text() == script
    assert (programs / "python3").readlink() == Path("/usr/bin/python3")
    config = (found.folder / "venv" / "pyvenv.cfg").read_text()
    assert config == "home = /usr/bin\ninclude-system-site-packages = false\n"
    assert (found.folder / "venv" / "lib" / PYTHON / "site-packages").is_dir()


def test_an_installation_that_was_written_down_is_made_again(tmp_path: Path, calls: list[tuple[str, ...]]) -> None:
    lock = tmp_path / "locks" / "npm-scope-name.txt"
    lock.write_text("# npm:@scope/name@1.2.3\n@scope/name@1.2.3\ndep@1.0.0\ndep@2.0.0\nleft@1.1.1\n")
    found = install(Server("npm:@scope/name@1.2.3"))
    assert json.loads((found.folder / "package.json").read_text()) == {"private": True, "overrides": {"left": "1.1.1"}}
    install(Server("npm:@scope/name@1.2.3"))
    assert len(calls) == 1
    lock.write_text("# npm:@scope/name@1.2.3\n@scope/name@1.2.3\ndep@3.0.0\n")
    assert json.loads((install(Server("npm:@scope/name@1.2.3")).folder / "package.json").read_text()) == {
        "private": True,
        "overrides": {"dep": "3.0.0"},
    }
    assert len(calls) == 2


def test_a_lock_is_of_one_version_alone(tmp_path: Path, calls: list[tuple[str, ...]]) -> None:
    (tmp_path / "locks" / "pypi-other.name.txt").write_text("# pypi:other.name==2.0\nmcp==1.9\nother-name==2.0\n")
    for target, constraints in (
        ("pypi:other.name==2.0", "mcp==1.9\nother-name==2.0\n"),
        ("pypi:other.name==2.1", ""),
    ):
        assert (install(Server(target)).folder / "constraints.txt").read_text() == constraints
    assert len(calls) == 2


def test_what_is_written_down_is_a_line_a_package() -> None:
    assert lock_text("npm:x@1", ("a@1", "b@2")) == "# npm:x@1\na@1\nb@2\n"
    assert resolved_digest(()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_command_is_run_as_it_is() -> None:
    found = install(Server("command:/usr/bin/cat -u", ("x",)))
    assert (found.run, found.runtime, found.version) == (("/usr/bin/cat", "-u", "x"), "command", "")
    assert found.name.startswith("command-cat-")


def test_a_command_without_an_absolute_path_is_refused() -> None:
    with pytest.raises(RecorderError, match="command:relative: a command begins with an absolute path inside the room"):
        install(Server("command:relative"))


def test_a_package_without_a_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def client(*argv: str, cwd: Path) -> None:
        if argv[0] == "npm":
            (cwd / "node_modules" / "x").mkdir(parents=True)
            (cwd / "node_modules" / "x" / "package.json").write_text('{"version": "1"}')
            (cwd / "package-lock.json").write_text("{}")

    monkeypatch.setattr(servers, "client", client)
    with pytest.raises(RecorderError, match=r"^npm-x: the package has no program$"):
        install(Server("npm:x"))
    with pytest.raises(RecorderError, match=r"^pypi-x: pip installed no such package$"):
        install(Server("pypi:x"))


def test_a_client_that_fails_is_told_by_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(RecorderError, match=r"^sh could not install it: no such thing$"):
        servers.client("sh", "-c", "echo no such thing >&2; exit 3", cwd=tmp_path)
    with pytest.raises(RecorderError, match="No such file or directory"):
        servers.client("/no/such/client", cwd=tmp_path)
