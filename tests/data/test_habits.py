"""The habits file: complete, sourced, and read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpdetect.data.habits import habits
from mcpdetect.errors import ConfigError


def test_every_shipped_habit_has_a_text_a_source_and_something_it_is_about() -> None:
    every = habits()
    assert len(every) >= 18
    assert len({habit.id for habit in every}) == len(every)
    for habit in every:
        assert len(habit.explanation.text) > 20
        assert len(habit.explanation.source) > 5
        assert habit.explanation.rule == habit.id
        assert habit.networks or habit.paths.pattern != r"(?!)"


def test_only_what_a_cloud_does_holds_without_a_condition() -> None:
    assert [habit.id for habit in habits() if habit.always] == ["cloud-metadata-probe"]
    assert {habit.id for habit in habits() if habit.relative} == {"dotenv-search"}
    assert {habit.id for habit in habits() if habit.children} == {
        "npm-configuration",
        "git-credentials",
        "browser-reachability-probe",
    }


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "habits.yaml"
    path.write_text(text)
    return path


def test_a_habit_about_addresses_is_about_its_networks_and_ports(tmp_path: Path) -> None:
    text = 'habits:\n- {id: h, addresses: ["203.0.113.0/24", "2001:db8::/32"], ports: [53], text: t, source: s}\n'
    habit = habits(written(tmp_path, text))[0]
    assert [
        habit.concerns_address(address, port)
        for address, port in [
            ("203.0.113.9", 53),
            ("2001:db8::1%eth0", 53),
            ("203.0.113.9", 443),
            ("203.0.113.9", None),
            ("203.0.114.9", 53),
        ]
    ] == [True, True, False, False, False]


def test_a_habit_about_files_is_about_no_address(tmp_path: Path) -> None:
    habit = habits(written(tmp_path, 'habits:\n- {id: h, paths: ["**/x"], text: t, source: s}\n'))[0]
    assert not habit.concerns_address("203.0.113.9", 53)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("habits:\n- {id: h, text: t}\n", "source"),
        ("habits:\n- {id: h, text: t, source: s, wen: {}}\n", "wen"),
        ("habits:\n- {id: h, text: t, source: s, when: {program: [x]}}\n", "program"),
        ("habit: []\n", "habit"),
    ],
)
def test_a_wrong_habits_file_is_named_with_its_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        habits(written(tmp_path, text))
    assert problem in str(caught.value)
