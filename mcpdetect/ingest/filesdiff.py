"""The difference of a run's file system before and after it, as our recorder writes it: the channel ``files``.

One JSON document, laid out one entry a line so that it is read line by line and a place is a line::

    {"schema": "mcpdetect.files/0", "roots": ["/home/dev", "/tmp"], "whole": true, "hashed": true, "entries": [
    {"path": "/tmp/new", "change": "created", "type": "file", "mode": "0644", "owner": 1000, "size": 3, ...},
    ...
    ]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import EXCERPT, Declared
from mcpdetect.ingest.opener import open_evidence
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.files import FileDifference
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of
from mcpdetect.model.vocabulary import Proof

__all__ = ["FILES_SCHEMA", "FileDifferences"]

FILES_SCHEMA = "mcpdetect.files/0"
"""Name and version of the format."""

_KIND = "file.difference"
_MAX_LINE = 1 << 20
_BLOCK = 1 << 17
_CHANGES = ("created", "changed", "deleted")
_TYPES = ("file", "folder", "link", "fifo", "socket", "device", "other")
_MODE = re.compile(r"[0-7]{4}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class FileDifferences:
    """One file of differences.

    Args:
        path: the file, plain or compressed.
        name: its name in every place; the path otherwise.
        declared: what a manifest says about it.

    Raises:
        InputError: it cannot be opened, or its first line is not that of such a file.
    """

    def __init__(self, path: Path, name: str | None = None, declared: Declared | None = None) -> None:
        self._path = path
        self._name = name or str(path)
        with open_evidence(path, self._name) as stream:
            line = stream.read_exactly(_BLOCK).split(b"\n", 1)[0]
        head = _object(line.removesuffix(b"[") + b"[]}") if line.endswith(b"[") else None
        if head is None or head.get("schema") != FILES_SCHEMA:
            raise UnknownFormat(
                "is no file of differences",
                file=self._name,
                place="line 1",
                value=text_of(line[:80]),
                hint=f"its first line names {FILES_SCHEMA} and ends with the opening of the entries",
            )
        proof: Proof = "declared" if declared is not None else "inferred"
        declared = declared or Declared()
        self._observation = Observation(
            "files",
            self._name,
            "files-diff",
            declared.tool,
            list(declared.options or ()),
            proof,
            {_KIND: proof},
            clock="none",
            complete=declared.complete,
            losses=list(declared.losses),
            scope=declared.scope,
        )
        self._observation.begin_ns, self._observation.end_ns = declared.begin_ns, declared.end_ns

    @property
    def observation(self) -> Observation:
        """What the file can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield ``file.difference`` events, and ``unparsed`` ones for lines that are none."""
        self._observation.counts = counts = {"lines": 0, "events": 0, "unparsed": 0}
        ended = False
        for at, line in self._lines():
            counts["lines"] += 1
            if at == 1 or not line.strip():
                continue
            where = Where(self._name, at)
            if ended:
                event: Event = self._unparsed(where, line, "behind the end of the entries")
            elif line.strip() == b"]}":
                ended = True
                continue
            else:
                event = self._entry(where, line)
            counts["events"] += 1
            counts["unparsed"] += event.kind == "unparsed"
            if wanted is None or event.kind in wanted:
                yield event
        if not ended:
            self._lose("file-truncated", "the list of entries does not end", Where(self._name, counts["lines"]))

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        at, rest = 0, b""
        with open_evidence(self._path, self._name) as stream:
            while block := stream.read(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    at += 1
                    yield at, line
                rest = rest[: _MAX_LINE + 1]
            if rest:
                yield at + 1, rest
            if stream.damaged:
                self._lose("file-truncated", "the compressed stream broke off", Where(self._name, at + 1))

    def _entry(self, where: Where, line: bytes) -> Event:
        # {"path": "/tmp/new", "change": "created", "type": "file", "mode": "0644", "owner": 1000, "size": 3,
        #  "sha256": "2c26b4...", "target": null},
        if len(line) > _MAX_LINE:
            return self._unparsed(where, line, f"longer than {_MAX_LINE} bytes")
        entry = _object(line.strip().removesuffix(b","))
        problem = "no entry: not a JSON object" if entry is None else _problem(entry)
        if entry is None or problem:
            return self._unparsed(where, line, problem)
        return FileDifference(
            where,
            None,
            path=_text(entry["path"]),
            change=entry["change"],
            type=entry["type"],
            mode=entry["mode"],
            owner=entry["owner"],
            size=entry["size"],
            sha256=entry.get("sha256"),
            target=None if entry.get("target") is None else _text(entry["target"]),
        )

    def _unparsed(self, where: Where, line: bytes, reason: str) -> Unparsed:
        self._lose("unparsed", "a line is no entry of a file of differences", where)
        return Unparsed(where, None, seen_in="files", reason=reason, raw=line[:EXCERPT], touches=[_KIND])

    def _lose(self, what: str, detail: str, where: Where) -> None:
        for known in self._observation.losses:
            if (known.what, known.detail) == (what, detail):
                known.count += 1
                return
        self._observation.losses.append(Loss(what, detail, 1, where, [_KIND]))


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _problem(entry: dict[str, Any]) -> str:
    """Return what is wrong with an entry, ``""`` for nothing."""
    path, digest, target = entry.get("path"), entry.get("sha256"), entry.get("target")
    if not isinstance(path, str) or not path.startswith("/"):
        return "path is no absolute path"
    if entry.get("change") not in _CHANGES or entry.get("type") not in _TYPES:
        return "change or type is none of the known ones"
    if not isinstance(entry.get("mode"), str) or _MODE.fullmatch(entry["mode"]) is None:
        return "mode is not four octal digits"
    if not _number(entry.get("owner")) or not _number(entry.get("size")):
        return "owner or size is no number"
    if digest is not None and (not isinstance(digest, str) or _SHA256.fullmatch(digest) is None):
        return "sha256 is not 64 hexadecimal digits"
    return "" if target is None or isinstance(target, str) else "target is no text"


def _text(value: str) -> str:
    """Return a text of the file as event text; our recorder writes it in that form, lone surrogates are another's."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return text_of(value.encode("utf-8", "surrogatepass"))
    return value
