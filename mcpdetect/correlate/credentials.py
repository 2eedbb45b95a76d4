"""Strings that have the shape of a credential, whoever's it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from mcpdetect.data.loader import Shape, load_yaml
from mcpdetect.data.overlay import cached

__all__ = ["SHAPE", "Credential", "credentials"]

SHAPE: Shape = {"shapes": [{"name": None, "pattern": None, "least": None, "source": None}]}
"""The shape of ``credentials.yaml``."""

_MOST = 64
# AKIAIOSFODNN7EXAMPLE, your-token-here, sk-xxxx: what documentation writes in place of a credential
_PLACEHOLDER = re.compile(
    r"(?i)example|sample|placeholder|your[_-]|xxxx|\.\.\.|<[a-z]|test[_-]?(?:key|token)|abcdef|123456|user:pass|:password@"
)


@dataclass(frozen=True, slots=True)
class Credential:
    """One such string: the name of its shape, its place, and its beginning."""

    name: str
    start: int
    end: int
    beginning: str


@cached
def _shapes() -> tuple[list[tuple[str, int]], re.Pattern[str]]:
    data = load_yaml("credentials.yaml", SHAPE)["shapes"]
    # A group a shape; none of the patterns has a group of its own.
    parts = "|".join(f"({item['pattern']})" for item in data)
    known = [(str(item["name"]), int(item["least"])) for item in data]
    return known, re.compile(rf"(?<![A-Za-z0-9_])(?:{parts})")


def credentials(text: str) -> Iterator[Credential]:
    """Yield the strings of ``text`` that have the shape of a credential and do not look like a placeholder.

    Args:
        text: any text; at most 64 finds are told.
    """
    known, pattern = _shapes()
    for match in islice(pattern.finditer(text), _MOST):
        name, least = known[(match.lastindex or 1) - 1]
        if len(set(match[0])) >= least and not _PLACEHOLDER.search(match[0]):
            yield Credential(name, match.start(), match.end(), match[0][:8])
