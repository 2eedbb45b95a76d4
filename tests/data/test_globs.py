"""Globs of data files: whole paths, linear time."""

from __future__ import annotations

import pytest

from mcpdetect.data.globs import compile_globs


@pytest.mark.parametrize(
    ("glob", "path", "matched"),
    [
        ("**/.env", "/home/u/.env", True),
        ("**/.env", ".env", True),
        ("**/.env", "/home/u/x.env", False),
        ("**/.env", "/home/u/.env/x", False),
        ("**/.env", "/home/u/.env\n", False),
        ("**/dotenv/**", "/srv/node_modules/dotenv/lib/main.js", True),
        ("**/dotenv/**", "/srv/node_modules/dotenv-x/lib/main.js", False),
        ("**/dotenv/**", "/srv/dotenv", False),
        ("/proc/*/environ", "/proc/36/environ", True),
        ("/proc/*/environ", "/proc/36/task/37/environ", False),
        ("/a/?.txt", "/a/b.txt", True),
        ("/a/?.txt", "/a//.txt", False),
        ("/a/[b].txt", "/a/[b].txt", True),
        ("/a/[b].txt", "/a/b.txt", False),
        ("/a/b.c", "/a/bxc", False),
        ("**", "/any/thing\nat all", True),
        ("**/x\n*", "/a/x\ny", True),
    ],
)
def test_a_glob_matches_whole_paths(glob: str, path: str, matched: bool) -> None:
    assert (compile_globs([glob]).fullmatch(path) is not None) is matched


def test_several_globs_are_alternatives_and_none_matches_nothing() -> None:
    both = compile_globs(["/a", "/b"])
    assert [both.fullmatch(path) is not None for path in ("/a", "/b", "/c", "/a/b")] == [True, True, False, False]
    assert compile_globs([]).fullmatch("") is None
    assert compile_globs([]).fullmatch("/a") is None


def test_a_hostile_path_is_refused_without_backtracking_through_it() -> None:
    assert compile_globs(["**/dotenv/**/x/**/y"]).fullmatch("/dotenv" * 300 + "/x" * 300) is None
