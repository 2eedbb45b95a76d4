"""Write the generated documents: ``python tests/tools/refresh_docs.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mcpdetect.engine.discovery import detectors
from mcpdetect.labels.blindspots import load_blindspots
from mcpdetect.report.blindspot_page import blindspot_page
from mcpdetect.report.model_page import event_model_page
from mcpdetect.report.schema import KINDS, schema

sys.path.insert(0, str(Path(__file__).parent))
from detector_docs import detector_documents

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def documents() -> dict[Path, str]:
    """Return every generated document by its path."""
    made = {
        DOCS / "schemas" / f"{kind}.schema.json": json.dumps(schema(kind), indent=2, ensure_ascii=False) + "\n"
        for kind in KINDS
    }
    made[DOCS / "event-model.md"] = event_model_page()
    cases = [path.parent.relative_to(ROOT / "corpus").as_posix() for path in (ROOT / "corpus").rglob("manifest.json")]
    spots = load_blindspots(ROOT / "labels" / "blindspots.yaml", checks=list(detectors()), cases=cases)
    made[DOCS / "what-we-cannot-see.md"] = blindspot_page(spots)
    made.update(detector_documents(ROOT))
    return made


def main() -> None:
    """Write them all, and remove schemas that no longer exist."""
    made = documents()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for folder in ("schemas", "detectors"):
        for path in (DOCS / folder).iterdir():
            if path not in made:
                path.unlink()


if __name__ == "__main__":
    main()
