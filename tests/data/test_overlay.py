"""The user's own data files beside the shipped ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpdetect.data.loader import load_yaml
from mcpdetect.data.overlay import cached, own_data, shipped_names
from mcpdetect.errors import ConfigError

SHAPE: Any = {"habits": [None]}


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "habits.yaml").write_text(text)
        return tmp_path

    return write


def test_lists_are_added_or_replaced(own: Callable[[str], Path]) -> None:
    shipped = load_yaml("habits.yaml", SHAPE)["habits"]
    assert len(shipped) > 5
    with own_data(own("habits: [mine]\n")):
        assert load_yaml("habits.yaml", SHAPE)["habits"] == [*shipped, "mine"]
        assert load_yaml("claims.yaml") != {}
    with own_data(own("replace: [habits]\nhabits: [mine]\n")):
        assert load_yaml("habits.yaml", SHAPE) == {"habits": ["mine"]}
    assert load_yaml("habits.yaml", SHAPE)["habits"] == shipped


def test_what_is_kept_is_kept_for_each_folder(own: Callable[[str], Path]) -> None:
    read: list[int] = []

    @cached
    def count() -> int:
        read.append(1)
        return len(load_yaml("habits.yaml", SHAPE)["habits"])

    before = count()
    with own_data(own("habits: [mine]\n")):
        assert (count(), count()) == (before + 1, before + 1)
    assert (count(), len(read)) == (before, 2)


def test_a_mistake_names_file_and_line(own: Callable[[str], Path], tmp_path: Path) -> None:
    for text, told in (
        ("habits: [mine]\nhabit: []\n", "line 2"),
        ("replace: [habits]\n", "what is to be replaced is not given"),
        ("replace: [habits]\nhabits: {}\n", "must be a list"),
    ):
        with own_data(own(text)), pytest.raises(ConfigError) as caught:
            load_yaml("habits.yaml", SHAPE)
        assert told in str(caught.value)
        assert "habits.yaml" in str(caught.value)
    (tmp_path / "habits.yaml").rename(tmp_path / "habit.yaml")
    with pytest.raises(ConfigError, match=r"did you mean habits\.yaml"), own_data(tmp_path):
        pass
    (tmp_path / "habit.yaml").unlink()
    with pytest.raises(ConfigError, match="holds no data file"), own_data(tmp_path):
        pass
    with pytest.raises(ConfigError, match="is no folder"), own_data(tmp_path / "no"):
        pass
    assert "habits.yaml" in shipped_names()
