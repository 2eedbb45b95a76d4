"""docs/formats.md promises only what a test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.sniff import FLAGS
from mcpdetect.ingest.strace import StraceLog

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "formats.md"
# | `-ttt` | time since 1970 | `test_a.py::test_b`<br>`test_c.py::test_d` |
_TEST = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def rows() -> list[list[str]]:
    """Return the cells of every row that is no heading."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for number, line in enumerate(lines)
        if line.startswith("|")
        and not line.startswith("|---")
        and not "".join(lines[number + 1 : number + 2]).startswith("|---")
    ]


def test_every_row_names_a_test_that_exists() -> None:
    known: dict[str, set[str]] = {}
    wrong = []
    for cells in rows():
        assert len(cells) == 3, cells
        named = _TEST.findall(cells[2])
        if not named or _TEST.sub("", cells[2]).replace("<br>", ""):
            wrong.append(f"{cells[0]}: {cells[2]}")
        for file, function in named:
            if file not in known:
                tree = (
                    ast.parse((HERE / file).read_text(encoding="utf-8")) if (HERE / file).is_file() else ast.parse("")
                )
                known[file] = {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}
            if function not in known[file]:
                wrong.append(f"{cells[0]}: {file}::{function}")
    assert wrong == []
    assert len(rows()) > 80


def test_every_option_that_takes_evidence_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert {flag for flag in FLAGS.values() if f"`{flag} FILE`" not in page} == {"--manifest"}


def test_a_summary_of_strace_is_refused(tmp_path: Path) -> None:
    text = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 45.45    0.000005           5         1           execve
------ ----------- ----------- --------- --------- ----------------
100.00    0.000011           1         8         1 total
"""
    path = tmp_path / "summary"
    path.write_text(text)
    with pytest.raises(UnknownFormat, match="is not strace output"):
        StraceLog(path)
