"""Write the JSON copies of the shipped YAML files: ``python -m mcpdetect.data.compile``."""

from __future__ import annotations

from pathlib import Path

from mcpdetect.data.loader import compiled_text

__all__ = ["shipped", "write"]

_FOLDER = Path(__file__).parent


def shipped() -> list[str]:
    """Return the names of the shipped YAML files."""
    return sorted(path.name for path in _FOLDER.glob("*.yaml"))


def write() -> None:
    """Write every copy anew."""
    (_FOLDER / "compiled").mkdir(exist_ok=True)
    for name in shipped():
        copy = _FOLDER / "compiled" / (name.removesuffix(".yaml") + ".json")
        copy.write_text(compiled_text(name), "utf-8")


if __name__ == "__main__":
    write()
