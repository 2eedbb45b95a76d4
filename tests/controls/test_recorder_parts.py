"""The recorder's parts that need no namespaces: canaries, client, tools, command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controls.__main__ import main
from controls.catalog import controls
from controls.recorder import prune, tools
from controls.recorder.background import Background, await_line, wait_until
from controls.recorder.building import packaged
from controls.recorder.cell import Cell
from controls.recorder.denial import DENIALS
from controls.recorder.errors import RecorderError
from controls.recorder.microvm import image, shell
from controls.recorder.microvm.image import build_image
from controls.recorder.microvm.shell import MicroVM
from controls.recorder.packetlog import LOG


def test_waiting_ends_with_an_error_that_says_for_what() -> None:
    with pytest.raises(RecorderError, match=r"the thing: not within 0\.05 s"):
        wait_until(lambda: False, "the thing", 0.05)


def test_a_helper_that_dies_is_an_error() -> None:
    helper = Background("helper", ["sh", "-c", "echo starting"], stdout=subprocess.PIPE)
    assert helper.process.stdout is not None
    with pytest.raises(RecorderError, match="ended before it was ready: b'starting"):
        await_line(helper.process.stdout, b"ready", "helper")
    assert helper.stop() == 0


def test_a_helper_that_is_silent_is_an_error_and_can_be_stopped() -> None:
    helper = Background("helper", ["sleep", "60"], stdout=subprocess.PIPE)
    assert helper.process.stdout is not None
    with pytest.raises(RecorderError, match="not ready within"):
        await_line(helper.process.stdout, b"ready", "helper", 0.05)
    assert helper.stop() == -15


def test_a_helper_that_ignores_the_signal_is_killed() -> None:
    helper = Background("helper", ["sh", "-c", "trap '' TERM; echo ready; sleep 60 & wait"], stdout=subprocess.PIPE)
    assert helper.process.stdout is not None
    await_line(helper.process.stdout, b"ready", "helper")
    assert helper.stop(seconds=0.1) == -9


def test_a_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(RecorderError, match=r"helper: .*No such file"):
        Background("helper", ["/nowhere/at/all"])


def test_a_failing_command_is_quoted() -> None:
    with pytest.raises(RecorderError, match=r"sh -c echo no >&2; exit 3: exit 3: no"):
        tools.run("sh", "-c", "echo no >&2; exit 3")


def test_a_missing_tool_is_one_sentence_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name, path: None if name in ("tcpdump", "node") else f"/x/{name}")
    assert tools.missing(["node"]) == (
        "recording makes network namespaces and needs root; where this kernel is not to be shared with the target, "
        "--shell microvm records in a guest; not found: node, tcpdump (apt-get install nodejs tcpdump)"
    )
    with pytest.raises(RecorderError, match="needs root"):
        tools.require()


def test_a_tool_that_is_too_old_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"strace": "strace 4.26", "tcpdump": "tcpdump 4.9", "nft": "nft 1.0.6-dirty", "dnsmasq": "dnsmasq"}
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(tools, "version_of", lambda name: old[name])
    assert tools.missing() == "too old: strace 4.26, and 5.0 is needed (apt-get install strace)"


def test_every_tool_is_in_the_package_list() -> None:
    text = (Path(__file__).parents[2] / "controls/packages.txt").read_text()
    listed = {line for line in text.splitlines() if line and not line.startswith("#")}
    assert set(tools.PACKAGES.values()) <= listed


def test_a_guest_has_every_program_that_a_control_runs_and_that_an_option_needs() -> None:
    text = (Path(image.__file__).parent / "packages.txt").read_text()
    listed = {line for line in text.splitlines() if line and not line.startswith("#")}
    variants = [variant for control in controls() for variant in control.variants.values()]
    wanted = {tools.PACKAGES[name] for variant in variants for name in packaged(variant.run)}
    # What is compiled is compiled outside; perl-base is essential to Debian.
    ours = {"default-jdk-headless": "default-jre-headless"}
    wanted = {ours.get(name, name) for name in wanted - {"perl-base"}} | {"faketime", tools.PACKAGES[LOG]}
    assert len(wanted) >= 8
    assert wanted <= listed


def test_an_unknown_denial_or_dns_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecorderError, match="no denial 'sulk'; there are blackhole, "):
        Cell(tmp_path, denial="sulk")
    with pytest.raises(RecorderError, match="no dns mode 'sulk'"):
        Cell(tmp_path, dns="sulk")


def test_every_denial_does_something() -> None:
    assert len(DENIALS) == 33
    assert all(
        bool(one.hook) + bool(one.routes) + one.link + bool(one.dns) + one.gone + bool(one.confine) == 1
        for one in DENIALS.values()
    )


def test_the_command_line_lists_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "egress/direct-ip/c-tcp4"]) == 0
    assert capsys.readouterr().out == "fires   egress/direct-ip/c-tcp4  connect and send of a static program\n"


@pytest.mark.parametrize(
    ("patterns", "control"),
    [
        (["direct-ip"], "egress/direct-ip"),
        (["egress/direct-ip/"], "egress/direct-ip"),
        (["*/direct-ip/*"], "egress/direct-ip"),
    ],
)
def test_whole_parts_of_an_id_name_all_cases_that_have_them(
    patterns: list[str], control: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [
        f"{one.id}/{name}" for one in controls() for name in one.variants if f"{one.id}/".startswith(f"{control}/")
    ]
    assert len(wanted) > 100
    assert main(["list", *patterns]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == wanted


def test_a_part_of_a_word_names_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "direct"]) == 2
    assert capsys.readouterr().err == "no case matches direct\n"
    assert main(["list", "direct-ip/c-tcp4", "c-tcp4"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["egress/direct-ip/c-tcp4"]


def test_a_pattern_that_matches_nothing_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "egress/nothing"]) == 2
    assert capsys.readouterr().err == "no case matches egress/nothing\n"
    assert main(["list", "egress/direct-ip/c-tcp4", "c-tcp44", "x/*"]) == 2
    assert capsys.readouterr() == ("", "no case matches c-tcp44 x/*\n")


def test_a_recording_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main(["record", "egress/direct-ip/c-tcp4", "--out", str(tmp_path)]) == 3
    assert capsys.readouterr().err.startswith("recording makes network namespaces and needs root")
    assert list(tmp_path.iterdir()) == []


def test_control_groups_of_dead_recorders_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "CGROUPS", tmp_path)
    living, dead = f"mcpdetect-cell-{os.getpid()}-abc", "mcpdetect-cell-4194999-x_1"
    for name in (living, f"memory/{living}", dead, f"pids/{dead}", f"pids/{dead}.d"):
        (tmp_path / name).mkdir(parents=True)
    assert prune._groups() == [tmp_path / dead, tmp_path / "pids" / dead]
    assert sorted(path.name for path in tmp_path.rglob("mcpdetect-*")) == sorted([living, living, f"{dead}.d"])


def test_what_a_guest_needs_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = {"qemu-img", "qemu-system-x86_64", "gcc", "strace"}
    monkeypatch.setattr("shutil.which", lambda name, path: None if name in lost else f"/x/{name}")
    # strace is in the image, not here.
    why = r"not found: qemu-system-x86_64, qemu-img, gcc \(apt-get install gcc qemu-system-x86 qemu-utils\)"
    with pytest.raises(RecorderError, match=why):
        MicroVM().require(["gcc", "strace"])


@pytest.mark.parametrize(("version", "old"), [("5.2.0", True), ("6.0.0", False), ("7.2.22", False), ("10.0.2", False)])
def test_a_qemu_that_cannot_save_guests_is_too_old(version: str, old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path: f"/x/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(shell, "version_of", lambda name: f"{name} {version}")
    if not old:
        MicroVM().require([])
        return
    why = r"QEMU 5\.2\.0 cannot save a guest over QMP; 6\.0 or later is needed \(apt-get install qemu-system-x86\)"
    with pytest.raises(RecorderError, match=why):
        MicroVM().require([])


def test_without_the_package_that_drives_guests_the_command_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    here = ["controls.recorder.microvm.shell", "controls.recorder.microvm.guest", "qemu.qmp"]
    with pytest.MonkeyPatch.context() as patch:
        for name in here:
            patch.delitem(sys.modules, name, raising=False)
        patch.setitem(sys.modules, "qemu.qmp", None)
        assert main(["record", "egress/direct-ip/c-tcp4", "--shell", "microvm"]) == 3
    said = capsys.readouterr()
    assert said.err == "guests are driven by a Python package that is not here (pip install qemu.qmp)\n"
    assert said.out == ""


def test_a_guest_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path: f"/x/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RecorderError, match="the guest's process is put behind walls of its own, which needs root"):
        MicroVM().require([])


def test_an_image_that_cannot_be_built_names_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPDETECT_CACHE", str(tmp_path))
    lost = {"mmdebstrap", "mksquashfs"}
    monkeypatch.setattr("shutil.which", lambda name, path: None if name in lost else f"/x/{name}")
    with pytest.raises(RecorderError, match=r"needs more tools \(apt-get install mmdebstrap squashfs-tools\)"):
        build_image()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["strace", "tcpdump", "dnsmasq", "nft"])
def test_each_watcher_that_is_absent_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda one, path: None if one == name else f"/x/{one}")
    monkeypatch.setattr(tools, "version_of", lambda one: f"{one} 99.0")
    assert tools.missing() == f"not found: {name} (apt-get install {tools.PACKAGES[name]})"
