"""What tests let a guest do: this module takes the place of the recorder's code inside it. Standard library alone.

It runs as root and first process of the guest, which no recorded program does.
"""

import io
import json
import os
import socket
import subprocess
import tarfile
import time
from pathlib import Path

ADDRESSES = ["10.0.2.2", "10.0.2.3", "10.0.2.4", "127.0.0.1", "169.254.169.254", "192.168.1.1", "1.1.1.1", "8.8.8.8"]
"""QEMU's user network (gateway, name server, samba), the metadata service, a home router, the world."""


def prepare() -> None:
    """Nothing."""


def _names(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir()) if Path(folder).exists() else []


def attempt(family: int, kind: int, address: tuple[str | int, int]) -> str:
    """Connect, and send where that is how to reach something; return the error's name, or ``reached``."""
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(2.0)
            one.connect(address)
            if kind == socket.SOCK_DGRAM:
                one.send(b"anybody there?")
                one.recv(100)
            return "reached"
    except OSError as error:
        return type(error).__name__ if error.errno is None else os.strerror(error.errno)


def escape() -> bytes:
    """Try every way out that a machine may have, and tell what came of it."""
    subprocess.run(["modprobe", "-a", "virtio_net", "vsock", "vmw_vsock_virtio_transport", "e1000"], check=False)
    tried = {}
    for address in (*ADDRESSES, os.environ.get("HOST_ADDRESS", "172.17.0.1")):
        for port in (22, 53, 80, 443, 445):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                tried[f"{address}:{port}/{kind.name}"] = attempt(socket.AF_INET, kind, (address, port))
    for cid in (0, 1, 2):
        tried[f"vsock {cid}"] = attempt(socket.AF_VSOCK, socket.SOCK_STREAM, (cid, 22))
    try:
        tried["name"] = str(socket.getaddrinfo("example.com", 80)[0][4][0])
    except OSError as error:
        tried["name"] = type(error).__name__
    ports = _names("/sys/class/virtio-ports")
    return json.dumps(
        {
            "tried": tried,
            "interfaces": _names("/sys/class/net"),
            "routes": Path("/proc/net/route").read_text().splitlines()[1:],
            "ports": ports,
            "pci": _names("/sys/bus/pci/devices"),
            "virtio": sorted(
                (path / "device").read_text().strip() for path in Path("/sys/bus/virtio/devices").iterdir()
            ),
            "disks": sorted(path.name for path in Path("/sys/block").iterdir() if not path.name.startswith("loop")),
            "root disk read-only": Path("/sys/block/vda/ro").read_text().strip(),
        }
    ).encode()


def fill() -> bytes:
    """Fill the disk."""
    with Path("/big").open("wb") as out:
        while True:
            out.write(bytes(1 << 20))


def run(folder: Path, answer: object) -> None:
    """Do what the job's case says."""
    act = json.loads((folder / "job.json").read_text())["case"]
    if act == "panic":
        Path("/proc/sysrq-trigger").write_text("c")
    if act == "die":
        os._exit(3)
    if act == "hang":
        time.sleep(3600)
    content = b"no tar at all"
    if act in ("escape", "fill"):
        name = "captured.json"
        try:
            content = escape() if act == "escape" else fill()
        except OSError as error:
            name, content = "failed", str(error).encode()
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for one in (name, "../outside", "/etc/outside"):
                info = tarfile.TarInfo(one)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        content = out.getvalue()
    answer(content)  # type: ignore[operator]
