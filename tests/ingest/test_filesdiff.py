"""The difference of a file system, read line by line, whatever is in the lines."""

import gzip
import json
import random
from pathlib import Path

import pytest
import zstandard

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.filesdiff import FileDifferences
from mcpdetect.ingest.open import open_adapter
from mcpdetect.model.event import Unparsed
from mcpdetect.model.files import FileDifference
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where

HEAD = '{"schema": "mcpdetect.files/0", "roots": ["/tmp"], "whole": true, "hashed": true, "entries": [\n'
NEW = {
    "path": "/tmp/new",
    "change": "created",
    "type": "file",
    "mode": "0644",
    "owner": 1000,
    "size": 3,
    "sha256": "ab" * 32,
    "target": None,
}
LINK = {**NEW, "path": "/tmp/a\nb\\xff", "type": "link", "mode": "0777", "sha256": None, "target": "/etc/passwd"}


def written(folder: Path, *lines: str, end: str = "\n]}\n") -> Path:
    path = folder / "files.json"
    path.write_text(HEAD + ",\n".join(lines) + end)
    return path


def test_every_entry_is_an_event_at_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(NEW), json.dumps(LINK))
    assert json.loads(path.read_text())["entries"] == [NEW, LINK]
    adapter = FileDifferences(path, "files.json")
    assert list(adapter.events()) == [
        FileDifference(
            Where("files.json", 2),
            None,
            path="/tmp/new",
            change="created",
            type="file",
            mode="0644",
            owner=1000,
            size=3,
            sha256="ab" * 32,
        ),
        FileDifference(
            Where("files.json", 3),
            None,
            path="/tmp/a\nb\\xff",
            change="created",
            type="link",
            mode="0777",
            owner=1000,
            size=3,
            target="/etc/passwd",
        ),
    ]
    observation = adapter.observation
    assert (observation.channel, observation.format, observation.proof) == ("files", "files-diff", "inferred")
    assert (observation.watches, observation.losses) == ({"file.difference": "inferred"}, [])
    assert observation.counts == {"lines": 4, "events": 2, "unparsed": 0}
    assert list(adapter.events(frozenset({"file.open"}))) == []


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_file_gives_the_same(tmp_path: Path, pack: object) -> None:
    path = written(tmp_path, json.dumps(NEW))
    plain = list(FileDifferences(path, "x").events())
    path.write_bytes(pack(path.read_bytes()))  # type: ignore[operator]
    assert list(FileDifferences(path, "x").events()) == plain
    assert len(plain) == 1


def test_what_a_manifest_says_is_declared(tmp_path: Path) -> None:
    path = written(tmp_path)
    declared = Declared("recorder", [], 5, 7, complete=True, scope="files below /tmp", losses=[Loss("dropped", "some")])
    found = open_adapter("files", "files-diff", path, "files.json", declared).observation
    assert (found.proof, found.watches, found.complete) == ("declared", {"file.difference": "declared"}, True)
    assert (found.tool, found.begin_ns, found.end_ns, found.scope) == ("recorder", 5, 7, "files below /tmp")
    assert found.losses == [Loss("dropped", "some")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"path": "tmp"}, "path is no absolute path"),
        ({"path": 7}, "path is no absolute path"),
        ({"change": "gone"}, "change or type is none of the known ones"),
        ({"change": ["created"]}, "change or type is none of the known ones"),
        ({"type": None}, "change or type is none of the known ones"),
        ({"mode": "644"}, "mode is not four octal digits"),
        ({"mode": 644}, "mode is not four octal digits"),
        ({"owner": True}, "owner or size is no number"),
        ({"size": -1}, "owner or size is no number"),
        ({"size": 1 << 63}, "owner or size is no number"),
        ({"sha256": "AB" * 32}, "sha256 is not 64 hexadecimal digits"),
        ({"target": 1}, "target is no text"),
    ],
)
def test_an_entry_that_is_none_is_counted_and_located(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    line = json.dumps({**NEW, **change})
    adapter = FileDifferences(written(tmp_path, line, json.dumps(NEW)), "f")
    first, second = adapter.events()
    assert first == Unparsed(
        Where("f", 2),
        None,
        seen_in="files",
        reason=reason,
        raw=line.encode() + b",",
        touches=["file.difference"],
    )
    assert isinstance(second, FileDifference)
    assert adapter.observation.losses == [
        Loss("unparsed", "a line is no entry of a file of differences", 1, Where("f", 2), ["file.difference"])
    ]


def test_lone_surrogates_and_what_follows_the_end_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({**NEW, "path": "/\ud800"}), end="\n]}\n{}\n")
    first, second = FileDifferences(path, "f").events()
    assert isinstance(first, FileDifference)
    assert first.path == "/\\xed\\xa0\\x80"
    assert isinstance(second, Unparsed)
    assert second.reason == "behind the end of the entries"


@pytest.mark.parametrize(
    "text", ["{}\n", "[\n", HEAD.replace("files/0", "files/1"), HEAD[:-2], "\xff", '{"a":' * 5000 + "["]
)
def test_another_file_is_refused_by_its_first_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "files.json"
    path.write_text(text)
    with pytest.raises(UnknownFormat, match="is no file of differences"):
        FileDifferences(path)


def test_cut_at_every_byte_it_gives_a_beginning_and_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(NEW), json.dumps(LINK))
    data = path.read_bytes()
    whole = list(FileDifferences(path, "f").events())
    for size in range(len(HEAD), len(data) - 3):
        path.write_bytes(data[:size])
        adapter = FileDifferences(path, "f")
        found = [event for event in adapter.events() if event.kind != "unparsed"]
        assert found == whole[: len(found)]
        assert "file-truncated" in {loss.what for loss in adapter.observation.losses}
    assert len(data) - 3 - len(HEAD) > 300


def test_random_bytes_never_break_it(tmp_path: Path) -> None:
    path = tmp_path / "files.json"
    chance = random.Random(5)  # noqa: S311
    seen = 0
    for _ in range(300):
        path.write_bytes(HEAD.encode() + bytes(chance.choice(b'{}[]":,\n\\a0\xff') for _ in range(200)))
        adapter = FileDifferences(path, "f")
        seen += sum(event.kind == "unparsed" for event in adapter.events())
    assert seen > 1000
    with pytest.raises(InputError):
        FileDifferences(tmp_path / "none")


def test_a_line_beyond_the_limit_is_unparsed_and_the_rest_is_read(tmp_path: Path) -> None:
    long = json.dumps({**NEW, "path": "/" + "x" * (3 << 20)})
    first, second = FileDifferences(written(tmp_path, long, json.dumps(NEW)), "f").events()
    assert isinstance(first, Unparsed)
    assert first.reason == "longer than 1048576 bytes"
    assert len(first.raw or b"") == 4096
    assert isinstance(second, FileDifference)
