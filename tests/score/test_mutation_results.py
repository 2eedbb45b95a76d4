"""The results of a mutation run, as coverage reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpdetect.errors import ConfigError
from mcpdetect.score.coverage import Mutants, ReadingMutants
from mcpdetect.score.measure import load_mutants


def test_results_of_a_mutation_run_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "mutation.json"
    assert load_mutants(path) == ({}, {})
    check = {"mutants": 10, "killed": 7, "own_mutants": 3, "own_killed": 2}
    read = {"mutants": 90, "unreached": 50, "planted": 8, "killed": 5}
    path.write_text(json.dumps({"summary": {"checks": {"a.b": check}, "reading": {"pcap": read}}}), "utf-8")
    assert load_mutants(path) == ({"a.b": Mutants(10, 7, 3, 2)}, {"pcap": ReadingMutants(90, 50, 8, 5)})
    for text, key in (("[]", "checks"), ('{"summary": {}}', "checks"), ('{"summary": {"checks": {}}}', "reading")):
        path.write_text(text, "utf-8")
        with pytest.raises(ConfigError, match=f"has no /summary/{key}"):
            load_mutants(path)
    for key, one, told in (
        ("checks", 7, "mutants must be a whole number"),
        ("checks", {**check, "killed": 1.5}, "killed must be a whole number"),
        ("checks", {**check, "killed": 11}, "more faults are caught than were planted"),
        ("reading", {**read, "killed": 9}, "more faults are caught than were planted"),
        ("reading", {**read, "unreached": -1}, "unreached must be a whole number"),
    ):
        path.write_text(json.dumps({"summary": {"checks": {}, "reading": {}, key: {"a.b": one}}}), "utf-8")
        with pytest.raises(ConfigError, match=told):
            load_mutants(path)
