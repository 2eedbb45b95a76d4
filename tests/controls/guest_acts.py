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
from concurrent.futures import ThreadPoolExecutor
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


def wire_up() -> dict[str, str]:
    """Give each network card an address as QEMU's user network would, a route, and try once more, all at once."""
    tried = {}
    for card in ("eth0", "eth1"):
        setting = (
            f"ip link set {card} up; ip addr add 10.0.2.15/24 dev {card}; ip route add default via 10.0.2.2 dev {card}"
        )
        subprocess.run(["sh", "-c", setting], check=False, capture_output=True)
        with ThreadPoolExecutor(16) as pool:
            waiting = {
                f"{card} {address}:{port}/{kind.name}": pool.submit(attempt, socket.AF_INET, kind, (address, port))
                for address in ("10.0.2.2", "10.0.2.3", "169.254.169.254", "1.1.1.1")
                for port in (53, 80)
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)
            }
            tried.update({name: one.result() for name, one in waiting.items()})
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as lease:
            lease.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            lease.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, card.encode())
            lease.bind(("", 68))
            lease.settimeout(2.0)
            # DHCPDISCOVER (RFC 2131): operation, Ethernet, transaction, flags: broadcast; the magic cookie, option 53.
            ask = bytes([1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0x80, 0]) + bytes(224) + b"\x63\x82\x53\x63\x35\x01\x01\xff"
            try:
                lease.sendto(ask, ("255.255.255.255", 67))
                tried[f"{card} lease"] = "reached" if lease.recv(2000) else "nothing"
            except OSError as error:
                tried[f"{card} lease"] = type(error).__name__
        subprocess.run(["ip", "link", "set", card, "down"], check=False, capture_output=True)
    return tried


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
    routes = Path("/proc/net/route").read_text().splitlines()[1:]
    wired = wire_up()
    ports = _names("/sys/class/virtio-ports")
    return json.dumps(
        {
            "tried": tried,
            "interfaces": _names("/sys/class/net"),
            "routes": routes,
            "wired": wired,
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
