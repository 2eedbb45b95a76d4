"""The commands: what they print, what they end with, resuming, and working side by side."""

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controls import __main__ as commands
from controls import pool, working
from controls.__main__ import main
from controls.catalog import Control, Variant, controls
from controls.pool import Failed, each, guests_at_once
from controls.progress import Progress
from controls.recorder import record as record_module
from controls.recorder.errors import RecorderError
from controls.recorder.resume import inputs_of, kept
from controls.recorder.shells import Shell
from controls.recorder.tools import missing
from controls.working import Task, record_case
from mcpdetect.errors import LabelError

ROOT = Path(__file__).parents[2]
PROBLEM = missing(["gcc"])
recording = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")
CASE = "egress/direct-ip/c-tcp4"


def planted(case: str = CASE) -> tuple[Control, Variant]:
    name, _, variant = case.rpartition("/")
    control = next(one for one in controls() if one.id == name)
    return control, control.variants[variant]


def bundle(folder: Path, inputs: str | None) -> Path:
    """Write what looks like a bundle, without recording."""
    folder.mkdir(parents=True)
    (folder / "strace.log").write_bytes(b"1 exit_group(0) = ?\n")
    entry = {"path": "strace.log", "sha256": "0" * 64}
    (folder / "manifest.json").write_text(json.dumps({"inputs": inputs, "evidence": [entry]}))
    return folder


def doubled(item: int, _: Shell) -> tuple[int, int]:
    """Work of a test: a number, twice it, and by whom it was doubled; some numbers are special."""
    if item == 13:
        raise RecorderError("thirteen")
    if item == 14:
        raise LabelError("fourteen", file="x.yaml")
    if item == 15:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return 2 * item, os.getpid()


def test_one_after_the_other_is_done_here_and_in_order() -> None:
    found = list(each(doubled, [3, 13, 1, 14], where="netns"))
    assert [(item, result if isinstance(result, Failed) else result[0]) for item, result in found] == [
        (3, 6),
        (13, Failed("thirteen")),
        (1, 2),
        (14, Failed(str(LabelError("fourteen", file="x.yaml")))),
    ]
    assert {result[1] for _, result in found if not isinstance(result, Failed)} == {os.getpid()}


def test_side_by_side_every_item_is_done_once_by_a_process_of_its_own() -> None:
    found = dict(each(doubled, [1, 2, 3, 13, 5, 6], where="netns", jobs=2))
    assert found.pop(13) == Failed("thirteen")
    done = {item: result[0] for item, result in found.items() if not isinstance(result, Failed)}
    assert done == {1: 2, 2: 4, 3: 6, 5: 10, 6: 12}
    workers = {result[1] for result in found.values() if not isinstance(result, Failed)}
    assert 1 <= len(workers) <= 2
    assert os.getpid() not in workers
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_worker_that_dies_fails_its_item_alone() -> None:
    found = dict(each(doubled, [1, 15, 2, 3], where="netns", jobs=2))
    assert found.pop(15) == Failed("the recorder's worker ended with -9")
    assert {item: result[0] for item, result in found.items() if not isinstance(result, Failed)} == {1: 2, 2: 4, 3: 6}


def test_as_many_guests_as_fit_into_free_memory_and_at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for kilobytes, wanted, fit in ((5 << 20, 2, 2), (5 << 20, 9, 5), (1 << 19, 4, 1), (0, 1, 1)):
        text = f"MemTotal:       999999999 kB\nMemFree:            1 kB\nMemAvailable:   {kilobytes} kB\n"
        monkeypatch.setattr(Path, "read_text", lambda _, text=text: text)
        assert guests_at_once(wanted) == fit
    monkeypatch.setattr(Path, "read_text", lambda _: "")
    assert guests_at_once(4) == 1
    assert pool.GUEST_BYTES == 1 << 30


def test_fewer_guests_than_asked_for_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "guests_at_once", lambda wanted: 1)
    options = commands._parser().parse_args(["record", "--shell", "microvm", "--jobs", "3"])
    assert commands._jobs(options, "microvm") == 1
    assert capsys.readouterr().err == (
        "1 instead of 3 side by side: more guests do not fit into the memory that is free\n"
    )
    options = commands._parser().parse_args(["record", "--jobs", "0"])
    assert commands._jobs(options, "netns") == len(os.sched_getaffinity(0))


def test_a_case_is_recorded_where_its_control_says_unless_the_command_does(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []

    def noted(function: object, items: list[Task], *, where: str, jobs: int) -> Iterator[tuple[Task, object]]:
        asked.append((where, [task.variant.name for task in items]))
        return iter(())

    monkeypatch.setattr(commands, "each", noted)
    control, variant = commands._chosen(["egress/direct-ip/c-tcp4"])[0]
    guest = replace(variant, name="guest", shell="microvm")  # noqa: S604
    pair = [Task(control, one, None) for one in (variant, guest)]
    for arguments, wanted in (
        ([], [("netns", ["c-tcp4"]), ("microvm", ["guest"])]),
        (["--shell", "netns"], [("netns", ["c-tcp4", "guest"])]),
        (["--shell", "microvm"], [("microvm", ["c-tcp4", "guest"])]),
    ):
        asked.clear()
        assert list(commands._each(record_case, pair, commands._parser().parse_args(["record", *arguments]))) == []
        assert asked == wanted, arguments


def test_the_table_counts_by_group_and_in_all(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(3, "recording", ("recorded", "failed")) as progress:
        progress.done("a/b", "recorded", "recorded a/b/c")
        progress.done("a/longer", "failed", "failed a/longer/c", wrong=True)
        progress.done("a/b", "recorded", "recorded a/b/d")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("recorded a/b/c\nrecorded a/b/d\n", "failed a/longer/c\n")
    assert progress.table() == (
        "          recorded  failed\n"
        "a/b              2       0\n"
        "a/longer         0       1\n"
        "in all           2       1\n"
        "3 cases in 0 s"
    )
    assert (progress.count("recorded"), progress.count("failed"), progress.count("kept")) == (2, 1, 0)


def test_a_bar_is_shown_on_a_terminal_alone(tmp_path: Path) -> None:
    source = (
        "from controls.progress import Progress\n"
        "with Progress(2, 'recording', ('recorded',)) as progress:\n"
        "    progress.done('a/b', 'recorded', 'recorded a/b/c')\n"
        "    progress.done('a/b', 'recorded', 'recorded a/b/d')\n"
    )
    piped = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (piped.stdout, piped.stderr) == ("recorded a/b/c\nrecorded a/b/d\n", "")
    ours, theirs = os.openpty()
    shown = subprocess.run([sys.executable, "-c", source], cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    bar = b""
    while b"2/2" not in bar:
        bar += os.read(ours, 4096)
    os.close(ours)
    assert shown.stdout == b"recorded a/b/c\nrecorded a/b/d\n"
    assert b"recording  [" in bar
    assert b"\r\033[K" in bar


def test_the_inputs_of_a_case_are_its_programs_its_variant_and_how_it_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    (tmp_path / "control.yaml").write_text("one")
    control, variant = planted()
    control = Control(control.id, tmp_path, control.plants)

    def inputs(seed: int = 0, shell: str = "netns", *, probe: bool = True) -> str:
        return inputs_of(control, variant, seed=seed, probe=probe, where=shell)

    first = inputs()
    assert re.fullmatch(r"[0-9a-f]{64}", first)
    (tmp_path / "control.yaml").write_text("other variants do not matter")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/a.pyc").write_bytes(b"x")
    assert inputs() == first
    others = [inputs(1), inputs(0, "microvm"), inputs(probe=False)]
    others.append(inputs_of(control, planted("egress/direct-ip/c-tcp6")[1], seed=0, probe=True, where="netns"))
    (tmp_path / "a.py").write_text("print(2)\n")
    others.append(inputs())
    (tmp_path / "link").symlink_to("a.py")
    others.append(inputs())
    assert len({first, *others}) == 7


def test_a_bundle_is_kept_only_when_it_is_whole_and_of_the_same_inputs(tmp_path: Path) -> None:
    assert not kept(tmp_path / "absent", "x")
    whole = bundle(tmp_path / "whole", "x")
    text = (whole / "manifest.json").read_text()
    assert not kept(whole, "x")  # its hash is of another file
    digest = hashlib.sha256((whole / "strace.log").read_bytes()).hexdigest()
    manifest = json.loads(text)
    manifest["evidence"][0]["sha256"] = digest
    (whole / "manifest.json").write_text(json.dumps(manifest))
    assert kept(whole, "x")
    assert not kept(whole, "y")
    (whole / "strace.log").unlink()
    assert not kept(whole, "x")
    for broken in ("", "[]", '{"inputs": "x"}', '{"inputs": "x", "evidence": [1]}', json.dumps(manifest)[:-9]):
        (whole / "manifest.json").write_text(broken)
        assert not kept(whole, "x")


@recording
def test_recording_resumes_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", CASE, "--out", str(tmp_path)]) == 0
    size = sum(path.stat().st_size for path in (tmp_path / CASE).rglob("*") if path.is_file())
    first = (tmp_path / CASE / "manifest.json").read_bytes()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"recorded {CASE} ({size} bytes)"
    assert said[1:3] == ["                  recorded  kept  failed", "egress/direct-ip         1     0       0"]
    assert main(["record", CASE, "--out", str(tmp_path), "--resume"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"kept {CASE} ({size} bytes)"
    assert (tmp_path / CASE / "manifest.json").read_bytes() == first
    assert main(["verify", CASE, "--out", str(tmp_path), "--resume"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"same      {CASE}"
    assert (tmp_path / CASE / "manifest.json").read_bytes() == first
    assert main(["record", CASE, "--out", str(tmp_path), "--resume", "--seed", "1"]) == 0
    assert capsys.readouterr().out.startswith(f"recorded {CASE} (")
    assert (tmp_path / CASE / "manifest.json").read_bytes() != first


@recording
def test_verifying_tells_what_differs_and_what_has_no_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / f"labels/cases/{CASE}.yaml").read_text()
    wrong = re.sub(r"(network\.blocked: \{verdict:) not_detected", r"\1 not_observable", text)
    assert wrong != text
    (tmp_path / "cases/egress/direct-ip").mkdir(parents=True)
    (tmp_path / f"cases/{CASE}.yaml").write_text(wrong)
    assert main(["verify", CASE, "egress/direct-ip/c-tcp6", "--labels", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert told.err == ""
    said = told.out.splitlines()
    assert sorted(said[:3]) == [
        "          network.blocked says not_detected, its label not_observable",
        f"differs   {CASE}",
        "no label  egress/direct-ip/c-tcp6",
    ]
    at = said.index(f"differs   {CASE}")
    assert said[at + 1] == "          network.blocked says not_detected, its label not_observable"
    assert said[3:5] == [
        "                  same  differs  failed  no label",
        "egress/direct-ip     0        1       0         1",
    ]


@recording
def test_a_case_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = record_module.record

    def record(control: Control, variant: Variant, out: Path, **more: object) -> Path:
        if variant.name == "c-tcp4":
            raise RecorderError("no cell")
        return real(control, variant, out, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(working, "record", record)
    assert main(["record", CASE, "egress/direct-ip/c-tcp6", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.err == f"failed {CASE}: no cell\n"
    assert said.out.startswith("recorded egress/direct-ip/c-tcp6 (")
    assert "egress/direct-ip         1     0       1\n" in said.out


def test_where_nothing_can_be_recorded_the_status_is_3_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    for command in (["record", CASE], ["verify", CASE], ["audit", "npm:x"]):
        assert main([*command, "--out", str(tmp_path / "out")]) == 3
        assert "not found: dnsmasq, " in capsys.readouterr().err
        assert main([*command, "--out", str(tmp_path / "out"), "--shell", "microvm"]) == 3
        assert capsys.readouterr().err == (
            "not found: qemu-system-x86_64, qemu-img (apt-get install qemu-system-x86 qemu-utils)\n"
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["record", "--jobs", "-1"], "a number of cases, or 0 for as many as processors"),
        (["record", "--jobs", "many"], "a number of cases, or 0 for as many as processors"),
        (["record", "--shell", "cloud"], "invalid choice: 'cloud'"),
        (["verify", "--resume"], "--resume needs --out: without it nothing is kept"),
        (["audit"], "the following arguments are required: target"),
        ([], "the following arguments are required: command"),
    ],
)
def test_wrong_usage_ends_with_2(argv: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("cases", [[], [CASE]], ids=["more than a buffer holds", "less"])
def test_a_reader_that_leaves_ends_a_command_without_a_word(cases: list[str]) -> None:
    # Standard output is a pipe that nobody reads any more.
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "controls", "list", *cases], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True
    ) as command:
        os.close(writer)
        assert command.stderr is not None
        assert command.stderr.read() == ""
        assert command.wait(60) == 1


@recording
def test_what_is_no_server_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "nothing"]) == 2
    why = "nothing: a server is npm:NAME[@VERSION], pypi:NAME[==VERSION] or command:ARGV\n"
    assert capsys.readouterr() == ("", why)


@recording
def test_a_place_that_cannot_be_written_fails_the_case_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["record", CASE, "--out", str(tmp_path / "file")]) == 1
    told = capsys.readouterr().err
    assert told == f"failed {CASE}: [Errno 20] Not a directory: '{tmp_path}/file/egress/direct-ip'\n"


def _below(pid: int) -> set[int]:
    found: set[int] = set()
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return found
    for child in map(int, below):
        found |= {child} | _below(child)
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@recording
@pytest.mark.parametrize(("how", "jobs"), [(signal.SIGINT, "1"), (signal.SIGTERM, "1"), (signal.SIGINT, "2")])
def test_an_interrupted_recording_takes_down_what_it_made(how: signal.Signals, jobs: str, tmp_path: Path) -> None:
    cases = ["network/blocked/c-tcp4-gateway-drop", "network/blocked/c-tcp6-gateway-drop"]
    scratch, out = tmp_path / "scratch", tmp_path / "out"
    scratch.mkdir()
    command = [sys.executable, "-m", "controls", "record", *cases, "--out", str(out), "--jobs", jobs]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.PIPE, text=True
    ) as recorder:
        end = time.monotonic() + 60
        below: set[int] = set()

        def names() -> list[str]:
            found = []
            for pid in below:
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    found.append(Path(f"/proc/{pid}/comm").read_text().strip())
            return found

        while names().count("attempt") < int(jobs):
            assert time.monotonic() < end
            below = _below(recorder.pid)
            time.sleep(0.01)
        recorder.send_signal(how)
        assert recorder.stderr is not None
        said = recorder.stderr.read()
        assert recorder.wait(60) == 130
    assert said == "interrupted; what was under way is taken down\n"
    assert len(below) >= 8
    # The kernel ends helpers with their keeper, Python's own helper of processes ends by itself: both in a moment.
    while alive := [pid for pid in below if _alive(pid)]:
        assert time.monotonic() < end, alive
        time.sleep(0.01)
    assert list(scratch.iterdir()) == []
    assert list(out.rglob("manifest.json")) == []
