"""The habits of runtimes and libraries that explain findings: ``habits.yaml``, checked and compiled."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpdetect.data.globs import compile_globs
from mcpdetect.data.loader import load_yaml
from mcpdetect.data.overlay import cached
from mcpdetect.model.result import Explanation

__all__ = ["Habit", "habits"]


@dataclass(frozen=True, slots=True)
class Habit:
    """One habit; see the comment in ``habits.yaml`` for its parts."""

    id: str
    paths: re.Pattern[str]
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    ports: tuple[int, ...]
    programs: re.Pattern[str]
    libraries: re.Pattern[str]
    relative: bool
    children: bool
    always: bool
    explanation: Explanation

    def concerns_address(self, address: str, port: int | None) -> bool:
        """Return whether a destination is one this habit is about."""
        if not self.networks or (self.ports and port not in self.ports):
            return False
        parsed = ipaddress.ip_address(address.partition("%")[0])
        return any(parsed in network for network in self.networks)


@cached
def habits(source: str | Path = "habits.yaml") -> tuple[Habit, ...]:
    """Return the habits of a data file, the shipped one by default.

    Raises:
        ConfigError: the file is wrong.
    """
    when: Any = {"programs?": [None], "libraries?": [None], "relative?": None, "children?": None}
    habit: Any = {
        "id": None,
        "paths?": [None],
        "addresses?": [None],
        "ports?": [None],
        "when?": when,
        "text": None,
        "source": None,
    }
    data = load_yaml(source, {"habits": [habit]})
    return tuple(_habit(entry) for entry in data["habits"])


def _habit(entry: dict[str, Any]) -> Habit:
    when = entry.get("when") or {}
    return Habit(
        id=entry["id"],
        paths=compile_globs(entry.get("paths") or []),
        networks=tuple(ipaddress.ip_network(text) for text in entry.get("addresses") or []),
        ports=tuple(entry.get("ports") or ()),
        programs=compile_globs(when.get("programs") or []),
        libraries=compile_globs(when.get("libraries") or []),
        relative=bool(when.get("relative")),
        children=bool(when.get("children")),
        always=not when,
        explanation=Explanation(entry["id"], entry["text"], entry["source"]),
    )
