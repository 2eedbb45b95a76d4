"""Words in a text by which money, mail or a click finds its way: payment addresses, accounts, mail addresses, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

__all__ = ["Valuable", "valuables"]

_MOST = 500
_KINDS = {
    # 0x52908400098527886E0F7030069857D2E4169EE7 (EIP-55)
    "payment address": (
        r"\b0x[0-9a-fA-F]{40}\b"
        # bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4 (BIP 173), 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2
        r"|\b(?:bc1|tb1)[02-9ac-hj-np-z]{11,71}\b|\b[13][1-9A-HJ-NP-Za-km-z]{25,34}\b"
    ),
    # DE89370400440532013000 (ISO 13616)
    "account": r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b",
    "mail address": r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b",
    "link": r"\bhttps?://[^\s<>\"'`)\]}]{4,2000}",
}
_PATTERN = re.compile("|".join(f"({pattern})" for pattern in _KINDS.values()))
_NAMES = tuple(_KINDS)


@dataclass(frozen=True, slots=True)
class Valuable:
    """One such word and its kind: ``payment address``, ``account``, ``mail address`` or ``link``."""

    kind: str
    text: str


def valuables(text: str) -> list[Valuable]:
    """Return the first 500 such words of ``text`` in order."""
    return [
        Valuable(_NAMES[(match.lastindex or 1) - 1], match[0].rstrip(".,;:"))
        for match in islice(_PATTERN.finditer(text), _MOST)
    ]
