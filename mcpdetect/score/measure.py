"""Measuring a corpus: every case judged once whole and once without every set of channels and class of calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from mcpdetect.contract import Detector
from mcpdetect.errors import ConfigError
from mcpdetect.ingest.strictjson import load_json
from mcpdetect.labels.model import Truth
from mcpdetect.model.vocabulary import VerdictWord
from mcpdetect.score.ablation import Ablated, Alone, Violation, alone, channel_ablations, class_ablations, violations
from mcpdetect.score.corpus import Case
from mcpdetect.score.coverage import (
    CategoryCoverage,
    Channels,
    CheckCoverage,
    Counts,
    Coverage,
    Mutants,
    ReadingMutants,
    rate,
    status_of,
)
from mcpdetect.score.recording import Recording

__all__ = ["load_mutants", "measure"]

_MISSES = ("miss", "misses", "miss rate")
_ALARMS = ("false alarm", "false alarms", "false-alarm rate")
_TRUTH: dict[VerdictWord, Truth] = {"detected": "fires", "not_detected": "silent", "not_observable": "blind"}


@dataclass(slots=True)
class _Tally:
    """What was counted for one check.

    Attributes:
        variants: truth to variant (its values on every axis) to whether a case of it came out wrong.
    """

    labels: Counts = field(default_factory=Counts)
    elsewhere: Counts = field(default_factory=Counts)
    variants: dict[Truth, dict[tuple[tuple[str, str], ...], bool]] = field(default_factory=dict)
    axes: dict[str, dict[str, int]] = field(default_factory=dict)
    weak: int = 0
    alarms_elsewhere: int = 0
    ablations: int = 0
    turned: int = 0
    shells: set[str] = field(default_factory=set)
    changed: str | None = None

    def own(self, case: Case, said: VerdictWord) -> None:
        """Count a case of the check's own control."""
        label = case.label
        wanted = label.checks[label.subject].verdict
        setattr(self.labels, label.truth, getattr(self.labels, label.truth) + 1)
        variant = tuple(sorted(label.axes.items()))
        known = self.variants.setdefault(label.truth, {})
        known[variant] = known.get(variant, False) or said != wanted
        for axis, value in label.axes.items():
            values = self.axes.setdefault(axis, {})
            values[value] = values.get(value, 0) + 1
        self.weak += label.todo is not None and said != wanted
        self.shells.add(_shell(case.bundle))
        self.changed = max(self.changed or "", label.reviewed.date)

    def other(self, wanted: VerdictWord, said: VerdictWord) -> None:
        """Count a case of another control."""
        truth = _TRUTH.get(wanted)
        if truth is not None:
            setattr(self.elsewhere, truth, getattr(self.elsewhere, truth) + 1)
        self.alarms_elsewhere += wanted != "detected" and said == "detected"

    @property
    def distinct(self) -> Counts:
        """Return how many variants there are of each truth."""
        return Counts(**{truth: len(known) for truth, known in self.variants.items()})

    def wrong(self, truth: Truth) -> int:
        """Return how many variants of a truth came out wrong."""
        return sum(self.variants.get(truth, {}).values())


def measure(
    cases: Iterable[Case],
    detectors: Mapping[str, type[Detector]],
    *,
    mutants: Mapping[str, Mutants] | None = None,
    reading: Mapping[str, ReadingMutants] | None = None,
    each: Callable[[str], object] | None = None,
    turned: list[Violation] | None = None,
) -> Coverage:
    """Return what a corpus proves about the checks.

    Args:
        cases: the corpus.
        detectors: the checks, by id; one without a case is ``unproved``.
        mutants: results of a mutation run, by check.
        reading: the same of the code that reads evidence, by format.
        each: called with the name of each case when it was measured.
        turned: takes every verdict that turned over when evidence was taken away; they are counted in any case.

    Raises:
        InputError: the evidence of a case cannot be read.
    """
    tallies = {check: _Tally() for check in sorted(detectors)}
    counts: dict[str, Alone] = {}
    number = 0
    for case in cases:
        number += 1
        found = _case(case, detectors, tallies, counts)
        if turned is not None:
            turned += found
        if each is not None:
            each(case.label.case)
    checks = {
        check: _check(tally, detectors[check], counts.get(check, Alone()), (mutants or {}).get(check))
        for check, tally in tallies.items()
    }
    categories = sorted({one.category for one in checks.values()})
    categories_of = {name: _category(name, checks, tallies) for name in categories}
    return Coverage(number, categories_of, checks, dict(reading or {}))


def _case(
    case: Case, detectors: Mapping[str, type[Detector]], tallies: Mapping[str, _Tally], counts: dict[str, Alone]
) -> list[Violation]:
    label = case.label
    record = Recording(case.bundle, detectors)
    right = {check: one.verdict for check, one in label.checks.items()}
    channels = list(channel_ablations(record))
    ablated: list[Ablated] = [*channels, *class_ablations(record)]
    alone(counts, record.whole, channels)
    turned = violations(label.case, record.whole, ablated, right if label.todo is not None else None)
    for one in turned:
        tallies[one.check].turned += 1
    for check, tally in tallies.items():
        if check not in right:
            continue
        said = record.whole[check].verdict
        tally.ablations += len(ablated)
        if check == label.subject:
            tally.own(case, said)
        else:
            tally.other(right[check], said)
    return turned


def _shell(bundle: Path) -> str:
    data: Any = json.loads((bundle / "manifest.json").read_bytes())
    return str(data["host"]["shell"])


def _check(tally: _Tally, detector: type[Detector], channels: Alone, mutants: Mutants | None) -> CheckCoverage:
    distinct = tally.distinct
    return CheckCoverage(
        category=detector.spec.category,
        version=detector.spec.version,
        status=status_of(tally.labels.fires, tally.labels.silent),
        labels=tally.labels,
        elsewhere=tally.elsewhere,
        variants=distinct,
        axes={axis: dict(sorted(values.items())) for axis, values in sorted(tally.axes.items())},
        weak=tally.weak,
        detection=rate(tally.wrong("fires"), distinct.fires, _MISSES),
        false_alarms=rate(tally.wrong("silent"), distinct.silent, _ALARMS),
        alarms_elsewhere=tally.alarms_elsewhere,
        channels=Channels(
            _ordered(channels.cases),
            {name: _ordered(found) for name, found in sorted(channels.channels.items())},
            {name: _ordered(found) for name, found in sorted(channels.sets.items())},
            tally.ablations,
            tally.turned,
        ),
        shells=sorted(tally.shells),
        changed=tally.changed,
        mutation=mutants,
    )


def _ordered(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _category(name: str, checks: Mapping[str, CheckCoverage], tallies: Mapping[str, _Tally]) -> CategoryCoverage:
    own = [check for check, one in checks.items() if one.category == name]

    def summed(counts: Iterable[Counts]) -> Counts:
        found = list(counts)
        return Counts(*(sum(getattr(one, truth) for one in found) for truth in ("fires", "silent", "blind")))

    labels = summed(checks[check].labels for check in own)
    variants = summed(checks[check].variants for check in own)
    return CategoryCoverage(
        status=status_of(labels.total),
        checks=own,
        labels=labels,
        variants=variants,
        detection=rate(sum(tallies[check].wrong("fires") for check in own), variants.fires, _MISSES),
        false_alarms=rate(sum(tallies[check].wrong("silent") for check in own), variants.silent, _ALARMS),
    )


_Read = TypeVar("_Read", Mutants, ReadingMutants)


def load_mutants(path: Path) -> tuple[dict[str, Mutants], dict[str, ReadingMutants]]:
    """Return the results of a mutation run by check, and by format for what reads evidence; none without the file.

    Args:
        path: ``coverage/mutation.json``.

    Raises:
        ConfigError: it is not what a mutation run writes.
    """
    if not path.exists():
        return {}, {}
    data = load_json(path, str(path))
    summary = data.get("summary") if isinstance(data, dict) else None
    return _mutants(path, summary, "checks", Mutants), _mutants(path, summary, "reading", ReadingMutants)


def _mutants(path: Path, summary: object, key: str, kind: type[_Read]) -> dict[str, _Read]:
    found = summary.get(key) if isinstance(summary, dict) else None
    if not isinstance(found, dict):
        raise ConfigError(
            f"has no /summary/{key}", file=str(path), hint="make it again: tests/mutation/run_mutants.py --changed"
        )
    mutants = {}
    for name, one in found.items():
        numbers: dict[str, int] = {}
        for at in fields(kind):
            number = one.get(at.name) if isinstance(one, dict) else None
            if type(number) is not int or number < 0:
                raise ConfigError(
                    f"{at.name} must be a whole number",
                    file=str(path),
                    place=f"/summary/{key}/{name}",
                    value=str(number),
                )
            numbers[at.name] = number
        if numbers["killed"] > numbers.get("planted", numbers["mutants"]):
            raise ConfigError(
                "more faults are caught than were planted", file=str(path), place=f"/summary/{key}/{name}"
            )
        mutants[name] = kind(**numbers)
    return mutants
