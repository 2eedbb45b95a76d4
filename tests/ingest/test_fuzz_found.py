"""Inputs that once broke a parser, found by fuzzing or by reading other evidence than its own tests have."""

from __future__ import annotations

from pathlib import Path

from mcpdetect.ingest.dnslog.zeek import ZeekLog
from mcpdetect.ingest.strace import StraceLog
from mcpdetect.model.event import FileOpen, Frame, Unparsed
from mcpdetect.model.net import DnsQuery
from mcpdetect.model.place import Where


def test_a_frame_whose_symbol_has_no_name_keeps_its_place_in_the_image(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    path.write_text(
        'openat(AT_FDCWD, "/etc/hostname", O_RDONLY) = 3\n'
        " > /usr/lib/x86_64-linux-gnu/libc.so.6(__open64+0x51) [0xf4d51]\n"
        " > /opt/program() [0x114c]\n"
        " > /opt/program(+0x0) [0x1071]\n"
        "+++ exited with 0 +++\n"
    )
    (event,) = [event for event in StraceLog(path).events() if isinstance(event, FileOpen)]
    assert event.frames == [
        Frame("/usr/lib/x86_64-linux-gnu/libc.so.6", "__open64", 0x51),
        Frame("/opt/program", None, 0x114C),
        Frame("/opt/program", None, 0x1071),
    ]


def test_a_zeek_log_that_names_a_column_twice(tmp_path: Path) -> None:
    # Counted by name there were fewer columns than the line has: whole lines did not fit, and a shorter one broke.
    path = tmp_path / "dns.log"
    path.write_bytes(
        b"#separator \\x09\n"
        b"#fields\tts\tts\tid.orig_h\tid.resp_h\tquery\tqtype_name\n"
        b"1796037684.1\t1796037685.1\t10.77.0.2\t10.77.0.1\tapi.example.test\tA\n"
        b"1796037684.1\t10.77.0.2\t10.77.0.1\tapi.example.test\tA\n"
        b"#close\t2026-11-30-11-23-54\n"
    )
    asked, unparsed = ZeekLog(path, "dns.log").events()
    assert asked == DnsQuery(
        Where("dns.log", 3),
        1_796_037_685_100_000_000,
        seen_in="dns",
        name="api.example.test",
        client="10.77.0.2",
        server="10.77.0.1",
    )
    assert isinstance(unparsed, Unparsed)
    assert (unparsed.where.at, unparsed.reason) == (4, "not as many columns as #fields names")
