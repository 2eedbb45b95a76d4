"""Hosts that a server's own papers name."""

from pathlib import Path

import pytest

from mcpdetect.cli.main import main
from mcpdetect.data.documented import documented_text, load_documented, with_documented
from mcpdetect.data.inputs import load_expectations
from mcpdetect.errors import ConfigError
from mcpdetect.model.inputs import Expectations, ExpectedHost

README = """# Weather
![build](https://img.shields.io/x.svg) <img src="https://logo.cdn.net/a.png">
Talks to <https://api.weather.org/v1>, (https://API.weather.org:8443/x) and wss://bücher.de/s.
Set `URL=https://your-host.example.com/` or http://127.0.0.1:8080, http://[2001:db8::7]/, http://localhost/.
Not https://{host}/ nor https://host:port/ but http://counterexample.com.
"""


def hosts(path: Path) -> list[tuple[str, list[int], str]]:
    return [(one.host, one.ports, one.why.removeprefix(f"{path} ")) for one in load_documented([path]).hosts]


def test_a_readme_names_the_hosts_of_its_addresses(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(README, "utf-8")
    assert hosts(path) == [
        ("2001:db8::7", [], "line 4: http://[2001:db8::7]"),
        ("api.weather.org", [8443], "line 3: https://API.weather.org:8443"),
        ("api.weather.org", [], "line 3: https://api.weather.org"),
        ("counterexample.com", [], "line 5: http://counterexample.com"),
        ("xn--bcher-kva.de", [], "line 3: wss://bücher.de"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        (
            "server.json",
            (
                '{"$schema": "https://schema.io/x.json",\n "repository": {"url": "https://github.com/a/b"},\n'
                ' "remotes": [{"url": "https:\\/\\/mcp.vendor.io\\/sse"}],\n "packages": [{"registryBaseUrl":'
                ' "https://registry.npmjs.org",\n  "environmentVariables": [{"default": "https://api.vendor.io"}]}]}'
            ),
            [("api.vendor.io", [], "line 5: https://api.vendor.io")],
        ),
        (
            "package.json",
            '{"homepage": "https://vendor.io", "funding": ["https://pay.io"],\n "config": {"api": "https://a.io/v1"}}',
            [("a.io", [], "line 2: https://a.io")],
        ),
        (
            "pyproject.toml",
            '[project.urls]\nHome = "https://vendor.io"\n[tool.vendor]\napi = "https://a.io/v1"\n',
            [("a.io", [], "line 4: https://a.io")],
        ),
        (
            "METADATA",
            "Name: x\nHome-page: https://vendor.io\nProject-URL: Docs, https://docs.io\n\nIt asks https://a.io/v1.\n",
            [("a.io", [], "line 5: https://a.io")],
        ),
    ],
)
def test_metadata_names_what_is_not_for_people(
    tmp_path: Path, name: str, text: str, wanted: list[tuple[str, list[int], str]]
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert hosts(path) == wanted


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("README.md", b"nothing here, but http://localhost/\n", "names no host"),
        ("README.md", b"a\n\xff\n", "is not UTF-8"),
        ("server.json", b'{\n"a": }', "is no JSON"),
        ("server.json", b"[" * 100_000, "cannot be parsed"),
        ("pyproject.toml", b"= 1", "cannot be parsed"),
        ("README.md", b"x" * (4 * 1024 * 1024 + 1), "is larger than 4194304 bytes"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=told) as caught:
        load_documented([path])
    assert caught.value.file == str(path)


def test_the_list_is_an_expectations_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "README.md", tmp_path / "expect.yaml"
    path.write_text(README, "utf-8")
    assert main(["documented", str(path), "-o", str(out)]) == 0
    assert capsys.readouterr().err == f"{out}: 5 hosts; take out what the server does not use\n"
    assert load_expectations(out).hosts == load_documented([path]).hosts
    assert documented_text(load_documented([path])) == out.read_bytes()


def test_papers_are_added_to_expectations() -> None:
    given = Expectations("e.yaml", [ExpectedHost("a.io")], paths=["/srv/**"], children=["git"])
    papers = Expectations("README.md", [ExpectedHost("b.io")])
    assert with_documented(None, papers) is papers
    assert with_documented(given, papers) == Expectations(
        "e.yaml, README.md", [ExpectedHost("a.io"), ExpectedHost("b.io")], ["/srv/**"], ["git"]
    )
