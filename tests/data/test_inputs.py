"""Secrets and expectations: what is stated is what is looked for, and every mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpdetect.data.inputs import load_expectations, load_secrets
from mcpdetect.errors import ConfigError
from mcpdetect.model.inputs import Canary, Expectations, ExpectedHost, Secrets


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "given.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_kinds_become_values_by_pattern_and_tag(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "home: /home/u\nfiles:\n  .netrc: NETRC\n  ~/.ssh/id: {kind: SSHKEY, value: fixed-value}\n  /etc/x: ETC\n"
        "environment:\n  API_KEY: API\nnot_secret: [.gitconfig]\n",
    )
    assert load_secrets(path, tag="7c2e") == Secrets(
        str(path),
        [
            Canary("NETRC", "CANARY-NETRC-7c2e", "/home/u/.netrc"),
            Canary("SSHKEY", "fixed-value", "/home/u/.ssh/id"),
            Canary("ETC", "CANARY-ETC-7c2e", "/etc/x"),
            Canary("API", "CANARY-API-7c2e", variable="API_KEY"),
        ],
    )


def test_without_a_tag_only_paths_are_known(tmp_path: Path) -> None:
    path = file(tmp_path, "home: /home/u\nfiles: {.netrc: NETRC}\n")
    assert load_secrets(path).canaries == [Canary("NETRC", None, "/home/u/.netrc")]


def test_the_files_own_tag_and_pattern_win(tmp_path: Path) -> None:
    path = file(tmp_path, 'home: /h\npattern: "tok_{tag}_{kind}"\ntag: 4711\nfiles: {a: A}\n')
    assert load_secrets(path, tag="other").canaries == [Canary("A", "tok_4711_A", "/h/a")]


def test_braces_in_kinds_are_text(tmp_path: Path) -> None:
    path = file(tmp_path, 'home: /h\ntag: t\nfiles: {a: "{tag.__class__}"}\n')
    assert load_secrets(path).canaries[0].value == "CANARY-{tag.__class__}-t"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/../b", "/home/u/b"),
        ("./a//b/", "/home/u/a/b"),
        ("é", "/home/u/é"),
        ('"a\\\\b"', "/home/u/a\\\\b"),
        ("//etc/x", "/etc/x"),
    ],
)
def test_paths_are_normal_and_spelt_as_in_events(tmp_path: Path, name: str, path: str) -> None:
    assert load_secrets(file(tmp_path, f"home: /home/u\nfiles:\n  {name}: KIND\n")).canaries[0].path == path


def refused(call: object, tmp_path: Path, text: str) -> ConfigError:
    path = file(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        call(path)  # type: ignore[operator]
    assert caught.value.file == str(path)
    assert str(caught.value).startswith(str(path))
    return caught.value


SECRETS_WRONG = [
    ("{}\n", None, "plants nothing", None),
    ("files: {}\nenvironment: {}\n", None, "plants nothing", None),
    ("files:\n", "line 1", "must be a mapping of keys to values", None),
    ("home: /h\nfiles:\n  '': A\n", "line 3", "a key of files must not be empty", None),
    ("file: {a: A}\n", "line 1", "unknown key", None),
    ("files:\n  a: A\n", "line 2", "a relative path needs home", "a"),
    ("files:\n  ~/a: A\n", "line 2", "a relative path needs home", "~/a"),
    ("home: u\nfiles:\n  a: A\n", "line 1", "home must be an absolute path", "'u'"),
    ("home: 5\nfiles:\n  a: A\n", "line 1", "home must be an absolute path", "5"),
    ("home: /h\nfiles:\n  a: A\n  b: 5\n", "line 4", "must be a kind, or a mapping with kind and value", "5"),
    ("home: /h\nfiles:\n  a: [A]\n", "line 3", "must be a kind, or a mapping with kind and value", "['A']"),
    (
        "home: /h\nfiles:\n  a: {value: x}\n",
        "line 3",
        "must be a kind, or a mapping with kind and value",
        "{'value': 'x'}",
    ),
    ("home: /h\nfiles:\n  a: {kind: A, valu: x}\n", "line 3", "must be a kind, or a mapping with kind and value", None),
    ("home: /h\nfiles:\n  5: A\n", "line 2", "a key must be text", None),
    ("environment:\n  API: {kind: A, value: short}\n", "line 2", "a canary value needs at least 6 characters", "short"),
    (
        "environment:\n  API: A\npattern: x-{kid}\n",
        "line 3",
        "the pattern has an unknown field 'kid'",
        "x-{kid}",
    ),
    (
        "environment:\n  API: A\npattern: '{kind.__class__}'\n",
        "line 3",
        "the pattern has an unknown field 'kind.__class__'",
        "{kind.__class__}",
    ),
    ("- a\n", "line 1", "must be a mapping of keys to values", "list"),
    ("", "line 1", "must be a mapping of keys to values", "NoneType"),
    ("files: {a: A\n", None, None, None),
    ("files:\n  a: A\n  a: B\nhome: /h\n", "line 3", "the key 'a' is given twice", None),
]


@pytest.mark.parametrize(("text", "place", "problem", "value"), SECRETS_WRONG)
def test_a_wrong_secrets_file_is_named_with_line_and_value(
    tmp_path: Path, text: str, place: str | None, problem: str | None, value: str | None
) -> None:
    error = refused(load_secrets, tmp_path, text)
    if place is not None:
        assert error.place == place
    if problem is not None:
        assert error.problem == problem
    if value is not None:
        assert error.value == value


def test_a_missing_file_and_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    for load in (load_secrets, load_expectations):
        with pytest.raises(ConfigError) as caught:
            load(tmp_path / "none.yaml")
        assert caught.value.file == str(tmp_path / "none.yaml")
        broken = tmp_path / "broken.yaml"
        broken.write_bytes(b"hosts:\n- a\n\xff\xfe")
        with pytest.raises(ConfigError) as caught:
            load(broken)
        assert (caught.value.problem, caught.value.place) == ("is not UTF-8", "line 3")


def test_expectations_are_read_with_hosts_in_one_spelling(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "hosts:\n- API.Example.com.\n- {host: '*.example.com', ports: [443, 80], why: README, publisher: Example}\n"
        "- .example.org\n- 203.0.113.9\n- 203.0.113.77/24\n- 2001:DB8::0001\n- bücher.example\n- '*.Bücher.example'\n"
        "paths: ['/srv/**']\nchildren: ['/usr/bin/git']\n",
    )
    assert load_expectations(path) == Expectations(
        str(path),
        [
            ExpectedHost("api.example.com"),
            ExpectedHost("*.example.com", [443, 80], "README", "Example"),
            ExpectedHost(".example.org"),
            ExpectedHost("203.0.113.9"),
            ExpectedHost("203.0.113.0/24"),
            ExpectedHost("2001:db8::1"),
            ExpectedHost("xn--bcher-kva.example"),
            ExpectedHost("*.xn--bcher-kva.example"),
        ],
        ["/srv/**"],
        ["/usr/bin/git"],
    )


def test_a_server_may_document_that_it_contacts_nobody(tmp_path: Path) -> None:
    assert load_expectations(file(tmp_path, "hosts: []\n")).hosts == []


EXPECTATIONS_WRONG = [
    ("{}\n", None, "documents nothing", None),
    ("host: [a]\n", "line 1", "unknown key", "host"),
    ("hosts:\n- a.test\n- 443\n", "line 3", "a host is a name or a mapping with host", "443"),
    ("hosts:\n- {ports: [443]}\n", "line 2", "a host is a name or a mapping with host", "{'ports': [443]}"),
    ("hosts:\n- {host: a.test, port: 443}\n", "line 2", "unknown key 'port'", None),
    ("hosts:\n- {host: a.test, ports: 443}\n", "line 2", "ports must be a list of numbers from 1 to 65535", "443"),
    ("hosts:\n- {host: a.test, ports: [0]}\n", "line 2", "ports must be a list of numbers from 1 to 65535", "[0]"),
    (
        "hosts:\n- {host: a.test, ports: [true]}\n",
        "line 2",
        "ports must be a list of numbers from 1 to 65535",
        "[True]",
    ),
    ("hosts:\n- https://a.test/\n", "line 2", "is no host name", "'https://a.test/'"),
    ("hosts:\n- a.test:443\n", "line 2", "is no host name", "'a.test:443'"),
    ("hosts:\n- api.*.com\n", "line 2", "is no host name, address or network", "'api.*.com'"),
    ("hosts:\n- '*'\n", "line 2", "is no host name, address or network", "'*'"),
    ("hosts:\n- a..test\n", "line 2", "is no host name, address or network", "'a..test'"),
    (f"hosts:\n- {'a' * 64}.test\n", "line 2", "is no host name, address or network", None),
    ("paths:\n- {a: b}\n", "line 2", "paths must be a list of glob patterns", "{'a': 'b'}"),
    ("children:\n- git\n- 5\n", "line 3", "children must be a list of glob patterns", "5"),
]


@pytest.mark.parametrize(("text", "place", "problem", "value"), EXPECTATIONS_WRONG)
def test_a_wrong_expectations_file_is_named_with_line_and_value(
    tmp_path: Path, text: str, place: str | None, problem: str, value: str | None
) -> None:
    error = refused(load_expectations, tmp_path, text)
    assert (error.problem, error.place) == (problem, place)
    if value is not None:
        assert error.value == value
    assert error.hint or error.cause or "unknown key" in error.problem
