"""What a capture lost: losses merged by kind, each with its first place."""

from __future__ import annotations

from collections.abc import Iterable

from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

__all__ = ["ALL_KINDS", "NAMES", "Ledger"]

ALL_KINDS = (
    "net.flow",
    "net.packet",
    "dns.query",
    "dns.answer",
    "tls.client_hello",
    "quic.initial",
    "http.request",
)
"""The event kinds a packet capture can show."""

NAMES = ("dns.answer", "dns.query", "http.request", "quic.initial", "tls.client_hello")
"""The kinds that need the bytes above TCP and UDP."""


class Ledger:
    """Collects losses; two with the same word and sentence are one with a higher count."""

    def __init__(self) -> None:
        self._losses: dict[tuple[str, str], Loss] = {}

    def add(
        self,
        what: str,
        detail: str,
        where: Where | None = None,
        touches: Iterable[str] = (),
        *,
        count: int = 1,
        note: bool = False,
    ) -> None:
        """Count a loss.

        Args:
            what: the stable word of ``Loss.what``.
            detail: a fixed sentence: evidence must not choose it, or the number of losses would have no bound.
            where: its place; the first one is kept.
            touches: event kinds it may have hidden; none means every kind, unless ``note``.
            count: how often.
            note: it hides no event.
        """
        loss = self._losses.get((what, detail))
        if loss is None:
            self._losses[what, detail] = Loss(what, detail, count, where, sorted(touches), note)
            return
        loss.count += count
        if loss.note and not note:
            loss.note = False
            loss.touches = sorted(touches)
        elif not note and loss.touches:
            loss.touches = sorted({*loss.touches, *touches}) if touches else []

    def losses(self) -> list[Loss]:
        """Return the losses in the order of their first occurrence."""
        return list(self._losses.values())
