"""The catalogue of planted controls: ``controls/planted/<category>/<slug>/control.yaml`` as typed values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from controls.matrix import Wrong, expanded, matrix_shape
from controls.recorder.internet.answers import TableError
from controls.recorder.internet.names import load_names
from controls.recorder.options import CLOCK, SHELLS
from controls.speeches import Speech, speeches
from mcpdetect.data.loader import Shape, line_of, load_yaml
from mcpdetect.errors import ConfigError
from mcpdetect.labels.model import TRUTHS, Truth

__all__ = ["PLANTED", "Control", "Variant", "controls", "load_control"]

PLANTED = Path(__file__).resolve().parent / "planted"

_CELL = ("ipv6", "dns", "capture", "counters", "hosts", "folder", "resolver", "names", "keylog", "log")
_VARIANT_SHAPE: Final[dict[str, Shape]] = {
    "truth": None,
    "why": None,
    "run": [None],
    "axes": {"*": None},
    "expect": {"*": None},
    "build?": [None],
    "link?": None,
    "denial?": None,
    "cell?": {f"{name}?": None for name in _CELL},
    "environment?": {"*": None},
    "options?": {f"{name}?": None for name in ("clock", "ci", "locale", "timezone")},
    "mcp?": None,
    "url?": None,
    "calls?": [{"tool": None, "arguments?": {"*": None}, "pause?": None, "repeat?": None}],
    "binaries?": None,
    "seconds?": None,
    "shell?": None,
    "expectations?": None,
    "approved?": None,
    "strace?": [None],
}
_SHAPE: Final[Shape] = {
    "plants": None,
    "variants?": {"*": _VARIANT_SHAPE},
    "matrices?": {"*": matrix_shape(_VARIANT_SHAPE)},
    "speaks?": None,
}
_LINKS = ("static", "dynamic")
_MOST_CALLS = 100
# http://127.0.0.1:8000/mcp
_URL = re.compile(r"http://(?:127\.0\.0\.1|\[::1\]):[0-9]{1,5}/[!-~]*+")
_LONGEST_PAUSE = 60
# python-udp4   c-after-2030
_NAME = re.compile(r"[a-z0-9]++(?:-[a-z0-9]++)*+")
# {control}   but not {{control}}
_PLACE = re.compile(r"(?<!\{)\{([^{}]*+)\}(?!\})")
_PLACES = ("control", "home", "project")
_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of running a control.

    Attributes:
        name: the last part of the case's path.
        truth: ``fires``, ``silent`` or ``blind``: what it is by construction.
        why: one sentence on why.
        run: the target's argv; ``{control}`` is the folder of its programs, ``{home}`` the planted home,
            ``{project}`` the working folder in it.
        axes: runtime, api, family, denial, ...: what coverage counts by.
        expect: check id to verdict word, by construction.
        build: sources compiled before the run, by file name: ``.c``, ``.go`` or ``.java``.
        link: ``static`` or ``dynamic``: a dynamic C program uses the resolver of the C library as most do.
        denial: name of the denial, None for an open network.
        ipv6, dns, capture, counters, hosts, folder, resolver: the cell, and what is kept of it.
        names: what some names of the fake internet answer otherwise.
        keylog: the target is asked to keep the keys of its TLS connections, as evidence.
        log: a denying firewall logs the packets that it denies, as evidence beside its counters.
        mcp: the recorder speaks MCP with it, over stdio.
        url: where it listens for MCP over HTTP instead, on a loopback address of the cell.
        seconds: how long it may take.
        shell: where it is recorded unless somebody says otherwise: ``netns`` or ``microvm``.
        expectations: file beside the control that documents the server's behaviour.
        approved: file beside the control that holds an approved description.
        strace: strace's options, where they are not the usual ones.
        environment: variables besides the usual ones.
        clock: how far the target's clock is from the true one, such as ``+400d``; see ``recorder.options``.
        ci: the variables by which programs know that nobody watches them are set.
        locale, timezone: of the target.
        calls: calls of tools made instead of one of each: tool, arguments, pause in seconds before it.
        binaries: small programs of no distribution package that ran are kept.
        thorough: of real servers and of speeches, see ``Job``; other planted controls are never called so.
        speech: what the server of ``controls/speaker`` says, None for a control with programs of its own.
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
    names: dict[str, Any] = field(default_factory=dict)
    keylog: bool = False
    log: bool = False
    mcp: bool = False
    url: str | None = None
    seconds: float = 20.0
    shell: str = "netns"
    expectations: str | None = None
    approved: str | None = None
    strace: tuple[str, ...] = ()
    thorough: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    clock: str | None = None
    ci: bool = False
    locale: str = "C.UTF-8"
    timezone: str | None = None
    calls: tuple[dict[str, Any], ...] = ()
    binaries: bool = False
    speech: Speech | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """A planted control: its folder, what it plants, and its variants."""

    id: str
    folder: Path
    plants: str
    variants: dict[str, Variant] = field(default_factory=dict)


def load_control(folder: Path) -> Control:
    """Read one control: the variants it lists, then those its matrices expand into, in the order of the file.

    Raises:
        ConfigError: naming file, line and value.
    """
    path = folder / "control.yaml"
    data = load_yaml(path, _SHAPE)

    def wrong(problem: str, at: _Path, value: str | None) -> NoReturn:
        raise ConfigError(problem, file=str(path), place=f"line {line_of(path, at)}", value=value)

    variants: dict[str, Variant] = {}
    for name, entry, at, named in _entries(data, wrong):
        if _NAME.fullmatch(name) is None:
            wrong("a variant's name is of small letters, digits and single hyphens", named, name)
        if name in variants:
            wrong("two variants have the same name", named, name)
        variants[name] = _variant(name, entry, at, wrong)
    for name, entry, speech in speeches(folder / data["speaks"]) if data.get("speaks") else ():
        if _NAME.fullmatch(name) is None or name in variants:
            wrong("a text's name is new, of small letters, digits and single hyphens", ("speaks",), name)
        variants[name] = replace(_variant(name, entry, ("speaks",), wrong), thorough=True, speech=speech)
    if not variants:
        wrong("a control needs variants", (), None)
    identity = "/".join(folder.parts[-2:])
    return Control(id=identity, folder=folder, plants=" ".join(str(data["plants"]).split()), variants=variants)


def _entries(data: dict[str, Any], wrong: Wrong) -> Iterator[tuple[str, dict[str, Any], _Path, _Path]]:
    """Yield name and entry of every variant, with the way to the entry and to its name in the file."""
    for name, entry in (data.get("variants") or {}).items():
        yield name, entry, ("variants", name), ("variants", name)
    for matrix, block in (data.get("matrices") or {}).items():
        at = ("matrices", matrix)
        for name, entry in expanded(block, at, wrong):
            yield name, entry, at, (*at, "name")


def _variant(name: str, entry: dict[str, Any], at: _Path, wrong: Wrong) -> Variant:
    if entry["truth"] not in TRUTHS:
        wrong("truth is fires, silent or blind", (*at, "truth"), repr(entry["truth"]))
    link = str(entry.get("link", "static"))
    if link not in _LINKS:
        wrong("link is static or dynamic", (*at, "link"), link)
    run = tuple(str(word) for word in entry["run"])
    for word in run:
        for place in _PLACE.findall(word):
            if place not in _PLACES:
                wrong(f"only {', '.join(_PLACES)} are put in", (*at, "run"), word)
    cell = entry.get("cell") or {}
    names = cell.get("names") or {}
    try:
        load_names(names)
    except TableError as error:
        wrong(error.problem, (*at, "cell", *_way(error.place)), error.value or None)
    url = entry.get("url")
    if url is not None and (_URL.fullmatch(str(url)) is None or not entry.get("mcp")):
        wrong("url is http://127.0.0.1:PORT/PATH or http://[::1]:PORT/PATH, of a variant with mcp", (*at, "url"), url)
    options = entry.get("options") or {}
    clock = options.get("clock")
    if clock is not None and CLOCK.fullmatch(str(clock)) is None:
        wrong("clock is a shift such as +400d, -2h or +30m", (*at, "options", "clock"), str(clock))
    shell = str(entry.get("shell", SHELLS[0]))
    if shell not in SHELLS:
        wrong(f"shell is {' or '.join(SHELLS)}", (*at, "shell"), shell)
    return Variant(
        name=name,
        truth=entry["truth"],
        why=" ".join(str(entry["why"]).split()),
        run=run,
        axes={key: str(value) for key, value in entry["axes"].items()},
        expect={key: str(value) for key, value in entry["expect"].items()},
        build=tuple(str(word) for word in entry.get("build") or ()),
        link=link,
        denial=entry.get("denial"),
        ipv6=bool(cell.get("ipv6", True)),
        dns=str(cell.get("dns", "answer")),
        capture=bool(cell.get("capture", True)),
        counters=bool(cell.get("counters", True)),
        hosts=tuple(str(line) for line in cell.get("hosts") or ()),
        folder=cell.get("folder"),
        resolver=tuple(str(line) for line in cell.get("resolver") or ()),
        names=names,
        keylog=bool(cell.get("keylog", False)),
        log=bool(cell.get("log", False)),
        mcp=bool(entry.get("mcp", False)),
        url=entry.get("url"),
        seconds=float(entry.get("seconds", 20.0)),
        shell=shell,
        expectations=entry.get("expectations"),
        approved=entry.get("approved"),
        strace=tuple(str(word) for word in entry.get("strace") or ()),
        environment={key: str(value) for key, value in (entry.get("environment") or {}).items()},
        clock=str(clock) if clock is not None else None,
        ci=bool(options.get("ci", False)),
        locale=str(options.get("locale", "C.UTF-8")),
        timezone=options.get("timezone"),
        calls=tuple(_calls(entry.get("calls") or (), at, wrong)),
        binaries=bool(entry.get("binaries", False)),
    )


def _calls(entries: Sequence[dict[str, Any]], at: _Path, wrong: Wrong) -> Iterator[dict[str, Any]]:
    """Yield the calls that a variant makes, each as often as it is to be repeated."""
    for number, entry in enumerate(entries):
        repeat, pause = entry.get("repeat", 1), entry.get("pause", 0)
        if not isinstance(repeat, int) or not 1 <= repeat <= _MOST_CALLS:
            wrong(f"repeat is a number from 1 to {_MOST_CALLS}", (*at, "calls", number, "repeat"), repr(repeat))
        if not isinstance(pause, int | float) or not 0 <= pause <= _LONGEST_PAUSE:
            wrong(f"pause is 0 to {_LONGEST_PAUSE} seconds", (*at, "calls", number, "pause"), repr(pause))
        call = {"tool": str(entry["tool"]), "arguments": dict(entry.get("arguments") or {}), "pause": float(pause)}
        yield from (dict(call) for _ in range(repeat))


def _way(place: str) -> _Path:
    """Return the way to a place in the table of names: ``names/api.example.com/http/0`` as keys and indexes."""
    return tuple(int(part) if part.isdigit() else part for part in place.split("/"))


def controls(root: Path = PLANTED) -> list[Control]:
    """Return every control, sorted by id.

    Raises:
        ConfigError: a control file is wrong.
    """
    return [load_control(path.parent) for path in sorted(root.glob("*/*/control.yaml"))]
