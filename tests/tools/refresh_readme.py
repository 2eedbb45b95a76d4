"""Write the sessions of the README anew: ``python tests/tools/refresh_readme.py``.

A session is a ``text`` block under a comment that names the command: ``<!-- session: check corpus/... -->``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "README.md"
_SESSION = re.compile(r"(<!-- session: ([^\n]+?) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def session(arguments: str) -> str:
    """Return what a command prints in a pipe, 100 columns wide, the command in its first line."""
    done = subprocess.run(
        [sys.executable, "-m", "mcpdetect", *arguments.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        check=False,
    )
    return f"$ mcpdetect {arguments}\n{done.stdout}{done.stderr}"


def refreshed(text: str) -> str:
    """Return the README with every session as it is now."""
    return _SESSION.sub(lambda match: match[1] + session(match[2]) + match[4], text)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text("utf-8")), "utf-8")
