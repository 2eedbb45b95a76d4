"""Audits of servers: the steps that a recording tells, and what names a server."""

import json
from pathlib import Path

import pytest

from controls import auditing
from controls.__main__ import main
from controls.auditing import audit
from controls.catalog import Control, Variant
from controls.recorder.errors import RecorderError
from controls.recorder.shells import Netns
from controls.recorder.tools import missing
from controls.servers import Installed, install

PROBLEM = missing()
SERVER = Path(__file__).parents[2] / "controls/planted/mcp/exfil-instruction"


@pytest.mark.parametrize("target", ["npm:", "pypi:a b", "npm:../x", "pypi:x==1;rm", "gem:x", "x", "command:relative"])
def test_what_names_no_server_is_refused(target: str) -> None:
    with pytest.raises(RecorderError, match=r"a server is npm:NAME|begins with an absolute path"):
        install(target)


def test_a_target_that_cannot_be_installed_is_a_broken_step(tmp_path: Path) -> None:
    found = audit("gem:x", Netns(), tmp_path)
    assert [(step.name, step.ok) for step in found.steps] == [("installs", False)]
    assert found.broke is found.steps[0]
    assert (found.result, found.bundles) == (None, [])


@pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")
def test_a_server_is_recorded_open_and_denied_and_every_step_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ("/usr/bin/python3", "-I", "-S", "/srv/control/server.py", "/srv/control/tools/token-counts.json")
    installed = Installed("command-planted", "1.0", SERVER, run, "python")
    monkeypatch.setattr(auditing, "install", lambda target, arguments: installed)
    assert main(["audit", "command:planted", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "  survives denial  ok" in said
    assert "  mcp.exfil-instruction    not_detected" in said
    found = audit("command:planted", Netns(), tmp_path)
    assert [(step.name, step.ok) for step in found.steps] == [
        ("installs", True),
        ("starts", True),
        ("initializes", True),
        ("lists", True),
        ("calls", True),
        ("survives denial", True),
        ("shuts down", True),
    ]
    assert found.broke is None
    assert [path.name for path in found.bundles] == ["open", "denied"]
    assert found.result is not None
    assert len(found.result.parts) == 2


@pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")
def test_a_server_that_speaks_nonsense_is_recorded_and_its_first_broken_step_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "server.sh").write_text("echo nonsense\n")
    installed = Installed("command-nonsense", "", folder, ("/bin/sh", "/srv/control/server.sh"), "command")
    monkeypatch.setattr(auditing, "install", lambda target, arguments: installed)
    found = audit("command:nonsense", Netns(), tmp_path / "out")
    assert found.broke is not None
    assert (found.broke.name, found.broke.ok) == ("initializes", False)
    assert "closed its output before it answered" in found.broke.detail
    assert {step.name: step.ok for step in found.steps}["survives denial"] is None
    assert found.result is not None
    notes = json.loads((found.bundles[0] / "manifest.json").read_text())["run"]["notes"]
    assert len(notes) == 1


def test_a_servers_variant_is_thorough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Variant] = []

    def record(control: Control, variant: Variant, out: Path, **_: object) -> Path:
        seen.append(variant)
        raise RecorderError("no cell")

    monkeypatch.setattr(auditing, "record", record)
    installed = Installed("npm-x", "1", tmp_path, ("/usr/bin/node", "x.js"), "node")
    monkeypatch.setattr(auditing, "install", lambda target, arguments: installed)
    found = audit("npm:x", Netns(), tmp_path)
    assert [(step.name, step.ok, step.detail) for step in found.steps][1:] == [("starts", False, "no cell")]
    assert [(one.name, one.denial, one.mcp, one.thorough) for one in seen] == [("open", None, True, True)]
