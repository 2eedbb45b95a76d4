"""Reading what users state beside the evidence: planted secrets and expectations."""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcpdetect.data.loader import line_of, load_yaml
from mcpdetect.errors import ConfigError
from mcpdetect.model.inputs import Canary, Expectations, ExpectedHost, Secrets
from mcpdetect.model.text import text_of

__all__ = ["DEFAULT_PATTERN", "load_expectations", "load_secrets"]

DEFAULT_PATTERN = "CANARY-{kind}-{tag}"
"""How a canary's value is made from its kind and the run's tag, where a file gives kinds only."""

# CANARY-{kind}-{tag}
_FIELD = re.compile(r"\{([^{}]*)\}")
_SHORTEST = 6
"""Least length of a value to look for: a shorter one would be met by chance."""


def load_secrets(path: Path, *, tag: str | None = None) -> Secrets:
    """Read a secrets file.

    Its keys: ``home`` (the planted HOME), ``files`` (path, relative to home or absolute, to a kind, or to
    ``{kind, value}``), ``environment`` (variable to the same), optional ``pattern`` (default
    ``CANARY-{kind}-{tag}``), ``tag``, and ``not_secret`` (paths that lie in the same places and are no secret; they
    only document).

    Args:
        path: the file.
        tag: the run's canary tag, where the evidence knows it; the file's own ``tag`` wins.

    Raises:
        ConfigError: naming file, line, value and what to try. A file that plants nothing is an error, never an
            empty list: a check without tokens would find nothing and look well.
    """
    shape: Any = {
        "home?": None,
        "files?": {"*": None},
        "environment?": {"*": None},
        "pattern?": None,
        "tag?": None,
        "not_secret?": [None],
    }
    data = load_yaml(path, shape)
    tag = str(data["tag"]) if data.get("tag") is not None else tag
    pattern = str(data.get("pattern") or DEFAULT_PATTERN)
    _check_pattern(path, pattern)
    home = _home(path, data.get("home"))
    canaries: list[Canary] = []
    for section, is_file in (("files", True), ("environment", False)):
        for name, entry in (data.get(section) or {}).items():
            kind, value = _entry(path, section, name, entry, pattern, tag)
            if is_file:
                canaries.append(Canary(kind, value, _planted_path(path, home, name)))
            else:
                canaries.append(Canary(kind, value, variable=name))
    if not canaries:
        raise ConfigError(
            "plants nothing",
            file=str(path),
            cause="both files and environment are empty",
            hint="list at least one planted file or variable, or leave --secrets out",
        )
    return Secrets(source=str(path), canaries=canaries)


def _home(path: Path, given: object) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or not given.startswith("/"):
        raise ConfigError(
            "home must be an absolute path",
            file=str(path),
            place=f"line {line_of(path, ('home',))}",
            value=repr(given)[:80],
            hint="write for example  home: /home/dev",
        )
    return given


def _planted_path(path: Path, home: str | None, name: str) -> str:
    """Return the absolute path of a planted file in ``text_of`` form."""
    relative = name.removeprefix("~/")
    if home is None and not relative.startswith("/"):
        raise ConfigError(
            "a relative path needs home",
            file=str(path),
            place=f"line {line_of(path, ('files', name))}",
            value=name,
            cause="without home nobody knows where the file lies, and it would never be seen read",
            hint="add  home: /home/dev  or give the absolute path",
        )
    joined = posixpath.normpath(posixpath.join(home or "/", relative))
    return text_of(joined.encode("utf-8", "surrogatepass")).replace("//", "/")


def _check_pattern(path: Path, pattern: str) -> None:
    unknown = sorted({match[1] for match in _FIELD.finditer(pattern)} - {"kind", "tag"})
    if unknown:
        raise ConfigError(
            f"the pattern has an unknown field {unknown[0]!r}",
            file=str(path),
            place=f"line {line_of(path, ('pattern',))}",
            value=pattern[:80],
            hint="use only {kind} and {tag}",
        )


def _entry(path: Path, section: str, name: str, entry: object, pattern: str, tag: str | None) -> tuple[str, str | None]:
    if not name:
        raise ConfigError(
            f"a key of {section} must not be empty",
            file=str(path),
            place=f"line {line_of(path, (section, name))}",
            hint="write for example  .netrc: NETRC",
        )
    place = f"line {line_of(path, (section, name))}"
    if isinstance(entry, str):
        kind, value = entry, None
    elif isinstance(entry, dict) and set(entry) <= {"kind", "value"} and isinstance(entry.get("kind"), str):
        kind, value = entry["kind"], entry.get("value")
    else:
        raise ConfigError(
            "must be a kind, or a mapping with kind and value",
            file=str(path),
            place=place,
            value=repr(entry)[:80],
            hint="write for example  .netrc: NETRC",
        )
    if value is None and tag is not None:
        value = pattern.replace("{kind}", kind).replace("{tag}", tag)
    if value is not None and len(str(value)) < _SHORTEST:
        raise ConfigError(
            f"a canary value needs at least {_SHORTEST} characters",
            file=str(path),
            place=place,
            value=str(value),
            cause="a short value occurs by chance and would accuse the innocent",
        )
    return kind, None if value is None else str(value)


def load_expectations(path: Path) -> Expectations:
    """Read an expectations file: what a server documents.

    Its keys: ``hosts`` (a list of names, or of ``{host, ports, why, publisher}``; ``*.example.com`` is any name below,
    ``.example.com`` that and the name itself; addresses and CIDR networks too), ``paths`` and ``children`` (glob
    patterns).

    Raises:
        ConfigError: naming file, line, value and what to try.
    """
    host_shape: Any = None
    data = load_yaml(path, {"hosts?": [host_shape], "paths?": [None], "children?": [None]})
    if not any(key in data for key in ("hosts", "paths", "children")):
        raise ConfigError(
            "documents nothing",
            file=str(path),
            cause="hosts, paths and children are all missing",
            hint="write  hosts: []  to say that the server documents no host, or leave --expect out",
        )
    hosts = [_host(path, number, entry) for number, entry in enumerate(data.get("hosts") or [])]
    return Expectations(
        source=str(path),
        hosts=hosts,
        paths=_globs(path, "paths", data),
        children=_globs(path, "children", data),
    )


def _globs(path: Path, key: str, data: dict[str, Any]) -> list[str]:
    items = data.get(key) or []
    for number, item in enumerate(items):
        if not isinstance(item, str) or not item:
            raise ConfigError(
                f"{key} must be a list of glob patterns",
                file=str(path),
                place=f"line {line_of(path, (key, number))}",
                value=repr(item)[:80],
                hint="write for example  - /srv/app/**",
            )
    return list(items)


def _host(path: Path, number: int, entry: object) -> ExpectedHost:
    place = f"line {line_of(path, ('hosts', number))}"

    def wrong(problem: str, value: object, hint: str) -> ConfigError:
        return ConfigError(problem, file=str(path), place=place, value=repr(value)[:80], hint=hint)

    if isinstance(entry, str):
        entry = {"host": entry}
    if not isinstance(entry, dict) or not isinstance(entry.get("host"), str):
        raise wrong("a host is a name or a mapping with host", entry, "write for example  - api.example.com")
    unknown = sorted(set(entry) - {"host", "ports", "why", "publisher"})
    if unknown:
        raise wrong(f"unknown key {unknown[0]!r}", entry, "known keys: host, ports, publisher, why")
    ports = entry.get("ports") or []
    if not isinstance(ports, list) or not all(type(port) is int and 0 < port < 65536 for port in ports):
        raise wrong("ports must be a list of numbers from 1 to 65535", ports, "write for example  ports: [443]")
    return ExpectedHost(
        host=_host_pattern(entry["host"], wrong),
        ports=list(ports),
        why=str(entry.get("why") or ""),
        publisher=entry.get("publisher"),
    )


def _host_pattern(text: str, wrong: Callable[[str, object, str], ConfigError]) -> str:
    host = text.strip().rstrip(".").lower()
    try:
        network = ipaddress.ip_network(host, strict=False)
    except ValueError:
        pass
    else:
        return str(network) if "/" in host else str(network.network_address)
    bare = host.removeprefix("*.").removeprefix(".")
    if not bare or "*" in bare or any(not label or len(label) > 63 for label in bare.split(".")):
        raise wrong(
            "is no host name, address or network",
            text,
            "a wildcard stands for whole labels at the front: *.example.com; a URL is not a host",
        )
    if any(char in bare for char in "/:@ "):
        raise wrong("is no host name", text, "give the host alone, without scheme, port or path; ports go in ports")
    if not bare.isascii():
        # bücher.example: DNS and TLS carry xn--bcher-kva.example (RFC 5890 §2.3.2.1)
        try:
            return host.removesuffix(bare) + bare.encode("idna").decode("ascii")
        except UnicodeError as error:
            raise wrong("is no host name", text, "write an international name in its xn-- form") from error
    return host
