"""The SDK for the guest: what is asked of pip, what becomes of its answer, and what happens where there is none."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from controls.recorder.microvm import sdk

WANTED = "mcp==1.2.3"


class Pip:
    """Stands for pip: notes what it is asked for, and makes files, fails or takes too long."""

    def __init__(self, status: int = 0, made: Sequence[str] = (), late: bool = False) -> None:
        self.asked: list[list[str]] = []
        self._status, self._made, self._late = status, made, late

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        self.asked.append(command)
        if self._late:
            raise subprocess.TimeoutExpired(command, 600)
        target = Path(command[command.index("--target") + 1])
        for name in self._made:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(b"x")
        return subprocess.CompletedProcess(command, self._status, b"", b"")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the recorder, and a recorder that uses one version of the SDK."""
    monkeypatch.setenv("MCPDETECT_CACHE", str(tmp_path))
    monkeypatch.setattr(sdk, "sdk_version", lambda: "mcp 1.2.3")
    return tmp_path


def test_wheels_of_the_guests_python_are_fetched_once_and_what_sessions_do_not_need_is_left_out(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ["mcp/client/session.py", "anyio/x.py", "bin/mcp", "cryptography/x.so", "cryptography-1.dist-info/RECORD"]
    made += ["cffi/x.py", "cffi-1.dist-info/RECORD", "_cffi_backend.cpython-311.so", "pycparser/x.py", "cffix/x.py"]
    pip = Pip(made=made)
    monkeypatch.setattr(subprocess, "run", pip.run)
    folder = sdk.sdk_wheels()
    assert folder == cache / "sdk-mcp-1.2.3-py3.11"
    assert sorted(path.name for path in folder.iterdir()) == ["anyio", "cffix", "mcp"]
    assert sdk.sdk_wheels() == folder
    (asked,) = pip.asked
    target = asked.index("--target")
    assert Path(asked[target + 1]).parent.parent == cache
    assert [*asked[:target], *asked[target + 2 :]] == [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
        "--only-binary=:all:",
        "--implementation=cp",
        "--python-version=3.11",
        "--abi=cp311",
        "--abi=abi3",
        "--abi=none",
        "--platform=manylinux_2_34_x86_64",
        "--platform=manylinux_2_28_x86_64",
        "--platform=manylinux2014_x86_64",
        WANTED,
    ]
    assert [path.name for path in cache.iterdir()] == ["sdk-mcp-1.2.3-py3.11"]


@pytest.mark.parametrize(
    "pip",
    [Pip(status=1, made=["mcp/x.py"]), Pip(made=["other/x.py"]), Pip(late=True)],
    ids=["pip fails", "no SDK in what it brings", "too slow"],
)
def test_where_it_cannot_be_had_there_is_none_and_nothing_is_kept(
    pip: Pip, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", pip.run)
    assert sdk.sdk_wheels() is None
    assert list(cache.iterdir()) == []
    assert len(pip.asked) == 1


def test_a_recorder_without_the_sdk_asks_for_none(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk, "sdk_version", lambda: None)
    monkeypatch.setattr(subprocess, "run", Pip().run)
    assert (sdk.requirement(), sdk.sdk_wheels(), list(cache.iterdir())) == ("", None, [])


def test_the_guest_runs_the_python_that_the_wheels_are_for() -> None:
    # bookworm is Debian 12, whose python3 is 3.11.
    assert sdk.DIST_PACKAGES == "usr/local/lib/python3.11/dist-packages"
    packages = (Path(sdk.__file__).parent / "packages.txt").read_text().splitlines()
    assert "python3" in packages or "python3-minimal" in packages
