"""Sets of files written by strace -ff: one a thread, no pid in the lines."""

# ruff: noqa: E501
from __future__ import annotations

import gzip
import resource
from pathlib import Path

import pytest
from strace_tools import shown

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.strace import StraceFiles

MAIN = """\
clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM|CLONE_SETTLS, exit_signal=0, stack=0x7f, stack_size=0x7fff80} => {parent_tid=[616724]}, 88) = 616724
socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 3
"""
THREAD = """\
gettid()                                = 616724
getpid()                                = 616723
connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}, 16) = 0
"""


def _write(folder: Path, files: dict[str, str]) -> tuple[list[Path], list[str]]:
    paths = []
    for name, text in files.items():
        (folder / name).write_bytes(text.encode("latin-1"))
        paths.append(folder / name)
    return paths, list(files)


def _events(files: StraceFiles, wanted: frozenset[str] | None = None) -> list[str]:
    return [f"{event.where.file} {shown(event)}" for event in files.events(wanted)]


def test_c13_two_threads_of_one_process_share_their_descriptors(tmp_path: Path) -> None:
    files = StraceFiles(*_write(tmp_path, {"t.616724": THREAD, "t.616723": MAIN}))
    assert _events(files) == [
        "t.616723 process.start@1 process='616723' call='' how='seen'",
        "t.616723 socket.open@2 process='616723' call='socket' result=3 socket='s1' fd=3 family='inet' type='stream' protocol='IPPROTO_IP'",
        "t.616724 socket.connect@3 process='616723' tid=616724 call='connect' result=0 socket='s1' fd=3 transport='tcp' family='inet' address='203.0.113.7' port=443 outcome='established'",
    ]
    observation = files.observation
    assert [(loss.what, loss.note) for loss in observation.losses] == [
        ("no-order", True),
        ("no-exit", False),
        ("no-clock", True),
    ]
    assert (observation.source, observation.counts["files"], observation.counts["lines"]) == ("t", 2, 5)
    assert observation.clock == "none"


def test_files_with_times_are_merged_by_time(tmp_path: Path) -> None:
    main = (
        '1796037399.000001 chdir("/srv") = 0\n'
        "1796037399.000002 clone(child_stack=NULL, flags=SIGCHLD) = 9\n"
        '1796037399.000005 openat(AT_FDCWD, "late", O_RDONLY) = 3\n'
        "1796037399.000009 +++ exited with 0 +++\n"
    )
    child = (
        '1796037399.000003 openat(AT_FDCWD, "early", O_RDONLY) = 3\n'
        '1796037399.000006 read(3, "x", 1) = 1\n'
        "1796037399.000007 +++ exited with 0 +++\n"
    )
    files = StraceFiles(*_write(tmp_path, {"t.9": child, "t.8": main}))
    assert _events(files) == [
        "t.8 process.start@1 t_ns=1796037399000001000 process='8' call='' how='seen'",
        "t.8 process.start@2 t_ns=1796037399000002000 process='9' call='clone' result=9 how='clone' parent='8' flags=['SIGCHLD']",
        "t.9 file.open@1 t_ns=1796037399000003000 process='9' call='openat' result=3 path='/srv/early' access='read' flags='O_RDONLY' fd=3 written='early'",
        "t.8 file.open@3 t_ns=1796037399000005000 process='8' call='openat' result=3 path='/srv/late' access='read' flags='O_RDONLY' fd=3 written='late'",
        "t.9 file.read@2 t_ns=1796037399000006000 process='9' call='read' result=1 path='/srv/early' fd=3 size=1 data=b'x'",
        "t.9 process.exit@3 t_ns=1796037399000007000 process='9' code=0",
        "t.8 process.exit@4 t_ns=1796037399000009000 process='8' code=0",
    ]
    assert files.observation.complete
    assert files.observation.losses == []
    assert (files.observation.begin_ns, files.observation.end_ns) == (1796037399000001000, 1796037399000009000)


def test_places_count_the_lines_that_make_no_event(tmp_path: Path) -> None:
    text = "".join(f"1796037399.{i:06d} getuid() = 0\n" for i in range(50_000))
    text += '1796037400.000000 openat(AT_FDCWD, "/a", O_RDONLY) = 3\n1796037400.000001 +++ exited with 0 +++\n'
    files = StraceFiles(*_write(tmp_path, {"t.8": text}))
    assert [event.where.at for event in files.events(frozenset({"file.open", "process.exit"}))] == [50_001, 50_002]
    assert files.observation.counts["lines"] == 50_002


def test_an_odd_line_is_counted_and_nothing_after_it_is_lost(tmp_path: Path) -> None:
    text = 'openat(AT_FDCWD, "/a", O_RDONLY) = 3\n???\nopenat(AT_FDCWD, "/b", O_RDONLY) = 4\nopenat(AT_FDCWD, "/c"'
    files = StraceFiles(*_write(tmp_path, {"t.8": text}))
    found = _events(files, frozenset({"file.open", "unparsed"}))
    assert found == [
        "t.8 file.open@1 process='8' call='openat' result=3 path='/a' access='read' flags='O_RDONLY' fd=3 written='/a'",
        "t.8 unparsed@2 reason='no line of strace' raw=b'???'",
        "t.8 file.open@3 process='8' call='openat' result=4 path='/b' access='read' flags='O_RDONLY' fd=4 written='/b'",
        "t.8 file.open@4 process='8' call='openat' path='/c' written='/c'",
    ]
    assert {loss.what for loss in files.observation.losses if not loss.note} == {
        "unparsed",
        "file-truncated",
        "no-exit",
    }


def test_more_files_than_may_be_open_are_read(tmp_path: Path) -> None:
    files = {"t.1": "".join(f"1796037399.{i:06d} fork() = {i}\n" for i in range(2, 402))}
    for i in range(2, 402):
        files[f"t.{i}"] = (
            f'1796037400.{i:06d} openat(AT_FDCWD, "/f{i}", O_RDONLY) = 3\n1796037401.{i:06d} +++ exited with 0 +++\n'
        )
    files["t.1"] += "1796037402.000000 +++ exited with 0 +++\n"
    paths, names = _write(tmp_path, files)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        split = StraceFiles(paths, names)
        opened = [event.where.file for event in split.events(frozenset({"file.open"}))]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert opened == [f"t.{i}" for i in range(2, 402)]
    assert split.observation.complete


def test_compressed_and_empty_files_are_part_of_the_set(tmp_path: Path) -> None:
    paths, names = _write(tmp_path, {"t.8": 'openat(AT_FDCWD, "/a", O_RDONLY) = 3\n', "t.9": ""})
    packed = tmp_path / "t.10.gz"
    packed.write_bytes(gzip.compress(b'openat(AT_FDCWD, "/b", O_RDONLY) = 3\n'))
    split = StraceFiles([*paths, packed], [*names, "t.10.gz"])
    assert [event.where.file for event in split.events(frozenset({"file.open"}))] == ["t.8", "t.10.gz"]


def test_what_is_no_set_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        StraceFiles([])
    with pytest.raises(UnknownFormat, match="thread id"):
        StraceFiles(*_write(tmp_path, {"trace.log": MAIN}))
    with pytest.raises(UnknownFormat, match="not strace"):
        StraceFiles(*_write(tmp_path, {"t.8": "hello\n"}))


def test_of_two_lines_of_one_time_that_of_the_first_file_comes_first_and_a_file_keeps_its_own_order(
    tmp_path: Path,
) -> None:
    first = (
        '1796037399.000001 openat(AT_FDCWD, "/a1", O_RDONLY) = 3\n'
        '1796037399.000005 openat(AT_FDCWD, "/a2", O_RDONLY) = 3\n'
        '1796037399.000002 openat(AT_FDCWD, "/a3", O_RDONLY) = 3\n'
        '1796037399.000006 openat(AT_FDCWD, "/a4", O_RDONLY) = 3\n'
    )
    second = (
        '1796037399.000001 openat(AT_FDCWD, "/b1", O_RDONLY) = 3\n'
        '1796037399.000003 openat(AT_FDCWD, "/b2", O_RDONLY) = 3\n'
        '1796037399.000005 openat(AT_FDCWD, "/b3", O_RDONLY) = 3\n'
    )
    paths = _write(tmp_path, {"t.7": first, "t.8": second})
    opened = [event.path for event in StraceFiles(*paths).events(frozenset({"file.open"}))]  # type: ignore[attr-defined]
    assert opened == ["/a1", "/b1", "/b2", "/a2", "/a3", "/b3", "/a4"]


@pytest.mark.parametrize(
    "odd",
    [
        '1796037399.000002500 openat(AT_FDCWD, "/o1", O_RDONLY) = 3\n1796037399.000004000 openat(AT_FDCWD, "/o2", O_RDONLY) = 3\n',
        '1796037399.000002 [00007f8139ba9ad7] openat(AT_FDCWD, "/o1", O_RDONLY) = 3\n1796037399.000004 openat(AT_FDCWD, "/o2", O_RDONLY) = 3\n',
    ],
)
def test_files_of_other_forms_are_merged_with_regular_ones(tmp_path: Path, odd: str) -> None:
    regular = "".join(f'1796037399.00000{n} openat(AT_FDCWD, "/r{n}", O_RDONLY) = 3\n' for n in (1, 2, 3, 4, 5))
    files = StraceFiles(*_write(tmp_path, {"t.7": regular, "t.8": odd}))
    opened = [(event.path, event.t_ns) for event in files.events(frozenset({"file.open"}))]  # type: ignore[attr-defined]
    second = 1_796_037_399_000_000_000
    late = 2500 if "2500" in odd else 2000
    assert opened == [
        ("/r1", second + 1000),
        ("/r2", second + 2000),
        ("/o1", second + late),
        ("/r3", second + 3000),
        ("/r4", second + 4000),
        ("/o2", second + 4000),
        ("/r5", second + 5000),
    ]
    assert (files.observation.begin_ns, files.observation.end_ns) == (second + 1000, second + 5000)
    assert (files.observation.counts["lines"], files.observation.counts["unparsed"]) == (7, 0)


def test_the_half_of_a_call_that_nobody_asked_for_is_no_loss(tmp_path: Path) -> None:
    text = (
        '1796037399.000001 openat(AT_FDCWD, "/a", O_RDONLY) = 3\n'
        "1796037399.000002 read(3,  <unfinished ...>\n"
        "1796037399.000003 openat(AT_FDCWD,  <unfinished ...>\n"
        "1796037399.000004 +++ killed by SIGKILL +++\n"
    )
    files = StraceFiles(*_write(tmp_path, {"t.7": text}))
    opened = [event.where.at for event in files.events(frozenset({"file.open"}))]
    assert opened == [1, 3]
    losses = [(loss.what, loss.detail, loss.note) for loss in files.observation.losses]
    assert losses == [("unfinished", "openat: the thread ended in the middle of the call", True)]


def test_blocks_of_files_that_live_at_the_same_time_are_merged_line_by_line(tmp_path: Path) -> None:
    counts = {f"t.{tid}": 700 + 90 * tid for tid in range(1, 8)}
    texts = {
        name: "".join(
            f'1796037399.{number * 7 + len(name) * 3 + count % 7:06d} openat(AT_FDCWD, "/{name}/{number}/{"x" * 60}", O_RDONLY) = -1 ENOENT (No such file or directory)\n'
            for number in range(count)
        )
        for name, count in counts.items()
    }
    assert all(len(text) > 3 * (1 << 15) for text in texts.values())
    events = list(StraceFiles(*_write(tmp_path, texts)).events(frozenset({"file.open"})))
    assert len(events) == sum(counts.values()) == 7420
    order = [(event.t_ns or 0, list(texts).index(event.where.file), event.where.at) for event in events]
    assert order == sorted(order)
