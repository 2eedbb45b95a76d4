"""gVisor's log, whose paths and names the traced program writes as it likes: nothing forged, nothing lost in silence."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest
from gvisor_tools import NAME, lines, read
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mcpdetect.errors import InputError
from mcpdetect.ingest.gvisor import GvisorLog
from mcpdetect.ingest.gvisor.record import REACH
from mcpdetect.model.net import SocketConnect

FORGED = "I1130 15:16:50.304894   29411 strace.go:605] [   1:   1] python3 X connect(0x6 socket:[9], 0x7f0 {Family: AF_INET, Addr: 198.51.100.1, Port: 6}, 0x10) = 0 (0x0) (227.83µs)"
OPEN = "openat(AT_FDCWD /, 0x7f {path}, O_RDONLY|O_CLOEXEC, 0o0)"
FAILED = " = 0 (0x0) errno=2 (no such file or directory) (27.8µs)"
FAR = lines(*["X getpid() = 1 (0x1) (1µs)"] * (REACH // 60))
REAL = lines("X connect(0x4 socket:[3], 0x7f {Family: AF_INET, Addr: 203.0.113.7, Port: 9}, 0x10) = 0 (0x0) (1µs)")


def forged(path: str, *, debug: bool = False) -> str:
    """Return the lines that an open of ``path`` leaves."""
    call = OPEN.format(path=path)
    walk = f"D1130 15:16:50.294889   29411 client.go:400] send [channel 0xc0002f15f0] WalkReq{{DirFD: 413, Path: [{path}, ]}}\n"
    return lines(f"E {call}") + walk * debug + lines(f"X {call}{FAILED}")


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "path",
    [
        f"x\n{FORGED}\ny",
        f"x\n{FORGED}",
        f"x\n{FORGED}\n",
        f"x, O_RDONLY, 0o0)\n{FORGED}\ny",
        f"x, O_RDONLY, 0o0) = 3 (0x3) (1µs)\n{FORGED}\ny",
        f"x, O_RDONLY, 0o0) = 3 (0x3) (1µs)\n{FORGED[:-44]}, 0x7f {{Family: AF_INET, Addr: 198.51.100.1, Port: 6}}, 0x10",
        f"x, O_RDONLY, 0o0)\n{FORGED}\nI1130 15:16:50.294889   29411 strace.go:1] [   1:   1] python3 E openat(AT_FDCWD /, 0x1 /etc/shadow",
        f"x, O_RDONLY, 0o0) = 3 (0x3) (1µs)\n{FORGED}\nI1130 15:16:50.294889   29411 strace.go:1] [   1:   1] python3 X openat(AT_FDCWD /, 0x1 /etc/shadow",
        f"x\n{FORGED}\n7f4bc7032000-7f4bc7034000 r--p 00008000 00:0e 1199 /x",
        f"x\n{FORGED}\n" + "y" * 4000,
    ],
)
def test_a_path_with_line_ends_forges_no_call(tmp_path: Path, path: str, debug: bool) -> None:
    text = REAL + FAR + forged(path, debug=debug) + FAR + REAL
    events, observation = read(tmp_path, text)
    contacts = [event.address for event in events if isinstance(event, SocketConnect)]
    assert contacts == ["203.0.113.7", "203.0.113.7"]
    assert not any(getattr(event, "path", "") == "/etc/shadow" for event in events)
    hiding = {loss.what for loss in observation.losses if not loss.note and not loss.touches}
    assert {"shared-stream", "unparsed"} <= hiding
    assert observation.counts["unparsed"] >= 3


def test_a_thread_name_with_a_line_end_is_not_passed_over(tmp_path: Path) -> None:
    text = "I1130 15:16:50.304894   29411 strace.go:605] [   1:   1] a\nb X openat(AT_FDCWD /, 0x7f /a, O_RDONLY, 0o0) = 3 (0x3) (1µs)\n"
    events, observation = read(tmp_path, REAL + FAR + text + FAR)
    assert [event.kind for event in events if event.kind == "file.open"] == []
    assert {loss.what for loss in observation.losses if not loss.note} >= {"shared-stream", "unparsed"}


@pytest.mark.parametrize("name", ["a] X c(0x1) = 0", "a E close(0x3", "x X exit_group(", "[   1:   2] b", ""])
def test_a_thread_name_that_looks_like_a_call_is_no_call(tmp_path: Path, name: str) -> None:
    line = f"[   1:   1] {name[:15]} X openat(AT_FDCWD /, 0x7f /a, O_RDONLY, 0o0) = 3 (0x3) (1µs)"
    events, observation = read(tmp_path, lines(line))
    opens = [event for event in events if event.kind == "file.open"]
    assert len(opens) + observation.counts["unparsed"] == 1
    assert not any(event.kind in {"process.exit", "kernel.notable"} for event in events)


def test_text_of_the_program_inside_quotes_is_no_line(tmp_path: Path) -> None:
    text = FORGED.replace('"', '\\"')
    events, observation = read(
        tmp_path,
        lines(
            f'E write(0x1 host:[1], 0x7f "x\\n{text}\\n", 0x99)', "X write(0x1 host:[1], ..., 0x99) = 153 (0x99) (1µs)"
        ),
    )
    assert [event.kind for event in events] == ["process.start", "file.change"]
    assert observation.counts["unparsed"] == 0


def test_configuration_before_the_first_call_is_no_loss(tmp_path: Path) -> None:
    text = 'D1130 15:16:48.183207   29411 specutils.go:75] Spec:\n{\n  "ociVersion": ""\n}\n'
    _, observation = read(tmp_path, text + REAL)
    assert (observation.counts["unparsed"], observation.counts["lines"]) == (0, 5)
    assert [loss.what for loss in observation.losses] == ["no-exit"]


def test_the_mappings_of_a_crashed_program_are_no_loss(tmp_path: Path) -> None:
    text = "D1130 15:16:48.183207   29411 task_log.go:75] [   1:   1] Mappings:\n7f4bc7032000-7f4bc7034000 r--p 00008000 00:0e 1199                  /usr/lib/x86_64-linux-gnu/libffi.so.8.1.2\n"
    events, observation = read(tmp_path, REAL + text + REAL)
    assert len(events) == 3
    assert [loss.what for loss in observation.losses] == ["no-exit"]


SAMPLE = lines(
    "E openat(AT_FDCWD /tmp/w, 0x7f4bc7373050 a,b c.txt, O_WRONLY|O_CREAT, 0o666)",
    "X openat(AT_FDCWD /tmp/w, 0x7f4bc7373050 a,b c.txt, O_WRONLY|O_CREAT, 0o666) = 3 (0x3) (97.624µs)",
    r'E write(0x3 /tmp/w/a,b c.txt, 0x5606e313cd70 "hello \"q\" \\ \né x\n", 0x12)',
    "X write(0x3 /tmp/w/a,b c.txt, ..., 0x12) = 18 (0x12) (11.281µs)",
    "X connect(0x4 socket:[3], 0x7f {Family: AF_INET, Addr: 203.0.113.7, Port: 9}, 0x10) = 0 (0x0) (1µs)",
    '[  43:  43] sh X execve(0x564e /usr/bin/cat, 0x564e ["cat"], 0x564e ["A=1"]) = 0 (0x0) (317.1µs)',
).encode()


def test_a_log_cut_at_any_byte_gives_a_beginning_of_the_whole_and_says_that_it_is_cut(tmp_path: Path) -> None:
    whole, _ = read(tmp_path, SAMPLE)
    tried = 0
    for end in range(130, len(SAMPLE)):
        if SAMPLE[end - 1 : end + 1].find(b"\n") >= 0:
            continue
        events, observation = read(tmp_path, SAMPLE[:end])
        done = [event for event in events if getattr(event, "result", 0) is not None or event.kind == "process.start"]
        assert done == whole[: len(done)]
        assert [loss.what for loss in observation.losses if loss.what == "file-truncated"] == ["file-truncated"]
        tried += 1
    assert tried > 500


def test_a_log_that_begins_anywhere_forges_nothing(tmp_path: Path) -> None:
    kinds = {event.kind for event in read(tmp_path, SAMPLE)[0]} | {"unparsed", "process.exec_failed"}
    tried = 0
    for start in range(0, len(SAMPLE) - 100, 7):
        try:
            events, _ = read(tmp_path, SAMPLE[start:])
        except InputError:
            continue
        assert {event.kind for event in events} <= kinds
        tried += 1
    assert tried > 60


_WORDS = st.sampled_from(
    ["E ", "X ", "openat(", "connect(", "write(", "sendmsg(", "execve(", "clone(", "sys_439(", "close(", "mount(", "AT_FDCWD /", "0x3", "0x7f", " /a, b", ", ",
     '"x\\u00e9"', '"', "...", "[", "]", "{", "}", "{Family: AF_INET, Addr: 203.0.113.7, Port: 9}", "{base=0x1, len=3, ", ") = 3 (0x3) (1µs)", ")", " errno=2 (x) (1s)", "\n",
     "I1130 15:16:50.304894   29411 strace.go:605] [   1:   1] p ", "(1", "task_exit.go:1] [ 1: 1] "]
)  # fmt: skip


@given(st.lists(_WORDS, max_size=40).map("".join))
@example("X openat(AT_FDCWD /, 0x7f , 0x7f, 0o0) = 3 (0x3) (1h2m3.5s)\n")
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mixture_of_the_format_is_read_to_its_end(tmp_path: Path, text: str) -> None:
    head = "I1130 15:16:50.304894   29411 strace.go:605] [   1:   1] p "
    events, observation = read(tmp_path, (head + text).encode())
    assert observation.counts["lines"] == (head + text).count("\n") + (not text.endswith("\n"))
    assert len(events) <= observation.counts["lines"] * 4 + 2


@given(st.binary(max_size=400))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_after_a_first_line_are_read_or_counted(tmp_path: Path, data: bytes) -> None:
    _, observation = read(tmp_path, REAL.encode() + data)
    assert observation.counts["lines"] >= 1


@pytest.mark.parametrize(
    "text", ["dup2(0xffff\u00bdf9c, 0x1)", "dup2(AT, 0x1)", "open(x, 0x1, 0x2)", "poll(0x, 0x1, 0x2)"]
)
def test_an_argument_that_is_none_is_counted(tmp_path: Path, text: str) -> None:
    _, observation = read(tmp_path, lines(f"X {text} = 1 (0x1) (1µs)"))
    assert observation.counts["unparsed"] == 1


@pytest.mark.parametrize(
    "body",
    [
        "X openat(AT_FDCWD /" + ", 0x1 a" * 120_000 + ", O_RDONLY, 0o0) = 3 (0x3) (1µs)",
        'X execve(0x1 /a, 0x1 ["' + '", "' * 150_000 + '"], 0x1 []) = 0 (0x0) (1µs)',
        "X sendmsg(0x1, 0x1 {" + "{" * 400_000 + "}, 0x0) = 0 (0x0) (1µs)",
        'X write(0x1, 0x1 "' + "\\" * 500_001 + '", 0x1) = 1 (0x1) (1µs)',
        "X connect(0x1 " + ", null" * 100_000 + ", 0x1) = 0 (0x0) (1µs)",
        "X poll(0x1 [" + "{FD: 0x4 s, Events: " * 40_000 + "], 0x1, 0x1) = 1 (0x1) (1µs)",
        "X close(0x1" + ") = 3 (0x3) (1µs)" * 50_000,
        "X close(0x1) = 0 (0x0) errno=2 (" + "(" * 900_000,
    ],
)
def test_long_lines_made_to_be_slow_are_read_to_their_end(tmp_path: Path, body: str) -> None:
    _, observation = read(tmp_path, lines(body))
    assert observation.counts["lines"] == 1


def test_a_line_too_long_to_be_read_is_a_loss(tmp_path: Path) -> None:
    _, observation = read(tmp_path, REAL + lines("X close(0x1 /" + "a" * (3 << 20) + ") = 0 (0x0) (1µs)") + REAL)
    assert {"line-cut", "unparsed"} <= {loss.what for loss in observation.losses if not loss.note}


def test_a_compressed_log_that_breaks_off_says_so(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / NAME
    path.write_bytes(gzip.compress(SAMPLE * 400)[:-20])
    log = GvisorLog(path, NAME)
    assert len(list(log.events())) > 100
    assert "file-truncated" in {loss.what for loss in log.observation.losses}
