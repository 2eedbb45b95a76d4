"""What a trace file lost, and which observations that touches."""

from __future__ import annotations

from dataclasses import replace

from mcpdetect.ingest.tracefile.event import SPOKEN, BadEvent
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import CHANNELS, Channel

__all__ = ["Damage"]


# Events about the reading and the recorder, which no evidence file watches for.
_OF_READING = ("unparsed", "probe")


class Damage:
    """Faults met while a trace file was read.

    Attributes:
        seen: kinds of events read.
        spoken: the channels that events named themselves, with their kinds.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._losses: dict[tuple[str, str | None, Channel | None], Loss] = {}
        self._ended = False
        self.seen: set[str] = set()
        self.spoken: set[tuple[str, Channel]] = set()

    def bad(self, error: BadEvent, where: Where) -> None:
        """Count an event that could not be read: it touches its kind, or everything where that is not known."""
        key = error.what, error.kind, error.channel
        known = self._losses.get(key)
        if known is not None:
            known.count += 1
            return
        touches = [error.kind] if error.kind and error.channel else []
        self._losses[key] = Loss(error.what, f"events of the trace file cannot be read: {error.reason}", where=where)
        self._losses[key].touches = touches

    def ended(self, line: int, why: str) -> None:
        """Note that the file ends too early."""
        self._ended = True
        detail = f"the trace file ends too early{f': {why}' if why else ''}"
        place = Where(self._name, line)
        self._losses["file-truncated", None, None] = Loss("file-truncated", detail, where=place)

    def laid_on(self, observations: list[Observation]) -> list[Observation]:
        """Return the observations with the losses that touch them.

        A file that ends before its observations gets one for every channel of the events it showed: those were
        watched, and whatever else may have been is lost.
        """
        if self._ended:
            observations = observations or self._shown()
            for observation in observations:
                observation.complete = False
        for (_, _, channel), loss in self._losses.items():
            touched = [item for item in observations if channel in (None, item.channel)]
            if not touched:
                touched = [Observation(channel or "syscalls", self._name, "trace", proof="absent")]
                observations = observations + touched
            for item in touched:
                item.losses.append(replace(loss, touches=list(loss.touches)))
        return observations

    def _shown(self) -> list[Observation]:
        pairs = self.spoken | {(kind, EVENT_TYPES[kind].channel) for kind in self.seen - SPOKEN}
        return [
            Observation(channel, self._name, "trace", watches=dict.fromkeys(kinds, "inferred"))
            for channel in CHANNELS
            if (kinds := sorted(kind for kind, shown_by in pairs if shown_by == channel and kind not in _OF_READING))
        ]
