"""Hypothesis strategies for every event of the model, made from the types of its fields."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from hypothesis import strategies as st

from mcpdetect.model.addresses import canonical
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.observation import Observation
from mcpdetect.model.trace import Run

__all__ = ["EVENTS", "OBSERVATIONS", "RUNS", "TEXT", "of_model", "of_type"]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ADDRESS = st.ip_addresses().map(lambda address: canonical(str(address)))
# Fields that hold an address wherever they hold anything.
_ADDRESSES = {"address", "client", "server"}


def of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for a type of the model."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return of_model(typing.cast("type", hint))
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(of_type(part) for part in arguments))
    if origin is list:
        return st.lists(of_type(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(of_type(arguments[0]), of_type(arguments[1]), max_size=3)
    plain: dict[object, st.SearchStrategy[Any]] = {
        str: TEXT,
        bytes: st.binary(max_size=12),
        int: st.integers(-(2**63), 2**63 - 1),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return plain[hint]


def of_model(model: type, *, nested: bool = True) -> st.SearchStrategy[Any]:
    """Return a strategy for a class of the model; one that holds itself does so one level deep, if ``nested``."""
    hints = typing.get_type_hints(model)
    parts: dict[str, st.SearchStrategy[Any]] = {}
    for name, hint in hints.items():
        if typing.get_origin(hint) is typing.ClassVar:
            continue
        if typing.get_args(hint) == (model,):
            parts[name] = st.lists(of_model(model, nested=False), max_size=1) if nested else st.just([])
        else:
            parts[name] = of_type(hint)
    for name in _ADDRESSES & parts.keys():
        parts[name] = ADDRESS if hints[name] is str else st.none() | ADDRESS
    if hints.get("source") == str | None:
        parts["source"] = st.none() | ADDRESS
    return st.builds(model, **parts)


EVENTS: dict[str, st.SearchStrategy[Event]] = {kind: of_model(model) for kind, model in EVENT_TYPES.items()}
OBSERVATIONS: st.SearchStrategy[Observation] = of_model(Observation)
RUNS: st.SearchStrategy[Run] = of_model(Run)
