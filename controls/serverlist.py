"""Known servers: what ``controls/servers.yaml`` says each needs to run, and which hosts its documentation names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controls.recorder.errors import RecorderError
from mcpdetect.data.loader import line_of, load_yaml
from mcpdetect.errors import ConfigError
from mcpdetect.model.inputs import ExpectedHost

__all__ = ["SERVERS", "Server", "chosen", "name_of", "named", "servers"]

SERVERS = Path(__file__).resolve().parent / "servers.yaml"
"""The list that is shipped."""

_HOST: Any = {"host": None, "source": None, "ports?": [None]}
_SERVER: Any = {
    "server": None,
    "arguments?": [None],
    "environment?": {"*": None},
    "pins?": [None],
    "seconds?": None,
    "notes?": None,
    "hosts?": [_HOST],
    "microvm?": None,
}
_SHAPE: Any = {"servers": [_SERVER]}

# npm:@scope/name@1.2.3   npm:name
_NPM = re.compile(r"npm:((?:@[a-z0-9~-][a-z0-9._~-]*+/)?[a-z0-9~-][a-z0-9._~-]*+)(?:@([0-9A-Za-z.+-]++))?", re.ASCII)
# pypi:name==1.2.3   pypi:name
_PYPI = re.compile(r"pypi:([A-Za-z0-9][A-Za-z0-9._-]*+)(?:==([0-9A-Za-z.!+]++))?", re.ASCII)
# zod@3.25.76   mcp<2   pydantic>=2,<2.12
_PIN = re.compile(
    r"(?:@[a-z0-9~-][a-z0-9._~-]*+/)?[A-Za-z0-9][A-Za-z0-9._-]*+(?:@[0-9A-Za-z.+-]++|[<>=!~][0-9A-Za-z.,<>=!~*+-]*+)"
)
# api.example.com   *.example.com
_NAME = re.compile(r"(?:\*?\.)?(?:[a-z0-9_](?:[a-z0-9_-]*+)\.)++[a-z0-9-]++", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")


@dataclass(frozen=True, slots=True)
class Server:
    """One server that can be audited.

    Attributes:
        target: ``npm:NAME[@VERSION]``, ``pypi:NAME[==VERSION]`` or ``command:ARGV``.
        arguments: its arguments; ``{home}`` and ``{project}`` are the planted home and the folder of the project.
        environment: its settings; ``{canary}`` is a value that is another one in every run.
        pins: requirements besides the server itself, without which its present dependencies break it.
        seconds: how long a session with it may take; None for the usual time.
        notes: what a reader should know, one sentence.
        hosts: the hosts that its own documentation names, None where nobody has looked.
        microvm: it is audited in a guest too.
    """

    target: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    seconds: float | None = None
    notes: str = ""
    hosts: tuple[ExpectedHost, ...] | None = None
    microvm: bool = False


def name_of(target: str) -> tuple[str, str, str]:
    """Return kind, name and version (``""`` for any) of an npm or PyPI target, ``("command", ARGV, "")`` of a command.

    Raises:
        RecorderError: it is of no known form.
    """
    if target.startswith("command:") and len(target) > len("command:"):
        return "command", target.removeprefix("command:"), ""
    for kind, pattern in (("npm", _NPM), ("pypi", _PYPI)):
        if (match := pattern.fullmatch(target)) is not None:
            return kind, match[1], match[2] or ""
    raise RecorderError(f"{target[:200]}: a server is npm:NAME[@VERSION], pypi:NAME[==VERSION] or command:ARGV")


def servers(path: Path = SERVERS) -> list[Server]:
    """Return the servers of a list, in its order.

    Raises:
        ConfigError: naming file, line and value of what is wrong.
    """
    data = load_yaml(path, _SHAPE)
    found: dict[tuple[str, str], Server] = {}
    for at, entry in enumerate(data["servers"]):
        server = _Entry(path, at, entry).server()
        kind, name, _ = name_of(server.target)
        if (kind, name) in found:
            raise _wrong(path, (at, "server"), "is listed twice", server.target)
        found[kind, name] = server
    return list(found.values())


def named(target: str, path: Path = SERVERS) -> Server:
    """Return the server a user names, with the settings the list has for it.

    A name without version stands for the listed version; another version gets the settings all the same.

    Args:
        target: as for ``Server.target``.
        path: the list.

    Raises:
        RecorderError: the target is of no known form.
        ConfigError: the list is wrong.
    """
    kind, name, version = name_of(target)
    for server in servers(path):
        if name_of(server.target)[:2] != (kind, name):
            continue
        if not version:
            return server
        return Server(
            target,
            server.arguments,
            server.environment,
            server.pins,
            server.seconds,
            server.notes,
            server.hosts,
            server.microvm,
        )
    return Server(target)


def chosen(target: str, path: Path = SERVERS) -> list[Server]:
    """Return the servers that a word of the command line stands for.

    Args:
        target: as for ``Server.target``, ``listed`` for the whole list, ``listed:microvm`` for those of it that are
            audited in a guest too.
        path: the list.

    Raises:
        RecorderError: the target is of no known form.
        ConfigError: the list is wrong.
    """
    if target == "listed":
        return servers(path)
    if target == "listed:microvm":
        return [server for server in servers(path) if server.microvm]
    return [named(target, path)]


class _Entry:
    """One entry of the list, checked value by value."""

    def __init__(self, path: Path, at: int, entry: dict[str, Any]) -> None:
        self._path, self._at, self._entry = path, at, entry

    def server(self) -> Server:
        target = self._text("server")
        try:
            kind, _, version = name_of(target)
        except RecorderError:
            kind = version = ""
        if kind not in ("npm", "pypi") or not version:
            raise self._wrong(("server",), "a listed server is npm:NAME@VERSION or pypi:NAME==VERSION", target)
        seconds = self._entry.get("seconds")
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0):
            raise self._wrong(("seconds",), "is no number of seconds", seconds)
        microvm = self._entry.get("microvm", False)
        if not isinstance(microvm, bool):
            raise self._wrong(("microvm",), "is true or false", microvm)
        environment = self._entry.get("environment") or {}
        for name, value in environment.items():
            if _VARIABLE.fullmatch(name) is None or not isinstance(value, str):
                raise self._wrong(("environment", name), "a variable has a name and a text (put it in quotes)", value)
        hosts = self._entry.get("hosts")
        return Server(
            target=target,
            arguments=tuple(self._texts("arguments")),
            environment=dict(environment),
            pins=tuple(self._texts("pins", _PIN)),
            seconds=None if seconds is None else float(seconds),
            notes=" ".join(str(self._entry.get("notes", "")).split()),
            hosts=None if hosts is None else tuple(self._host(number, one) for number, one in enumerate(hosts)),
            microvm=microvm,
        )

    def _host(self, number: int, one: dict[str, Any]) -> ExpectedHost:
        host, source, ports = one["host"], one["source"], one.get("ports") or []
        if not isinstance(host, str) or _NAME.fullmatch(host) is None:
            raise self._wrong(("hosts", number, "host"), "is no host name in lower case", host)
        if not isinstance(source, str) or not source.strip():
            raise self._wrong(("hosts", number, "source"), "says where the host is documented", source)
        for port in ports:
            if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
                raise self._wrong(("hosts", number, "ports"), "is no port", port)
        return ExpectedHost(host=host, ports=list(ports), why=" ".join(source.split()))

    def _text(self, key: str) -> str:
        value = self._entry[key]
        if not isinstance(value, str):
            raise self._wrong((key,), "is no text", value)
        return value

    def _texts(self, key: str, pattern: re.Pattern[str] | None = None) -> list[str]:
        values = self._entry.get(key) or []
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise self._wrong((key, number), "is no text (put it in quotes)", value)
            if pattern is not None and pattern.fullmatch(value) is None:
                raise self._wrong((key, number), "is no requirement such as mcp<2 or zod@3.25.76", value)
        return values

    def _wrong(self, where: tuple[str | int, ...], problem: str, value: object) -> ConfigError:
        return _wrong(self._path, (self._at, *where), problem, value)


def _wrong(path: Path, where: tuple[str | int, ...], problem: str, value: object) -> ConfigError:
    line = line_of(path, ("servers", *where))
    return ConfigError(problem, file=str(path), place=f"line {line}", value=str(value)[:80])
