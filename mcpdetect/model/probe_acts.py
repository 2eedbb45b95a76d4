"""What a probe does, derived from its nonce: one list for the probe program, its readers and the recorder."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from mcpdetect.model.place import STRICT
from mcpdetect.model.vocabulary import Channel

__all__ = ["NONCE", "PHASES", "PROBE_ZONE", "Phase", "ProbeActs", "ProbeRun", "named_probe"]

Phase = Literal["before", "after"]
"""When a probe ran: before the target began, or after it ended."""
PHASES: tuple[Phase, ...] = ("before", "after")

NONCE = re.compile(r"[0-9a-f]{16}", re.ASCII)
"""A nonce is 64 random bits: nobody meets one by chance, and no target can guess it."""

PROBE_ZONE = "mcpdetect-probe.test"
"""Names of probes end in it; ``.test`` is nobody's (RFC 6761 §6.2)."""

# 0123456789abcdef.before.mcpdetect-probe.test
_NAME = re.compile(r"([0-9a-f]{16})\.(before|after)\.mcpdetect-probe\.test", re.ASCII)


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """One probe that a recorder says it ran.

    Attributes:
        phase: when.
        nonce: 16 hexadecimal digits, used for this probe alone.
        channels: the channels that must show it if they were watching.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    phase: Phase
    nonce: str
    channels: tuple[Channel, ...]


@dataclass(frozen=True, slots=True)
class ProbeActs:
    """The acts of one probe, each with its nonce in it.

    Attributes:
        phase, nonce: which probe.
        name: the name it asks for.
        address4: where it connects and sends, in 198.18.0.0/15 (RFC 2544, never routed).
        address6: the same in 2001:db8::/32 (RFC 3849).
        port: the port of both.
        text: the payload it sends and the log prefix of firewall rules about it.
        mark: the empty file that a recorder makes for it between its looks at the files, and that differs by them.
        message_id: the id of the MCP ping that stands for it. Servers see it, so the nonce cannot be had from it.
    """

    phase: Phase
    nonce: str

    @property
    def name(self) -> str:
        """The name it asks for."""
        return f"{self.nonce}.{self.phase}.{PROBE_ZONE}"

    @property
    def address4(self) -> str:
        """Its IPv4 destination."""
        raw = bytes.fromhex(self.nonce)
        return f"198.{18 + raw[0] % 2}.{raw[1]}.{raw[2]}"

    @property
    def address6(self) -> str:
        """Its IPv6 destination."""
        return str(ipaddress.IPv6Address(b"\x20\x01\x0d\xb8" + bytes(4) + bytes.fromhex(self.nonce)))

    @property
    def port(self) -> int:
        """Its port, 20000 to 52767."""
        raw = bytes.fromhex(self.nonce)
        return 20000 + (int.from_bytes(raw[3:5], "big") & 0x7FFF)

    @property
    def text(self) -> str:
        """Its payload."""
        return f"mcpdetect-probe {self.phase} {self.nonce}"

    @property
    def mark(self) -> str:
        """Its mark for a recorder's looks at the files."""
        return f"/tmp/mcpdetect-probe-{self.nonce}"  # noqa: S108 (a name in evidence)

    @property
    def message_id(self) -> str:
        """The id of its MCP ping."""
        return f"mcpdetect-probe-{hashlib.sha256(self.text.encode()).hexdigest()[:16]}"


def named_probe(name: str) -> ProbeActs | None:
    """Return the probe that asked for a name, None for any other name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return ProbeActs("before" if match[2] == "before" else "after", match[1])
