"""The guest's two network cards: the ends of a cell's wire, joined by a hub of QEMU's that leads nowhere else.

What crosses it is captured by QEMU, outside the guest (``filter-dump``), where nothing inside can reach, stop or forge
it. QEMU stamps packets with the guest's own count of time; ``aligned`` gives them the time of day, by the packets that
tcpdump in the guest saw as well.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mcpdetect.model.manifest import ManifestLoss

__all__ = [
    "CAPTURE",
    "CAPTURE_OPTIONS",
    "INSIDE",
    "MAC_INSIDE",
    "MAC_OUTSIDE",
    "MAX_LENGTH",
    "MISSED",
    "SCOPE",
    "aligned",
    "cards",
    "losses",
    "qemu_options",
]

MAC_INSIDE, MAC_OUTSIDE = "52:54:00:c0:de:01", "52:54:00:c0:de:02"
"""The card that becomes the server's ``eth0``, and the one that becomes the gateway's ``wire``."""
INSIDE = "inside"
"""The hub's port of the server's card: where packets are captured, and whose link is set."""
CAPTURE = "nic.pcap"
"""The file of what crossed the server's card."""
MISSED = "nic-missed.txt"
"""The file with the number of packets that tcpdump in the guest did not see."""
MAX_LENGTH = 262144
"""Most bytes kept of a packet."""
CAPTURE_OPTIONS = ["filter-dump", f"netdev={INSIDE}", f"maxlen={MAX_LENGTH}"]
"""How QEMU captures, as manifests state it."""

SCOPE = "network card of the guest that is the server's eth0, seen from outside"
"""What the capture covers, as manifests state it."""

_FILE_HEADER = 24  # pcap-savefile(5)
_RECORD = struct.Struct("<IIII")
_MAGIC = b"\xd4\xc3\xb2\xa1"
_SECOND = 1_000_000
_MAX_FRAME = 1 << 20


def qemu_options() -> list[str]:
    """Return QEMU's options for the two cards and the hub between them."""
    return [
        *("-netdev", f"hubport,id={INSIDE},hubid=0", "-netdev", "hubport,id=outside,hubid=0"),
        *("-device", f"virtio-net-device,netdev={INSIDE},mac={MAC_INSIDE}"),
        *("-device", f"virtio-net-device,netdev=outside,mac={MAC_OUTSIDE}"),
    ]


def cards(root: Path = Path("/sys/class/net")) -> tuple[str, str] | None:
    """Return the names that the guest's kernel gave the two cards, None where they are not both there."""
    names = {
        (path / "address").read_text().strip(): path.name for path in root.iterdir() if (path / "address").exists()
    }
    if MAC_INSIDE in names and MAC_OUTSIDE in names:
        return names[MAC_INSIDE], names[MAC_OUTSIDE]
    return None


def losses(watch: Path) -> list[ManifestLoss]:
    """Return what tcpdump in the guest is known to have missed: packets that crossed the card meanwhile.

    Args:
        watch: the recording's folder.
    """
    count = int((watch / MISSED).read_text()) if (watch / MISSED).exists() else 0
    return [ManifestLoss("dropped", "packets that crossed the network card, unseen by tcpdump", count)] if count else []


def _records(capture: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield offset, microseconds and frame of every whole packet of a little-endian pcap file."""
    if capture[:4] != _MAGIC:
        return
    at = _FILE_HEADER
    while at + _RECORD.size <= len(capture):
        seconds, micros, kept, _ = _RECORD.unpack_from(capture, at)
        if kept > _MAX_FRAME or at + _RECORD.size + kept > len(capture):
            return
        yield at, seconds * _SECOND + micros, capture[at + _RECORD.size : at + _RECORD.size + kept]
        at += _RECORD.size + kept


def aligned(outer: bytes, inner: bytes) -> tuple[bytes, int] | None:
    """Return QEMU's capture with the guest's time of day, and how many packets tcpdump in the guest missed meanwhile.

    The clocks differ by a constant: the smallest difference between the two stamps of a packet, those that were sent
    once alone counting, because tcpdump stamps in the kernel and QEMU a moment later.

    Args:
        outer: QEMU's capture.
        inner: tcpdump's.

    Returns:
        None where packets crossed the card and none is in both: nobody knows when.
    """
    ours, theirs = list(_records(outer)), list(_records(inner))
    if not ours:
        return outer, 0
    stamps: dict[bytes, list[int]] = {}
    for _, stamp, frame in theirs:
        stamps.setdefault(frame, []).append(stamp)
    number = Counter(frame for _, _, frame in ours)
    shifts = [stamp - stamps[frame][0] for _, stamp, frame in ours if number[frame] == len(stamps.get(frame, ())) == 1]
    if not shifts:
        return None
    shift = min(shifts)
    out = bytearray(outer)
    for at, stamp, _ in ours:
        seconds, micros = divmod(max(0, stamp - shift), _SECOND)
        struct.pack_into("<II", out, at, seconds & 0xFFFFFFFF, micros)
    both = [at for at, (_, _, frame) in enumerate(ours) if frame in stamps]
    meanwhile = ours[both[0] : both[-1] + 1]
    return bytes(out), sum(frame not in stamps for _, _, frame in meanwhile)
