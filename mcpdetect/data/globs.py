"""Path globs of data files, compiled to linear regular expressions."""

from __future__ import annotations

import re

__all__ = ["compile_globs"]


def compile_globs(globs: list[str]) -> re.Pattern[str]:
    """Return one pattern that fully matches a path which any of the globs matches.

    ``**`` crosses directory separators, ``*`` and ``?`` do not, a leading ``**/`` also matches no directory
    at all. Everything else is literal. An empty list matches nothing.
    """
    if not globs:
        return re.compile(r"(?!)")
    return re.compile("|".join(f"(?:{_one(glob)})" for glob in globs), re.DOTALL)


def _one(glob: str) -> str:
    parts = []
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            parts.append(".*")
            at += 2
        else:
            char = glob[at]
            parts.append("[^/]*" if char == "*" else "[^/]" if char == "?" else re.escape(char))
            at += 1
    return "".join(parts)
