"""Hostile and heavy logs: nothing crashes, nothing vanishes, nothing grows without bound."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strace_tools import NAME, hiding, read

from mcpdetect.errors import InputError
from mcpdetect.ingest.strace import StraceFiles, StraceLog
from mcpdetect.ingest.strace.grammar import split_arguments, split_call, unescape
from mcpdetect.model.event import Event, FileChange, FileOpen, Unparsed
from mcpdetect.model.observation import Observation

GOOD = r"""36 1796037399.000001 execve("/usr/bin/node", ["node", "x.js"], 0x7ffe /* 16 vars */) = 0 <0.000100>
36 1796037399.000002 openat(AT_FDCWD</srv>, "\303\251\"a) = 3", O_RDONLY|O_CLOEXEC) = 3</srv/\303\251\"a) = 3> <0.000010>
36 1796037399.000003 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>
37 1796037399.000004 read(3</srv/a>, "x\0\1"..., 64) = 9 <0.000010>
36 1796037399.000005 <... clone resumed>) = 37 <0.000300>
36 1796037399.000006 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 4<UDP:[7]> <0.000010>
36 1796037399.000007 connect(4<UDP:[7]>, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.0.0.1")}, 16) = 0 <0.000010>
36 1796037399.000008 sendmmsg(4<UDP:[10.0.0.2:9->10.0.0.1:53]>, [{msg_hdr={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="\311+\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1", iov_len=24}], msg_iovlen=1, msg_controllen=0, msg_flags=0}, msg_len=24}], 1, MSG_NOSIGNAL) = 1 <0.000010>
36 1796037399.000009 recvmsg(5<UNIX-STREAM:[1->2]>, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="x", iov_len=1}], msg_iovlen=1, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[7</etc/hostname>]}], msg_controllen=24, msg_flags=0}, 0) = 1 <0.000010>
36 1796037399.000010 poll([{fd=4<UDP:[10.0.0.2:9->10.0.0.1:53]>, events=POLLIN}], 1, 5000) = 0 (Timeout) <5.000000>
36 1796037399.000011 rename("/a", "/b") = -1 ENOENT (No such file or directory) <0.000010>
37 1796037399.000012 +++ exited with 0 +++
36 1796037399.000013 +++ exited with 0 +++
"""  # noqa: E501


def _try(folder: Path, text: bytes) -> tuple[list[Event], Observation] | None:
    try:
        return read(folder, text)
    except InputError:
        return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@given(st.binary(max_size=400))
def test_any_bytes_give_events_or_an_input_error(folder: Path, data: bytes) -> None:
    _try(folder, data)


@given(st.binary(max_size=300))
def test_any_bytes_after_a_good_log_leave_its_events_alone(folder: Path, data: bytes) -> None:
    good, _ = read(folder, GOOD)
    found, observation = read(folder, GOOD.encode("latin-1") + b"~" + data)
    places = [event.where.at for event in good]
    kept = [event for event in found if event.where.at <= max(places) and (event.where.end or 0) <= max(places)]
    assert [event for event in kept if event.where.at in places][: len(good)] == good
    assert observation.counts["unparsed"] + observation.counts["lines"] > 13
    assert "file-truncated" in hiding(observation) or "unparsed" in hiding(observation)


@settings(max_examples=300)
@given(st.data())
def test_a_log_with_changed_bytes_loses_nothing_in_silence(folder: Path, data: st.DataObject) -> None:
    raw = bytearray(GOOD.encode("latin-1"))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.sampled_from(list(b'"\\(){}[]<>,=\n 0x?\xff')))
    found = _try(folder, bytes(raw))
    if found is not None:
        events, observation = found
        assert observation.counts["lines"] == bytes(raw).count(b"\n") + (not raw.endswith(b"\n"))
        assert len([event for event in events if isinstance(event, Unparsed)]) == observation.counts["unparsed"]


def test_a_log_cut_at_any_byte_gives_a_prefix_and_says_so(tmp_path: Path) -> None:
    raw = GOOD.encode("latin-1")
    whole, observation = read(tmp_path, raw)
    assert len(whole) == 14
    assert observation.losses[0].what == "string-cut"
    assert observation.complete
    cuts = 0
    for end in range(1, len(raw) - 1):
        found = _try(tmp_path, raw[:end])
        if found is None:
            assert end < 40
            continue
        cuts += 1
        events, observation = found
        assert not observation.complete
        last = raw[:end].count(b"\n") + 1
        sure = [event for event in events if (event.where.end or event.where.at) < last and event.where.at != 3]
        expected = [event for event in whole if (event.where.end or event.where.at) < last and event.where.at != 3]
        assert sure == expected, raw[:end][-80:]
        assert hiding(observation) & {"file-truncated", "no-exit", "unparsed"}
    assert cuts > len(raw) - 60
    assert read(tmp_path, raw[:-1])[1].complete


def _lines(events: list[Event]) -> list[int]:
    return [event.where.at for event in events]


@pytest.mark.parametrize("count", [65_000, 130_000])
def test_c86_a_buffer_of_one_long_line_is_read_and_bounded(tmp_path: Path, count: int) -> None:
    events, observation = read(tmp_path, '9 write(1, "' + "\\x41" * count + '", 1) = 1\n9 +++ exited with 0 +++\n')
    written = events[1]
    assert isinstance(written, FileChange)
    assert (written.data, written.size, written.cut) == (b"A", 1, False)
    assert observation.counts["unparsed"] == 0


@pytest.mark.parametrize("opener", ["(", "[", "{", "<", "3<", '"', "\\", "[{", "<A:[", '<A:["', '("', "<... x "])
def test_c86_openers_without_end_are_one_unparsed_line(tmp_path: Path, opener: str) -> None:
    text = '9 openat(AT_FDCWD, "/a", O_RDONLY) = 3\n9 openat(AT_FDCWD, "' + opener * 60_000 + "\n"
    events, observation = read(tmp_path, text, frozenset({"file.open", "unparsed"}))
    assert _lines(events) == [1, 2, 2]
    assert observation.counts["unparsed"] == 1
    assert [loss.touches for loss in observation.losses if loss.what == "unparsed"] == [["file.open"]]


def test_c86_spaces_before_a_result_are_read_in_one_pass(tmp_path: Path) -> None:
    events, _ = read(tmp_path, '9 openat(AT_FDCWD, "/a", O_RDONLY)' + " " * 100_000 + "= 3\n", frozenset({"file.open"}))
    assert [event.fd for event in events if isinstance(event, FileOpen)] == [3]


def test_c86_results_inside_a_path_are_text(tmp_path: Path) -> None:
    name = ") = 1<> (E) " * 340
    line = f'9 openat(AT_FDCWD, "/{name}", O_RDONLY) = 3</{name.replace("<", "").replace(">", "")}>\n'
    events, _ = read(tmp_path, line * 50, frozenset({"file.open"}))
    assert [event.fd for event in events if isinstance(event, FileOpen)] == [3] * 50


def test_c86_calls_that_never_return_are_bounded_and_counted(tmp_path: Path) -> None:
    text = "".join(f"{i} connect(3 <unfinished ...>\n" for i in range(1, 20_101))
    events, observation = read(tmp_path, text, frozenset({"socket.connect"}))
    overflow = [loss for loss in observation.losses if loss.what == "overflow"]
    assert [(loss.count, loss.touches) for loss in overflow] == [(100, ["socket.connect"])]
    assert len(events) == 20_000


def test_c86_unfinished_calls_that_do_not_matter_hide_nothing(tmp_path: Path) -> None:
    text = "".join(f"{i} futex(0x7f, FUTEX_WAIT, 0, NULL <unfinished ...>\n" for i in range(1, 25_001))
    _, observation = read(tmp_path, text, frozenset({"socket.connect"}))
    assert hiding(observation) == {"no-exit"}


def test_c23_text_of_the_program_across_blocks_makes_no_event(tmp_path: Path) -> None:
    forged = 'connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("198.51.100.66")}, 16) = 0\n'
    for lead in range(1300, 1360, 7):
        text = 'openat(AT_FDCWD, "/before", O_RDONLY) = 3\n' + f'write(2, "x"..., {len(forged) * lead})'[:-1]
        text += forged * lead + f") = {len(forged) * lead}\n" + 'openat(AT_FDCWD, "/after", O_RDONLY) = 3\n'
        events, observation = read(tmp_path, text, frozenset({"file.open", "socket.connect"}))
        assert _lines(events) == [1, lead + 3]
        assert observation.counts["lines"] == lead + 3
        assert observation.counts["unparsed"] == 0
        assert "shared-stream" in hiding(observation)


def test_a_log_without_a_newline_does_not_grow_memory(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b'9 openat(AT_FDCWD, "/a", O_RDONLY) = 3\n9 write(1, "' + b"a" * 40_000_000)
    log = StraceLog(path, NAME)
    tracemalloc.start()
    try:
        events = list(log.events(frozenset({"file.open"})))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert _lines(events) == [1]
    assert peak < 32_000_000
    assert {"line-cut", "file-truncated"} <= hiding(log.observation)


def test_a_line_beyond_the_cap_is_cut_and_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b'9 write(1, "' + b"a" * 3_000_000 + b'", 3) = 3\n9 openat(AT_FDCWD, "/a", O_RDONLY) = 3\n')
    events, observation = read(tmp_path, path.read_bytes(), frozenset({"file.open"}))
    assert _lines(events) == [2]
    assert "line-cut" in hiding(observation)


def test_names_made_without_end_are_bounded_and_said_to_be(tmp_path: Path) -> None:
    text = "".join(f'9 rename("/a{i}", "/b{i}") = 0\n' for i in range(20_010))
    _, observation = read(tmp_path, text, frozenset({"file.open"}))
    assert [(loss.count, loss.touches) for loss in observation.losses if loss.what == "overflow"] == [
        (10, ["file.open", "file.read"])
    ]


def test_symlinks_in_a_circle_end_and_are_uncertain(tmp_path: Path) -> None:
    text = '9 symlink("/b", "/a") = 0\n9 symlink("/a", "/b") = 0\n9 openat(AT_FDCWD, "/a/x", O_RDONLY) = -1 ELOOP (x)\n'
    events, _ = read(tmp_path, text, frozenset({"file.open"}))
    assert [(event.path, event.certain) for event in events if isinstance(event, FileOpen)] == [("/a/x", False)]


@given(st.text(alphabet='"\\(){}[]<>,=: ax0-', max_size=60))
def test_splitting_any_text_loses_no_character(text: str) -> None:
    parts = split_arguments(text)
    assert parts is None or ", ".join(parts) == text
    call = split_call(text)
    assert call is None or text.startswith(call[0])


@given(st.binary(max_size=40))
def test_unescaping_undoes_what_strace_writes(data: bytes) -> None:
    octal = "".join(f"\\{byte:03o}" for byte in data)
    hexed = "".join(f"\\x{byte:02x}" for byte in data)
    assert unescape(octal).encode("latin-1") == data
    assert unescape(hexed).encode("latin-1") == data


@given(st.text(alphabet="\\01789xuNae\"'{n", max_size=12))
def test_unescaping_any_text_is_one_of_the_bytes(text: str) -> None:
    unescape(text).encode("latin-1")


@given(st.lists(st.binary(max_size=120), min_size=1, max_size=3))
def test_any_set_of_files_gives_events_or_an_input_error(folder: Path, parts: list[bytes]) -> None:
    paths = []
    for index, part in enumerate(parts):
        path = folder / f"t.{index + 1}"
        path.write_bytes(b'openat(AT_FDCWD, "/a", O_RDONLY) = 3\n' * (index == 0) + part)
        paths.append(path)
    split = StraceFiles(paths)
    assert len(list(split.events())) == split.observation.counts["events"]


def test_the_quick_and_the_careful_way_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / NAME
    path.write_text(GOOD * 400, encoding="latin-1")
    assert path.stat().st_size > 2 * (1 << 17)
    for wanted in (None, frozenset({"file.open", "process.start"}), frozenset({"socket.send", "dns.query"})):
        quick = StraceLog(path, NAME)
        found = list(quick.events(wanted))
        monkeypatch.setattr("mcpdetect.ingest.strace.log.fast_header", lambda head: None)
        careful = StraceLog(path, NAME)
        monkeypatch.undo()
        assert found == list(careful.events(wanted))
        assert len(found) >= 300
        assert quick.observation == careful.observation


def test_a_forged_line_in_a_log_with_pids_makes_no_event_either(tmp_path: Path) -> None:
    forged = '9 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("198.51.100.66")}, 16) = 0\n'
    text = "9 getuid() = 0\n" * 20_000 + f'9 write(2, "x"..., {len(forged)}\n'[:-1] + forged
    text += f") = {len(forged)}\n" + '9 openat(AT_FDCWD, "/after", O_RDONLY) = 3\n'
    events, observation = read(tmp_path, text, frozenset({"file.open", "socket.connect"}))
    assert _lines(events) == [20_003]
    assert "shared-stream" in hiding(observation)
