"""The registry of audited servers: facts only, dated, reproducible; what accuses waits for a person to have looked."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from controls.auditing import DENIAL, STEPS, Audit
from controls.recorder.errors import RecorderError
from controls.serverlist import name_of
from controls.servers import lock_text, resolved_digest
from mcpdetect.model.text import shown
from mcpdetect.version import VERSION

__all__ = ["REGISTRY_SCHEMA", "Change", "Host", "Registry", "Row", "load", "registry_schema", "update"]

REGISTRY_SCHEMA: Literal["mcpdetect.servers/1"] = "mcpdetect.servers/1"
"""Name and version of the document."""

_LONGEST = 240
# Public package registries are named by what they are, not by their hosts.
_PACKAGE_REGISTRIES = {"npmjs": "the npm registry", "pypi": "PyPI", "pythonhosted": "PyPI"}
_STATUS: dict[bool | None, Literal["ok", "broke", "unreached"]] = {True: "ok", False: "broke", None: "unreached"}


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StepRow(_Strict):
    """One step: its status, how it went, and the place in the evidence that shows it."""

    step: Literal["installs", "starts", "initializes", "lists", "calls", "survives denial", "shuts down"]
    status: Literal["ok", "broke", "unreached"]
    detail: str
    where: str


class Calls(_Strict):
    """Tool calls of one run: made, answered, and answered without an error."""

    made: int
    answered: int
    good: int


class Shows(_Strict):
    """One way in which the denied network showed: mode inferred, kind of attempt, destinations, first place."""

    mode: str
    what: str
    destinations: int
    where: str


class Host(_Strict):
    """A host asked for on the open network; ``documented`` is null where nobody has looked."""

    host: str
    documented: bool | None
    source: str
    explained: list[str]
    where: str


class Packages(_Strict):
    """What was installed: how many packages, and the sha256 over their names and versions."""

    count: int
    sha256: str


class Change(_Strict):
    """One fact that differs from the last run: before and now."""

    fact: str
    before: str
    now: str


class Row(_Strict):
    """One server in one shell, as it was last audited."""

    server: str
    version: str
    shell: Literal["netns", "microvm"]
    date: datetime.date
    command: str
    mcpdetect: str
    kernel: str | None
    works: bool
    status: Literal["ok", "broke"]
    step: str | None
    reason: str | None
    steps: list[StepRow]
    tools: int
    calls: Calls
    denial: str
    survives: bool | None
    denied_calls: Calls
    denial_shows: list[Shows]
    hosts: list[Host]
    verdicts: dict[str, Literal["detected", "not_detected", "not_observable", "error", "withheld"]]
    packages: Packages
    notes: str
    changed: list[Change]


class Registry(_Strict):
    """The whole document."""

    schema_: Literal["mcpdetect.servers/1"]
    servers: list[Row]
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )


def registry_schema() -> str:
    """Return the JSON Schema of the document, as ``coverage/servers.schema.json`` holds it."""
    schema = Registry.model_json_schema(by_alias=True)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:mcpdetect:schema:servers"}
    return json.dumps({**head, **schema}, indent=2, sort_keys=False) + "\n"


def load(path: Path) -> Registry:
    """Return a registry file's content.

    Args:
        path: the file; one that is not there is an empty registry.

    Raises:
        RecorderError: the file is no registry; the message says where it is wrong.
    """
    if not path.exists():
        return Registry(schema_=REGISTRY_SCHEMA, servers=[])
    try:
        return Registry.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise RecorderError(f"{path} is no {REGISTRY_SCHEMA}: /{place}: {first['msg']}") from error


def update(path: Path, audits: Iterable[Audit], shell: str, today: datetime.date) -> Registry:
    """Put audits into a registry file, in place of what it had of the same servers, and return its content.

    Beside it, in ``servers/``, each installation's packages and versions are written, so that the next one is the same.

    Args:
        path: the file; made if it is not there.
        audits: what became of each server.
        shell: where they ran.
        today: the date of the audits.

    Raises:
        RecorderError: the file is no registry.
    """
    known: dict[tuple[str, str, str], Row] = {}
    for row in load(path).servers:
        known[(*name_of(row.server)[:2], row.shell)] = row
    path.parent.mkdir(parents=True, exist_ok=True)
    for audit in audits:
        row = _row(audit, shell, today)
        key = (*name_of(audit.target)[:2], shell)
        before = known.get(key)
        known[key] = row if before is None else row.model_copy(update={"changed": _changes(before, row)})
        if audit.resolved:
            folder = path.parent / "servers"
            folder.mkdir(exist_ok=True)
            lock = folder / f"{audit.slug}.txt"
            lock.write_text(lock_text(audit.target, audit.resolved))
    content = Registry(schema_=REGISTRY_SCHEMA, servers=[known[key] for key in sorted(known)])
    data = content.model_dump(mode="json", by_alias=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=True) + "\n")
    return content


def _row(audit: Audit, shell: str, today: datetime.date) -> Row:
    broke = audit.broke
    steps = {step.name: step for step in audit.steps}
    calls = [
        Calls(
            made=one.asked.get("tools/call", 0),
            answered=len(one.answers.get("tools/call", [])),
            good=one.good("tools/call"),
        )
        for one in audit.sessions
    ]
    nothing = Calls(made=0, answered=0, good=0)
    survives = steps.get("survives denial")
    return Row.model_validate(
        {
            "server": audit.target,
            "version": audit.version,
            "shell": shell,
            "date": today,
            "command": f"python -m controls audit --shell {shell} {audit.target}",
            "mcpdetect": VERSION,
            "kernel": audit.kernel,
            "works": audit.works,
            "status": "ok" if broke is None else "broke",
            "step": None if broke is None else broke.name,
            "reason": None if broke is None else _short(broke.detail),
            "steps": [
                {
                    "step": name,
                    "status": _STATUS[steps[name].ok if name in steps else None],
                    "detail": _short(steps[name].detail) if name in steps else "",
                    "where": steps[name].where if name in steps else "",
                }
                for name in STEPS
            ],
            "tools": len(audit.sessions[0].tools) if audit.sessions else 0,
            "calls": calls[0] if calls else nothing,
            "denial": DENIAL,
            "survives": survives.ok if survives is not None else None,
            "denied_calls": calls[1] if len(calls) > 1 else nothing,
            "denial_shows": [
                {"mode": one.mode, "what": one.what, "destinations": one.hosts, "where": one.where}
                for one in audit.denied
            ],
            "hosts": _hosts(audit),
            "verdicts": {
                one.check: "withheld" if any(item.level == "accusing" for item in one.findings) else one.verdict
                for one in (audit.result.checks if audit.result is not None else ())
            },
            "packages": {"count": len(audit.resolved), "sha256": resolved_digest(audit.resolved)},
            "notes": audit.server.notes if audit.server is not None else "",
            "changed": [],
        }
    )


def _hosts(audit: Audit) -> list[dict[str, Any]]:
    """Return the hosts asked for, those of accusing findings left out until a person has looked."""
    held = {
        str(finding.facts.get(key))
        for check in (audit.result.checks if audit.result is not None else ())
        for finding in check.findings
        if finding.level == "accusing"
        for key in ("host", "address")
    }
    rows: dict[str, dict[str, Any]] = {}
    for one in audit.asked:
        if one.host in held:
            continue
        parts = one.host.split(".")
        service = _PACKAGE_REGISTRIES.get(parts[-2]) if len(parts) > 1 else None
        name = service or _short(one.host)
        row = {
            "host": name,
            "documented": one.documented,
            "source": one.source,
            "explained": list(one.why),
            "where": one.where,
        }
        rows.setdefault(name, row)
    return [rows[name] for name in sorted(rows)]


def _changes(before: Row, now: Row) -> list[Change]:
    pairs: list[tuple[str, object, object]] = [
        ("version", before.version, now.version),
        ("works", before.works, now.works),
        ("step that broke", before.step, now.step),
        ("tools", before.tools, now.tools),
        ("survives denial", before.survives, now.survives),
        ("packages", before.packages.sha256[:12], now.packages.sha256[:12]),
        ("hosts", " ".join(one.host for one in before.hosts), " ".join(one.host for one in now.hosts)),
    ]
    checks = sorted({*before.verdicts, *now.verdicts})
    pairs += [(name, before.verdicts.get(name, "-"), now.verdicts.get(name, "-")) for name in checks]
    return [Change(fact=fact, before=str(one), now=str(other)) for fact, one, other in pairs if one != other]


def _short(text: str) -> str:
    return shown(" ".join(text.split()), _LONGEST)
