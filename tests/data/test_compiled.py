"""The JSON copies of shipped YAML files are what the YAML says."""

from __future__ import annotations

from pathlib import Path

import mcpdetect.data
from mcpdetect.data.compile import shipped
from mcpdetect.data.loader import compiled_text, load_yaml

FOLDER = Path(mcpdetect.data.__file__).parent
REFRESH = "python -m mcpdetect.data.compile"


def test_every_shipped_yaml_file_has_a_current_json_copy_and_no_copy_is_left_over() -> None:
    names = shipped()
    assert names == [
        "claims.yaml",
        "credentials.yaml",
        "errata.yaml",
        "exfil.yaml",
        "habits.yaml",
        "poisoning.yaml",
        "residues.yaml",
    ]
    copies = sorted(path.name for path in (FOLDER / "compiled").glob("*"))
    assert copies == [name.replace(".yaml", ".json") for name in names], f"refresh with: {REFRESH}"
    for name in names:
        copy = FOLDER / "compiled" / name.replace(".yaml", ".json")
        assert copy.read_text("utf-8") == compiled_text(name), f"{copy.name} is stale; refresh with: {REFRESH}"


def test_loading_by_name_gives_the_same_values_as_loading_the_yaml() -> None:
    for name in shipped():
        assert load_yaml(name) == load_yaml(FOLDER / name)
