"""One recording: a control's variant in a cell, watched, and what is left of it packed as a bundle."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from controls.catalog import Control, Variant
from controls.recorder import packetlog
from controls.recorder.building import compilers, lay_out, packaged
from controls.recorder.canaries import HOME, PROJECT, planted, tag_of
from controls.recorder.cell import GATEWAY4
from controls.recorder.errors import RecorderError
from controls.recorder.job import Captured, Job
from controls.recorder.options import surroundings
from controls.recorder.packing import changed_files, pack, pieces, program, truth
from controls.recorder.probes import fresh_nonces
from controls.recorder.resume import inputs_of
from controls.recorder.room import CONTROL, STRACE_OPTIONS
from controls.recorder.shells import Netns, Shell
from controls.recorder.tools import scratch
from mcpdetect.model.manifest import (
    MANIFEST_SCHEMA,
    Manifest,
    ManifestClock,
    ManifestHost,
    ManifestProbe,
    ManifestRun,
    ManifestSecret,
    ManifestStep,
)

__all__ = ["record"]

_INTERPRETERS = frozenset({"bash", "curl", "java", "node", "openssl", "perl", "python3", "ruby", "wget"})
"""Programs of which a manifest states the version when they are the target."""


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
    tool = [packetlog.LOG] if variant.log else []
    shell.require([*(["gcc"] if probe else []), *tool, *compilers(variant.build), *packaged(variant.run)])
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
        log=variant.log,
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
        tools=sorted({"strace", "tcpdump", "dnsmasq", "nft", *tool, *_interpreter(argv[0])}),
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
            programs=[program(one) for one in captured.programs],
            clocks=[ManifestClock(**one) for one in captured.clocks],
        ),
        host=ManifestHost(
            kernel=captured.kernel,
            machine=captured.machine,
            shell=shell,
            versions={name: captured.versions[name] for name in _interpreter(job.argv[0])},
        ),
        evidence=[
            pack(piece, bundle, *(target if piece.channel in ("syscalls", "mcp") else whole))
            for piece in (*pieces(job, watch, captured.versions), *changed_files(watch, captured))
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
        truth=truth(watch, bundle),
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
