"""The list of known servers: what is shipped, what a wrong one says, and what a named server gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from controls.recorder.errors import RecorderError
from controls.serverlist import Server, chosen, name_of, named, servers
from mcpdetect.errors import ConfigError
from mcpdetect.model.inputs import ExpectedHost

GOOD = """servers:
  - server: npm:@scope/name@1.2.3
    arguments: ["--stdio", "{project}"]
    environment: {TOKEN: "ghp_{canary}"}
    pins: ["zod@3.25.76"]
    seconds: 30
    notes: >-
      Two
      lines.
    hosts:
      - {host: api.example.com, source: its README, ports: [443]}
      - {host: "*.example.net", source: its README}
    microvm: true
  - server: pypi:other.name==2.0
    pins: ["mcp<2"]
    hosts: []
"""
FIRST = Server(
    "npm:@scope/name@1.2.3",
    ("--stdio", "{project}"),
    {"TOKEN": "ghp_{canary}"},
    ("zod@3.25.76",),
    30.0,
    "Two lines.",
    (ExpectedHost("api.example.com", [443], "its README"), ExpectedHost("*.example.net", [], "its README")),
    microvm=True,
)


def written(folder: Path, text: str) -> Path:
    path = folder / "servers.yaml"
    path.write_text(text)
    return path


def test_a_list_gives_its_servers_in_order(tmp_path: Path) -> None:
    assert servers(written(tmp_path, GOOD)) == [FIRST, Server("pypi:other.name==2.0", pins=("mcp<2",), hosts=())]


def test_a_name_without_version_is_the_listed_version(tmp_path: Path) -> None:
    assert named("npm:@scope/name", written(tmp_path, GOOD)) == FIRST


def test_another_version_keeps_the_settings(tmp_path: Path) -> None:
    found = named("npm:@scope/name@2.0.0", written(tmp_path, GOOD))
    assert (found.target, found.arguments, found.hosts) == ("npm:@scope/name@2.0.0", FIRST.arguments, FIRST.hosts)


def test_a_server_that_is_not_listed_has_no_settings(tmp_path: Path) -> None:
    assert named("pypi:unknown", written(tmp_path, GOOD)) == Server("pypi:unknown")


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("npm:@a/b@1.0.0-beta.1", ("npm", "@a/b", "1.0.0-beta.1")),
        ("npm:a", ("npm", "a", "")),
        ("pypi:A.b-c==0.0.1a8", ("pypi", "A.b-c", "0.0.1a8")),
        ("command:/bin/cat -u", ("command", "/bin/cat -u", "")),
    ],
)
def test_a_target_has_kind_name_and_version(target: str, parts: tuple[str, str, str]) -> None:
    assert name_of(target) == parts


@pytest.mark.parametrize("target", ["npm:", "pypi:a b", "npm:../x", "pypi:x==1;rm", "npm:A", "gem:x", "x", "command:"])
def test_what_names_no_server_is_refused(target: str) -> None:
    with pytest.raises(RecorderError, match=r": a server is npm:NAME\[@VERSION\], pypi:NAME"):
        name_of(target)


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("npm:@scope/name@1.2.3", "npm:@scope/name", 2, "a listed server is npm:NAME@VERSION or pypi:NAME==VERSION"),
        ("npm:@scope/name@1.2.3", "command:/bin/cat", 2, "a listed server is npm:NAME@VERSION or pypi:NAME==VERSION"),
        ("pypi:other.name==2.0", "npm:@scope/name@2.0.0", 14, "is listed twice"),
        ('"{project}"', "7", 3, "is no text (put it in quotes)"),
        ('TOKEN: "ghp_{canary}"', "TOKEN: 7", 4, "a variable has a name and a text (put it in quotes)"),
        ('TOKEN: "ghp_{canary}"', '1X: "7"', 4, "a variable has a name and a text (put it in quotes)"),
        ("zod@3.25.76", "--pre", 5, "is no requirement such as mcp<2 or zod@3.25.76"),
        ("seconds: 30", "seconds: 0", 6, "is no number of seconds"),
        ("seconds: 30", "seconds: true", 6, "is no number of seconds"),
        ("api.example.com", "API.example.com", 11, "is no host name in lower case"),
        ("api.example.com", "https://x.example", 11, "is no host name in lower case"),
        ("source: its README, ports", 'source: " ", ports', 11, "says where the host is documented"),
        ("[443]", "[0]", 11, "is no port"),
        ("microvm: true", "microvm: 1", 13, "is true or false"),
        ("notes: >-", "note: >-", 7, "unknown key"),
    ],
)
def test_a_wrong_list_names_file_and_line(tmp_path: Path, old: str, new: str, line: int, problem: str) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        servers(path)
    assert (caught.value.problem, caught.value.file, caught.value.place) == (problem, str(path), f"line {line}")


def test_the_shipped_list_holds_enough_servers_of_both_registries_and_ten_for_guests() -> None:
    found = servers()
    kinds = [name_of(server.target)[0] for server in found]
    assert len(found) >= 75
    assert min(kinds.count("npm"), kinds.count("pypi")) >= 25
    assert sum(server.microvm for server in found) >= 10
    assert [
        server.target for server in found if server.hosts is not None and not all(h.why for h in server.hosts)
    ] == []


def test_no_token_of_the_shipped_list_is_anything_but_a_canary() -> None:
    words = ("TOKEN", "KEY", "SECRET", "PASS")
    checked = 0
    for server in servers():
        for name, value in server.environment.items():
            if any(word in name for word in words):
                checked += 1
                assert value.endswith("{canary}"), (server.target, name)
    assert checked >= 25


def test_a_word_stands_for_the_list_the_guests_part_of_it_or_one_server(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert chosen("listed", path) == servers(path)
    assert chosen("listed:microvm", path) == [FIRST]
    assert chosen("pypi:x==1", path) == [Server("pypi:x==1")]
    with pytest.raises(RecorderError, match=r"^listed:netns: a server is npm:NAME"):
        chosen("listed:netns", path)
