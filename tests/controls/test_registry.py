"""The registry of audited servers."""

import datetime
import json
from pathlib import Path

import pytest

from controls.auditing import Audit, Step
from controls.recorder.errors import RecorderError
from controls.registry import update
from mcpdetect.model.result import CheckResult, Finding, Result
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Level

DAY = datetime.date(2026, 12, 1)


def audited(ok: bool, level: Level = "info") -> Audit:
    found = Finding(check="a.b", title="t", reason="r", level=level, where=[])
    check = CheckResult("a.b", 1, "T", "detected", "proved", "r", findings=[found])
    steps = [Step("installs", True, "1.0"), Step("starts", ok, "exit 0" if ok else "exit 1")]
    return Audit("npm:x", "1.0", steps, Result(Run(), [check], [], "declared"), [])


def test_a_server_is_written_with_what_became_of_it_and_what_changed_since(tmp_path: Path) -> None:
    path = tmp_path / "coverage" / "servers.json"
    first = update(path, [audited(True)], "netns", DAY)["servers"][0]
    assert (first["status"], first["step"], first["reason"], first["changed"]) == ("ok", None, None, {})
    assert (first["date"], first["command"]) == ("2026-12-01", "python -m controls audit --shell netns npm:x")
    assert first["verdicts"] == {"a.b": "detected"}
    second = update(path, [audited(False)], "netns", DAY)["servers"]
    assert json.loads(path.read_text())["servers"] == second
    assert [(one["step"], one["reason"], one["changed"]) for one in second] == [
        ("starts", "exit 1", {"status": ["ok", "broke"], "step": [None, "starts"]})
    ]


def test_what_accuses_is_withheld(tmp_path: Path) -> None:
    (entry,) = update(tmp_path / "s.json", [audited(True, "accusing")], "netns", DAY)["servers"]
    assert entry["verdicts"] == {"a.b": "withheld"}


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("no JSON")
    with pytest.raises(RecorderError, match=r"is no mcpdetect\.servers/0: "):
        update(path, [], "netns", DAY)
    path.write_text('{"schema": "other"}')
    with pytest.raises(RecorderError, match=r"is no mcpdetect\.servers/0"):
        update(path, [], "netns", DAY)
    assert path.read_text() == '{"schema": "other"}'
