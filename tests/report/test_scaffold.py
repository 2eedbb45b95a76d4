"""The first files of a new check work as they are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from hand_sources import where

from controls.catalog import controls
from mcpdetect.cli.main import main
from mcpdetect.contract import Context, Detector
from mcpdetect.model.event import ProcessStart
from mcpdetect.report.scaffold import scaffold


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("mcpdetect/detectors", "controls/planted"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def test_the_files_are_written_once(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["new", "egress.over-there", "--into", str(checkout)]
    assert main(arguments) == 0
    said = capsys.readouterr()
    names = [
        "mcpdetect/detectors/egress_over_there.py",
        "controls/planted/egress/over-there/control.yaml",
        "controls/planted/egress/over-there/act.sh",
        "tests/detectors/test_egress_over_there.py",
    ]
    assert said.out.splitlines() == [f"{checkout}/{name}" for name in names]
    assert [(checkout / name).read_text() for name in names] == list(scaffold("egress.over-there").values())
    assert said.err.splitlines()[:2] == ["next:", "  python -m controls record egress/over-there"]
    assert len(said.err.splitlines()) == 7
    assert main(arguments) == 4
    assert capsys.readouterr().err.startswith(f"error: {checkout}/{names[0]}: exists already")


@pytest.mark.parametrize("name", ["egress", "egress.", "Egress.x", "egress.x.y", "a.b_c", "../a.b", "a.b\n"])
def test_what_is_no_id_is_refused(checkout: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name, "--into", str(checkout)]) == 4
    assert "is no id of a check" in capsys.readouterr().err
    assert [path for path in checkout.rglob("*") if path.is_file()] == []


def test_only_a_checkout_takes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "a.b", "--into", str(tmp_path)]) == 4
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}: is no checkout of mcpdetect")


def test_the_detector_finds_and_the_control_is_listed(checkout: Path) -> None:
    assert main(["new", "process.over-there", "--into", str(checkout)]) == 0
    (control,) = controls(checkout / "controls" / "planted")
    assert [(one.name, one.truth, one.expect) for one in control.variants.values()] == [
        ("sh-copied", "fires", {"process.over-there": "detected"}),
        ("sh-installed", "silent", {"process.over-there": "not_detected"}),
    ]
    written = runpy.run_path(str(checkout / "mcpdetect" / "detectors" / "process_over_there.py"))
    kind: type[Detector] = written["ProcessOverThere"]
    detector = kind(object.__new__(Context))  # type: ignore[type-abstract]
    starts = [ProcessStart(where(n), n, "execve", 0, executable=path) for n, path in ((1, "/tmp/x"), (2, "/bin/x"))]
    found = [one for start in starts for one in detector.on_event(start)]
    assert [(one.title, one.level, one.where) for one in found] == [
        ("/tmp/x was started, out of a folder that anybody may write to", "suspicious", [where(1)])
    ]
