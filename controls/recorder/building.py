"""Building the programs of controls: which compiler a source needs, and calling it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from controls.catalog import Control, Variant
from controls.recorder.errors import RecorderError
from controls.recorder.probes import cache_folder
from controls.recorder.tools import PACKAGES, run
from controls.speeches import SPEAKER, SPEECH

__all__ = ["COMPILERS", "build", "compilers", "lay_out", "packaged"]

COMPILERS = {".c": "gcc", ".go": "go", ".java": "javac"}
"""Suffix of a source -> the program that compiles it; anything else is no source that is built."""

_SECONDS = 300.0
"""The first Go program compiles Go's own library too."""


def compilers(sources: Sequence[str]) -> list[str]:
    """Return the compilers that sources need, sorted.

    Raises:
        RecorderError: one of them is of a kind that nothing compiles.
    """
    for name in sources:
        if Path(name).suffix not in COMPILERS:
            raise RecorderError(f"{name}: nothing compiles it; there are compilers for {', '.join(sorted(COMPILERS))}")
    return sorted({COMPILERS[Path(name).suffix] for name in sources})


def packaged(argv: Sequence[str]) -> list[str]:
    """Return the programs of the distribution that a command names by their paths and that a package is known for."""
    # /usr/bin/env http_proxy=http://203.0.113.8:3128 /usr/bin/curl http://api.example.com/
    named = (Path(word).name for word in argv if word.startswith(("/usr/bin/", "/usr/sbin/")))
    return sorted({name for name in named if name in PACKAGES})


def build(source: Path, link: str) -> None:
    """Compile one source beside itself: ``a.c`` and ``a.go`` to ``a``, ``A.java`` to ``A.class``.

    Args:
        source: the file; its suffix chooses the compiler.
        link: ``static`` or ``dynamic``, of C programs.

    Raises:
        RecorderError: the compiler failed; the message holds what it said.
    """
    target = str(source.with_suffix(""))
    if source.suffix == ".go":
        # Its own library alone, no C: the program is static and asks for names by itself. Go wants a cache.
        settings = ("CGO_ENABLED=0", "GO111MODULE=off", "GOFLAGS=-trimpath", f"GOCACHE={cache_folder() / 'go'}")
        argv = ("go", "build", "-ldflags=-s -w", "-o", target, str(source))
        run("env", "HOME=/nonexistent", *settings, *argv, seconds=_SECONDS)
    elif source.suffix == ".java":
        run("javac", "-J-XX:TieredStopAtLevel=1", "-d", str(source.parent), str(source), seconds=_SECONDS)
    else:
        static = ["-static"] if link == "static" else []
        run("gcc", "-O1", "-Wall", *static, "-o", target, str(source))


def lay_out(control: Control, variant: Variant, to: Path) -> None:
    """Copy the programs of a variant, or the server that says its speech, to a new folder, and build its sources.

    Raises:
        RecorderError: a compiler failed.
    """
    if variant.speech is not None:
        shutil.copytree(SPEAKER, to, ignore=shutil.ignore_patterns("__pycache__"))
        (to / SPEECH).write_text(json.dumps(variant.speech, indent=1) + "\n")
    else:
        shutil.copytree(
            control.folder, to, ignore=shutil.ignore_patterns("control.yaml", "expect*.yaml", "__pycache__")
        )
    for name in variant.build:
        build(to / name, variant.link)
    for path in to.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.suffix == "" else 0o644)
