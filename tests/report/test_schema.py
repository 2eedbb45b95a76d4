"""The published schemas take what is written and read, and refuse the rest; other languages read the files."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from event_strategies import EVENTS, OBSERVATIONS, RUNS, TEXT, of_model
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from trace_samples import EVENTS as SAMPLE
from trace_samples import Memory, document, text

from mcpdetect.data.inputs import load_expectations, load_secrets
from mcpdetect.errors import ConfigError
from mcpdetect.ingest.tracefile import write_trace
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.result import Result
from mcpdetect.model.wire import Refused, decoder, encode
from mcpdetect.report.json_report import json_report
from mcpdetect.report.schema import KINDS, schema

cached_schema = cache(schema)


@cache
def validator(kind: str, definition: str = "") -> Draft202012Validator:
    """Return a validator of a kind of document, or of one definition in its schema."""
    whole = cached_schema(kind)
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": whole["$defs"]} if definition else whole)


def problems(kind: str, value: object) -> list[str]:
    """Return what is wrong with a document."""
    return [error.message for error in validator(kind).iter_errors(value)]


def test_there_are_schemas_of_everything_read_or_written() -> None:
    documents = ("trace", "event", "result", "results", "manifest", "secrets", "expectations", "baseline", "label")
    assert (*documents, "review", "errata", "blindspots", "claims", "recheck", "selftest", "coverage") == KINDS
    for kind in KINDS:
        Draft202012Validator.check_schema(schema(kind))
        assert schema(kind)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema(kind)["$id"] == f"urn:mcpdetect:schema:{kind}"
        assert schema(kind)["title"]


def test_every_class_and_field_of_a_schema_is_described() -> None:
    described = 0
    for kind in ("trace", "result"):
        for name, definition in schema(kind)["$defs"].items():
            assert definition["description"], name
            for field, value in definition["properties"].items():
                assert value.get("description") or field == "schema", f"{name}.{field}"
                described += 1
    assert described > 300


@given(events=st.lists(st.one_of(*EVENTS.values()), max_size=3), observation=OBSERVATIONS, run=RUNS)
def test_every_written_trace_is_valid(events: list[Any], observation: Any, run: Any) -> None:
    out = io.BytesIO()
    write_trace(out, Memory(events, [observation], run), form="json")
    assert problems("trace", json.loads(out.getvalue())) == []


@settings(max_examples=30)
@given(result=of_model(Result))
def test_every_result_is_valid(result: Result) -> None:
    result.schema = "mcpdetect.result/1"
    for part in result.parts:
        part.schema = "mcpdetect.result/1"
    assert problems("result", json.loads(json_report([result]))) == []
    assert problems("results", json.loads(json_report([result, result]))) == []


@pytest.mark.parametrize("kind", EVENTS)
@settings(max_examples=30)
@given(data=st.data())
def test_schema_and_reader_agree_about_an_event_with_one_thing_changed(kind: str, data: st.DataObject) -> None:
    loaded: dict[str, Any] = json.loads(encode(data.draw(EVENTS[kind])))
    victim = data.draw(st.sampled_from([loaded, loaded["where"]]))
    key = data.draw(st.sampled_from([*(name for name in victim if name != "kind"), "unheard"]))
    if data.draw(st.booleans()):
        victim[key] = data.draw(st.one_of(st.none(), st.booleans(), st.integers(), TEXT, st.just([]), st.just({})))
    else:
        victim.pop(key, None)
    try:
        decoder(EVENT_TYPES[kind])(json.dumps(loaded).encode())
        taken = True
    except Refused as error:
        taken = error.problem == "Invalid base64 encoded string"  # an annotation in JSON Schema, never an error
    assert validator("event", EVENT_TYPES[kind].__name__).is_valid(loaded) is taken


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "mcpdetect.trace/2"}, "'mcpdetect.trace/1' was expected"),
        ({"run": None}, "None is not of type 'object'"),
        ({"more": 1}, "Additional properties are not allowed ('more' was unexpected)"),
        ({"observations": [{}]}, "'channel' is a required property"),
    ],
)
def test_a_wrong_trace_is_invalid(change: dict[str, Any], message: str) -> None:
    assert message in problems("trace", document() | change)


def test_an_event_without_its_kind_is_invalid() -> None:
    loaded = document()
    del loaded["events"][0]["kind"]
    assert len(problems("trace", loaded)) == 1


def test_bytes_are_announced_as_plain_base64() -> None:
    data = schema("event")["$defs"]["SocketSend"]["properties"]["data"]
    assert (data["type"], data["contentEncoding"], "format" in data) == ("string", "base64", False)
    assert "base64url" not in json.dumps([schema(kind) for kind in KINDS])


SECRETS_FILES: list[tuple[bool, Any]] = [
    (True, {"home": "/h", "files": {".netrc": "NETRC", "~/.env": "ENV"}}),
    (
        True,
        {"home": "/h", "environment": {"TOKEN": {"kind": "TOKEN", "value": "CANARY-1"}}, "tag": 7, "pattern": "{kind}"},
    ),
    (True, {"files": {"/a": "A"}, "not_secret": [".profile"]}),
    (False, {}),
    (False, {"files": {}}),
    (False, {"files": {".netrc": "NETRC"}}),
    (False, {"home": "h", "files": {".netrc": "NETRC"}}),
    (False, {"environment": {"": "TOKEN"}}),
    (False, {"files": {"/a": 1}}),
    (False, {"files": {"/a": {"kind": "A", "what": 1}}}),
    (False, {"files": {"/a": {"kind": "A", "value": "short"}}}),
    (False, {"files": {"/a": "A"}, "extra": 1}),
]
EXPECTATIONS_FILES: list[tuple[bool, Any]] = [
    (True, {"hosts": ["api.example.com", "*.example.com", {"host": "10.0.0.0/8", "ports": [443], "why": "README"}]}),
    (True, {"paths": ["/tmp/*"], "children": ["git"]}),
    (True, {"hosts": [{"host": "a.example", "publisher": "A"}]}),
    (False, {"hosts": [{"ports": [443]}]}),
    (False, {"hosts": [{"host": "a.example", "ports": [70000]}]}),
    (False, {"hosts": [{"host": "a.example", "port": 1}]}),
    (False, {"host": []}),
]


@pytest.mark.parametrize(("right", "value"), SECRETS_FILES)
def test_schema_and_reader_agree_about_secrets(right: bool, value: Any, tmp_path: Path) -> None:
    assert agreed("secrets", value, tmp_path) is right


@pytest.mark.parametrize(("right", "value"), EXPECTATIONS_FILES)
def test_schema_and_reader_agree_about_expectations(right: bool, value: Any, tmp_path: Path) -> None:
    assert agreed("expectations", value, tmp_path) is right


def agreed(kind: Literal["secrets", "expectations"], value: Any, folder: Path) -> bool:
    """Return the answer that the schema and the reader of YAML (JSON is YAML) both give."""
    path = folder / "file.yaml"
    path.write_text(json.dumps(value))
    try:
        load_secrets(path, tag="x1") if kind == "secrets" else load_expectations(path)
        taken = True
    except ConfigError:
        taken = False
    assert (problems(kind, value) == []) is taken
    return taken


def test_node_reads_the_document_and_the_lines(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: whether JavaScript reads a trace is not tested")
    (tmp_path / "t.json").write_bytes(text("json"))
    (tmp_path / "t.jsonl").write_bytes(text("jsonl"))
    program = """
        const fs = require("fs");
        const whole = JSON.parse(fs.readFileSync("t.json"));
        const lines = fs.readFileSync("t.jsonl", "utf8").trim().split("\\n").map((line) => JSON.parse(line));
        const raw = Buffer.from(whole.events.find((event) => event.kind === "unparsed").raw, "base64");
        console.log(JSON.stringify([whole.events.map((event) => event.kind), lines.length, raw.toString("hex")]));
    """
    done = subprocess.run([node, "-e", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [[event.kind for event in SAMPLE], len(SAMPLE) + 2, "fffe3f"]
