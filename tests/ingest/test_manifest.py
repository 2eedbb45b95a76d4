"""Bundles by their manifest: what is read, and how every mistake is named."""

import contextlib
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpdetect.errors import ConfigError
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.manifest import BundleEvidence, load_manifest
from mcpdetect.model.inputs import Canary, Secrets
from mcpdetect.model.observation import Loss
from mcpdetect.model.trace import Run

Change = Callable[[dict[str, Any]], object]
TRACE = b"41 1796047485.915953 +++ exited with 0 +++\n"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def document() -> dict[str, Any]:
    return {
        "schema": "mcpdetect.manifest/0",
        "id": "egress/direct-ip/c-tcp4",
        "control": "egress/direct-ip",
        "variant": "c-tcp4",
        "seed": 0,
        "recorded": "2026-11-30",
        "run": {
            "target": ["/srv/control/direct_ip", "tcp"],
            "mode": "denied",
            "denial": "output-drop",
            "entry": "/srv/control/direct_ip",
            "resolvers": ["10.200.0.1"],
            "started_ns": 1000,
            "ended_ns": 2000,
            "exit": 0,
            "notes": [],
        },
        "host": {"kernel": "6.18", "machine": "x86_64", "shell": "netns", "versions": {}},
        "evidence": [
            {
                "path": "strace.log",
                "channel": "syscalls",
                "format": "strace",
                "tool": "strace 6.1",
                "options": ["-f", "-ttt"],
                "begin_ns": 1000,
                "end_ns": 2000,
                "complete": True,
                "scope": "process tree of the target",
                "losses": [{"what": "dropped", "detail": "three packets were dropped", "count": 3}],
                "sha256": sha(TRACE),
                "bytes": len(TRACE),
            }
        ],
        "secrets": [
            {
                "kind": "NETRC",
                "sha256": sha(b"CANARY-NETRC-1"),
                "path": "/home/dev/.netrc",
                "variable": None,
                "value": "CANARY-NETRC-1",
            },
            {"kind": "TOKEN", "sha256": sha(b"x"), "path": None, "variable": "TOKEN", "value": None},
        ],
        "expect": None,
    }


def bundle(folder: Path, change: Change | None = None, *, text: str | None = None) -> Path:
    data = document()
    if change is not None:
        change(data)
    (folder / "strace.log").write_bytes(TRACE)
    (folder / "manifest.json").write_text(json.dumps(data) if text is None else text)
    return folder


def test_a_bundle_is_read_whole(tmp_path: Path) -> None:
    found = load_manifest(bundle(tmp_path))
    assert found.run == Run(
        id="egress/direct-ip/c-tcp4",
        target=["/srv/control/direct_ip", "tcp"],
        mode="denied",
        denial="output-drop",
        entry="/srv/control/direct_ip",
        started_ns=1000,
        ended_ns=2000,
        resolvers=["10.200.0.1"],
        declared=True,
    )
    assert found.evidence == [
        BundleEvidence(
            tmp_path / "strace.log",
            "strace.log",
            "syscalls",
            "strace",
            Declared(
                tool="strace 6.1",
                options=["-f", "-ttt"],
                begin_ns=1000,
                end_ns=2000,
                complete=True,
                scope="process tree of the target",
                losses=[Loss("dropped", "three packets were dropped", 3)],
            ),
        )
    ]
    name = str(tmp_path / "manifest.json")
    canaries = [Canary("NETRC", "CANARY-NETRC-1", "/home/dev/.netrc"), Canary("TOKEN", variable="TOKEN")]
    assert found.secrets == Secrets(name, canaries)
    assert (found.root, found.tag, found.expect) == (tmp_path, None, None)


def test_a_canary_that_is_not_written_down_is_derived_from_the_seed(tmp_path: Path) -> None:
    value = "CANARY-NETRC-2b1e834b6d9e"

    def change(data: dict[str, Any]) -> None:
        data.update(id="a/b/c", seed=3)
        data["secrets"] = [
            {"kind": "NETRC", "sha256": sha(value.encode()), "path": "/home/dev/.netrc", "offset": 43},
            {"kind": "AWS", "sha256": sha(value.encode()), "path": "/home/dev/.aws/credentials"},
        ]

    found = load_manifest(bundle(tmp_path, change))
    assert found.secrets is not None
    assert found.secrets.canaries == [
        Canary("NETRC", value, "/home/dev/.netrc"),
        Canary("AWS", None, "/home/dev/.aws/credentials"),
    ]


def test_the_manifest_itself_names_the_bundle_too(tmp_path: Path) -> None:
    bundle(tmp_path)
    assert load_manifest(tmp_path / "manifest.json") == load_manifest(tmp_path)


def test_no_planted_secrets_are_no_configuration(tmp_path: Path) -> None:
    assert load_manifest(bundle(tmp_path, lambda data: data.update(secrets=[]))).secrets is None


def test_an_expectations_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "expect.yaml").write_text("hosts: []\n")
    assert load_manifest(bundle(tmp_path, lambda data: data.update(expect="expect.yaml"))).expect == (
        tmp_path / "expect.yaml"
    )


def entry(**changes: object) -> Change:
    return lambda data: data["evidence"][0].update(changes)


def run(**changes: object) -> Change:
    return lambda data: data["run"].update(changes)


def secret(**changes: object) -> Change:
    return lambda data: data["secrets"][0].update(changes)


WRONG: dict[str, tuple[Change, str, str]] = {
    "another schema": (lambda data: data.update(schema="mcpdetect.manifest/9"), "/schema", "is not a manifest"),
    "no schema": (lambda data: data.pop("schema"), "/schema", "is not a manifest"),
    "unknown key": (entry(colour="red"), "/evidence/0/colour", "unknown key 'colour'"),
    "near key": (run(entri="/x"), "/run/entri", "unknown key 'entri'"),
    "missing key": (lambda data: data["run"].pop("target"), "/run", "the key 'target' is missing"),
    "text for number": (run(started_ns="1000"), "/run/started_ns", "must be a whole number"),
    "fraction for number": (run(started_ns=1.5), "/run/started_ns", "must be a whole number"),
    "true for number": (entry(bytes=True), "/evidence/0/bytes", "must be a whole number"),
    "number for true": (entry(complete=1), "/evidence/0/complete", "must be true or false"),
    "text for list": (run(target="sh"), "/run/target", "must be a list"),
    "number in list": (run(target=["sh", 1]), "/run/target/1", "must be text"),
    "list for object": (lambda data: data.update(run=[]), "/run", "must be an object"),
    "list for mapping": (lambda data: data["host"].update(versions=[]), "/host/versions", "must be an object"),
    "other word": (entry(channel="sys"), "/evidence/0/channel", "must be one of"),
    "file is missing": (entry(path="gone.log"), "/evidence/0/path", "the file is not in the bundle"),
    "file is a folder": (entry(path="."), "/evidence/0/path", "is no file"),
    "absolute path": (entry(path="/etc/passwd"), "/evidence/0/path", "must be a plain path inside the bundle"),
    "path goes up": (entry(path="../x"), "/evidence/0/path", "must be a plain path inside the bundle"),
    "path with a null byte": (entry(path="a\0b"), "/evidence/0/path", "must be a plain path inside the bundle"),
    "other size": (entry(bytes=7), "/evidence/0/bytes", "strace.log has 43 bytes"),
    "other hash": (entry(sha256="0" * 64), "/evidence/0/sha256", f"strace.log has sha256 {sha(TRACE)}"),
    "window backwards": (entry(end_ns=1), "/evidence/0/end_ns", "ends before it begins"),
    "run backwards": (run(ended_ns=1), "/run/ended_ns", "the run ends before it starts"),
    "denied without denial": (run(denial=None), "/run/denial", "a denied run names its denial"),
    "open with denial": (run(mode="open"), "/run/denial", "a denied run names its denial"),
    "file twice": (
        lambda data: data["evidence"].append(data["evidence"][0]),
        "/evidence/1/path",
        "names the same file as an entry before it",
    ),
    "secret nowhere": (secret(path=None), "/secrets/0", "has either a path or a variable"),
    "secret twice": (secret(variable="X"), "/secrets/0", "has either a path or a variable"),
    "relative secret": (secret(path=".netrc"), "/secrets/0/path", "must be absolute"),
    "secret of another hash": (secret(value="CANARY-OTHER"), "/secrets/0/sha256", "the value has sha256"),
    "expectations are missing": (lambda data: data.update(expect="e.yaml"), "/expect", "the file is not in the bundle"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_each_mistake_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    change, place, problem = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        load_manifest(bundle(tmp_path, change))
    assert (caught.value.file, caught.value.place) == (str(tmp_path / "manifest.json"), place)
    assert caught.value.problem.startswith(problem)


TEXTS = {
    "empty": ("", "is no JSON"),
    "cut": ('{"schema": "mcpd', "is no JSON"),
    "twice": ('{"schema": 1, "schema": 2}', "the key 'schema' occurs twice in one object"),
    "nan": ('{"schema": NaN}', "NaN is no JSON number"),
    "deep": ("[" * 200_000, "is no usable JSON"),
    "long number": ('{"schema": ' + "9" * 10_000 + "}", "is no usable JSON"),
    "no object": ("[]", "is not a manifest"),
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_text_that_is_no_manifest_is_an_error(tmp_path: Path, name: str) -> None:
    text, problem = TEXTS[name]
    with pytest.raises(ConfigError) as caught:
        load_manifest(bundle(tmp_path, text=text))
    assert caught.value.problem.startswith(problem)


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b'{"schema": "\xff"}')
    with pytest.raises(ConfigError) as caught:
        load_manifest(tmp_path)
    assert (caught.value.problem, caught.value.place) == ("is not UTF-8", "offset 12")


def test_a_manifest_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_manifest(tmp_path)
    assert caught.value.problem == "cannot be read: No such file or directory"


def test_a_huge_document_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpdetect.ingest.strictjson.MAX_JSON", 10)
    with pytest.raises(ConfigError) as caught:
        load_manifest(bundle(tmp_path))
    assert caught.value.problem == "is larger than 10 bytes"


def test_a_link_out_of_the_bundle_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside.log"
    outside.write_bytes(TRACE)
    inside = tmp_path / "bundle"
    inside.mkdir()
    (inside / "link.log").symlink_to(outside)
    with pytest.raises(ConfigError) as caught:
        load_manifest(bundle(inside, entry(path="link.log")))
    assert (caught.value.problem, caught.value.cause) == ("leads out of the bundle", "a symbolic link")


def test_a_link_to_itself_is_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "loop.log").symlink_to(tmp_path / "loop.log")
    with pytest.raises(ConfigError) as caught:
        load_manifest(bundle(tmp_path, entry(path="loop.log")))
    assert caught.value.problem == "the file is not in the bundle"


def test_every_cut_of_a_manifest_is_one_located_error(tmp_path: Path) -> None:
    whole = json.dumps(document())
    (tmp_path / "strace.log").write_bytes(TRACE)
    refused = 0
    for size in range(len(whole)):
        (tmp_path / "manifest.json").write_text(whole[:size])
        with pytest.raises(ConfigError):
            load_manifest(tmp_path)
        refused += 1
    assert refused == len(whole)


WHOLE = json.dumps(document()).encode()


@given(data=st.binary(max_size=60), at=st.integers(0, len(WHOLE)), skip=st.integers(0, 40))
def test_any_bytes_are_a_manifest_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int, skip: int
) -> None:
    folder = bundle(tmp_path_factory.mktemp("any"))
    (folder / "manifest.json").write_bytes(WHOLE[:at] + data + WHOLE[at + skip :])
    with contextlib.suppress(ConfigError):
        load_manifest(folder)


def test_truth_beside_the_evidence_is_never_read(tmp_path: Path) -> None:
    def tell(data: dict[str, Any]) -> None:
        data["truth"] = [{"path": "truth/internet.jsonl", "what": "fake-internet", "sha256": "0" * 64, "bytes": 7}]

    found = load_manifest(bundle(tmp_path, tell))
    assert [item.name for item in found.evidence] == ["strace.log"]
    assert not (found.root / "truth").exists()
