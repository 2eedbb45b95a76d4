"""Add a row to the coverage history: ``python tests/tools/coverage_row.py``, on a commit with nothing uncommitted.

The row names the commit whose numbers it holds; it is committed after it. The library runs no programs, so asking git
is done here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mcpdetect.cli.main import main as mcpdetect

ROOT = Path(__file__).parents[2]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Check that the published numbers are current, and add the row; return the exit code."""
    code = mcpdetect(["coverage", "check", "--root", str(ROOT)])
    if code:
        return code
    commit = _git("rev-parse", "HEAD")
    date = _git("show", "-s", "--format=%cs", "HEAD")
    return mcpdetect(["coverage", "history", "--root", str(ROOT), "--append", "--commit", commit, "--date", date])


if __name__ == "__main__":
    sys.exit(main())
