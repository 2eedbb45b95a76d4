"""What is promoted: a bundle as it is, or loose evidence files, a run with meta.json or a trace made one."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpdetect.data.inputs import load_secrets
from mcpdetect.errors import ConfigError
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.manifest import MANIFEST_NAME
from mcpdetect.ingest.metafolder import META_NAME, load_real_meta
from mcpdetect.ingest.open import open_evidence_files
from mcpdetect.ingest.sniff import FLAGS, LOOKS, sniff
from mcpdetect.ingest.tracefile import TraceFile
from mcpdetect.ingest.tracefile.write import write_trace
from mcpdetect.model.event import Event
from mcpdetect.model.inputs import Secrets
from mcpdetect.model.kinds import channel_of
from mcpdetect.model.manifest import MANIFEST_SCHEMA
from mcpdetect.model.observation import Observation
from mcpdetect.model.trace import Run, TraceSource
from mcpdetect.model.vocabulary import Channel

__all__ = ["bundle_of"]

_CHANNELS: dict[str, Channel] = {
    "strace": "syscalls",
    "pcap": "packets",
    "dns": "dns",
    "firewall": "firewall",
    "mcp": "mcp",
}
_UNKNOWN = "unknown"


@dataclass(slots=True)
class _Item:
    """One evidence file that a manifest will name."""

    path: Path
    name: str
    channel: Channel
    format: str
    declared: Declared


@contextmanager
def bundle_of(paths: Sequence[Path], *, secrets: Path | None = None, expect: Path | None = None) -> Iterator[Path]:
    """Give the bundle of what is promoted; one that has to be made is gone afterwards.

    What nobody declared is written down as it was seen: the options that the content shows, and whether it ended.

    Args:
        paths: a bundle; or a folder with meta.json; or a trace; or the evidence files of one run.
        secrets: what was planted, where the bundle has to be made.
        expect: what the server documents, likewise.

    Raises:
        InputError: the evidence cannot be used.
        ConfigError: it is none of these, or a bundle is given more than it says itself.
    """
    first = paths[0]
    if len(paths) == 1 and (first / MANIFEST_NAME).is_file():
        if secrets is not None or expect is not None:
            raise ConfigError("a bundle says itself what was planted and what is documented", file=str(first))
        yield first
        return
    with tempfile.TemporaryDirectory(prefix="mcpdetect-") as made:
        folder = Path(made) / "bundle"
        folder.mkdir()
        planted = load_secrets(secrets) if secrets is not None else None
        if len(paths) == 1 and (first / META_NAME).is_file():
            known = load_real_meta(first / META_NAME)
            items = [_Item(one.path, one.name, one.channel, one.format, one.declared) for one in known.evidence]
            run, planted = known.run, planted or known.secrets
        elif len(paths) == 1 and first.is_file() and sniff(first) == "trace":
            run, items = _parts(first, Path(made))
        else:
            run, items = _loose(paths)
        _write(folder, run, items, planted, expect)
        yield folder


def _loose(paths: Sequence[Path]) -> tuple[Run, list[_Item]]:
    given: dict[str, list[Path]] = {}
    formats: dict[Path, str] = {}
    for path in paths:
        kind = sniff(path) if path.is_file() else None
        option = FLAGS.get(kind) if kind is not None else None
        if kind is None or option is None or option == "--manifest":
            raise ConfigError(
                f"is {LOOKS[kind]}, no evidence" if kind is not None else "is no bundle, no trace and no evidence file",
                file=str(path),
                cause="another file was named, or its content has a form that is not known",
                hint="give a bundle, a trace, or the evidence files of one run",
            )
        given.setdefault(option.removeprefix("--"), []).append(path)
        formats[path] = kind
    for name, files in given.items():
        if name == "strace" and len(files) > 1:
            raise ConfigError(
                "only one log of system calls can be promoted",
                file=str(files[1]),
                hint="merge the files of strace -ff with strace-log-merge first",
            )
    source = open_evidence_files(**given)  # type: ignore[arg-type]
    for _ in source.events(frozenset()):
        pass
    seen = {item.source: item for item in source.observations()}
    items = [
        _Item(path, path.name, _CHANNELS[name], formats[path], _declared(seen[str(path)]))
        for name, files in given.items()
        for path in files
    ]
    names = [item.name for item in items]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise ConfigError("two evidence files have one name", value=name, hint="rename one of them")
    return source.run, items


def _declared(seen: Observation) -> Declared:
    return Declared(
        seen.tool, list(seen.options), seen.begin_ns, seen.end_ns, seen.complete, seen.scope, list(seen.losses)
    )


class _Part:
    """The events of one evidence file of a trace: a ``TraceSource``."""

    def __init__(self, run: Run, events: list[Event], observation: Observation) -> None:
        self.run, self._events, self._observation = run, events, observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        return (event for event in self._events if wanted is None or event.kind in wanted)

    def observations(self) -> list[Observation]:
        return [self._observation]


def _parts(path: Path, folder: Path) -> tuple[Run, list[_Item]]:
    """Split a trace into one trace for each evidence file it was made from."""
    trace = TraceFile(path)
    events = list(trace.events(None))
    every = trace.observations()
    items = []
    left = {id(event) for event in events}
    for number, one in enumerate(every):
        alone = sum(other.channel == one.channel for other in every) == 1
        own = [
            event for event in events if (channel_of(event) == one.channel if alone else event.where.file == one.source)
        ]
        left -= {id(event) for event in own}
        name = f"{number + 1}-{one.channel}.trace.jsonl"
        part: TraceSource = _Part(trace.run, own, one)
        write_trace(folder / name, part, form="jsonl")
        items.append(_Item(folder / name, name, one.channel, "trace", _declared(one)))
    if left or not items:
        raise ConfigError(
            f"{len(left)} of its events belong to no evidence file that it names",
            file=str(path),
            hint="make the trace again from the raw evidence with `mcpdetect parse`",
        )
    return trace.run, items


def _write(folder: Path, run: Run, items: Sequence[_Item], planted: Secrets | None, expect: Path | None) -> None:
    entries: list[dict[str, Any]] = []
    for item in items:
        target = folder / item.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(item.path, target)
        declared = item.declared
        begin = declared.begin_ns or 0
        entries.append(
            {
                "path": item.name,
                "channel": item.channel,
                "format": item.format,
                "tool": declared.tool or _UNKNOWN,
                "options": declared.options or [],
                "begin_ns": begin,
                "end_ns": max(begin, declared.end_ns or 0),
                "complete": declared.complete,
                "scope": declared.scope or _UNKNOWN,
                "losses": [],
                "sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
                "bytes": target.stat().st_size,
            }
        )
    begun = min((entry["begin_ns"] for entry in entries if entry["begin_ns"]), default=0)
    ended = max((entry["end_ns"] for entry in entries), default=0)
    data: dict[str, Any] = {
        "schema": MANIFEST_SCHEMA,
        "id": run.id,
        "control": "",
        "variant": "",
        "seed": 0,
        "recorded": datetime.datetime.fromtimestamp(begun / 1e9, datetime.UTC).date().isoformat(),
        "run": {
            "target": list(run.target),
            "mode": "denied" if run.mode == "denied" else "open",
            "denial": (run.denial or _UNKNOWN) if run.mode == "denied" else None,
            "entry": run.entry,
            "resolvers": list(run.resolvers),
            "started_ns": run.started_ns or begun,
            "ended_ns": max(run.started_ns or begun, run.ended_ns or ended),
            "exit": None,
            "notes": ["the manifest was made from what the evidence shows; nobody declared how it was recorded"],
        },
        "host": {"kernel": _UNKNOWN, "machine": _UNKNOWN, "shell": _UNKNOWN, "versions": {}},
        "evidence": entries,
        "secrets": [
            {
                "kind": one.kind,
                "sha256": hashlib.sha256((one.value or "").encode()).hexdigest(),
                "path": one.path,
                "variable": one.variable,
                "value": one.value,
            }
            for one in (planted.canaries if planted is not None else [])
        ],
    }
    if expect is not None:
        shutil.copyfile(expect, folder / "expect.yaml")
        data["expect"] = "expect.yaml"
    (folder / MANIFEST_NAME).write_text(json.dumps(data, indent=1), "utf-8")
