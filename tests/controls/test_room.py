"""The room from inside: what a target can see, write and use up, and what the recorder says of it."""

import datetime
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import zstandard

from controls.catalog import Control, Variant
from controls.recorder import limits as limits_module
from controls.recorder import room as room_module
from controls.recorder.limits import Limits
from controls.recorder.record import record
from controls.recorder.tools import missing
from controls.recorder.world import World

PROBLEM = missing(["gcc"])
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")


def ran(folder: Path, source: str, **changes: Any) -> tuple[dict[str, Any], str, Path]:
    """Record a shell script; return the manifest, strace's log and the bundle."""
    programs = folder / "made/up"
    programs.mkdir(parents=True)
    (programs / "program.sh").write_text(source)
    probe = changes.pop("probe", False)
    settings: dict[str, Any] = {
        "name": "sh",
        "truth": "silent",
        "why": "made up",
        "run": ("/bin/sh", "{control}/program.sh"),
        "axes": {"runtime": "sh"},
        "expect": {},
        **changes,
    }
    bundle = record(Control("made/up", programs, "nothing"), Variant(**settings), folder / "out", probe=probe)
    return json.loads((bundle / "manifest.json").read_text()), text(bundle, "strace.log"), bundle


def text(bundle: Path, name: str) -> str:
    plain, packed = bundle / name, bundle / f"{name}.zst"
    data = (
        plain.read_bytes() if plain.exists() else zstandard.ZstdDecompressor().stream_reader(packed.read_bytes()).read()
    )
    return data.decode("utf-8", "backslashreplace")


def said(log: str) -> list[str]:
    """Return what the script wrote to its standard output."""
    # 7 1796040939.371016 write(1</dev/null<char 1:3>>, "user 1000\\n", 10) = 10 <0.000012>
    return re.findall(r'write\(1</dev/null<char 1:3>>, "((?:[^"\\]|\\.)*)\\n"', log)


def files(bundle: Path) -> list[dict[str, Any]]:
    return list(json.loads(text(bundle, "files.json"))["entries"])


def test_what_a_target_is_and_sees(tmp_path: Path) -> None:
    source = r"""
echo "user $(id -u)"
echo "processes $(ls /proc | grep -c '^[0-9]')"
echo "$(grep NoNewPrivs /proc/self/status)"
for place in / /etc /usr /srv/control /dev /run; do (: >$place/x) 2>/dev/null && echo "wrote $place"; done
for place in /tmp /var/tmp /dev/shm $HOME; do (: >$place/x) 2>/dev/null || echo "no $place"; done
echo "longest file $(ulimit -f)"
echo "core $(ulimit -c)"
echo "env $(grep -c . /proc/1/environ 2>&1)"
echo $(ls -a /tmp)
"""
    manifest, log, _ = ran(tmp_path, source)
    lines = said(log)
    assert lines[0] == "user 1000"
    assert int(lines[1].split()[1]) <= 6
    assert lines[2] == r"NoNewPrivs:\t1"
    assert lines[3:5] == ["longest file 2097152", "core 0"]
    assert "No such file" in lines[5]
    assert lines[6] == ". .. x"
    assert manifest["run"]["exit"] == 0


def test_what_changed_is_told_by_path_mode_size_and_hash(tmp_path: Path) -> None:
    source = r"""
printf new >/tmp/new
mkdir $HOME/made
printf more >>$HOME/project/notes.txt
rm $HOME/project/data.csv
chmod 644 $HOME/.netrc
ln -s /etc/passwd $HOME/made/link
mkfifo /var/tmp/pipe
cat $HOME/.npmrc >/dev/null
: >/dev/shm/empty
"""
    manifest, _, bundle = ran(tmp_path, source)
    notes = b"hello\nA note about nothing in particular.\nmore"
    found = [
        (one["path"], one["change"], one["type"], one["mode"], one["size"], one["sha256"]) for one in files(bundle)
    ]
    empty = hashlib.sha256(b"").hexdigest()
    netrc = next(one for one in files(bundle) if one["path"] == "/home/dev/.netrc")
    assert found == [
        ("/dev/shm/empty", "created", "file", "0644", 0, empty),
        ("/home/dev/.netrc", "changed", "file", "0644", netrc["size"], netrc["sha256"]),
        ("/home/dev/made", "created", "folder", "0755", 0, None),
        ("/home/dev/made/link", "created", "link", "0777", 11, None),
        (
            "/home/dev/project/data.csv",
            "deleted",
            "file",
            "0644",
            28,
            hashlib.sha256(b"name,count\napples,3\npears,5\n").hexdigest(),
        ),
        ("/home/dev/project/notes.txt", "changed", "file", "0644", len(notes), hashlib.sha256(notes).hexdigest()),
        ("/tmp/new", "created", "file", "0644", 3, hashlib.sha256(b"new").hexdigest()),
        ("/var/tmp/pipe", "created", "fifo", "0644", 0, None),
    ]
    assert next(one["target"] for one in files(bundle) if one["type"] == "link") == "/etc/passwd"
    entry = next(one for one in manifest["evidence"] if one["channel"] == "files")
    assert (entry["format"], entry["complete"], entry["losses"]) == ("files-diff", True, [])
    assert entry["scope"] == "files below /dev/shm, /home/dev, /tmp, /var/tmp"


def test_odd_names_and_traps_do_not_mislead_the_look(tmp_path: Path) -> None:
    source = r"""
cd /tmp
printf 'x' >"$(printf 'a\nb\377')"
ln -s / root
ln -s /proc/self/root/etc/shadow $HOME/.netrc.new && mv $HOME/.netrc.new $HOME/.netrc
i=0; while [ $i -lt 1500 ]; do mkdir deepdeepdeep && cd deepdeepdeep || break; i=$((i+1)); done
"""
    manifest, _, bundle = ran(tmp_path, source, seconds=60.0)
    found = {one["path"]: one for one in files(bundle)}
    assert found["/tmp/a\nb\\xff"]["size"] == 1
    assert (found["/tmp/root"]["type"], found["/tmp/root"]["target"]) == ("link", "/")
    assert (found["/home/dev/.netrc"]["type"], found["/home/dev/.netrc"]["sha256"]) == ("link", None)
    assert not any(path.startswith("/tmp/root/") for path in found)
    entry = next(one for one in manifest["evidence"] if one["channel"] == "files")
    assert [one["detail"] for one in entry["losses"]] == ["there were more files than are looked at"]


def test_the_programs_that_ran_are_told(tmp_path: Path) -> None:
    source = r"""
cp /bin/true /tmp/mine
/tmp/mine
printf '#!/bin/sh\nexit 0\n' >/tmp/script; chmod +x /tmp/script
/tmp/script
/srv/control/nothing 2>/dev/null
cp /bin/true /tmp/gone; /tmp/gone; rm /tmp/gone
"""
    manifest, _, bundle = ran(tmp_path, source, binaries=True)
    programs = {one["path"]: one for one in manifest["run"]["programs"]}
    assert list(programs) == [
        "/bin/sh",
        "/usr/bin/cp",
        "/tmp/mine",
        "/usr/bin/chmod",
        "/tmp/script",
        "/tmp/gone",
        "/usr/bin/rm",
    ]
    true = Path("/bin/true").read_bytes()
    digest = hashlib.sha256(true).hexdigest()
    assert programs["/tmp/mine"] == {
        "path": "/tmp/mine",
        "sha256": digest,
        "bytes": len(true),
        "kind": "elf",
        "machine": 62,
        "bits": 64,
        "linkage": "dynamic",
        "package": None,
        "copied": "program-3.elf.zst",
    }
    assert (programs["/bin/sh"]["package"], programs["/usr/bin/cp"]["package"]) == ("dash", "coreutils")
    assert (programs["/bin/sh"]["copied"], programs["/tmp/script"]["kind"]) == (None, "script")
    assert programs["/tmp/gone"]["sha256"] is None
    copy = zstandard.ZstdDecompressor().stream_reader((bundle / "program-3.elf.zst").read_bytes()).read()
    assert copy == true
    entry = next(one for one in manifest["evidence"] if one["channel"] == "binaries")
    assert (entry["path"], entry["format"], entry["scope"]) == ("program-3.elf.zst", "elf", "/tmp/mine")


def test_a_full_disk_is_the_targets_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "World", lambda place: World(place, 8 << 20))
    manifest, log, bundle = ran(tmp_path, "dd if=/dev/zero of=/tmp/big bs=1M count=64\necho after\n")
    assert re.search(r"write\(1.* = -1 ENOSPC", log)
    assert said(log) == ["after"]
    big = next(one for one in files(bundle) if one["path"] == "/tmp/big")
    assert 6 << 20 < big["size"] <= 8 << 20
    assert manifest["run"]["exit"] == 0


def test_memory_that_runs_out_ends_the_target_and_leaves_the_tracer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = Limits()
    tried.close()
    if tried.how == "rlimits":
        pytest.skip("control groups cannot be written here")
    monkeypatch.setattr(room_module, "Limits", lambda: Limits(memory=64 << 20))
    source = "sleep 0.3\nperl -e '$x = \"y\" x (256 << 20); print length $x'\necho then $?\n"
    manifest, log, _ = ran(tmp_path, source)
    assert "killed by SIGKILL" in log
    assert said(log) == ["then 137"]
    assert manifest["run"]["notes"] == ["the memory limit of 64 MB ended 1 processes"]
    assert manifest["evidence"][0]["complete"] is True


def test_a_target_that_forks_without_end_is_ended_and_probed_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room_module, "Limits", lambda: Limits(processes=64))
    source = "perl -e 'while (1) { fork }'\n"
    manifest, log, _ = ran(tmp_path, source, seconds=3.0, probe=True)
    assert manifest["run"]["exit"] is None
    assert [one["phase"] for one in manifest["probes"]] == ["before", "after"]
    assert manifest["evidence"][0]["complete"] is True
    assert manifest["probes"][1]["nonce"] in log
    assert re.fullmatch(r"the limit of 64 processes refused \d+ more", manifest["run"]["notes"][0])


def test_where_no_control_group_can_be_written_rlimits_do_and_the_manifest_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room_module, "Limits", lambda: Limits(root=tmp_path / "none"))
    manifest, log, _ = ran(tmp_path, "echo data $(ulimit -d) processes $(ulimit -p)\n")
    assert said(log) == ["data 2097152 processes 1024"]
    assert manifest["run"]["notes"] == [
        "control groups cannot be written here: memory and processes are limited by rlimits alone"
    ]


def test_groups_of_either_version_are_made_and_removed(tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "cgroup.controllers").write_text("cpu memory pids\n")
    found = Limits(5 << 20, 7, root=second)
    (group,) = [path for path in second.iterdir() if path.is_dir()]
    assert (found.how, found.doors) == ("cgroup v2", [group / "cgroup.procs"])
    assert (second / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert ((group / "memory.max").read_text(), (group / "pids.max").read_text()) == (str(5 << 20), "7")
    assert group.name.startswith(f"mcpdetect-cell-{os.getpid()}-")
    for path in group.iterdir():
        path.unlink()  # files of a real control group go with it
    found.close()
    assert not group.exists()
    first = tmp_path / "first"
    for name in ("memory", "pids"):
        (first / name).mkdir(parents=True)
    (first / "memory/memory.limit_in_bytes").touch()
    assert Limits(root=first).how == "cgroup v1"
    assert Limits(root=tmp_path / "nothing").how == "rlimits"


def test_no_group_stays_behind(tmp_path: Path) -> None:
    ran(tmp_path, "true\n")
    left = [path for path in limits_module.CGROUPS.glob("**/mcpdetect-cell-*") if f"-{os.getpid()}-" in path.name]
    assert left == []


def test_a_log_without_end_ends_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "MOST_LOG", 1 << 20)
    monkeypatch.setattr("controls.recorder.capture.MOST_LOG", 1 << 20)
    manifest, _, _ = ran(tmp_path, "while :; do :</dev/null; done\n", seconds=30.0)
    assert manifest["run"]["notes"] == ["the target was ended because strace's log grew beyond 1 MB"]
    assert manifest["run"]["exit"] == 137


def test_clock_and_surroundings_are_the_targets_alone(tmp_path: Path) -> None:
    source = r"""
echo "year $(date +%Y)" "zone $(date +%Z)"
echo "ci $CI $GITHUB_ACTIONS" "lang $LANG" "mode $MODE"
"""
    options = {"clock": "+800d", "ci": True, "locale": "de_DE.UTF-8", "timezone": "Asia/Tokyo"}
    manifest, log, _ = ran(tmp_path, source, environment={"MODE": "prod"}, **options)
    started = datetime.datetime.fromtimestamp(manifest["run"]["started_ns"] / 1e9, datetime.UTC)
    year = (started + datetime.timedelta(days=800)).year
    assert said(log) == [f"year {year} zone JST", "ci true true lang de_DE.UTF-8 mode prod"]
    assert manifest["run"]["notes"] == ["the target's clock was shifted by +800d with libfaketime"]
    # The log keeps the true time: 7 1796040939.371016 execve(...
    first = float(log.split()[1])
    assert abs(first - started.timestamp()) < 60
