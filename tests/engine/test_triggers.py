"""A finding that is an act names the calls during which it happened."""

from mcpdetect.contract import AnyOf, Need, Spec
from mcpdetect.correlate.calls import Calls
from mcpdetect.engine.triggers import name_triggers, triggered
from mcpdetect.model.mcp import McpMessage
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding
from mcpdetect.model.trace import Run


def spec(check: str, *needs: Need) -> Spec:
    return Spec(id=check, version=1, claim="c", kinds=("mcp.tool",), needs=(AnyOf("p", *needs),), blind_to=("b",))


def test_checks_of_texts_have_no_trigger() -> None:
    text, act = Need("mcp", ("mcp.tool",)), Need("syscalls", ("file.open",))
    assert [triggered(spec("a.text", text)), triggered(spec("a.act", act)), triggered(spec("mcp.act", act))] == [
        False,
        True,
        False,
    ]


def test_the_call_under_way_is_named_with_its_place() -> None:
    calls = Calls(Run())
    for at, form, direction, answers in ((10, "request", "c2s", None), (20, "response", "s2c", 10)):
        calls.on_event(
            McpMessage(
                Where("mcp.jsonl", at),
                at,
                form=form,  # type: ignore[arg-type]
                direction=direction,  # type: ignore[arg-type]
                method="tools/call",
                tool="fetch",
                answers=answers,
            )
        )
    findings = [Finding("a.act", "t", "r", "info", [Where("s", 1)], t_ns=at) for at in (5, 15, 25)]
    findings += [Finding("mcp.x", "t", "r", "info", [Where("s", 1)], t_ns=15), Finding("a.act", "t", "r", "info", [])]
    check = CheckResult("a.act", 1, "t", "detected", "declared", "r", findings=findings)
    name_triggers([check], calls)
    assert [finding.facts.get("triggered_by") for finding in findings] == [
        None,
        ["fetch at mcp.jsonl:10"],
        None,
        None,
        None,
    ]
