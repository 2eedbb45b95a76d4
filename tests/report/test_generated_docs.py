"""Generated documents are what the code would write today."""

from __future__ import annotations

import runpy
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "refresh_docs.py"
REFRESH = "refresh them with: python tests/tools/refresh_docs.py"


def test_schemas_and_event_model_page_are_fresh() -> None:
    made: dict[Path, str] = runpy.run_path(str(TOOL))["documents"]()
    assert len(made) == 18
    stale = [str(path) for path, text in made.items() if not path.is_file() or path.read_text("utf-8") != text]
    assert stale == [], REFRESH
    committed = sorted((TOOL.parents[2] / "docs" / "schemas").iterdir())
    assert [path for path in committed if path not in made] == [], REFRESH
