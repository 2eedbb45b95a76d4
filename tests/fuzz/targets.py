"""What is fuzzed: one target a parser. Any bytes give events, each with a place, or the error of its kind.

A target is loaded once (its parser is imported then) and called with bytes. It raises whatever breaks the contract:

* no error but the parser's own;
* every event names a place in the input, can be written to a trace, and is read back from there the same;
* no more events than the input has bytes for;
* the observation can be written too, and its losses say more than nothing.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import seeds

if TYPE_CHECKING:
    from mcpdetect.errors import McpDetectError
    from mcpdetect.ingest.adapter import Adapter
    from mcpdetect.model.event import Event

__all__ = ["TARGETS", "Target"]

Attempt = Callable[[bytes], None]

_NAME = "evidence"
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
_MOST_EVENTS = 20
_CHECKED = 24
_FOLDER = Path(tempfile.mkdtemp(prefix="mcpdetect-fuzz-"))


@dataclass(frozen=True)
class Target:
    """One target: ``load`` imports the parser and returns what tries one input, ``seeds`` yields inputs to begin with.

    ``longest`` is the length of the longest input made of them.
    """

    load: Callable[[], Attempt]
    seeds: Callable[[], Iterator[bytes]]
    longest: int = 4096


def _checker() -> Callable[[Event, str], None]:
    from mcpdetect.model.wire import decoder, encode

    def check(event: Event, name: str) -> None:
        assert event.where.file.startswith(name), event
        assert event.where.at >= 0, event
        again = decoder(type(event))(encode(event))
        assert again == event, (again, event)

    return check


def _adapter(make: Callable[[Path], Adapter], *, suffix: str = "") -> Callable[[], Attempt]:
    """Return the loader of a target that opens a file and reads its events to the end."""

    def load() -> Attempt:
        from mcpdetect.errors import InputError
        from mcpdetect.model.wire import encode

        check = _checker()
        path = _FOLDER / f"{_NAME}{suffix}"

        def attempt(data: bytes) -> None:
            if data.startswith(_COMPRESSED):  # the size of what comes out is no fault of a parser
                return
            path.write_bytes(data)
            count = 0
            try:
                adapter = make(path)
                for event in adapter.events():
                    count += 1
                    if count <= _CHECKED:
                        check(event, _NAME)
            except InputError as error:
                told(error)
                return
            assert count <= _MOST_EVENTS * (len(data) + 1), f"{count} events out of {len(data)} bytes"
            encode(adapter.observation)
            for loss in adapter.observation.losses:
                assert loss.what, loss
                assert loss.detail, loss
                assert loss.count > 0, loss

        make_once(make, path)
        return attempt

    return load


def told(error: McpDetectError) -> None:
    """Require that an error says what is wrong with which file, in lines that can be printed."""
    assert error.problem, error
    assert error.file, error
    str(error).encode()


def make_once(make: Callable[[Path], object], path: Path) -> None:
    """Make the parser once with nothing to read, so that its modules are imported."""
    from mcpdetect.errors import McpDetectError

    path.write_bytes(b"")
    with contextlib.suppress(McpDetectError):
        make(path)


def _strace(path: Path) -> Adapter:
    from mcpdetect.ingest.strace import StraceLog

    return StraceLog(path, _NAME)


def _gvisor(path: Path) -> Adapter:
    from mcpdetect.ingest.gvisor import GvisorLog

    return GvisorLog(path, _NAME)


def _pcap(path: Path) -> Adapter:
    from mcpdetect.ingest.pcap import PacketCapture

    return PacketCapture(path, _NAME)


def _dnslog(path: Path) -> Adapter:
    from mcpdetect.ingest.dnslog import open_dns_log

    return open_dns_log(path, _NAME)


def _firewall(path: Path) -> Adapter:
    from mcpdetect.ingest.firewall import FirewallLog

    return FirewallLog(path, _NAME)


def _mcp(path: Path) -> Adapter:
    from mcpdetect.ingest.mcp import McpTranscript

    return McpTranscript(path, _NAME)


def _elf(path: Path) -> Adapter:
    from mcpdetect.ingest.elf import BinaryFiles

    return BinaryFiles(path, _NAME)


def _strace_set() -> Attempt:
    """Three files of one ``-ff`` set, cut out of the input at a line of its own."""
    from mcpdetect.errors import InputError
    from mcpdetect.ingest.strace import StraceFiles

    check = _checker()
    paths = [_FOLDER / f"{_NAME}.{number}" for number in (100, 101, 102)]

    def attempt(data: bytes) -> None:
        parts = [*data.split(b"\n==\n", 2), b"", b""][:3]
        if any(part.startswith(_COMPRESSED) for part in parts):
            return
        for path, part in zip(paths, parts, strict=True):
            path.write_bytes(part)
        used = [path for path, part in zip(paths, parts, strict=True) if part]
        try:
            files = StraceFiles(used, [path.name for path in used])
            for event in files.events():
                check(event, _NAME)
        except InputError:
            return

    return attempt


def _trace() -> Attempt:
    from mcpdetect.errors import InputError
    from mcpdetect.ingest.tracefile import TraceFile
    from mcpdetect.model.wire import encode

    path = _FOLDER / "trace.json"

    def attempt(data: bytes) -> None:
        if data.startswith(_COMPRESSED):
            return
        path.write_bytes(data)
        for trusted in (False, True):
            try:
                trace = TraceFile(path, _NAME, trusted=trusted)
                for event in trace.events():
                    encode(event)
            except InputError:
                continue
            for observation in trace.observations():
                encode(observation)

    return attempt


def _dnswire() -> Attempt:
    from mcpdetect.ingest.dnswire import DnsFormatError, parse_message
    from mcpdetect.model.wire import encode

    def attempt(data: bytes) -> None:
        for cut in (False, True):
            try:
                message = parse_message(data, cut=cut)
            except DnsFormatError:
                continue
            # every record takes eleven bytes at least, so a short message cannot hold many
            assert len(message.records) <= len(data), message
            encode([question[0] for question in message.questions])
            encode(message.records)

    return attempt


def _tls() -> Attempt:
    from mcpdetect.ingest import tls
    from mcpdetect.ingest.pcap.http import RequestReader
    from mcpdetect.ingest.pcap.quic import HelloCollector, read_initial
    from mcpdetect.model.wire import encode

    def attempt(data: bytes) -> None:
        tls.looks_like_hello(data)
        for hello in (tls.client_hello(data), tls.handshake_hello(data)):
            if hello is not None:
                encode([hello.sni, hello.alpn, hello.ja4])
        initial = read_initial(data)
        encode(None if initial is None else initial.version)
        collector = HelloCollector()
        collector.feed(data)
        encode(collector.hello().sni)
        reader = RequestReader()
        encode([[one.method, one.target, one.host] for one in reader.feed(data) + reader.close()])

    return attempt


def _manifest() -> Attempt:
    from mcpdetect.errors import ConfigError, InputError
    from mcpdetect.ingest.manifest import load_manifest
    from mcpdetect.ingest.metafolder import load_real_meta

    manifest, meta = _FOLDER / "manifest.json", _FOLDER / "meta.json"

    def attempt(data: bytes) -> None:
        for path, load in ((manifest, load_manifest), (meta, load_real_meta)):
            path.write_bytes(data)
            try:
                load(path)
            except (ConfigError, InputError) as error:
                told(error)

    return attempt


def _yaml() -> Attempt:
    from mcpdetect.data.inputs import load_expectations, load_secrets
    from mcpdetect.errors import ConfigError, LabelError
    from mcpdetect.labels.loader import load_label

    path = _FOLDER / "egress" / "direct-ip" / "case.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        for load in (load_secrets, load_expectations, load_label):
            try:
                load(path)
            except (ConfigError, LabelError) as error:
                told(error)

    return attempt


def _sniff() -> Attempt:
    from mcpdetect.ingest.sniff import LOOKS, sniff_bytes

    def attempt(data: bytes) -> None:
        kind = sniff_bytes(data)
        assert kind is None or kind in LOOKS

    return attempt


TARGETS: dict[str, Target] = {
    "strace": Target(_adapter(_strace), seeds.recorded("strace.log*")),
    "strace-set": Target(_strace_set, seeds.split_sets),
    "gvisor": Target(_adapter(_gvisor), seeds.with_recorded(seeds.GVISOR_LOGS), 4096),
    "pcap": Target(_adapter(_pcap), seeds.recorded("capture.pcap*"), 8192),
    "dnswire": Target(_dnswire, seeds.messages, 1024),
    "tls": Target(_tls, seeds.payloads, 2048),
    "dnslog": Target(_adapter(_dnslog), seeds.with_recorded(seeds.QUERY_LOGS, "dnsmasq.log*"), 4096),
    "firewall": Target(_adapter(_firewall), seeds.with_recorded(seeds.FIREWALL_LOGS, "nft.txt"), 4096),
    "mcp": Target(_adapter(_mcp), seeds.recorded("mcp.jsonl*")),
    "trace": Target(_trace, seeds.traces, 16_384),
    "elf": Target(_adapter(_elf), seeds.programs, 4096),
    "manifest": Target(_manifest, seeds.recorded("manifest.json", size=20_000, most=8), 8192),
    "yaml": Target(_yaml, seeds.yaml_files, 4096),
    "sniff": Target(
        _sniff, seeds.with_recorded((*seeds.QUERY_LOGS, *seeds.FIREWALL_LOGS), "strace.log*", "mcp.jsonl"), 4096
    ),
}
"""Name -> target."""
