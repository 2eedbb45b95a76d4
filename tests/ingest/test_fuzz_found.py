"""Inputs that once broke a parser, found by fuzzing or by reading other evidence than its own tests have."""

from __future__ import annotations

from pathlib import Path

from mcpdetect.ingest.strace import StraceLog
from mcpdetect.model.event import FileOpen, Frame


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
