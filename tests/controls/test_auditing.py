"""Audits of servers: the steps that a recording tells, and what names a server."""

import json
from pathlib import Path

import pytest

from controls import auditing
from controls.__main__ import main
from controls.auditing import audit, judge
from controls.catalog import Control, Variant
from controls.recorder.canaries import tag_of
from controls.recorder.errors import RecorderError
from controls.recorder.shells import Netns
from controls.recorder.tools import missing
from controls.serverlist import Server
from controls.servers import Installed

PROBLEM = missing()
SERVER = Path(__file__).parents[2] / "controls/planted/mcp/exfil-instruction"


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
    monkeypatch.setattr(auditing, "install", lambda server: installed)
    assert main(["audit", "command:planted", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "  survives denial  ok" in said
    assert "  lists            ok     1 tools  (open/mcp.jsonl.zst:" in said
    assert "  mcp.exfil-instruction     not_detected" in said
    bundles = [tmp_path / "servers/command-planted" / name for name in ("open", "denied")]
    manifests = [(bundle / "manifest.json").read_bytes() for bundle in bundles]
    assert main(["audit", "command:planted", "--out", str(tmp_path), "--resume"]) == 0
    told = said.replace(f"{bundles[0].parent};", f"{bundles[0].parent} (open and denied recorded before);")
    # The last line says how long it took.
    assert capsys.readouterr().out.splitlines()[:-1] == told.splitlines()[:-1]
    assert [(bundle / "manifest.json").read_bytes() for bundle in bundles] == manifests
    (bundles[1] / "manifest.json").unlink()
    found = audit("command:planted", Netns(), tmp_path, resume=True)
    assert found.kept == ["open"]
    assert str(found.recorded) == json.loads(manifests[0])["recorded"]
    assert (bundles[0] / "manifest.json").read_bytes() == manifests[0]
    assert (bundles[1] / "manifest.json").exists()
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
    assert found.bundles == bundles
    assert found.result is not None
    assert len(found.result.parts) == 2


@pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")
def test_a_server_that_speaks_nonsense_is_recorded_and_its_first_broken_step_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "server.py").write_text(
        "import os\nprint('nonsense')\nos.write(2, b'at x\\nFooError: no token\\n')\nos._exit(3)\n"
    )
    run = ("/usr/bin/python3", "-I", "-S", "/srv/control/server.py")
    installed = Installed("command-nonsense", "", folder, run, "command")
    monkeypatch.setattr(auditing, "install", lambda server: installed)
    found = audit("command:nonsense", Netns(), tmp_path / "out")
    assert found.broke is not None
    log = next((found.bundles[0]).glob("strace.log*")).name
    assert (found.broke.name, found.broke.ok) == ("starts", False)
    assert found.broke.detail == "ended with status 3 before it answered: FooError: no token"
    assert found.broke.where.startswith(f"open/{log}:")
    assert [(step.name, step.ok) for step in found.steps] == [
        ("installs", True),
        ("starts", False),
        ("initializes", False),
        ("lists", None),
        ("calls", None),
        ("survives denial", None),
        ("shuts down", None),
    ]
    assert (found.works, found.denied, found.asked) == (False, [], [])
    assert found.result is not None


def test_a_servers_variant_is_thorough_and_has_the_lists_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Variant] = []

    def record(control: Control, variant: Variant, out: Path, **_: object) -> Path:
        seen.append(variant)
        if variant.denial is None:
            return tmp_path
        raise RecorderError("no cell")

    server = Server(
        "npm:x@1",
        ("--key={canary}", "{project}"),
        {"X_TOKEN": "t_{canary}", "X_FILE": "{home}/x"},
        seconds=7.0,
    )
    monkeypatch.setattr(auditing, "record", record)
    monkeypatch.setattr(auditing, "named", lambda target: server)
    installed = Installed("npm-x", "1", tmp_path, ("/v/python3", *server.arguments), "python", "/v", ("x@1", "y@2"))
    monkeypatch.setattr(auditing, "install", lambda server: installed)
    found = audit("npm:x", Netns(), tmp_path)
    assert [(step.name, step.ok, step.detail) for step in found.steps] == [
        ("installs", True, "1, 2 packages"),
        ("survives denial", False, "no cell"),
    ]
    assert (found.target, found.slug, found.resolved) == ("npm:x@1", "npm-x", ("x@1", "y@2"))
    assert [(one.name, one.denial, one.mcp, one.thorough, one.seconds) for one in seen] == [
        ("open", None, True, True, 7.0),
        ("denied", "output-drop", True, True, 7.0),
    ]
    tags = [tag_of(0, f"servers/npm-x/{name}") for name in ("open", "denied")]
    assert [one.run for one in seen] == [
        ("/v/python3", f"--key=CANARY-TOKEN-{tag}", "/home/dev/project") for tag in tags
    ]
    assert seen[0].environment == {
        "X_TOKEN": f"t_CANARY-TOKEN-{tags[0]}",
        "X_FILE": "/home/dev/x",
        "PATH": "/v:/usr/bin:/bin",
    }


def test_arguments_of_the_command_line_replace_the_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Server] = []

    def install(server: Server) -> Installed:
        seen.append(server)
        raise RecorderError("enough")

    monkeypatch.setattr(auditing, "named", lambda target: Server("npm:x@1", ("a",), {"K": "v"}, ("y@2",)))
    monkeypatch.setattr(auditing, "install", install)
    found = audit("npm:x", Netns(), tmp_path, arguments=("b", "c"))
    assert seen == [Server("npm:x@1", ("b", "c"), {"K": "v"}, ("y@2",))]
    assert [(step.name, step.ok, step.detail) for step in found.steps] == [("installs", False, "enough")]


def test_a_recording_is_judged_again_and_one_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = Installed("npm-x", "1", tmp_path, ("/usr/bin/node",), "node")
    monkeypatch.setattr(auditing, "install", lambda server: installed)
    with pytest.raises(RecorderError, match=r"npm-x/open: no recording of npm:x is there$"):
        judge("npm:x", tmp_path)
