"""The official MCP SDK for the guest, whose Debian packages do not hold it: wheels of its very Python, from PyPI.

They are fetched by pip outside the guest, once for each version, and become part of the image. Where that fails there
is no SDK in the guest, and sessions are held by the recorder's own client, as the manifest's entry of the transcript
then says.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from controls.recorder.client.sdk import sdk_version
from controls.recorder.probes import cache_folder
from controls.recorder.tools import scratch

__all__ = ["DIST_PACKAGES", "requirement", "sdk_wheels"]

DIST_PACKAGES = "usr/local/lib/python3.11/dist-packages"
"""Where the guest's Python looks for them, which no target can see: the room has a ``/usr/local`` of its own."""

_PYTHON = "3.11"  # of Debian 12
_PLATFORMS = ("manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64")
_UNUSED = ("bin", "cryptography", "cryptography-*", "cffi", "cffi-*", "_cffi_backend*", "pycparser", "pycparser-*")
"""What only servers and authorization need; Debian's own are in the guest for the fake internet."""
_SECONDS = 600


def requirement() -> str:
    """Return what is asked of PyPI: the version that this recorder uses itself, ``""`` where it uses none."""
    return (sdk_version() or "").replace(" ", "==")


def sdk_wheels() -> Path | None:
    """Return a folder with the SDK and all it needs, unpacked, None where it cannot be had."""
    wanted = requirement()
    if not wanted:
        return None
    folder = cache_folder() / f"sdk-{wanted.replace('==', '-')}-py{_PYTHON}"
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(prefix=scratch("image"), dir=cache_folder()) as temporary:
        made = Path(temporary) / "sdk"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={_PYTHON}", "--target", str(made)]
        command += [f"--abi={abi}" for abi in ("cp311", "abi3", "none")]
        command += [f"--platform={platform}" for platform in _PLATFORMS]
        # pip's own configuration says where packages come from on this machine.
        try:
            done = subprocess.run([*command, wanted], capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode or not (made / "mcp").is_dir():
            return None
        for pattern in _UNUSED:
            for path in made.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        made.rename(folder)
    return folder
