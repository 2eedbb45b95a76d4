"""What one fake internet is told before it starts: plain values that cross a pipe as one line of JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["DNS_MODES", "DNS_PORT", "SINK_PORT", "Settings"]

DNS_PORT = 5300
"""Where the upstream name server listens on loopback; dnsmasq asks it."""
SINK_PORT = 7007
"""Where TCP and UDP for every address arrive."""
DNS_MODES = ("answer", "ipv4", "nxdomain", "servfail", "refused", "silent")
"""How names are answered: with A and AAAA, with A alone, by an error, or not at all."""


@dataclass(slots=True)
class Settings:
    """One fake internet.

    Attributes:
        dns: how names are answered (``DNS_MODES``) that ``names`` says nothing else of.
        names: what names answer otherwise, as in ``names.load_names``.
        namespace: file of the network namespace to move to; ``""``: the process was started in it.
        journal: file that everything received is written to.
        authority: file with the certificate authority's key and certificate.
    """

    dns: str
    journal: str
    authority: str
    names: dict[str, Any] = field(default_factory=dict)
    namespace: str = ""

    def line(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(dataclasses.asdict(self)) + "\n"

    @classmethod
    def of(cls, line: str) -> Settings:
        """Return the settings that ``line`` made."""
        return cls(**json.loads(line))
