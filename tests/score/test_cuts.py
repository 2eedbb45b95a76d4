"""What is taken out of an evidence file, byte for byte, and what is then declared about it."""

# ruff: noqa: E501

from __future__ import annotations

import struct
from pathlib import Path

import zstandard

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.manifest import BundleEvidence
from mcpdetect.model.observation import Loss
from mcpdetect.score.cuts import (
    Content,
    content_of,
    cut_strings,
    cut_tail,
    drop_class,
    drop_packets,
    drop_process,
    written,
)

LOG = rb"""41    1.000001 execve("/srv/a long program", ["/srv/a long program", "--flag"], 0x7ff /* 5 vars */) = 0 <0.1>
41    1.000002 openat(AT_FDCWD, "/etc/a/long/path/of/a/file", O_RDONLY) = 3</etc/a/long/path/of/a/file> <0.1>
41    1.000003 read(3</etc/a/long/path/of/a/file>, "\0\177\377\x0aab\n\"cdefghijklmnop", 4096) = 24 <0.1>
41    1.000004 clone(child_stack=NULL, flags=SIGCHLD) = 42 <0.1>
42    1.000005 connect(3<UDP:[1]>, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.200.100.100")}, 16) = 0 <0.1>
42    1.000006 sendto(3<UDP:[1]>, "0123456789abcdefg", 17, 0, {sa_family=AF_INET6, inet_pton(AF_INET6, "2001:db8::0123:4567:89ab:cdef", &sin6_addr)}, 28 <unfinished ...>
41    1.000007 wait4(42,  <unfinished ...>
42    1.000008 <... sendto resumed>) = 17 <0.1>
42    1.000009 sendmsg(3, {msg_iov=[{iov_base="0123456789abcdefg", iov_len=17}], msg_iovlen=1}, 0) = 17 <0.1>
42    1.000010 +++ exited with 0 +++
41    1.000011 <... wait4 resumed>NULL, 0, NULL) = 42 <0.1>
"""


def evidence(folder: Path, data: bytes, name: str = "strace.log", channel: str = "syscalls") -> BundleEvidence:
    (folder / name).write_bytes(data)
    declared = Declared(tool="t", options=["-f", "-s", "4096"], begin_ns=1, end_ns=9, complete=True)
    return BundleEvidence(folder / name, name, "packets" if channel == "packets" else "syscalls", "x", declared)


def log(folder: Path) -> Content:
    content = content_of(evidence(folder, LOG))
    assert content is not None
    return content


def changed(before: Content, after: Content) -> dict[int, bytes | None]:
    """Return the changed lines by number."""
    assert len(before.parts) == len(after.parts)
    pairs = zip(before.parts, after.parts, strict=True)
    return {number: new.rstrip(b"\n") for number, (old, new) in enumerate(pairs, 1) if old != new}


def test_strings_are_cut_as_strace_cuts_them(tmp_path: Path) -> None:
    content = log(tmp_path)
    cut = cut_strings(content, 16)
    assert cut.item.declared.options == ["-f", "-s", "16"]
    lines = LOG.splitlines()
    assert changed(content, cut) == {
        1: lines[0].replace(b'["/srv/a long program"', b'["/srv/a long prog"...'),
        3: lines[2].replace(rb"\"cdefghijklmnop" + b'"', rb"\"cdefghij" + b'"...'),
        6: lines[5].replace(b'"0123456789abcdefg"', b'"0123456789abcdef"...'),
        9: lines[8].replace(b'"0123456789abcdefg"', b'"0123456789abcdef"...'),
    }
    assert b'sendto(3<UDP:[1]>, ""..., 17' in cut_strings(content, 0).parts[5]
    assert b'"2001:db8::0123:4567:89ab:cdef"' in cut_strings(content, 0).parts[5]
    assert cut_strings(content, 4096).parts == content.parts


def test_a_cut_string_is_cut_again(tmp_path: Path) -> None:
    first = cut_strings(log(tmp_path), 16)
    assert cut_strings(first, 2).parts == cut_strings(log(tmp_path), 2).parts


def test_a_tail_is_gone_and_the_manifest_knows(tmp_path: Path) -> None:
    content = cut_tail(log(tmp_path), 3)
    assert b"".join(content.parts) == b"".join(LOG.splitlines(keepends=True)[:3])
    declared = content.item.declared
    assert (declared.complete, declared.begin_ns, declared.end_ns) == (False, 1, None)


def test_the_lines_of_a_process_are_gone_and_nothing_is_declared(tmp_path: Path) -> None:
    content = log(tmp_path)
    assert content.processes == [b"41", b"42"]
    cut = drop_process(content, b"42")
    assert cut.parts == tuple(line for line in LOG.splitlines(keepends=True) if line.startswith(b"41"))
    assert cut.item.declared == content.item.declared


def test_a_class_of_calls_is_gone_from_lines_and_options(tmp_path: Path) -> None:
    content = log(tmp_path)
    cut = drop_class(content, "socket.connect")
    assert cut.parts == tuple(line for line in LOG.splitlines(keepends=True) if b" connect(" not in line)
    assert cut.item.declared.options == ["-f", "-s", "4096", "-e", "trace=!connect,socketcall"]
    sends = drop_class(content, "socket.send")
    assert [line for line in sends.parts if b"send" in line] == []


def test_a_class_leaves_a_filtered_trace_with_the_rest_of_its_calls(tmp_path: Path) -> None:
    item = evidence(tmp_path, LOG)
    item.declared.options = ["-f", "-e", "trace=openat,connect,execve"]
    content = content_of(item)
    assert content is not None
    assert drop_class(content, "socket.connect").item.declared.options == ["-f", "-e", "trace=execve,openat"]
    item.declared.options = ["-f", "-e", "trace=connect"]
    content = content_of(item)
    assert content is not None
    assert drop_class(content, "socket.connect").item.declared.options == ["-f", "-e", "trace=none"]


def test_a_log_of_another_form_is_left_alone(tmp_path: Path) -> None:
    assert content_of(evidence(tmp_path, b'openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3\n')) is None


def capture(order: str, *packets: bytes) -> bytes:
    head = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(
        struct.pack(f"{order}IIII", 1, at, len(one), len(one)) + one for at, one in enumerate(packets)
    )


def test_packets_are_dropped_and_counted(tmp_path: Path) -> None:
    for order in "<>":
        data = capture(order, b"first", b"second", b"", b"fourth")
        content = content_of(evidence(tmp_path, zstandard.compress(data), "capture.pcap.zst", "packets"))
        assert content is not None
        assert len(content.parts) == 4
        cut = drop_packets(content, {1, 3})
        item = written(cut, tmp_path)
        assert item.path.name == "capture.pcap"
        assert item.name == "capture.pcap.zst"
        assert item.path.read_bytes() == content.head + content.parts[0] + content.parts[2]
        assert item.declared.losses == [Loss("dropped", "2 packets dropped by the kernel", 2)]
        assert item.declared.complete


def test_a_capture_of_another_form_is_left_alone(tmp_path: Path) -> None:
    assert content_of(evidence(tmp_path, b"\x0a\x0d\x0d\x0a" + bytes(60), "a.pcapng", "packets")) is None
    assert content_of(evidence(tmp_path, b"\xd4\xc3\xb2\xa1", "b.pcap", "packets")) is None
