"""Finding detectors: all of them, none in silence, no two under one name."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import mcpdetect.detectors
from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.engine import discovery
from mcpdetect.errors import SpecError


def test_every_module_of_the_package_is_one_detector_under_its_own_name() -> None:
    found = discovery.detectors()
    modules = sorted(path.stem for path in Path(mcpdetect.detectors.__path__[0]).glob("[!_]*.py"))
    assert len(modules) >= 5
    named = sorted(detector.__module__.rpartition(".")[2] for detector in found.values())
    assert [name for name in modules if name in named] == named
    for ident, detector in found.items():
        assert detector.spec.id == ident
        snake = ident.replace(".", "_").replace("-", "_")
        assert detector.__module__ == f"mcpdetect.detectors.{snake}"
        assert detector.__name__ == "".join(part.title() for part in snake.split("_"))
        assert detector.spec.blind_to
    assert list(found) == sorted(found)


def test_a_selection_is_by_id_or_by_category() -> None:
    assert list(discovery.select(["egress.direct-ip"])) == ["egress.direct-ip"]
    assert list(discovery.select(["egress"])) == ["egress.direct-ip", "egress.unexplained-host"]
    assert list(discovery.select(["network.blocked", "egress"])) == [
        "egress.direct-ip",
        "egress.unexplained-host",
        "network.blocked",
    ]
    assert discovery.select(None) == discovery.detectors()


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("egress.direct-pi", "did you mean egress.direct-ip"),
        ("egres", "did you mean egress"),
        ("zzzzzz", "list them with: mcpdetect detectors"),
        ("", "list them with: mcpdetect detectors"),
        ("direct-ip", "did you mean egress.direct-ip"),
    ],
)
def test_an_unknown_check_is_an_error_that_offers_the_nearest(wanted: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        discovery.select([wanted])
    assert caught.value.problem == f"there is no check {wanted!r}"
    assert (caught.value.hint or "").startswith(hint)


def made(ident: str = "plug.in", module: str = "plugged") -> type[Detector]:
    spec = Spec(
        id=ident,
        version=1,
        claim="c",
        kinds=("file.open",),
        needs=(AnyOf("o", Need("syscalls", ("file.open",))),),
        blind_to=("b",),
    )
    return type("PlugIn", (Detector,), {"spec": spec, "__module__": module})


def offer(monkeypatch: pytest.MonkeyPatch, **things: object) -> None:
    module = types.ModuleType("plugged")
    for name, thing in things.items():
        setattr(module, name, thing)
    monkeypatch.setitem(sys.modules, "plugged", module)
    points = [EntryPoint(name, f"plugged:{name}", discovery.ENTRY_POINT_GROUP) for name in things]
    monkeypatch.setattr(discovery, "entry_points", lambda group: points if group == discovery.ENTRY_POINT_GROUP else [])


def test_an_outside_plug_in_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    detector = made()
    offer(monkeypatch, Detecting=detector)
    assert discovery.detectors()["plug.in"] is detector


@pytest.mark.parametrize(
    ("thing", "problem"),
    [
        (object(), "the entry point names no Detector class"),
        (int, "the entry point names no Detector class"),
        (made("egress.direct-ip"), "two detectors share the id 'egress.direct-ip'"),
        (type("Bare", (Detector,), {}), "the detector has no spec"),
    ],
)
def test_a_broken_or_clashing_plug_in_stops_everything(
    monkeypatch: pytest.MonkeyPatch, thing: object, problem: str
) -> None:
    offer(monkeypatch, Thing=thing)
    with pytest.raises(SpecError) as caught:
        discovery.detectors()
    assert caught.value.problem == problem
    assert "plugged:Thing" in (caught.value.file or "")


@pytest.mark.parametrize("value", ["no_such_module_anywhere:X", "plugged:Missing"])
def test_a_plug_in_that_cannot_be_loaded_stops_everything(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setitem(sys.modules, "plugged", types.ModuleType("plugged"))
    point = EntryPoint("broken", value, discovery.ENTRY_POINT_GROUP)
    monkeypatch.setattr(discovery, "entry_points", lambda group: [point])
    with pytest.raises(SpecError) as caught:
        discovery.detectors()
    assert caught.value.problem.startswith("the plug-in cannot be loaded: ")


@pytest.mark.parametrize("number", [0, 2])
def test_a_detector_module_with_none_or_several_stops_everything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    body = "from mcpdetect.contract import Detector\n" + "".join(f"class D{n}(Detector): pass\n" for n in range(number))
    (tmp_path / "odd_module.py").write_text(body)
    monkeypatch.setattr(mcpdetect.detectors, "__path__", [*mcpdetect.detectors.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "mcpdetect.detectors.odd_module", raising=False)
    with pytest.raises(SpecError) as caught:
        discovery.detectors()
    monkeypatch.delitem(sys.modules, "mcpdetect.detectors.odd_module", raising=False)
    assert caught.value.problem == f"a detector module holds exactly one detector, this one {number}"
    assert caught.value.file == "mcpdetect.detectors.odd_module"
