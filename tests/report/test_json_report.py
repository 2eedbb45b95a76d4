"""The JSON report: one document, loadable, with every value of the result."""

from __future__ import annotations

import json

import jsonschema
import msgspec
from report_samples import check, full, result, run

from mcpdetect.model.result import Result
from mcpdetect.report.json_report import json_report
from mcpdetect.report.outcome import Unreadable
from mcpdetect.report.schema import schema


def test_one_result_is_the_document_itself() -> None:
    done = full()
    raw = json_report([done])
    assert raw.endswith(b"\n}\n")
    assert raw.count(b"\n{") == 0
    assert json.loads(raw)["schema"] == "mcpdetect.result/1"
    assert msgspec.json.decode(raw, type=Result) == done


def test_several_runs_are_held_by_one_document() -> None:
    first, second = result(check(), run=run("a")), result(check(), run=run("b"))
    loaded = json.loads(json_report([first, second]))
    assert list(loaded) == ["results", "unreadable", "schema"]
    assert loaded["schema"] == "mcpdetect.results/1"
    assert [item["run"]["id"] for item in loaded["results"]] == ["a", "b"]
    assert loaded["unreadable"] == []


def test_a_run_that_could_not_be_read_is_in_the_document() -> None:
    loaded = json.loads(json_report([result(check())], [Unreadable("c/", "c/: is empty\n  try: again")]))
    assert loaded["unreadable"] == [{"trace": "c/", "error": "c/: is empty\n  try: again"}]
    assert len(loaded["results"]) == 1


def test_names_that_are_no_utf8_are_written_out() -> None:
    loaded = json.loads(json_report([result(check(), run=run("caf\udce9\ud800", target=["\udcff"]))]))
    assert loaded["run"]["id"] == "caf\\xe9\\ud800"
    assert loaded["run"]["target"] == ["\\xff"]


def test_reports_meet_the_published_schemas() -> None:
    done = full()
    for kind, raw in (
        ("result", json_report([done])),
        ("result", json_report([result(check(), parts=[done])])),
        ("results", json_report([done, done], [Unreadable("a", "b")])),
        ("results", json_report([], [Unreadable("a", "b")])),
    ):
        validator = jsonschema.Draft202012Validator(schema(kind))
        validator.check_schema(schema(kind))
        assert list(validator.iter_errors(json.loads(raw))) == []
