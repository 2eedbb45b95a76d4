"""mcp.exfil-instruction: what fires, what stays silent, and where the finding points."""

from pathlib import Path
from typing import Any, cast

import pytest

from mcpdetect.contract import Context
from mcpdetect.data.loader import load_yaml
from mcpdetect.detectors.mcp_exfil_instruction import McpExfilInstruction
from mcpdetect.ingest.mcp import McpTranscript
from mcpdetect.model.mcp import McpText, McpTool
from mcpdetect.model.place import Where
from mcpdetect.model.result import Finding

TEXTS = load_yaml(
    Path(__file__).with_name("exfil_texts.yaml"),
    {"fires": [{"text": None, "rules": {"*": None}, "why": None}], "silent": [{"text": None, "why": None}]},
)
HERE = Where("mcp.jsonl", 7)


def findings(*tools: McpTool) -> list[Finding]:
    detector = McpExfilInstruction(cast("Context", None))
    return [found for tool in tools for found in detector.on_event(tool)] + list(detector.finish())


def judged(text: str, pointer: str = "/description") -> list[Finding]:
    return findings(McpTool(HERE, 5, name="t", texts=[McpText("/name", "t"), McpText(pointer, text)]))


def test_there_are_enough_texts_and_none_twice() -> None:
    every = [item["text"] for item in TEXTS["fires"] + TEXTS["silent"]]
    assert len(TEXTS["fires"]) >= 30
    assert len(TEXTS["silent"]) >= 60
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("item", TEXTS["fires"], ids=lambda item: item["why"])
def test_an_order_to_carry_data_away_fires(item: dict[str, Any]) -> None:
    found = judged(item["text"])
    assert {one.facts["rule"]: one.level for one in found} == item["rules"]
    assert [one.where for one in found] == [[HERE]] * len(item["rules"])
    assert all(one.facts["quote"] in item["text"] for one in found)


@pytest.mark.parametrize("item", TEXTS["silent"], ids=lambda item: item["why"])
def test_an_ordinary_text_stays_silent(item: dict[str, Any]) -> None:
    assert [(one.facts["rule"], one.facts["quote"]) for one in judged(item["text"])] == []
