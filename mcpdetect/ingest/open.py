"""Opening a run: a bundle, a folder with meta.json, a trace file, or loose evidence files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcpdetect.errors import ConfigError, InputError, UnknownFormat
from mcpdetect.ingest.adapter import Adapter, Declared
from mcpdetect.ingest.evidence import Evidence
from mcpdetect.ingest.manifest import MANIFEST_NAME, Bundle, load_manifest
from mcpdetect.ingest.metafolder import META_NAME, load_real_meta
from mcpdetect.ingest.probes import ProbeWatch
from mcpdetect.ingest.sniff import LOOKS, sniff
from mcpdetect.model.observation import Observation
from mcpdetect.model.trace import Run, TraceSource
from mcpdetect.model.vocabulary import Channel

__all__ = ["open_adapter", "open_bundle", "open_evidence_files", "open_trace"]

_READ: tuple[Channel, ...] = ("syscalls", "packets", "dns", "firewall", "mcp", "files", "binaries")
"""Channels that ``open_adapter`` has an adapter for."""


def open_trace(path: str | Path) -> TraceSource:
    """Open one run.

    Args:
        path: a bundle folder or its ``manifest.json``, a folder with ``meta.json`` or that file, or a trace
            (``.json`` or ``.jsonl``, compressed or not).

    Raises:
        InputError: it is none of these, or cannot be read.
        ConfigError: its manifest is wrong.
    """
    path = Path(path)
    if path.is_dir():
        for name in (MANIFEST_NAME, META_NAME):
            if (path / name).is_file():
                return open_bundle(path / name)
        raise InputError(
            "is a directory without a manifest.json",
            file=str(path),
            cause="it is no bundle",
            hint="give a bundle, a trace file, or evidence files with --strace, --pcap, --dns, --firewall, --mcp",
        )
    if path.name in (MANIFEST_NAME, META_NAME):
        return open_bundle(path)
    kind = sniff(path)
    if kind not in (None, "trace"):
        raise UnknownFormat(
            f"is {LOOKS[kind]}, not a trace",
            file=str(path),
            hint="give evidence files with --strace, --pcap, --dns, --firewall, --mcp",
        )
    from mcpdetect.ingest.tracefile import TraceFile

    return TraceFile(path)


def open_bundle(path: str | Path) -> Evidence:
    """Open a bundle by its folder, its ``manifest.json`` or ``meta.json``.

    Raises:
        InputError: an evidence file cannot be read.
        ConfigError: the manifest is wrong.
    """
    path = Path(path)
    bundle = load_real_meta(path) if path.name == META_NAME else load_manifest(path)
    adapters = [
        open_adapter(item.channel, item.format, item.path, item.name, item.declared)
        for item in bundle.evidence
        if item.channel in _READ
    ]
    # Recorded, but not readable by this version: the bundle stays usable, and the channel counts as absent.
    unread = [
        Observation(item.channel, item.name, item.format, item.declared.tool, proof="absent")
        for item in bundle.evidence
        if item.channel not in _READ
    ]
    evidence = Evidence(bundle.run, adapters, unread)
    _complete(evidence, bundle)
    return evidence


def _complete(evidence: Evidence, bundle: Bundle) -> None:
    """Hand over what a bundle says beside its evidence files."""
    evidence.secrets, evidence.tag, evidence.expect = bundle.secrets, bundle.tag, bundle.expect
    evidence.baseline = bundle.baseline
    if bundle.probes:
        evidence.probes = ProbeWatch(bundle.probes, bundle.run.entry)


def open_evidence_files(
    *,
    strace: Sequence[str | Path] = (),
    pcap: Sequence[str | Path] = (),
    dns: Sequence[str | Path] = (),
    firewall: Sequence[str | Path] = (),
    mcp: Sequence[str | Path] = (),
    manifest: str | Path | None = None,
    name: str | None = None,
) -> Evidence:
    """Open loose evidence files of one run.

    Args:
        strace: strace logs; several are one ``-ff`` set.
        pcap: packet captures.
        dns: logs of DNS servers.
        firewall: firewall logs.
        mcp: MCP transcripts.
        manifest: a manifest that declares how they were recorded; files are matched by name.
        name: what the run is called in reports.

    Raises:
        InputError: a file cannot be used, or none was given.
        ConfigError: the manifest is wrong, or does not name a file.
    """
    bundle = load_manifest(Path(manifest)) if manifest is not None else None
    groups: list[tuple[Channel, list[Path]]] = [
        ("syscalls", [Path(item) for item in strace]),
        ("packets", [Path(item) for item in pcap]),
        ("dns", [Path(item) for item in dns]),
        ("firewall", [Path(item) for item in firewall]),
        ("mcp", [Path(item) for item in mcp]),
    ]
    first = next((path for _, paths in groups for path in paths), None)
    run = bundle.run if bundle is not None else Run(id=name or (str(first) if first else "trace"))
    adapters: list[Adapter] = []
    for channel, paths in groups:
        if channel == "syscalls" and len(paths) > 1:
            from mcpdetect.ingest.strace import StraceFiles

            adapters.append(StraceFiles(paths, declared=_declared(bundle, paths[0])))
            continue
        for path in paths:
            adapters.append(open_adapter(channel, None, path, str(path), _declared(bundle, path)))
    evidence = Evidence(run, adapters)
    if bundle is not None:
        _complete(evidence, bundle)
    return evidence


def _declared(bundle: Bundle | None, path: Path) -> Declared | None:
    if bundle is None:
        return None
    matching = [item for item in bundle.evidence if item.path.resolve() == path.resolve() or item.name == path.name]
    if not matching:
        raise ConfigError(
            "the manifest does not name this evidence file",
            file=str(bundle.root / MANIFEST_NAME),
            value=str(path),
            hint="give the manifest of this recording, or leave --manifest out",
        )
    return matching[0].declared


def open_adapter(
    channel: Channel, format_name: str | None, path: Path, name: str, declared: Declared | None
) -> Adapter:
    """Return the adapter for one evidence file.

    Args:
        channel: its channel.
        format_name: its format by a manifest, None to go by the channel.
        path: the file.
        name: its name in every place.
        declared: what a manifest says about it.

    Raises:
        InputError: the file cannot be used.
        ConfigError: this version has no adapter for the channel.
    """
    if format_name == "trace":
        from mcpdetect.ingest.tracefile.part import TracePart

        return TracePart(path, name, declared)
    if channel == "syscalls":
        if format_name == "gvisor" or sniff(path) == "gvisor":
            from mcpdetect.ingest.gvisor import GvisorLog

            return GvisorLog(path, name, declared)
        from mcpdetect.ingest.strace import StraceLog

        return StraceLog(path, name, declared)
    if channel == "packets" and format_name == "tls-keylog":
        from mcpdetect.ingest.keylog import TlsKeyLog

        return TlsKeyLog(path, name, declared)
    if channel == "packets":
        from mcpdetect.ingest.pcap import PacketCapture

        return PacketCapture(path, name, declared)
    if channel == "dns":
        from mcpdetect.ingest.dnslog import open_dns_log

        return open_dns_log(path, name, declared)
    if channel == "firewall":
        from mcpdetect.ingest.firewall import FirewallLog

        return FirewallLog(path, name, declared)
    if channel == "mcp":
        from mcpdetect.ingest.mcp import McpTranscript

        return McpTranscript(path, name, declared)
    if channel == "files":
        from mcpdetect.ingest.filesdiff import FileDifferences

        return FileDifferences(path, name, declared)
    if channel == "binaries":
        from mcpdetect.ingest.elf import BinaryFiles

        return BinaryFiles(path, name, declared)
    raise ConfigError(
        f"this version reads no {channel} evidence{f' ({format_name})' if format_name else ''}",
        file=name,
        hint="leave it out; what it could show is then reported as not observable",
    )
