"""Generated documents are what the code would write today."""

from __future__ import annotations

import runpy
from pathlib import Path

from mcpdetect.engine.discovery import detectors
from mcpdetect.report.schema import KINDS

TOOL = Path(__file__).parents[1] / "tools" / "refresh_docs.py"
REFRESH = "refresh them with: python tests/tools/refresh_docs.py"


def test_generated_documents_are_fresh() -> None:
    made: dict[Path, str] = runpy.run_path(str(TOOL))["documents"]()
    schemas, pages = (sum(path.parent.name == folder for path in made) for folder in ("schemas", "detectors"))
    assert (schemas, pages, len(made)) == (len(KINDS), len(detectors()) + 1, schemas + pages + 2)
    stale = [str(path) for path, text in made.items() if not path.is_file() or path.read_text("utf-8") != text]
    assert stale == [], REFRESH
    docs = TOOL.parents[2] / "docs"
    committed = sorted([*(docs / "schemas").iterdir(), *(docs / "detectors").iterdir()])
    assert [path for path in committed if path not in made] == [], REFRESH
