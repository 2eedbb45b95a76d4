"""The README's sessions are what the commands print."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))
from refresh_readme import README, refreshed


def test_every_session_in_the_readme_is_real() -> None:
    text = README.read_text("utf-8")
    assert text.count("<!-- session: ") == 2
    assert refreshed(text) == text, "refresh with: python tests/tools/refresh_readme.py"
