"""What tests of text checks share: the texts of the controls, and a detector fed with one text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from controls.speeches import speeches
from mcpdetect.contract import Context, Detector
from mcpdetect.data.loader import load_yaml
from mcpdetect.model.event import Event
from mcpdetect.model.inputs import Baseline, Secrets
from mcpdetect.model.mcp import McpMessage, McpText, McpTool
from mcpdetect.model.place import Where
from mcpdetect.model.result import Finding, Limit
from mcpdetect.model.trace import Run

PLANTED = Path(__file__).resolve().parents[2] / "controls" / "planted" / "mcp"
HERE = Where("mcp.jsonl", 7)


class Bench:
    """A context that holds what one detector asks for."""

    def __init__(
        self, *, secrets: Secrets | None = None, baseline: Baseline | None = None, run: Run | None = None
    ) -> None:
        self.secrets, self.baseline, self.run = secrets, baseline, run or Run()
        self.facts: dict[type, Any] = {}
        self.limits: list[Limit] = []

    def fact(self, kind: type) -> Any:
        """Return the fact of a kind."""
        return self.facts[kind]

    def limit(self, what: str, detail: str, *, hides: bool = True, where: Where | None = None, count: int = 1) -> None:
        """Keep a limit."""
        self.limits.append(Limit(what, detail, hides, where, count))


def run(kind: type[Detector], events: list[Event], bench: Bench | None = None) -> list[Finding]:
    """Return the findings of a detector, and of the facts it reads, over events in order."""
    bench = bench or Bench()
    for fact in kind.spec.facts:
        bench.facts[fact] = fact(bench.run, *(used(bench.run) for used in fact.uses))
    detector = kind(cast("Context", bench))
    found: list[Finding] = []
    for event in events:
        for made in bench.facts.values():
            if event.kind in made.kinds:
                made.on_event(event)
        if event.kind in kind.spec.kinds:
            found += detector.on_event(event)
    return found + list(detector.finish())


def tool(text: str, pointer: str = "/description", name: str = "t") -> McpTool:
    """Return a listed tool with one text."""
    return McpTool(HERE, 5, name=name, texts=[McpText(pointer, text)])


def result(text: str, method: str = "tools/call", name: str | None = "t", at: int = 9) -> McpMessage:
    """Return the answer to a call."""
    return McpMessage(
        Where("mcp.jsonl", at), 9, direction="s2c", form="response", method=method, tool=name, text=text, answers=8
    )


def texts(slug: str, truth: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a control's file of texts."""
    found: dict[str, dict[str, Any]] = load_yaml(PLANTED / slug / "texts.yaml")[truth]
    return found


def variants(slug: str) -> list[str]:
    """Return the names of the variants that a control's file of texts makes."""
    return [name for name, _, _ in speeches(PLANTED / slug / "texts.yaml")]
