"""Auditing a real server: recorded open and denied, checked, and where it broke, step by step with its evidence."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcpdetect
from controls.asked import Asked, Denied, asked_for, how_denied
from controls.catalog import Control, Variant
from controls.installing import fetched, installation, outcome, with_installation
from controls.recorder.canaries import HOME, PROJECT, tag_of, token_of
from controls.recorder.errors import RecorderError
from controls.recorder.record import record
from controls.recorder.resume import inputs_of, kept
from controls.recorder.shells import Shell
from controls.serverlist import Server, named
from controls.servers import Installed, install
from controls.sessions import Session, last_words, place, session_of
from mcpdetect.model.inputs import Expectations
from mcpdetect.model.result import Result

__all__ = ["DENIAL", "RECORDS", "STEPS", "Audit", "Step", "audit", "judge"]

STEPS = ("installs", "starts", "initializes", "lists", "calls", "survives denial", "shuts down")
"""The steps of a server's life in the cell, in order."""
RECORDS = "records the install"
"""The step between the first two of an audit that records the installation too."""
DENIAL = "output-drop"
"""How the network of the second run is denied."""

_SECONDS = 45.0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a server's life in the cell.

    Attributes:
        name: one of ``STEPS``, or ``RECORDS``.
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
        sessions: what was said in each.
        asked: the hosts asked for in the open run.
        denied: how the denial of the second showed.
        resolved: every package installed, with its version.
        server: the server with its settings.
        slug: its name as a folder's.
        kernel: of the machine or guest it ran on, None where it did not run.
        recorded: the day of the open run, None where there was none.
        kept: names of the runs that were recorded before and kept.
        install: the recording of the installation, None where there is none.
    """

    target: str
    version: str = ""
    steps: list[Step] = field(default_factory=list)
    result: Result | None = None
    bundles: list[Path] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    denied: list[Denied] = field(default_factory=list)
    resolved: tuple[str, ...] = ()
    server: Server | None = None
    slug: str = ""
    kernel: str | None = None
    recorded: datetime.date | None = None
    kept: list[str] = field(default_factory=list)
    install: Path | None = None

    @property
    def broke(self) -> Step | None:
        """The first step that did not go well."""
        return next((step for step in self.steps if step.ok is not True), None)

    @property
    def works(self) -> bool:
        """Whether it installs, starts, initializes, lists and answers calls on an open network."""
        well = {step.name for step in self.steps if step.ok}
        return well >= set(STEPS[:5])


def audit(
    target: str,
    shell: Shell,
    out: Path,
    *,
    seed: int = 0,
    arguments: tuple[str, ...] = (),
    resume: bool = False,
    record_install: bool = False,
    scripts: bool = False,
) -> Audit:
    """Install, record and check one server; whatever breaks is a step of the result.

    Args:
        target: ``npm:NAME[@VERSION]``, ``pypi:NAME[==VERSION]`` or ``command:ARGV``; the settings of a listed server
            are those of the list.
        shell: where it runs.
        out: root of the bundles.
        seed: canaries are derived from it.
        arguments: for the server, instead of those of the list.
        resume: keep a run that was recorded before, if its bundle is whole and of the same inputs.
        record_install: record the installation too, in the cell.
        scripts: install scripts run in that recording; they never run outside the cell.

    Raises:
        ConfigError: the list is wrong.
    """
    found = Audit(target)
    try:
        server = named(target)
        if arguments:
            server = _with(server, arguments)
        found.target, found.server = server.target, server
        installed = install(server)
    except RecorderError as error:
        found.steps.append(Step("installs", False, str(error)))
        return found
    _take(found, installed)
    if record_install:
        found.steps.append(_recorded_install(found, server, installed, shell, out, seed, resume, scripts=scripts))
    control = Control(f"servers/{installed.name}", installed.folder, f"{server.target} {installed.version}".strip())
    for name, denial in (("open", None), ("denied", DENIAL)):
        variant = _variant(server, installed, name, denial, tag_of(seed, f"{control.id}/{name}"))
        try:
            found.bundles.append(_bundle(found, control, variant, shell, out, seed, resume))
        except RecorderError as error:
            found.steps.append(Step("starts" if name == "open" else "survives denial", False, str(error)))
            if found.install is not None:
                installing = mcpdetect.check(found.install)
                found.result = with_installation([], installing, found.target, gap="its runs could not be recorded")
            return found
    _judge(found)
    return found


def _bundle(found: Audit, control: Control, variant: Variant, shell: Shell, out: Path, seed: int, resume: bool) -> Path:
    """Record a run unless it may be kept; return its bundle."""
    before = out / control.id / variant.name
    if resume and kept(before, inputs_of(control, variant, seed=seed, probe=True, where=shell.name)):
        found.kept.append(variant.name)
        return before
    return record(control, variant, out, seed=seed, probe=True, shell=shell, ready=True)


def _recorded_install(
    found: Audit,
    server: Server,
    installed: Installed,
    shell: Shell,
    out: Path,
    seed: int,
    resume: bool,
    *,
    scripts: bool,
) -> Step:
    if shell.name != "netns":
        return Step(RECORDS, False, "an installation is recorded in namespaces alone: a guest has no npm and no pip")
    try:
        folder = fetched(server, installed)
        control, variant = installation(server, installed, folder, scripts=scripts)
        found.install = _bundle(found, control, variant, shell, out, seed, resume)
    except (RecorderError, OSError) as error:  # a full disk above all
        return Step(RECORDS, False, str(error))
    return Step(RECORDS, *outcome(found.install, scripts=scripts))


def judge(target: str, out: Path) -> Audit:
    """Return what an audit of a server that was recorded before finds in its bundles.

    Args:
        target: as for ``audit``.
        out: root of the bundles.

    Raises:
        RecorderError: it is not installed here, or was not recorded.
    """
    server = named(target)
    installed = install(server)
    found = Audit(server.target, server=server)
    _take(found, installed)
    found.bundles = [out / "servers" / installed.name / name for name in ("open", "denied")]
    for bundle in found.bundles:
        if not (bundle / "manifest.json").exists():
            raise RecorderError(f"{bundle}: no recording of {server.target} is there")
    _judge(found)
    return found


def _with(server: Server, arguments: tuple[str, ...]) -> Server:
    return Server(
        server.target,
        arguments,
        server.environment,
        server.pins,
        server.seconds,
        server.notes,
        server.hosts,
        server.microvm,
    )


def _take(found: Audit, installed: Installed) -> None:
    found.version, found.resolved, found.slug = installed.version, installed.resolved, installed.name
    many = f", {len(installed.resolved)} packages" if installed.resolved else ""
    found.steps.append(Step("installs", True, f"{installed.version or 'a command of this machine'}{many}"))


def _variant(server: Server, installed: Installed, name: str, denial: str | None, tag: str) -> Variant:
    def filled(text: str) -> str:
        for key, value in (("canary", token_of(tag)), ("home", HOME), ("project", PROJECT)):
            text = text.replace("{" + key + "}", value)
        return text

    environment = {key: filled(value) for key, value in server.environment.items()}
    if installed.path:
        environment["PATH"] = f"{installed.path}:/usr/bin:/bin"
    return Variant(
        name=name,
        truth="silent",
        why="a real server, not judged",
        run=tuple(filled(word) for word in installed.run),
        axes={"runtime": installed.runtime},
        expect={},
        denial=denial,
        mcp=True,
        seconds=server.seconds or _SECONDS,
        thorough=True,
        environment=environment,
    )


def _judge(found: Audit) -> None:
    """Read the two recordings: steps, verdicts, hosts, how the denial showed."""
    found.sessions = [session_of(bundle) for bundle in found.bundles]
    manifest = _manifest(found.bundles[0])
    found.kernel = str(manifest["host"]["kernel"])
    found.recorded = datetime.date.fromisoformat(manifest["recorded"])
    found.steps += _steps(found.bundles, found.sessions)
    hosts = found.server.hosts if found.server is not None else None
    expectations = Expectations("controls/servers.yaml", list(hosts)) if hosts is not None else None
    found.result = mcpdetect.audit(found.bundles, expectations=expectations, name=found.target)
    if found.install is not None:
        gap = "" if any(step.name == RECORDS and step.ok for step in found.steps) else "the installation broke off"
        installing = mcpdetect.check(found.install, expectations=expectations)
        found.result = with_installation(found.result.parts, installing, found.target, gap=gap)
    found.asked = asked_for(found.bundles[0], hosts)
    found.denied = how_denied(found.result, found.bundles[1].name)


def _steps(bundles: list[Path], sessions: list[Session]) -> Iterator[Step]:
    session, denied = sessions
    run = _manifest(bundles[0])["run"]
    notes = "; ".join(run["notes"])
    answered = bool(session.answers.get("initialize"))
    # One that was silent until its input was closed did start.
    silent = any(step["name"] == "initialize" and step["status"] == "no-answer" for step in run["session"])
    ended = not answered and run["exit"] is not None and not silent
    words = last_words(bundles[0]) if not session.answers.get("tools/call") else None
    said = f": {words[0]}" if words is not None else ""
    where = place(bundles[0], "strace.log", words[1] if words is not None else 1)
    if ended:
        yield Step("starts", False, f"ended with status {run['exit']} before it answered{said}", where)
    else:
        yield Step("starts", True, "it ran", place(bundles[0], "strace.log", 1))
    yield _answered(bundles[0], session, "initialize", notes if ended else f"{notes}{said}", where)
    yield _answered(bundles[0], session, "tools/list", notes, where, f"{len(session.tools)} tools")
    yield _calls(bundles[0], session, notes, said, where)
    yield _survives(session, denied, bundles[1])
    status = run["exit"]
    if not answered:
        yield Step("shuts down", None, "it never answered")
    elif status is None:
        yield Step("shuts down", False, "it had to be stopped after its input was closed")
    else:
        yield Step("shuts down", True, f"ended with status {status} after its input was closed")


def _calls(bundle: Path, session: Session, notes: str, said: str, said_at: str) -> Step:
    made, answers = session.asked.get("tools/call", 0), session.answers.get("tools/call", [])
    if not session.tools:
        return Step("calls", None, "no tools to call")
    if not made:
        why = f"{notes}{said}".removeprefix(": ")
        return Step("calls", False, f"none made: {why}" if why else "none made", said_at)
    first = next((one.line for one in answers if one.failed), None)
    where = place(bundle, "mcp.jsonl", answers[0].line if first is None else first) if answers else ""
    detail = f"{made} made, {len(answers)} answered, {session.good('tools/call')} without an error"
    if len(answers) != made and notes:
        detail = f"{detail}; {notes}"
    return Step("calls", len(answers) == made, detail, where)


def _survives(session: Session, denied: Session, bundle: Path) -> Step:
    if not session.answers.get("initialize"):
        return Step("survives denial", None, "it does not start on an open network either")
    if not denied.answers.get("initialize"):
        words = last_words(bundle)
        said = f": {words[0]}" if words is not None else ""
        where = place(bundle, "strace.log", words[1]) if words is not None else ""
        return Step("survives denial", False, f"it does not answer when the network is denied{said}", where)
    made, answers = denied.asked.get("tools/call", 0), denied.answers.get("tools/call", [])
    good, before = denied.good("tools/call"), session.good("tools/call")
    same = len(answers) == made and set(denied.answers) >= set(session.answers)
    detail = f"{made} calls made, {len(answers)} answered, {good} without an error (open: {before})"
    detail = "; ".join([detail, *_manifest(bundle)["run"]["notes"]])
    first = next((one.line for one in answers if one.failed), None)
    return Step("survives denial", same, detail, place(bundle, "mcp.jsonl", first) if first is not None else "")


def _manifest(bundle: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((bundle / "manifest.json").read_text())
    return manifest


def _answered(bundle: Path, session: Session, method: str, problem: str, where: str, detail: str = "") -> Step:
    name = "initializes" if method == "initialize" else "lists"
    answers = session.answers.get(method, [])
    if not answers and not session.asked.get(method):
        return Step(name, None, "it announces no tools" if session.answers.get("initialize") else "never asked for")
    if not answers:
        return Step(name, False, problem.lstrip(": ") or "no answer", where)
    first = answers[0]
    return Step(
        name,
        not first.failed,
        f"an error: {first.error}" if first.failed else detail or "answered",
        place(bundle, "mcp.jsonl", first.line),
    )
