"""One recording: a control's variant in a cell, watched, and what is left of it packed as a bundle."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import platform
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import zstandard

from controls.catalog import Control, Variant
from controls.recorder.canaries import HOME, PROJECT, Planted, environment_canaries, plant, tag_of
from controls.recorder.cell import GATEWAY4, Cell
from controls.recorder.client import drive
from controls.recorder.errors import RecorderError
from controls.recorder.room import CONTROL, STRACE_OPTIONS, Room
from controls.recorder.tools import require, run, version_of
from mcpdetect.model.manifest import (
    MANIFEST_SCHEMA,
    Manifest,
    ManifestEvidence,
    ManifestHost,
    ManifestLoss,
    ManifestRun,
    ManifestSecret,
)
from mcpdetect.model.vocabulary import Channel

__all__ = ["record"]

_COMPRESS_FROM = 2048
"""Evidence of fewer bytes is left plain: it opens in an editor, and zstd would save nothing."""
# 3 packets dropped by kernel
_DROPPED = re.compile(rb"^(\d++) packets? dropped by (kernel|interface)$", re.MULTILINE)


@dataclasses.dataclass(slots=True)
class _Piece:
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


def record(control: Control, variant: Variant, out: Path, *, seed: int = 0) -> Path:
    """Record one variant and write its bundle.

    Args:
        control: the control.
        variant: one of its variants.
        out: root of the corpus; the bundle goes to ``<out>/<category>/<control>/<variant>``.
        seed: canaries are derived from it and the case's id.

    Returns:
        The bundle's folder.

    Raises:
        RecorderError: no root, a missing tool, or anything that makes the recording worthless.
    """
    require([*(["gcc"] if variant.build else []), *(["node"] if variant.axes.get("runtime") == "node" else [])])
    case = f"{control.id}/{variant.name}"
    with tempfile.TemporaryDirectory(prefix="mcpdetect-") as temporary:
        folder = Path(temporary)
        watch, stage = folder / "watch", folder / "stage"
        watch.mkdir()
        programs = folder / "programs"
        _programs(control, variant, programs)
        room = Room(stage, programs, resolver=[f"nameserver {GATEWAY4}", *variant.resolver], hosts=variant.hosts)
        tag = tag_of(seed, case)
        planted = plant(room.home, tag) + environment_canaries(tag)
        room.own()
        bundle = folder / "bundle"
        bundle.mkdir()
        manifest = _run(case, control, variant, seed, room, planted, watch, bundle)
        text = json.dumps(dataclasses.asdict(manifest), indent=1, ensure_ascii=True)
        (bundle / "manifest.json").write_text(text + "\n")
        final = out / case
        if final.exists():
            shutil.rmtree(final)
        final.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(bundle, final)
    return final


def _programs(control: Control, variant: Variant, to: Path) -> None:
    """Copy the control's programs and build its C sources."""
    shutil.copytree(control.folder, to, ignore=shutil.ignore_patterns("control.yaml", "expect*.yaml", "__pycache__"))
    for name in variant.build:
        source = to / name
        link = ["-static"] if variant.link == "static" else []
        run("gcc", "-O1", "-Wall", *link, "-o", str(source.with_suffix("")), str(source))
    for path in to.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.suffix == "" else 0o644)


def _run(
    case: str,
    control: Control,
    variant: Variant,
    seed: int,
    room: Room,
    planted: list[Planted],
    watch: Path,
    bundle: Path,
) -> Manifest:
    argv = [word.format(control=CONTROL, home=HOME, project=PROJECT) for word in variant.run]
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": HOME,
        "USER": "dev",
        "LANG": "C.UTF-8",
        **{one.variable: one.value for one in planted if one.variable},
    }
    options = list(variant.strace or STRACE_OPTIONS)
    opened = time.time_ns()
    with Cell(watch, denial=variant.denial, ipv6=variant.ipv6, dns=variant.dns, capture=variant.capture) as cell:
        started = time.time_ns()
        pipe = subprocess.PIPE if variant.mcp else subprocess.DEVNULL
        target = room.start(
            cell.keeper, argv, environment, options=options, folder=variant.folder or PROJECT, stdin=pipe, stdout=pipe
        )
        try:
            if variant.mcp and target.process.stdin and target.process.stdout:
                drive(target.process.stdin, target.process.stdout, watch / "mcp.jsonl", variant.seconds)
            status = room.finish(target, variant.seconds)
        except RecorderError as error:
            raise RecorderError(f"{case}: {error}\n{room.said()}") from error
        finally:
            target.stop()
        ended = time.time_ns()
        if not room.log.exists() or not room.log.stat().st_size:
            raise RecorderError(f"{case}: strace wrote nothing:\n{room.said()}")
        cell.settle()
        counted = cell.counters() if variant.counters else None
        cell.close_watchers()
        closed = time.time_ns()
    pieces = _pieces(variant, room, watch, options, counted)
    evidence = [
        _pack(piece, bundle, *((started, ended) if piece.channel in ("syscalls", "mcp") else (opened, closed)))
        for piece in pieces
    ]
    if variant.expectations:
        shutil.copyfile(control.folder / variant.expectations, bundle / "expect.yaml")
    return Manifest(
        schema=MANIFEST_SCHEMA,
        id=case,
        control=control.id,
        variant=variant.name,
        seed=seed,
        recorded=datetime.datetime.now(datetime.UTC).date().isoformat(),
        run=ManifestRun(
            target=argv,
            mode="denied" if variant.denial else "open",
            denial=variant.denial,
            entry=argv[0],
            resolvers=[GATEWAY4],
            started_ns=started,
            ended_ns=ended,
            exit=status,
        ),
        host=ManifestHost(
            kernel=platform.release(), machine=platform.machine(), shell="netns", versions=_versions(argv[0])
        ),
        evidence=evidence,
        secrets=[
            ManifestSecret(
                kind=one.kind,
                sha256=hashlib.sha256(one.value.encode()).hexdigest(),
                path=one.path,
                variable=one.variable,
                value=one.value,
            )
            for one in planted
        ],
        expect="expect.yaml" if variant.expectations else None,
    )


def _versions(program: str) -> dict[str, str]:
    name = Path(program).name
    return {name: version_of(program)} if name in ("python3", "node") else {}


def _pieces(variant: Variant, room: Room, watch: Path, options: list[str], counted: str | None) -> list[_Piece]:
    pieces = [
        _Piece(
            room.log,
            "strace.log",
            "syscalls",
            "strace",
            version_of("strace"),
            options,
            "process tree of the target",
            complete=b"+++" in room.log.read_bytes()[-200:],
        )
    ]
    if variant.capture:
        said = (watch / "tcpdump.txt").read_bytes()
        losses = [
            ManifestLoss("dropped", f"tcpdump: packets dropped by {who.decode()}", int(count))
            for count, who in _DROPPED.findall(said)
            if int(count)
        ]
        pieces.append(
            _Piece(
                watch / "capture.pcap",
                "capture.pcap",
                "packets",
                "pcap",
                version_of("tcpdump"),
                Cell.capture_options(),
                "eth0 of the server namespace",
                complete=b"dropped by kernel" in said,
                losses=losses,
            )
        )
    pieces.append(
        _Piece(
            watch / "dnsmasq.log",
            "dnsmasq.log",
            "dns",
            "dnsmasq",
            version_of("dnsmasq"),
            Cell.dns_options(),
            f"resolver {GATEWAY4}",
            complete=b"exiting on receipt of SIGTERM" in (watch / "dnsmasq.log").read_bytes(),
        )
    )
    if variant.mcp:
        pieces.append(
            _Piece(
                watch / "mcp.jsonl",
                "mcp.jsonl",
                "mcp",
                "mcp-ndjson",
                "recorder",
                [],
                "standard input and output of the target",
                complete=True,
            )
        )
    if counted is not None:
        table = watch / "nft.txt"
        table.write_text(counted)
        pieces.append(
            _Piece(table, "nft.txt", "firewall", "nft-counters", version_of("nft"), [], "the denying rules", True)
        )
    return pieces


def _pack(piece: _Piece, bundle: Path, began: int, ended: int) -> ManifestEvidence:
    data = piece.source.read_bytes()
    name = piece.name
    if len(data) >= _COMPRESS_FROM:
        data = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(data)
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
