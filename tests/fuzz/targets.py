"""What is fuzzed: one target a parser. Any bytes give events, each with a place, or the error of its kind.

A target is loaded once (its parser is imported then) and called with bytes. It raises whatever breaks the contract:

* no error but the parser's own;
* every event names a place in the input, can be written to a trace, and is read back from there the same;
* no more events than the input has bytes for;
* the observation can be written too, and its losses say more than nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
_CORPUS = Path(__file__).parents[2] / "corpus"


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


def _recorded(*names: str, size: int = 2500, most: int = 40) -> Callable[[], Iterator[bytes]]:
    """Return what yields beginnings and later parts of recorded files, whole lines of them where there are lines."""

    def seeds() -> Iterator[bytes]:
        from mcpdetect.ingest.opener import open_evidence

        paths = sorted(path for name in names for path in _CORPUS.rglob(name))
        step = max(len(paths) // most, 1)
        for path in paths[::step]:
            with open_evidence(path, path.name) as stream:
                data = stream.read_exactly(1 << 20)
            yield data[:size]
            middle = data.find(b"\n", len(data) // 2) + 1
            if len(data) > 2 * size and middle:
                yield data[middle : middle + size]

    return seeds


def _split_seeds() -> Iterator[bytes]:
    for data in _recorded("strace.log*", size=2000, most=10)():
        lines = [line.partition(b" ")[2].lstrip() for line in data.split(b"\n")]
        yield b"\n".join([*lines[: len(lines) // 2], b"==", *lines[len(lines) // 2 :]])


def _messages() -> Iterator[bytes]:
    """Yield DNS messages out of recorded captures."""
    for frame in _frames():
        if frame[12:14] == b"\x08\x00" and frame[23:24] == b"\x11" and b"\x00\x35" in frame[34:38]:
            yield frame[42:]


def _payloads() -> Iterator[bytes]:
    for frame in _frames():
        if frame[12:14] == b"\x08\x00" and frame[23:24] == b"\x06" and len(frame) > 80:
            yield frame[54:]


def _frames() -> Iterator[bytes]:
    for data in _recorded("capture.pcap*", size=1 << 20, most=30)():
        at = 24
        while at + 16 <= len(data):
            size = int.from_bytes(data[at + 8 : at + 12], "little")
            yield data[at + 16 : at + 16 + size]
            at += 16 + size


def _traces() -> Iterator[bytes]:
    from mcpdetect.ingest.open import open_trace
    from mcpdetect.ingest.tracefile import write_trace

    folders = sorted(path.parent for path in _CORPUS.rglob("manifest.json"))
    for folder in folders[:: max(len(folders) // 6, 1)]:
        for form in ("json", "jsonl"):
            out = io.BytesIO()
            write_trace(out, open_trace(folder), form=form)
            yield out.getvalue()[:12_000]


def _programs() -> Iterator[bytes]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "ingest"))
    program: bytes = importlib.import_module("elf_programs").Crafted().build()
    yield program
    yield program + b"\xff Go buildinf:\x08\x02" + bytes(16) + b"\x08go1.22.1\x00"


_QUERY_LOGS = (
    (
        b"Nov 30 12:19:52 dnsmasq[1643]: query[A] www.example.test from 10.77.0.2\n"
        b"Nov 30 12:19:52 dnsmasq[1643]: reply www.example.test is 203.0.113.9\n"
    ),
    (
        b"[1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN\n"
        b"[1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN NOERROR 0.000000 1 60\n"
    ),
    (
        b"30-Nov-2026 11:23:54.944 client @0x7f9041aeb098 10.77.0.2#39617 (api.example.test): query: api.example.test "
        b"IN A +E(0)K (10.77.0.1)\n"
    ),
    b'[INFO] 10.77.0.2:15439 - 50129 "AAAA IN api.example.test. tcp 54 true 65535" NXDOMAIN qr,aa,rd 147 0.0000465s\n',
    b"Nov 30 11:23:54 host systemd-resolved[412]: Looking up RR for api.example.test IN A.\n",
    (
        b"#separator \\x09\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tquery\tqtype_name\n"
        b"1796037684.1\tC1\t10.77.0.2\t3333\t10.77.0.1\t53\tudp\tapi.example.test\tA\n"
    ),
    b'{"ts":1796037684.1,"id.orig_h":"10.77.0.2","id.resp_h":"10.77.0.1","query":"api.example.test","answers":[]}\n',
)
_FIREWALL_LOGS = (
    (
        b"Nov 30 12:00:00 host kernel: [   12.345678] DROP: IN= OUT=eth0 SRC=10.0.2.15 DST=1.1.1.1 LEN=60 TOS=0x00 "
        b"PREC=0x00 TTL=64 ID=1 DF PROTO=TCP SPT=4000 DPT=443 WINDOW=64240 RES=0x00 SYN URGP=0\n"
    ),
    (
        b'{"__REALTIME_TIMESTAMP":"1796037684000000","MESSAGE":"DROP: IN= OUT=eth0 SRC=10.0.2.15 DST=1.1.1.1 PROTO=UDP '
        b'SPT=1 DPT=53"}\n'
    ),
    (
        b"table inet filter {\n\tchain output {\n\t\ttype filter hook output priority filter; policy accept;\n"
        b"\t\tudp dport 53 counter packets 4 bytes 240 drop\n\t}\n}\n"
    ),
    (
        b'{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"rule": {"family": "inet", "table": "f", "chain": "o", '
        b'"expr": [{"counter": {"packets": 3, "bytes": 180}}, {"drop": null}]}}]}\n'
    ),
)
_YAML = (
    b"home: /home/u\nfiles:\n  .env: DOTENV\n  /etc/key: {kind: KEY, value: CANARY-KEY-12345678}\ntag: x1y2z3\n",
    b"environment:\n  TOKEN: {kind: T, value: CANARY-T-12345678}\n",
)


def _with(texts: tuple[bytes, ...], *names: str) -> Callable[[], Iterator[bytes]]:
    def seeds() -> Iterator[bytes]:
        yield from texts
        if names:
            yield from _recorded(*names)()

    return seeds


def _labels() -> Iterator[bytes]:
    yield from _YAML
    yield from (path.read_bytes() for path in sorted(_CORPUS.parent.joinpath("labels").rglob("*.yaml"))[::8])
    yield from (path.read_bytes() for path in sorted(_CORPUS.rglob("expect.yaml")))


TARGETS: dict[str, Target] = {
    "strace": Target(_adapter(_strace), _recorded("strace.log*")),
    "strace-set": Target(_strace_set, _split_seeds),
    "pcap": Target(_adapter(_pcap), _recorded("capture.pcap*"), 8192),
    "dnswire": Target(_dnswire, _messages, 1024),
    "tls": Target(_tls, _payloads, 2048),
    "dnslog": Target(_adapter(_dnslog), _with(_QUERY_LOGS, "dnsmasq.log*"), 4096),
    "firewall": Target(_adapter(_firewall), _with(_FIREWALL_LOGS, "nft.txt"), 4096),
    "mcp": Target(_adapter(_mcp), _recorded("mcp.jsonl*")),
    "trace": Target(_trace, _traces, 16_384),
    "elf": Target(_adapter(_elf), _programs, 4096),
    "manifest": Target(_manifest, _recorded("manifest.json", size=20_000, most=8), 8192),
    "yaml": Target(_yaml, _labels, 4096),
    "sniff": Target(_sniff, _with((*_QUERY_LOGS, *_FIREWALL_LOGS), "strace.log*", "mcp.jsonl"), 4096),
}
"""Name -> target."""
