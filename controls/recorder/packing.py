"""A recording's files as the evidence of a bundle: what each is, what it is known to have lost, and packing it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import zstandard

from controls.recorder import packetlog
from controls.recorder.cell import GATEWAY4, Cell
from controls.recorder.denial import DENIALS
from controls.recorder.job import Captured, Job
from controls.recorder.microvm import nic
from controls.recorder.tools import version_of
from mcpdetect.model.manifest import ManifestEvidence, ManifestLoss, ManifestProgram, ManifestTruth
from mcpdetect.model.vocabulary import Channel

__all__ = ["Piece", "changed_files", "pack", "pieces", "program", "truth"]

_COMPRESS_FROM = 2048
"""Evidence of fewer bytes is left plain: it opens in an editor, and zstd would save nothing."""
_LONG = 1 << 20
"""Evidence of more bytes is compressed less hard: the best level takes a second for each."""
# 3 packets dropped by kernel
_DROPPED = re.compile(rb"^(\d++) packets? dropped by (kernel|interface)$", re.MULTILINE)


@dataclasses.dataclass(slots=True)
class Piece:
    """One evidence file before packing."""

    source: Path
    name: str
    channel: Channel
    format: str
    tool: str
    options: list[str]
    scope: str
    complete: bool
    losses: list[ManifestLoss] = dataclasses.field(default_factory=list)


def pieces(job: Job, watch: Path, versions: dict[str, str]) -> list[Piece]:
    """Return what the watchers of a recording wrote.

    Args:
        job: what was recorded.
        watch: the folder of what they wrote.
        versions: program -> name and version.
    """
    log = watch / "strace.log"
    found = [
        Piece(
            log,
            "strace.log",
            "syscalls",
            "strace",
            versions["strace"],
            job.options,
            "process tree of the target",
            complete=b"+++" in log.read_bytes()[-200:],
        )
    ]
    if job.capture:
        said = (watch / "tcpdump.txt").read_bytes()
        gone = job.denial is not None and DENIALS[job.denial].gone
        losses = [
            ManifestLoss("dropped", f"tcpdump: packets dropped by {who.decode()}", int(count))
            for count, who in _DROPPED.findall(said)
            if int(count)
        ]
        losses += nic.losses(watch)
        found.append(
            Piece(
                watch / "capture.pcap",
                "capture.pcap",
                "packets",
                "pcap",
                versions["tcpdump"],
                Cell.capture_options(job.denial),
                "every interface of the server namespace" if gone else "eth0 of the server namespace",
                complete=b"dropped by kernel" in said,
                losses=losses,
            )
        )
    card = watch / nic.CAPTURE
    if card.exists():
        tool = version_of("qemu-system-x86_64")
        found.append(Piece(card, card.name, "packets", "pcap", tool, nic.CAPTURE_OPTIONS, nic.SCOPE, complete=True))
    found.append(
        Piece(
            watch / "dnsmasq.log",
            "dnsmasq.log",
            "dns",
            "dnsmasq",
            versions["dnsmasq"],
            Cell.dns_options(),
            f"resolver {GATEWAY4}",
            complete=b"exiting on receipt of SIGTERM" in (watch / "dnsmasq.log").read_bytes(),
        )
    )
    if job.mcp:
        found.append(
            Piece(
                watch / "mcp.jsonl",
                "mcp.jsonl",
                "mcp",
                "mcp-ndjson",
                versions.get("driver", "recorder"),
                [],
                "standard input and output of the target" if job.url is None else f"HTTP at {job.url}",
                complete=True,
            )
        )
    if (watch / "tls-keys.log").exists():
        found.append(
            Piece(
                watch / "tls-keys.log",
                "tls-keys.log",
                "packets",
                "tls-keylog",
                Path(job.argv[0]).name,
                [],
                "TLS connections of programs that keep such a log",
                complete=True,
            )
        )
    table = watch / "nft.txt"
    if table.exists():
        found.append(
            Piece(table, "nft.txt", "firewall", "nft-counters", versions["nft"], [], "the denying rules", True)
        )
    if packetlog.logs(watch):
        packets = watch / packetlog.NAME
        lost, whole = packetlog.log_losses((watch / "ulogd.txt").read_bytes())
        losses = [ManifestLoss("dropped", "ulogd: the kernel had no room for packets", lost)] if lost else []
        tool, scope = versions[packetlog.LOG], "packets of the denying rules"
        found.append(Piece(packets, packetlog.NAME, "firewall", "kernel-log", tool, [], scope, whole, losses))
    return found


def program(facts: dict[str, Any]) -> ManifestProgram:
    """Return a program as a manifest says it; a long copy is packed, and its name tells."""
    one = ManifestProgram(**facts)
    if one.copied and (one.bytes or 0) >= _COMPRESS_FROM:
        one.copied += ".zst"
    return one


def changed_files(watch: Path, captured: Captured) -> list[Piece]:
    """Return what changed in the target's files, and the programs that were copied."""
    path = watch / "files.json"
    head = json.loads(path.read_bytes())
    losses = [] if head["whole"] else [ManifestLoss("dropped", "there were more files than are looked at")]
    if not head["hashed"]:
        losses.append(ManifestLoss("dropped", "some files have no hash: they are too large, or could not be read"))
    scope = f"files below {', '.join(head['roots'])}"
    found = [Piece(path, "files.json", "files", "files-diff", "recorder", [], scope, True, losses)]
    for one in captured.programs:
        if one["copied"]:
            source = watch / one["copied"]
            found.append(Piece(source, one["copied"], "binaries", "elf", "recorder", [], one["path"], complete=True))
    return found


def truth(watch: Path, bundle: Path) -> list[ManifestTruth]:
    """Pack what the fake internet received: beside the evidence, never among it."""
    (bundle / "truth").mkdir()
    data = (watch / "internet.jsonl").read_bytes()
    name = "truth/internet.jsonl"
    if len(data) >= _COMPRESS_FROM:
        data = _compressed(data)
        name += ".zst"
    (bundle / name).write_bytes(data)
    return [ManifestTruth(name, "fake-internet", hashlib.sha256(data).hexdigest(), len(data))]


def _compressed(data: bytes) -> bytes:
    """Compress evidence: as small as can be what is committed; a real server's long log thirty times as fast."""
    level = 19 if len(data) < _LONG else 9
    return zstandard.ZstdCompressor(level=level, write_checksum=True).compress(data)


def pack(piece: Piece, bundle: Path, began: int, ended: int) -> ManifestEvidence:
    """Put a piece into a bundle, compressed where that saves something; return its entry for the manifest.

    Args:
        piece: the piece.
        bundle: the bundle's folder.
        began: when its tool was ready.
        ended: when it was told to stop.
    """
    data = piece.source.read_bytes()
    name = piece.name
    if len(data) >= _COMPRESS_FROM:
        data = _compressed(data)
        name += ".zst"
    (bundle / name).write_bytes(data)
    return ManifestEvidence(
        path=name,
        channel=piece.channel,
        format=piece.format,
        tool=piece.tool,
        options=piece.options,
        begin_ns=began,
        end_ns=ended,
        complete=piece.complete,
        scope=piece.scope,
        losses=piece.losses,
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
    )
