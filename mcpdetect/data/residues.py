"""What is left in a trace when an act went out of its sight: ``residues.yaml``, checked and compiled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpdetect.data.globs import compile_globs
from mcpdetect.data.loader import load_yaml
from mcpdetect.data.overlay import cached
from mcpdetect.errors import ConfigError
from mcpdetect.model.vocabulary import CHANNELS, Channel

__all__ = ["KINDS", "Residue", "ResidueCall", "residues"]

_FILES = ("file.open", "file.read", "file.change", "file.probe")
_NAMES = ("dns.query", "dns.answer", "data:socket.send", "data:socket.receive")
_NETWORK = (
    "socket.open",
    "socket.connect",
    "socket.state",
    "socket.send",
    "socket.receive",
    "socket.listen",
    "net.flow",
    "net.packet",
    "tls.client_hello",
    "quic.initial",
    "http.request",
    "firewall.drop",
    *_NAMES,
)
KINDS: dict[str, tuple[str, ...]] = {
    "files": _FILES,
    "names": _NAMES,
    "network": _NETWORK,
    "acts": (*_FILES, *_NETWORK, "process.start", "process.exec_failed"),
}
"""The groups of ``lowers``: what can no longer be denied. ``data:`` stands for payloads, as in ``contract.Need``."""

# io_uring_setup, process_vm_readv
_CALL = re.compile(r"[a-z][a-z0-9_]*+")


@dataclass(frozen=True, slots=True)
class ResidueCall:
    """A system call that is a residue where it worked; ``words`` must all stand among its arguments."""

    name: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Residue:
    """One residue; see the comment in ``residues.yaml`` for its parts.

    Attributes:
        lowers: channel -> event kinds that it can no longer deny.
    """

    id: str
    what: str
    text: str
    lowers: dict[Channel, tuple[str, ...]]
    sockets: re.Pattern[str]
    services: re.Pattern[str]
    messages: tuple[bytes, ...]
    writes: re.Pattern[str]
    opens: re.Pattern[str]
    calls: tuple[ResidueCall, ...]
    families: frozenset[str]
    hosts: tuple[str, ...]
    ports: frozenset[int]
    helpers: bool
    helpers_loopback: bool


@cached
def residues(source: str | Path = "residues.yaml") -> tuple[Residue, ...]:
    """Return the residues of a data file, the shipped one by default.

    Raises:
        ConfigError: the file is wrong, an id is given twice, or a channel, group or call does not exist.
    """
    entry: Any = {
        "id": None,
        "what": None,
        "text": None,
        "lowers": {f"{channel}?": None for channel in CHANNELS},
        "source": None,
        "sockets?": [None],
        "services?": [None],
        "messages?": [None],
        "writes?": [None],
        "opens?": [None],
        "calls?": [{"name": None, "words?": [None]}],
        "families?": [None],
        "hosts?": [None],
        "ports?": [None],
        "helpers?": None,
        "helpers_loopback?": None,
    }
    found: dict[str, Residue] = {}
    for one in load_yaml(source, {"residues": [entry]})["residues"]:
        residue = _residue(one, str(source))
        if residue.id in found:
            raise ConfigError("a residue is given twice", file=str(source), value=residue.id)
        found[residue.id] = residue
    return tuple(found.values())


def _residue(entry: dict[str, Any], source: str) -> Residue:
    for channel, group in entry["lowers"].items():
        if group not in KINDS:
            raise ConfigError(
                f"is no group of event kinds; groups are {', '.join(KINDS)}",
                file=source,
                place=f"{entry['id']}, lowers, {channel}",
                value=str(group),
            )
    calls = tuple(ResidueCall(one["name"], tuple(one.get("words") or ())) for one in entry.get("calls") or ())
    for call in calls:
        if not _CALL.fullmatch(call.name):
            raise ConfigError("is no system call", file=source, place=f"{entry['id']}, calls", value=call.name)
    return Residue(
        id=entry["id"],
        what=entry["what"],
        text=entry["text"],
        lowers={channel: KINDS[group] for channel, group in entry["lowers"].items()},
        sockets=compile_globs(entry.get("sockets") or []),
        services=compile_globs(entry.get("services") or []),
        messages=tuple(word.encode() for word in entry.get("messages") or ()),
        writes=compile_globs(entry.get("writes") or []),
        opens=compile_globs(entry.get("opens") or []),
        calls=calls,
        families=frozenset(entry.get("families") or ()),
        hosts=tuple(entry.get("hosts") or ()),
        ports=frozenset(entry.get("ports") or ()),
        helpers=bool(entry.get("helpers")),
        helpers_loopback=bool(entry.get("helpers_loopback")),
    )
