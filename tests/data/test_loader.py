"""The YAML loader: plain values in, every mistake named by file and line."""

from pathlib import Path

import pytest

from mcpdetect.data.loader import MAX_YAML, Shape, line_of, load_yaml
from mcpdetect.errors import ConfigError

SHAPE: Shape = {"title": None, "rules?": [{"id": None, "why?": None}], "free?": {"*": None}}


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "it.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def failure(folder: Path, text: str | bytes, shape: Shape = None) -> tuple[str, str | None, str | None, str | None]:
    with pytest.raises(ConfigError) as caught:
        load_yaml(write(folder, text), shape, name="it.yaml")
    error = caught.value
    assert error.file == "it.yaml"
    return error.problem, error.place, error.value, error.hint


def test_values_are_plain(tmp_path: Path) -> None:
    data = load_yaml(write(tmp_path, "title: NO\nrules:\n- id: a\n  why: 3\nfree: {x: 1.5, y: null}\n"), SHAPE)
    assert data == {"title": "NO", "rules": [{"id": "a", "why": 3}], "free": {"x": 1.5, "y": None}}
    assert type(data) is dict
    assert type(data["rules"]) is list
    assert type(data["rules"][0]) is dict


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert load_yaml(write(tmp_path, "\ufefftitle: x\n"), SHAPE) == {"title": "x"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: a\nrules: []\ntitle: b\n", ("the key 'title' is given twice", "line 3", None, None)),
        ("title: a\nrules:\n- id: a\n  idd: b\n", ("unknown key", "line 4", "idd", "did you mean 'id'?")),
        ("title: a\nzzzzz: 1\n", ("unknown key", "line 2", "zzzzz", "known keys: free, rules, title")),
        ("rules:\n- id: a\n", ("the key 'title' is missing", "line 1", None, None)),
        ("title: a\nrules:\n- id: a\n- why: b\n", ("the key 'id' is missing", "line 4", None, None)),
        ("title: a\nrules: b\n", ("must be a list", "line 2", "b", None)),
        ("title: a\nfree: [1]\n", ("must be a mapping of keys to values", "line 2", "[1]", None)),
        ("title: a\nfree: {x: {1: 2}}\n", ("a key must be text", "line 2", "1", None)),
        ("- a\n", ("must be a mapping of keys to values", "line 1", "list", None)),
        ("# nothing\n", ("must be a mapping of keys to values", "line 1", "NoneType", None)),
    ],
)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, text: str, expected: tuple[str, str | None, str | None, str | None]
) -> None:
    assert failure(tmp_path, text, SHAPE) == expected


def test_broken_yaml_names_its_line(tmp_path: Path) -> None:
    problem, place, _, _ = failure(tmp_path, "title: a\nrules: [1, 2\nfree: 3\n")
    assert problem
    assert place is not None
    assert place.startswith("line ")


def test_a_python_object_is_refused(tmp_path: Path) -> None:
    assert failure(tmp_path, "a: 1\nb: !!python/object/apply:os.getcwd []\n")[1] == "line 2"


def test_bytes_that_are_no_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    assert failure(tmp_path, b"a: 1\nb: \xff\n") == ("is not UTF-8", "line 2", None, "save it as UTF-8")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file") as caught:
        load_yaml(tmp_path / "none.yaml", name="none.yaml")
    assert caught.value.file == "none.yaml"


def test_a_missing_packaged_file_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        load_yaml("no-such-file.yaml")
    assert caught.value.file == "no-such-file.yaml"


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    assert failure(tmp_path, b"a: " + b"x" * MAX_YAML)[0] == f"is larger than {MAX_YAML} bytes"


def test_aliases_that_multiply_are_checked_once_each(tmp_path: Path) -> None:
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert len(load_yaml(write(tmp_path, "\n".join(lines)))) == 30


def test_a_value_within_itself_ends(tmp_path: Path) -> None:
    data = load_yaml(write(tmp_path, "a: &a {b: *a}\n"))
    assert data["a"]["b"] is data["a"]


def test_nesting_without_end_is_an_error(tmp_path: Path) -> None:
    assert failure(tmp_path, "a: " + "[" * 5000 + "]" * 5000)[0]


def test_line_of_follows_keys_and_indexes(tmp_path: Path) -> None:
    path = write(tmp_path, "title: a\nrules:\n- id: a\n\n- id: b\n  why: c\n")
    assert [
        line_of(path, where)
        for where in [(), ("title",), ("rules",), ("rules", 1), ("rules", 1, "why"), ("rules", 7), ("none", 3)]
    ] == [1, 1, 2, 5, 6, 2, 1]
