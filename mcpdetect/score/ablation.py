"""Ablation: evidence is taken away, and no verdict may turn into its opposite (monotone honesty, DESIGN §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from mcpdetect.ingest.strace.calls import DERIVED
from mcpdetect.model.kinds import CALLS
from mcpdetect.model.observation import Observation
from mcpdetect.model.result import CheckResult
from mcpdetect.model.vocabulary import VerdictWord
from mcpdetect.score.recording import Kept, Recording

__all__ = ["Ablated", "Alone", "Violation", "alone", "channel_ablations", "class_ablations", "violations"]


@dataclass(frozen=True, slots=True)
class Ablated:
    """What the checks said after something was taken away.

    Attributes:
        taken: what was taken away, in plain words.
        size: how much that was, to find the smallest of several.
        results: every check's result, by id.
        kept: the channels that were left.
    """

    taken: str
    size: int
    results: Mapping[str, CheckResult]
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """A verdict that turned over when evidence was taken away.

    Attributes:
        case: the case.
        check: the check.
        taken: what was taken away: the least that does it among all that was tried.
        before, after: the verdicts with and without it.
        reason: the check's reason for the second.
    """

    case: str
    check: str
    taken: str
    before: VerdictWord
    after: VerdictWord
    reason: str

    def __str__(self) -> str:
        """Return the violation as one line."""
        return f"{self.case}: {self.check}: {self.before}, without {self.taken}: {self.after} ({self.reason})"


def channel_ablations(recording: Recording) -> Iterator[Ablated]:
    """Yield what is said without every set of channels that leaves one, the smallest sets first.

    Args:
        recording: the case.
    """
    channels = recording.channels
    for size in range(1, len(channels)):
        for gone in combinations(channels, size):
            names = [item.name for item in recording.bundle.evidence if item.channel in gone]
            kept = tuple(channel for channel in channels if channel not in gone)
            yield Ablated(f"channel {' + '.join(gone)}", size, recording.judge(without=names), kept)


def class_ablations(recording: Recording) -> Iterator[Ablated]:
    """Yield what is said without the events of each syscall class: as if no call of it had been traced.

    Args:
        recording: the case; one without a syscall channel gives none.
    """
    for kind in CALLS:
        changed = {
            item.name: _without_kind(recording.kept[item.name], kind)
            for item in recording.bundle.evidence
            if item.channel == "syscalls" and kind in recording.kept[item.name].observation.watches
        }
        if changed:
            yield Ablated(f"syscall class {kind}", 1, recording.judge(changed=changed))


def _without_kind(kept: Kept, kind: str) -> Kept:
    """Return a file without the events of a kind, and of those that are read out of its buffers."""
    gone = {kind, *(derived for derived, carriers in DERIVED.items() if kind in carriers)}
    seen: Observation = kept.observation
    watches = {name: proof for name, proof in seen.watches.items() if name not in gone}
    return Kept(replace(seen, watches=watches), [event for event in kept.recorded if event.kind not in gone])


def violations(
    case: str,
    whole: Mapping[str, CheckResult],
    ablated: Iterable[Ablated],
    right: Mapping[str, VerdictWord] | None = None,
) -> list[Violation]:
    """Return every check whose verdict turned over, each with the smallest ablation that does it.

    A verdict may stay, or become ``not_observable``; nothing else.

    Args:
        case: the case's name.
        whole: what was said over all the evidence.
        ablated: what was said over less.
        right: verdicts that are right although the checks do not come to them yet (a case with a ``todo``): taking
            away what confuses a check may bring them out.
    """
    found: dict[str, tuple[int, Violation]] = {}
    for one in ablated:
        for check, said in one.results.items():
            before = whole[check].verdict
            allowed = {before, "not_observable", *([right[check]] if right and check in right else [])}
            if said.verdict in allowed or (check in found and found[check][0] <= one.size):
                continue
            found[check] = (one.size, Violation(case, check, one.taken, before, said.verdict, said.reason))
    return [violation for _, violation in found.values()]


@dataclass(slots=True)
class Alone:
    """Which channels are enough for one check.

    Attributes:
        cases: verdict to the number of cases in which the whole evidence comes to it.
        channels: channel to verdict to the number of those cases in which this channel alone comes to it too.
        sets: the smallest sets of channels, joined by ``+``, to verdict to the number of cases.
    """

    cases: dict[str, int] = field(default_factory=dict)
    channels: dict[str, dict[str, int]] = field(default_factory=dict)
    sets: dict[str, dict[str, int]] = field(default_factory=dict)


_CLAIMS: tuple[VerdictWord, ...] = ("detected", "not_detected")


def alone(into: dict[str, Alone], whole: Mapping[str, CheckResult], ablated: Sequence[Ablated]) -> None:
    """Count, for every check of a case, which channels come to its verdict by themselves.

    Args:
        into: the counts so far, by check.
        whole: what was said over all the evidence.
        ablated: all the channel ablations of the case.
    """
    every = tuple(sorted({channel for one in ablated for channel in one.kept}))
    for check, said in whole.items():
        if said.verdict not in _CLAIMS:
            continue
        counts = into.setdefault(check, Alone())
        _count(counts.cases, said.verdict)
        enough = [one.kept for one in ablated if one.results[check].verdict == said.verdict]
        for kept in enough:
            if len(kept) == 1:
                _count(counts.channels.setdefault(kept[0], {}), said.verdict)
        least = [kept for kept in enough if not any(set(other) < set(kept) for other in enough)] or [every]
        for kept in least:
            _count(counts.sets.setdefault("+".join(kept), {}), said.verdict)


def _count(into: dict[str, int], key: str) -> None:
    into[key] = into.get(key, 0) + 1
