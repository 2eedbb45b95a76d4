"""The closed vocabularies of the model, as ``Literal`` types and ordered tuples."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = [
    "CHANNELS",
    "LEVELS",
    "PROOFS",
    "Access",
    "Channel",
    "Clock",
    "DenialMode",
    "Level",
    "Outcome",
    "Proof",
    "RemoteSource",
    "Transport",
    "VerdictWord",
    "level_at_least",
    "proof_at_least",
]

Channel = Literal["syscalls", "packets", "dns", "firewall", "mcp", "files", "binaries"]
"""A kind of evidence."""
CHANNELS: tuple[Channel, ...] = get_args(Channel)

Proof = Literal["absent", "inferred", "declared", "proved"]
"""Why we believe a channel was watching, weakest first."""
PROOFS: tuple[Proof, ...] = get_args(Proof)

Level = Literal["info", "suspicious", "accusing"]
"""What a finding means for the server, mildest first."""
LEVELS: tuple[Level, ...] = get_args(Level)

VerdictWord = Literal["detected", "not_detected", "not_observable", "error"]
"""The only words a check may end in."""

Clock = Literal["epoch", "time-of-day", "relative", "none"]
"""What an evidence file's times count from: 1970, an unknown midnight, the previous line, nothing."""

Transport = Literal["tcp", "udp", "unix", "raw", "icmp", "netlink", "vsock", "packet", "other"]
"""How data on a socket travels; ``other`` for families and types without a name of their own here."""

Access = Literal["read", "write", "readwrite", "path", "unknown"]
"""What an open asked for; ``path`` is O_PATH, which gives no content."""

RemoteSource = Literal["argument", "connect", "accept", "decoration"]
"""How the remote end of a send or receive is known, best first (see DESIGN on stale ``-yy`` peers)."""

Outcome = Literal[
    "established",
    "in_progress",
    "refused",
    "unreachable",
    "denied",
    "timed_out",
    "unanswered",
    "failed",
    "unknown",
]
"""What became of a connect. A single event knows only what its own result says; ``correlate`` knows more."""

DenialMode = Literal[
    "no-route",
    "route-unreachable",
    "route-prohibit",
    "route-blackhole",
    "output-drop",
    "output-reject",
    "input-drop",
    "dropped-on-path",
    "rejected-on-path",
    "refused",
    "link-down",
    "policy",
    "name-service",
    "proxy",
    "unknown",
]
"""How the network was denied, as far as the evidence tells (see ``correlate.denial``)."""


def proof_at_least(have: Proof, least: Proof) -> bool:
    """Return whether ``have`` is as strong as ``least``."""
    return PROOFS.index(have) >= PROOFS.index(least)


def level_at_least(have: Level, least: Level) -> bool:
    """Return whether ``have`` is as grave as ``least``."""
    return LEVELS.index(have) >= LEVELS.index(least)
