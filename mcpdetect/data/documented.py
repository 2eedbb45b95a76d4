"""Hosts that a server's own papers name: ``server.json``, package metadata, README."""

from __future__ import annotations

import ipaddress
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from mcpdetect.data.loader import read_text
from mcpdetect.errors import ConfigError
from mcpdetect.model.inputs import Expectations, ExpectedHost

__all__ = ["documented_text", "load_documented", "with_documented"]

# Keys whose addresses are for people who look for the project, and for installers; the server contacts none of them.
# server.json: modelcontextprotocol/registry, server.schema.json; package.json: docs.npmjs.com, package.json; core
# metadata: packaging.python.org, Core metadata specifications and pyproject.toml specification.
_FOR_PEOPLE = frozenset(
    {"$schema", "author", "authors", "badges", "bugs", "contributors", "funding", "homepage", "icons", "license"}
    | {"licenses", "maintainers", "repository", "resolved", "urls", "websiteurl", "registrybaseurl", "publishconfig"}
)
# https://api.example.org/v1   wss://stream.example.org:8443   http://[2001:db8::7]/
_URL = re.compile(r"\b(?:https?|wss?)://(?:\[[0-9a-f:.]++\])?+[^\s<>\"'`|\\^{}\[\]]*+", re.IGNORECASE)
# ![build](https://img.shields.io/x.svg)   <img src="https://...">: a reader's program loads it, not the server
_IMAGE = re.compile(r"!\[[^\]\n]{0,300}+\]\([^)\n]{0,2000}+\)|<img\b[^>\n]{0,2000}+>", re.IGNORECASE)
# Project-URL: Homepage, https://...
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*+:")
# Names that stand for whatever a reader puts there (RFC 2606 §2 and §3, RFC 6761).
_EXAMPLES = ("example", "invalid", "test", "localhost", "local", "example.com", "example.net", "example.org")
# api.example.org   xn--bcher-kva.example
_NAME = re.compile(r"[a-z0-9_-]{1,63}+(?:\.[a-z0-9_-]{1,63}+)++")
_CLOSING = ".,;:!?)*_"


def load_documented(paths: Sequence[Path]) -> Expectations:
    """Return the hosts of every address that a server's papers name, each with the place of its first mention.

    ``.json`` files are read as ``server.json`` or ``package.json`` and ``.toml`` as ``pyproject.toml``: every address
    in them but those for people (homepage, repository, licence, ...). ``METADATA`` and ``PKG-INFO`` are read from
    their description on; anything else is text: every address but those of images. Loopback, unspecified and example
    hosts name nobody. A link is no proof that the server needs its host: have a person read the list.

    Args:
        paths: the files.

    Raises:
        ConfigError: a file cannot be read or is broken, or none of them names a host.
    """
    found: dict[tuple[str, int | None], ExpectedHost] = {}
    for path in paths:
        for line, url in _urls(path, read_text(path, str(path))):
            host = _host(url)
            if host is not None:
                port = url.port if url.port not in (None, 80, 443) else None
                why = f"{path} line {line}: {url.scheme}://{url.netloc.rpartition('@')[2]}"
                found.setdefault((host, port), ExpectedHost(host, [port] if port else [], why))
    if not found:
        raise ConfigError(
            "names no host",
            file=", ".join(map(str, paths)),
            cause="there is no address in it but those of images, examples and the project's own pages",
            hint="name the README, the server.json or the metadata that documents what the server contacts",
        )
    return Expectations(", ".join(map(str, paths)), [found[key] for key in sorted(found, key=str)])


def with_documented(expectations: Expectations | None, documented: Expectations) -> Expectations:
    """Return expectations with the hosts of a server's papers added."""
    if expectations is None:
        return documented
    return replace(
        expectations,
        source=f"{expectations.source}, {documented.source}",
        hosts=[*expectations.hosts, *documented.hosts],
    )


def documented_text(documented: Expectations) -> bytes:
    """Return the hosts as an expectations file, for a person to read and ``--expect`` to take."""
    lines = [
        "# Hosts that the server's papers name. A link proves no need: take out what the server does not use.",
        "hosts:",
    ]
    for entry in documented.hosts:
        ports = f", ports: {json.dumps(entry.ports)}" if entry.ports else ""
        lines.append(f"  - {{host: {json.dumps(entry.host)}{ports}, why: {json.dumps(entry.why, ensure_ascii=False)}}}")
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _urls(path: Path, text: str) -> Iterator[tuple[int, SplitResult]]:
    """Yield the addresses of a file with the lines they stand on."""
    wanted: set[str] | None = None
    if path.suffix in (".json", ".toml"):
        wanted = set(_values(_parsed(path, text)))
    elif path.name in ("METADATA", "PKG-INFO"):
        head, _, body = text.partition("\n\n")
        text = "\n" * (head.count("\n") + 2) + body
    for number, line in enumerate(text.splitlines(), 1):
        plain = line if wanted is not None else _IMAGE.sub(" ", line)
        for match in _URL.finditer(plain):
            address = match[0].rstrip(_CLOSING)
            # JSON may write "/" as "\/"; the value itself tells what the file says.
            if wanted is None or any(address in value for value in wanted):
                yield from ((number, url) for url in _split(address))


def _split(address: str) -> Iterator[SplitResult]:
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError:  # https://host:port/ as a template
        return
    if url.hostname and port != 0:
        yield url


def _parsed(path: Path, text: str) -> object:
    try:
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"is no JSON: {error.msg}", file=str(path), place=f"line {error.lineno}", hint="check the file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot be parsed: {error}", file=str(path), hint="check the file") from error


def _values(document: object) -> Iterator[str]:
    """Yield every string of a document but those under keys for people."""
    stack = [document]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(value for key, value in item.items() if key.lower() not in _FOR_PEOPLE)


def _host(url: SplitResult) -> str | None:
    """Return the host that an address names, None where it names nobody in particular."""
    name = (url.hostname or "").rstrip(".").lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return _written(name) if not any(f".{name}".endswith(f".{one}") for one in _EXAMPLES) else None
    return None if address.is_loopback or address.is_unspecified else str(address)


def _written(name: str) -> str | None:
    """Return a name as DNS and TLS carry it (RFC 5890 §2.3.2.1), None for what is no host name."""
    try:
        plain = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return None
    return plain if _NAME.fullmatch(plain) else None
