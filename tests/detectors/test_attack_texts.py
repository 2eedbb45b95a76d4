"""Sets of attack texts fire their check, and no honest text fires any: the misses are known one by one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from text_sources import result, run, tool

from mcpdetect.contract import Detector
from mcpdetect.data.loader import load_yaml
from mcpdetect.detectors.mcp_exfil_instruction import McpExfilInstruction
from mcpdetect.detectors.mcp_hidden_text import McpHiddenText
from mcpdetect.detectors.mcp_output_injection import McpOutputInjection
from mcpdetect.detectors.mcp_shadowing import McpShadowing
from mcpdetect.detectors.mcp_tool_poisoning import McpToolPoisoning
from mcpdetect.model.event import Event

HERE = Path(__file__).parent
ATTACKS = load_yaml(HERE / "attack_texts.yaml", {"sets": {"*": {"*": [None]}}, "missed": [None]})
HONEST = load_yaml(HERE / "honest_texts.yaml", {"*": [None]})
CHECKS: dict[str, tuple[type[Detector], Callable[[str], Event]]] = {
    "tool-poisoning": (McpToolPoisoning, tool),
    "exfil-instruction": (McpExfilInstruction, tool),
    "shadowing": (McpShadowing, tool),
    "output-injection": (McpOutputInjection, result),
    "hidden-text": (McpHiddenText, tool),
}
SETS = [(name, check, texts) for name, checks in ATTACKS["sets"].items() for check, texts in checks.items()]


def fired(check: str, text: str) -> list[Any]:
    kind, event = CHECKS[check]
    return [found.facts.get("rule", found.facts.get("how")) for found in run(kind, [event(text)])]


@pytest.mark.parametrize(("name", "check", "texts"), SETS, ids=[f"{check}, {name}" for name, check, _ in SETS])
def test_of_thirty_attacks_at_most_one_is_missed_and_it_is_named(name: str, check: str, texts: list[str]) -> None:
    assert len(set(texts)) == 30
    missed = [text for text in texts if not fired(check, text)]
    assert missed == [text for text in texts if text in ATTACKS["missed"]]
    assert len(missed) <= 1


def test_every_set_has_every_check_and_every_miss_is_of_a_set() -> None:
    assert {check for _, check, _ in SETS} == set(CHECKS)
    every = [text for _, _, texts in SETS for text in texts]
    assert len(set(every)) == len(every)
    assert set(ATTACKS["missed"]) < set(every)


@pytest.mark.parametrize("check", CHECKS)
def test_no_honest_text_fires_a_check(check: str) -> None:
    texts = [text for texts in HONEST.values() for text in texts]
    assert len(texts) >= 60 * len(CHECKS)
    assert [(text, rules) for text in texts if (rules := fired(check, text))] == []
