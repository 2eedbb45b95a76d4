"""Arguments made from a tool's JSON Schema."""

import pytest
from jsonschema import Draft202012Validator

from controls.recorder.arguments import arguments

SCHEMA = {
    "type": "object",
    "required": ["city", "kind", "where"],
    "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number", "minimum": 10}}, "required": ["x"]}},
    "properties": {
        "city": {"type": "string"},
        "kind": {"enum": ["a", "b"]},
        "where": {"$ref": "#/$defs/Point"},
        "when": {"type": "string", "format": "date-time"},
        "many": {"type": "integer", "minimum": 5, "maximum": 7},
        "more": {"type": "integer", "exclusiveMinimum": 3},
        "names": {"type": "array", "items": {"type": "string", "minLength": 8}, "minItems": 2},
        "either": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
        "maybe": {"type": ["null", "string"], "maxLength": 3},
        "fixed": {"const": 7},
        "usual": {"type": "string", "default": "as ever"},
    },
}


def test_the_first_round_gives_every_property_a_typical_value() -> None:
    given = arguments(SCHEMA)
    assert given == {
        "city": "Paris",
        "kind": "a",
        "where": {"x": 10},
        "when": "2026-01-02T03:04:05Z",
        "many": 5,
        "more": 4,
        "names": ["helloxxx", "helloxxx"],
        "either": True,
        "maybe": "hel",
        "fixed": 7,
        "usual": "as ever",
    }
    Draft202012Validator(SCHEMA).validate(given)


def test_the_second_round_gives_what_is_required_a_value_at_the_edge() -> None:
    given = arguments(SCHEMA, 1)
    assert given == {"city": "Paris", "kind": "b", "where": {"x": 10}}
    Draft202012Validator(SCHEMA).validate(given)
    assert arguments({"properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}, 1) == {
        "text": "é\U0001f600 'x' \"y\" ../..",
        "n": 0,
    }


def test_free_text_of_the_second_round_carries_a_canary() -> None:
    schema = {"properties": {"text": {"type": "string"}, "city": {"type": "string"}}}
    assert arguments(schema, 1, tag="0123") == {
        "text": "é\U0001f600 'x' \"y\" ../.. CANARY-ARGUMENT-0123",
        "city": "Paris",
    }
    assert arguments(schema, 0, tag="0123") == {"text": "hello", "city": "Paris"}


@pytest.mark.parametrize(
    ("tool", "name", "value"),
    [
        ("list_directory", "path", "/home/dev/project"),
        ("read_text_file", "path", "/home/dev/project/notes.txt"),
        ("read_file", "filePath", "/home/dev/project/notes.txt"),
        ("write_file", "path", "/home/dev/project/new-0.txt"),
        ("take_screenshot", "output_file", "/home/dev/project/new-0.txt"),
        ("git_status", "repo_path", "/home/dev/project"),
        ("any", "working_dir", "/home/dev/project"),
        ("any", "outputDirectory", "/home/dev/project"),
        ("any", "imageUrl", "https://example.com/page"),
        ("any", "start_date", "2026-01-02"),
        ("any", "user_email", "dev@example.com"),
        ("any", "sql", "SELECT 1"),
        ("query_database", "query", "SELECT 1"),
        ("web_search", "query", "weather in Paris"),
        ("any", "profile", "hello"),
        ("any", "curly", "hello"),
    ],
)
def test_names_that_speak_for_themselves_get_what_they_ask_for(tool: str, name: str, value: str) -> None:
    assert arguments({"properties": {name: {"type": "string"}}}, tool=tool) == {name: value}


def test_a_schema_that_contains_itself_many_times_is_cut_short() -> None:
    schema = {"properties": {f"p{number}": {"$ref": "#"} for number in range(200)}}

    def count(value: object) -> int:
        return 1 + sum(map(count, value.values())) if isinstance(value, dict) else 1

    assert 1000 < count(arguments(schema)) < 5000


def test_limits_that_are_no_numbers_are_passed_over() -> None:
    schema = {"properties": {"n": {"type": "integer", "minimum": float("nan"), "maximum": float("-inf")}}}
    assert arguments(schema) == {"n": 1}


@pytest.mark.parametrize("schema", [None, [], "x", {}, {"properties": 3}, {"properties": {}, "required": 7}])
def test_what_is_no_schema_gets_no_arguments(schema: object) -> None:
    assert arguments(schema) == {}
    assert arguments(schema, 1) == {}


def test_a_schema_that_contains_itself_ends() -> None:
    schema = {"properties": {"self": {"$ref": "#"}, "gone": {"$ref": "#/$defs/none"}}}
    found = arguments(schema)
    assert found["gone"] == "hello"
    depth = 0
    while isinstance(found, dict):
        found, depth = found["self"], depth + 1
    assert 2 < depth < 10
