"""The guest's image: a kernel, an initramfs and a read-only root, built from Debian packages by one command."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from controls.recorder.errors import RecorderError
from controls.recorder.microvm.sdk import DIST_PACKAGES, requirement, sdk_wheels
from controls.recorder.probes import cache_folder
from controls.recorder.tools import environment, scratch

__all__ = ["Image", "build_image", "image_folder"]

_HERE = Path(__file__).resolve().parent
_SUITE = "bookworm"
_MIRROR = "http://deb.debian.org/debian"
_KERNEL = "linux-image-cloud-amd64"
_TOOLS = {"mmdebstrap": "mmdebstrap", "mksquashfs": "squashfs-tools", "cpio": "cpio", "depmod": "kmod"}
_FIRST_MODULES = ("virtio", "virtio_ring", "virtio_mmio", "virtio_blk", "squashfs", "overlay")
"""What the initramfs loads, in this order, each behind what it needs."""
_UNUSED = (
    "drivers/gpu",
    "drivers/infiniband",
    "drivers/media",
    "drivers/scsi",
    "drivers/hv",
    "drivers/net/ethernet",
    "fs/btrfs",
    "fs/xfs",
    "fs/ocfs2",
    "fs/gfs2",
    "fs/ceph",
    "fs/cifs",
    "fs/nfs",
    "fs/nfsd",
    "sound",
)
_SECONDS = 900
_COMPILE = ("/usr/bin/python3", "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash", f"/{DIST_PACKAGES}")

# Java's own set-up links its manual pages and fails where their folder was left out.
_MAKE_ROOM = 'mkdir -p "$1/usr/share/man/man1"'
# Runs in mmdebstrap's hook, $1 the tree: the kernel package unpacked without its initramfs tools.
_UNPACK_KERNEL = r"""
set -eu
tree=$1
export APT_CONFIG="${MMDEBSTRAP_APT_CONFIG:-$APT_CONFIG}"
real=$(apt-cache depends %s | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
mkdir "$tree/kernel"
(cd "$tree/kernel" && apt-get -o APT::Sandbox::User=root download "$real")
dpkg-deb -x "$tree"/kernel/*.deb "$tree/kernel/tree"
mv "$tree"/kernel/tree/lib/modules "$tree/usr/lib/modules"
mv "$tree"/kernel/tree/boot/vmlinuz-* "$tree/boot/vmlinuz"
rm -r "$tree/kernel"
"""


@dataclass(frozen=True, slots=True)
class Image:
    """The three files a guest boots from."""

    kernel: Path
    initramfs: Path
    root: Path


def image_folder() -> Path:
    """Return where the image of this version of the recorder lies, or will."""
    parts = [(_HERE / name).read_text() for name in ("packages.txt", "initramfs.sh", "init.sh", "agent.py")]
    parts += [requirement(), *_COMPILE, _SUITE, _MIRROR, _KERNEL, *_FIRST_MODULES, *_UNUSED, _MAKE_ROOM]
    parts.append(_UNPACK_KERNEL)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return cache_folder() / f"image-{digest}"


def build_image(say: Callable[[str], None] = lambda text: None) -> Image:
    """Return the image, built unless it was before.

    Args:
        say: told what is being done.

    Raises:
        RecorderError: a tool is missing or failed; the message says what to install, or what the tool said last.
    """
    folder = image_folder()
    image = Image(folder / "vmlinuz", folder / "initramfs.gz", folder / "root.squashfs")
    if all(path.exists() for path in (image.kernel, image.initramfs, image.root)):
        return image
    absent = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool, path=_path()) is None})
    if absent:
        raise RecorderError(f"building an image needs more tools (apt-get install {' '.join(absent)})")
    if os.geteuid() != 0:
        raise RecorderError("building an image makes a tree of files of several owners and needs root")
    with tempfile.TemporaryDirectory(prefix=scratch("image"), dir=cache_folder()) as temporary:
        work = Path(temporary)
        work.chmod(0o755)
        tree, done = work / "tree", work / "done"
        done.mkdir()
        say(f"making a {_SUITE} tree from Debian packages")
        _make_tree(tree)
        say("packing it")
        shutil.copyfile(tree / "boot/vmlinuz", done / "vmlinuz")
        _make_initramfs(tree, work / "first", done / "initramfs.gz")
        _furnish(tree)
        say("fetching the MCP SDK")
        wheels = sdk_wheels()
        if wheels is None:
            say("the MCP SDK cannot be had: sessions in the guest are held by the recorder's own client")
        else:
            shutil.copytree(wheels, tree / DIST_PACKAGES, dirs_exist_ok=True)
            # Compiling them in the guest would take it a minute at every boot.
            _tool("chroot", str(tree), *_COMPILE)
        _tool(
            "mksquashfs", str(tree), str(done / "root.squashfs"), "-comp", "lz4", "-noappend", "-quiet", "-no-progress"
        )
        if folder.exists():
            shutil.rmtree(folder)
        done.replace(folder)
    return image


def _path() -> str:
    return environment()["PATH"]


def _tool(*argv: str, stdin: bytes | None = None, cwd: Path | None = None) -> bytes:
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, timeout=_SECONDS, check=False, env=environment(), cwd=cwd
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RecorderError(f"{argv[0]}: {error}") from error
    if done.returncode:
        last = "\n".join(done.stderr.decode("utf-8", "backslashreplace").splitlines()[-30:])
        raise RecorderError(f"{argv[0]}: exit {done.returncode}: {last}")
    return done.stdout


def _make_tree(tree: Path) -> None:
    wanted = [line for line in (_HERE / "packages.txt").read_text().splitlines() if line and not line.startswith("#")]
    _tool(
        "mmdebstrap",
        "--variant=essential",
        f"--include={','.join(wanted)}",
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale", "info")),
        f"--essential-hook={_MAKE_ROOM}",
        f"--customize-hook={_UNPACK_KERNEL % _KERNEL}",
        _SUITE,
        str(tree),
        _MIRROR,
    )


def _make_initramfs(tree: Path, first: Path, to: Path) -> None:
    release = next((tree / "usr/lib/modules").iterdir()).name
    modules = tree / "usr/lib/modules" / release
    for name in _UNUSED:
        shutil.rmtree(modules / "kernel" / name, ignore_errors=True)
    _tool("depmod", "-b", str(tree / "usr"), release)
    for name in ("bin", "modules", "proc", "sys", "dev", "low", "high", "root"):
        (first / name).mkdir(parents=True)
    shutil.copyfile(tree / "bin/busybox", first / "bin/busybox")
    shutil.copyfile(_HERE / "initramfs.sh", first / "init")
    for path in (first / "bin/busybox", first / "init"):
        path.chmod(0o755)
    order: list[str] = []
    for name in _FIRST_MODULES:
        # insmod /tree/lib/modules/6.1.0/kernel/drivers/virtio/virtio.ko
        said = _tool("modprobe", "-d", str(tree / "usr"), "-S", release, "--show-depends", name).decode()
        order += [words[1] for line in said.splitlines() if len(words := line.split()) > 1 and words[0] == "insmod"]
    for number, module in enumerate(dict.fromkeys(order)):
        shutil.copyfile(module, first / f"modules/{number:02}-{Path(module).name}")
    listing = b"\n".join(str(path.relative_to(first)).encode() for path in sorted(first.rglob("*")))
    archive = _tool("cpio", "-o", "-H", "newc", "--quiet", stdin=listing, cwd=first)
    to.write_bytes(_tool("gzip", "-1", "-c", stdin=archive))


def _furnish(tree: Path) -> None:
    """Put init and agent into the tree, and take out what no guest reads."""
    for name in ("var/cache/apt", "var/lib/apt/lists", "boot", "var/log"):
        shutil.rmtree(tree / name, ignore_errors=True)
    for source, path, mode in (
        ("init.sh", "usr/local/sbin/guest-init", 0o755),
        ("agent.py", "usr/local/lib/guest-agent.py", 0o644),
    ):
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_HERE / source, target)
        target.chmod(mode)
    (tree / "etc/resolv.conf").unlink(missing_ok=True)
