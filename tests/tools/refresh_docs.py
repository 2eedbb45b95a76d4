"""Write the generated documents: ``python tests/tools/refresh_docs.py``."""

from __future__ import annotations

import json
from pathlib import Path

from mcpdetect.report.model_page import event_model_page
from mcpdetect.report.schema import KINDS, schema

DOCS = Path(__file__).parents[2] / "docs"


def documents() -> dict[Path, str]:
    """Return every generated document by its path."""
    made = {
        DOCS / "schemas" / f"{kind}.schema.json": json.dumps(schema(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in KINDS
    }
    made[DOCS / "event-model.md"] = event_model_page()
    return made


def main() -> None:
    """Write them all, and remove schemas that no longer exist."""
    made = documents()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in (DOCS / "schemas").iterdir():
        if path not in made:
            path.unlink()


if __name__ == "__main__":
    main()
