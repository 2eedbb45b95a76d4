"""What a file looks like from its first bytes."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mcpdetect.ingest.sniff import FLAGS, LOOKS, Kind, sniff, sniff_bytes

CASES: list[tuple[Kind | None, bytes]] = [
    ("strace", b'38    1796041192.444589 openat(AT_FDCWD</x>, "/etc/x", O_RDONLY) = 3</etc/x> <0.000040>\n'),
    ("strace", b'execve("./srv", ["./srv"], 0x7ffe8e /* 35 vars */) = 0\n'),
    ("strace", b"[pid 16922] <... vfork resumed>)        = 16966\n"),
    ("strace", b"strace: Process 16966 attached\n"),
    ("strace", b"12:00:01.000001 +++ exited with 3 +++\n"),
    ("strace", b"3619<node> 12:00:01 --- SIGCHLD {si_signo=SIGCHLD, si_pid=1} ---\n"),
    ("strace", b"16872 pipe2( <unfinished ...>\n"),
    ("strace", b"     0.000012 read(3, \"\", 4096) = 0\n"),
    ("strace", b"12 [00007f3c2a1b] close(3) = 0\n"),
    ("gvisor", b"I0101 10:00:00.000000       1 strace.go:567] [   1:   1] server E close(0x3)\n"),
    ("pcap", b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(16)),
    ("pcap", b"\xa1\xb2\x3c\x4d\x00\x02\x00\x04" + bytes(16)),
    ("pcapng", b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a"),
    ("dnsmasq", b"Nov 30 12:19:52 dnsmasq[1643]: started, version 2.90 cachesize 150\n"),
    ("dnsmasq", b"dnsmasq[1]: query[A] api.example.test from 10.77.0.2\n"),
    ("unbound", b"[1796037684] unbound[27638:0] info: 10.77.0.2 api.example.test. A IN\n"),
    ("bind", b"30-Nov-2026 11:23:54.944 client @0x7f90 10.77.0.2#39617 (a.test): query: a.test IN A +\n"),
    ("coredns", b'[INFO] 10.77.0.2:15439 - 50129 "A IN a.test. udp 54 false 512" NOERROR qr,aa 147 0.1s\n'),
    ("resolved", b"Nov 30 14:41:41 h systemd-resolved[5]: Looking up RR for a.test IN A.\n"),
    ("resolved", b"Mon 2026-11-30 14:41:41 UTC Looking up RR for a.test IN A.\n"),
    ("zeek", b"#separator \\x09\n#set_separator\t,\n"),
    ("zeek", b'{"ts":1700000000.0,"id.orig_h":"10.77.0.2","query":"x.test","qtype_name":"A"}\n'),
    ("netfilter", b"[   12.345678] DROP: IN= OUT=eth0 SRC=10.0.2.15 DST=1.1.1.1 LEN=60 TTL=64 PROTO=TCP\n"),
    ("netfilter", b'{"__REALTIME_TIMESTAMP":"1796048410548221","MESSAGE":"X IN= OUT=v0 SRC=10.0.2.15"}\n'),
    ("nft", b"table inet filter {\n chain out {\n"),
    ("nft", b'{"nftables": [{"metainfo": {"version": "1.0.6"}}]}'),
    ("mcp", b'{"t": 1.5, "dir": "c2s", "msg": {"jsonrpc": "2.0", "id": 1, "method": "initialize"}}\n'),
    ("mcp", b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"schema":"mcpdetect.trace/1"}}\n'),
    ("mcp", b'[{"id":1,"jsonrpc":"2.0","result":{}}]\n'),
    ("trace", b'{"schema": "mcpdetect.trace/1", "generator": "x", "run": {"id": "a"},\n"events": [\n'),
    ("trace", b'{\n  "run": {"id": "a", "schema": "mcpdetect.result/1"},\n  "schema": "mcpdetect.trace/1"\n}'),
    ("trace", b'{"run": {}, "events": [{"kind":"file.open"'),
    ("manifest", b'\xef\xbb\xbf{"schema": "mcpdetect.manifest/0", "id": "a"}'),
    ("meta", b'{"name": "x", "argv": ["a"], "env": {}, "strace_opts": ["-f"]}'),
    ("result", b'{"run": {"id": "x"}, "checks": [], "schema": "mcpdetect.result/1"}'),
    ("elf", b"\x7fELF\x02\x01\x01" + bytes(9)),
    ("archive", b"PK\x03\x04" + bytes(26)),
    ("archive", bytes(257) + b"ustar\x0000"),
    (None, b"hello world\n"),
    (None, b'{"path": "/x", "host": "a"}'),
    (None, b"def main(argv):\n    return 0\nprint(main(1))\n"),
    (None, b"{"),
    (None, b"[[[["),
    (None, b'"'),
    (None, b"-----BEGIN CERTIFICATE-----\n"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "head"), CASES, ids=[f"{n}-{kind}" for n, (kind, _) in enumerate(CASES)])
def test_a_beginning_tells_the_kind(kind: Kind | None, head: bytes) -> None:
    assert sniff_bytes(head) == kind


def test_every_kind_has_a_case_and_words() -> None:
    kinds = {kind for kind, _ in CASES if kind is not None}
    assert kinds == set(LOOKS)
    assert set(FLAGS) < kinds


def test_what_a_message_quotes_is_not_taken_for_its_own_kind() -> None:
    quoted = b'{"dir": "s2c", "t": 1.0, "msg": {"result": {"text": "{\\"schema\\": \\"mcpdetect.trace/1\\"}"}}}'
    assert sniff_bytes(quoted) == "mcp"
    lines = b'{"jsonrpc": "2.0", "id": 1, "result": "38 1.0 openat(3) = 3"}\n38 1.0 openat(3) = 3\n'
    assert sniff_bytes(lines) == "mcp"


def test_most_lines_decide() -> None:
    log = b"Nov 30 12:19:52 host systemd[1]: Started\nNov 30 12:19:52 host dnsmasq[7]: started\n" * 20
    assert sniff_bytes(log) == "dnsmasq"
    strace = b'38 write(1, "dnsmasq[1]: query[A] a from b", 28) = 28\n' * 3 + b"dnsmasq[1]: x\n"
    assert sniff_bytes(strace) == "strace"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_compressed_files_are_looked_into(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    file = tmp_path / "x"
    file.write_bytes(pack(b"\x0a\x0d\x0d\x0a" + bytes(100)))
    assert sniff(file) == "pcapng"


def test_what_cannot_be_opened_looks_like_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b\x08\x00")
    looks = [sniff(path) for path in (tmp_path / "none", tmp_path, tmp_path / "empty", tmp_path / "broken.gz")]
    assert looks == [None] * 4


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert sniff(pipe) is None
    writer = threading.Thread(target=pipe.write_bytes, args=(b"\xd4\xc3\xb2\xa1",))
    writer.start()
    assert pipe.read_bytes() == b"\xd4\xc3\xb2\xa1"
    writer.join()


@given(st.binary(max_size=2000))
def test_any_bytes_look_like_something_known_or_nothing(head: bytes) -> None:
    assert sniff_bytes(head) in {None, *LOOKS}


@pytest.mark.parametrize("head", [head for _, head in CASES])
def test_a_beginning_cut_anywhere_never_raises(head: bytes) -> None:
    looks = {sniff_bytes(head[:size]) for size in range(len(head) + 1)}
    assert looks <= {None, *LOOKS}
