"""Links that carry data: addresses in a text whose query or path waits for, or already holds, what somebody knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import parse_qsl, unquote, urlsplit

from mcpdetect.correlate.credentials import credentials
from mcpdetect.correlate.text.decoded import decoded, decodings
from mcpdetect.model.addresses import elsewhere

__all__ = ["Link", "carrying_links"]

_MOST = 256
# ![chart](https://c.example/p.png?d=...)    <img src="https://c.example/p.gif?d=...">    [more](https://c.example/?q=...)
_LINK = re.compile(
    r"(?P<image>!)?\[[^\]\n]{0,200}\]\(\s*<?(?P<markdown>https?://[^\s)>]{4,2000})|<img\b[^>]{0,200}?\bsrc\s*=\s*[\"']?(?P<html>https?://[^\s\"'>]{4,2000})",
    re.IGNORECASE,
)
# {conversation}  {{secrets}}  <api_key>  [USER_DATA]  $HISTORY  %s
_PLACE = re.compile(
    r"\{\{?[^{}]{1,60}\}?\}|<[a-z][\w -]{2,60}>|\[[A-Z][A-Z_ ]{3,60}\]|\$\{?[A-Z_]{4,60}\}?", re.IGNORECASE
)
_WANTED = re.compile(
    r"(?i)convers|history|chat|secret|password|token|key|credential|context|message|memory|user|prompt|data|content|env|cookie"
)
_SHORTEST = 16


@dataclass(frozen=True, slots=True)
class Link:
    """One such link: its address, its host, and why it is one.

    ``place``: it is to be filled in. ``words``: it holds words in an encoding, or
    a credential.
    """

    address: str
    host: str
    why: str


def carrying_links(text: str) -> Iterator[Link]:
    """Yield the links of ``text`` to other machines whose query or path carries data or has a place for it.

    A picture is fetched without a click, so what its address holds leaves when it is shown.
    """
    if "http" not in text.lower():
        return
    for match in islice(_LINK.finditer(text), _MOST):
        address = match["markdown"] or match["html"]
        try:
            parts = urlsplit(address)
            host = parts.hostname or ""
        except ValueError:
            continue
        if not host or not elsewhere(host):
            continue
        shown = match["image"] is not None or match["html"] is not None
        values = [unquote(value) for _, value in parse_qsl(parts.query, keep_blank_values=True, max_num_fields=200)]
        places = [place[0] for place in _PLACE.finditer(unquote(f"{parts.path}?{parts.query}#{parts.fragment}"))]
        if any(_WANTED.search(place) for place in places):
            yield Link(address, host, "place")
        elif shown and any(len(value) >= _SHORTEST and _words(value) for value in values):
            yield Link(address, host, "words")


def _words(value: str) -> bool:
    """Return whether a value is an encoded text of several words, or a credential as it is or encoded."""
    return any(True for _ in decoded(value)) or any(
        any(True for _ in credentials(plain)) for plain in (value, *decodings(value))
    )
