"""The published table of denials is what the recordings show."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from controls.recorder.denial import DENIALS

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tests/tools/refresh_denial.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("refresh_denial", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "refresh_denial", module)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current_and_has_every_denial(tool: ModuleType) -> None:
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.page() == page, "write it again with: python tests/tools/refresh_denial.py"
    rows = [line.split(" | ")[0].removeprefix("| ").strip("`") for line in page.splitlines() if line.startswith("| `")]
    assert set(rows) == {"open", *DENIALS}


def test_the_manual_of_the_controls_names_every_denial() -> None:
    text = (ROOT / "controls/README.md").read_text()
    rows = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    assert {word.strip(" `") for row in rows for word in row.split(",")} >= set(DENIALS)
