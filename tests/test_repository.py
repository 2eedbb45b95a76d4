"""What the repository holds and ships."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from source_tree import ROOT, modules, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
HEAVY = ("pydantic", "dpkt", "ruamel", "jsonschema", "zstandard", "hypothesis", "pytest")
# What a distribution is imported as, where the names differ.
IMPORTED_AS = {"ruamel.yaml": "ruamel", "pyelftools": "elftools"}


def test_every_runtime_dependency_is_used_and_every_use_declared() -> None:
    declared = {re.split(r"[><=~!\[; ]", item)[0] for item in PROJECT["project"]["dependencies"]}
    used = {
        top
        for module in modules("mcpdetect")
        for item in module.imports()
        if (top := item.name.partition(".")[0]) not in sys.stdlib_module_names and top != "mcpdetect"
    }
    assert {IMPORTED_AS.get(name, name) for name in declared} == used


def test_every_runtime_dependency_is_justified() -> None:
    record = (ROOT / "docs/decisions/0001-runtime-dependencies.md").read_text("utf-8")
    named = re.findall(r"^\| `([^`]+)` \|", record, re.MULTILINE)
    declared = [re.split(r"[><=~!\[; ]", item)[0] for item in PROJECT["project"]["dependencies"]]
    assert named == declared == sorted(declared)


def test_the_version_is_the_head_of_the_changelog() -> None:
    from mcpdetect.version import VERSION

    heads = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert heads[0] == "Unreleased"
    assert VERSION in (heads[1:] or [VERSION])[0]


def test_the_folder_of_published_numbers_is_no_package() -> None:
    assert not (ROOT / "coverage" / "__init__.py").exists()
    assert "coverage/__init__.py" not in tracked()


def test_evidence_keeps_its_bytes() -> None:
    lines = (ROOT / ".gitattributes").read_text("utf-8").splitlines()
    assert {"corpus/** -text", "tests/data/** -text"} <= set(lines)


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    names = {f"{path}/" for path in (ROOT, Path(sys.prefix)) if len(path.parts) > 2}
    assert names
    wrong, seen = [], 0
    for name in tracked():
        raw = (ROOT / name).read_bytes()
        seen += 1
        wrong += [f"{name} has {path}" for path in names if path.encode() in raw]
    assert wrong == []
    assert seen > 100


def test_no_file_names_a_package_index() -> None:
    setting = re.compile(rb"(extra-)?index-url|trusted-host|\"resolved\": *\"http")
    wrong = [
        name
        for name in tracked()
        if not name.startswith("corpus/") and name != "tests/test_repository.py"
        if setting.search((ROOT / name).read_bytes())
    ]
    assert wrong == []


def test_the_wheel_holds_the_library_and_nothing_else(tmp_path: Path) -> None:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: what the wheel holds is not tested; install the extra `test`")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.iterdir()
    held = set(zipfile.ZipFile(wheel).namelist())
    outside = {name for name in held if not name.startswith(("mcpdetect/", "mcpdetect-"))}
    assert outside == set()
    shipped = {name for name in tracked() if name.startswith("mcpdetect/")}
    assert shipped <= held
    assert "mcpdetect/py.typed" in held
    assert not [name for name in held if name.endswith((".pyc", ".partial"))]
    assert any(name.endswith("licenses/LICENSE") for name in held)


@pytest.mark.parametrize("statement", ["import mcpdetect", "import mcpdetect.cli.main"])
def test_starting_up_loads_no_heavy_library(statement: str) -> None:
    program = f"{statement}, sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "\n"


def test_ci_and_readme_run_the_same_tests() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "pip install -e '.[test]' && .venv/bin/pytest\n" in readme
    assert "-e '.[test]'\n" in script
    assert "\nMCPDETECT_NO_SKIPS=1 pytest -p no:cacheprovider\n" in script
    assert "ci/run" in readme
