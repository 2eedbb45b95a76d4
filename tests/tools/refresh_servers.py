"""Write the page and the schema of audited servers: ``python tests/tools/refresh_servers.py``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def documents() -> dict[Path, str]:
    """Return every generated document by its path."""
    # controls is no part of the installed package.
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from controls.registry import load, registry_schema
    from controls.registrypage import registry_page

    return {
        ROOT / "docs" / "servers.md": registry_page(load(ROOT / "coverage" / "servers.json")),
        ROOT / "coverage" / "servers.schema.json": registry_schema(),
    }


def main() -> None:
    """Write them all."""
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
