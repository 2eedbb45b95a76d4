"""One recording: a control's variant in a cell, watched, and what is left of it packed as a bundle."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zstandard

from controls.catalog import Control, Variant
from controls.recorder.building import compilers, lay_out, packaged
from controls.recorder.canaries import HOME, PROJECT, planted, tag_of
from controls.recorder.cell import GATEWAY4, Cell
from controls.recorder.denial import DENIALS
from controls.recorder.errors import RecorderError
from controls.recorder.job import Captured, Job
from controls.recorder.microvm import nic
from controls.recorder.options import surroundings
from controls.recorder.probes import fresh_nonces
from controls.recorder.resume import inputs_of
from controls.recorder.room import CONTROL, STRACE_OPTIONS
from controls.recorder.shells import Netns, Shell
from controls.recorder.tools import scratch, version_of
from mcpdetect.model.manifest import (
    MANIFEST_SCHEMA,
    Manifest,
    ManifestEvidence,
    ManifestHost,
    ManifestLoss,
    ManifestProbe,
    ManifestProgram,
    ManifestRun,
    ManifestSecret,
    ManifestStep,
    ManifestTruth,
)
from mcpdetect.model.vocabulary import Channel

__all__ = ["record"]

_COMPRESS_FROM = 2048
"""Evidence of fewer bytes is left plain: it opens in an editor, and zstd would save nothing."""
_INTERPRETERS = frozenset({"bash", "curl", "java", "node", "openssl", "perl", "python3", "ruby", "wget"})
"""Programs of which a manifest states the version when they are the target."""
_LONG = 1 << 20
"""Evidence of more bytes is compressed less hard: the best level takes a second for each."""
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


def record(
    control: Control,
    variant: Variant,
    out: Path,
    *,
    seed: int = 0,
    probe: bool = False,
    shell: Shell | None = None,
    ready: bool = False,
) -> Path:
    """Record one variant and write its bundle.

    Args:
        control: the control.
        variant: one of its variants.
        out: root of the corpus; the bundle goes to ``<out>/<category>/<control>/<variant>``.
        seed: canaries are derived from it and the case's id.
        probe: run probes around the target, where its strace follows children.
        shell: where the cell stands; in namespaces of this machine by default.
        ready: the control's folder is shown to the target as it is, as installed servers are: nothing is built or
            copied.

    Returns:
        The bundle's folder.

    Raises:
        RecorderError: no root, a missing tool, or anything that makes the recording worthless.
    """
    shell = shell or Netns()
    shell.require([*(["gcc"] if probe else []), *compilers(variant.build), *packaged(variant.run)])
    case = f"{control.id}/{variant.name}"
    argv = [word.format(control=CONTROL, home=HOME, project=PROJECT) for word in variant.run]
    options = list(variant.strace or STRACE_OPTIONS)
    job = Job(
        case=case,
        argv=argv,
        tag=tag_of(seed, case),
        options=options,
        folder=variant.folder or PROJECT,
        denial=variant.denial,
        ipv6=variant.ipv6,
        dns=variant.dns,
        names=dict(variant.names),
        keylog=variant.keylog,
        capture=variant.capture,
        counters=variant.counters,
        hosts=list(variant.hosts),
        resolver=list(variant.resolver),
        mcp=variant.mcp,
        url=variant.url,
        thorough=variant.thorough,
        environment={
            **surroundings(ci=variant.ci, locale=variant.locale, timezone=variant.timezone),
            **variant.environment,
        },
        clock=variant.clock,
        calls=[dict(one) for one in variant.calls],
        binaries=variant.binaries or variant.thorough,
        seconds=variant.seconds,
        nonces=fresh_nonces() if probe and _follows(options) else None,
        tools=sorted({"strace", "tcpdump", "dnsmasq", "nft", *_interpreter(argv[0])}),
    )
    final = out / case
    try:
        with tempfile.TemporaryDirectory(prefix=scratch("record")) as temporary:
            folder = Path(temporary)
            watch, programs, bundle = folder / "watch", folder / "programs", folder / "bundle"
            for one in (watch, bundle):
                one.mkdir()
            if not ready:
                lay_out(control, variant, programs)
            captured = shell.capture(job, control.folder if ready else programs, watch)
            if variant.expectations:
                shutil.copyfile(control.folder / variant.expectations, bundle / "expect.yaml")
            if variant.approved:
                shutil.copyfile(control.folder / variant.approved, bundle / "approved.json")
            manifest = _manifest(control, variant, seed, job, captured, shell.name, watch, bundle)
            manifest.inputs = inputs_of(control, variant, seed=seed, probe=probe, where=shell.name)
            text = json.dumps(dataclasses.asdict(manifest), indent=1, ensure_ascii=True)
            (bundle / "manifest.json").write_text(text + "\n")
            _put(bundle, final)
    except OSError as error:  # a full disk above all
        raise RecorderError(f"{case}: {error}") from error
    return final


def _put(bundle: Path, final: Path) -> None:
    """Put a bundle in its place, whole or not at all."""
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{final.name}-{os.getpid()}")
    try:
        shutil.copytree(bundle, partial)
        if final.exists():
            shutil.rmtree(final)
        partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _manifest(
    control: Control,
    variant: Variant,
    seed: int,
    job: Job,
    captured: Captured,
    shell: str,
    watch: Path,
    bundle: Path,
) -> Manifest:
    target = (captured.started_ns, captured.ended_ns)
    whole = (captured.opened_ns, captured.closed_ns)
    return Manifest(
        schema=MANIFEST_SCHEMA,
        id=job.case,
        control=control.id,
        variant=variant.name,
        seed=seed,
        recorded=datetime.datetime.now(datetime.UTC).date().isoformat(),
        run=ManifestRun(
            target=job.argv,
            mode="denied" if job.denial else "open",
            denial=job.denial,
            entry=job.argv[0],
            resolvers=[GATEWAY4],
            started_ns=captured.started_ns,
            ended_ns=captured.ended_ns,
            exit=captured.exit,
            notes=captured.notes,
            session=[ManifestStep(**step) for step in captured.session],
            programs=[_program(one) for one in captured.programs],
        ),
        host=ManifestHost(
            kernel=captured.kernel,
            machine=captured.machine,
            shell=shell,
            versions={name: captured.versions[name] for name in _interpreter(job.argv[0])},
        ),
        evidence=[
            _pack(piece, bundle, *(target if piece.channel in ("syscalls", "mcp") else whole))
            for piece in (*_pieces(job, watch, captured.versions), *_files(watch, captured))
        ],
        secrets=[
            ManifestSecret(
                kind=one.kind,
                sha256=hashlib.sha256(one.value.encode()).hexdigest(),
                path=one.path,
                variable=one.variable,
                offset=captured.positions.get(one.path, one.offset) if one.path else one.offset,
            )
            for one in planted(job.tag, job.environment)
        ],
        expect="expect.yaml" if variant.expectations else None,
        baseline="approved.json" if variant.approved else None,
        truth=_truth(watch, bundle),
        probes=[
            ManifestProbe(phase, job.nonces[phase], channels)
            for phase, channels in captured.reached.items()
            if job.nonces is not None
        ],
    )


def _follows(options: Sequence[str]) -> bool:
    """Return whether strace follows children: without that, a launcher would hide the target."""
    return any(option in ("-f", "-ff", "--follow-forks") for option in options)


def _interpreter(program: str) -> list[str]:
    return [name] if (name := Path(program).name) in _INTERPRETERS else []


def _pieces(job: Job, watch: Path, versions: dict[str, str]) -> list[_Piece]:
    log = watch / "strace.log"
    pieces = [
        _Piece(
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
        pieces.append(
            _Piece(
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
        pieces.append(_Piece(card, card.name, "packets", "pcap", tool, nic.CAPTURE_OPTIONS, nic.SCOPE, complete=True))
    pieces.append(
        _Piece(
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
        pieces.append(
            _Piece(
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
        pieces.append(
            _Piece(
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
        pieces.append(
            _Piece(table, "nft.txt", "firewall", "nft-counters", versions["nft"], [], "the denying rules", True)
        )
    return pieces


def _program(facts: dict[str, Any]) -> ManifestProgram:
    """Return a program as a manifest says it; a long copy is packed, and its name tells."""
    program = ManifestProgram(**facts)
    if program.copied and (program.bytes or 0) >= _COMPRESS_FROM:
        program.copied += ".zst"
    return program


def _files(watch: Path, captured: Captured) -> list[_Piece]:
    """Return what changed in the target's files, and the programs that were copied."""
    path = watch / "files.json"
    head = json.loads(path.read_bytes())
    losses = [] if head["whole"] else [ManifestLoss("dropped", "there were more files than are looked at")]
    if not head["hashed"]:
        losses.append(ManifestLoss("dropped", "some files have no hash: they are too large, or could not be read"))
    scope = f"files below {', '.join(head['roots'])}"
    pieces = [_Piece(path, "files.json", "files", "files-diff", "recorder", [], scope, True, losses)]
    for one in captured.programs:
        if one["copied"]:
            source = watch / one["copied"]
            pieces.append(_Piece(source, one["copied"], "binaries", "elf", "recorder", [], one["path"], complete=True))
    return pieces


def _truth(watch: Path, bundle: Path) -> list[ManifestTruth]:
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


def _pack(piece: _Piece, bundle: Path, began: int, ended: int) -> ManifestEvidence:
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
