"""Finding the detectors: the built-in package, then the entry points of outside plug-ins."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from importlib.metadata import EntryPoint, entry_points

import mcpdetect.detectors
from mcpdetect.contract import Detector
from mcpdetect.errors import SpecError

__all__ = ["ENTRY_POINT_GROUP", "detectors", "select"]

ENTRY_POINT_GROUP = "mcpdetect.detectors"
"""Entry-point group through which another package offers detectors; each entry names a Detector class."""


def detectors() -> dict[str, type[Detector]]:
    """Return every installed detector by id, sorted.

    Raises:
        SpecError: a module holds no detector or several, ids clash, or a plug-in cannot be loaded. Nothing is
            skipped: a check that is missing in silence would look like one that found nothing.
    """
    found: dict[str, type[Detector]] = {}
    for info in sorted(pkgutil.iter_modules(mcpdetect.detectors.__path__), key=lambda item: item.name):
        if not info.name.startswith("_"):
            detector = _only_detector(f"{mcpdetect.detectors.__name__}.{info.name}")
            _add(found, detector, f"{mcpdetect.detectors.__name__}.{info.name}")
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda item: (item.name, item.value)):
        _add(found, _load(point), f"entry point {point.name!r} ({point.value})")
    return dict(sorted(found.items()))


def select(ids: list[str] | None) -> dict[str, type[Detector]]:
    """Return the detectors with these ids (None: all); a category stands for all of its checks.

    Raises:
        SpecError: an id is unknown; the message offers the nearest ones.
    """
    every = detectors()
    if ids is None:
        return every
    chosen: dict[str, type[Detector]] = {}
    for wanted in ids:
        matching = {key: value for key, value in every.items() if key == wanted or value.spec.category == wanted}
        if not matching:
            import difflib

            near = difflib.get_close_matches(wanted, [*every, *{d.spec.category for d in every.values()}], n=3)
            raise SpecError(
                f"there is no check {wanted!r}",
                hint=f"did you mean {', '.join(near)}?" if near else "list them with: mcpdetect detectors",
            )
        chosen.update(matching)
    return dict(sorted(chosen.items()))


def _only_detector(module_name: str) -> type[Detector]:
    module = importlib.import_module(module_name)
    own = [
        item
        for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, Detector) and item is not Detector and item.__module__ == module_name
    ]
    if len(own) != 1:
        raise SpecError(f"a detector module holds exactly one detector, this one {len(own)}", file=module_name)
    return own[0]


def _load(point: EntryPoint) -> type[Detector]:
    try:
        loaded = point.load()
    except (ImportError, AttributeError) as error:
        raise SpecError(
            f"the plug-in cannot be loaded: {error}",
            file=f"entry point {point.name!r} ({point.value})",
            cause="the package that offers it is broken or half installed",
            hint="repair or uninstall that package",
        ) from error
    if not (inspect.isclass(loaded) and issubclass(loaded, Detector)):
        raise SpecError("the entry point names no Detector class", file=f"{point.name!r} ({point.value})")
    return loaded


def _add(found: dict[str, type[Detector]], detector: type[Detector], origin: str) -> None:
    spec = getattr(detector, "spec", None)
    if spec is None:
        raise SpecError("the detector has no spec", file=origin)
    if spec.id in found:
        raise SpecError(
            f"two detectors share the id {spec.id!r}",
            file=origin,
            cause="a plug-in shadows another check",
            hint="rename or uninstall one of them",
        )
    found[spec.id] = detector
