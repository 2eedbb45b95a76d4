"""The throwaway home: planted secrets, each with a canary of its own, derived from the run's seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controls.recorder.stores import STORES, VARIABLES, content

__all__ = ["HOME", "PROJECT", "Planted", "environment_canaries", "plant", "planted", "tag_of", "token_of"]

HOME = "/home/dev"
PROJECT = f"{HOME}/project"

_WORK = {
    "project/README.md": "# Example project\n\nNothing of interest: a place to work in.\n",
    "project/notes.txt": "hello\nA note about nothing in particular.\n",
    "project/data.csv": "name,count\napples,3\npears,5\n",
    "project/data.json": '{"apples": 3, "pears": 5}\n',
}
"""Files that are no secret: something for tools to read."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One planted secret: what it is, where it lies (``path`` or ``variable``), its value.

    ``offset`` is where the value begins in the file.
    """

    kind: str
    value: str
    path: str | None = None
    variable: str | None = None
    offset: int | None = None


def tag_of(seed: int, case: str) -> str:
    """Return the tag in every canary of a run: 12 hex digits of sha256 over seed and case id."""
    return hashlib.sha256(f"{seed}\0{case}".encode()).hexdigest()[:12]


def _files(tag: str) -> list[tuple[str, bytes, Planted]]:
    made = []
    for name, (kind, _) in STORES.items():
        value = f"CANARY-{kind}-{tag}"
        data = content(name, value, tag)
        made.append((name, data, Planted(kind, value, path=f"{HOME}/{name}", offset=data.index(value.encode()))))
    return made


def plant(home: Path, tag: str) -> list[Planted]:
    """Write the planted files below ``home``, readable by their owner alone, and return what was planted."""
    done = []
    for name, text in _WORK.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for name, data, one in _files(tag):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(data)
        path.chmod(0o600)
        done.append(one)
    return done


def planted(tag: str, environment: Mapping[str, str] | None = None) -> list[Planted]:
    """Return what a run with this tag has planted, files and variables.

    Args:
        tag: the run's tag.
        environment: variables that the target was given besides: one of the same name replaces a planted one. Those
            with the run's token canary in them, as audits give servers their settings, are planted too.
    """
    given = environment or {}
    token = token_of(tag)
    return [
        *(one for _, _, one in _files(tag)),
        *(one for one in environment_canaries(tag) if one.variable is not None and one.variable not in given),
        *(
            Planted("TOKEN", token, variable=name, offset=value.index(token))
            for name, value in given.items()
            if token in value
        ),
    ]


def token_of(tag: str) -> str:
    """Return the canary that stands for a server's own token in its settings."""
    return f"CANARY-TOKEN-{tag}"


def environment_canaries(tag: str) -> list[Planted]:
    """Return the planted environment variables."""
    return [Planted(kind, f"CANARY-{kind}-{tag}", variable=name, offset=0) for name, kind in VARIABLES.items()]
