"""The catalogue of planted controls: ``controls/planted/<category>/<slug>/control.yaml`` as typed values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpdetect.data.loader import load_yaml
from mcpdetect.errors import ConfigError
from mcpdetect.labels.model import TRUTHS, Truth

__all__ = ["PLANTED", "Control", "Variant", "controls", "load_control"]

PLANTED = Path(__file__).resolve().parent / "planted"

_CELL = ("ipv6", "dns", "capture", "counters", "hosts", "folder", "resolver")
_VARIANT_SHAPE: Any = {
    "truth": None,
    "why": None,
    "run": [None],
    "axes": {"*": None},
    "expect": {"*": None},
    "build?": [None],
    "link?": None,
    "denial?": None,
    "cell?": {f"{name}?": None for name in _CELL},
    "mcp?": None,
    "seconds?": None,
    "expectations?": None,
    "strace?": [None],
}
_SHAPE: Any = {"plants": None, "variants": {"*": _VARIANT_SHAPE}}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of running a control.

    Attributes:
        name: the last part of the case's path.
        truth: ``fires``, ``silent`` or ``blind``: what it is by construction.
        why: one sentence on why.
        run: the target's argv; ``{control}`` is the folder of its programs, ``{home}`` the planted home.
        axes: runtime, api, family, denial, ...: what coverage counts by.
        expect: check id to verdict word, by construction.
        build: C sources compiled before the run, by file name.
        link: ``static`` or ``dynamic``: a dynamic program uses the resolver of the C library as most do.
        denial: name of the denial, None for an open network.
        ipv6, dns, capture, counters, hosts, folder, resolver: the cell, and what is kept of it.
        mcp: the recorder speaks MCP with it over stdio.
        seconds: how long it may take.
        expectations: file beside the control that documents the server's behaviour.
        strace: strace's options, where they are not the usual ones.
        thorough, environment: of real servers, see ``Job``; planted controls have neither.
    """

    name: str
    truth: Truth
    why: str
    run: tuple[str, ...]
    axes: dict[str, str]
    expect: dict[str, str]
    build: tuple[str, ...] = ()
    link: str = "static"
    denial: str | None = None
    ipv6: bool = True
    dns: str = "answer"
    capture: bool = True
    counters: bool = True
    hosts: tuple[str, ...] = ()
    folder: str | None = None
    resolver: tuple[str, ...] = ()
    mcp: bool = False
    seconds: float = 20.0
    expectations: str | None = None
    strace: tuple[str, ...] = ()
    thorough: bool = False
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Control:
    """A planted control: its folder, what it plants, and its variants."""

    id: str
    folder: Path
    plants: str
    variants: dict[str, Variant] = field(default_factory=dict)


def load_control(folder: Path) -> Control:
    """Read one control.

    Raises:
        ConfigError: naming file, line and value.
    """
    path = folder / "control.yaml"
    data = load_yaml(path, _SHAPE)
    identity = "/".join(folder.parts[-2:])
    variants = {}
    for name, entry in data["variants"].items():
        if entry["truth"] not in TRUTHS:
            raise ConfigError("truth is fires, silent or blind", file=str(path), place=name, value=repr(entry["truth"]))
        cell = entry.get("cell") or {}
        variants[name] = Variant(
            name=name,
            truth=entry["truth"],
            why=" ".join(str(entry["why"]).split()),
            run=tuple(str(word) for word in entry["run"]),
            axes={key: str(value) for key, value in entry["axes"].items()},
            expect={key: str(value) for key, value in entry["expect"].items()},
            build=tuple(str(word) for word in entry.get("build") or ()),
            link=str(entry.get("link", "static")),
            denial=entry.get("denial"),
            ipv6=bool(cell.get("ipv6", True)),
            dns=str(cell.get("dns", "answer")),
            capture=bool(cell.get("capture", True)),
            counters=bool(cell.get("counters", True)),
            hosts=tuple(str(line) for line in cell.get("hosts") or ()),
            folder=cell.get("folder"),
            resolver=tuple(str(line) for line in cell.get("resolver") or ()),
            mcp=bool(entry.get("mcp", False)),
            seconds=float(entry.get("seconds", 20.0)),
            expectations=entry.get("expectations"),
            strace=tuple(str(word) for word in entry.get("strace") or ()),
        )
    return Control(id=identity, folder=folder, plants=" ".join(str(data["plants"]).split()), variants=variants)


def controls(root: Path = PLANTED) -> list[Control]:
    """Return every control, sorted by id.

    Raises:
        ConfigError: a control file is wrong.
    """
    return [load_control(path.parent) for path in sorted(root.glob("*/*/control.yaml"))]
