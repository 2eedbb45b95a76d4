"""Inputs to begin fuzzing with, cut from the recorded corpus on the fly, and lines of formats that it does not have."""

# ruff: noqa: E501
from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = [
    "FIREWALL_LOGS",
    "GVISOR_LOGS",
    "QUERY_LOGS",
    "messages",
    "payloads",
    "programs",
    "recorded",
    "split_sets",
    "traces",
    "with_recorded",
    "yaml_files",
]

_CORPUS = Path(__file__).parents[2] / "corpus"


def recorded(*names: str, size: int = 2500, most: int = 40) -> Callable[[], Iterator[bytes]]:
    """Return what yields beginnings and later parts of recorded files, whole lines of them where there are lines."""

    def made() -> Iterator[bytes]:
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

    return made


def split_sets() -> Iterator[bytes]:
    """Yield three files of a set, cut out of a log at a line of its own."""
    for data in recorded("strace.log*", size=2000, most=10)():
        lines = [line.partition(b" ")[2].lstrip() for line in data.split(b"\n")]
        yield b"\n".join([*lines[: len(lines) // 2], b"==", *lines[len(lines) // 2 :]])


def messages() -> Iterator[bytes]:
    """Yield DNS messages out of recorded captures."""
    for frame in _frames():
        if frame[12:14] == b"\x08\x00" and frame[23:24] == b"\x11" and b"\x00\x35" in frame[34:38]:
            yield frame[42:]


def payloads() -> Iterator[bytes]:
    """Yield what TCP segments of recorded captures carry."""
    for frame in _frames():
        if frame[12:14] == b"\x08\x00" and frame[23:24] == b"\x06" and len(frame) > 80:
            yield frame[54:]


def _frames() -> Iterator[bytes]:
    for data in recorded("capture.pcap*", size=1 << 20, most=30)():
        at = 24
        while at + 16 <= len(data):
            size = int.from_bytes(data[at + 8 : at + 12], "little")
            yield data[at + 16 : at + 16 + size]
            at += 16 + size


def traces() -> Iterator[bytes]:
    """Yield beginnings of traces in both forms."""
    from mcpdetect.ingest.open import open_trace
    from mcpdetect.ingest.tracefile import write_trace

    folders = sorted(path.parent for path in _CORPUS.rglob("manifest.json"))
    for folder in folders[:: max(len(folders) // 6, 1)]:
        for form in ("json", "jsonl"):
            out = io.BytesIO()
            write_trace(out, open_trace(folder), form=form)
            yield out.getvalue()[:12_000]


def programs() -> Iterator[bytes]:
    """Yield small programs."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "ingest"))
    program: bytes = importlib.import_module("elf_programs").Crafted().build()
    yield program
    yield program + b"\xff Go buildinf:\x08\x02" + bytes(16) + b"\x08go1.22.1\x00"


GVISOR_LOGS = (
    (
        b"I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 E openat(AT_FDCWD /tmp, 0x7f4bc7373050 a,b c.txt, O_RDONLY|O_CLOEXEC, 0o0)\n"
        b"I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X openat(AT_FDCWD /tmp, 0x7f4bc7373050 a,b c.txt, O_RDONLY|O_CLOEXEC, 0o0) = 3 (0x3) (97.624us)\n"
        b'I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 E write(0x3 /tmp/a, 0x5606e313cd70 "hello\\n"..., 0x12)\n'
        b"I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X write(0x3 /tmp/a, ..., 0x12) = 18 (0x12) (11.281us)\n"
        b"I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X rename(0x7f4bc7373050 a, 0x7f4bc73730e0 b, c) = 0 (0x0) (48.926us)\n"
    ),
    (
        b"I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X connect(0x4 socket:[1], 0x7f0f {Family: AF_INET, Addr: 203.0.113.7, Port: 443}, 0x10) = 0 (0x0) errno=115 (operation now in progress) (1.2ms)\n"
        b'I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X connect(0x4 socket:[5], 0x7f0f {Family: AF_UNIX, Addr: "/run/a"}, 0x16) = 0 (0x0) (3.4ms)\n'
        b'I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 E sendmsg(0x8 socket:[11], 0x7f0f {name=0x0, namelen=0, iovecs=0x7f4b {base=0x7f4b, len=1, "m"}, control={0x7f4b {level=SOL_SOCKET, type=SCM_RIGHTS, length=20, content: 0}}, flags=0}, 0x0)\n'
        b"I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X clone(CLONE_VM|CLONE_THREAD, 0x7f, 0x7f, 0x7f, 0x7f) = 44 (0x2c) (44.288us)\n"
        b'I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X execve(0x7f /bin/cat, 0x7f ["cat", "/etc/hostname"], 0x7f ["A=1"]) = 0 (0x0) (317.1us)\n'
        b"I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X sys_439(0xffffff9c, 0x5631006fa420, 0x1, 0x200) = 0 (0x0) (291.443us)\n"
        b"I1130 15:16:50.295498   29411 strace.go:567] [   1:   1] python3 X exit_group(0x5) = 0 (0x0) (1.064us)\n"
    ),
)
"""Lines of gVisor's call log."""

QUERY_LOGS = (
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
FIREWALL_LOGS = (
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


def with_recorded(texts: tuple[bytes, ...], *names: str) -> Callable[[], Iterator[bytes]]:
    """Return what yields texts and, after them, parts of recorded files."""

    def made() -> Iterator[bytes]:
        yield from texts
        if names:
            yield from recorded(*names)()

    return made


def yaml_files() -> Iterator[bytes]:
    """Yield secrets, expectations and labels."""
    yield from _YAML
    yield from (path.read_bytes() for path in sorted(_CORPUS.parent.joinpath("labels").rglob("*.yaml"))[::8])
    yield from (path.read_bytes() for path in sorted(_CORPUS.rglob("expect.yaml")))
