"""Which orders to the agent a text holds, of every kind that is known."""

from __future__ import annotations

from functools import lru_cache

from mcpdetect.correlate.text.exfil import exfil_orders
from mcpdetect.correlate.text.fold import fold
from mcpdetect.correlate.text.poisoning import orders
from mcpdetect.correlate.text.words import vocabulary

__all__ = ["says"]

_READ = 4000  # characters of what was hidden that are read for orders


@lru_cache(maxsize=256)
def says(text: str) -> tuple[str, ...]:
    """Return the rules that a text fulfils as an order to the agent, sorted; the first 4,000 characters are read."""
    text = text[:_READ]
    found = {order.rule for order in orders(fold(text))}
    found.update(hit.rule for hit, _, _ in exfil_orders(text, vocabulary()))
    return tuple(sorted(found))
