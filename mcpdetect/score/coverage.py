"""What the labelled corpus proves about each check, as numbers that anybody can recompute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mcpdetect.model.place import STRICT
from mcpdetect.score.bounds import upper_bound

__all__ = [
    "COVERAGE_SCHEMA",
    "ENOUGH",
    "CategoryCoverage",
    "Channels",
    "CheckCoverage",
    "Counts",
    "Coverage",
    "Mutants",
    "Rate",
    "ReadingMutants",
    "Status",
    "rate",
    "status_of",
]

COVERAGE_SCHEMA = "mcpdetect.coverage/0"
"""Name and version of the coverage document."""

ENOUGH = 3
"""Fewer labels than this make a category ``thin``."""

Status = Literal["proved", "thin", "unproved"]
"""How far labels carry a claim: enough of them; fewer than ``ENOUGH``; none."""


@dataclass(slots=True)
class Counts:
    """How many of each truth: the behaviour happened and shows, did not happen, happened out of sight."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    fires: int = 0
    silent: int = 0
    blind: int = 0

    @property
    def total(self) -> int:
        """Return the sum."""
        return self.fires + self.silent + self.blind


@dataclass(slots=True)
class Rate:
    """How often a check was wrong, and how often it may still be.

    Attributes:
        trials: distinct variants that were tried; near-duplicates count once.
        wrong: how many of them came out wrong.
        upper_percent: the one-sided 95% bound of Clopper and Pearson on the true rate, in percent.
        sentence: the same in plain words.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    trials: int
    wrong: int
    upper_percent: float
    sentence: str


@dataclass(slots=True)
class Channels:
    """Which channels prove a check by themselves, from ablation.

    Attributes:
        cases: verdict to the number of cases in which all the evidence together comes to it.
        alone: channel to verdict to the number of those in which this channel alone comes to it.
        least: the smallest sets of channels that come to it (joined by ``+``) to verdict to number.
        ablations: how often a verdict was asked for again with something taken away.
        turned: how many of them turned a verdict into its opposite; anything but 0 is a fault.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cases: dict[str, int] = field(default_factory=dict)
    alone: dict[str, dict[str, int]] = field(default_factory=dict)
    least: dict[str, dict[str, int]] = field(default_factory=dict)
    ablations: int = 0
    turned: int = 0


@dataclass(slots=True)
class Mutants:
    """How many faults planted in the check's code, and in what it rests on, the labels catch.

    Attributes:
        mutants, killed: in the check's own module and in the correlation code it rests on; a sample of each module's
            faults, drawn by a hash, about each of which a bounded number of labels was asked.
        own_mutants, own_killed: in its own module alone.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    mutants: int
    killed: int
    own_mutants: int = 0
    own_killed: int = 0


@dataclass(slots=True)
class ReadingMutants:
    """How many faults planted in the code that reads one format the labels catch.

    Attributes:
        mutants: possible faults.
        unreached: those in code that no label executes.
        planted: how many of the others were planted, drawn by a hash.
        killed: how many of those a label told; only some labels were asked, so it is the least.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    mutants: int
    unreached: int
    planted: int
    killed: int


@dataclass(slots=True)
class CheckCoverage:
    """One check.

    Attributes:
        category, version: the check's.
        status: ``unproved`` where no case of its own control shows it fire or none shows it silent, ``thin`` where
            fewer than three do, else ``proved``.
        labels: cases of its own control.
        elsewhere: cases of other controls, by what their labels say of this check.
        variants: the same as ``labels``, near-duplicates counted once: cases with one truth and the same value on
            every axis.
        axes: axis to value to how many labels of its own control have it.
        weak: its own cases that come out wrong and say so in a ``todo``.
        detection: misses among the variants that fire.
        false_alarms: alarms among the variants that must stay silent.
        alarms_elsewhere: cases of other controls in which it must not fire, and does.
        channels: from ablation.
        shells: how its cases were recorded.
        changed: the newest review among its labels, ISO date.
        mutation: from the mutation run, where there is one.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    category: str
    version: int
    status: Status
    labels: Counts
    elsewhere: Counts
    variants: Counts
    axes: dict[str, dict[str, int]]
    weak: int
    detection: Rate
    false_alarms: Rate
    alarms_elsewhere: int
    channels: Channels
    shells: list[str]
    changed: str | None
    mutation: Mutants | None = None


@dataclass(slots=True)
class CategoryCoverage:
    """All checks of one category together.

    Attributes:
        status: ``unproved`` without a label, ``thin`` with fewer than three, else ``proved``.
        checks: their ids.
        labels, variants, detection, false_alarms: sums over its checks, as in ``CheckCoverage``.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    status: Status
    checks: list[str]
    labels: Counts
    variants: Counts
    detection: Rate
    false_alarms: Rate


@dataclass(slots=True)
class Coverage:
    """The published numbers of a corpus.

    Attributes:
        cases: how many cases it has.
        categories, checks: by name, sorted.
        reading: format to what faults in the code that reads it come to, from the mutation run.
        schema: ``COVERAGE_SCHEMA``.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    cases: int
    categories: dict[str, CategoryCoverage]
    checks: dict[str, CheckCoverage]
    reading: dict[str, ReadingMutants] = field(default_factory=dict)
    schema: str = COVERAGE_SCHEMA


def rate(wrong: int, trials: int, words: tuple[str, str, str]) -> Rate:
    """Return a rate with its bound and its sentence.

    Args:
        wrong: how often it went wrong.
        trials: how often it was tried.
        words: one error, several errors, and the name of the rate: ``("miss", "misses", "miss rate")``.
    """
    one, many, name = words
    upper = round(100 * upper_bound(wrong, trials), 1)
    if not trials:
        return Rate(0, 0, 100.0, f"never tried: nothing is known of the {name}")
    told = f"{wrong} {one if wrong == 1 else many} in {trials}: the {name} may still be {_percent(upper)}"
    return Rate(trials, wrong, upper, told)


def _percent(value: float) -> str:
    """Return ``35%``, or ``4.9%`` where a whole number would say too little."""
    return f"{value:.0f}%" if value >= 10 else f"{value:.1f}%"


def status_of(*numbers: int) -> Status:
    """Return how far labels carry a claim, by the fewest of several numbers of them."""
    least = min(numbers)
    return "unproved" if least == 0 else "thin" if least < ENOUGH else "proved"
