"""A matrix of a control: axes with their values, expanded into variants in the order of the file."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from mcpdetect.data.loader import Shape

__all__ = ["MAX_VARIANTS", "Wrong", "expanded", "matrix_shape"]

MAX_VARIANTS = 1_000
"""Most combinations of one matrix, exclusions aside."""

Wrong = Callable[[str, tuple[str | int, ...], str | None], NoReturn]
"""Raises the error of a problem: what is wrong, the path to it below the file's root, the value."""

# {runtime}   {runtime.program}   but not {{runtime}}
_PLACE = re.compile(r"(?<!\{)\{([a-z0-9_-]++)(?:\.([a-z0-9_-]++))?\}(?!\})")
_OTHERS: Final = frozenset({"control", "home", "project"})
_MERGED: Final = ("axes", "cell", "environment")
_OWN: Final = frozenset({"name", "over", "except"})


def matrix_shape(variant: dict[str, Shape]) -> Shape:
    """Return what a matrix may hold.

    Args:
        variant: what a variant may hold; a matrix holds the same, and its axes' values hold what a variant may lack.
    """
    settings: dict[str, Shape] = {name: shape for name, shape in variant.items() if name.endswith("?")}
    settings |= {"axes?": variant["axes"], "words?": {"*": None}}
    return {
        **{name: shape for name, shape in variant.items() if name != "axes"},
        "axes?": variant["axes"],
        "name": None,
        "over": {"*": {"*": settings}},
        "except?": [{"*": None}],
    }


def expanded(matrix: dict[str, Any], path: tuple[str | int, ...], wrong: Wrong) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and entry of every variant of a matrix: the last axis changes fastest, as the file orders them.

    Args:
        matrix: what ``matrix_shape`` allows.
        path: the way to it in its file.
        wrong: raises the error of a problem.
    """
    over: dict[str, dict[str, dict[str, Any]]] = matrix["over"]
    for axis, values in over.items():
        if axis in _OTHERS:
            wrong("the name is taken by what a recording puts in", (*path, "over", axis), axis)
        if not values:
            wrong("an axis needs values", (*path, "over", axis), axis)
    if not over:
        wrong("a matrix needs axes", (*path, "over"), None)
    size = math.prod(len(values) for values in over.values())
    if size > MAX_VARIANTS:
        wrong(f"more than {MAX_VARIANTS} combinations", (*path, "over"), str(size))
    rules = _rules(matrix.get("except") or [], over, path, wrong)
    left_out = [0] * len(rules)
    seen: set[str] = set()
    for combination in itertools.product(*over.values()):
        chosen = dict(zip(over, combination, strict=True))
        out = [at for at, rule in enumerate(rules) if all(chosen[axis] in some for axis, some in rule.items())]
        for at in out:
            left_out[at] += 1
        if out:
            continue
        name, entry = _variant(matrix, chosen, path, wrong)
        if name in seen:
            wrong("two combinations have the same name", (*path, "name"), name)
        seen.add(name)
        yield name, entry
    for at, count in enumerate(left_out):
        if not count:
            wrong("leaves nothing out", (*path, "except", at), None)
    if not seen:
        wrong("every combination is left out", (*path, "except"), None)


def _rules(
    given: list[dict[str, Any]],
    over: dict[str, dict[str, dict[str, Any]]],
    path: tuple[str | int, ...],
    wrong: Wrong,
) -> list[dict[str, list[str]]]:
    """Return the exclusions, each as axis to the values that it is about."""
    rules = []
    for at, one in enumerate(given):
        place = (*path, "except", at)
        if not one:
            wrong("an exclusion names at least one axis", place, None)
        rule = {}
        for axis, value in one.items():
            if axis not in over:
                wrong("no such axis", (*place, axis), axis)
            some = [str(item) for item in value] if isinstance(value, list) else [str(value)]
            for item in some:
                if item not in over[axis]:
                    wrong(f"no such value of the axis {axis!r}", (*place, axis), item)
            rule[axis] = some
        rules.append(rule)
    return rules


def _variant(
    matrix: dict[str, Any], chosen: dict[str, str], path: tuple[str | int, ...], wrong: Wrong
) -> tuple[str, dict[str, Any]]:
    """Return name and entry of one combination."""
    entry = {key: value for key, value in matrix.items() if key not in _OWN}
    axes: dict[str, Any] = {}
    words: dict[str, dict[str, Any]] = {}
    for axis, value in chosen.items():
        place = (*path, "over", axis, value)
        settings = dict(matrix["over"][axis][value])
        words[axis] = settings.pop("words", None) or {}
        own = settings.pop("axes", None)
        for key, item in ({axis: value} if own is None else own).items():
            if key in axes:
                wrong("another value gives this axis too", (*place, "axes", key), key)
            axes[key] = item
        for key, item in settings.items():
            entry[key] = _joined(entry.get(key), item, key, place, wrong)
    for key, item in (entry.get("axes") or {}).items():
        if key in axes:
            wrong("a value gives this axis too", (*path, "axes", key), key)
        axes[key] = item
    entry["axes"] = axes
    filled = {key: _filled(value, chosen, words, (*path, key), wrong) for key, value in entry.items()}
    return str(_filled(matrix["name"], chosen, words, (*path, "name"), wrong)), filled


def _joined(known: object, new: object, key: str, place: tuple[str | int, ...], wrong: Wrong) -> object:
    """Return a setting of a value beside what is there: mappings grow, anything else may be given once."""
    if known is None:
        return new
    if key not in _MERGED or not isinstance(known, dict) or not isinstance(new, dict):
        wrong("is given twice for one combination", (*place, key), key)
    for twice in sorted(known.keys() & new.keys()):
        wrong("is given twice for one combination", (*place, key, twice), twice)
    return {**known, **new}


def _filled(
    value: object,
    chosen: dict[str, str],
    words: dict[str, dict[str, Any]],
    path: tuple[str | int, ...],
    wrong: Wrong,
) -> object:
    """Return a value with the names of axes and words replaced by what they stand for in this combination."""
    if isinstance(value, dict):
        return {key: _filled(item, chosen, words, (*path, key), wrong) for key, item in value.items()}
    if isinstance(value, list):
        out: list[object] = []
        for at, item in enumerate(value):
            whole = _PLACE.fullmatch(item) if isinstance(item, str) else None
            meant = words.get(whole[1], {}).get(whole[2]) if whole is not None and whole[2] else None
            # "{runtime.program}" alone, and a list behind it: its items take the place
            out += meant if isinstance(meant, list) else [_filled(item, chosen, words, (*path, at), wrong)]
        return out
    if not isinstance(value, str):
        return value

    def meaning(found: re.Match[str]) -> str:
        axis, word = found[1], found[2]
        if axis in _OTHERS and word is None:
            return found[0]
        if axis not in chosen:
            wrong("no such axis", path, found[0])
        if word is None:
            return chosen[axis]
        if word not in words[axis]:
            wrong(f"the value {chosen[axis]!r} of the axis {axis!r} has no such word", path, found[0])
        meant = words[axis][word]
        if isinstance(meant, list | dict):
            wrong("a list of words stands alone in a list", path, found[0])
        return str(meant)

    return _PLACE.sub(meaning, value)
