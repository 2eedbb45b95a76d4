"""Auditing a real server: recorded open and denied, checked, and where it broke, step by step with its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

import mcpdetect
from controls.catalog import Control, Variant
from controls.recorder.errors import RecorderError
from controls.recorder.record import record
from controls.recorder.shells import Shell
from controls.servers import install
from mcpdetect.model.result import Result

__all__ = ["Audit", "Step", "audit"]

_SECONDS = 90.0
_DENIAL = "output-drop"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a server's life in the cell.

    Attributes:
        name: ``installs``, ``starts``, ``initializes``, ``lists``, ``calls``, ``survives denial``, ``shuts down``.
        ok: it went well; None: it was never reached.
        detail: how, in a few words.
        where: the evidence place, ``""`` where there is none.
    """

    name: str
    ok: bool | None
    detail: str
    where: str = ""


@dataclass(slots=True)
class Audit:
    """What became of one server.

    Attributes:
        target: as it was named.
        version: the version recorded.
        steps: in order.
        result: the verdicts of both runs together, None where there was nothing to check.
        bundles: the recordings.
    """

    target: str
    version: str = ""
    steps: list[Step] = field(default_factory=list)
    result: Result | None = None
    bundles: list[Path] = field(default_factory=list)

    @property
    def broke(self) -> Step | None:
        """The first step that did not go well."""
        return next((step for step in self.steps if step.ok is not True), None)


@dataclass(slots=True)
class _Session:
    """What a transcript tells: answers by method, as (message number, whether it was an error)."""

    answers: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    tools: int = 0


def audit(target: str, shell: Shell, out: Path, *, seed: int = 0, arguments: tuple[str, ...] = ()) -> Audit:
    """Install, record and check one server; whatever breaks is a step of the result.

    Args:
        target: see ``controls.servers.install``.
        shell: where it runs.
        out: root of the bundles.
        seed: canaries are derived from it.
        arguments: for the server.
    """
    found = Audit(target)
    try:
        server = install(target, arguments)
    except RecorderError as error:
        found.steps.append(Step("installs", False, str(error)))
        return found
    found.version = server.version
    found.steps.append(Step("installs", True, server.version or "a command of this machine"))
    control = Control(f"servers/{server.name}", server.folder, f"{target} {server.version}")
    sessions: list[_Session] = []
    for name, denial in (("open", None), ("denied", _DENIAL)):
        variant = Variant(
            name=name,
            truth="silent",
            why="a real server, not judged",
            run=server.run,
            axes={"runtime": server.runtime},
            expect={},
            denial=denial,
            mcp=True,
            seconds=_SECONDS,
            thorough=True,
            environment=server.environment,
        )
        try:
            bundle = record(control, variant, out, seed=seed, probe=True, shell=shell)
        except RecorderError as error:
            found.steps.append(Step("starts" if name == "open" else "survives denial", False, str(error)))
            return found
        found.bundles.append(bundle)
        sessions.append(_session(bundle))
    found.steps += _steps(found.bundles, sessions)
    found.result = mcpdetect.audit(found.bundles)
    return found


def _messages(bundle: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for name in ("mcp.jsonl", "mcp.jsonl.zst"):
        path = bundle / name
        if path.exists():
            data = path.read_bytes()
            if name.endswith(".zst"):
                data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
            for number, line in enumerate(data.splitlines(), 1):
                entry = json.loads(line)
                if isinstance(entry.get("msg"), dict):
                    yield number, entry["dir"], entry["msg"]


def _session(bundle: Path) -> _Session:
    session = _Session()
    methods: dict[str, str] = {}
    for number, direction, message in _messages(bundle):
        identity = json.dumps(message.get("id"))
        if direction == "c2s" and "method" in message and "id" in message:
            methods[identity] = message["method"]
            session.asked[message["method"]] = session.asked.get(message["method"], 0) + 1
        elif direction == "s2c" and "method" not in message and identity in methods:
            method = methods[identity]
            result = message.get("result")
            failed = "error" in message or (isinstance(result, dict) and result.get("isError") is True)
            session.answers.setdefault(method, []).append((number, failed))
            if method == "tools/list" and isinstance(result, dict) and isinstance(result.get("tools"), list):
                session.tools += len(result["tools"])
    return session


def _steps(bundles: list[Path], sessions: list[_Session]) -> Iterator[Step]:
    session, denied = sessions
    manifest = json.loads((bundles[0] / "manifest.json").read_text())
    notes = "; ".join(manifest["run"]["notes"])
    yield Step("starts", True, f"exit {manifest['run']['exit']}")
    yield _answered(session, "initialize", "initializes", notes)
    yield _answered(session, "tools/list", "lists", notes, f"{session.tools} tools")
    made, answers = session.asked.get("tools/call", 0), session.answers.get("tools/call", [])
    good = sum(not failed for _, failed in answers)
    first = next((number for number, failed in answers if failed), None)
    ok = len(answers) == made and made > 0 if session.tools else None
    where = f"{bundles[0].name}/mcp.jsonl#{first}" if first is not None else ""
    yield Step("calls", ok, f"{made} made, {len(answers)} answered, {good} without an error", where)
    same = set(denied.answers) >= set(session.answers) and denied.asked == session.asked if session.answers else None
    after = len(denied.answers.get("tools/call", []))
    yield Step("survives denial", same, f"{after} of {denied.asked.get('tools/call', 0)} calls answered")
    status = manifest["run"]["exit"]
    yield Step("shuts down", status is not None, "had to be stopped" if status is None else f"exit {status}")


def _answered(session: _Session, method: str, name: str, notes: str, detail: str = "") -> Step:
    answers = session.answers.get(method, [])
    if not answers:
        return Step(name, False if session.asked.get(method) else None, notes or "no answer")
    number, failed = answers[0]
    return Step(name, not failed, "an error" if failed else detail or "answered", f"open/mcp.jsonl#{number}")
