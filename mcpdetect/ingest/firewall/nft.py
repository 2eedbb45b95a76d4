"""What an nftables listing says, whether it was text or JSON: rules as short statements, chains, named counters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from mcpdetect.model.place import Where

__all__ = ["Chain", "Listing", "Problem", "Rule", "Statement", "is_listing"]

# table inet mcpdetect {      # comments before it, such as iptables-nft's warning, do not matter
_TEXT = re.compile(rb"(?:\xef\xbb\xbf)?+(?:\s++|#[^\n]*+\n)*+table (?:(?:inet|ip6?|arp|bridge|netdev) )?+\S++ \{")
# {"nftables": [{"metainfo": ...
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?+\s*+\{\s*+"nftables"\s*+:')


@dataclass(slots=True)
class Statement:
    """One part of a rule.

    Attributes:
        sort: ``counter``, ``log``, ``verdict``, ``vmap`` (a map of verdicts, one of which drops), or ``other``: a
            match, a limit or anything else that may end the rule for a packet.
        packets: of a counter with numbers.
        name: of a named counter.
        word: the verdict (``drop``, ``reject``, ``accept``, ``jump``, ...), or the log prefix.
    """

    sort: Literal["counter", "log", "verdict", "vmap", "other"]
    packets: int | None = None
    name: str | None = None
    word: str = ""


@dataclass(slots=True)
class Rule:
    """One rule; ``text`` is what it says without its counters' numbers, the same in two listings of one rule."""

    where: Where
    chain: tuple[str, str, str]
    statements: list[Statement]
    text: str
    handle: int | None = None


@dataclass(slots=True)
class Chain:
    """A chain; ``hook`` and ``policy`` are empty for one that only others jump to."""

    where: Where
    hook: str = ""
    policy: str = ""


@dataclass(slots=True)
class Problem:
    """A part of a listing that was not understood."""

    where: Where
    raw: bytes
    reason: str


@dataclass(slots=True)
class Listing:
    """An nftables listing.

    Attributes:
        form: ``nft`` or ``nft-json``.
        rules: in order.
        chains: by family, table and name.
        counters: packets of the named counters, by family, table and name.
        dropping: named maps with a verdict that drops, as ``@name`` by family and table.
        problems: what was not understood.
        cut: the text ends before its tables do.
    """

    form: Literal["nft", "nft-json"]
    rules: list[Rule] = field(default_factory=list)
    chains: dict[tuple[str, str, str], Chain] = field(default_factory=dict)
    counters: dict[tuple[str, str, str], int] = field(default_factory=dict)
    dropping: set[tuple[str, str, str]] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    cut: bool = False


def is_listing(head: bytes) -> Literal["", "nft", "nft-json"]:
    """Return which form of listing a file that begins with ``head`` is, ``""`` for none."""
    if _TEXT.match(head):
        return "nft"
    return "nft-json" if _JSON.match(head) else ""
