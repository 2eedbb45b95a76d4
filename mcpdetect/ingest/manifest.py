"""A bundle: the evidence files of one recorded run, and what its ``manifest.json`` declares about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.strictjson import fail, load_json, read_value
from mcpdetect.model.inputs import Canary, Secrets
from mcpdetect.model.manifest import MANIFEST_SCHEMA, Manifest, ManifestEvidence, ManifestSecret
from mcpdetect.model.observation import Loss
from mcpdetect.model.probe_acts import NONCE, ProbeRun
from mcpdetect.model.text import text_of
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Channel

__all__ = ["MANIFEST_NAME", "Bundle", "BundleEvidence", "load_manifest"]

MANIFEST_NAME = "manifest.json"
"""Name of the file that makes a folder a bundle."""


@dataclass(slots=True)
class BundleEvidence:
    """One evidence file of a bundle.

    Attributes:
        path: where it is.
        name: its name in every ``Where``: relative to the bundle.
        channel, format: what it is.
        declared: what the manifest says about it.
    """

    path: Path
    name: str
    channel: Channel
    format: str
    declared: Declared


@dataclass(slots=True)
class Bundle:
    """A run and its evidence files.

    Attributes:
        root: the bundle's folder.
        run: metadata; ``declared`` is set.
        evidence: the files, in the manifest's order.
        secrets: what was planted, where the manifest says so.
        tag: the canary tag of the run, where only that is known (a secrets file makes values of it).
        expect: an expectations file of the bundle, where it has one.
        baseline: an approved description in the bundle, where it has one.
        probes: the probes that the recorder ran.
    """

    root: Path
    run: Run
    evidence: list[BundleEvidence] = field(default_factory=list)
    secrets: Secrets | None = None
    tag: str | None = None
    expect: Path | None = None
    baseline: Path | None = None
    probes: list[ProbeRun] = field(default_factory=list)


def load_manifest(path: Path) -> Bundle:
    """Read a bundle by its folder or its ``manifest.json``; every file is there and has the recorded hash.

    Raises:
        ConfigError: naming file, JSON place, value, cause and what to try.
    """
    file = path / MANIFEST_NAME if path.is_dir() else path
    name = str(file)
    data = load_json(file, name)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != MANIFEST_SCHEMA:
        fail(
            name,
            "/schema",
            f"is not a manifest this version reads ({MANIFEST_SCHEMA})",
            schema,
            cause="it was written by another version, or is another kind of file",
        )
    manifest = read_value(Manifest, data, name)
    root = file.parent
    evidence: list[BundleEvidence] = []
    for at, entry in enumerate(manifest.evidence):
        place = f"/evidence/{at}"
        if any(entry.path == other.name for other in evidence):
            fail(name, f"{place}/path", "names the same file as an entry before it", entry.path)
        if entry.end_ns < entry.begin_ns:
            fail(name, f"{place}/end_ns", "ends before it begins", entry.end_ns)
        target = _inside(root, entry.path, name, f"{place}/path")
        _verify(target, entry, name, place)
        evidence.append(BundleEvidence(target, entry.path, entry.channel, entry.format, _declared(entry)))
    if manifest.run.ended_ns < manifest.run.started_ns:
        fail(name, "/run/ended_ns", "the run ends before it starts", manifest.run.ended_ns)
    if (manifest.run.mode == "denied") != (manifest.run.denial is not None):
        fail(name, "/run/denial", "a denied run names its denial, an open one has none", manifest.run.denial)
    return Bundle(
        root=root,
        run=_run(manifest),
        evidence=evidence,
        secrets=_secrets(manifest, name),
        expect=_inside(root, manifest.expect, name, "/expect") if manifest.expect is not None else None,
        baseline=_inside(root, manifest.baseline, name, "/baseline") if manifest.baseline is not None else None,
        probes=_probes(manifest, name),
    )


def _run(manifest: Manifest) -> Run:
    run = manifest.run
    return Run(
        id=manifest.id,
        target=list(run.target),
        mode=run.mode,
        denial=run.denial,
        entry=run.entry,
        started_ns=run.started_ns,
        ended_ns=run.ended_ns,
        resolvers=list(run.resolvers),
        declared=True,
    )


def _inside(root: Path, written: str, name: str, place: str) -> Path:
    """Return a path of the manifest below its folder; a manifest cannot point elsewhere."""
    pure = PurePosixPath(written)
    if not written or "\0" in written or pure.is_absolute() or ".." in pure.parts:
        fail(name, place, "must be a plain path inside the bundle", written)
    target = root / pure
    try:
        real = target.resolve(strict=True)
    except (OSError, RuntimeError):
        fail(
            name,
            place,
            "the file is not in the bundle",
            written,
            cause="the bundle was copied in part, or the file was renamed or compressed later",
            hint="record again, or take the entry out to say that this evidence does not exist",
        )
    if not real.is_relative_to(root.resolve()):
        fail(name, place, "leads out of the bundle", written, cause="a symbolic link")
    if not real.is_file():
        fail(name, place, "is no file", written)
    return target


def _verify(path: Path, entry: ManifestEvidence, name: str, place: str) -> None:
    """Compare size and hash: evidence that was changed since is not this run's."""
    size = path.stat().st_size
    if size != entry.bytes:
        fail(
            name,
            f"{place}/bytes",
            f"{entry.path} has {size} bytes",
            entry.bytes,
            cause="the file was changed or cut after the recording",
        )
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != entry.sha256:
        fail(
            name,
            f"{place}/sha256",
            f"{entry.path} has sha256 {digest}",
            entry.sha256,
            cause="the file was changed after the recording, or line ends were converted by git",
        )


def _declared(entry: ManifestEvidence) -> Declared:
    return Declared(
        tool=entry.tool,
        options=list(entry.options),
        begin_ns=entry.begin_ns,
        end_ns=entry.end_ns,
        complete=entry.complete,
        scope=entry.scope,
        losses=[Loss(loss.what, loss.detail, loss.count) for loss in entry.losses],
    )


def _probes(manifest: Manifest, name: str) -> list[ProbeRun]:
    for at, probe in enumerate(manifest.probes):
        if NONCE.fullmatch(probe.nonce) is None:
            fail(name, f"/probes/{at}/nonce", "must be 16 lower-case hexadecimal digits", probe.nonce)
        if any(probe.nonce == other.nonce or probe.phase == other.phase for other in manifest.probes[:at]):
            fail(name, f"/probes/{at}", "there is one probe a phase, each with a nonce of its own", probe.nonce)
    return [ProbeRun(probe.phase, probe.nonce, tuple(probe.channels)) for probe in manifest.probes]


def _secrets(manifest: Manifest, name: str) -> Secrets | None:
    canaries = []
    tag = hashlib.sha256(f"{manifest.seed}\0{manifest.id}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    for at, secret in enumerate(manifest.secrets):
        place = f"/secrets/{at}"
        if (secret.path is None) == (secret.variable is None):
            fail(name, place, "has either a path or a variable", secret.kind)
        if secret.path is not None and not secret.path.startswith("/"):
            fail(name, f"{place}/path", "must be absolute", secret.path)
        if secret.value is not None:
            digest = hashlib.sha256(secret.value.encode("utf-8", "surrogatepass")).hexdigest()
            if digest != secret.sha256:
                fail(name, f"{place}/sha256", f"the value has sha256 {digest}", secret.sha256)
        value = secret.value if secret.value is not None else _derived(secret, tag)
        path = None if secret.path is None else text_of(secret.path.encode("utf-8", "surrogateescape"))
        canaries.append(Canary(secret.kind, value, path, secret.variable))
    return Secrets(source=name, canaries=canaries) if canaries else None


def _derived(secret: ManifestSecret, tag: str) -> str | None:
    """Return the canary that the recorder makes of its seed, None where the hash says that it was another."""
    value = f"CANARY-{secret.kind}-{tag}"
    return value if hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest() == secret.sha256 else None
