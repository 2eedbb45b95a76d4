"""Losses of a log: grouped, counted, each with its first place."""

from __future__ import annotations

from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

__all__ = ["Account"]

_MOST = 1000


class Account:
    """Losses by what they are and what they touch."""

    def __init__(self) -> None:
        self._losses: dict[tuple[str, str, tuple[str, ...], str | None, bool], Loss] = {}

    def add(
        self,
        what: str,
        detail: str,
        where: Where | None = None,
        touches: tuple[str, ...] = (),
        *,
        note: bool = False,
        process: str | None = None,
        count: int = 1,
    ) -> None:
        """Count a loss; losses that differ only in place are one."""
        key = (what, detail, touches, process, note)
        known = self._losses.get(key)
        if known is not None:
            known.count += count
            return
        if len(self._losses) >= _MOST:
            # Too many kinds of loss to tell apart: one of each sort, nothing of it bound to a process.
            key = (what, "", touches, None, note)
            known = self._losses.get(key)
            if known is not None:
                known.count += count
                return
            process = None
        self._losses[key] = Loss(what, detail, count, where, list(touches), note, process)

    def cut(self, kind: str, where: Where) -> None:
        """Count a payload that is shorter in the log than it was."""
        key = ("string-cut", kind, (), None, False)
        known = self._losses.get(key)
        if known is not None:
            known.count += 1
            return
        self._losses[key] = Loss(
            "string-cut",
            f"strace cut the text of some {kind} events; what lies beyond the cut cannot be searched",
            1,
            where,
            [f"data:{kind}"],
        )

    def count(self, what: str) -> int:
        """Return how often a loss was met."""
        return sum(loss.count for loss in self._losses.values() if loss.what == what)

    def losses(self) -> list[Loss]:
        """Return the losses in the order in which they were first met."""
        return list(self._losses.values())
